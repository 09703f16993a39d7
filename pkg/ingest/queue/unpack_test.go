package queue_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"archivist/pkg/events/event"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
)

// TestBadRowFailsAlone: a row that cannot be ingested becomes a failed job with a reason,
// wherever the row is; the other jobs continue, and the batch reports.
func TestBadRowFailsAlone(t *testing.T) {
	const n, at = 100, 61 // in the second chunk
	for name, c := range map[string]struct {
		spoil  func(*ingest.Job)
		reason string // "": it is no bad row
	}{
		"too many local ids": {func(j *ingest.Job) { j.LocalIDs = many(97) }, "at most 20"},
		"a bad local id":     {func(j *ingest.Job) { j.LocalIDs = []string{"a\x00b"} }, "control character"},
		"a negative size":    {func(j *ingest.Job) { j.Payload.Size = -1 }, "size"},
		"a long description": {func(j *ingest.Job) { j.What = strings.Repeat("x", 300<<10) }, "too long"},
		"a double":           {func(j *ingest.Job) { j.LocalIDs = []string{"a", " a"} }, ""},
		"many ids":           {func(j *ingest.Job) { j.LocalIDs = many(20) }, ""},
	} {
		b := newBench(t)
		jobs := make([]ingest.Job, n)
		for i := range jobs {
			jobs[i] = ingest.Job{Collection: "c", Payload: ingest.Payload{URL: "https://example.org/a?sig=SECRET"}}
		}
		c.spoil(&jobs[at-1])
		batch := b.submitJobs(jobs...)
		row, err := b.q.Batch(t.Context(), batch)
		counts, cerr := b.q.Counts(t.Context(), batch)
		bad := b.job(ingest.JobID(batch, at))
		want := ingest.Counts{Processing: n}
		if c.reason != "" {
			want = ingest.Counts{Processing: n - 1, Failed: 1}
			if bad.State != ingest.Failed || !bad.NotRecoverable || !strings.Contains(bad.Message, c.reason) ||
				bad.URL != "https://example.org/a?redacted" || bad.Row != at {
				t.Errorf("%s: the job is %+v", name, bad)
			}
			p, err := b.q.Events(t.Context(), event.Subject{Type: event.Job, ID: bad.ID}, "")
			if err != nil || len(p.Items) != 1 || p.Items[0].Outcome != event.Failure ||
				!strings.Contains(p.Items[0].Detail, c.reason) {
				t.Errorf("%s: its events are %+v, %v", name, p.Items, err)
			}
		}
		if err != nil || cerr != nil || row.State != ingest.BatchProcessing || row.Expected != n || counts != want {
			t.Errorf("%s: %s, expected %d, counts %+v, %v, %v", name, row.State, row.Expected, counts, err, cerr)
		}
	}
}

// TestBatchOfBadRows: the batch reports, although none of its jobs ever ran.
func TestBatchOfBadRows(t *testing.T) {
	b := newBench(t)
	batch := b.submitJobs(ingest.Job{LocalIDs: many(21)})
	b.handle(b.last(), ok)
	if row, err := b.q.Batch(t.Context(), batch); err != nil || row.State != ingest.BatchFailed {
		t.Errorf("the batch is %s, %v", row.State, err)
	}
}

// TestLargeRowsInChunks: chunks stay within the bytes of a transaction.
func TestLargeRowsInChunks(t *testing.T) {
	b := newBench(t)
	jobs := make([]ingest.Job, 45)
	for i := range jobs {
		jobs[i] = ingest.Job{Collection: "c", Metadata: ingest.Metadata{What: strings.Repeat("x", 150<<10)}}
	}
	batch := b.submitJobs(jobs...)
	if c, err := b.q.Counts(t.Context(), batch); err != nil || c.Processing != 45 {
		t.Errorf("counts %+v, %v", c, err)
	}
}

// TestTooManyRows: a batch with more rows than job ids can number is refused at once.
func TestTooManyRows(t *testing.T) {
	b := newBench(t)
	row, err := b.q.Submit(t.Context(), ingest.Batch{Collection: "c"}, "", nil, "me")
	if err != nil {
		t.Fatal(err)
	}
	b.handle(b.last(), func(ctx context.Context, claim *queue.Claim) (ingest.Result, error) {
		return ingest.Result{Outcome: ingest.StepNext}, claim.Unpack(ctx, make([]ingest.Job, 1), ingest.MaxJobs+1)
	})
	got, err := b.q.Batch(t.Context(), row.Batch.ID)
	if err != nil || got.State != ingest.BatchFailed || !strings.Contains(got.Message, "99999") {
		t.Errorf("the batch is %s: %q, %v", got.State, got.Message, err)
	}
}

