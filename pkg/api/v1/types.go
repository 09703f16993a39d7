// Package v1 is the API as a client sees it: the types of its requests and responses in
// JSON, and a client that needs nothing but HTTP.
//
// A depositor submits a batch: the URL of one payload, which is a file, or a manifest of
// files or of objects. The archive creates a job for each object. A successful job creates
// a version of the object; its receipt lists the files:
//
//	c := &v1.Client{URL: "https://archive.example.org/prod", Key: key, HTTP: http.DefaultClient}
//	accepted, err := c.Submit(ctx, v1.BatchRequest{Collection: "maps",
//		Payload: v1.Payload{URL: "https://example.org/map.checkm", Type: "object-manifest"}}, "")
//	jobs, err := c.Jobs(ctx, v1.Filter{Batch: accepted.ID})
//	receipt, err := c.Receipt(ctx, jobs[0].ID)
//
// Times are ISO 8601 in UTC, sizes are bytes, digests are hexadecimal. The comments of
// the types and of their fields are also the descriptions in the OpenAPI document: the
// API reads them from this file.
package v1

import "encoding/json"

// Digest is a digest of a file.
type Digest struct {
	// One of adler32, crc32, md5, sha1, sha256, sha384 and sha512. Case and hyphens are ignored.
	Algorithm string `json:"algorithm" example:"sha256"`
	// The digest in hexadecimal.
	Value string `json:"value" example:"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"`
}

// PayloadTypes are the values of Payload.Type.
var PayloadTypes = []string{"file", "container", "object-manifest", "batch-manifest", "single-file-batch-manifest",
	"container-batch-manifest"}

// Payload is the content to ingest, by reference: a URL, or a file of an upload.
type Payload struct {
	// The http or https URL of the payload. Required unless upload is given.
	URL string `json:"url,omitempty" format:"uri" maxLength:"2048" example:"https://example.org/map.checkm"`
	// The id of the upload that has the payload. The batch gets the upload: no other one can have it. By default the
	// payload is at url.
	Upload string `json:"upload,omitempty" maxLength:"100" example:"01M7ZBMEYHBB62YP6RY21T1GQ7"`
	// The SHA-256 of the payload among the files of the upload. By default it is the only one.
	File string `json:"file,omitempty" pattern:"^[0-9a-f]{64}$"`
	// The type of the payload. By default it is detected from the content. A container is a zip or tar file, also
	// tar.gz and tar.bz2: its files become the files of the object.
	Type string `json:"type,omitempty"`
	// The name under which a file is stored. By default it is the last part of the URL. Required for a file of an
	// upload, unless that is a manifest.
	Filename string `json:"filename,omitempty" maxLength:"4096" example:"map.tif"`
	// The size in bytes; 0 is an empty file. The downloaded content is compared with it.
	Size *int64 `json:"size,omitempty" minimum:"0" example:"1048576"`
	// The depositor's digest of the payload. The downloaded content is compared with it.
	Digest *Digest `json:"digest,omitempty"`
}

// Identifiers are the identifiers of an object.
type Identifiers struct {
	// The ARK of the object. In a submission it is that of an existing object, or the one to use for a new object.
	Primary string `json:"primary,omitempty" maxLength:"500" example:"ark:/99999/fk4tq65d6k"`
	// The depositor's own ids. A submission with a known local id creates a new version of that object.
	Local []string `json:"local,omitempty" maxItems:"20" example:"[\"map-1851\"]"`
}

// Metadata is the kernel description of an object (ERC).
type Metadata struct {
	// The creator. Each field is one line of at most 4,000 bytes.
	Who string `json:"who,omitempty" maxLength:"4000" example:"Blunt, John"`
	// The title.
	What string `json:"what,omitempty" maxLength:"4000" example:"Map of the harbour"`
	// The date.
	When string `json:"when,omitempty" maxLength:"4000" example:"1851"`
	// The location of the original, or its id there.
	Where string `json:"where,omitempty" maxLength:"4000" example:"https://example.org/maps/1851"`
}

