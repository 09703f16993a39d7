package queue_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/queue/queuetest"
	"archivist/pkg/kernel/table"
)

const known = "ark:/99999/fk4tq65d6k"

// accept submits one object, which is not unpacked.
func (b *bench) accept(primary string, local ...string) *queue.Batch {
	b.Helper()
	in := ingest.Batch{Collection: "c", Mode: "add", Primary: primary, LocalIDs: local}
	row, err := b.q.Submit(b.Context(), in, "", nil, "me")
	if err != nil {
		b.Fatal(err)
	}
	return row
}

// unpackOne unpacks a batch that was accepted as one job.
func (b *bench) unpackOne(row *queue.Batch) string {
	b.Helper()
	i := slices.IndexFunc(b.started, func(m queue.Message) bool { return m.Batch == row.Batch.ID })
	b.handle(b.started[i], func(ctx context.Context, claim *queue.Claim) (ingest.Result, error) {
		in := claim.Batch
		j := ingest.Job{Collection: "c", Priority: 5, SizeKnown: true, Primary: in.Primary, LocalIDs: in.LocalIDs,
			Related: in.Related}
		return ingest.Result{Outcome: ingest.StepNext}, claim.Unpack(ctx, []ingest.Job{j}, 1)
	})
	return ingest.JobID(row.Batch.ID, 1)
}

// TestLineBeforeUnpacking: a submission is in line from the moment in which it is accepted, so that a later one for
// the same object that is unpacked sooner waits for it.
func TestLineBeforeUnpacking(t *testing.T) {
	b := newBench(t)
	b.q.Settings.MaxInFlight = 10
	first, second := b.accept("", "x"), b.accept("", "x")
	later := b.unpackOne(second)
	b.tick()
	b.handle(queue.Message{Job: later, Exec: b.job(later).Exec, State: string(ingest.Estimating), Token: "t"}, sized(1))
	b.tick()
	b.tick()
	x, err := b.q.ExplainJob(t.Context(), later)
	if err != nil || x.Waits != queue.OnLock || x.On != first.Batch.ID || !strings.Contains(x.Why, "is not read yet") {
		t.Errorf("the later job: %+v, %v", x, err)
	}
	earlier := b.unpackOne(first)
	if x, err = b.q.ExplainJob(t.Context(), later); err != nil || x.Waits != queue.OnLock || x.On != earlier {
		t.Errorf("after the earlier one is unpacked: %+v, %v", x, err)
	}
	if got := b.line("local#c#x"); !slices.Equal(got, []string{earlier, later}) {
		t.Errorf("in line are %v", got)
	}
	b.do(ingest.ActHold, jobTarget(earlier))
	b.tick()
	if j := b.job(later); j.State != ingest.Downloading {
		t.Errorf("while the earlier one is on hold, the later is %s", j.State)
	}
}

// TestLineOfAnEndedBatch: a submission that ends before it is unpacked, or that is on hold, stands in nobody's way.
func TestLineOfAnEndedBatch(t *testing.T) {
	b := newBench(t)
	refused, cancelled, held := b.accept("", "x"), b.accept(known, "x"), b.accept("", "x")
	b.handle(b.started[0], func(context.Context, *queue.Claim) (ingest.Result, error) {
		return ingest.Fail(false, "it is no manifest"), nil
	})
	b.did(ingest.ActCancel, cancelled.Batch.ID, queuetest.Confirmed)
	b.did(ingest.ActHold, held.Batch.ID)
	if j := ingest.JobID(held.Batch.ID, 1); b.batch(refused.Batch.ID).State != ingest.BatchFailed ||
		b.batch(held.Batch.ID).State == ingest.BatchPending && !slices.Equal(b.line("local#c#x"), []string{j}) {
		t.Errorf("in line are %v", b.line("local#c#x"))
	}
	b.handle(b.started[2], func(context.Context, *queue.Claim) (ingest.Result, error) { panic("it is on hold") })
	if got := b.line("local#c#x"); len(got) > 0 || len(b.line("ark#"+known)) > 0 ||
		b.batch(held.Batch.ID).State != ingest.BatchHeld {
		t.Errorf("the held one is %s; in line are %v", b.batch(held.Batch.ID).State, got)
	}
	b.did(ingest.ActRelease, held.Batch.ID)
	if got := b.line("local#c#x"); !slices.Equal(got, []string{ingest.JobID(held.Batch.ID, 1)}) {
		t.Errorf("after its release, in line are %v", got)
	}
}

// TestLinesOfOneObject: who names an object by one identifier waits for those who name it by another, as far as a
// submission that is not done yet says that both are of one object.
func TestLinesOfOneObject(t *testing.T) {
	b := newBench(t)
	both := b.accept(known, "x")
	local, ark := b.accept("", "x"), b.accept(known)
	unrelated := b.accept("", "y")
	want := []string{ingest.JobID(both.Batch.ID, 1), ingest.JobID(local.Batch.ID, 1), ingest.JobID(ark.Batch.ID, 1)}
	for _, lock := range []string{"local#c#x", "ark#" + known} {
		if got := b.line(lock); !slices.Equal(got, want) {
			t.Errorf("in the line of %s are %v", lock, got)
		}
	}
	if len(unrelated.Related) > 0 {
		t.Errorf("another object is related to %v", unrelated.Related)
	}
}

// TestIDsFollowTheLine: the id of a submission is after those of earlier ones for the same object, also if the clock
// of the process is behind.
func TestIDsFollowTheLine(t *testing.T) {
	b := newBench(t)
	ids := []string{"01M7ZBMEYHBB62YP6R00000002", "01M7ZBMEYABB62YP6R00000001", "01M7ZBMEYABB62YP6R00000003"}
	n := -1
	b.q.NewID = func() string { n++; return ids[min(n, len(ids)-1)] }
	first, second := b.accept("", "x"), b.accept("", "x")
	if first.Batch.ID >= second.Batch.ID || second.Batch.ID[10:] != ids[1][10:] {
		t.Errorf("the ids are %s and %s", first.Batch.ID, second.Batch.ID)
	}
	if other := b.accept("", "y"); other.Batch.ID != ids[2] {
		t.Errorf("another object's is %s", other.Batch.ID)
	}
}

// TestLostPlaceInLine: a submission whose place in line a person has removed ends all the same.
func TestLostPlaceInLine(t *testing.T) {
	for name, end := range map[string]func(b *bench, row *queue.Batch) bool{
		"cancelled": func(b *bench, row *queue.Batch) bool {
			b.did(ingest.ActCancel, row.Batch.ID, queuetest.Confirmed)
			is := b.batch(row.Batch.ID)
			return is.HasEnded() || is.Cancelled != nil
		},
		"unpacked": func(b *bench, row *queue.Batch) bool {
			id := b.unpackOne(row)
			b.do(ingest.ActHold, jobTarget(id))
			return b.job(id).State == ingest.Held
		},
	} {
		b := newBench(t)
		row := b.accept("", "x")
		b.loseRow(table.Key{PK: queue.LockKey("local#c#x").PK, SK: "WAITS#" + ingest.JobID(row.Batch.ID, 1)})
		b.now = b.now.Add(time.Second)
		if !end(b, row) {
			t.Errorf("%s: the batch is %+v", name, b.batch(row.Batch.ID))
		}
	}
}
