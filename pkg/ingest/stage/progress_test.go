package stage_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/fetch"
)

// TestExplainDownload: while a download takes several tries, explain reports which file is
// downloaded from where, how much of it is there, and which try it is.
func TestExplainDownload(t *testing.T) {
	for _, c := range []struct{ name, validator string }{
		{"continues where it stopped", `"same"`},
		{"begins again each time", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newTwins(t)
			w.Machine.Queue.Rules.Timing.Pause = w.Machine.Queue.Rules.Timing.Long - 200*time.Millisecond
			source := drip(t, strings.Repeat("0123456789", 100_000), c.validator, 300_000)
			var said []string
			steps := w.Machine.Step
			w.Machine.Step = func(s ingest.Stage) queue.Step {
				return func(ctx context.Context, claim *queue.Claim) (ingest.Result, error) {
					if s.Name == "download" {
						x, err := w.Machine.Queue.ExplainJob(ctx, claim.Job.ID)
						if err != nil {
							return ingest.Result{}, err
						}
						said = append(said, x.Why)
					}
					return steps(s)(ctx, claim)
				}
			}
			id := w.Submit("a.txt", func(b *ingest.Batch) { b.URL = source.URL + "/a.txt" })
			j := w.Job(id)
			x, err := w.Machine.Queue.ExplainJob(t.Context(), ingest.JobID(j.Batch, 1))
			if err != nil {
				t.Fatal(err)
			}
			said = append(said, x.Why)

			begins := "Downloading a.txt from " + fetch.Host(source.URL)
			if said[0] != begins+"." {
				t.Errorf("first %q", said[0])
			}
			if want := begins + ": 300,000 of 1,000,000 bytes"; !strings.HasPrefix(said[1], want) {
				t.Errorf("then %q; expected %q", said[1], want)
			}
			then := fmt.Sprintf("%q", said)
			const failed = "try 2 starts shortly. The last try failed: the source is too slow"
			if c.validator == "" && !strings.Contains(then, failed) {
				t.Errorf("in the end %s", then)
			}
		})
	}
}
