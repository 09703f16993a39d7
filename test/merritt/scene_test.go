// Package merritt replays the states and transitions of Merritt's ingest queue, as its state
// transition details describe them, through the real stages and the real queue on a table and
// a storage in this process. Each heading of that text is a scenario with the same name.
//
// What ZooKeeper's nodes are there is here:
//
//	/jobs/JID/status             the job's row: State, LastSuccessful, RetryCount
//	/jobs/JID/lock               the lease on the job's row
//	/jobs/states/STATE/XX-JID    the job's place in the index of the work to do
//	/batches/BID/states/*/JID    the counts of the batch
//	(none)                       an event for each change
package merritt

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"archivist/pkg/events/event"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/notify"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/queue/queuetest"
	"archivist/pkg/ingest/stage/stagetest"
	"archivist/pkg/ingest/workspace"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// scene is a deployment whose clock, source and failing stages the scenario sets.
type scene struct {
	*stagetest.World
	now    time.Time
	src    *source
	mails  *[]string
	hook   map[string]func(c *queue.Claim) // by stage: while its worker has the item
	broken map[string]string               // stages that fail, with the reason
}

func newScene(t *testing.T) *scene {
	s := &scene{World: stagetest.NewWorld(t), now: time.UnixMilli(1_800_000_000_000), src: newSource(t),
		hook: map[string]func(*queue.Claim){}, broken: map[string]string{}}
	tell := func() time.Time { return s.now }
	s.Machine.Queue.Now, s.Stages.Now, s.Machine.Scheduler.Leases.Now = tell, tell, tell
	s.mails = s.Mails(func(string) error { return nil })
	real := s.Machine.Step
	s.Machine.Step = func(st ingest.Stage) queue.Step {
		return func(ctx context.Context, c *queue.Claim) (ingest.Result, error) {
			if hook := s.hook[st.Name]; hook != nil {
				hook(c)
			}
			if why := s.broken[st.Name]; why != "" {
				return ingest.Fail(true, why), nil
			}
			return real(st)(ctx, c)
		}
	}
	return s
}

// submit submits a batch of objects; its manifest is not read yet.
func (s *scene) submit(objects ...object) string {
	s.Helper()
	row, err := s.Machine.Queue.Submit(s.Context(), ingest.Batch{Collection: "bench", Mode: "add",
		Submitter: "submitter", Mail: []string{"me@example.org"},
		Payload: ingest.Payload{URL: s.src.batch(objects), Type: ingest.TypeBatchManifest, Filename: "batch"}},
		"", nil, "me")
	if err != nil {
		s.Fatal(err)
	}
	return row.Batch.ID
}

// queued submits a batch and reads its manifest: its jobs are Pending.
func (s *scene) queued(objects ...object) string {
	s.Helper()
	id := s.submit(objects...)
	s.one()
	if b := s.batchRow(id); b.State != ingest.BatchProcessing {
		s.Fatalf("the batch is %s: %s", b.State, b.Message)
	}
	return id
}

// one handles one message.
func (s *scene) one() {
	s.Helper()
	if err := s.Machine.One(s.Context()); err != nil {
		s.Fatal(err)
	}
}

// tick runs the scheduler.
func (s *scene) tick() {
	s.Helper()
	s.now = s.now.Add(time.Second)
	if err := s.Machine.Scheduler.Tick(s.Context(), true); err != nil {
		s.Fatal(err)
	}
}

// until handles messages, and runs the scheduler if there are none, until something is so.
func (s *scene) until(so func() bool) {
	s.Helper()
	for range 300 {
		if so() {
			return
		}
		if s.Machine.Idle() {
			s.tick()
		} else {
			s.one()
		}
	}
	s.Fatal("it does not come to pass")
}

// reach runs until a job is in a state; no worker has it then.
func (s *scene) reach(id string, state ingest.State) {
	s.Helper()
	s.until(func() bool { return s.Job(id).State == state })
}

// reachBatch is reach for a batch.
func (s *scene) reachBatch(id string, state ingest.BatchState) {
	s.Helper()
	s.until(func() bool { return s.batchRow(id).State == state })
}

func (s *scene) batchRow(id string) *queue.Batch {
	s.Helper()
	row, err := s.Machine.Queue.Batch(s.Context(), id)
	if err != nil {
		s.Fatal(err)
	}
	return row
}

// do does an action that must change something.
func (s *scene) do(name ingest.ActionName, id string, how ...func(*ingest.Action)) ingest.ActionResult {
	s.Helper()
	did, err := queuetest.Act(s.Context(), s.Machine.Queue, name, id, how...)
	if err != nil || !did.Changed {
		s.Fatalf("%s %s: %+v, %v", name, id, did, err)
	}
	return did
}

