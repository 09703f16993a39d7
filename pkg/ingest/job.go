package ingest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"archivist/pkg/events/envelope"
)

// Payload is what is to be ingested, by reference.
type Payload struct {
	URL string `dynamo:"source_url" json:"url"`
	// Upload is the id of the submission's upload, whose files have upload URLs; "" = it has none.
	Upload string `dynamo:"upload_id,omitempty" json:"-"`
	// Uploader is who opened the upload, as its events name the actor. It stays when the upload is removed.
	Uploader string `dynamo:"uploaded_by,omitempty" json:"-"`
	Type     string `dynamo:"payload_type" json:"type,omitempty"` // "" = not detected yet

	// Detected is set if the type was not given but detected from the content.
	Detected bool `dynamo:"type_detected,omitempty" json:"-"`

	Filename  string `dynamo:"filename,omitempty" json:"filename,omitempty"`
	Size      int64  `dynamo:"size_said,omitempty" json:"size,omitempty"` // bytes; 0 = not given, unless Empty
	Empty     bool   `dynamo:"said_empty,omitempty" json:"-"`             // the size was given as 0
	Algorithm string `dynamo:"algorithm,omitempty" json:"-"`
	Digest    string `dynamo:"digest,omitempty" json:"-"`
}

// NeedsDigest reports whether the payload has no digest, although nothing else says what its content is: a manifest
// has a digest of each file.
func (p Payload) NeedsDigest() bool {
	return (p.Type == TypeFile || p.Type == TypeContainer) && p.Digest == ""
}

// Modes of a submission: its files are the complete new state of the object, or they are added to those of its newest
// version.
const (
	ModeAdd    = "add"
	ModeUpdate = "update"
)

// Payload types. The batch types list objects: each is an object manifest, a file, or a container, whose files are
// those of the object.
const (
	TypeFile            = "file"
	TypeContainer       = "container"
	TypeObjectManifest  = "object-manifest"
	TypeBatchManifest   = "batch-manifest"
	TypeSingleFileBatch = "single-file-batch-manifest"
	TypeContainerBatch  = "container-batch-manifest"
	// TypeCorrection has no content: the version has the files of the one before.
	TypeCorrection = "correction"
)

// Policy is what a correction decides about an object beside its description; "" is nothing. Events have it as the
// change of a version.
type Policy string

