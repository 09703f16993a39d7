package queue_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
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
