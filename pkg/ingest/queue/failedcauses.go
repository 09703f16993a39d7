package queue

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/explain"
)

// Limits of what is said of failed jobs: rows of a batch that are read, causes, and bytes of a cause's example.
const (
	causeRows  = 1000
	mostCauses = 10
	causeBytes = 300
)

// Cause is why some jobs failed, and how many.
type Cause struct {
	Jobs  int
	First Job   // of them, by row
	Since int64 // when the first of them failed, in milliseconds since 1970
}

// Example is the message of the first of the jobs, shortened.
func (c Cause) Example() string {
	return ingest.Cut(strings.TrimSuffix(c.First.Message, "."), causeBytes)
}

// Common is a part of the message that all of the jobs have, as a filter of jobs takes it; "" if all parts are short.
// It has no apostrophe, so that it can stand in one on a command line.
func (c Cause) Common() (longest string) {
	const shortest, most = 8, 100
	for _, part := range ofOneJob.Split(c.First.Message, -1) {
		for text := range strings.SplitSeq(part, "'") {
			if len(text) > len(longest) {
				longest = text
			}
		}
	}
	if len(longest) > most {
		longest = strings.ToValidUTF8(longest[:most], "")
	}
	longest = strings.TrimSpace(longest)
	if len(longest) < shortest {
		return ""
	}
	return longest
}

// causesOf groups failed jobs by their causes, that of most jobs first.
func causesOf(jobs []Job) (all []Cause) {
	groups := map[string]*Cause{}
	for _, j := range jobs {
		kind := kindOfCause(j.Message)
		c := groups[kind]
		if c == nil {
			c = &Cause{First: j, Since: j.Entered}
			groups[kind] = c
		}
		c.Jobs++
		c.Since = min(c.Since, j.Entered)
	}

	for _, c := range groups {
		all = append(all, *c)
	}
	slices.SortFunc(all, func(a, b Cause) int {
		return cmp.Or(b.Jobs-a.Jobs, cmp.Compare(a.First.Row, b.First.Row),
			cmp.Compare(a.First.Job.ID, b.First.Job.ID))
	})
	return all
}

// failedCauses adds to the explanation of a batch the causes of its failed jobs: of each, how many have it, and the
// first of them. failed is the number of the batch's failed jobs.
func (q *Queue) failedCauses(ctx context.Context, row *Batch, failed int64, x *explain.Part) error {
	jobs, err := q.failedJobs(ctx, row, failed)
	if err != nil {
		return err
	}

	name := "cause"
	if row.Unpacked > causeRows && int64(len(jobs)) < failed {
		name = fmt.Sprintf("cause among the first %s rows", ingest.Number(causeRows))
	}

	causes := causesOf(jobs)
	shown := causes[:min(len(causes), mostCauses)]
	for _, c := range shown {
		x.Add(name, fmt.Sprintf("%s × %s (first: %s)", ingest.Number(c.Jobs), c.Example(),
			c.First.Job.ID))
	}
	x.Add("other causes", count(int64(len(causes)-len(shown))))
	return nil
}

// failedJobs are the failed jobs among the first rows of a batch. It stops once it has as many as
// there are.
func (q *Queue) failedJobs(ctx context.Context, row *Batch, failed int64) (found []Job, err error) {
	for after := 0; after < min(row.Unpacked, causeRows) &&
		int64(len(found)) < failed; after += jobsOfPage {
		jobs, err := q.Jobs(ctx, row.Batch.ID, after)
		if err != nil {
			return nil, err
		}

		found = append(found, slices.DeleteFunc(jobs,
			func(j Job) bool { return j.State != ingest.Failed })...)
	}
	return found, nil
}

// ofOneJob are the parts of a cause in which jobs differ: the file that it is about, addresses, what is quoted, and
// numbers.
var ofOneJob = regexp.MustCompile(`^file [^:]+: |https?://\S+|"[^"]*"|[0-9A-Za-z.:/_-]*[0-9][0-9A-Za-z.:/_-]*`)

// kindOfCause is a cause without the parts in which jobs differ.
func kindOfCause(message string) string { return ofOneJob.ReplaceAllString(message, "#") }
