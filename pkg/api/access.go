package api

import (
	"context"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"archivist/pkg/fault"
	"archivist/pkg/research"
)

// Role is what a key of the API is for. An operation names the role that it needs in the table of
// operations; one that names none needs an Administrator. So a new operation is closed until it is opened.
type Role string

// The roles.
const (
	Administrator Role = "administrator" // everything
	Researcher    Role = "researcher"    // what the researchers of one project call
)

// Access is what a key of the API allows. The zero value allows nothing.
type Access struct {
	Role    Role
	Project string // the only one of a Researcher
}

// ParseAccess reads what String returns: "administrator", or e.g. "researcher:jingles". All else is an
// Invalid.
func ParseAccess(text string) (Access, error) {
	role, project, bound := strings.Cut(text, ":")
	a := Access{Role(role), project}
	if a.Role == Administrator && !bound || a.Role == Researcher && research.Names.MatchString(project) {
		return a, nil
	}
	return Access{}, fault.New(fault.Invalid, "found %q; expected administrator or researcher:PROJECT", text)
}

// String is the role, and for a researcher its project.
func (x Access) String() string {
	if x.Project == "" {
		return string(x.Role)
	}
	return string(x.Role) + ":" + x.Project
}

// may returns a Denied if the key does not allow an operation that is called for a project, "" if it is for none.
func (x Access) may(op *huma.Operation, project string) error {
	need := operations[op.OperationID].needs()
	switch {
	case x.Role == "":
		return fault.New(fault.Denied, "%q needs the role %s; the API key has no role. The setting apiKeys of the "+
			"deployment makes keys with roles", op.Summary, need)
	case x.Role == Administrator:
		return nil
	case x.Role != need:
		return fault.New(fault.Denied, "%q needs the role %s; the API key has the role %s", op.Summary, need, x.Role)
	case x.Project == "" || x.Project != project:
		return fault.New(fault.Denied, "the API key is for the research project %q only", x.Project)
	}
	return nil
}

// keyed is the key of a context for the id of the API key.
type keyed struct{}

// WithKey says with which key a request came: by its id, which the gateway knows when it has verified the key. What
// the request itself says must not get here.
func WithKey(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, keyed{}, id)
}

// permitted refuses a call that its key does not allow, before anything of the request is read.
func (a *API) permitted(c huma.Context, next func(huma.Context)) {
	if a.Keys == nil {
		next(c)
		return
	}
	id, _ := c.Context().Value(keyed{}).(string)
	err := a.Keys[id].may(c.Operation(), c.Param("project"))
	if err != nil {
		_, w := humago.Unwrap(c)
		a.problem(err).(*refusal).write(w)
		return
	}
	next(c)
}