// BatchRequest is the submission of a batch.
type BatchRequest struct {
	// The collection that the objects belong to.
	Collection string `json:"collection" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$" example:"maps"`
	// The name or account of the submitter. It is stored with the version.
	Submitter string `json:"submitter,omitempty" maxLength:"200" example:"Map Library"`
	// How the payload relates to the stored object. add, the default: the payload is the complete new state of the
	// object. update: its files are added to those of the newest version, or replace them; a file mrt-delete.txt lists
	// those to delete. The object must exist.
	Mode string `json:"mode,omitempty" enum:"add,update"`
	// The content to ingest.
	Payload Payload `json:"payload"`
	// The identifiers of the object. Not allowed for a payload of several objects: its manifest has their identifiers.
	Identifiers *Identifiers `json:"identifiers,omitempty"`
	// The description of the object. Not allowed for a payload of several objects.
	Metadata *Metadata `json:"metadata,omitempty"`
	// The expected newest version of the object. The job fails if the object is at another version.
	IfVersion int `json:"ifVersion,omitempty" minimum:"1" example:"1"`
	// Cancel the batch when this many of its jobs have failed.
	StopAfterFailures int `json:"stopAfterFailures,omitempty" minimum:"1" maximum:"99999" example:"100"`
	// Mail addresses that receive the report, in addition to those of the collection.
	Notification []string `json:"notification,omitempty" maxItems:"20" example:"[\"maps@example.org\"]"`
	// An https URL that is called for each preserved job, beside that of the collection, which has to allow its host
	// (callback.hosts of its profile). It has no user and no fragment. By default there is none.
	Callback string `json:"callback,omitempty" maxLength:"2000" example:"https://example.org/preserved?batch=7"`
	// The depositor's note about the batch. It is stored as the message of the version.
	Note string `json:"note,omitempty" maxLength:"2000" example:"Scans of 2026"`
}

// Accepted is the response to an accepted submission.
type Accepted struct {
	// The id of the batch.
	ID string `json:"id" example:"01M7ZBMEYHBB62YP6RY21T1GQ6"`
	// The state of the batch.
	State string `json:"state"`
	// Warnings that the submitter should check. The batch is accepted nevertheless.
	Warnings []string `json:"warnings,omitempty"`
}

// Counts counts the jobs of a batch by state.
type Counts struct {
	// All jobs. It is 0 until the manifest is read.
	Expected int `json:"expected" example:"12"`
	// Jobs that are waiting or running.
	Processing int64 `json:"processing" example:"2"`
	// Jobs that are held until a person releases them.
	Held int64 `json:"held" example:"0"`
	// Jobs that failed.
	Failed int64 `json:"failed" example:"1"`
	// Jobs whose object is preserved.
	Completed int64 `json:"completed" example:"9"`
	// Jobs that were deleted.
	Deleted int64 `json:"deleted" example:"0"`
}

// Batch is the current state of a submission.
type Batch struct {
	// The id of the batch.
	ID string `json:"id" example:"01M7ZBMEYHBB62YP6RY21T1GQ6"`
	// The state of the batch.
	State string `json:"state"`
	// Since when it is in that state. Absent for one of an earlier version that has not changed
	// since.
	Since string `json:"since,omitempty" format:"date-time" example:"2026-11-22T09:31:00Z"`
	// What the caller may do with it in this state: actions of `POST /v1/batches/{id}/actions`. Each says by a dry
	// run what it would do. Absent if there is nothing, and in lists.
	Actions []string `json:"actions,omitempty" example:"[\"hold\"]"`
	// The collection that its objects belong to.
	Collection string `json:"collection" example:"maps"`
	// The name or account of the submitter.
	Submitter string `json:"submitter,omitempty" example:"Map Library"`
	// The depositor's note about the batch.
	Note string `json:"note,omitempty" example:"Scans of 2026"`
	// When it was submitted.
	Created string `json:"created" format:"date-time" example:"2026-11-22T09:30:00Z"`
	// The number of its jobs by state.
	Counts Counts `json:"counts"`
	// The path of its report, relative to the API's URL. Absent until the report exists.
	Report string `json:"report,omitempty" example:"/v1/batches/01M7ZBMEYHBB62YP6RY21T1GQ6/report"`
	// The number of its saved reports. The path has the newest; with `?number=1` it has the first.
	Reports int `json:"reports" example:"1"`
	// The reason for its failure, or the message of its last step.
	Message string `json:"message,omitempty"`
	// The number of failed jobs after which it is cancelled. Absent if there is none.
	StopAfterFailures int `json:"stopAfterFailures,omitempty" example:"100"`
	// Who cancelled it, and why.
	Cancelled *Cancellation `json:"cancelled,omitempty"`
	// The URL of its own that is called for each preserved job, without its query. Absent if there is none.
	Callback string `json:"callback,omitempty" example:"https://example.org/preserved?redacted"`
	// The upload that has its files. Absent if it has none.
	Upload string `json:"upload,omitempty" example:"01M7ZBMEYHBB62YP6RY21T1GQ7"`
	// What stops the work on it: a hold of the batch or of its collection.
	Hold *Hold `json:"hold,omitempty"`
	// Warnings about its accepted manifest, at most the first few. The depositor should check them.
	Warnings []string `json:"warnings,omitempty" example:"[\"manifest: line 7: lines after #%eof are ignored\"]"`
	// What its completed jobs have deposited, in bytes. Absent if that is nothing, and for one of
	// an earlier version.
	Bytes int64 `json:"bytes,omitempty" example:"3145728"`
	// What became of the callbacks of its jobs. Absent if there are none.
	Callbacks *CallbackCounts `json:"callbacks,omitempty"`
	// What became of the mails about it: the last six that ended, and those that are pending.
	// Absent in lists.
	Mails []Notice `json:"mails,omitempty"`
	// Mails about it that did not reach a recipient. Absent in lists.
	MailProblems []MailProblem `json:"mailProblems,omitempty"`
}

