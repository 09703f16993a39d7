package queue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/guregu/dynamo/v2"
	"github.com/guregu/dynamo/v2/dynamodbiface"

	"archivist/pkg/events/event"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/queue/queuetest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

func (b *bench) act(name ingest.ActionName, id string, change ...func(*ingest.Action)) (ingest.ActionResult, error) {
	return queuetest.Act(b.Context(), b.q, name, id, change...)
}

// did does an action that must change its target.
func (b *bench) did(name ingest.ActionName, id string, change ...func(*ingest.Action)) ingest.ActionResult {
	b.Helper()
	out, err := b.act(name, id, change...)
	if err != nil || !out.Changed {
		b.Fatalf("%s %s: %+v, %v", name, id, out, err)
	}
	return out
}

// same does an action that must change nothing, and succeed.
func (b *bench) same(name ingest.ActionName, id string, change ...func(*ingest.Action)) ingest.ActionResult {
	b.Helper()
	before := b.rev(id)
	out, err := b.act(name, id, change...)
	if err != nil || out.Changed || out.Summary == "" || b.rev(id) != before {
		b.Errorf("%s %s: %+v, %v; expected no change", name, id, out, err)
	}
	return out
}

// refuses does an action that must be refused with a kind of error and words in it, and
// change nothing.
func (b *bench) refuses(kind fault.Kind, words string, name ingest.ActionName, id string,
	change ...func(*ingest.Action)) {
	b.Helper()
	before := b.rev(id)
	out, err := b.act(name, id, change...)
	if !fault.Is(err, kind) || out.Changed || b.rev(id) != before {
		b.Errorf("%s %s: %+v, %v; expected %s", name, id, out, err, kind)
	}
	for word := range strings.SplitSeq(words, "|") {
		if err != nil && !strings.Contains(err.Error(), word) {
			b.Errorf("%s %s: %q does not say %q", name, id, err, word)
		}
	}
}

// rev is the revision of the row of a job or batch.
func (b *bench) rev(id string) int64 {
	b.Helper()
	if strings.Contains(id, "-") {
		row, err := b.q.Job(b.Context(), id)
		if err != nil {
			b.Fatal(err)
		}
		return row.Rev
	}
	row, err := b.q.Batch(b.Context(), id)
	if err != nil {
		b.Fatal(err)
	}
	return row.Rev
}

// newest is the newest event of a job or batch.
func (b *bench) newest(id string) event.Row {
	b.Helper()
	s := event.Subject{Type: event.Batch, ID: id}
	if strings.Contains(id, "-") {
		s.Type = event.Job
	}
	p, err := b.q.Events(b.Context(), s, "")
	if err != nil || len(p.Items) == 0 {
		b.Fatalf("%s has no events: %v", id, err)
	}
	return p.Items[len(p.Items)-1]
}

// countsOf are the counts of a job's batch, or of a batch.
func (b *bench) countsOf(id string) ingest.Counts {
	b.Helper()
	batch, _, _ := strings.Cut(id, "-")
	c, err := b.q.Counts(b.Context(), batch)
	if err != nil {
		b.Fatal(err)
	}
	return c
}

// rows counts the rows of a partition.
func (b *bench) rows(pk string) int {
	b.Helper()
	var page []queue.Reservation
	if _, err := b.q.Table.Page(b.Context(), table.Query{PK: pk, Limit: 1000}, &page); err != nil {
		b.Fatal(err)
	}
	return len(page)
}

// failedJob is a job of a batch of two that failed at a state, so that its batch is not
// finished.
func (b *bench) failedJob(at ingest.State) string {
	b.Helper()
	b.q.Settings.MaxInFlight = 10
	id := ingest.JobID(b.submit(2, "x"), 1)
	b.tick()
	for j := b.job(id); ; j = b.job(id) {
		m := queue.Message{Job: id, Exec: j.Exec, State: string(j.State), Token: "t"}
		if j.State == at {
			b.handle(m, fails(true))
			break
		}
		b.handle(m, ok)
		if b.job(id).State == ingest.Provisioning {
			b.tick()
		}
	}
	if j := b.job(id); j.State != ingest.Failed {
		b.Fatalf("the job is %s", j.State)
	}
	return id
}

