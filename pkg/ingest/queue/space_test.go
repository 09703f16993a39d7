package queue_test

import (
	"strings"
	"testing"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/queue/queuetest"
	"archivist/pkg/kernel/explain"
)

// TestTooLargeFailsAtEstimate: a job that can never fit fails at once, and does not block
// other jobs.
func TestTooLargeFailsAtEstimate(t *testing.T) {
	b := newBench(t)
	b.q.Settings.Patience, b.q.Settings.MaxInFlight = time.Hour, 10
	huge := b.estimated("", 5000) // of 1,000
	if j := b.job(huge); j.State != ingest.Failed || !strings.Contains(j.Message, "5,000 bytes") || j.HasSlot {
		t.Errorf("the huge job is %+v", j)
	}
	if got := b.answered[len(b.answered)-1]; !strings.Contains(got, "StageFailed") || !strings.Contains(got, "5,000") {
		t.Errorf("its execution got the answer %q", got)
	}
	// One that fitted once, before the settings were changed.
	b.q.Settings.Space = 10_000
	large := b.estimated("", 5000)
	b.q.Settings.Space = 1000
	b.now = b.now.Add(2 * time.Hour)
	if x, err := b.q.ExplainJob(t.Context(), large); err != nil || x.Waits != explain.Person ||
		!strings.Contains(x.Why, "spaceGiB") {
		t.Errorf("explained: %+v, %v", x, err)
	}
	small := b.estimated("", 10)
	b.tick()
	if b.job(large).State != ingest.Failed || b.job(small).State != ingest.Downloading {
		t.Errorf("the large one is %s, the small one %s", b.job(large).State, b.job(small).State)
	}
}

// TestReservingJobIsNamed: the explanation of a job names the one that reserves freed space.
func TestReservingJobIsNamed(t *testing.T) {
	b := newBench(t)
	b.q.Settings.Patience, b.q.Settings.MaxInFlight = time.Hour, 10
	running := b.estimated("", 500)
	b.tick()
	head := b.estimated("", 800)
	b.now = b.now.Add(2 * time.Hour)
	small := b.estimated("", 10)
	b.tick()
	if b.job(running).State != ingest.Downloading || b.job(small).State != ingest.Provisioning {
		t.Fatalf("%s, %s", b.job(running).State, b.job(small).State)
	}
	x, err := b.q.ExplainJob(t.Context(), small)
	if err != nil || x.Waits != "space" || x.On != head || !strings.Contains(x.Why, "800") {
		t.Errorf("explained: %+v, %v", x, err)
	}
	if x, err := b.q.ExplainJob(t.Context(), head); err != nil || x.Waits != "space" || x.On != running {
		t.Errorf("explanation of the job that reserves it: %+v, %v", x, err)
	}
	b.forceFail(running)
	b.now = b.now.Add(25 * time.Hour)
	for range 3 {
		b.tick()
	}
	if b.job(head).State != ingest.Downloading || b.job(small).State != ingest.Downloading {
		t.Errorf("after it: %s, %s", b.job(head).State, b.job(small).State)
	}
}

// parkedWithSpace makes two jobs of one local id: the later one is parked and
// holds space, the earlier one is being estimated.
func (b *bench) parkedWithSpace(local string, space int64) (first, parked string) {
	b.Helper()
	first = ingest.JobID(b.submit(1, local), 1)
	b.tick()
	b.handle(queue.Message{Job: first, Exec: 1, State: string(ingest.Estimating)}, fails(true))
	parked = b.estimated(local, space)
	b.tick()
	b.handle(queue.Message{Job: parked, Exec: 2, State: string(ingest.Downloading)}, fails(true))
	b.requeue(first)
	b.tick()
	b.requeue(parked)
	if j := b.job(parked); !j.Parked || !j.HasSpace {
		b.Fatalf("%s is not parked with space: %+v", parked, j)
	}
	return first, parked
}

