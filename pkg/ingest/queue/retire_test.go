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
	"archivist/pkg/ingest/queue/queuetest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table/tabletest"
)

// TestRetire: the rows of a completed batch are removed after its retention, not before; its
// events stay, and a failed batch keeps all rows.
func TestRetire(t *testing.T) {
	b := newBench(t)
	b.q.Rules.Retention = 10 * 24 * time.Hour
	b.q.Settings.MaxInFlight = 500
	const jobs = 60 // more than go in one transaction
	batch := b.submit(jobs, "x")
	bad := b.submit(1, "y")
	b.tick()
	fails := func(context.Context, *queue.Claim) (ingest.Result, error) { return ingest.Fail(false, "no good"), nil }
	for i := 0; i < len(b.started); i++ { // each execution that is started, to its end
		for m := b.started[i]; m.Step != "unpack"; {
			m.Token = "t"
			if m.Job == ingest.JobID(bad, 1) {
				b.handle(m, fails)
				break
			}
			b.handle(m, ok)
			if to := ingest.After(ingest.State(m.State)); m.Job != "" && to != ingest.Provisioning &&
				to != ingest.Completed {
				m.State = string(to)
				continue
			}
			break
		}
		b.tick()
	}
	for id, want := range map[string]ingest.BatchState{batch: ingest.BatchCompleted, bad: ingest.BatchFailed} {
		if row, err := b.q.Batch(t.Context(), id); err != nil || row.State != want {
			t.Fatalf("batch %s: %+v, %v", id, row, err)
		}
	}
	b.now = b.now.Add(9 * 24 * time.Hour)
	b.tick()
	if _, err := b.q.Job(t.Context(), ingest.JobID(batch, jobs)); err != nil {
		t.Errorf("a row was removed too early: %v", err)
	}
	b.now = b.now.Add(2 * 24 * time.Hour)
	b.tick()
	if _, err := b.q.Batch(t.Context(), batch); !fault.Is(err, fault.NotFound) {
		t.Errorf("the batch still exists: %v", err)
	}
	for n := 1; n <= jobs; n++ {
		if _, err := b.q.Job(t.Context(), ingest.JobID(batch, n)); !fault.Is(err, fault.NotFound) {
			t.Errorf("job %d still exists: %v", n, err)
		}
	}
	if _, err := b.q.Job(t.Context(), ingest.JobID(bad, 1)); err != nil {
		t.Errorf("a failed batch lost its job: %v", err)
	}
	for _, s := range []event.Subject{{Type: event.Batch, ID: batch}, {Type: event.Job, ID: ingest.JobID(batch, 1)}} {
		if p, err := b.q.Events(t.Context(), s, ""); err != nil || len(p.Items) < 3 {
			t.Errorf("the history of %v is %v, %v", s, p.Items, err)
		}
	}
}

// TestListsWhileRowsGo: a list leaves out retired rows, even if its index still shows them.
func TestListsWhileRowsGo(t *testing.T) {
	b, rows := newBench(t), tabletest.New()
	b.q.Table = tabletest.Table(rows)
	b.c.Leases.Table = b.q.Table
	gone, stays := b.submit(3, "x"), b.submit(1, "y")
	row, err := b.q.Batch(t.Context(), gone)
	if err != nil {
		t.Fatal(err)
	}
	find := queue.Find{Collections: []string{row.Collection}}
	list := func() (batches, jobs int) {
		all, err := b.q.FindBatches(t.Context(), find)
		if err != nil {
			t.Fatal(err)
		}
		of, err := b.q.FindJobs(t.Context(), find)
		if err != nil {
			t.Fatal(err)
		}
		return len(all.Items), len(of.Items)
	}
	if batches, jobs := list(); batches != 2 || jobs != 4 {
		t.Fatalf("%d batches, %d jobs", batches, jobs)
	}
	remove := func(pk, sk string) {
		if err := b.q.Table.Rows.Delete("pk", pk).Range("sk", sk).Run(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	rows.Lag = func() int { return 4 }
	remove("JOB#"+ingest.JobID(gone, 3), "JOB")
	if left, err := b.q.Jobs(t.Context(), gone, 0); err != nil || len(left) != 2 {
		t.Errorf("%d jobs are left, %v", len(left), err)
	}
	remove("JOB#"+ingest.JobID(gone, 2), "JOB")
	remove("JOB#"+ingest.JobID(gone, 1), "JOB")
	remove("BATCH#"+gone, "BATCH")
	if batches, jobs := list(); batches != 1 || jobs != 1 {
		t.Errorf("%d batches, %d jobs, of which %s stays", batches, jobs, stays)
	}
}

// TestRetireAwaitsMails: the rows of a batch that a person removes at once stay until its
// report is mailed.
func TestRetireAwaitsMails(t *testing.T) {
	for _, name := range []ingest.ActionName{ingest.ActCleanUp, ingest.ActDelete} {
		b := newBench(t)
		p := &post{to: []string{"a@example.org"}}
		b.q.Compose = p.compose
		id, report := b.toReport()
		p.got, p.broken = nil, errors.New("the store is down")
		b.handle(report, ok)
		if name == ingest.ActCleanUp {
			b.editBatch(id, func(row *queue.Batch) { row.State = ingest.BatchCompleted })
		}
		b.did(name, id, queuetest.Confirmed)
		b.tick()
		p.broken = nil
		for range 10 {
			b.now = b.now.Add(time.Minute)
			b.tick()
		}
		if len(p.got) != 1 || !strings.Contains(p.got[0], ".report.") {
			t.Errorf("after %s: sent %v", name, p.got)
		}
		if _, err := b.q.Batch(t.Context(), id); !fault.Is(err, fault.NotFound) {
			t.Errorf("after %s and its mail: %v", name, err)
		}
	}
}
