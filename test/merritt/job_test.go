package merritt

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/queue/queuetest"
	"archivist/pkg/ingest/stage/stagetest"
	"archivist/pkg/ingest/workspace"
	"archivist/pkg/kernel/explain"
	"archivist/pkg/kernel/fault"
)

// lockJob: a job is locked while a stage works on it.
func lockJob(stage string) func(*testing.T) {
	return func(t *testing.T) {
		s := newScene(t)
		id := ingest.JobID(s.queued(object{name: "a"}), 1)
		s.locked(stage, func() interface{ Live(time.Time) bool } { return s.Job(id) })
		s.reach(id, ingest.Completed)
	}
}

// lockGates: a waiting job has no worker, so it needs no lock of its own: only one scheduler
// at a time admits jobs, and what another one writes late is refused.
func lockGates(t *testing.T) {
	s := newScene(t)
	id := ingest.JobID(s.queued(object{name: "a"}), 1)
	other, err := s.Machine.Scheduler.Leases.Acquire(t.Context(), "clock", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Machine.Scheduler.Tick(t.Context(), true); !fault.Is(err, fault.Held) {
		t.Errorf("a second scheduler: %v", err)
	}
	if j := s.Job(id); j.State != ingest.Pending {
		t.Errorf("it admitted the job: %s", j.State)
	}
	if err := s.Machine.Scheduler.Leases.Release(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	s.reach(id, ingest.Downloading)
}

// jobQueue: jobs are admitted by their priority, then by their age. One of a collection that
// was put on hold since is held when its turn comes.
func jobQueue(t *testing.T) {
	s := newScene(t)
	s.Machine.Queue.Settings.MaxInFlight = 1
	batch := s.queued(object{name: "a"}, object{name: "b"}, object{name: "c"}, object{name: "d"})
	s.do(ingest.ActPrioritize, ingest.JobID(batch, 3), queuetest.Priority(2))
	s.do(ingest.ActPrioritize, ingest.JobID(batch, 1), queuetest.Priority(90))
	var order []int
	s.hook["estimate"] = func(c *queue.Claim) { order = append(order, c.Job.Row) }
	s.until(func() bool { return len(order) == 2 })
	s.do(ingest.ActHold, "", wholeCollection)
	s.until(func() bool { return s.counts(batch).Held == 2 })
	for _, n := range []int{1, 4} {
		if s.Job(ingest.JobID(batch, n)).State != ingest.Held {
			t.Errorf("job %d is not held", n)
		}
	}
	s.until(func() bool { return s.counts(batch).Completed == 2 }) // what has started goes on
	s.do(ingest.ActRelease, "", wholeCollection)
	for _, n := range []int{1, 4} {
		s.do(ingest.ActRelease, ingest.JobID(batch, n))
	}
	s.reachBatch(batch, ingest.BatchCompleted)
	if got := fmt.Sprint(order); got != "[3 2 4 1]" {
		t.Errorf("the order is %s", got)
	}
}

// jobPendingToFailed: a job whose payload or manifest is not what the depositor says fails for
// good: a new submission is needed. (Its manifest is read at Estimating.)
func jobPendingToFailed(t *testing.T) {
	s := newScene(t)
	s.src.set("/corrupt.checkm", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("#%checkm_0.7\n#%profile | http://uc3.cdlib.org/registry/ingest/manifest/" +
			"mrt-ingest-manifest\n#%fields | nfo:fileUrl | nfo:hashAlgorithm\nnot a URL | md5\n#%eof\n"))
	})
	corrupt := ingest.JobID(s.queued(object{name: "corrupt"}), 1)
	row, err := s.Machine.Queue.Submit(t.Context(), ingest.Batch{Collection: "bench", Mode: "add",
		Payload: ingest.Payload{URL: s.src.URL + "/other.checkm", Type: ingest.TypeObjectManifest, Filename: "other",
			Algorithm: "md5", Digest: strings.Repeat("0", 32)}}, "", nil, "me")
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{corrupt, ingest.JobID(row.Batch.ID, 1)} {
		s.reachBatch(id[:26], ingest.BatchFailed)
		s.is(id, status{state: ingest.Failed, place: ingest.WorkFailed, counts: counts{Failed: 1},
			event: "Estimating→Failed"})
		s.refused(fault.Conflict, "A new submission is needed", ingest.ActRequeue, id)
	}
}