// Cancellation is who cancelled a batch, when and why.
type Cancellation struct {
	// The reason.
	Reason string `json:"reason" example:"It was submitted twice."`
	// Who cancelled it: a person, or archivist after too many failures.
	Actor string `json:"actor" example:"an operator"`
	// When it was cancelled.
	At string `json:"at" format:"date-time" example:"2026-11-22T09:31:12Z"`
}

// MailProblem is a mail about a batch that did not reach a recipient.
type MailProblem struct {
	// Which mail: the notice that the batch is queued, the report, or what has changed since.
	Mail string `json:"mail" enum:"queued,report,update-report,delayed"`
	// The recipient. Absent if the mail could not be composed at all.
	To string `json:"to,omitempty" example:"maps@example.org"`
	// The error message of the mail service.
	Problem string `json:"problem" example:"Email address is not verified."`
	// The number of tries.
	Tries int `json:"tries" example:"2"`
	// The time of the next try. Absent if there is none.
	NextTry string `json:"nextTry,omitempty" format:"date-time" example:"2026-11-22T09:35:00Z"`
	// A summary of the problem in one sentence.
	Text string `json:"text"`
}

// Object is a preserved object.
type Object struct {
	// The ARK of the object.
	ARK string `json:"ark" example:"ark:/99999/fk4tq65d6k"`
	// The collection that it belongs to.
	Collection string `json:"collection" example:"maps"`
	// The title of the newest version.
	Title string `json:"title,omitempty" example:"Map of the harbour"`
	// The depositor's own ids, at most 100.
	LocalIDs []string `json:"localIds,omitempty" example:"[\"map-1851\"]"`
	// The newest version.
	Version int `json:"version" example:"1"`
	// When the first version was stored.
	Created string `json:"created" format:"date-time" example:"2026-11-22T09:31:12Z"`
	// When the newest version was stored.
	Modified string `json:"modified" format:"date-time" example:"2026-11-22T09:31:12Z"`
	// The sha512 of the OCFL inventory of the newest version.
	InventoryDigest string `json:"inventoryDigest"`
	// The prefix of the object's keys in the storage bucket.
	Stored string `json:"stored,omitempty" example:"0a1/b2c/3d4/ark%3a%2f99999%2ffk4tq65d6k/"`
	Fixity
	// The copy in the second bucket. Absent if there is none.
	Copy *ObjectCopy `json:"copy,omitempty"`
	// Why the files are not given out. Absent if they are.
	Withdrawn *Withdrawal `json:"withdrawn,omitempty"`
	// The embargo on the files, which are not given out before its last day has ended. Absent if there is none.
	Embargo *Embargo `json:"embargo,omitempty"`
	// Why no content of the object may be deleted: legal holds and retentions, its own and those of its collection.
	// Absent if there are none. Nothing deletes content of objects without them either.
	Kept []Kept `json:"kept,omitempty"`
	// The path of the page of the object that everybody may read, relative to the API's URL. Absent in lists, and if
	// the deployment has no such pages.
	Resolves string `json:"resolves,omitempty" example:"/ark:/99999/fk4tq65d6k"`
}