// The policies. The files stay stored, whatever is decided.
const (
	Withdraw  Policy = "withdraw"         // the files are not given out any more
	Reinstate Policy = "reinstate"        // they are given out again
	PlaceHold Policy = "place-legal-hold" // no content may be deleted before the hold is lifted
	LiftHold  Policy = "lift-legal-hold"
	Retain    Policy = "retain" // no content may be deleted before a day has ended

	Embargo     Policy = "embargo" // the files are not given out before a day has ended
	LiftEmbargo Policy = "lift-embargo"
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
	By         string `dynamo:"submitted_by,omitempty"` // see Batch.By
	Mode       string `dynamo:"ingest_mode"`            // ModeAdd or ModeUpdate
	Note       string `dynamo:"note,omitempty"`         // the depositor's note on the batch
	Payload
	Metadata           // as submitted; from Processing on, a summary of the version's description
	Said     *Metadata `dynamo:"said,omitempty"` // as submitted; set from Processing on
	Primary  string    `dynamo:"ark,omitempty"`  // ark:/NAAN/name, once known
	LocalIDs []string  `dynamo:"local_ids,omitempty"`
	Found    int       `dynamo:"found_ids,omitempty"` // how many of LocalIDs, from the end, were found in the package
	// Known: Primary was not given, but is the object that a local id named. It is looked up again, since a
	// correction can withdraw the id meanwhile.
	Known     bool     `dynamo:"known_ark,omitempty"`
	Withdrawn []string `dynamo:"withdrawn_ids,omitempty"` // of a correction: the local ids that it takes away
	Policy    Policy   `dynamo:"access,omitempty"`        // of a correction: what it decides about the object
	LastDay   string   `dynamo:"retain_until,omitempty"`  // with Retain or Embargo: YYYY-MM-DD
	Created   int64    `dynamo:"created"`                 // milliseconds

	// Cause is that of its batch: a component that changes an object by a job is known as who did it.
	Cause *envelope.Cause `dynamo:"caused_by,omitempty"`

	State          State  `dynamo:"job_state"`
	LastSuccessful State  `dynamo:"last_successful,omitempty"`
	Message        string `dynamo:"message,omitempty"`
	NotRecoverable bool   `dynamo:"not_recoverable,omitempty"`
	RetryCount     int    `dynamo:"retry_count"`
	Hold           *Hold  `dynamo:"held_by,omitempty"` // of a Held job: what stops it
	// Cancelled: the job is Failed or Deleted because its batch was cancelled.
	Cancelled bool `dynamo:"cancelled_job,omitempty"`
	// Stopped: a person has failed the job.
	Stopped bool `dynamo:"stopped,omitempty"`
	// AskedToWait is how long its source has asked to wait in this state, in milliseconds together.
	AskedToWait int64 `dynamo:"asked_to_wait_ms,omitempty"`
	Work

	Priority    int      `dynamo:"priority"`
	Prioritized bool     `dynamo:"prioritized,omitempty"` // a person set the priority: its size does not change it
	Turn        string   `dynamo:"turn,omitempty"`        // sort key among the waiting jobs
	IfVersion   int      `dynamo:"if_version,omitempty"`
	SpaceNeeded int64    `dynamo:"space_needed"` // bytes; 0 = unknown
	SizeKnown   bool     `dynamo:"size_known"`
	HasSlot     bool     `dynamo:"has_slot,omitempty"`
	HasSpace    bool     `dynamo:"has_space,omitempty"`
	Cleaning    bool     `dynamo:"cleaning,omitempty"`  // its work files are being removed
	Locks       []string `dynamo:"lock_keys,omitempty"` // lock keys that it owns
	// Related are the lock keys of other identifiers of its object, as far as they were known
	// when it was submitted: a job that names the ARK and one that names a local id wait for
	// each other.
	Related []string `dynamo:"related_locks,omitempty"`

	ManifestWarnings []string `dynamo:"manifest_warnings,omitempty"` // see Warnings
	FileWarnings     []string `dynamo:"file_warnings,omitempty"`

	Manifest string `dynamo:"manifest_key,omitempty"` // of the manifest in the work bucket, once it was checked
	Files    int    `dynamo:"files,omitempty"`        // number of the depositor's files, once estimated
	Bytes    int64  `dynamo:"bytes,omitempty"`        // their size, once downloaded
	// Unpacked is the container that the files come from, once it is unpacked; nil if the payload is none.
	Unpacked *Container `dynamo:"unpacked,omitempty"`
	// Scanned is which virus scanners have found nothing in how many files.
	Scanned Scanned `dynamo:"scanned,omitempty"`
	// Embargo is what the package says of an embargo: the last day, YYYY-MM-DD, or systemfile.NoEmbargo; "": nothing.
	Embargo string `dynamo:"embargo,omitempty"`
	// Merged is what an update has made of the files of the newest version; nil if the job's files are the version's.
	Merged  *Merged `dynamo:"merged,omitempty"`
	Fetched int64   `dynamo:"fetched_ms,omitempty"` // when the download ended
	Warned  int     `dynamo:"warned,omitempty"`     // files with a warning
	Checked int     `dynamo:"checked,omitempty"`    // files with a digest of the depositor
	Sent    int     `dynamo:"n_uploaded,omitempty"` // files that were uploaded, and not downloaded
	Stamp   int64   `dynamo:"stamp_ms,omitempty"`   // created of the OCFL version, fixed before first use

	// Follows is the ETag of the root inventory on which the system files are based;
	// "" if the object is new.
	Follows string `dynamo:"follows,omitempty"`

	// Behind: when it was submitted, the same depositor had manifests in the collection that were not read yet. They
	// can name its object, so they are waited for, for ManifestPatience at most.
	Behind bool `dynamo:"behind_manifest,omitempty"`

	// Permitted is the newest version of a later submission that a person has confirmed
	// this job may replace.
	Permitted int `dynamo:"permitted,omitempty"`

	// Uncalled is why a callback was not delivered although the job could go on, "" if there is no such one.
	Uncalled string `dynamo:"uncalled,omitempty"`
	// Calls are what became of its callbacks, since they were sent for the first time. A job of an
	// earlier version has none.
	Calls []Called `dynamo:"calls,omitempty"`

	Healed *Healed `dynamo:"healed,omitempty"` // nil: no stored file was damaged

	ObjectVersion int    `dynamo:"ocfl_version,omitempty"`
	NoChange      bool   `dynamo:"no_change,omitempty"`
	Inventory     string `dynamo:"inventory_digest,omitempty"` // sha512 of the committed inventory
}

