package merritt

import (
	"slices"
	"strings"
	"testing"
	"time"

	"archivist/pkg/events/event"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/queue/queuetest"
	"archivist/pkg/ingest/stage/stagetest"
	"archivist/pkg/kernel/explain"
	"archivist/pkg/kernel/fault"
)

// three are the objects of the text: of the third, the depositor knows the ARK.
var three = []object{{name: "loc001"}, {name: "loc002"}, {name: "loc003", ark: stagetest.OnShoulder("fk4aaa003")}}

// numbers: the ids of batches rise, and those of jobs follow from their batch and row.
func numbers(t *testing.T) {
	s := newScene(t)
	first, second := s.queued(object{name: "a"}, object{name: "b"}), s.queued(object{name: "c"})
	if first >= second {
		t.Errorf("batch %s was submitted before %s", first, second)
	}
	for n, want := range []string{first + "-00001", first + "-00002"} {
		if j := s.Job(want); j.Row != n+1 || j.Batch != first {
			t.Errorf("job %s is row %d of %s", want, j.Row, j.Batch)
		}
	}
	if !ingest.SubmittedAfter(ingest.JobID(second, 1), ingest.JobID(first, 2)) {
		t.Error("the order of jobs is not that of their submission")
	}
}

// jobCreation: a new job is in the list of jobs, in its batch's counts and in the job queue. A
// change moves it in all three at once.
func jobCreation(t *testing.T) {
	s := newScene(t)
	id := ingest.JobID(s.queued(three...), 1)
	s.is(id, status{state: ingest.Pending, place: ingest.WorkPending, counts: counts{Processing: 3}, event: "→Pending"})
	if row := s.Job(id); !strings.HasPrefix(row.Head.WorkSK, "015#") || row.Priority != 15 {
		t.Errorf("its place is %s, its priority %d", row.Head.WorkSK, row.Priority)
	}
	s.tick()
	s.is(id, status{state: ingest.Estimating, place: "due", counts: counts{Processing: 3}, event: "Pending→Estimating"})
}

// deadWorker: the lock of a worker that dies is free after a while; what the worker still writes
// is refused.
func deadWorker(t *testing.T) {
	s := newScene(t)
	id := ingest.JobID(s.queued(object{name: "a"}), 1)
	s.reach(id, ingest.Estimating)
	hung := true
	s.hook["estimate"] = func(c *queue.Claim) {
		if !hung {
			return
		}
		hung = false
		s.now = s.now.Add(s.Machine.Queue.Rules.Timing.Times(ingest.Stage{}).Lease + time.Second)
		stage, _ := ingest.StageNamed("estimate")
		m := queue.Message{Job: id, Exec: c.Job.Exec, State: string(c.Job.State)}
		w := queue.Worker{Queue: s.Machine.Queue, Stage: stage, Step: s.Stages.Steps()["estimate"]}
		if keep, err := w.Handle(s.Context(), m); err != nil || keep != 0 {
			t.Errorf("the second worker: %s, %v", keep, err)
		}
		s.broken["estimate"] = "the first worker comes too late"
	}
	s.one()
	s.is(id, status{state: ingest.Provisioning, last: ingest.Estimating, place: ingest.WorkProvisioning,
		counts: counts{Processing: 1}, event: "Estimating→Provisioning"})
}

// lockBatch: a batch is locked while a stage works on it.
func lockBatch(stage string) func(*testing.T) {
	return func(t *testing.T) {
		s := newScene(t)
		id := s.submit(object{name: "a"})
		s.locked(stage, func() interface{ Live(time.Time) bool } { return s.batchRow(id) })
	}
}