// jobPendingToHeld: a job stays held until a person releases it.
func jobPendingToHeld(t *testing.T) {
	s := newScene(t)
	batch := s.queued(object{name: "a"}, object{name: "b"})
	first, second := ingest.JobID(batch, 1), ingest.JobID(batch, 2)
	s.do(ingest.ActHold, first) // by hand
	s.is(first, status{state: ingest.Held, place: ingest.WorkHeld, counts: counts{Processing: 1, Held: 1},
		event: "Pending→Held"})
	s.do(ingest.ActHold, "", wholeCollection) // with its collection
	s.tick()
	s.is(second, status{state: ingest.Held, place: ingest.WorkHeld, counts: counts{Held: 2}, event: "Pending→Held"})
	s.now = s.now.Add(100 * time.Hour)
	s.tick()
	s.isBatch(batch, batchStatus{ingest.BatchProcessing, "due", counts{Held: 2}, "Pending→Processing"})
}

// jobPendingToEstimating: an admitted job is Estimating, with a slot, and nothing is
// successful yet.
func jobPendingToEstimating(t *testing.T) {
	s := newScene(t)
	id := ingest.JobID(s.queued(object{name: "a"}), 1)
	s.tick()
	s.is(id, status{state: ingest.Estimating, place: "due", counts: counts{Processing: 1}, event: "Pending→Estimating"})
	if j := s.Job(id); j.Entered != s.now.UnixMilli() {
		t.Errorf("modified at %d", j.Entered)
	}
}

// jobHeldToPending: a released job is Pending again.
func jobHeldToPending(t *testing.T) {
	s := newScene(t)
	id := ingest.JobID(s.queued(object{name: "a"}), 1)
	s.do(ingest.ActHold, id)
	s.now = s.now.Add(time.Hour)
	s.do(ingest.ActRelease, id)
	s.is(id, status{state: ingest.Pending, place: ingest.WorkPending, counts: counts{Processing: 1},
		event: "Held→Pending"})
	if j := s.Job(id); j.Entered != s.now.UnixMilli() || j.Hold != nil {
		t.Errorf("modified at %d, held by %+v", j.Entered, j.Hold)
	}
	s.reach(id, ingest.Completed)
}

// estimating: the size is asked for by HEAD. A job whose size cannot be told does not fail: it
// is 0, and the job waits behind others.
func estimating(t *testing.T) {
	s := newScene(t)
	s.src.set("/a.txt", func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead || r.Header.Get("Range") != "" {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		_, _ = w.Write([]byte(content(r.URL.Path)))
	})
	batch := s.queued(object{name: "a"}, object{name: "b"})
	unknown, known := ingest.JobID(batch, 1), ingest.JobID(batch, 2)
	before := s.Job(unknown).Priority
	s.reach(unknown, ingest.Provisioning)
	s.reach(known, ingest.Provisioning)
	if s.src.requests("HEAD", "/a.txt") == 0 || s.src.requests("HEAD", "/b.txt") != 1 ||
		s.src.requests("GET", "/b.txt") != 0 {
		t.Errorf("asked %v", s.src.asked)
	}
	if j := s.Job(unknown); j.SpaceNeeded != 0 || j.SizeKnown || j.Priority != before+ingest.UnknownSizePenalty {
		t.Errorf("unknown: %d bytes, known %v, priority %d", j.SpaceNeeded, j.SizeKnown, j.Priority)
	}
	if j := s.Job(known); j.SpaceNeeded < int64(len(content("/b.txt"))) || !j.SizeKnown || j.Priority != before {
		t.Errorf("known: %d bytes, known %v, priority %d", j.SpaceNeeded, j.SizeKnown, j.Priority)
	}
	s.reach(unknown, ingest.Completed)
}

// estimated: the job has its size and its priority.
func estimated(t *testing.T) {
	s := newScene(t)
	id := ingest.JobID(s.queued(object{name: "a"}), 1)
	s.reach(id, ingest.Provisioning)
	if j := s.Job(id); j.SpaceNeeded < int64(len(content("/a.txt"))) || !j.SizeKnown || j.Files != 1 ||
		j.Priority != 5 {
		t.Errorf("%d bytes of %d files, known %v, priority %d", j.SpaceNeeded, j.Files, j.SizeKnown, j.Priority)
	}
}

