package ingest

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"
)

// Work is how an item (a job or a batch) is driven. Times are milliseconds
// since 1970.
type Work struct {
	Exec       int64  `dynamo:"exec_no"`              // which execution drives it now
	Tries      int    `dynamo:"tries,omitempty"`      // takes since its last progress
	Due        int64  `dynamo:"due_ms,omitempty"`     // when the sweep looks at it
	Repairs    int    `dynamo:"repairs,omitempty"`    // repairs since its last progress
	Blocked    string `dynamo:"blocked,omitempty"`    // why no execution brought it to a worker, as far as it is known
	Entered    int64  `dynamo:"entered,omitempty"`    // when it came into its state or to its gate
	Parked     bool   `dynamo:"parked,omitempty"`     // waits for a lock, without an execution
	Waits      string `dynamo:"waits_for,omitempty"`  // the lock that it waits for
	WaitsOn    string `dynamo:"waits_on,omitempty"`   // the job that holds the lock
	Checkpoint string `dynamo:"checkpoint,omitempty"` // how far the step is, in its own words
	Done       int    `dynamo:"done_no,omitempty"`    // how far the step is, counted in what it works on
}

// progress resets what counts towards giving up.
func (w *Work) progress() { w.Tries, w.Repairs, w.Blocked = 0, 0, "" }

// Claimed notes that a worker has the item.
func (w *Work) Claimed() {
	w.Tries++
	w.Blocked = ""
}

// Stuck reports whether an item that was just repaired does not go on by itself: it
// is known what keeps it, or the repairs before were in vain.
func (w *Work) Stuck() bool { return w.Blocked != "" || w.Repairs >= StuckRepairs }

// StuckRepairs is how many repairs in a row make an item stuck.
const StuckRepairs = 3

// Payload is what is to be ingested, by reference.
type Payload struct {
	URL       string `dynamo:"source_url" json:"url"`
	Type      string `dynamo:"payload_type" json:"type,omitempty"` // "" = not detected yet
	Detected  bool   `dynamo:"type_detected,omitempty" json:"-"`   // the type was not given: it is detected from the content
	Filename  string `dynamo:"filename,omitempty" json:"filename,omitempty"`
	Size      int64  `dynamo:"size_said,omitempty" json:"size,omitempty"` // bytes; 0 = not given, unless Empty
	Empty     bool   `dynamo:"said_empty,omitempty" json:"-"`             // the size was given as 0
	Algorithm string `dynamo:"algorithm,omitempty" json:"-"`
	Digest    string `dynamo:"digest,omitempty" json:"-"`
}

// Payload types. The batch ones list objects: each an object manifest, or a file.
const (
	TypeFile            = "file"
	TypeObjectManifest  = "object-manifest"
	TypeBatchManifest   = "batch-manifest"
	TypeSingleFileBatch = "single-file-batch-manifest"
)

// Metadata is the depositor's kernel description (ERC: who, what, when, where).
type Metadata struct {
	Who   string `dynamo:"who,omitempty" json:"who,omitempty"`
	What  string `dynamo:"what,omitempty" json:"what,omitempty"`
	When  string `dynamo:"when_said,omitempty" json:"when,omitempty"`
	Where string `dynamo:"where_said,omitempty" json:"where,omitempty"`
}

