package api

import (
	"context"
	"fmt"

	"archivist/pkg/kernel/access"
	"archivist/pkg/kernel/explain"
	"archivist/pkg/kernel/fault"
)

// ProblemRows are the types of problems as rows of the table in docs/api.md.
func ProblemRows() (rows []string) {
	for _, p := range problemTypes {
		rows = append(rows, fmt.Sprintf("| `%s` | %d | %s | %s |", p.URI(), p.status, p.title, p.advice))
	}
	return rows
}

// WireMedia is the wire form of an episode or a clip.
var WireMedia = wireMedia

// StatusOf is the HTTP status of the response to an error of a kind.
func StatusOf(k fault.Kind) int { return ofKind[k].status }

// WithinLimits is an explanation as a caller gets it.
func (a *API) WithinLimits(ctx context.Context, who access.Identity, x explain.Explanation) (explain.Explanation,
	error) {
	return a.withinLimits(context.WithValue(ctx, calling{}, who), x)
}