// refused does an action that must be refused with a text.
func (s *scene) refused(kind fault.Kind, says string, name ingest.ActionName, id string,
	how ...func(*ingest.Action)) {
	s.Helper()
	_, err := queuetest.Act(s.Context(), s.Machine.Queue, name, id, how...)
	if !fault.Is(err, kind) || !strings.Contains(err.Error(), says) {
		s.Errorf("%s %s: %v; expected a refusal with %q", name, id, err, says)
	}
}

// wholeCollection makes an action one on the collection of the scene.
func wholeCollection(a *ingest.Action) {
	a.Target = ingest.Target{Kind: ingest.TargetCollection, ID: "bench"}
}

// counts are numbers of jobs.
type counts = ingest.Counts

// status is what a scenario expects of a job.
type status struct {
	state, last ingest.State
	retries     int
	place       string // in the index of the work to do; "" = none
	locks       int    // on its object and its local ids
	counts      counts // of its batch
	event       string // the last one: from→to
}

// is checks a job: its row, its place in the queue, its slot and locks, the counts of its batch,
// and its events. No worker has it.
func (s *scene) is(id string, want status) {
	s.Helper()
	row := s.Job(id)
	got := status{state: row.State, last: row.LastSuccessful, retries: row.RetryCount,
		place: s.place(row.Head, id), locks: s.locks(row), counts: s.counts(row.Batch),
		event: s.lastChange(event.Subject{Type: event.Job, ID: id})}
	if got != want {
		s.Errorf("job %s: %+v\nexpected %+v\n%s", id, got, want, row.Message)
	}
	if row.Live(s.now) {
		s.Errorf("job %s is locked until %d", id, row.Until)
	}
	if slot := s.owned("SLOT", id); slot != row.Running() || slot != row.HasSlot {
		s.Errorf("job %s is %s, and has a slot: %v", id, row.State, slot)
	}
	if space := s.owned("SPACE", id); space != row.HasSpace {
		s.Errorf("job %s is %s, and has space: %v", id, row.State, space)
	}
}

// batchStatus is what a scenario expects of a batch.
type batchStatus struct {
	state  ingest.BatchState
	place  string
	counts counts
	event  string
}

// isBatch is is for a batch.
func (s *scene) isBatch(id string, want batchStatus) {
	s.Helper()
	row := s.batchRow(id)
	got := batchStatus{row.State, s.place(row.Head, id), s.counts(id),
		s.lastChange(event.Subject{Type: event.Batch, ID: id})}
	if got != want {
		s.Errorf("batch %s: %+v\nexpected %+v\n%s", id, got, want, row.Message)
	}
	if row.Live(s.now) {
		s.Errorf("batch %s is locked until %d", id, row.Until)
	}
	if row.Entered == 0 || row.Entered > s.now.UnixMilli() {
		s.Errorf("batch %s is in its state since %d", id, row.Entered)
	}
}

// place is the one place of an item in the index, without the number of its shard.
func (s *scene) place(h table.Head, id string) string {
	s.Helper()
	found := ""
	places := []string{ingest.WorkPending, ingest.WorkProvisioning, ingest.WorkParked, ingest.WorkHeld,
		ingest.WorkCleanUp, ingest.WorkFailed}
	for n := range ingest.DueShards {
		places = append(places, ingest.DuePK(n))
	}
	for _, place := range places {
		var page []struct {
			table.Head
			ID string `dynamo:"id"`
		}
		if _, err := s.Machine.Queue.Table.Page(s.Context(), table.Query{Index: "work", PK: place}, &page); err != nil {
			s.Fatal(err)
		}
		for _, item := range page {
			if item.ID != id {
				continue
			}
			if found != "" || place != h.WorkPK {
				s.Errorf("%s is in the places %s and %s; its row says %s", id, found, place, h.WorkPK)
			}
			found = place
		}
	}
	found, _, _ = strings.Cut(found, "#")
	return found
}

// counts are the numbers of jobs of a batch. They and its amounts are also what its jobs say.
func (s *scene) counts(batch string) counts {
	s.Helper()
	c, err := s.Machine.Queue.Counts(s.Context(), batch)
	if err != nil {
		s.Fatal(err)
	}
	jobs, err := s.Machine.Queue.Jobs(s.Context(), batch, 0)
	if err != nil {
		s.Fatal(err)
	}
	recount, amounts := map[ingest.Class]int64{}, ingest.Amounts{}
	for _, j := range jobs {
		recount[j.State.Class()]++
		amounts.Add(j.Amounts())
	}
	if again := (counts{Processing: recount[ingest.ClassProcessing], Held: recount[ingest.ClassHeld],
		Failed: recount[ingest.ClassFailed], Completed: recount[ingest.ClassCompleted],
		Deleted: recount[ingest.ClassDeleted], Amounts: amounts}); again != c {
		s.Errorf("the counts are %+v; there are %+v", c, again)
	}
	c.Amounts = ingest.Amounts{}
	return c
}