// Job is one object on its way into the archive.
type Job struct {
	ID         string `dynamo:"id"`
	Batch      string `dynamo:"batch_id"`
	Row        int    `dynamo:"batch_row"` // from 1
	Collection string `dynamo:"coll"`
	Submitter  string `dynamo:"submitter,omitempty"`
	Mode       string `dynamo:"ingest_mode"`    // add
	Note       string `dynamo:"note,omitempty"` // what the depositor says of the batch
	Payload
	Metadata           // as it was submitted; from Processing on a summary of the version's description
	Said     *Metadata `dynamo:"said,omitempty"` // as it was submitted, from Processing on
	Primary  string    `dynamo:"ark,omitempty"`  // ark:/NAAN/name, once known
	LocalIDs []string  `dynamo:"local_ids,omitempty"`
	Found    int       `dynamo:"found_ids,omitempty"` // how many of LocalIDs, from the end, were found in the package
	Created  int64     `dynamo:"created"`             // milliseconds

	State          State  `dynamo:"job_state"`
	LastSuccessful State  `dynamo:"last_successful,omitempty"`
	Message        string `dynamo:"message,omitempty"`
	NotRecoverable bool   `dynamo:"not_recoverable,omitempty"`
	RetryCount     int    `dynamo:"retry_count"`
	Work

	Priority    int      `dynamo:"priority"`
	Turn        string   `dynamo:"turn,omitempty"` // its place among those that wait
	IfVersion   int      `dynamo:"if_version,omitempty"`
	SpaceNeeded int64    `dynamo:"space_needed"` // bytes; 0 = unknown
	SizeKnown   bool     `dynamo:"size_known"`
	HasSlot     bool     `dynamo:"has_slot,omitempty"`
	HasSpace    bool     `dynamo:"has_space,omitempty"`
	Cleaning    bool     `dynamo:"cleaning,omitempty"`  // its work files are being removed
	Locks       []string `dynamo:"lock_keys,omitempty"` // lock keys that it owns

	Manifest      string `dynamo:"manifest_key,omitempty"` // of the manifest in the work bucket, once it was checked
	Files         int    `dynamo:"files,omitempty"`        // of the producer, once estimated
	Bytes         int64  `dynamo:"bytes,omitempty"`        // of these, once downloaded
	Fetched       int64  `dynamo:"fetched_ms,omitempty"`   // when the download ended
	Warned        int    `dynamo:"warned,omitempty"`       // files whose size was not the depositor's
	Checked       int    `dynamo:"checked,omitempty"`      // files with a digest of the depositor
	Stamp         int64  `dynamo:"stamp_ms,omitempty"`     // created of the OCFL version, fixed before first use
	Follows       string `dynamo:"follows,omitempty"`      // ETag of the root inventory that the system files were written for; "": there was no object
	Permitted     int    `dynamo:"permitted,omitempty"`    // the newest version by a later submission that a person let it replace
	ObjectVersion int    `dynamo:"ocfl_version,omitempty"`
	NoChange      bool   `dynamo:"no_change,omitempty"`
	Inventory     string `dynamo:"inventory_digest,omitempty"` // sha512 of the committed inventory
}

// Submitted are the local ids that the submission named. They say which object is
// meant; those that were found in its package do not.
func (j *Job) Submitted() []string {
	return slices.Clip(j.LocalIDs[:len(j.LocalIDs)-j.Found])
}

// LockKeys lists the lock keys that the job must own to go past gate 2: its
// object's ark and its local ids per owner, as far as they are known.
func (j *Job) LockKeys() []string {
	var keys []string
	if j.Primary != "" {
		keys = append(keys, "ark#"+j.Primary)
	}
	for _, id := range j.LocalIDs {
		keys = append(keys, "local#"+j.Collection+"#"+id)
	}
	return keys
}

// QueuedLocks lists the keys for which the job stands in line: those that it wants,
// from its submission until its version is recorded. Jobs for one object or
// local id work in the order of their submission. A held job lets others pass.
func (j *Job) QueuedLocks() []string {
	if j.State.Class() != ClassProcessing || j.State == Notify {
		return nil
	}
	return j.LockKeys()
}

// FirstTry reports whether no worker had the job in this state before: it need not look
// for what an earlier try did. It is wrong for a table that was restored, so that it
// must never be more than a saving: what is put is put on the condition that it is new.
func (j *Job) FirstTry() bool { return j.RetryCount == 0 && j.Tries <= 1 && j.Checkpoint == "" }

// Running reports whether an execution drives the job.
func (j *Job) Running() bool {
	_, stage := StageOf(j.State)
	return stage && !j.Parked
}

// Places in the index "work": the gates, due#shard for what is to be repaired, and
// one for what is to be removed, so that no repair waits behind a clean-up.
const (
	WorkPending      = "pending"
	WorkProvisioning = "provisioning"
	WorkParked       = "parked"
	WorkCleanUp      = "clean"
	DueShards        = 4
)

// WorkKey returns where an unfinished job is in the index "work": at exactly one
// gate, or due. A Held job waits for a person and an ended one for nobody; a
// failed one is due when its work files are to be cleaned away.
func (j *Job) WorkKey() (place, rank string) {
	switch {
	case j.Parked:
		return WorkParked, j.Turn
	case j.State == Pending:
		return WorkPending, j.Turn
	case j.State == Provisioning:
		return WorkProvisioning, j.Turn
	case j.Running():
		return due(j.ID, j.Due)
	case j.Uncleaned():
		return WorkCleanUp, DueSK(j.Due) + "#" + j.ID
	}
	return "", ""
}