// Description is how a version of an object is described. Each element can have several values.
type Description struct {
	// The creators.
	Who []string `json:"who,omitempty" example:"[\"Blunt, John\"]"`
	// The titles.
	What []string `json:"what,omitempty" example:"[\"Map of the harbour\"]"`
	// The dates.
	When []string `json:"when,omitempty" example:"[\"1851\"]"`
	// The ids of the object.
	Where []string `json:"where,omitempty" example:"[\"ark:/99999/fk4tq65d6k\"]"`
	// The other elements, by their names in Dublin Core.
	More map[string][]string `json:"more,omitempty"`
}

// Kept is a reason why no content of an object may be deleted.
type Kept struct {
	// legal-hold: until it is lifted. retention: until a day has ended.
	Kind string `json:"kind" enum:"legal-hold,retention"`
	// Where it is said.
	Of string `json:"of" enum:"object,collection"`
	// The last day of a retention, in UTC.
	Until string `json:"until,omitempty" format:"date" example:"2036-12-31"`
	// The reason. Absent for the retention of a collection.
	Reason string `json:"reason,omitempty" example:"Case 17/2026"`
	// Who decided it. Absent for one of a collection: the events of the collection have it.
	By string `json:"by,omitempty" example:"ada"`
	// When.
	At string `json:"at,omitempty" format:"date-time" example:"2026-11-22T09:31:12Z"`
}

// Withdrawal is the withdrawal of an object from access. Its files stay stored.
type Withdrawal struct {
	// The reason.
	Reason string `json:"reason" example:"The rights are disputed."`
	// Who withdrew it.
	By string `json:"by,omitempty" example:"ada"`
	// When.
	At string `json:"at" format:"date-time" example:"2026-11-22T09:31:12Z"`
}

// Embargo is an embargo on the files of an object. They stay stored.
type Embargo struct {
	// The last day, in UTC.
	Until string `json:"until" format:"date" example:"2028-12-31"`
	// The reason.
	Reason string `json:"reason" example:"The author's wish"`
	// Who decided it.
	By string `json:"by,omitempty" example:"ada"`
	// When.
	At string `json:"at" format:"date-time" example:"2026-11-22T09:31:12Z"`
}

// Fixity is the last check of the files of an object in one of the buckets.
type Fixity struct {
	// When the files were last checked. Absent if they were not.
	FixityChecked string `json:"fixityChecked,omitempty" format:"date-time" example:"2026-11-22T09:31:12Z"`
	// What that check found.
	FixityOutcome string `json:"fixityOutcome,omitempty" enum:"ok,damaged,unreadable"`
	// The newest version that was checked, with all before it.
	FixityVersion int `json:"fixityVersion,omitempty" example:"1"`
}

// ObjectCopy is the copy of an object in the second bucket.
type ObjectCopy struct {
	// The newest version that was copied, with all before it.
	Version int `json:"version" example:"1"`
	// When.
	Copied string `json:"copied" format:"date-time" example:"2026-11-22T09:31:12Z"`
	Fixity
}

// Version is one version of an object.
type Version struct {
	// The number of the version, from 1.
	Version int `json:"version" example:"1"`
	// When it was stored.
	Created string `json:"created" format:"date-time" example:"2026-11-22T09:31:12Z"`
	// The job that stored it. Absent if it is not known.
	Job string `json:"job,omitempty" example:"01M7ZBMEYHBB62YP6RY21T1GQ6-00001"`
	// The number of its files, with the system files.
	Files int `json:"files" example:"8"`
	// The total size of these files in bytes.
	Bytes int64 `json:"bytes" example:"3151872"`
	// The sha512 of its OCFL inventory.
	InventoryDigest string `json:"inventoryDigest"`
}

// File is one file of a version.
type File struct {
	// The path in the version: producer/ has the deposited files, system/ the files that the archive created.
	Path string `json:"path" example:"producer/map.tif"`
	// The size in bytes.
	Size int64 `json:"size" example:"1048576"`
	// The media type, if it is known.
	MediaType string `json:"mediaType,omitempty" example:"image/tiff"`
	// Its digests by algorithm, in hexadecimal.
	Digests map[string]string `json:"digests"`
	// The bytes of its name in the container that it comes from, percent-encoded. Absent if they are those of its path.
	RawName string `json:"rawName,omitempty" example:"Z%81rich.txt"`
}

// List is one page of a list.
type List[T any] struct {
	// The items of this page. A page may be short or empty even if it is not the last one.
	Items []T `json:"items"`
	// The cursor of the next page, to pass as the parameter cursor. Absent on the last page.
	Cursor string `json:"cursor,omitempty"`
}