// daemons: each consumer of the text is a stage or a gate here.
func daemons(t *testing.T) {
	for consumer, want := range map[ingest.BatchState]string{ingest.BatchPending: "unpack",
		ingest.BatchReporting: "report", ingest.BatchUpdateReporting: "report"} {
		if st, ok := ingest.StageOfBatch(consumer); !ok || st.Name != want {
			t.Errorf("batch %s: %+v", consumer, st)
		}
	}
	for consumer, want := range map[ingest.State]string{ingest.Estimating: "estimate", ingest.Downloading: "download",
		ingest.Processing: "process", ingest.Recording: "record", ingest.Notify: "notify"} {
		if st, ok := ingest.StageOf(consumer); !ok || st.Name != want {
			t.Errorf("job %s: %+v", consumer, st)
		}
	}
	s := newScene(t) // the gates: Job Pending, Job Provisioning
	id := ingest.JobID(s.queued(object{name: "a"}), 1)
	s.reach(id, ingest.Provisioning)
	s.tick()
	if j := s.Job(id); j.State != ingest.Downloading {
		t.Errorf("after the gates, the job is %s", j.State)
	}
}

// submission: a call makes a batch with the URL of its payload, and nothing else.
func submission(t *testing.T) {
	s := newScene(t)
	id := s.submit(three...)
	s.isBatch(id, batchStatus{ingest.BatchPending, "due", counts{}, "→Pending"})
	if row := s.batchRow(id); row.Unpacked != 0 || row.Expected != 0 || row.Sealed {
		t.Errorf("%+v", row.Batch)
	}
	if n := s.src.requests("GET", "/batch/0"); n != 0 {
		t.Errorf("the payload was fetched %d times", n)
	}
	if m := s.Machine.Last(); m.Batch != id || m.Step != "unpack" {
		t.Errorf("started %+v", m)
	}
}

// submissionInput: the batch keeps what the depositor submits.
func submissionInput(t *testing.T) {
	s := newScene(t)
	in := ingest.Batch{Collection: "bench", Submitter: "submitter", Mode: "add", Note: "a note",
		Payload:  ingest.Payload{URL: s.src.URL + "/batch/0", Type: ingest.TypeBatchManifest, Filename: "b.checkm"},
		Metadata: ingest.Metadata{Who: "author", What: "title", When: "date", Where: "place"}}
	row, err := s.Machine.Queue.Submit(t.Context(), in, "", nil, "me")
	if err != nil {
		t.Fatal(err)
	}
	if got := s.batchRow(row.Batch.ID); got.Collection != in.Collection || got.Submitter != in.Submitter ||
		got.Mode != in.Mode || got.Note != in.Note || got.Payload != in.Payload || got.Metadata != in.Metadata {
		t.Errorf("%+v", got.Batch)
	}
}

