package queue_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"archivist/pkg/events/event"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// failed submits a batch of n jobs, of which all fail.
func (b *bench) failed(n int) (batch string) {
	b.Helper()
	batch = b.submit(n, "")
	for row := 1; row <= n; row++ {
		b.failJob(ingest.JobID(batch, row))
	}
	return batch
}

// failJob fails a job as its estimate would.
func (b *bench) failJob(id string) {
	b.Helper()
	row, err := b.q.Job(b.Context(), id)
	if err != nil {
		b.Fatal(err)
	}
	tx := b.q.Table.Begin(b.q.NewID())
	tx.Count(table.Key{PK: "BATCH#" + row.Batch, SK: "COUNT"}, ingest.Moved(row.State, ingest.Failed))
	row.Job = b.q.Rules.Failed(row.Job, "the source is gone", true, b.now)
	row.WorkPK, row.WorkSK = row.WorkKey()
	tx.Save(row)
	if err := tx.Commit(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// operate starts an operation on behalf of an administrator.
func (b *bench) operate(bulk ingest.Bulk, request string, dryRun bool) *queue.Operation {
	b.Helper()
	row, err := (queue.Admin{Queue: b.q}).Start(b.Context(), bulk, "source fixed", "ann", ingest.Administrator, request,
		dryRun)
	if err != nil {
		b.Fatal(err)
	}
	return row
}

// finish runs the pages of an operation until it does not run any more.
func (b *bench) finish(id string) *queue.Operation {
	b.Helper()
	d := queue.Admin{Queue: b.q}
	for range 1000 {
		row, err := d.Operation(b.Context(), id)
		if err != nil || row.State != ingest.OperationRunning {
			if err != nil {
				b.Fatal(err)
			}
			return row
		}
		if _, err := d.RunPage(b.Context(), id, row.Exec, b.now.Add(time.Minute)); err != nil {
			b.Fatal(err)
		}
	}
	b.Fatal("the operation does not end")
	return nil
}

// TestBulkRequeue: an operation requeues what its filter selects, refuses what cannot be
// requeued with the reason, counts both, and is in the history.
func TestBulkRequeue(t *testing.T) {
	b := newBench(t)
	batch := b.failed(120) // more than one page of each kind
	other := b.failed(1)
	const lost = 7
	b.edit(ingest.JobID(batch, lost), func(row *queue.Job) { row.NotRecoverable = true })
	b.edit(ingest.JobID(batch, 8), func(row *queue.Job) { row.Job.Message = "another message" })

	bulk := ingest.Bulk{Name: ingest.ActRequeue, Filter: ingest.Filter{Batch: batch, State: ingest.Failed,
		Message: "SOURCE"}}
	op := b.operate(bulk, "r1", false)
	if m := b.last(); m.Operation != op.Operation.ID || m.Exec != 1 {
		t.Errorf("started %+v", m)
	}
	if again := b.operate(bulk, "r1", false); again.Operation.ID != op.Operation.ID {
		t.Errorf("the same request started %s, then %s", op.Operation.ID, again.Operation.ID)
	}
	_, err := (queue.Admin{Queue: b.q}).Start(t.Context(), ingest.Bulk{Name: ingest.ActRequeue,
		Filter: ingest.Filter{Batch: other}}, "source fixed", "ann", ingest.Administrator, "r1", false)
	if !fault.Is(err, fault.Conflict) {
		t.Errorf("another filter under the same request id: %v", err)
	}
	done := b.finish(op.Operation.ID)
	if want := (ingest.Tally{Planned: 119, Done: 118, Refused: 1}); done.Tally != want || done.Tally.Left() != 0 ||
		done.State != ingest.OperationDone {
		t.Errorf("done: %+v", done.Operation)
	}
	for row, want := range map[int]ingest.State{1: ingest.Pending, lost: ingest.Failed, 8: ingest.Failed,
		120: ingest.Pending} {
		if j := b.job(ingest.JobID(batch, row)); j.State != want {
			t.Errorf("job %d is %s, want %s", row, j.State, want)
		}
	}
	if j := b.job(ingest.JobID(other, 1)); j.State != ingest.Failed {
		t.Errorf("a job of another batch is %s", j.State)
	}
	refused, err := queue.Admin{Queue: b.q}.Refusals(t.Context(), op.Operation.ID, "")
	if err != nil || len(refused.Items) != 1 || refused.Items[0].Job != ingest.JobID(batch, lost) ||
		!strings.Contains(refused.Items[0].Reason, "cannot be requeued") {
		t.Errorf("refused %+v, %v", refused, err)
	}
	b.history(op.Operation.ID, "operation.started", "operation.done")
}

// history checks the types of the events of an operation.
func (b *bench) history(id string, want ...string) {
	b.Helper()
	p, err := b.q.Events(b.Context(), event.Subject{Type: event.Operation, ID: id}, "")
	var got []string
	for _, e := range p.Items {
		got = append(got, e.Type)
	}
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		b.Errorf("the history is %v, want %v; %v", got, want, err)
	}
}

// TestRepeatedRequest: the same request acts once, even if the job has failed again since,
// and has the same result. Another action under its id is refused.
func TestRepeatedRequest(t *testing.T) {
	b := newBench(t)
	id := ingest.JobID(b.failed(1), 1)
	d := queue.Admin{Queue: b.q}
	a := ingest.Action{Name: ingest.ActRequeue, Target: ingest.Target{Kind: ingest.TargetJob, ID: id}, Reason: "fixed",
		Actor: "ann", Role: ingest.Operator, Request: "q1"}
	first, err := d.Act(t.Context(), a)
	if err != nil || !first.Changed || first.To != string(ingest.Pending) {
		t.Fatalf("%+v, %v", first, err)
	}
	b.failJob(id)
	again, err := d.Act(t.Context(), a)
	if err != nil || fmt.Sprint(again) != fmt.Sprint(first) || b.job(id).State != ingest.Failed {
		t.Errorf("again: %+v, %v, the job is %s", again, err, b.job(id).State)
	}
	a.Name = ingest.ActFail
	if _, err := d.Act(t.Context(), a); !fault.Is(err, fault.Conflict) {
		t.Errorf("another action under the same id: %v", err)
	}
	a.Name, a.Request = ingest.ActRequeue, "q2"
	if next, err := d.Act(t.Context(), a); err != nil || !next.Changed || b.job(id).RetryCount != 2 {
		t.Errorf("another request: %+v, %v", next, err)
	}
}

// checks is a checker of three pages, each with a finding that is repaired on request.
type checks struct{ pages []string }

func (c *checks) Check(_ context.Context, cursor string, repair bool, _ time.Time) (queue.CheckedPage, error) {
	c.pages = append(c.pages, cursor)
	next := map[string]string{"": "one", "one": "two", "two": ""}[cursor]
	return queue.CheckedPage{Cursor: next, Checked: 10, Progress: "then " + next, Findings: []queue.Finding{{
		Invariant: "batch-counts", Subject: "batch:" + cursor, Evidence: "1, not 2", Repaired: repair}}}, nil
}

// TestDoctorPages: the doctor is an operation whose pages are recorded with their findings.
// Repairs need an administrator.
func TestDoctorPages(t *testing.T) {
	b := newBench(t)
	c := &checks{}
	d := queue.Admin{Queue: b.q, Checker: c, Execution: "console-1"}
	if _, err := d.StartDoctor(t.Context(), true, "check", "ann", ingest.Operator, ""); !fault.Is(err, fault.Denied) {
		t.Errorf("a repair by an operator: %v", err)
	}
	op, err := d.StartDoctor(t.Context(), true, "check", "ann", ingest.Administrator, "x")
	if err != nil || len(b.started) != 0 || op.RunBy() != "console-1" {
		t.Fatalf("%+v, %v, started %v", op, err, b.started)
	}
	if _, err := d.Interrupt(t.Context(), op.Operation.ID, "x", "bob", ingest.Operator); !fault.Is(err, fault.Denied) {
		t.Errorf("a repair interrupted by an operator: %v", err)
	}
	for range 3 {
		if op, err = d.RunPage(t.Context(), op.Operation.ID, 1, b.now.Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	if op.State != ingest.OperationDone || op.Tally != (ingest.Tally{Checked: 30, Findings: 3, Repaired: 3}) {
		t.Errorf("the doctor is %+v", op.Operation)
	}
	found, err := d.Findings(t.Context(), op.Operation.ID, "")
	if err != nil || len(found.Items) != 3 || found.Items[2].Subject != "batch:two" ||
		fmt.Sprint(c.pages) != "[ one two]" {
		t.Errorf("found %+v, %v; pages %v", found, err, c.pages)
	}
	b.history(op.Operation.ID, "operation.started", "operation.done")
}
