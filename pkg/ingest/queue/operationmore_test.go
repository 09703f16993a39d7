package queue_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"archivist/pkg/events/event"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// TestBulkOfThousands: thousands of jobs are held by one operation, in pages.
func TestBulkOfThousands(t *testing.T) {
	const jobs = 2000
	b := newTwinBench(t)
	batch := b.submit(jobs, "")
	op := b.operate(ingest.Bulk{Name: ingest.ActHold, Filter: ingest.Filter{Batch: batch}}, "", false)
	done := b.finish(op.Operation.ID)
	if done.Tally != (ingest.Tally{Planned: jobs, Done: jobs}) {
		t.Errorf("done: %+v", done.Tally)
	}
	counts, err := b.q.Counts(t.Context(), batch)
	if err != nil || counts != (ingest.Counts{Held: jobs}) {
		t.Errorf("the counts are %+v, %v", counts, err)
	}
}

// TestBulkFilters: jobs are found by their collection, or by their state alone, wherever
// they wait; each is an item once. Jobs that fail later are not.
func TestBulkFilters(t *testing.T) {
	b := newTwinBench(t)
	mine, other := b.failed(130), b.failed(3)
	for row := 1; row <= 3; row++ {
		b.edit(ingest.JobID(other, row), func(j *queue.Job) {
			j.Job.Collection, j.ListPK = "maps", "jobs#maps"
			if row == 1 {
				j.HasSpace, j.Due = true, b.now.UnixMilli() // it waits to be cleaned up
			}
			if row == 2 {
				j.State = ingest.Held
			}
		})
	}
	requeue := func(f ingest.Filter) ingest.Bulk { return ingest.Bulk{Name: ingest.ActRequeue, Filter: f} }
	for what, c := range map[string]struct {
		bulk ingest.Bulk
		want int
	}{
		"collection":           {requeue(ingest.Filter{Collection: "c"}), 130},
		"state":                {requeue(ingest.Filter{State: ingest.Failed}), 132},
		"state and collection": {requeue(ingest.Filter{State: ingest.Failed, Collection: "c"}), 130},
		"held":                 {ingest.Bulk{Name: ingest.ActRelease, Filter: ingest.Filter{State: ingest.Held}}, 1},
		"message":              {requeue(ingest.Filter{Batch: mine, Message: "no such"}), 0},
		"before":               {requeue(ingest.Filter{Batch: mine, Before: b.now.UnixMilli() - 1}), 0},
	} {
		op := b.finish(b.operate(c.bulk, "", true).Operation.ID) // a dry run
		if op.Tally.Planned != c.want || op.Tally.Left() != 0 {
			t.Errorf("%s: %+v, want %d", what, op.Tally, c.want)
		}
	}
}

