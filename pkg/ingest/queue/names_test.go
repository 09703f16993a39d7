package queue_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"testing"
	"time"

	"archivist/pkg/events/check/checktest"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/queue/queuetest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// all is the part of the list of all jobs in which one is.
func all(job string) string {
	h := fnv.New32a()
	h.Write([]byte(job))
	return fmt.Sprintf("NAMED#all#%d", h.Sum32()%4)
}

// inAll are lists of all collections in which a job of eve is once it was deleted, and was before.
func inAll(job string) []string {
	part := all(job)
	return []string{part, part + "#submitter#eve", part + "#state#Failed", part + "#state#Deleted", part + "#message"}
}

// found are the ids of the jobs of the collection that a search finds.
func (b *bench) found(f queue.Find) (ids []string) {
	b.Helper()
	f.Collections, f.Until = []string{"c"}, b.now.Add(time.Hour)
	p, err := b.q.FindJobs(b.Context(), f)
	if err != nil {
		b.Fatal(err)
	}
	for _, j := range p.Items {
		ids = append(ids, j.Job.ID)
	}
	return ids
}

// TestNames: a job is found under its local ids and its submitter from the beginning, under its ARK and the local ids
// of its package once these are known, and however it ends; and nowhere once its rows were removed. A job from before
// there were such rows is found after a repair, and can be removed without them.
func TestNames(t *testing.T) {
	b := newBench(t)
	b.q.Settings.MaxInFlight = 10
	batch := b.submitJobs(ingest.Job{Collection: "c", Submitter: "eve", LocalIDs: []string{"a", "b"}, SizeKnown: true},
		ingest.Job{Collection: "c", Submitter: "eve", LocalIDs: []string{"old"}, SizeKnown: true})
	job, old := ingest.JobID(batch, 1), ingest.JobID(batch, 2)
	want := func(when string, f queue.Find, ids ...string) {
		t.Helper()
		if got := b.found(f); !slices.Equal(got, ids) {
			t.Errorf("%s, %+v finds %v; expected %v", when, f, got, ids)
		}
	}
	want("at first", queue.Find{LocalID: "b"}, job)
	want("at first", queue.Find{Submitter: "eve"}, old, job)
	want("at first", queue.Find{ARK: "ark:/99999/fk4n"})

	b.tick()
	b.toProvisioning(job)
	b.tick()
	b.handle(b.toState(job, ingest.Processing), func(ctx context.Context, c *queue.Claim) (ingest.Result, error) {
		c.Job.Primary, c.Job.LocalIDs, c.Job.Found = "ark:/99999/fk4n", append(c.Job.Submitted(), "found"), 1
		if err := c.Checkpoint(ctx); err != nil {
			return ingest.Result{}, err
		}
		return ingest.Fail(true, "no more"), nil
	})
	for _, f := range []queue.Find{{LocalID: "a"}, {LocalID: "found"}, {ARK: "ark:/99999/fk4n"},
		{LocalID: "found", State: "Failed"}, {Submitter: "eve", ARK: "ark:/99999/fk4n"}} {
		want("failed", f, job)
	}
	want("failed", queue.Find{LocalID: "a", State: "Completed"})
	want("failed", queue.Find{State: "Failed", Message: "NO MORE"}, job)
	for _, pk := range []string{"NAMED#state#c#Pending", "NAMED#state#c#Processing", "NAMED#batch#state#c#Pending",
		all(job) + "#state#Pending", all(job) + "#state#Downloading", all(job) + "#state#Processing"} {
		if n := b.rows(pk); n > 0 {
			t.Errorf("%d rows are left of %s", n, pk)
		}
	}

	b.forgets(old)
	want("forgotten", queue.Find{Submitter: "eve"}, job)
	b.repaired(5) // of its local id, its submitter twice, its state, and all
	want("repaired", queue.Find{Submitter: "eve"}, old, job)
	want("repaired", queue.Find{LocalID: "old"}, old)

	b.forgets(old)
	b.forceFail(old) // it is listed from then on where it has moved to
	want("forgotten and failed", queue.Find{State: "Failed"}, old, job)
	if b.metrics[queue.MissingRows] > 0 {
		t.Error("a row that lists a job is missed by a change of the job")
	}
	if _, err := queuetest.Act(t.Context(), b.q, ingest.ActDelete, old, queuetest.Confirmed); err != nil {
		t.Fatal(err)
	}
	b.editBatch(batch, func(row *queue.Batch) {
		row.State, row.Removal, row.Due = ingest.BatchDeleted, &ingest.Decision{Reason: "over", Actor: "me"},
			b.now.UnixMilli()
	})
	for range 4 {
		b.now = b.now.Add(48 * time.Hour)
		b.tick()
	}
	if _, err := b.q.Batch(t.Context(), batch); !fault.Is(err, fault.NotFound) {
		t.Fatalf("the batch was not removed: %v", err)
	}
	for _, pk := range append(inAll(job), "NAMED#local#a", "NAMED#local#b", "NAMED#local#found", "NAMED#local#old",
		"NAMED#ark#ark:/99999/fk4n", "NAMED#submitter#c#eve", "NAMED#state#c#Failed", "NAMED#state#c#Deleted",
		"NAMED#message#c") {
		if n := b.rows(pk); n > 0 {
			t.Errorf("%d rows are left of %s", n, pk)
		}
	}
}