// jobEstimatingToProvisioning: it waits without a slot.
func jobEstimatingToProvisioning(t *testing.T) {
	s := newScene(t)
	id := ingest.JobID(s.queued(object{name: "a"}), 1)
	s.reach(id, ingest.Provisioning)
	s.is(id, status{state: ingest.Provisioning, last: ingest.Estimating, place: ingest.WorkProvisioning,
		counts: counts{Processing: 1}, event: "Estimating→Provisioning"})
}

// provisioning: every waiting job is looked at. One that does not fit waits, and others pass it;
// one of unknown size waits while little space is free.
func provisioning(t *testing.T) {
	s := newScene(t)
	head := func(size int64) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodHead && size > 0 {
				w.Header().Set("Content-Length", fmt.Sprint(size))
				return
			}
			w.WriteHeader(http.StatusInternalServerError)
		}
	}
	s.src.set("/large.txt", head(9_000_000))
	s.src.set("/unknown.txt", head(0))
	s.Machine.Queue.Settings.Space, s.Machine.Queue.Settings.Reserve = 10_000_000, 9_999_999
	s.Machine.Queue.Settings.MaxInFlight = 10
	batch := s.queued(object{name: "large"}, object{name: "unknown"}, object{name: "small"})
	large, unknown, small := ingest.JobID(batch, 1), ingest.JobID(batch, 2), ingest.JobID(batch, 3)
	s.until(func() bool { return s.Machine.Idle() && s.Job(large).State != ingest.Pending })
	s.grant(5_000_000)
	s.tick()
	for id, want := range map[string]ingest.State{large: ingest.Provisioning, unknown: ingest.Provisioning,
		small: ingest.Downloading} {
		if j := s.Job(id); j.State != want {
			t.Errorf("job %s is %s, not %s: %d bytes", id, j.State, want, j.SpaceNeeded)
		}
	}
	s.is(large, status{state: ingest.Provisioning, last: ingest.Estimating, place: ingest.WorkProvisioning,
		counts: counts{Processing: 3}, event: "Estimating→Provisioning"})
	x, err := s.Machine.Queue.ExplainJob(t.Context(), large)
	if err != nil || x.Waits != explain.Space {
		t.Errorf("%+v, %v", x, err)
	}
}

// grant gives work space to a job of another batch.
func (s *scene) grant(bytes int64) {
	s.Helper()
	row := &queue.Reservation{Owner: "other", Bytes: bytes, Collection: "other"}
	row.PK, row.SK = "SPACE", "other"
	tx := s.Machine.Queue.Table.Begin(s.Machine.Queue.NewID())
	tx.Insert(row)
	if err := tx.Commit(s.Context()); err != nil {
		s.Fatal(err)
	}
}

// jobProvisioningToDownloading: it has a slot, its space, and the locks that are known.
func jobProvisioningToDownloading(t *testing.T) {
	s := newScene(t)
	batch := s.queued(object{name: "a"}, object{name: "b", ark: stagetest.OnShoulder("fk4bbb002")})
	for n, locks := range []int{1, 2} { // the local id; and the ARK
		id := ingest.JobID(batch, n+1)
		s.reach(id, ingest.Downloading)
		s.is(id, status{state: ingest.Downloading, last: ingest.Provisioning, place: "due", locks: locks,
			counts: counts{Processing: 2}, event: "Provisioning→Downloading"})
		if j := s.Job(id); !j.HasSpace {
			t.Errorf("job %s has no space", id)
		}
	}
}

// downloading: each file is fetched, again if that fails, and kept in the work folder. Its
// digest is compared, and the job's space is corrected if the estimate was wrong.
func downloading(t *testing.T) {
	s := newScene(t)
	fails := 1
	s.src.set("/a.txt", func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodHead:
			w.Header().Set("Content-Length", "7") // it is wrong
		case fails > 0:
			fails--
			w.WriteHeader(http.StatusInternalServerError)
		default:
			_, _ = w.Write([]byte(content("/a.txt")))
		}
	})
	batch := s.queued(object{name: "a"}, object{name: "b", digest: strings.Repeat("0", 32)})
	id, wrong := ingest.JobID(batch, 1), ingest.JobID(batch, 2)
	s.reach(id, ingest.Downloading)
	said := s.Job(id).SpaceNeeded
	s.reach(id, ingest.Processing)
	j := s.Job(id)
	if n := int64(len(content("/a.txt"))); j.Bytes != n || j.SpaceNeeded <= said || s.spaceOf(id) != j.SpaceNeeded {
		t.Errorf("%d bytes; space needed %d, was %d, granted %d", j.Bytes, j.SpaceNeeded, said, s.spaceOf(id))
	}
	if s.src.requests("GET", "/a.txt") != 2 {
		t.Errorf("asked %v", s.src.asked)
	}
	if data, _, err := s.Stages.Work.Read(t.Context(), workspace.FileKey(id, 0)); err != nil ||
		string(data) != content("/a.txt") {
		t.Errorf("%q, %v", data, err)
	}
	s.reach(wrong, ingest.Failed)
	if j := s.Job(wrong); !j.NotRecoverable || !strings.Contains(j.Message, "md5") {
		t.Errorf("%+v", j.Job)
	}
}