// TestParkedJobsSpace: a job gets its space from those that are parked until it ends;
// otherwise they would wait for each other without end.
func TestParkedJobsSpace(t *testing.T) {
	b := newBench(t)
	b.q.Settings.MaxInFlight, b.q.Settings.Patience = 10, time.Hour
	a1, p1 := b.parkedWithSpace("x", 500)
	a2, p2 := b.parkedWithSpace("y", 450)
	b.handle(queue.Message{Job: a1, Exec: 2, State: string(ingest.Estimating)}, sized(700))
	b.handle(queue.Message{Job: a2, Exec: 2, State: string(ingest.Estimating)}, sized(900))
	other := b.estimated("", 60) // waits for space, behind nobody
	b.now = b.now.Add(2 * time.Hour)
	b.tick()
	got := []ingest.State{b.job(a1).State, b.job(a2).State, b.job(other).State}
	if got[0] != ingest.Downloading || got[1] != ingest.Provisioning || got[2] != ingest.Provisioning {
		t.Fatalf("the first of two lines that hold all space: %v", got)
	}
	for _, id := range []string{a1, p1, a2, p2} { // each goes in its turn
		if j := b.job(id); j.State != ingest.Downloading || j.Parked {
			t.Fatalf("%s is %s, parked %v", id, j.State, j.Parked)
		}
		b.forceFail(id)
		b.now = b.now.Add(25 * time.Hour) // its work files go, and its space
		b.tick()
		b.tick()
	}
	if j := b.job(other); j.State != ingest.Downloading {
		t.Errorf("at last the other is %s", j.State)
	}
}

// TestParkedBehindOneThatHoldsNothing: the space of a parked job counts for the job that it
// finally waits for, even if a job between them holds nothing.
func TestParkedBehindOneThatHoldsNothing(t *testing.T) {
	b := newBench(t)
	b.q.Settings.MaxInFlight = 10
	job := func(local ...string) string {
		id := ingest.JobID(b.submitJobs(ingest.Job{Collection: "c", LocalIDs: local, SizeKnown: true}), 1)
		b.tick()
		return id
	}
	at := func(id string, s ingest.State, step queue.Step) {
		b.handle(queue.Message{Job: id, Exec: b.job(id).Exec, State: string(s)}, step)
	}
	last := job("x")
	between := job("x", "y")
	at(last, ingest.Estimating, fails(true))
	at(between, ingest.Estimating, fails(true))
	parked := job("y")
	at(parked, ingest.Estimating, sized(500))
	b.tick()
	at(parked, ingest.Downloading, fails(true))
	b.requeue(last)
	b.requeue(between)
	b.tick()
	b.requeue(parked)
	at(last, ingest.Estimating, sized(700))
	at(between, ingest.Estimating, sized(10))
	b.tick()
	if j := b.job(last); j.State != ingest.Downloading || b.job(between).State != ingest.Provisioning ||
		!b.job(parked).Parked {
		t.Errorf("the first is %s, the one between %s, the last parked %v", j.State, b.job(between).State,
			b.job(parked).Parked)
	}
}

// TestFailedJobsGiveWay: if a job lacks space, failed jobs that were kept for FailedKeep are
// cleaned early, the oldest first.
func TestFailedJobsGiveWay(t *testing.T) {
	b := newBench(t)
	b.q.Rules.FailedRetention, b.q.Settings.FailedKeep, b.q.Settings.MaxInFlight = 30*24*time.Hour, 24*time.Hour, 10
	b.cleaned = []string{"the first does not get to the end"}
	var failed []string
	for range 2 {
		id := b.estimated("", 450)
		b.tick()
		b.handle(queue.Message{Job: id, Exec: 2, State: string(ingest.Downloading)}, fails(true))
		failed = append(failed, id)
		b.now = b.now.Add(2 * time.Hour)
	}
	b.now = b.now.Add(21 * time.Hour) // 25 and 23 hours after they failed
	b.tick()
	if !b.job(failed[0]).HasSpace {
		t.Error("cleaned, but no job lacks space")
	}
	waits := b.estimated("", 500)
	b.tick()
	b.tick()
	if j := b.job(waits); b.job(failed[0]).HasSpace || !b.job(failed[1]).HasSpace || j.State != ingest.Downloading {
		t.Errorf("the oldest holds space: %v, the newer: %v; the waiting job is %s", b.job(failed[0]).HasSpace,
			b.job(failed[1]).HasSpace, j.State)
	}
	row, err := queuetest.Requeue(t.Context(), b.q, failed[0], "again", "me")
	if err != nil || row.State != ingest.Pending {
		t.Errorf("the cleaned one requeued: %+v, %v", row, err)
	}
}