// TestUnpackThatGivesUp: a batch of which only some rows became jobs waits for these jobs,
// reports, and states why it is not complete.
func TestUnpackThatGivesUp(t *testing.T) {
	for name, end := range map[string]func() (ingest.Result, error){
		"after its tries": func() (ingest.Result, error) { return ingest.Result{}, errors.New("the manifest is gone") },
		"at once":         func() (ingest.Result, error) { return ingest.Fail(false, "the manifest is gone"), nil },
	} {
		b := newBench(t)
		row, err := b.q.Submit(t.Context(), ingest.Batch{Collection: "c"}, "", nil, "me")
		if err != nil {
			t.Fatal(err)
		}
		batch, m := row.Batch.ID, b.last()
		for range 12 {
			b.now = b.now.Add(b.handle(m, func(ctx context.Context, claim *queue.Claim) (ingest.Result, error) {
				if claim.Batch.Unpacked == 0 {
					if err := claim.Unpack(ctx, make([]ingest.Job, 1), 2); err != nil {
						return ingest.Result{}, err
					}
				}
				return end()
			}))
		}
		row, err = b.q.Batch(t.Context(), batch)
		if err != nil || row.State != ingest.BatchProcessing || !row.Sealed || row.Expected != 1 ||
			!strings.Contains(row.Message, "gone") {
			t.Fatalf("%s: given up: %+v, %v", name, row, err)
		}
		want := ingest.Success
		if name == "after its tries" {
			want = ingest.StageFail // the fault is the worker's: an alarm
		}
		if got := b.answered[len(b.answered)-1]; !strings.Contains(got, string(want)) {
			t.Errorf("%s: the execution got the answer %q", name, got)
		}
		b.tick()
		b.forceFail(b.last().Job)
		b.handle(b.last(), ok)
		if row, err = b.q.Batch(t.Context(), batch); err != nil || row.State != ingest.BatchFailed ||
			!strings.Contains(row.Message, "gone") {
			t.Errorf("%s: ended: %+v, %v", name, row, err)
		}
	}
}

// TestReportThatCannotBeMade: its tries end, and the batch has the reason.
func TestReportThatCannotBeMade(t *testing.T) {
	b := newBench(t)
	id := b.submit(1, "")
	b.tick()
	b.handle(b.last(), fails(false))
	m := b.last()
	for range 11 {
		b.now = b.now.Add(b.handle(m, func(context.Context, *queue.Claim) (ingest.Result, error) {
			return ingest.Result{}, errors.New("the bucket refuses")
		}))
	}
	row, err := b.q.Batch(t.Context(), id)
	if err != nil || row.State != ingest.BatchFailed || !strings.Contains(row.Message, "10 times") ||
		!strings.Contains(row.Message, "the bucket refuses") {
		t.Errorf("the batch is %s: %q, %v", row.State, row.Message, err)
	}
	// the execution fails, which is an alarm
	if got := b.answered[len(b.answered)-1]; !strings.Contains(got, string(ingest.StageFail)) {
		t.Errorf("the execution got the answer %q", got)
	}
}

// TestContinueTakesNoTries: the next message of an execution is handled at once, however
// many messages the step needs.
func TestContinueTakesNoTries(t *testing.T) {
	b := newBench(t)
	if _, err := b.q.Submit(b.Context(), ingest.Batch{Collection: "c"}, "", nil, "me"); err != nil {
		t.Fatal(err)
	}
	m := b.last()
	for n := range 30 { // more than the tries of the stage
		keep := b.handle(m, func(ctx context.Context, claim *queue.Claim) (ingest.Result, error) {
			b.now = b.now.Add(45 * time.Second)
			if n%2 == 0 { // a step may continue without a new chunk
				return ingest.Result{Outcome: ingest.StepContinue}, nil
			}
			return ingest.Result{Outcome: ingest.StepContinue}, claim.Unpack(ctx, make([]ingest.Job, 1), 1000)
		})
		if got := b.answered[len(b.answered)-1]; keep != 0 || !strings.Contains(got, string(ingest.Continue)) {
			t.Fatalf("message %d: kept for %s, answered %q", n, keep, got)
		}
		b.now = b.now.Add(time.Second)
	}
}
