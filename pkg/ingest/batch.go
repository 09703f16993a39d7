package ingest

import (
	"cmp"
	"strings"
	"time"

	"archivist/pkg/events/envelope"
	"archivist/pkg/kernel/fault"
)

// Batch is one submission.
type Batch struct {
	ID         string `dynamo:"id"`
	Collection string `dynamo:"coll"`
	Submitter  string `dynamo:"submitter,omitempty"`
	// By is who submitted it by their token; "" if nobody was identified. Submitter is what the submission says.
	By      string     `dynamo:"submitted_by,omitempty"`
	Mode    string     `dynamo:"ingest_mode"`
	State   BatchState `dynamo:"batch_state"`
	Created int64      `dynamo:"created"`
	Note    string     `dynamo:"note,omitempty"`
	Payload
	Metadata
	Primary  string   `dynamo:"ark,omitempty"`
	LocalIDs []string `dynamo:"local_ids,omitempty"`
	// Withdrawn are the local ids that a correction takes away.
	Withdrawn []string `dynamo:"withdrawn_ids,omitempty"`
	Policy    Policy   `dynamo:"access,omitempty"`        // see Job.Policy
	LastDay   string   `dynamo:"retain_until,omitempty"`  // see Job.LastDay
	Related   []string `dynamo:"related_locks,omitempty"` // see Job.Related
	// InLine: since its submission the batch has the places in line of its only job. A batch
	// of an earlier release has none.
	InLine bool `dynamo:"in_line,omitempty"`
	// AsManifest: since its submission the batch has a place among the manifests of its depositor in its
	// collection, until all of its rows are jobs. It can name any object.
	AsManifest bool `dynamo:"in_manifest_line,omitempty"`
	// Behind: see Job.Behind.
	Behind bool  `dynamo:"behind_manifest,omitempty"`
	Hold   *Hold `dynamo:"held_by,omitempty"` // of a Held batch: what stops it
	Work
	Unpacked   int      `dynamo:"unpacked"` // jobs made so far
	Expected   int      `dynamo:"expected"` // jobs in all, once the first are made
	Sealed     bool     `dynamo:"sealed"`
	Message    string   `dynamo:"message,omitempty"`
	Warnings   []string `dynamo:"warnings,omitempty"`   // of its manifest
	Begins     string   `dynamo:"begins,omitempty"`     // warns that its collection is new
	Incomplete string   `dynamo:"incomplete,omitempty"` // why not all of its rows became jobs
	Report     string   `dynamo:"report,omitempty"`     // key of the newest saved report
	Reports    int      `dynamo:"reports,omitempty"`    // see LastReport
	Changes    int      `dynamo:"changes,omitempty"`    // jobs with another result than in the report before the newest
	// StopAfter is the number of failed jobs after which the batch is cancelled; 0 = never. Those that a
	// person has stopped do not count.
	StopAfter int       `dynamo:"stop_after,omitempty"`
	Cancelled *Decision `dynamo:"cancelled,omitempty"` // by whom and why it was cancelled
	// Removal is by whom and why the batch was deleted; nil if its retention has ended.
	Removal   *Decision `dynamo:"removal,omitempty"`
	IfVersion int       `dynamo:"if_version,omitempty"`
	// Cause is the event because of which the batch was submitted; nil: none. Its jobs have it, too.
	Cause *envelope.Cause `dynamo:"caused_by,omitempty"`
	Mail  []string        `dynamo:"mail,omitempty"` // recipients of the mails about it
	// Callback is the URL that the submission wants called for each preserved job, beside that of the profile; "" =
	// none. Once all jobs are preserved, it has no secrets.
	Callback string `dynamo:"batch_callback,omitempty"`
	// Mails are the results of the mails that were sent or given up.
	Mails []MailResult `dynamo:"mails_ended,omitempty"`
}

// Depositor is the name by which people find it: what the submission says, else who was identified.
func (b *Batch) Depositor() string { return Cut(cmp.Or(b.Submitter, b.By), MaxSubmitter) }

// Actor is who the events of the batch say has caused them.
func (b *Batch) Actor() string { return cmp.Or(b.By, b.Submitter) }