// quiet waits until no worker of what failed before can be late.
func (b *bench) quiet() {
	b.now = b.now.Add(ingest.Timings["production"].Times(ingest.Stage{Long: true}).Grace)
}

// interrupted runs do once, before the next transaction.
type interrupted struct {
	dynamodbiface.DynamoDBAPI
	do func()
}

func (c *interrupted) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput,
	o ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	do := c.do
	c.do = func() {}
	do()
	return c.DynamoDBAPI.TransactWriteItems(ctx, in, o...)
}

// interrupt makes do run before the next transaction.
func (b *bench) interrupt(do func()) {
	c := &interrupted{DynamoDBAPI: b.q.Table.DB.Client(), do: do}
	b.q.Table = table.New(dynamo.NewFromIface(c), b.q.Table.Rows.Name())
	b.c.Leases.Table = b.q.Table
}

// TestDeleteJob: a failed job whose batch is not finished is deleted only if that is
// confirmed, once, with an event. Its space stays until its work files are removed.
func TestDeleteJob(t *testing.T) {
	b := newBench(t)
	id := b.failedJob(ingest.Downloading)
	b.refuses(fault.Conflict, "is Processing|will only say that job|confirm", ingest.ActDelete, id)
	b.refuses(fault.Denied, "administrator", ingest.ActDelete, id, func(a *ingest.Action) { a.Role = ingest.Operator })
	plan := b.same(ingest.ActDelete, id, queuetest.Dry)
	if plan.To != "Deleted" || len(plan.Warnings) != 1 {
		t.Errorf("planned: %+v", plan)
	}

	out := b.did(ingest.ActDelete, id, queuetest.Confirmed)
	j, e := b.job(id), b.newest(id)
	if out.From != "Failed" || out.To != "Deleted" || j.State != ingest.Deleted || !j.HasSpace ||
		j.Message != "deleted by me: a test" || j.LastSuccessful != ingest.Provisioning {
		t.Errorf("deleted: %+v, the job is %+v", out, j)
	}
	if e.Type != "job.state" || e.Actor != "me" || e.Outcome != event.Success || !strings.Contains(e.Detail, "a test") {
		t.Errorf("the event is %+v", e)
	}
	if c := b.countsOf(id); c != (ingest.Counts{Processing: 1, Deleted: 1}) {
		t.Errorf("the counts are %+v", c)
	}
	b.same(ingest.ActDelete, id, queuetest.Confirmed)

	b.tick()
	if len(b.cleaned) > 0 || b.rows("SPACE") != 1 {
		t.Errorf("cleaned %v while a worker of it may be late", b.cleaned)
	}
	b.quiet()
	b.tick() // the first time not all files are removed
	b.tick()
	if j := b.job(id); len(b.cleaned) != 2 || j.HasSpace || j.Due != 0 || b.rows("SPACE") != 0 {
		t.Errorf("cleaned %v; the job is %+v, %d rows of space", b.cleaned, j, b.rows("SPACE"))
	}
	if e := b.newest(id); e.Type != "job.cleaned" || !strings.Contains(e.Detail, "was deleted") {
		t.Errorf("the event is %+v", e)
	}
	b.same(ingest.ActDelete, id, queuetest.Confirmed)
}

// TestDeleteInEachState: only a failed or held job can be deleted, and a refusal names the
// state, what the action needs, and what a job in this state can become.
func TestDeleteInEachState(t *testing.T) {
	b := newTwinBench(t)
	batch := b.submit(1, "")
	id := ingest.JobID(batch, 1)
	for _, s := range append(slices.Clone(ingest.Order), ingest.Held, ingest.Failed, ingest.Deleted) {
		b.edit(id, func(row *queue.Job) { row.State = s })
		switch s {
		case ingest.Held, ingest.Failed:
			if out, err := b.act(ingest.ActDelete, id, queuetest.Dry); err != nil || out.To != "Deleted" {
				t.Errorf("%s: %+v, %v", s, out, err)
			}
		case ingest.Deleted:
			b.same(ingest.ActDelete, id)
		default:
			b.refuses(fault.Conflict, fmt.Sprintf("%s is %s|Failed or Held|%s", id, s, s.Becomes()), ingest.ActDelete,
				id)
		}
	}
	for _, s := range []ingest.BatchState{ingest.BatchPending, ingest.BatchProcessing, ingest.BatchReporting,
		ingest.BatchUpdateReporting, ingest.BatchCompleted} {
		b.editBatch(batch, func(row *queue.Batch) { row.State = s })
		b.refuses(fault.Conflict, fmt.Sprintf("is %s|Failed or Held|%s", s, s.Becomes()), ingest.ActDelete, batch)
	}
}