// pendingBatches: only a batch that is Pending is unpacked, however often it is asked for.
func pendingBatches(t *testing.T) {
	s := newScene(t)
	id := s.submit(three...)
	m := s.Machine.Last()
	s.one()
	before := s.src.requests("GET", "/batch/0")
	stage, _ := ingest.StageNamed("unpack")
	w := queue.Worker{Queue: s.Machine.Queue, Stage: stage, Step: s.Stages.Steps()["unpack"]}
	m.Token = ""
	if _, err := w.Handle(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if s.src.requests("GET", "/batch/0") != before {
		t.Error("the batch was unpacked twice")
	}
	s.isBatch(id, batchStatus{ingest.BatchProcessing, "due", counts{Processing: 3}, "Pending→Processing"})
}

// unpacking: a batch has a job for each object, however it is submitted, and the depositor is
// told that it is queued.
func unpacking(t *testing.T) {
	s := newScene(t)
	id := s.queued(three...)
	if c := s.counts(id); c != (counts{Processing: 3}) {
		t.Errorf("%+v", c)
	}
	if len(*s.mails) != 1 || !strings.Contains((*s.mails)[0], "3 objects queued") {
		t.Errorf("sent %q", *s.mails)
	}
	for _, one := range []ingest.Payload{
		{URL: s.src.URL + "/single.txt", Type: ingest.TypeFile, Filename: "single.txt"},
		{URL: s.src.URL + "/loc001.checkm", Type: ingest.TypeObjectManifest, Filename: "loc001.checkm"}} {
		in := ingest.Batch{Collection: "bench", Mode: "add", Payload: one}
		row, err := s.Machine.Queue.Submit(t.Context(), in, "", nil, "me")
		if err != nil {
			t.Fatal(err)
		}
		s.reachBatch(row.Batch.ID, ingest.BatchProcessing)
		j := s.Job(ingest.JobID(row.Batch.ID, 1))
		if j.Payload.Type != one.Type || s.batchRow(row.Batch.ID).Unpacked != 1 {
			t.Errorf("%s: %+v", one.Type, j.Payload)
		}
	}
}

// batchPendingToHeld: a batch of a collection on hold is held before it is unpacked.
func batchPendingToHeld(t *testing.T) {
	s := newScene(t)
	s.do(ingest.ActHold, "", wholeCollection)
	id := s.submit(three...)
	s.one()
	s.isBatch(id, batchStatus{ingest.BatchHeld, ingest.WorkHeld, counts{}, "Pending→Held"})
	if n := s.src.requests("GET", "/batch/0"); n != 0 || s.batchRow(id).Unpacked != 0 {
		t.Errorf("the payload was fetched %d times", n)
	}
	s.now = s.now.Add(48 * time.Hour)
	s.tick()
	s.isBatch(id, batchStatus{ingest.BatchHeld, ingest.WorkHeld, counts{}, "Pending→Held"}) // until a person acts
	x, err := s.Machine.Queue.ExplainBatch(t.Context(), id)
	if err != nil || x.Waits != explain.Hold || !strings.Contains(x.Why, "a test") {
		t.Errorf("%+v, %v", x, err)
	}
}

// batchHeldToPending: a release is refused while the collection is on hold. Afterwards the
// batch is unpacked.
func batchHeldToPending(t *testing.T) {
	s := newScene(t)
	s.do(ingest.ActHold, "", wholeCollection)
	id := s.submit(three...)
	s.one()
	s.refused(fault.Held, "collection bench", ingest.ActRelease, id)
	s.do(ingest.ActRelease, "", wholeCollection)
	s.isBatch(id, batchStatus{ingest.BatchHeld, ingest.WorkHeld, counts{}, "Pending→Held"})
	s.do(ingest.ActRelease, id)
	s.isBatch(id, batchStatus{ingest.BatchPending, "due", counts{}, "Held→Pending"})
	s.one()
	s.isBatch(id, batchStatus{ingest.BatchProcessing, "due", counts{Processing: 3}, "Pending→Processing"})
}

// batchPendingToProcessing: an unpacked batch is Processing, free, and has all its jobs among
// those in progress.
func batchPendingToProcessing(t *testing.T) {
	s := newScene(t)
	id := s.queued(three...)
	s.isBatch(id, batchStatus{ingest.BatchProcessing, "due", counts{Processing: 3}, "Pending→Processing"})
	if row := s.batchRow(id); row.Expected != 3 || !row.Sealed {
		t.Errorf("%+v", row.Batch)
	}
	for n := 1; n <= 3; n++ {
		s.is(ingest.JobID(id, n), status{state: ingest.Pending, place: ingest.WorkPending,
			counts: counts{Processing: 3}, event: "→Pending"})
	}
}

// jobDetails: a job knows its batch, its submitter, its payload and its identifiers.
func jobDetails(t *testing.T) {
	s := newScene(t)
	id := s.queued(three...)
	for n, o := range three {
		j := s.Job(ingest.JobID(id, n+1))
		if j.Batch != id || j.Collection != "bench" || j.Submitter != "submitter" || j.Mode != "add" ||
			j.URL != s.src.URL+"/"+o.name+".checkm" || !slices.Equal(j.LocalIDs, []string{o.name}) ||
			j.Primary != o.ark || j.What != "Title of "+o.name || j.Created != s.now.UnixMilli() {
			t.Errorf("%+v", j.Job)
		}
	}
}

// batchProcessingToReporting: the end of the last job moves the batch on, not that of another.
func batchProcessingToReporting(t *testing.T) {
	s := newScene(t)
	s.src.set("/b.txt", status404)
	id := s.queued(object{name: "a"}, object{name: "b"})
	s.Machine.Queue.Settings.MaxInFlight = 1
	s.until(func() bool { return s.counts(id).Open() == 1 })
	s.isBatch(id, batchStatus{ingest.BatchProcessing, "due", s.counts(id), "Pending→Processing"})
	s.until(func() bool { return s.counts(id).Open() == 0 })
	s.isBatch(id, batchStatus{ingest.BatchReporting, "due", counts{Completed: 1, Failed: 1}, "Processing→Reporting"})
	if m := s.Machine.Last(); m.Batch != id || m.Step != "report" {
		t.Errorf("started %+v", m)
	}
}

// reported runs a batch with a completed and a failed job to its report.
func (s *scene) reported() string {
	s.Helper()
	s.src.set("/b.txt", status404)
	id := s.queued(object{name: "a"}, object{name: "b"})
	s.reachBatch(id, ingest.BatchFailed)
	return id
}

// reporting: the report lists the jobs that succeeded and those that failed. It is kept for the
// next report, and sent to the depositor.
func reporting(t *testing.T) {
	s := newScene(t)
	id := s.reported()
	r := s.report(id)
	if len(r.Failed) != 1 || len(r.Completed) != 1 || r.Failed[0].Job != ingest.JobID(id, 2) ||
		r.Completed[0].Job != ingest.JobID(id, 1) || r.Completed[0].ARK == "" ||
		!strings.Contains(r.Failed[0].Message, "404") || r.At != ingest.Timestamp(s.reportedAt(id)) {
		t.Errorf("%+v", r)
	}
	if len(*s.mails) != 2 || !strings.Contains((*s.mails)[1], "1 of 2 objects failed: "+id) {
		t.Errorf("sent %q", *s.mails)
	}
}

// reportedAt is when a batch entered Reporting.
func (s *scene) reportedAt(id string) int64 {
	s.Helper()
	var at int64
	for _, e := range s.events(event.Subject{Type: event.Batch, ID: id}) {
		if strings.Contains(e.Detail, `"to":"Reporting"`) {
			at = e.Time
		}
	}
	return at
}

// batchReportingToCompleted: a batch whose jobs are all completed is Completed.
func batchReportingToCompleted(t *testing.T) {
	s := newScene(t)
	id := s.queued(three...)
	s.reachBatch(id, ingest.BatchReporting)
	s.one()
	s.isBatch(id, batchStatus{ingest.BatchCompleted, "", counts{Completed: 3}, "Reporting→Completed"})
	if row := s.batchRow(id); row.Report == "" || row.LastReport() != 1 {
		t.Errorf("%+v", row.Batch)
	}
}

// batchReportingToFailed: a batch with a failed job is Failed, and waits for a person.
func batchReportingToFailed(t *testing.T) {
	s := newScene(t)
	id := s.reported()
	s.isBatch(id, batchStatus{ingest.BatchFailed, "", counts{Completed: 1, Failed: 1}, "Reporting→Failed"})
	x, err := s.Machine.Queue.ExplainBatch(t.Context(), id)
	if err != nil || x.Waits != explain.Person || !strings.Contains(x.Why, "Failed jobs: 1 of 2") {
		t.Errorf("%+v, %v", x, err)
	}
}

// fixed requeues the failed job of a reported batch, whose source is corrected, and runs it to
// its end. The batch stays Failed.
func (s *scene) fixed(id string) {
	s.Helper()
	s.src.set("/b.txt", nil)
	job := ingest.JobID(id, 2)
	s.do(ingest.ActRequeue, job)
	s.reach(job, ingest.Completed)
	s.isBatch(id, batchStatus{ingest.BatchFailed, "", counts{Completed: 2}, "Reporting→Failed"})
}

// batchFailedToUpdateReporting: an operator ends the troubleshooting. That is refused while a
// job is open.
func batchFailedToUpdateReporting(t *testing.T) {
	s := newScene(t)
	id := s.reported()
	s.do(ingest.ActRequeue, ingest.JobID(id, 2))
	s.refused(fault.Conflict, "Jobs that have not ended: 1 of 2", ingest.ActUpdateReport, id)
	s.reach(ingest.JobID(id, 2), ingest.Failed)
	did := s.do(ingest.ActUpdateReport, id)
	if did.From != "Failed" || did.To != "UpdateReporting" {
		t.Errorf("%+v", did)
	}
	s.isBatch(id, batchStatus{ingest.BatchUpdateReporting, "due", counts{Completed: 1, Failed: 1},
		"Failed→UpdateReporting"})
}

// lockUpdateReporting: a batch is locked while it reports again.
func lockUpdateReporting(t *testing.T) {
	s := newScene(t)
	id := s.reported()
	s.do(ingest.ActUpdateReport, id)
	s.locked("report", func() interface{ Live(time.Time) bool } { return s.batchRow(id) })
}

// updateReporting: the next report has the jobs that succeeded since the last one, and those
// that still fail. It is saved, and the earlier one stays.
func updateReporting(t *testing.T) {
	s := newScene(t)
	s.src.set("/b.txt", status404)
	s.src.set("/c.txt", status404)
	id := s.queued(object{name: "a"}, object{name: "b"}, object{name: "c"})
	s.reachBatch(id, ingest.BatchFailed)
	first := s.report(id)
	s.src.set("/b.txt", nil)
	s.do(ingest.ActRequeue, ingest.JobID(id, 2))
	s.reach(ingest.JobID(id, 2), ingest.Completed)
	s.do(ingest.ActUpdateReport, id)
	s.reachBatch(id, ingest.BatchFailed)
	r := s.report(id)
	if r.Number != 2 || r.Since != first.At || r.Changes == nil || r.Changes.NowPreserved != 1 ||
		r.Changes.StillFailed != 1 || len(r.Completed) != 2 || r.Completed[0].Change != "" ||
		r.Completed[1].Change != "now preserved" || r.Failed[0].Change != "still failed" {
		t.Errorf("%+v, %+v", r, r.Changes)
	}
	if last := (*s.mails)[len(*s.mails)-1]; len(*s.mails) != 3 ||
		!strings.Contains(last, "Update: 1 now preserved, 1 still failed: "+id) {
		t.Errorf("sent %q", *s.mails)
	}
}

// batchUpdateReportingToCompleted: a batch without failed jobs is Completed.
func batchUpdateReportingToCompleted(t *testing.T) {
	s := newScene(t)
	id := s.reported()
	s.fixed(id)
	s.do(ingest.ActUpdateReport, id)
	s.one()
	s.isBatch(id, batchStatus{ingest.BatchCompleted, "", counts{Completed: 2}, "UpdateReporting→Completed"})
	if last := (*s.mails)[len(*s.mails)-1]; len(*s.mails) != 3 || !strings.Contains(last, "Update: 1 now preserved") {
		t.Errorf("sent %q", *s.mails)
	}
}

// batchUpdateReportingToFailed: a batch with a failed job is Failed again. No mail says that
// nothing has changed.
func batchUpdateReportingToFailed(t *testing.T) {
	s := newScene(t)
	id := s.reported()
	s.do(ingest.ActUpdateReport, id)
	s.one()
	s.isBatch(id, batchStatus{ingest.BatchFailed, "", counts{Completed: 1, Failed: 1}, "UpdateReporting→Failed"})
	if len(*s.mails) != 2 {
		t.Errorf("sent %q", *s.mails)
	}
	events := s.events(event.Subject{Type: event.Batch, ID: id})
	if last := events[len(events)-1]; !strings.Contains(last.Detail, "since the earlier report: 1 still failed") {
		t.Errorf("the last event is %s", last.Detail)
	}
}

// gone runs the sweep until the rows of a batch and of its jobs are removed. Their histories
// stay.
func (s *scene) gone(id string, jobs int, last string) {
	s.Helper()
	for range 10 {
		s.now = s.now.Add(time.Hour)
		s.tick()
	}
	if _, err := s.Machine.Queue.Batch(s.Context(), id); !fault.Is(err, fault.NotFound) {
		s.Errorf("the batch: %v", err)
	}
	if change := s.lastChange(event.Subject{Type: event.Batch, ID: id}); change != last {
		s.Errorf("the last change of the batch is %s", change)
	}
	for n := 1; n <= jobs; n++ {
		job := ingest.JobID(id, n)
		if _, err := s.Machine.Queue.Job(s.Context(), job); !fault.Is(err, fault.NotFound) {
			s.Errorf("job %s: %v", job, err)
		}
		if len(s.events(event.Subject{Type: event.Job, ID: job})) == 0 {
			s.Errorf("job %s has no history any more", job)
		}
		if left := s.workFiles(job); left != 0 {
			s.Errorf("job %s has %d work files", job, left)
		}
		for _, pk := range []string{"SLOT", "SPACE"} {
			if s.owned(pk, job) {
				s.Errorf("job %s still owns %s", job, pk)
			}
		}
	}
}

// batchFailedToDeleted: a failed batch is deleted with its jobs, after the person has confirmed
// it.
func batchFailedToDeleted(t *testing.T) {
	s := newScene(t)
	id := s.reported()
	s.refused(fault.Conflict, "confirm", ingest.ActDelete, id)
	s.do(ingest.ActDelete, id, queuetest.Confirmed)
	if row := s.batchRow(id); row.State != ingest.BatchDeleted {
		t.Errorf("the batch is %s", row.State)
	}
	s.gone(id, 2, "Failed→Deleted")
	if c := s.lastChange(event.Subject{Type: event.Job, ID: ingest.JobID(id, 2)}); c != "Failed→Deleted" {
		t.Errorf("the last change of the failed job is %s", c)
	}
}

// batchHeldToDeleted: a held batch is deleted after the person has confirmed that the depositor
// is not told.
func batchHeldToDeleted(t *testing.T) {
	s := newScene(t)
	s.do(ingest.ActHold, "", wholeCollection)
	id := s.submit(three...)
	s.one()
	s.refused(fault.Conflict, "the depositor is not notified", ingest.ActDelete, id)
	s.do(ingest.ActDelete, id, queuetest.Confirmed)
	s.gone(id, 0, "Held→Deleted")
	if len(*s.mails) != 0 {
		t.Errorf("sent %q", *s.mails)
	}
}

// batchCompletedCleanup: the rows of a completed batch are removed after their retention.
func batchCompletedCleanup(t *testing.T) {
	s := newScene(t)
	s.Machine.Queue.Rules.Retention = 24 * time.Hour
	id := s.queued(three...)
	s.reachBatch(id, ingest.BatchCompleted)
	s.isBatch(id, batchStatus{ingest.BatchCompleted, ingest.WorkCleanUp, counts{Completed: 3}, "Reporting→Completed"})
	s.now = s.now.Add(23 * time.Hour)
	s.tick()
	s.isBatch(id, batchStatus{ingest.BatchCompleted, ingest.WorkCleanUp, counts{Completed: 3}, "Reporting→Completed"})
	s.gone(id, 3, "Completed→Deleted")
}