// Scanned counts the files in which scanners have found no virus, by what the scanners say of themselves.
type Scanned map[string]int

// mostScanners is how many are told apart: the signatures of a scanner change while a job runs.
const mostScanners = 10

// Add counts a file; "" is one that was not scanned.
func (s *Scanned) Add(scanner string) {
	if scanner == "" {
		return
	}
	if *s == nil {
		*s = Scanned{}
	}
	if _, known := (*s)[scanner]; !known && len(*s) >= mostScanners {
		scanner = "others"
	}
	(*s)[scanner]++
}

// Merged is the version of an update.
type Merged struct {
	Files   int   `dynamo:"merged_files"` // of the version
	Bytes   int64 `dynamo:"merged_bytes"`
	Kept    int   `dynamo:"merged_kept"` // of its files, those of the version before
	Deleted int   `dynamo:"merged_deleted,omitempty"`
}

// Content is how many files the job's version has, and how many bytes.
func (j *Job) Content() (files int, size int64) {
	if j.Merged != nil {
		return j.Merged.Files, j.Merged.Bytes
	}
	return j.Files, j.Bytes
}

// Updates reports whether the job adds its files to those of the newest version of its object.
func (j *Job) Updates() bool { return j.Mode == ModeUpdate }

// Container is a container that was unpacked.
type Container struct {
	Name   string `dynamo:"container_name"`
	Kind   string `dynamo:"container_kind"` // zip, tar, tar.gz, tar.bz2
	Bytes  int64  `dynamo:"container_bytes"`
	SHA256 string `dynamo:"container_sha256"`
	Kept   bool   `dynamo:"container_kept,omitempty"` // it is one of the files, too
	// Verified is the algorithm of the depositor's digest of it, "" if there was none.
	Verified string `dynamo:"container_verified,omitempty"`
	Bag      *Bag   `dynamo:"bag,omitempty"`           // nil: its files are no bag
	Fetched  int    `dynamo:"fetched_files,omitempty"` // files that were not in it: see fetch.txt of a bag
}

// Bag is a bag that was validated (RFC 8493).
type Bag struct {
	Version    string   `dynamo:"bag_version"`
	Algorithms []string `dynamo:"bag_algorithms"`         // of its manifests
	Files      int      `dynamo:"bag_files"`              // of the payload
	Profiles   []string `dynamo:"bag_profiles,omitempty"` // URLs of the BagIt profiles that it conforms to
	Info       Metadata `dynamo:"bag_info"`               // what bag-info.txt says
}

// Healed are the stored files that the job found damaged or missing, and that the bytes of its
// submission replace. They are noted before they are replaced.
type Healed struct {
	Paths   []string `dynamo:"paths"`                   // below the object's prefix; the first of them
	More    int      `dynamo:"more,omitempty"`          // the number of the others
	Segment int      `dynamo:"noted_segment,omitempty"` // of the plan, from 1, whose damaged files are noted
	Told    bool     `dynamo:"told,omitempty"`          // the event of the object is written
}

// mostHealed is the number of paths that a Healed names.
const mostHealed = 20

