package queue

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"archivist/pkg/ingest"
)

// Limits of what an explanation says of failed jobs: rows of the batch that are read, causes,
// and bytes of a cause's example.
const (
	causeRows  = 1000
	mostCauses = 3
	causeBytes = 300
)

// failedCauses groups the failed jobs of a batch by their causes: how many have each, and the
// first of them. failed is the number of the batch's failed jobs.
func (q *Queue) failedCauses(ctx context.Context, row *Batch, failed int64) (string, error) {
	jobs, err := q.failedJobs(ctx, row, failed)
	if err != nil {
		return "", err
	}

	groups := map[string][]*Job{}
	for i := range jobs {
		kind := kindOfCause(jobs[i].Message)
		groups[kind] = append(groups[kind], &jobs[i])
	}

	kinds := slices.SortedFunc(maps.Keys(groups), func(a, b string) int {
		return cmp.Or(len(groups[b])-len(groups[a]), cmp.Compare(groups[a][0].Row, groups[b][0].Row))
	})

	var causes []string
	for _, kind := range kinds[:min(len(kinds), mostCauses)] {
		first := groups[kind][0]
		causes = append(causes, fmt.Sprintf("%s × %s (first: %s)", ingest.Number(len(groups[kind])),
			ingest.Cut(strings.TrimSuffix(first.Message, "."), causeBytes), first.Job.ID))
	}

	if more := len(kinds) - len(causes); more > 0 {
		causes = append(causes, fmt.Sprintf("other causes: %d", more))
	}

	of := ""
	if row.Unpacked > causeRows && int64(len(jobs)) < failed {
		of = fmt.Sprintf(" among the first %s rows", ingest.Number(causeRows))
	}

	if len(causes) == 0 {
		return "", nil
	}
	return fmt.Sprintf("Causes%s: %s.", of, strings.Join(causes, "; ")), nil
}

// failedJobs are the failed jobs among the first rows of a batch. It stops once it has as many as
// there are.
func (q *Queue) failedJobs(ctx context.Context, row *Batch, failed int64) (found []Job, err error) {
	for after := 0; after < min(row.Unpacked, causeRows) && int64(len(found)) < failed; after += jobsOfPage {
		jobs, err := q.Jobs(ctx, row.Batch.ID, after)
		if err != nil {
			return nil, err
		}

		found = append(found, slices.DeleteFunc(jobs, func(j Job) bool { return j.State != ingest.Failed })...)
	}
	return found, nil
}

// ofOneJob are the parts of a cause in which jobs differ: addresses, what is quoted, and
// numbers.
var ofOneJob = regexp.MustCompile(`https?://\S+|"[^"]*"|[0-9A-Za-z.:/_-]*[0-9][0-9A-Za-z.:/_-]*`)

// kindOfCause is a cause without the parts in which jobs differ.
func kindOfCause(message string) string { return ofOneJob.ReplaceAllString(message, "#") }