// TestBulkReleaseOfBatches: a release by collection also lets held batches continue that have
// no jobs yet.
func TestBulkReleaseOfBatches(t *testing.T) {
	b := newBench(t)
	d := queue.Admin{Queue: b.q}
	on := func(name ingest.ActionName) ingest.ActionResult {
		out, err := d.Act(t.Context(), ingest.Action{Name: name, Reason: "check", Actor: "ann", Role: ingest.Operator,
			Target: ingest.Target{Kind: ingest.TargetCollection, ID: "c"}})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	b.submit(2, "")
	on(ingest.ActHold)
	row, err := b.q.Submit(t.Context(), ingest.Batch{Collection: "c", Mode: "add"}, "", nil, "me")
	if err != nil {
		t.Fatal(err)
	}
	b.handle(b.last(), func(context.Context, *queue.Claim) (ingest.Result, error) {
		t.Error("a held batch was unpacked")
		return ingest.Result{}, nil
	})
	b.tick()
	next := on(ingest.ActRelease).Next
	if next == nil {
		t.Fatal("the release of the collection offers nothing")
	}
	op := b.finish(b.operate(*next, "", false).Operation.ID)
	if op.Tally != (ingest.Tally{Planned: 3, Done: 3}) || b.batch(row.Batch.ID).State != ingest.BatchPending {
		t.Errorf("%+v, the batch is %s", op.Tally, b.batch(row.Batch.ID).State)
	}
	page, err := b.q.Events(t.Context(), event.Subject{Type: event.Batch, ID: row.Batch.ID}, "")
	if err != nil || !strings.Contains(page.Items[len(page.Items)-1].Detail, op.Operation.ID) {
		t.Errorf("the batch's events %+v do not name the operation, %v", page.Items, err)
	}
}

// TestBulkOfRemovedBatch: an operation on a batch whose rows are removed meanwhile ends.
func TestBulkOfRemovedBatch(t *testing.T) {
	b := newBench(t)
	batch := b.failed(2)
	bulk := ingest.Bulk{Name: ingest.ActRequeue, Filter: ingest.Filter{Batch: batch}}
	planned, started := b.operate(bulk, "", false), b.operate(bulk, "", false)
	d := queue.Admin{Queue: b.q}
	if _, err := d.RunPage(t.Context(), planned.Operation.ID, 1, b.now.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	for _, k := range []string{"JOB#" + ingest.JobID(batch, 1), "JOB#" + ingest.JobID(batch, 2), "BATCH#" + batch} {
		name, _, _ := strings.Cut(k, "#")
		if err := b.q.Table.Rows.Delete("pk", k).Range("sk", name).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if op := b.finish(planned.Operation.ID); op.Tally != (ingest.Tally{Planned: 2, Refused: 2}) {
		t.Errorf("planned before: %+v", op.Tally)
	}
	if op := b.finish(started.Operation.ID); op.Tally != (ingest.Tally{}) {
		t.Errorf("planned after: %+v", op.Tally)
	}
}

// TestBulkDryRun: a dry run changes nothing, and says for each job what would be done, or why
// it would be refused.
func TestBulkDryRun(t *testing.T) {
	b := newBench(t)
	batch := b.failed(3)
	b.edit(ingest.JobID(batch, 2), func(j *queue.Job) { j.NotRecoverable = true })
	op := b.operate(ingest.Bulk{Name: ingest.ActRequeue, Filter: ingest.Filter{Batch: batch}}, "", true)
	done := b.finish(op.Operation.ID)
	if done.Tally != (ingest.Tally{Planned: 3, Done: 2, Refused: 1}) {
		t.Errorf("done: %+v", done.Tally)
	}
	for row := 1; row <= 3; row++ {
		if j := b.job(ingest.JobID(batch, row)); j.State != ingest.Failed || j.RetryCount != 0 {
			t.Errorf("job %d is %s after a dry run", row, j.State)
		}
	}
	items, err := queue.Admin{Queue: b.q}.Items(t.Context(), op.Operation.ID, "")
	if err != nil || len(items.Items) != 3 || items.Items[0].Outcome != queue.ItemDone ||
		!strings.Contains(items.Items[0].Message, "continues at Pending") ||
		items.Items[1].Outcome != queue.ItemRefused {
		t.Errorf("items %+v, %v", items, err)
	}
}

// TestBulkAtTheDoor: an operation that could not be done is refused before it is started.
func TestBulkAtTheDoor(t *testing.T) {
	b := newBench(t)
	batch := b.failed(1)
	d := queue.Admin{Queue: b.q}
	for what, c := range map[string]struct {
		bulk ingest.Bulk
		role ingest.Role
		why  string
		kind fault.Kind
	}{
		"a batch that is missing": {ingest.Bulk{Name: ingest.ActRequeue, Filter: ingest.Filter{Batch: "01M"}},
			ingest.Operator, "fixed", fault.NotFound},
		"a collection that is missing": {ingest.Bulk{Name: ingest.ActRequeue, Filter: ingest.Filter{Collection: "x"}},
			ingest.Operator, "fixed", fault.NotFound},
		"a batch of another collection": {ingest.Bulk{Name: ingest.ActRequeue, Filter: ingest.Filter{Batch: batch,
			Collection: "x"}}, ingest.Operator, "fixed", fault.Invalid},
		"no reason": {ingest.Bulk{Name: ingest.ActRequeue, Filter: ingest.Filter{Batch: batch}},
			ingest.Operator, " ", fault.Invalid},
		"a role that may not": {ingest.Bulk{Name: ingest.ActDelete, Filter: ingest.Filter{Batch: batch}},
			ingest.Operator, "fixed", fault.Denied},
		"cancel": {ingest.Bulk{Name: ingest.ActCancel, Filter: ingest.Filter{Batch: batch}}, ingest.Operator, "fixed",
			fault.Invalid},
		"a requeue that replaces newer versions": {ingest.Bulk{Name: ingest.ActRequeue, Confirm: true,
			Filter: ingest.Filter{Batch: batch}}, ingest.Operator, "fixed", fault.Invalid},
		"a release that replaces newer versions": {ingest.Bulk{Name: ingest.ActRelease, Confirm: true,
			Filter: ingest.Filter{Batch: batch}}, ingest.Operator, "fixed", fault.Invalid},
		"every job of the archive": {ingest.Bulk{Name: ingest.ActFail, Filter: ingest.Filter{State: ingest.Storing}},
			ingest.Operator, "fixed", fault.Invalid},
	} {
		if _, err := d.Start(t.Context(), c.bulk, c.why, "ann", c.role, "", false); fault.Of(err) != c.kind {
			t.Errorf("%s: %v, want %s", what, err, c.kind)
		}
	}
	if page, err := d.Operations(t.Context(), ""); err != nil || len(page.Items) != 0 {
		t.Errorf("%d operations, %v", len(page.Items), err)
	}
}

// TestBulkInterrupted: an interrupted operation does nothing until it is continued, by
// another execution. Repeated changes nothing; one that is done refuses.
func TestBulkInterrupted(t *testing.T) {
	b := newBench(t)
	batch := b.failed(60)
	d := queue.Admin{Queue: b.q}
	id := b.operate(ingest.Bulk{Name: ingest.ActRequeue, Filter: ingest.Filter{Batch: batch}}, "", false).Operation.ID
	page := func(exec int64) *queue.Operation {
		op, err := d.RunPage(t.Context(), id, exec, b.now.Add(time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		return op
	}
	page(1) // plans
	page(1)
	interrupt := func() (*queue.Operation, error) {
		return d.Interrupt(t.Context(), id, "wait", "bob", ingest.Operator)
	}
	for range 2 {
		if op, err := interrupt(); err != nil || op.State != ingest.OperationInterrupted || op.Tally.Left() != 10 {
			t.Fatalf("%+v, %v", op, err)
		}
	}
	if op := page(1); op.Tally.Left() != 10 {
		t.Errorf("an interrupted operation went on: %+v", op.Tally)
	}
	b.now = b.now.Add(24 * time.Hour)
	b.tick()
	if op := page(1); op.State != ingest.OperationInterrupted || op.Exec != 1 {
		t.Errorf("the sweep restarted it: %+v", op.Operation)
	}
	op, err := d.Continue(t.Context(), id, "go", "bob", ingest.Operator)
	if err != nil || op.Exec != 2 || b.last().Operation != id || b.last().Exec != 2 {
		t.Fatalf("%+v, %v, started %+v", op, err, b.last())
	}
	if op := page(1); op.Tally.Left() != 10 {
		t.Errorf("the old execution went on: %+v", op.Tally)
	}
	if op := page(2); op.State != ingest.OperationDone || op.Tally.Done != 60 {
		t.Errorf("continued: %+v", op.Operation)
	}
	if _, err := interrupt(); !fault.Is(err, fault.Conflict) {
		t.Errorf("interrupted when done: %v", err)
	}
	b.history(id, "operation.started", "operation.interrupted", "operation.continued", "operation.done")
}

// TestBulkRestarted: the sweep gives an operation without progress another execution, unless
// a person has stopped the first. An old one may not continue.
func TestBulkRestarted(t *testing.T) {
	b := newBench(t)
	batch := b.failed(1)
	bulk := ingest.Bulk{Name: ingest.ActRequeue, Filter: ingest.Filter{Batch: batch}}
	d := queue.Admin{Queue: b.q}
	id := b.operate(bulk, "", false).Operation.ID
	b.now = b.now.Add(time.Hour)
	b.tick()
	restarted := slices.Contains(b.started, queue.Message{Operation: id, Exec: 2})
	if op, err := d.Operation(t.Context(), id); err != nil || op.Exec != 2 || !restarted ||
		!b.stopped[queue.ExecutionName(id, 1)] {
		t.Fatalf("restarted: %+v, %v", op, err)
	}
	b.stopped["by hand "+queue.ExecutionName(id, 2)] = true
	b.now = b.now.Add(2 * time.Hour)
	b.tick()
	op, err := d.Operation(t.Context(), id)
	if err != nil || op.State != ingest.OperationInterrupted {
		t.Fatalf("stopped by a person: %+v, %v", op, err)
	}
	b.now = b.now.Add(ingest.KeepOperations/2 + time.Hour)
	if _, err := d.Continue(t.Context(), id, "go", "bob", ingest.Operator); !fault.Is(err, fault.Conflict) {
		t.Errorf("continued after too long: %v", err)
	}

	late := b.operate(bulk, "", false)
	b.now = b.now.Add(ingest.KeepOperations/2 + time.Hour)
	if op, err := d.RunPage(t.Context(), late.Operation.ID, 1, b.now.Add(time.Minute)); err != nil ||
		op.State != ingest.OperationInterrupted {
		t.Errorf("run after too long: %+v, %v", op, err)
	}
	b.history(id, "operation.started", "operation.repaired", "operation.interrupted")
}

// TestBulkFromTheEnd: an operation acts on its last items first. One of an earlier release goes on from the front.
func TestBulkFromTheEnd(t *testing.T) {
	for _, fromEnd := range []bool{true, false} {
		b := newBench(t)
		batch := b.failed(60)
		d := queue.Admin{Queue: b.q}
		op := b.operate(ingest.Bulk{Name: ingest.ActRequeue, Filter: ingest.Filter{Batch: batch}}, "", false)
		op.FromEnd = fromEnd
		b.save(op)
		for range 2 { // plans, and acts on the first page
			if _, err := d.RunPage(t.Context(), op.Operation.ID, 1, b.now.Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
		}
		first, last := b.job(ingest.JobID(batch, 1)), b.job(ingest.JobID(batch, 60))
		if (last.State == ingest.Pending) != fromEnd || (first.State == ingest.Pending) == fromEnd {
			t.Errorf("from the end %v: the first job is %s, the last %s", fromEnd, first.State, last.State)
		}
		if done := b.finish(op.Operation.ID); done.Tally != (ingest.Tally{Planned: 60, Done: 60}) {
			t.Errorf("from the end %v: %+v", fromEnd, done.Tally)
		}
	}
}

// TestBulkItemFails: an item that cannot be done now is tried again; in the end it is refused
// with the cause, and the others are done.
func TestBulkItemFails(t *testing.T) {
	b := newBench(t)
	batch := b.submit(2, "")
	for row := 1; row <= 2; row++ {
		b.edit(ingest.JobID(batch, row), func(j *queue.Job) { j.State = ingest.Storing })
	}
	b.q.Stored = func(_ context.Context, j *ingest.Job) error {
		if j.ID == ingest.JobID(batch, 2) {
			return errors.New("the storage does not answer")
		}
		return nil
	}
	d := queue.Admin{Queue: b.q}
	id := b.operate(ingest.Bulk{Name: ingest.ActFail, Filter: ingest.Filter{Batch: batch}}, "", false).Operation.ID
	failures := 0
	for range 10 {
		if _, err := d.RunPage(t.Context(), id, 1, b.now.Add(time.Minute)); err != nil {
			failures++
		}
	}
	op := b.finish(id)
	refused, err := d.Refusals(t.Context(), id, "")
	if err != nil || failures != 4 || op.Tally != (ingest.Tally{Planned: 2, Done: 1, Refused: 1}) ||
		!strings.Contains(refused.Items[0].Reason, "given up after 5 tries") ||
		!strings.Contains(refused.Items[0].Reason, "the storage does not answer") {
		t.Errorf("%d failures, %+v, %+v, %v", failures, op.Tally, refused.Items, err)
	}
}

// TestRowsExpire: all rows of an operation but its events expire together.
func TestRowsExpire(t *testing.T) {
	b := newBench(t)
	batch := b.failed(2)
	b.edit(ingest.JobID(batch, 2), func(j *queue.Job) { j.NotRecoverable = true })
	id := b.operate(ingest.Bulk{Name: ingest.ActRequeue, Filter: ingest.Filter{Batch: batch}}, "", false).Operation.ID
	b.finish(id)
	want := b.now.Add(ingest.KeepOperations).Unix()
	seen := map[string]int64{}
	for _, pk := range []string{"OPERATION#" + id, "ACT#" + id} {
		var rows []table.Head
		if _, err := b.q.Table.Page(t.Context(), table.Query{PK: pk}, &rows); err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			kind, _, _ := strings.Cut(r.SK, "#")
			kind, _, _ = strings.Cut(kind, ":")
			seen[kind] = r.ExpiresAt
		}
	}
	if len(seen) != 4 || seen["OPERATION"] != want || seen["job"] != want || seen["REFUSED"] != want ||
		seen["EV"] != 0 {
		t.Errorf("rows expire at %v, want %d", seen, want)
	}
}

// TestBulkItemOnce: a job that moves in the index while the operation is planned is one item.
func TestBulkItemOnce(t *testing.T) {
	b := newBench(t)
	id := ingest.JobID(b.failed(1), 1)
	b.edit(id, func(j *queue.Job) { j.HasSpace, j.Due = true, b.now.UnixMilli() }) // it waits to be cleaned up
	d := queue.Admin{Queue: b.q}
	op := b.operate(ingest.Bulk{Name: ingest.ActRequeue, Filter: ingest.Filter{State: ingest.Failed}}, "", false)
	row, err := d.RunPage(t.Context(), op.Operation.ID, 1, b.now.Add(time.Minute))
	if err != nil || row.Tally.Planned != 1 || !row.Planning {
		t.Fatalf("%+v, %v", row, err)
	}
	b.edit(id, func(j *queue.Job) { j.Job = b.q.Rules.Cleaned(j.Job) })
	if done := b.finish(op.Operation.ID); done.Tally != (ingest.Tally{Planned: 1, Done: 1}) {
		t.Errorf("done: %+v", done.Tally)
	}
}
