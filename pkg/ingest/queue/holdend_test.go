package queue_test

import (
	"strings"
	"testing"
	"time"

	"archivist/pkg/events/event"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/objects/inventory"
)

// types are the types of a subject's events.
func (b *bench) types(kind event.Type, id string) string {
	b.Helper()
	rows, _, err := event.Page(b.Context(), b.q.Table, event.Subject{Type: kind, ID: id}, "")
	if err != nil {
		b.Fatal(err)
	}
	var all []string
	for _, row := range rows {
		all = append(all, row.Type+" by "+row.Component)
	}
	return strings.Join(all, ", ")
}

func (b *bench) holds() (all []queue.Hold) {
	b.Helper()
	all, err := b.q.Holds(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	return all
}

// TestHoldsEnd: a hold with an end counts as lifted as soon as that has passed; the sweep
// records it, and lets continue what it held.
func TestHoldsEnd(t *testing.T) {
	b := newBench(t)
	b.q.Settings.MaxInFlight = 10
	end := b.now.Add(time.Hour)
	alone := ingest.JobID(b.submit(1, ""), 1)
	b.do(ingest.ActHold, jobTarget(alone), end)
	b.do(ingest.ActHold, collectionMaps, end)
	b.do(ingest.ActPause, theStorage, end)
	jobs := b.one()
	batch := b.submitted()
	b.handle(b.last(), unpackAll(nil))
	b.tick()
	b.now = end.Add(-time.Millisecond)
	b.tick()
	if b.job(alone).State != ingest.Held || b.job(jobs).State != ingest.Held || len(b.holds()) != 2 {
		t.Errorf("before the end: %s, %s, holds %+v", b.job(alone).State, b.job(jobs).State, b.holds())
	}
	b.now = end
	if left := b.holds(); len(left) != 0 {
		t.Errorf("after the end: %+v", left)
	}
	b.do(ingest.ActRelease, jobTarget(jobs)) // nothing stands against it, although no sweep ran
	b.tick()
	if b.job(alone).State != ingest.Estimating || b.job(jobs).State != ingest.Estimating ||
		b.batch(batch).State != ingest.BatchPending {
		t.Errorf("after the sweep: %s, %s, batch %s", b.job(alone).State, b.job(jobs).State, b.batch(batch).State)
	}
	if got := b.types(event.Collection, "maps"); got != "collection.held by admin, collection.released by sweep" {
		t.Errorf("events of the collection: %s", got)
	}
	if got := b.types(event.Queue, "storage"); got != "storage.paused by admin, storage.resumed by sweep" {
		t.Errorf("events of the storage: %s", got)
	}
	if got := b.types(event.Job, alone); !strings.Contains(got, "job.held by admin, job.released by sweep") {
		t.Errorf("events of the job: %s", got)
	}
	if got := b.types(event.Batch, batch); got !=
		"batch.state by api, batch.held by unpack, batch.released by sweep" {
		t.Errorf("events of the batch: %s", got)
	}
}

// TestEndUnderAnotherHold: an item whose hold has ended stays held while another one stands,
// and continues when that ends.
func TestEndUnderAnotherHold(t *testing.T) {
	b := newBench(t)
	id := b.one()
	batch := b.submitted()
	b.do(ingest.ActHold, jobTarget(id), b.now.Add(time.Hour))
	b.do(ingest.ActHold, batchTarget(batch), b.now.Add(time.Hour))
	end := b.now.Add(2 * time.Hour)
	b.do(ingest.ActHold, collectionMaps, end)
	b.now = b.now.Add(time.Hour)
	b.tick()
	j, row := b.job(id), b.batch(batch)
	if j.State != ingest.Held || j.Hold.Scope != ingest.TargetCollection || j.Due != end.UnixMilli() {
		t.Errorf("after its own hold: %s %+v", j.State, j.Hold)
	}
	if row.State != ingest.BatchHeld || row.Hold.Scope != ingest.TargetCollection || row.Due != end.UnixMilli() {
		t.Errorf("after its own hold: the batch is %s %+v", row.State, row.Hold)
	}
	b.now = end
	b.tick()
	if b.job(id).State != ingest.Estimating || b.batch(batch).State != ingest.BatchPending {
		t.Errorf("after both: %s, the batch is %s", b.job(id).State, b.batch(batch).State)
	}
}

// TestHoldIsChanged: another end replaces the first; what an end that comes earlier does not
// do is said; the same hold again changes nothing.
func TestHoldIsChanged(t *testing.T) {
	b := newBench(t)
	b.do(ingest.ActHold, collectionC)
	since := b.now.UnixMilli()
	b.now = b.now.Add(time.Minute)
	if res, err := b.try(ingest.ActHold, collectionC); err != nil || res.Changed ||
		!strings.Contains(res.Summary, "already on hold since "+ingest.Timestamp(since)) {
		t.Errorf("again: %+v, %v", res, err)
	}
	end := b.now.Add(time.Hour)
	if res := b.do(ingest.ActHold, collectionC, end); len(res.Warnings) != 1 {
		t.Errorf("with an end: %+v", res)
	}
	if h := b.holds(); len(h) != 1 || h[0].Since != since || h[0].Until != end.UnixMilli() {
		t.Errorf("%+v", h)
	}
	if res := b.do(ingest.ActHold, collectionC); len(res.Warnings) != 0 {
		t.Errorf("without an end again: %+v", res)
	}
	res, err := queue.Admin{Queue: b.q}.Act(t.Context(), ingest.Action{Name: ingest.ActRelease, Target: collectionC,
		Reason: "a look", Actor: "ann", Role: ingest.Operator, DryRun: true})
	if err != nil || res.Changed || !res.DryRun || len(b.holds()) != 1 {
		t.Errorf("a dry run: %+v, %v; holds %+v", res, err, b.holds())
	}
	b.do(ingest.ActRelease, collectionC)
	if res, err := b.try(ingest.ActRelease, collectionC); err != nil || res.Changed {
		t.Errorf("released again: %+v, %v", res, err)
	}
	b.refused(fault.Invalid, ingest.ActHold, ingest.Target{Kind: ingest.TargetCollection, ID: "a/b"}, "a/b")
}

// TestHoldOfEndedBatch: the row of a hold goes with its batch.
func TestHoldOfEndedBatch(t *testing.T) {
	b := newBench(t)
	id := ingest.JobID(b.submit(1, ""), 1)
	b.tick()
	batch := b.job(id).Batch
	b.do(ingest.ActHold, batchTarget(batch))
	b.handle(b.take()[0], fails(false))
	if len(b.holds()) != 1 {
		t.Fatalf("%+v", b.holds())
	}
	b.tick()
	if len(b.holds()) != 0 {
		t.Errorf("the batch is %s; %+v", b.batch(batch).State, b.holds())
	}
	if got := b.types(event.Batch, batch); !strings.HasSuffix(got, "batch.released by sweep") {
		t.Errorf("events: %s", got)
	}
}

// TestHeldWithoutSlots: jobs are held although no slot is free, and those of other
// collections wait on.
func TestHeldWithoutSlots(t *testing.T) {
	b := newBench(t)
	b.grants("SLOT", 2, 0)
	mine, other := b.submit(3, ""), b.one()
	b.do(ingest.ActHold, collectionC)
	b.tick()
	if got := b.states(mine); got != "Held Held Held" || b.job(other).State != ingest.Pending {
		t.Errorf("%s; the other is %s", got, b.job(other).State)
	}
}

// line are the jobs in line for a lock.
func (b *bench) line(lock string) (ids []string) {
	b.Helper()
	var rows []queue.Reservation
	query := table.Query{PK: queue.LockKey(lock).PK, Prefix: "WAITS#"}
	if _, err := b.q.Table.Page(b.Context(), query, &rows); err != nil {
		b.Fatal(err)
	}
	for _, row := range rows {
		ids = append(ids, row.Owner)
	}
	return ids
}

// TestHeldJobIsPassed: a held job is not in the line for its object, so that later ones pass
// it. Released, it is in the line again by its submission.
func TestHeldJobIsPassed(t *testing.T) {
	b := newBench(t)
	b.q.Settings.MaxInFlight = 10
	first := ingest.JobID(b.submit(1, "x"), 1)
	second := ingest.JobID(b.submit(1, "x"), 1)
	b.do(ingest.ActHold, jobTarget(first))
	third := ingest.JobID(b.submit(1, "x"), 1)
	if got := b.line("local#c#x"); len(got) != 2 || got[0] != second || got[1] != third {
		t.Errorf("in line: %v", got)
	}
	b.do(ingest.ActRelease, jobTarget(first))
	if got := b.line("local#c#x"); len(got) != 3 || got[0] != first {
		t.Errorf("in line after the release: %v", got)
	}
	b.tick()
	for _, id := range []string{second, first, third} {
		b.handle(queue.Message{Job: id, Exec: b.job(id).Exec, State: string(ingest.Estimating), Token: "t"}, sized(1))
	}
	b.tick()
	if !b.runs(first) || b.runs(second) || b.runs(third) {
		t.Errorf("running: %v, %v, %v", b.runs(first), b.runs(second), b.runs(third))
	}
}

// TestReleaseOfAnOvertakenJob: a held job that a later submission has overtaken is released
// only with confirmation.
func TestReleaseOfAnOvertakenJob(t *testing.T) {
	b := newBench(t)
	const ark = "ark:/99999/fk4x"
	batch := b.submitJobs(ingest.Job{Collection: "c", Primary: ark})
	id := ingest.JobID(batch, 1)
	b.do(ingest.ActHold, jobTarget(id))
	later := b.overtakes(ark)
	b.refused(fault.Conflict, ingest.ActRelease, jobTarget(id), "version 1 of "+ark, later, "confirm")
	a := ingest.Action{Name: ingest.ActRelease, Target: jobTarget(id), Reason: "wanted", Actor: "ann",
		Role: ingest.Operator, Confirm: true}
	if _, err := (queue.Admin{Queue: b.q}).Act(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	if j := b.job(id); j.State != ingest.Pending || j.Permitted != 1 {
		t.Errorf("%s, permitted %d", j.State, j.Permitted)
	}

	b.tick()
	b.handle(queue.Message{Job: id, Exec: 1, State: string(ingest.Estimating)}, fails(true))
	b.requeue(id) // what was confirmed once is not asked again
}

// overtakes records version 1 of an object by a job that was submitted now.
func (b *bench) overtakes(ark string) (job string) {
	b.Helper()
	job = ingest.JobID(b.submit(1, ""), 1)
	put, err := inventory.Store{Table: b.q.Table}.Prepare(b.Context(), inventory.Record{First: job,
		Object:   inventory.Object{ARK: ark, Collection: "c", HeadOf: 1},
		Versions: []inventory.Version{{ARK: ark, Number: 1, Job: job}}}, 1)
	tx := b.q.Table.Begin("record")
	if err == nil {
		err = put(tx)
	}
	if err == nil {
		err = tx.Commit(b.Context())
	}
	if err != nil {
		b.Fatal(err)
	}
	return job
}

// TestHoldOfAStartedJob: what has started is not held, and the refusal names both states.
func TestHoldOfAStartedJob(t *testing.T) {
	b := newBench(t)
	id := b.one()
	b.tick()
	b.refused(fault.Conflict, ingest.ActHold, jobTarget(id), "Estimating", "hold needs Pending or Held")
	b.refused(fault.Conflict, ingest.ActRelease, jobTarget(id), "Estimating", "release needs Held")
	waiting := b.one()
	if res, err := b.try(ingest.ActRelease, jobTarget(waiting)); err != nil || res.Changed {
		t.Errorf("a release of a Pending job: %+v, %v", res, err)
	}
	b.do(ingest.ActHold, jobTarget(waiting))
	if res, err := b.try(ingest.ActHold, jobTarget(waiting)); err != nil || res.Changed {
		t.Errorf("held again: %+v, %v", res, err)
	}
	if o, err := b.q.Overview(t.Context()); err != nil || o.Waiting[ingest.WorkPending] != 0 {
		t.Errorf("%+v, %v", o, err)
	}
}

// TestHoldsListed: pauses come first, then the holds by age.
func TestHoldsListed(t *testing.T) {
	b := newBench(t)
	batch := b.submit(1, "")
	for _, target := range []ingest.Target{collectionC, batchTarget(batch), theStorage, theQueue} {
		name := ingest.ActHold
		if target.ID == "" {
			name = ingest.ActPause
		}
		b.do(name, target)
		b.now = b.now.Add(time.Second)
	}
	o, err := b.q.Overview(t.Context())
	if err != nil || len(o.Holds) != 4 {
		t.Fatalf("%+v, %v", o.Holds, err)
	}
	for i, want := range []string{"storage", "queue", "collection:c", "batch:" + batch} {
		if got := o.Holds[i].Target().String(); got != want {
			t.Errorf("%d: %s; expected %s", i, got, want)
		}
	}
}

// TestManyHoldsEndAtOnce: one sweep lets continue more jobs than a page has.
func TestManyHoldsEndAtOnce(t *testing.T) {
	b := newTwinBench(t)
	const n = 120
	batch := b.submit(n, "")
	end := b.now.Add(time.Hour)
	b.do(ingest.ActHold, collectionC, end)
	b.tick()
	if c := b.counts(batch); c.Held != n {
		t.Fatalf("%+v", c)
	}
	b.now = end
	b.tick()
	if c := b.counts(batch); c.Held != 0 {
		t.Errorf("after the end: %+v", c)
	}
}