// First is the first job of a batch of one object before it is made: the batch has its places
// in line until then, so that jobs for one object run in the order in which their submissions
// were accepted, not in that in which these are unpacked. A batch that is held, or that has
// ended, has none; nor has one whose jobs are made.
//
// Of a batch that can list many objects it stands for the manifest, as row 0.
func (b *Batch) First() Job {
	j := Job{ID: JobID(b.ID, 1), Collection: b.Collection, Submitter: b.Submitter, By: b.By, Batch: b.ID,
		Primary: b.Primary, LocalIDs: b.LocalIDs, Withdrawn: b.Withdrawn, Related: b.Related}
	inLine := b.InLine && b.Unpacked == 0
	if b.AsManifest {
		j.ID, j.Related, inLine = JobID(b.ID, 0), []string{j.ManifestLine()}, true
	}
	if inLine && b.State == BatchPending {
		j.State = Pending
	}
	return j
}

// NothingToUpdate returns why a batch of one object cannot be an update, or "": it does not name the object.
func (b *Batch) NothingToUpdate() string {
	if b.Mode != ModeUpdate || b.Primary != "" || len(b.LocalIDs) > 0 {
		return ""
	}
	return "an update needs the ARK or a local id of its object"
}

// MayList reports whether the payload of a new batch can list objects that the submission does not name. The type
// may not be known yet.
func (b *Batch) MayList() bool {
	switch b.Payload.Type {
	case "", TypeBatchManifest, TypeSingleFileBatch, TypeContainerBatch:
		return b.ForOneObject() == ""
	}
	return false
}

// ForOneObject returns the reason why a submission cannot have a batch manifest: it has
// fields that are for one object only. It returns "" if it has none.
func (b *Batch) ForOneObject() string {
	var names []string
	if b.Primary != "" {
		names = append(names, "identifiers.primary")
	}

	if len(b.LocalIDs) > 0 {
		names = append(names, "identifiers.local")
	}

	if b.Where != "" {
		names = append(names, "metadata.where")
	}

	if b.IfVersion != 0 {
		names = append(names, "ifVersion")
	}

	if len(names) == 0 {
		return ""
	}
	// How many objects it lists is not known before its rows are read: it may be one.
	return strings.Join(names, ", ") + " name one object, but the payload is a list of objects; leave them out, " +
		"and give identifiers in the columns of the manifest"
}

// Stops returns why none of the batch's jobs starts or continues at a gate, "" if they may: it is
// cancelled, and its jobs have not ended yet. A job that is requeued after the batch has ended may.
// The gates, requeue and explain ask this; see also MayStart.
func (b *Batch) Stops() string {
	if b.Cancelled == nil || b.State != BatchPending && b.State != BatchProcessing {
		return ""
	}
	return "batch " + b.ID + " was " + b.Cancelled.String("cancelled")
}

// MayStart is Stops as a condition of the batch's row, which the transactions have that let a job
// start. Its arguments are BatchPending and BatchProcessing.
const MayStart = "attribute_not_exists(cancelled) OR (batch_state <> ? AND batch_state <> ?)"

// HasEnded reports whether nothing more happens with the batch by itself.
func (b *Batch) HasEnded() bool {
	return b.State == BatchCompleted || b.State == BatchFailed || b.State == BatchDeleted
}

// LastReport is the number of the newest saved report, from 1; 0 if there is none. A batch of
// before update-report existed has one report and no number.
func (b *Batch) LastReport() int {
	if b.Report == "" {
		return 0
	}
	return max(b.Reports, 1)
}

// CutShort returns why not everything of a submission was ingested: it was cancelled, or not
// all of its rows became jobs. It is "" for others. It is a part of the report and of its mail.
func (b *Batch) CutShort() string {
	if b.Cancelled != nil {
		return b.Cancelled.String("cancelled")
	}
	return b.Incomplete
}

// WorkKey returns the place of a batch in the index "work", "" if nothing is to be done with it.
func (b *Batch) WorkKey() (place, rank string) {
	switch b.State {
	// A batch in Processing, too: if the wake-up after its last job was lost, the sweep closes it.
	case BatchPending, BatchProcessing, BatchReporting, BatchUpdateReporting:
		return due("batch:"+b.ID, b.Due)
	case BatchHeld:
		return heldPlace("batch:"+b.ID, b.Due)
	case BatchCompleted, BatchDeleted:
		if b.Due > 0 { // when its rows are removed
			return WorkCleanUp, DueSK(b.Due) + "#batch:" + b.ID
		}
	}
	return "", ""
}

// Counts are the numbers of a batch's jobs by class. Once the batch is sealed, they add up
// to Expected.
type Counts struct {
	Processing int64 `dynamo:"n_processing" json:"processing"`
	Held       int64 `dynamo:"n_held" json:"held"`
	Failed     int64 `dynamo:"n_failed" json:"failed"`
	Completed  int64 `dynamo:"n_completed" json:"completed"`
	Deleted    int64 `dynamo:"n_deleted" json:"deleted"`
	// Stopped is how many of the failed jobs a person has stopped: they do not count for StopAfter.
	Stopped int64 `dynamo:"n_stopped,omitempty" json:"stopped,omitempty"`
	Amounts
}

