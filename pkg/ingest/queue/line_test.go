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
	"archivist/pkg/kernel/explain"
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
	if err != nil || x.Waits != explain.Lock || x.On != first.Batch.ID || !strings.Contains(x.Why, "is not read yet") {
		t.Errorf("the later job: %+v, %v", x, err)
	}
	earlier := b.unpackOne(first)
	if x, err = b.q.ExplainJob(t.Context(), later); err != nil || x.Waits != explain.Lock || x.On != earlier {
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

// acceptList submits a batch that lists objects, which is not unpacked.
func (b *bench) acceptList(submitter string) *queue.Batch {
	b.Helper()
	in := ingest.Batch{Collection: "c", Mode: "add", Submitter: submitter,
		Payload: ingest.Payload{Type: ingest.TypeBatchManifest}}
	row, err := b.q.Submit(b.Context(), in, "", nil, "me")
	if err != nil {
		b.Fatal(err)
	}
	return row
}

// unpackList unpacks the rows of a list from one row to another, of as many as it has in all. The first has the local
// id x.
func (b *bench) unpackList(row *queue.Batch, from, to, all int) {
	b.Helper()
	m := queue.Message{Batch: row.Batch.ID, Exec: 1, Step: "unpack", Token: "t"}
	b.handle(m, func(ctx context.Context, claim *queue.Claim) (ingest.Result, error) {
		var jobs []ingest.Job
		for n := from; n <= to; n++ {
			j := ingest.Job{Collection: "c", Priority: 5, SizeKnown: true}
			if n == 1 {
				j.LocalIDs = []string{"x"}
			}
			jobs = append(jobs, j)
		}
		if err := claim.Unpack(ctx, jobs, all); err != nil || to < all {
			return ingest.Result{Outcome: ingest.StepContinue}, err
		}
		return ingest.Result{Outcome: ingest.StepNext}, nil
	})
}

// atGate2 brings a job to the gate at which it takes its locks, and tries to admit it.
func (b *bench) atGate2(id string) {
	b.Helper()
	b.tick()
	b.handle(queue.Message{Job: id, Exec: b.job(id).Exec, State: string(ingest.Estimating), Token: "t"}, sized(1))
	b.tick()
}

// TestJobsWaitForEarlierManifests: an object that is submitted after a manifest waits until all of its rows are jobs,
// because one of them can be of the same object. Another depositor's does not.
func TestJobsWaitForEarlierManifests(t *testing.T) {
	b := newBench(t)
	b.q.Settings.MaxInFlight = 10
	before := b.unpackOne(b.accept("", "y"))
	list := b.acceptList("")
	after := b.unpackOne(b.accept("", "x"))
	for _, id := range []string{before, after} {
		b.atGate2(id)
	}
	if !b.runs(before) || b.runs(after) {
		t.Errorf("the job before the manifest runs: %v, the one after it: %v", b.runs(before), b.runs(after))
	}
	b.explains(after, explain.Lock, list.Batch.ID, "by the same depositor", "Its manifest is not read yet")

	b.unpackList(list, 1, 1, 2)
	b.tick()
	b.explains(after, explain.Lock, ingest.JobID(list.Batch.ID, 1), "works on the same object")
	b.unpackList(list, 2, 2, 2)
	b.atGate2(ingest.JobID(list.Batch.ID, 1))
	if b.runs(after) || !b.runs(ingest.JobID(list.Batch.ID, 1)) {
		t.Errorf("the later job runs: %v, before that of the manifest", b.runs(after))
	}
	if got := b.line("manifest#c#"); len(got) > 0 {
		t.Errorf("among the manifests are still %v", got)
	}
}

// TestManifestsOfOthers: a manifest does not delay those who did not submit it, nor one that was submitted before it,
// nor its own rows.
func TestManifestsOfOthers(t *testing.T) {
	b := newBench(t)
	b.q.Settings.MaxInFlight = 10
	b.acceptList("somebody else")
	first := b.acceptList("")
	second := b.acceptList("")
	b.unpackList(first, 1, 1, 2)
	b.unpackList(second, 1, 2, 2)
	own, later := ingest.JobID(first.Batch.ID, 1), ingest.JobID(second.Batch.ID, 2)
	for _, id := range []string{own, later} {
		b.atGate2(id)
	}
	if !b.runs(own) || b.runs(later) {
		t.Errorf("the row of the first manifest runs: %v; that of the second: %v", b.runs(own), b.runs(later))
	}
	b.unpackList(first, 2, 2, 2)
	b.tick()
	if !b.runs(later) {
		t.Errorf("the second manifest's does not run after the first is read: %+v", b.job(later))
	}
}

// TestManifestThatIsNotRead: a manifest that cannot be read, is on hold, or was given up, delays others for an hour
// at most.
func TestManifestThatIsNotRead(t *testing.T) {
	for name, end := range map[string]func(b *bench, list *queue.Batch){
		"an hour later": func(b *bench, _ *queue.Batch) { b.now = b.now.Add(ingest.ManifestPatience) },
		"refused": func(b *bench, list *queue.Batch) {
			m := queue.Message{Batch: list.Batch.ID, Exec: 1, Step: "unpack", Token: "t"}
			b.handle(m, func(context.Context, *queue.Claim) (ingest.Result, error) {
				return ingest.Fail(false, "it is no manifest"), nil
			})
		},
		"on hold": func(b *bench, list *queue.Batch) {
			b.did(ingest.ActHold, list.Batch.ID)
			m := queue.Message{Batch: list.Batch.ID, Exec: 1, Step: "unpack", Token: "t"}
			b.handle(m, func(context.Context, *queue.Claim) (ingest.Result, error) { panic("it is on hold") })
		},
	} {
		b := newBench(t)
		b.q.Settings.MaxInFlight = 10
		list := b.acceptList("")
		after := b.unpackOne(b.accept("", "x"))
		b.atGate2(after)
		if b.runs(after) {
			t.Errorf("%s: the job runs before that", name)
		}
		end(b, list)
		b.tick()
		if !b.runs(after) {
			t.Errorf("%s: the job does not run: %+v", name, b.job(after))
		}
	}
}