// locks counts the locks that a job's row names; each is owned by the job.
func (s *scene) locks(row *queue.Job) int {
	s.Helper()
	for _, name := range row.Locks {
		var lock queue.Reservation
		err := s.Machine.Queue.Table.Get(s.Context(), queue.LockKey(name), &lock)
		if err != nil || lock.Owner != row.Job.ID {
			s.Errorf("the lock %s is owned by %q, not by %s: %v", name, lock.Owner, row.Job.ID, err)
		}
	}
	for _, name := range row.LockKeys() {
		var lock queue.Reservation
		if err := s.Machine.Queue.Table.Get(s.Context(), queue.LockKey(name), &lock); err == nil &&
			lock.Owner == row.Job.ID && !slices.Contains(row.Locks, name) {
			s.Errorf("job %s owns the lock %s, which its row does not name", row.Job.ID, name)
		}
	}
	return len(row.Locks)
}

// owned reports whether a job has a row of its own in a partition of reservations.
func (s *scene) owned(pk, job string) bool {
	s.Helper()
	var row queue.Reservation
	err := s.Machine.Queue.Table.Get(s.Context(), table.Key{PK: pk, SK: job}, &row)
	if err != nil && !fault.Is(err, fault.NotFound) {
		s.Fatal(err)
	}
	return err == nil
}

// lastChange is the last change of state in the history of a subject, which has no gaps.
func (s *scene) lastChange(of event.Subject) (last string) {
	s.Helper()
	for _, e := range s.events(of) {
		var c queue.Change
		if err := json.Unmarshal([]byte(e.Detail), &c); err == nil && c.To != "" && c.From != c.To {
			last = fmt.Sprintf("%s→%s", c.From, c.To)
		}
	}
	return last
}

func (s *scene) events(of event.Subject) (all []event.Row) {
	s.Helper()
	for cursor, more := "", true; more; more = cursor != "" {
		page, err := s.Machine.Queue.Events(s.Context(), of, cursor)
		if err != nil {
			s.Fatal(err)
		}
		all, cursor = append(all, page.Items...), page.Cursor
	}
	for i, e := range all {
		if e.Version != int64(i+1) {
			s.Errorf("event %d of %v has the number %d", i+1, of, e.Version)
		}
	}
	return all
}

// locked runs until the worker of a stage has an item, and checks that it is locked meanwhile
// and free afterwards: another worker keeps its message.
func (s *scene) locked(stage string, item func() interface{ Live(time.Time) bool }) {
	s.Helper()
	st, _ := ingest.StageNamed(stage)
	seen := false
	s.hook[stage] = func(c *queue.Claim) {
		if seen {
			return
		}
		seen = true
		if !item().Live(s.now) || item().Live(s.now.Add(s.Machine.Queue.Rules.Timing.Times(st).Lease)) {
			s.Errorf("%s: the item has no lease, or one without end", stage)
		}
		m := queue.Message{Step: stage, Token: "second"}
		if c.Job != nil {
			m.Job, m.Exec, m.State = c.Job.ID, c.Job.Exec, string(c.Job.State)
		} else {
			m.Batch, m.Exec = c.Batch.ID, c.Batch.Exec
		}
		other := queue.Worker{Queue: s.Machine.Queue, Stage: st,
			Step: func(context.Context, *queue.Claim) (ingest.Result, error) {
				s.Errorf("%s: two workers have the item", stage)
				return ingest.Result{}, nil
			}}
		if keep, err := other.Handle(s.Context(), m); err != nil || keep <= 0 {
			s.Errorf("%s: the message of the second worker is kept for %s, %v", stage, keep, err)
		}
	}
	s.until(func() bool { return seen })
	if item().Live(s.now) {
		s.Errorf("%s: the item is still locked", stage)
	}
}

// report is the newest report of a batch.
func (s *scene) report(id string) (r notify.Report) {
	s.Helper()
	if err := s.Stages.Work.GetJSON(s.Context(), s.batchRow(id).Report, &r); err != nil {
		s.Fatal(err)
	}
	return r
}

// workFiles counts the work files of a job.
func (s *scene) workFiles(job string) (n int) {
	s.Helper()
	err := s.Stages.Work.List(s.Context(), workspace.Prefix(job), func(bucket.Listed) error { n++; return nil })
	if err != nil {
		s.Fatal(err)
	}
	return n
}
