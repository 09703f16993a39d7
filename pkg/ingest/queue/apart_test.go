package queue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/queue/queuetest"
	"archivist/pkg/kernel/explain"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table/tabletest"
)

// TestThrottledPartition: a partition of the index that cannot be read for an hour stops only what is in it.
func TestThrottledPartition(t *testing.T) {
	for _, place := range []string{ingest.DuePK(2), ingest.WorkHeld, ingest.WorkCleanUp, ingest.WorkParked,
		ingest.WorkProvisioning} {
		t.Run(place, func(t *testing.T) {
			bad := ""
			tb := tabletest.Table(&tabletest.Client{
				DynamoDBAPI: tabletest.New(),
				Do:          func(_ string, call func() error) error { return call() },
				Refuse: func(partition string) error {
					if partition == bad {
						return tabletest.Throttled()
					}
					return nil
				},
			})
			tb.Wait = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
			b := newBenchOn(t, tb)
			id := ingest.JobID(b.submit(1, ""), 1)
			bad = place
			b.now = b.now.Add(time.Minute)
			if err := b.c.Tick(t.Context(), true); err == nil {
				t.Error("nothing was refused")
			}
			if j := b.job(id); j.State != ingest.Estimating {
				t.Errorf("the job is %s", j.State)
			}
		})
	}
}

// TestEarlyCleanUpPassesWhatFails: work files that cannot be removed do not keep those of other failed jobs.
func TestEarlyCleanUpPassesWhatFails(t *testing.T) {
	b := newBench(t)
	b.q.Settings.MaxInFlight, b.q.Settings.Space, b.q.Settings.Reserve = 100, 1000, 0
	b.q.Rules.FailedRetention = 30 * 24 * time.Hour
	bad := map[string]bool{}
	b.q.Clean = func(_ context.Context, job string, _ time.Time) (bool, error) {
		if bad[job] {
			return false, errors.New("AccessDenied: the object is locked")
		}
		return true, nil
	}
	fail := func(local string, size int64) string {
		id := b.estimated(local, size)
		b.tick()
		b.handle(queue.Message{Job: id, Exec: b.job(id).Exec, State: string(ingest.Downloading), Token: "t"},
			fails(true))
		return id
	}
	for i := range 50 {
		bad[fail(fmt.Sprint("bad", i), 6)] = true
	}
	b.now = b.now.Add(time.Minute)
	fail("good", 700)
	b.now = b.now.Add(2 * time.Hour)
	waits := b.estimated("waits", 500)
	for range 180 {
		b.now = b.now.Add(time.Minute)
		b.tick()
	}
	if j := b.job(waits); j.State != ingest.Downloading {
		t.Errorf("after three hours the job that needs space is %s", j.State)
	}
}

// TestNothingIsCleanedInVain: work files of failed jobs stay if their space would not help the job that waits for
// some, and no more of them are removed than it needs.
func TestNothingIsCleanedInVain(t *testing.T) {
	for _, c := range []struct {
		running, want int64
		left          int // failed jobs of 100 bytes that keep their work files, of five
	}{{running: 400, want: 700, left: 5}, {running: 400, want: 250, left: 3}, {running: 100, want: 900, left: 0}} {
		b := newBench(t)
		b.q.Settings.MaxInFlight, b.q.Settings.Space, b.q.Settings.Reserve = 100, 1000, 0
		b.q.Rules.FailedRetention = 30 * 24 * time.Hour
		b.q.Clean = func(context.Context, string, time.Time) (bool, error) { return true, nil }
		b.estimated("runs", c.running)
		b.tick()
		var failed []string
		for n := range 5 {
			id := b.estimated(fmt.Sprint("failed", n), 100)
			b.tick()
			b.handle(queue.Message{Job: id, Exec: b.job(id).Exec, State: string(ingest.Downloading), Token: "t"},
				fails(true))
			failed = append(failed, id)
		}
		b.now = b.now.Add(2 * time.Hour)
		waits := b.estimated("waits", c.want)
		for range 3 {
			b.tick()
		}
		left := len(slices.DeleteFunc(failed, func(id string) bool { j := b.job(id); return !j.HasSpace }))
		if started := b.job(waits).State == ingest.Downloading; left != c.left || started != (c.left < 5) {
			t.Errorf("%d run, %d are wanted: %d failed jobs keep their work files, not %d; the job is %s", c.running,
				c.want, left, c.left, b.job(waits).State)
		}
	}
}