// Noting returns h with the damaged files of a segment, from 1. h may be nil.
func (h *Healed) Noting(segment int, paths []string) *Healed {
	var next Healed
	if h != nil {
		next = *h
	}

	n := min(len(paths), mostHealed-len(next.Paths))
	next.Paths = slices.Concat(next.Paths, paths[:n])
	next.More, next.Segment, next.Told = next.More+len(paths)-n, segment, false
	return &next
}

// Noted reports whether the damaged files of a segment, from 1, are noted.
func (h *Healed) Noted(segment int) bool { return h != nil && h.Segment == segment }

// Replanned is h once another plan begins, whose segments are others. h may be nil. The paths stay:
// what was replaced is told.
func (h *Healed) Replanned() *Healed {
	if h == nil {
		return nil
	}
	next := *h
	next.Segment = 0
	return &next
}

// warnings are what the depositor is told; none of a nil Healed.
func (h *Healed) warnings() []string {
	if h == nil {
		return nil
	}
	return []string{fmt.Sprintf("%d stored files of the object were damaged or missing, and were replaced by the "+
		"bytes of this submission, whose digests were verified: %s", len(h.Paths)+h.More, listed(h.Paths, h.More))}
}

// listed is a list of names with the number of those that it leaves out.
func listed(names []string, more int) string {
	text := strings.Join(names, ", ")
	if more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Submitted are the local ids that the submission named. Only these identify the object;
// those found in its package do not. The result can be appended to: it never overwrites those that
// were found.
func (j *Job) Submitted() []string {
	return slices.Clip(j.LocalIDs[:len(j.LocalIDs)-j.Found])
}

// Corrects reports whether the job has no content: it changes what is said of a stored object. It
// passes the same stages as others, which ask this where there would be content.
func (j *Job) Corrects() bool { return j.Payload.Type == TypeCorrection }

// Change is what a job without content changes, as events name it: its policy, else "correction"; "" for a job with
// content.
func (j *Job) Change() string {
	switch {
	case j.Policy != "":
		return string(j.Policy)
	case j.Corrects():
		return TypeCorrection
	}
	return ""
}

// LockKeys lists the lock keys that the job must own to pass gate 2: its object's ARK, and
// its local ids within the collection, also those that it withdraws, as far as they are known,
// and those that are related.
func (j *Job) LockKeys() []string {
	var keys []string
	if j.Primary != "" {
		keys = append(keys, ARKLock(j.Primary))
	}
	for _, id := range j.LocalIDs {
		keys = append(keys, LocalLock(j.Collection, id))
	}
	for _, id := range j.Withdrawn {
		keys = append(keys, LocalLock(j.Collection, id))
	}
	for _, key := range j.Related {
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// ARKLock is the lock key of an object's ARK. It is of the whole archive, since an ARK is.
func ARKLock(ark string) string { return "ark#" + ark }

// LocalLock is the lock key of a local id. Another collection can have the same id for another
// object.
func LocalLock(collection, id string) string { return "local#" + collection + "#" + id }

// Depositor: see that of a Batch.
func (j *Job) Depositor() string { return Cut(cmp.Or(j.Submitter, j.By), MaxSubmitter) }

// Actor is who the events of the job's steps say has caused them.
func (j *Job) Actor() string { return cmp.Or(j.By, j.Submitter) }

// ManifestLine is the line in which the manifests of the job's depositor stand in its collection until they are read.
// No job takes it as a lock.
func (j *Job) ManifestLine() string { return "manifest#" + j.Collection + "#" + j.Submitter }

// ManifestPatience is how long a job waits for manifests that were submitted before it: the source of one can fail to
// answer for days. A row that is read later than that fails as overtaken, if the job had its object.
const ManifestPatience = time.Hour

// AwaitsManifests reports whether a job at gate 2 waits for those manifests that are not read yet.
func (j *Job) AwaitsManifests(now time.Time) bool {
	return j.Behind && j.State == Provisioning && !j.Parked && now.Before(j.ManifestsUntil())
}

// ManifestsUntil is the end of the wait.
func (j *Job) ManifestsUntil() time.Time { return time.UnixMilli(j.Created).Add(ManifestPatience) }

// MaxRelated is the largest number of a job's related lock keys. All of its locks are taken in
// one transaction, which has at most 100 rows.
const MaxRelated = 10

// QueuedLocks lists the lock keys for which the job is in line: all that it needs, from
// its submission until its version is recorded. Jobs for one object or local id run in the
// order of their submission. Others may pass a held job. At Notify the version is recorded, so
// another job finds it.
func (j *Job) QueuedLocks() []string {
	if j.State.Class() != ClassProcessing || j.State == Notify {
		return nil
	}
	return j.LockKeys()
}

// FirstTry reports whether no worker had the job in this state before, so that the step
// need not check what an earlier try did. It can be wrong after the table was restored.
// Therefore use it only to save requests: writes still need their conditions. A try that is under
// way counts as one.
func (j *Job) FirstTry() bool { return j.RetryCount == 0 && j.Tries <= 1 && j.Checkpoint == "" }

// Running reports whether an execution drives the job.
func (j *Job) Running() bool {
	_, stage := StageOf(j.State)
	return stage && !j.Parked
}

// WorkKey returns the place of an unfinished job in the index "work": at exactly one gate,
// among the due items, or among those on hold. A failed or deleted job is due when its work
// files are to be removed; a failed one without work files waits for a person. One that has
// ended has no place. The order of the cases counts: a deferred job is parked as well.
func (j *Job) WorkKey() (place, rank string) {
	switch {
	case j.Deferred():
		return due(j.ID, j.Due)
	case j.Parked && j.Waits == WaitsForTurn:
		return WorkPending, j.Turn
	case j.Parked:
		return WorkParked, j.Turn
	case j.State == Pending:
		return WorkPending, j.Turn
	case j.State == Provisioning:
		return WorkProvisioning, j.Turn
	case j.Running():
		return due(j.ID, j.Due)
	case j.State == Held:
		return heldPlace(j.ID, j.Due)
	case j.Uncleaned():
		return WorkCleanUp, DueSK(j.Due) + "#" + j.ID
	case j.State == Failed:
		return WorkFailed, DueSK(j.Entered) + "#" + j.ID
	}
	return "", ""
}

// Deferred reports whether the job is parked until a time that its source asked for. Other parked
// jobs have no due time.
func (j *Job) Deferred() bool { return j.Parked && j.Due > 0 }

// NeedsSpace reports whether the job needs space to continue, and has none. Once its version is stored, it needs none.
func (j *Job) NeedsSpace() bool { return !j.HasSpace && !isAfter(j.State, Storing) }

// Uncleaned reports whether a failed or deleted job still has work files, and their space.
func (j *Job) Uncleaned() bool { return (j.State == Failed || j.State == Deleted) && j.HasSpace }

// JobID is the id of a batch's job: the batch's id and the row's number.
func JobID(batch string, row int) string { return fmt.Sprintf("%s-%05d", batch, row) }

// BatchOf is the id of a job's batch.
func BatchOf(job string) string {
	batch, _, _ := strings.Cut(job, "-")
	return batch
}

// SubmittedAfter reports whether job a belongs to a later submission than job b, or to a
// later row of the same submission: batch ids rise with time. It is false if either is not
// a job id.
func SubmittedAfter(a, b string) bool {
	batchA, rowA, isA := strings.Cut(a, "-")
	batchB, rowB, isB := strings.Cut(b, "-")
	// The length comes first: row numbers of more than five digits have no leading zeros.
	return isA && isB && cmp.Or(cmp.Compare(batchA, batchB), cmp.Compare(len(rowA), len(rowB)),
		cmp.Compare(rowA, rowB)) > 0
}

// Overtaken is the message for a job that would replace the newest version of its object
// although the object has a version by a later submission.
func Overtaken(job, ark string, head, version int, by string) string {
	return fmt.Sprintf("version %d of %s is by job %s, which was submitted later than job %s: this job would "+
		"replace version %d as the newest", version, ark, by, job, head)
}

// Waiting reports whether the job waits at a gate, without an execution.
func (j *Job) Waiting() bool {
	return !j.Deferred() && (j.Parked || j.State == Pending || j.State == Provisioning)
}