// Uncleaned reports whether a failed job still has work files, and their space.
func (j *Job) Uncleaned() bool { return j.State == Failed && j.HasSpace }

func due(id string, at int64) (place, rank string) {
	h := fnv.New32a()
	h.Write([]byte(id))
	return DuePK(int(h.Sum32() % DueShards)), DueSK(at) + "#" + id
}

// DueSK orders due items by time, in milliseconds.
func DueSK(at int64) string { return fmt.Sprintf("%013d", at) }

// DuePK names one shard of the items that are due, in order of time.
func DuePK(shard int) string { return fmt.Sprintf("due#%d", shard) }

// Batch is one submission.
type Batch struct {
	ID         string     `dynamo:"id"`
	Collection string     `dynamo:"coll"`
	Submitter  string     `dynamo:"submitter,omitempty"`
	Mode       string     `dynamo:"ingest_mode"`
	State      BatchState `dynamo:"batch_state"`
	Created    int64      `dynamo:"created"`
	Note       string     `dynamo:"note,omitempty"`
	Payload
	Metadata
	Primary  string   `dynamo:"ark,omitempty"`
	LocalIDs []string `dynamo:"local_ids,omitempty"`
	Work
	Unpacked   int      `dynamo:"unpacked"` // jobs made so far
	Expected   int      `dynamo:"expected"` // jobs in all, once the first are made
	Sealed     bool     `dynamo:"sealed"`
	Message    string   `dynamo:"message,omitempty"`
	Incomplete string   `dynamo:"incomplete,omitempty"` // why not all of its rows became jobs
	Report     string   `dynamo:"report,omitempty"`     // key of the saved report
	IfVersion  int      `dynamo:"if_version,omitempty"`
	Mail       []string `dynamo:"mail,omitempty"` // whom the report goes to
	// Mails are those that were sent or given up.
	Mails []MailResult `dynamo:"mails_ended,omitempty"`
}

// WorkKey returns where a batch is in the index "work" that has something before it.
func (b *Batch) WorkKey() (place, rank string) {
	switch b.State {
	case BatchPending, BatchProcessing, BatchReporting, BatchUpdateReporting:
		return due("batch:"+b.ID, b.Due)
	case BatchCompleted, BatchDeleted:
		if b.Due > 0 { // when its rows go
			return WorkCleanUp, DueSK(b.Due) + "#batch:" + b.ID
		}
	}
	return "", ""
}

// JobID is the id of a batch's job: the batch's id and the row's number.
func JobID(batch string, row int) string { return fmt.Sprintf("%s-%05d", batch, row) }

// SubmittedAfter reports whether job a is of a later submission than job b, or of a
// later row of the same: ids of batches rise with time. An id that is no job's is
// not.
func SubmittedAfter(a, b string) bool {
	batchA, rowA, isA := strings.Cut(a, "-")
	batchB, rowB, isB := strings.Cut(b, "-")
	return isA && isB && cmp.Or(cmp.Compare(batchA, batchB), cmp.Compare(len(rowA), len(rowB)), cmp.Compare(rowA, rowB)) > 0
}

// Overtaken says that a job would replace the newest version of its object, of which
// one is by a later submission.
func Overtaken(job, ark string, head, version int, by string) string {
	return fmt.Sprintf("version %d of %s is by job %s, which was submitted later than job %s: this job would replace version %d as the newest", version, ark, by, job, head)
}

// Counts of a batch's jobs by class. Once sealed, the classes sum to Expected.
type Counts struct {
	Processing int64 `dynamo:"n_processing" json:"processing"`
	Held       int64 `dynamo:"n_held" json:"held"`
	Failed     int64 `dynamo:"n_failed" json:"failed"`
	Completed  int64 `dynamo:"n_completed" json:"completed"`
	Deleted    int64 `dynamo:"n_deleted" json:"deleted"`
}

// Open is how many jobs keep the batch from reporting.
func (c Counts) Open() int64 { return c.Processing + c.Held }

// Sum of all classes.
func (c Counts) Sum() int64 { return c.Open() + c.Failed + c.Completed + c.Deleted }

// Moved returns what a change of class adds to the counts.
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

// backoff is when the sweep looks again after the nth repair.
func backoff(t Timing, c Times, repairs int) time.Duration {
	d := c.Grace
	for range repairs {
		if d *= 2; d >= t.MaxBackoff {
			return max(t.MaxBackoff, c.Grace)
		}
	}
	return d
}