// TestCauseOfFailedCleanUp: the explanation of a job whose work files cannot be removed says why, and until when it
// cannot be requeued.
func TestCauseOfFailedCleanUp(t *testing.T) {
	b := newBench(t)
	id := b.failedJob(ingest.Processing)
	b.quiet()
	b.did(ingest.ActCleanUp, id)
	clean := b.q.Clean
	b.q.Clean = func(context.Context, string, time.Time) (bool, error) {
		return false, errors.New("AccessDenied: the object is locked")
	}
	b.tick()
	x, err := b.q.ExplainJob(t.Context(), id)
	says := "could not be removed; an operator must correct this: AccessDenied: the object is locked. They are tried"
	if err != nil || x.Waits != explain.Person || !strings.Contains(x.Why, says) {
		t.Errorf("explained: %+v, %v", x, err)
	}
	b.q.Clean = clean
	b.now = b.now.Add(2 * time.Hour)
	b.tick()
	b.now = b.now.Add(2 * time.Hour)
	b.tick()
	if j := b.job(id); j.HasSpace || j.Blocked != "" {
		t.Errorf("the job is %+v", j)
	}
}

// TestKeyOfARemovedBatch: the same submission again, after the records of its batch were removed, says so.
func TestKeyOfARemovedBatch(t *testing.T) {
	b := newBench(t)
	submit := func() (*queue.Batch, error) {
		return b.q.Submit(t.Context(), ingest.Batch{Collection: "c", Mode: "add"}, "key", []byte("x"), "me")
	}
	row, err := submit()
	if err != nil {
		t.Fatal(err)
	}
	b.handle(b.last(), func(context.Context, *queue.Claim) (ingest.Result, error) {
		return ingest.Fail(true, "404"), nil
	})
	b.did(ingest.ActDelete, row.Batch.ID, queuetest.Confirmed)
	for range 5 {
		b.now = b.now.Add(time.Minute)
		b.tick()
	}
	says := "as batch " + row.Batch.ID + ", whose records are removed since"
	if _, err := submit(); !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), says) {
		t.Errorf("the same again: %v", err)
	}
}

// TestStaleSubmission: a submission that is refused since another row has changed, and whose key nobody has used, says
// that, and can be made again.
func TestStaleSubmission(t *testing.T) {
	refuse := true
	b := newBenchOn(t, tabletest.Through(tabletest.New(), func(op string, call func() error) error {
		if op == "TransactWriteItems" && refuse {
			return tabletest.Unmet()
		}
		return call()
	}))
	submit := func() (*queue.Batch, error) {
		return b.q.Submit(t.Context(), ingest.Batch{Collection: "c", Mode: "add"}, "key", []byte("x"), "me")
	}
	if row, err := submit(); row != nil || !fault.Is(err, fault.Stale) {
		t.Errorf("%+v, %v", row, err)
	}
	refuse = false
	if row, err := submit(); row == nil || err != nil {
		t.Errorf("again: %+v, %v", row, err)
	}
}

// TestPauseLeavesTimeToOthers: thousands that a pause of the storage keeps, and that take the time of a gate, do not
// stop what needs no storage.
func TestPauseLeavesTimeToOthers(t *testing.T) {
	const parked = 400
	each := time.Duration(0)
	var b *bench
	b = newBenchOn(t, tabletest.Through(tabletest.New(), func(_ string, call func() error) error {
		if b != nil {
			b.now = b.now.Add(each)
		}
		return call()
	}))
	b.q.Settings.MaxInFlight, b.q.Settings.Space = 10_000, 1<<40
	batch := b.submit(parked, "")
	for n := range parked {
		b.edit(ingest.JobID(batch, n+1), func(row *queue.Job) {
			row.Job = b.q.Rules.Park(row.Job, ingest.WaitsForStorage, "", b.now)
			row.State, row.HasSpace = ingest.Processing, true
		})
	}
	b.do(ingest.ActPause, ingest.Target{Kind: ingest.TargetStorage})
	id := ingest.JobID(b.submit(1, ""), 1)
	b.now, each = b.now.Add(time.Minute), 100*time.Millisecond
	b.tick()
	if j := b.job(id); j.State != ingest.Estimating {
		t.Errorf("the job is %s", j.State)
	}
}