// spaceOf is the space that a job has.
func (s *scene) spaceOf(id string) int64 {
	s.Helper()
	var row queue.Reservation
	k := row.Key()
	k.PK, k.SK = "SPACE", id
	if err := s.Machine.Queue.Table.Get(s.Context(), k, &row); err != nil {
		s.Fatal(err)
	}
	return row.Bytes
}

// jobDownloadingToProcessing: the download is successful.
func jobDownloadingToProcessing(t *testing.T) {
	s := newScene(t)
	id := ingest.JobID(s.queued(object{name: "a"}), 1)
	s.reach(id, ingest.Processing)
	s.is(id, status{state: ingest.Processing, last: ingest.Downloading, place: "due", locks: 1,
		counts: counts{Processing: 1}, event: "Downloading→Processing"})
}

// processing: the object is found by its local id, or an ARK is minted and kept before it is
// used: a job that starts again has the same. An ARK that is not that of the local id is
// refused.
func processing(t *testing.T) {
	s := newScene(t)
	id := ingest.JobID(s.queued(object{name: "a"}), 1)
	s.reach(id, ingest.Storing)
	minted := s.Job(id).Primary
	if !strings.HasPrefix(minted, "ark:/99999/fk4") {
		t.Errorf("minted %q", minted)
	}
	s.do(ingest.ActFail, id)
	s.do(ingest.ActRequeue, id)
	s.reach(id, ingest.Completed)
	if j := s.Job(id); j.Primary != minted || j.ObjectVersion != 1 || j.LocalIDs[0] != "a" {
		t.Errorf("%+v", j.Job)
	}

	batch := s.queued(object{name: "again", local: "a"},
		object{name: "other", local: "a", ark: stagetest.OnShoulder("fk4bbb009")})
	again, other := ingest.JobID(batch, 1), ingest.JobID(batch, 2)
	s.reach(again, ingest.Completed)
	if j := s.Job(again); j.Primary != minted || j.ObjectVersion != 2 {
		t.Errorf("found %s v%d", j.Primary, j.ObjectVersion)
	}
	s.reach(other, ingest.Failed)
	if j := s.Job(other); !j.NotRecoverable || j.ObjectVersion != 0 {
		t.Errorf("%+v", j.Job)
	}
}

// jobProcessingToRecording: between them, the version is committed in the storage, which is a
// state of its own here.
func jobProcessingToRecording(t *testing.T) {
	s := newScene(t)
	id := ingest.JobID(s.queued(object{name: "a"}), 1)
	s.reach(id, ingest.Storing)
	s.is(id, status{state: ingest.Storing, last: ingest.Processing, place: "due", locks: 2,
		counts: counts{Processing: 1}, event: "Processing→Storing"})
	s.reach(id, ingest.Recording)
	s.is(id, status{state: ingest.Recording, last: ingest.Storing, place: "due", locks: 2,
		counts: counts{Processing: 1}, event: "Storing→Recording"})
	if head, err := s.Stages.Root.Head(t.Context(), s.Job(id).Primary); err != nil || head.Head != 1 {
		t.Errorf("%+v, %v", head, err)
	}
}

// recording: an object is found by its ARK and by its local id before anybody is told that it
// is preserved.
func recording(t *testing.T) {
	s := newScene(t)
	id := ingest.JobID(s.queued(object{name: "a"}), 1)
	s.reach(id, ingest.Recording)
	ark := s.Job(id).Primary
	if _, err := s.Stages.Inventory.Object(t.Context(), ark); !fault.Is(err, fault.NotFound) {
		t.Errorf("recorded before: %v", err)
	}
	s.reach(id, ingest.Notify)
	object, err := s.Stages.Inventory.Object(t.Context(), ark)
	if err != nil || object.ARK != ark {
		t.Errorf("%+v, %v", object, err)
	}
	if found, err := s.Stages.Inventory.ByLocalID(t.Context(), "bench", "a"); err != nil || found != ark {
		t.Errorf("found %s, %v", found, err)
	}
	if len(*s.mails) != 1 {
		t.Errorf("sent %q", *s.mails)
	}
}