// TestDeletedJobsLetABatchReport: a batch reports when its last open job is deleted.
func TestDeletedJobsLetABatchReport(t *testing.T) {
	b := newBench(t)
	id := ingest.JobID(b.submit(1, ""), 1)
	b.edit(id, func(row *queue.Job) { row.State = ingest.Held })
	b.count(id, map[string]int64{"n_processing": -1, "n_held": 1})
	b.did(ingest.ActDelete, id, queuetest.Confirmed)
	if m := b.last(); m.Step != "report" || b.countsOf(id) != (ingest.Counts{Deleted: 1}) {
		t.Errorf("after its one job was deleted the batch started %+v, %+v", m, b.countsOf(id))
	}
	b.handle(b.last(), saves(0))
	if s := b.batch(b.job(id).Batch).State; s != ingest.BatchCompleted {
		t.Errorf("the batch is %s", s)
	}
}

// count changes the counts of a job's batch directly.
func (b *bench) count(id string, add map[string]int64) {
	b.Helper()
	tx := b.q.Table.Begin(b.q.NewID())
	tx.Count(table.Key{PK: "BATCH#" + b.job(id).Batch, SK: "COUNT"}, add)
	if err := tx.Commit(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// records makes the bench record stored objects, and returns what was recorded.
func (b *bench) records(err *error) *[]string {
	var done []string
	b.q.Record = func(_ context.Context, ark, actor string) error {
		done = append(done, ark+" "+actor)
		return *err
	}
	return &done
}

// TestDeleteRecordsFirst: a version that a job has stored but not recorded is recorded before
// the job is deleted, whether the job knows of it or only the storage.
func TestDeleteRecordsFirst(t *testing.T) {
	for _, at := range []ingest.State{ingest.Storing, ingest.Recording} {
		t.Run(string(at), func(t *testing.T) {
			b := newBench(t)
			id := b.failedJob(at)
			version := 2
			b.q.Stored = func(_ context.Context, j *ingest.Job) error { j.ObjectVersion = version; return nil }
			b.edit(id, func(row *queue.Job) {
				row.Primary = "ark:/99999/fk4x"
				if at == ingest.Recording {
					row.ObjectVersion = 2
				}
			})
			err := fault.New(fault.Unavailable, "the storage does not answer")
			done := b.records(&err)
			plan := b.same(ingest.ActDelete, id, queuetest.Dry)
			if len(*done) > 0 || !strings.Contains(strings.Join(plan.Warnings, " "),
				"version 2 of ark:/99999/fk4x stays") {
				t.Errorf("the plan recorded %v and warns %v", *done, plan.Warnings)
			}
			b.refuses(fault.Unavailable, "does not answer", ingest.ActDelete, id, queuetest.Confirmed)
			err = fault.New(fault.Conflict, "a local id is another object's")
			b.did(ingest.ActDelete, id, queuetest.Confirmed)
			if j := b.job(id); len(*done) != 2 || (*done)[1] != "ark:/99999/fk4x me" || j.ObjectVersion != 2 ||
				!strings.HasPrefix(j.Message, "preserved as ark:/99999/fk4x v2; deleted by me") {
				t.Errorf("recorded %v; the job is %+v", *done, j)
			}
		})
	}
}

// TestLateCommitOfADeletedJob: a version that a worker stores after its job was deleted is
// found before the work files are removed, noted on the job, and recorded.
func TestLateCommitOfADeletedJob(t *testing.T) {
	b := newBench(t)
	var none error
	done := b.records(&none)
	stored := 0
	b.q.Stored = func(_ context.Context, j *ingest.Job) error { j.ObjectVersion = stored; return nil }
	id := b.failedJob(ingest.Storing)
	b.edit(id, func(row *queue.Job) { row.Primary = "ark:/99999/fk4x" })
	b.did(ingest.ActDelete, id, queuetest.Confirmed)
	stored = 3
	b.quiet()
	b.tick()
	b.tick()
	if j := b.job(id); len(*done) == 0 || (*done)[0] != "ark:/99999/fk4x archivist" || j.ObjectVersion != 3 ||
		j.HasSpace {
		t.Errorf("recorded %v; the job is %+v", *done, j)
	}

	id = b.failedJob(ingest.Storing)
	stored = 0
	b.did(ingest.ActDelete, id, queuetest.Confirmed)
	if err := b.q.Preserved(t.Context(), id, "ark:/99999/fk4y", 4); err != nil { // the worker itself says so
		t.Fatal(err)
	}
	if j := b.job(id); j.ObjectVersion != 4 || j.State != ingest.Deleted || !strings.Contains(j.Message, "fk4y v4") {
		t.Errorf("the job is %+v", j)
	}
	b.quiet()
	b.tick()
	b.tick()
	if !slices.Contains(*done, "ark:/99999/fk4y archivist") {
		t.Errorf("recorded %v", *done)
	}
}

// TestDeleteAndRequeueAtOnce: of a requeue and a delete at the same moment one happens.
func TestDeleteAndRequeueAtOnce(t *testing.T) {
	b := newBench(t)
	id := b.failedJob(ingest.Downloading)
	b.interrupt(func() { b.requeue(id) })
	_, err := b.act(ingest.ActDelete, id, queuetest.Confirmed)
	if j := b.job(id); !fault.Is(err, fault.Conflict) || j.State != ingest.Downloading {
		t.Errorf("deleted while it was requeued: %v, the job is %s", err, j.State)
	}
	b.forceFail(id)
	b.interrupt(func() { b.did(ingest.ActDelete, id, queuetest.Confirmed) })
	_, err = b.act(ingest.ActRequeue, id)
	if j := b.job(id); !fault.Is(err, fault.Conflict) || j.State != ingest.Deleted || b.rows("SLOT") != 1 {
		t.Errorf("requeued while it was deleted: %v, the job is %s, %d slots", err, j.State, b.rows("SLOT"))
	}
}

// TestDeleteBatchAndRequeueAtOnce: no job of a deleted batch can be open.
func TestDeleteBatchAndRequeueAtOnce(t *testing.T) {
	b := newBench(t)
	batch, job := b.failedBatch()
	b.interrupt(func() { b.requeue(job) })
	b.refused2(t, "has 1 unfinished job", batch)
	b.tick()
	b.handle(b.last(), fails(true))
	b.interrupt(func() { b.did(ingest.ActDelete, batch, queuetest.Confirmed) })
	_, err := b.act(ingest.ActRequeue, job)
	if j := b.job(job); !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "is Deleted") ||
		j.State != ingest.Failed {
		t.Errorf("requeued while its batch was deleted: %v, the job is %s", err, j.State)
	}
}

// refused2 deletes a batch that changes meanwhile, so that it is refused.
func (b *bench) refused2(t *testing.T, words, batch string) {
	t.Helper()
	_, err := b.act(ingest.ActDelete, batch, queuetest.Confirmed)
	if !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), words) ||
		b.batch(batch).State != ingest.BatchFailed {
		t.Errorf("the batch is %s, %v", b.batch(batch).State, err)
	}
}