// TestRemovedBatch: a batch is listed under its state, its submitter and its message until its rows are removed; one
// from before there were such rows is found after a repair.
func TestRemovedBatch(t *testing.T) {
	b := newBench(t)
	row, err := b.q.Submit(t.Context(), ingest.Batch{Collection: "c", Submitter: "eve", Mode: "add"}, "", nil, "eve")
	if err != nil {
		t.Fatal(err)
	}
	state, submitter, message := "NAMED#batch#state#c#", "NAMED#batch#submitter#c#eve", "NAMED#batch#message#c"
	want := func(when string, n int, partitions ...string) {
		t.Helper()
		for _, pk := range partitions {
			if got := b.rows(pk); got != n {
				t.Errorf("%s: %d rows in %s, want %d", when, got, pk, n)
			}
		}
	}
	want("new", 1, state+"Pending", submitter)
	want("new", 0, message)

	for _, pk := range []string{state + "Pending", submitter} {
		tx := b.q.Table.Begin(b.q.NewID())
		tx.RemoveOwned(table.Key{PK: pk, SK: row.ListSK}, row.Batch.ID)
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	b.repaired(2)
	want("repaired", 1, state+"Pending", submitter)

	b.did(ingest.ActCancel, row.Batch.ID)
	want("cancelled", 0, state+"Pending")
	want("cancelled", 1, state+"Failed", submitter, message)
	b.did(ingest.ActDelete, row.Batch.ID, queuetest.Confirmed)
	want("deleted", 1, state+"Deleted", submitter, message)
	for range 4 {
		b.now = b.now.Add(48 * time.Hour)
		b.tick()
	}
	if _, err := b.q.Batch(t.Context(), row.Batch.ID); !fault.Is(err, fault.NotFound) {
		t.Fatalf("the batch was not removed: %v", err)
	}
	want("removed", 0, state+"Pending", state+"Failed", state+"Deleted", submitter, message)
}

// TestLongMessage: a part of a message is found wherever it is, also at the end of the longest.
func TestLongMessage(t *testing.T) {
	b := newBench(t)
	b.q.Settings.MaxInFlight = 10
	batch := b.submitJobs(ingest.Job{Collection: "c", SizeKnown: true}, ingest.Job{Collection: "c", SizeKnown: true})
	first := ingest.JobID(batch, 1)
	b.tick()
	b.handle(queue.Message{Job: first, Exec: b.job(first).Exec, State: string(ingest.Estimating), Token: "t"},
		func(context.Context, *queue.Claim) (ingest.Result, error) {
			return ingest.Fail(true, strings.Repeat("some of the text, ", 300)+"and its end"), nil
		})
	b.forceFail(ingest.JobID(batch, 2))
	for part, n := range map[string]int{"Of the Text": 1, "and its end": 1, "no more": 1, "nothing": 0} {
		if got := b.found(queue.Find{Message: part}); len(got) != n {
			t.Errorf("%q is found in %v, want %d", part, got, n)
		}
	}
}

// toProvisioning runs a job until its size is estimated.
func (b *bench) toProvisioning(id string) {
	b.Helper()
	b.handle(queue.Message{Job: id, Exec: b.job(id).Exec, State: string(ingest.Estimating), Token: "t"}, sized(10))
}

// forgets removes the rows under which a job is listed, as if it had been made by an earlier version.
func (b *bench) forgets(id string) {
	b.Helper()
	j := b.job(id)
	tx := b.q.Table.Begin(b.q.NewID())
	tx.Follow(id, queue.Listed(&j), nil)
	if err := tx.Commit(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// repaired fails unless the doctor's rules find so many rows missing under which jobs are listed, and nothing else. It
// makes them.
func (b *bench) repaired(n int) {
	b.Helper()
	pg := checktest.Page(b.q.Table, b.q.Now, b.q.NewID)
	wrong := checktest.All(b, pg, b.q.RowRules(), func(table.Raw) bool { return true })
	for _, p := range wrong {
		if p.Invariant != "job-named" || p.Repair == nil {
			b.Fatalf("the doctor finds %+v", p)
		}
		if err := p.Repair(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	if len(wrong) != n {
		b.Errorf("%d rows were missing; expected %d", len(wrong), n)
	}
}