// Amounts are sums over the jobs of a batch that have ended.
type Amounts struct {
	// Bytes is the size of what the completed jobs have deposited.
	Bytes int64 `dynamo:"n_bytes,omitempty" json:"bytes,omitempty"`
	// Called is how many callbacks were delivered, CallFailed how many a requeue sends again, and
	// Uncalled how many are given up.
	Called     int64 `dynamo:"n_called,omitempty" json:"called,omitempty"`
	CallFailed int64 `dynamo:"n_call_failed,omitempty" json:"callFailed,omitempty"`
	Uncalled   int64 `dynamo:"n_uncalled,omitempty" json:"uncalled,omitempty"`
}

// FailedByThemselves is the number of failed jobs that no person has stopped.
func (c Counts) FailedByThemselves() int64 { return c.Failed - c.Stopped }

// Open is the number of jobs that have not ended. The batch reports when there are none. A held job
// is open: it can continue.
func (c Counts) Open() int64 { return c.Processing + c.Held }

// Sum is the number of jobs in all classes.
func (c Counts) Sum() int64 { return c.Open() + c.Failed + c.Completed + c.Deleted }

// Moved returns what a job's change of state adds to the counts. The keys are the attributes of
// Counts. A new job is moved from "".
func Moved(from, to State) map[string]int64 {
	add := map[string]int64{}
	if from.Class() != to.Class() {
		if from != "" {
			add[string(from.Class())] = -1
		}
		add[string(to.Class())] = 1
	}
	return add
}

// EnterBatch puts a batch into a state at now, with an execution if it has a stage.
func (r Rules) EnterBatch(b Batch, to BatchState, now time.Time) Batch {
	b.State, b.Entered, b.Hold = to, now.UnixMilli(), nil
	b.progress()
	// Answers of earlier executions, with lower numbers, are superseded.
	if _, ok := StageOfBatch(to); ok {
		b.Exec++
	}
	return r.DueBatch(b, now)
}

// UpdateReport is a failed batch that reports again what has changed since its last report.
// c are its counts. A batch in another state, with open jobs, or without jobs is a Conflict.
func (r Rules) UpdateReport(b Batch, c Counts, now time.Time) (Batch, error) {
	switch {
	case b.State != BatchFailed:
		return b, WrongState(TargetBatch, b.ID, b.State, ActUpdateReport, "Failed",
			b.State.Becomes())
	case c.Sum() == 0:
		return b, fault.New(fault.Conflict,
			"batch %s has no jobs, so there is nothing to report: %s. Correct the cause, "+
				"then submit it again", b.ID, strings.TrimSuffix(b.Message, "."))
	case c.Open() > 0:
		return b, fault.New(fault.Conflict,
			"batch %s cannot report. Jobs that have not ended: %s of %s, %s of them "+
				"on hold. To list its jobs: archivist job list -b %s. Repeat update-report when all have ended", b.ID,
			Number(c.Open()), Number(c.Sum()), Number(c.Held), b.ID)
	}

	b.Message, b.Changes = "", 0
	return r.EnterBatch(b, BatchUpdateReporting, now), nil
}

// ContinueBatch is a batch after a step that made progress but is not finished.
func (r Rules) ContinueBatch(b Batch, now time.Time) Batch {
	b.progress()
	return r.DueBatch(b, now)
}

// DueBatch sets when the sweep next checks the batch. A Completed one without a due time, 0, is in
// no place of the index: its rows stay.
func (r Rules) DueBatch(b Batch, now time.Time) Batch {
	b.Due = 0
	if stage, ok := StageOfBatch(b.State); ok {
		b.Due = now.UnixMilli() + r.grace(stage)
	} else if b.State == BatchCompleted && r.Retention > 0 {
		b.Due = now.Add(r.Retention).UnixMilli()
	} else if b.State == BatchProcessing {
		b.Due = now.Add(backoff(r.Timing, r.Timing.Times(Stage{}), b.Repairs)).UnixMilli()
	}
	return b
}

// AllWarnings are the warnings of a batch: that its collection is new, and those of its manifest.
func (b *Batch) AllWarnings() []string {
	if b.Begins == "" {
		return b.Warnings
	}
	return append([]string{b.Begins}, b.Warnings...)
}