// TestDeleteBatch: a failed batch is deleted with its jobs, each with an event, after its
// work files; what one of them has stored is recorded. The events stay.
func TestDeleteBatch(t *testing.T) {
	b := newBench(t)
	const jobs = 100 // more than go in one transaction
	b.q.Settings.MaxInFlight = 100
	var none error
	done := b.records(&none)
	batch := b.submit(jobs, "x")
	b.tick()
	for _, m := range b.take() {
		b.handle(m, fails(true))
	}
	b.handle(b.last(), saves(0))
	stored, files, gone := ingest.JobID(batch, 1), ingest.JobID(batch, 2), ingest.JobID(batch, jobs)
	b.edit(stored, func(row *queue.Job) {
		row.Primary, row.ObjectVersion, row.LastSuccessful = "ark:/99999/fk4x", 1, ingest.Storing
	})
	b.edit(files, func(row *queue.Job) { row.HasSpace = true; row.Due = b.now.Add(time.Hour).UnixMilli() })
	b.grant(files)
	b.did(ingest.ActDelete, gone, queuetest.Confirmed)

	b.refuses(fault.Conflict, "is Failed with 99 failed jobs|confirm", ingest.ActDelete, batch)
	out := b.did(ingest.ActDelete, batch, queuetest.Confirmed)
	if row := b.batch(batch); out.To != "Deleted" || row.State != ingest.BatchDeleted || row.Removal.Actor != "me" {
		t.Errorf("%+v, the batch is %+v", out, row)
	}
	b.same(ingest.ActDelete, batch, queuetest.Confirmed)
	b.refuses(fault.Conflict, "batch "+batch+" is Deleted", ingest.ActRequeue, files)
	b.tick()
	if _, err := b.q.Job(t.Context(), gone); err == nil {
		t.Error("the rows of the last jobs still exist")
	}
	if j := b.job(files); j.State != ingest.Deleted || !j.HasSpace {
		t.Errorf("the job with work files is %+v", j)
	}
	b.quiet()
	for range 3 {
		b.now = b.now.Add(time.Minute)
		b.tick()
	}
	if !slices.Contains(b.cleaned, files) || b.rows("SPACE") != 0 || !slices.Equal(*done,
		[]string{"ark:/99999/fk4x me"}) {
		t.Errorf("cleaned %v, recorded %v, %d rows of space", b.cleaned, *done, b.rows("SPACE"))
	}
	if _, err := b.q.Batch(t.Context(), batch); !fault.Is(err, fault.NotFound) {
		t.Errorf("the batch still exists: %v", err)
	}
	for n := 1; n <= jobs; n++ {
		id := ingest.JobID(batch, n)
		if _, err := b.q.Job(t.Context(), id); !fault.Is(err, fault.NotFound) {
			t.Errorf("job %d still exists: %v", n, err)
		}
		p, err := b.q.Events(t.Context(), event.Subject{Type: event.Job, ID: id}, "")
		deleted := func(e event.Row) bool { return e.Actor == "me" && strings.Contains(e.Detail, `"to":"Deleted"`) }
		if err != nil || !slices.ContainsFunc(p.Items, deleted) {
			t.Errorf("no event says who deleted job %d: %v", n, err)
		}
	}
}