// Problem is an error response (RFC 9457).
type Problem struct {
	// The type of the problem: a stable name for programs.
	Type string `json:"type" format:"uri" example:"urn:archivist:problem:invalid-request"`
	// The type in words.
	Title string `json:"title" example:"Invalid request"`
	// The HTTP status.
	Status int `json:"status" example:"422"`
	// What was found, what is expected, and what to do.
	Detail string `json:"detail" example:"state: found \"done\"; expected one of Pending, Held, Completed, Failed"`
	// The invalid fields, if the request did not match its schema.
	Errors []FieldError `json:"errors,omitempty"`
}

// FieldError describes an invalid field of a request.
type FieldError struct {
	// The path of the field.
	Location string `json:"location,omitempty" example:"body.payload.url"`
	// The error.
	Message string `json:"message" example:"expected string to be RFC 3986 uri"`
}

// Reindexed is the result of a reindex.
type Reindexed struct {
	// The number of objects that were read.
	Objects int `json:"objects" example:"1000"`
	// The number of objects whose missing rows were restored.
	Changed int `json:"changed" example:"2"`
	// The objects that could not be restored completely.
	Failed []NotReindexed `json:"failed,omitempty"`
	// Send it with the next request to continue. Absent at the end.
	Cursor string `json:"cursor,omitempty"`
}

// NotReindexed is an object that could not be restored completely.
type NotReindexed struct {
	// The ARK of the object. Absent if the object cannot be read.
	ARK string `json:"ark,omitempty" example:"ark:/99999/fk4tq65d6k"`
	// The key of the object's declaration in the storage bucket.
	Stored string `json:"stored"`
	// The reason.
	Why string `json:"why"`
}

// ReceiptFile is one file of a receipt.
type ReceiptFile struct {
	// The path in the version.
	Path string `json:"path" example:"producer/map.tif"`
	// The size in bytes.
	Size int64 `json:"size" example:"1048576"`
	// The digests by algorithm, in hexadecimal, computed from the received content.
	Digests map[string]string `json:"digests"`
	// The depositor's digest, which matched.
	Given *Digest `json:"given,omitempty"`
	// A warning about the file, e.g. that the digest matched but the size differed.
	Warning string `json:"warning,omitempty"`
}

// Receipt lists what a job has preserved.
type Receipt struct {
	// The id of the job.
	Job string `json:"job" example:"01M7ZBMEYHBB62YP6RY21T1GQ6-00001"`
	// The id of its batch.
	Batch string `json:"batch" example:"01M7ZBMEYHBB62YP6RY21T1GQ6"`
	// The ARK of the object.
	ARK string `json:"ark" example:"ark:/99999/fk4tq65d6k"`
	// The version of the object.
	Version int `json:"version" example:"1"`
	// Whether the object already had this content, so that no new version was created.
	NoChange bool `json:"noChange,omitempty"`
	// When the version was stored.
	Created string `json:"created" format:"date-time" example:"2026-11-22T09:31:12Z"`
	// Warnings about the manifest and the files, at most the first few. Each file also has its own warning.
	Warnings []string `json:"warnings,omitempty" example:"[\"manifest: line 7: lines after #%eof are ignored\"]"`
	// One page of the files of the version.
	Files []ReceiptFile `json:"files"`
	// The cursor of the next page of files, to pass as the parameter cursor. Absent on the last page.
	Cursor string `json:"cursor,omitempty"`
}

// Event is a change of a batch, a job, an object or a collection.
type Event struct {
	// The id of the event.
	ID string `json:"id" example:"01M7ZBMEYHBB62YP6RY21T1GQ7.0"`
	// The number of the event among those of its subject, from 1 without gaps.
	Version int64 `json:"version" example:"3"`
	// The type of the event.
	Type string `json:"type"`
	// The time of the event.
	Time string `json:"time" format:"date-time" example:"2026-11-22T09:31:12Z"`
	// The outcome of the event.
	Outcome string `json:"outcome" enum:"success,failure"`
	// The person or account that caused it.
	Actor string `json:"actor,omitempty" example:"an operator"`
	// The component of the archive that caused it.
	Component string `json:"component,omitempty" example:"scheduler"`
	// The details. Their form depends on the type.
	Detail json.RawMessage `json:"detail,omitempty"`
}
