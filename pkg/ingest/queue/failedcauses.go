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
	"archivist/pkg/kernel/explain"
)

// Limits of what an explanation says of failed jobs: rows of the batch that are read, causes,
// and bytes of a cause's example.
const (
	causeRows  = 1000
	mostCauses = 10
	causeBytes = 300
)

// failedCauses adds to the explanation of a batch the causes of its failed jobs: of each, how many have it, and the
// first of them. failed is the number of the batch's failed jobs.
func (q *Queue) failedCauses(ctx context.Context, row *Batch, failed int64, x *explain.Part) error {
	jobs, err := q.failedJobs(ctx, row, failed)
	if err != nil {
		return err
	}

	groups := map[string][]*Job{}
	for i := range jobs {
		kind := kindOfCause(jobs[i].Message)
		groups[kind] = append(groups[kind], &jobs[i])
	}

	kinds := slices.SortedFunc(maps.Keys(groups), func(a, b string) int {
		return cmp.Or(len(groups[b])-len(groups[a]), cmp.Compare(groups[a][0].Row, groups[b][0].Row))
	})

	name := "cause"
	if row.Unpacked > causeRows && int64(len(jobs)) < failed {
		name = fmt.Sprintf("cause among the first %s rows", ingest.Number(causeRows))
	}

	shown := kinds[:min(len(kinds), mostCauses)]
	for _, kind := range shown {
		first := groups[kind][0]
		x.Add(name, fmt.Sprintf("%s × %s (first: %s)", ingest.Number(len(groups[kind])),
			ingest.Cut(strings.TrimSuffix(first.Message, "."), causeBytes), first.Job.ID))
	}
	x.Add("other causes", count(int64(len(kinds)-len(shown))))
	return nil
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