// jobRecordingToNotify: the locks of the object are free.
func jobRecordingToNotify(t *testing.T) {
	s := newScene(t)
	id := ingest.JobID(s.queued(object{name: "a"}), 1)
	s.reach(id, ingest.Notify)
	s.is(id, status{state: ingest.Notify, last: ingest.Recording, place: "due", counts: counts{Processing: 1},
		event: "Recording→Notify"})
}

// jobNotifyToCompleted: the job has ended, and its batch knows.
func jobNotifyToCompleted(t *testing.T) {
	s := newScene(t)
	batch := s.queued(object{name: "a"})
	id := ingest.JobID(batch, 1)
	s.reach(id, ingest.Completed)
	s.is(id, status{state: ingest.Completed, last: ingest.Notify, counts: counts{Completed: 1},
		event: "Notify→Completed"})
	s.isBatch(batch, batchStatus{ingest.BatchReporting, "due", counts{Completed: 1}, "Processing→Reporting"})
}

// jobCompletedCleaned: the work folder of a completed job is removed. What a report needs stays.
func jobCompletedCleaned(t *testing.T) {
	s := newScene(t)
	batch := s.queued(object{name: "a"})
	id := ingest.JobID(batch, 1)
	s.reach(id, ingest.Notify)
	if s.workFiles(id) == 0 {
		t.Error("it has no work files before")
	}
	s.reachBatch(batch, ingest.BatchCompleted)
	s.is(id, status{state: ingest.Completed, last: ingest.Notify, counts: counts{Completed: 1},
		event: "Notify→Completed"})
	if n := s.workFiles(id); n != 0 {
		t.Errorf("%d work files are left", n)
	}
	if r := s.report(batch); len(r.Completed) != 1 || r.Completed[0].ARK != s.Job(id).Primary {
		t.Errorf("%+v", r)
	}
}

// jobFailedToDeleted: while the batch is not finished, the person has to confirm. The work
// folder is removed with the job's space.
func jobFailedToDeleted(t *testing.T) {
	s := newScene(t)
	s.src.set("/a.txt", status404)
	batch := s.queued(object{name: "a"}, object{name: "b"})
	id := ingest.JobID(batch, 1)
	s.do(ingest.ActHold, ingest.JobID(batch, 2)) // the batch is not finished
	s.reach(id, ingest.Failed)
	s.refused(fault.Conflict, "confirm", ingest.ActDelete, id)
	s.do(ingest.ActDelete, id, queuetest.Confirmed)
	s.is(id, status{state: ingest.Deleted, last: ingest.Provisioning, place: ingest.WorkCleanUp,
		counts: counts{Deleted: 1, Held: 1}, event: "Failed→Deleted"})
	s.now = s.now.Add(time.Hour)
	s.tick()
	s.is(id, status{state: ingest.Deleted, last: s.Job(id).LastSuccessful, counts: counts{Deleted: 1, Held: 1},
		event: "Failed→Deleted"})
	if n := s.workFiles(id); n != 0 {
		t.Errorf("%d work files are left", n)
	}
	s.refused(fault.Conflict, "Deleted", ingest.ActRequeue, id)
}

// jobHeldToDeleted: a held job is given up. Its batch does not wait for it any more.
func jobHeldToDeleted(t *testing.T) {
	s := newScene(t)
	batch := s.queued(object{name: "a"}, object{name: "b"})
	id := ingest.JobID(batch, 1)
	s.do(ingest.ActHold, id)
	s.reach(ingest.JobID(batch, 2), ingest.Completed)
	s.refused(fault.Conflict, "confirm", ingest.ActDelete, id)
	s.do(ingest.ActDelete, id, queuetest.Confirmed)
	s.is(id, status{state: ingest.Deleted, counts: counts{Deleted: 1, Completed: 1}, event: "Held→Deleted"})
	s.reachBatch(batch, ingest.BatchCompleted)
	if r := s.report(batch); len(r.Deleted) != 1 || r.Deleted[0].Job != id {
		t.Errorf("%+v", r)
	}
}