// TestFailedJobsGiveWayToTheFirst: a job that parked jobs wait for gets the space of a failed one, for which that of
// the parked jobs counts as free, too.
func TestFailedJobsGiveWayToTheFirst(t *testing.T) {
	b := newBench(t)
	b.q.Rules.FailedRetention, b.q.Settings.FailedKeep, b.q.Settings.MaxInFlight = 30*24*time.Hour, 24*time.Hour, 10
	failed := b.estimated("", 450)
	b.tick()
	b.handle(queue.Message{Job: failed, Exec: 2, State: string(ingest.Downloading)}, fails(true))
	first, _ := b.parkedWithSpace("x", 500)
	b.handle(queue.Message{Job: first, Exec: 2, State: string(ingest.Estimating)}, sized(700))
	b.tick()
	if j := b.job(first); j.State != ingest.Provisioning {
		t.Fatalf("with 550 of 1,000 bytes free or parked it is %s", j.State)
	}

	b.now = b.now.Add(25 * time.Hour)
	b.tick()
	b.tick()
	if j := b.job(first); b.job(failed).HasSpace || j.State != ingest.Downloading {
		t.Errorf("the failed job has space: %v; the first is %s", b.job(failed).HasSpace, j.State)
	}
}

// TestFailedJobsGiveWayBehindOthers: a failed job gives way although many batches, whose rows
// will be removed soon, and deleted jobs are before it in the place of clean-ups.
func TestFailedJobsGiveWayBehindOthers(t *testing.T) {
	b := newTwinBench(t)
	b.q.Rules.FailedRetention, b.q.Settings.FailedKeep, b.q.Settings.MaxInFlight = 30*24*time.Hour, 24*time.Hour, 100
	fail := func(size int64) string {
		id := b.estimated("", size)
		b.tick()
		b.handle(queue.Message{Job: id, Exec: 2, State: string(ingest.Downloading)}, fails(true))
		return id
	}
	old := fail(900)
	b.now = b.now.Add(25 * time.Hour)
	for n := range 30 {
		b.editBatch(b.submit(1, ""), func(row *queue.Batch) {
			row.State, row.Due = ingest.BatchCompleted, b.now.Add(time.Hour).UnixMilli()
		})
		if n < 3 {
			b.did(ingest.ActDelete, fail(1), queuetest.Confirmed)
		}
	}
	waits := b.estimated("", 500)
	b.tick() // the first time not all files are removed
	b.tick()
	b.tick()
	if b.job(old).HasSpace || b.job(waits).State != ingest.Downloading {
		t.Errorf("the failed job has space: %v; the waiting job is %s", b.job(old).HasSpace, b.job(waits).State)
	}
}

func TestSettings(t *testing.T) {
	good := queue.Settings{MaxInFlight: 1, Space: 1, Reserve: 1, SweepPage: 1}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for _, spoil := range []func(*queue.Settings){
		func(s *queue.Settings) { s.MaxInFlight = 0 },
		func(s *queue.Settings) { s.MaxInFlight = 1001 },
		func(s *queue.Settings) { s.Space = 0 },
		func(s *queue.Settings) { s.Reserve = 2 },
		func(s *queue.Settings) { s.Reserve = -1 },
		func(s *queue.Settings) { s.Share = -1 },
		func(s *queue.Settings) { s.Patience = -1 },
		func(s *queue.Settings) { s.FailedKeep = -1 },
		func(s *queue.Settings) { s.SweepPage = 0 },
	} {
		bad := good
		spoil(&bad)
		if bad.Check() == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
}

// TestBlockedJobReservesNothing: a job whose patience has ended, and that waits for a lock, keeps no space from others;
// explain names no reservation. Once it waits for space alone, it reserves.
func TestBlockedJobReservesNothing(t *testing.T) {
	b := newBench(t)
	b.q.Settings.MaxInFlight, b.q.Settings.Patience, b.q.Settings.Reserve = 10, 10*time.Minute, 0
	first := b.estimated("same", 600)
	b.tick() // it has 600 of 1,000 bytes, and the lock
	behind := b.estimated("same", 500)
	b.now = b.now.Add(time.Hour)
	other := b.estimated("other", 10)
	b.tick()
	if a, o := b.job(behind), b.job(other); a.State != ingest.Provisioning || o.State != ingest.Downloading {
		t.Errorf("the job behind the lock is %s, the small one %s", a.State, o.State)
	}

	b.explains(behind, explain.Lock, first)
	large := b.estimated("large", 395) // 390 are free
	b.explains(large, explain.Space, "needs 395 bytes of work space and 390 are free")
	b.now = b.now.Add(time.Hour) // it waits for space alone, and reserves
	last := b.estimated("last", 10)
	b.tick()
	if j := b.job(last); j.State != ingest.Provisioning {
		t.Errorf("the last job is %s", j.State)
	}
	b.explains(last, explain.Space, "reserved for job "+large)
}