// grant makes the row of a job's space.
func (b *bench) grant(id string) {
	b.Helper()
	tx := b.q.Table.Begin(b.q.NewID())
	tx.Insert(&queue.Reservation{Head: table.Head{PK: "SPACE", SK: id}, Owner: id})
	if err := tx.Commit(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// TestDeleteBatchWaitsForTheStorage: if a stored version cannot be recorded, the rows stay,
// and the sweep tries again later.
func TestDeleteBatchWaitsForTheStorage(t *testing.T) {
	b := newBench(t)
	batch, job := b.failedBatch()
	b.edit(job, func(row *queue.Job) {
		row.Primary, row.ObjectVersion, row.LastSuccessful = "ark:/99999/fk4x", 1, ingest.Storing
	})
	err := errors.New("the storage does not answer")
	done := b.records(&err)
	b.did(ingest.ActDelete, batch, queuetest.Confirmed)
	b.tick()
	if j := b.job(job); j.State != ingest.Failed || len(*done) != 1 || b.batch(batch).Due <= b.now.UnixMilli() {
		t.Errorf("the job is %s, recorded %v", j.State, *done)
	}
	err = nil
	b.now = b.now.Add(2 * time.Hour)
	b.tick()
	if _, err := b.q.Batch(t.Context(), batch); !fault.Is(err, fault.NotFound) || len(*done) != 2 {
		t.Errorf("the batch still exists: %v, recorded %v", err, *done)
	}
}
