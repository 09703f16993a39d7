// Package v1 is the API as a client sees it: what is sent and answered as JSON, and a
// client that needs nothing but HTTP.
//
// A depositor submits a batch: one payload by its URL, a file or a manifest of files or
// of objects. The archive makes a job of each object, and a job ends with a version of
// an object, which a receipt lists file by file:
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

// Digest of a file.
type Digest struct {
	// adler32, crc32, md5, sha1, sha256, sha384 or sha512. Case and hyphens do not count.
	Algorithm string `json:"algorithm" example:"sha256"`
	// The digest in hexadecimal.
	Value string `json:"value" example:"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"`
}

// Payload is what is ingested, by reference.
type Payload struct {
	// Where the payload is: an http or https URL.
	URL string `json:"url" format:"uri" maxLength:"2048" example:"https://example.org/map.checkm"`
	// What the payload is. The archive looks at its content if this is not given.
	Type string `json:"type,omitempty" enum:"file,object-manifest,batch-manifest,single-file-batch-manifest"`
	// The name under which a file is kept. The last part of the URL if it is not given.
	Filename string `json:"filename,omitempty" maxLength:"4096" example:"map.tif"`
	// The size in bytes; 0 is an empty file. What arrives is compared with it.
	Size *int64 `json:"size,omitempty" minimum:"0" example:"1048576"`
	// The depositor's digest of the payload. What arrives is compared with it.
	Digest *Digest `json:"digest,omitempty"`
}

// Identifiers of an object.
type Identifiers struct {
	// The ARK of the object. In a submission: of an object that exists, or one to be used.
	Primary string `json:"primary,omitempty" maxLength:"500" example:"ark:/99999/fk4tq65d6k"`
	// The depositor's own ids. In a submission a known one means a new version of that object.
	Local []string `json:"local,omitempty" maxItems:"20" example:"[\"map-1851\"]"`
}

// Metadata is the kernel description of an object (ERC).
type Metadata struct {
	// The creator. At most 4,000 bytes in one line, as the others.
	Who string `json:"who,omitempty" maxLength:"4000" example:"Blunt, John"`
	// The title.
	What string `json:"what,omitempty" maxLength:"4000" example:"Map of the harbour"`
	// The date.
	When string `json:"when,omitempty" maxLength:"4000" example:"1851"`
	// Where the original is, or its id there.
	Where string `json:"where,omitempty" maxLength:"4000" example:"https://example.org/maps/1851"`
}

// BatchRequest is a submission.
type BatchRequest struct {
	// The collection that the objects belong to.
	Collection string `json:"collection" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$" example:"maps"`
	// Who submits: a name or an account. It is kept with the version.
	Submitter string `json:"submitter,omitempty" maxLength:"200" example:"Map Library"`
	// How the payload relates to what is stored. add: it is the complete new state of the object.
	Mode string `json:"mode,omitempty" enum:"add"`
	// What is ingested.
	Payload Payload `json:"payload"`
	// Identifiers of the object. Not for a payload of many objects, whose manifest has them.
	Identifiers *Identifiers `json:"identifiers,omitempty"`
	// The description of the object. Not for a payload of many objects.
	Metadata *Metadata `json:"metadata,omitempty"`
	// Refuse the job if the object is at another version than this one.
	IfVersion int `json:"ifVersion,omitempty" minimum:"1" example:"1"`
	// Mail addresses that the report is sent to, beside those of the collection.
	Notification []string `json:"notification,omitempty" maxItems:"20" example:"[\"maps@example.org\"]"`
	// What the depositor says of the batch. It is kept as the message of the version.
	Note string `json:"note,omitempty" maxLength:"2000" example:"Scans of 2026"`
}

// Accepted answers a submission.
type Accepted struct {
	// The id of the batch.
	ID string `json:"id" example:"01M7ZBMEYHBB62YP6RY21T1GQ6"`
	// The state of the batch.
	State string `json:"state"`
	// What the submitter should look at. The batch is accepted all the same.
	Warnings []string `json:"warnings,omitempty"`
}

// Counts are the numbers of a batch's jobs.
type Counts struct {
	// Jobs in all, once the manifest is read.
	Expected int `json:"expected" example:"12"`
	// Jobs under way.
	Processing int64 `json:"processing" example:"2"`
	// Jobs that a person holds.
	Held int64 `json:"held" example:"0"`
	// Jobs that failed.
	Failed int64 `json:"failed" example:"1"`
	// Jobs whose object is preserved.
	Completed int64 `json:"completed" example:"9"`
	// Jobs that were deleted.
	Deleted int64 `json:"deleted" example:"0"`
}

// Batch is a submission as it is now.
type Batch struct {
	// The id of the batch.
	ID string `json:"id" example:"01M7ZBMEYHBB62YP6RY21T1GQ6"`
	// The state of the batch.
	State string `json:"state"`
	// The collection that its objects belong to.
	Collection string `json:"collection" example:"maps"`
	// Who submitted it.
	Submitter string `json:"submitter,omitempty" example:"Map Library"`
	// What the depositor says of it.
	Note string `json:"note,omitempty" example:"Scans of 2026"`
	// When it was submitted.
	Created string `json:"created" format:"date-time" example:"2026-11-22T09:30:00Z"`
	// How many of its jobs are in which class of states.
	Counts Counts `json:"counts"`
	// The path, below the API's URL, of its report. Absent until there is one.
	Report string `json:"report,omitempty" example:"/v1/batches/01M7ZBMEYHBB62YP6RY21T1GQ6/report"`
	// Why it failed, or what its last step said.
	Message string `json:"message,omitempty"`
	// What the depositor should look at in its manifest, although it is accepted: the first warnings.
	Warnings []string `json:"warnings,omitempty" example:"[\"manifest: line 7: there are lines after #%eof; they are ignored\"]"`
	// Mails about it that did not reach a recipient. Absent in lists.
	MailProblems []MailProblem `json:"mailProblems,omitempty"`
}

// MailProblem is a mail about a batch that did not reach a recipient.
type MailProblem struct {
	// Which mail: that the batch is queued, or its report.
	Mail string `json:"mail" enum:"queued,report"`
	// The recipient. Absent if the mail could not be composed for anybody.
	To string `json:"to,omitempty" example:"maps@example.org"`
	// What the mail service said.
	Problem string `json:"problem" example:"Email address is not verified."`
	// How often it was tried.
	Tries int `json:"tries" example:"2"`
	// When it is tried again. Absent if it is given up.
	NextTry string `json:"nextTry,omitempty" format:"date-time" example:"2026-11-22T09:35:00Z"`
	// All of it in a sentence.
	Text string `json:"text"`
}

// Progress of a job.
type Progress struct {
	// Files of the object, once they are known.
	Files int `json:"files" example:"3"`
	// Bytes of these files, once they are known.
	Bytes int64 `json:"bytes" example:"3145728"`
	// How far the stage that runs has got, in words.
	Done string `json:"done,omitempty" example:"1 of 3 files"`
}

// Job is one object on its way into the archive, as it is now.
type Job struct {
	// The id of the job: that of its batch, a hyphen, and its row in the manifest.
	ID string `json:"id" example:"01M7ZBMEYHBB62YP6RY21T1GQ6-00001"`
	// The id of its batch.
	Batch string `json:"batch" example:"01M7ZBMEYHBB62YP6RY21T1GQ6"`
	// The collection that the object belongs to.
	Collection string `json:"collection" example:"maps"`
	// The state of the job.
	State string `json:"state"`
	// The last state in which it succeeded: a requeue goes on after it.
	LastSuccessfulState string `json:"lastSuccessfulState,omitempty"`
	// It waits, without a worker, for something that another job has.
	Parked bool `json:"parked,omitempty"`
	// From 0, which is served first, to 999.
	Priority int `json:"priority" minimum:"0" maximum:"999" example:"5"`
	// Bytes of work space that it needs, 0 until they are known.
	SpaceNeeded int64 `json:"spaceNeeded" example:"3145728"`
	// How often its stages were tried again.
	RetryCount int `json:"retryCount" example:"0"`
	// It failed, and a requeue can help once the cause is corrected.
	Recoverable bool `json:"recoverable,omitempty"`
	// The identifiers of the object.
	Identifiers Identifiers `json:"identifiers"`
	// The version of the object that holds what the job brought. Absent until it is stored.
	Version int `json:"version,omitempty" example:"1"`
	// The object had this content already: no new version was made.
	NoChange bool `json:"noChange,omitempty"`
	// The sha512 of the OCFL inventory of that version.
	InventoryDigest string `json:"inventoryDigest,omitempty"`
	// What the depositor should look at, although it is accepted: the first warnings of its manifest and its files.
	Warnings []string `json:"warnings,omitempty" example:"[\"file map.tif: the depositor's size is 80 bytes, but 1400 were received; the digest matched\"]"`
	// Why it failed, or what its last stage said.
	Message string `json:"message,omitempty"`
	// How far it has got.
	Progress Progress `json:"progress"`
}

// Explanation says what a batch or a job waits for.
type Explanation struct {
	// The state of the batch or the job.
	State string `json:"state"`
	// The kind of what it waits for.
	WaitsFor string `json:"waitsFor"`
	// The whole answer, in a sentence or two.
	Why string `json:"why" example:"Waiting to start: the limit of running jobs (200) is reached. 12 of 343 waiting jobs are ahead."`
	// The job or the lock that it waits for, if there is one.
	On string `json:"on,omitempty" example:"01M7ZBMEYHBB62YP6RY21T1GQ6-00001"`
	// For operators: the execution in Step Functions that drives it.
	Execution string `json:"execution,omitempty" example:"01M7ZBMEYHBB62YP6RY21T1GQ6-00001-2"`
	// For operators: how often a worker took it since the last progress.
	Tries int `json:"tries,omitempty" example:"1"`
	// For operators: executions that replaced one without progress.
	Repairs int `json:"repairs,omitempty" example:"0"`
	// For operators: until when a worker has it.
	Leased string `json:"leasedUntil,omitempty" format:"date-time" example:"2026-11-22T09:35:00Z"`
	// For operators: when it is looked at if there is no progress.
	Due string `json:"nextCheck,omitempty" format:"date-time" example:"2026-11-22T09:40:00Z"`
}

// Action on a job.
type Action struct {
	// requeue: a failed job goes on after its last successful state. fail: a job under way fails.
	Action string `json:"action" enum:"requeue,fail"`
	// Why. It is kept in the job's events.
	Reason string `json:"reason" minLength:"1" maxLength:"2000" example:"The source is reachable again."`
	// Of a requeue: also if a later submission has stored a version, which the job then replaces as the newest.
	Confirm bool `json:"confirm,omitempty"`
}

// Object is a preserved object.
type Object struct {
	// The ARK of the object.
	ARK string `json:"ark" example:"ark:/99999/fk4tq65d6k"`
	// The collection that it belongs to.
	Collection string `json:"collection" example:"maps"`
	// The title of the newest version.
	Title string `json:"title,omitempty" example:"Map of the harbour"`
	// The depositor's ids, at most 100 of them.
	LocalIDs []string `json:"localIds,omitempty" example:"[\"map-1851\"]"`
	// The newest version.
	Version int `json:"version" example:"1"`
	// When the first version was stored.
	Created string `json:"created" format:"date-time" example:"2026-11-22T09:31:12Z"`
	// When the newest version was stored.
	Modified string `json:"modified" format:"date-time" example:"2026-11-22T09:31:12Z"`
	// The sha512 of the OCFL inventory of the newest version.
	InventoryDigest string `json:"inventoryDigest"`
	// Where the object is: the prefix of its keys in the storage bucket.
	Stored string `json:"stored,omitempty" example:"0a1/b2c/3d4/ark%3a%2f99999%2ffk4tq65d6k/"`
}

// Version is one version of an object.
type Version struct {
	// The number of the version, from 1.
	Version int `json:"version" example:"1"`
	// When it was stored.
	Created string `json:"created" format:"date-time" example:"2026-11-22T09:31:12Z"`
	// The job that stored it. Absent if that is not known.
	Job string `json:"job,omitempty" example:"01M7ZBMEYHBB62YP6RY21T1GQ6-00001"`
	// Its files, with those of the system.
	Files int `json:"files" example:"8"`
	// The bytes of these files.
	Bytes int64 `json:"bytes" example:"3151872"`
	// The sha512 of its OCFL inventory.
	InventoryDigest string `json:"inventoryDigest"`
}

// File is one file of a version.
type File struct {
	// The path in the version: below producer/ as deposited, below system/ as the archive made it.
	Path string `json:"path" example:"producer/map.tif"`
	// The size in bytes.
	Size int64 `json:"size" example:"1048576"`
	// The media type, if it is known.
	MediaType string `json:"mediaType,omitempty" example:"image/tiff"`
	// Its digests by algorithm, in hexadecimal.
	Digests map[string]string `json:"digests"`
}

// Queue is the queue at a glance.
type Queue struct {
	// Jobs that wait, by where: pending, provisioning, parked. At most 1,000 of each are counted.
	Waiting map[string]int `json:"waiting"`
	// Jobs that run.
	Running int `json:"running" example:"4"`
	// How many jobs run at once at most.
	MaxInFlight int `json:"maxInFlight" example:"20"`
	// Bytes of work space that are free.
	SpaceFree int64 `json:"spaceFree" example:"10995116277760"`
	// The job that waits the longest.
	OldestWaiting string `json:"oldestWaiting,omitempty" example:"01M7ZBMEYHBB62YP6RY21T1GQ6-00001"`
	// Since when it waits.
	OldestSince string `json:"oldestSince,omitempty" format:"date-time" example:"2026-11-22T09:30:00Z"`
	// When the scheduler last looked for jobs to repair. It does so each minute.
	LastSweep string `json:"lastSweep,omitempty" format:"date-time" example:"2026-11-22T09:40:00Z"`
}

// List is a page of a list.
type List[T any] struct {
	// The items of this page. A page may be short, or empty, and not be the last.
	Items []T `json:"items"`
	// Pass it as the parameter cursor to get the next page. Absent on the last page.
	Cursor string `json:"cursor,omitempty"`
}

// Problem is a refusal (RFC 9457).
type Problem struct {
	// The type of the problem: a stable name for programs.
	Type string `json:"type" format:"uri" example:"urn:archivist:problem:invalid-request"`
	// The type in words.
	Title string `json:"title" example:"Invalid request"`
	// The HTTP status.
	Status int `json:"status" example:"422"`
	// What was found, what is expected, and what to do.
	Detail string `json:"detail" example:"state: found \"done\"; expected one of Pending, Held, Completed, Failed"`
	// The fields that are wrong, if the request was not of the documented form.
	Errors []FieldError `json:"errors,omitempty"`
}

// FieldError is what is wrong with one field of a request.
type FieldError struct {
	// Where the field is.
	Location string `json:"location,omitempty" example:"body.payload.url"`
	// What is wrong with it.
	Message string `json:"message" example:"expected string to be RFC 3986 uri"`
}

// Reindexed says what a reindex did.
type Reindexed struct {
	// Objects that were looked at.
	Objects int `json:"objects" example:"1000"`
	// Those of which rows were missing, and were written.
	Changed int `json:"changed" example:"2"`
	// Objects that were not brought back as a whole.
	Failed []NotReindexed `json:"failed,omitempty"`
	// Ask again with it for the rest. Absent at the end.
	Cursor string `json:"cursor,omitempty"`
}

// NotReindexed is an object that was not brought back as a whole.
type NotReindexed struct {
	// The ARK of the object. Absent if the object cannot be read.
	ARK string `json:"ark,omitempty" example:"ark:/99999/fk4tq65d6k"`
	// Where the object is declared in the storage bucket.
	Stored string `json:"stored"`
	// Why.
	Why string `json:"why"`
}

// ReceiptFile is one file of a receipt.
type ReceiptFile struct {
	// The path in the version.
	Path string `json:"path" example:"producer/map.tif"`
	// The size in bytes.
	Size int64 `json:"size" example:"1048576"`
	// Digests by algorithm, in hexadecimal, computed from what was received.
	Digests map[string]string `json:"digests"`
	// The depositor's digest. It matched.
	Given *Digest `json:"given,omitempty"`
	// What the depositor should look at, e.g. that the digest matched and the size differed.
	Warning string `json:"warning,omitempty"`
}

// Receipt says what is preserved of a job.
type Receipt struct {
	// The id of the job.
	Job string `json:"job" example:"01M7ZBMEYHBB62YP6RY21T1GQ6-00001"`
	// The id of its batch.
	Batch string `json:"batch" example:"01M7ZBMEYHBB62YP6RY21T1GQ6"`
	// The ARK of the object.
	ARK string `json:"ark" example:"ark:/99999/fk4tq65d6k"`
	// The version of the object.
	Version int `json:"version" example:"1"`
	// The object had this content already: no new version was made.
	NoChange bool `json:"noChange,omitempty"`
	// When the version was stored.
	Created string `json:"created" format:"date-time" example:"2026-11-22T09:31:12Z"`
	// What the depositor should look at: the first warnings of its manifest and its files. Each file has its own, too.
	Warnings []string `json:"warnings,omitempty" example:"[\"manifest: line 7: there are lines after #%eof; they are ignored\"]"`
	// The files of the version, a page of them.
	Files []ReceiptFile `json:"files"`
	// Pass it as the parameter cursor to get the next files. Absent on the last page.
	Cursor string `json:"cursor,omitempty"`
}

// Profile is how a collection is treated. What is absent is as by default.
type Profile struct {
	// The title of the collection.
	Title string `json:"title,omitempty" maxLength:"500" example:"Historical maps"`
	// The priority of its jobs, 0 first. By default it follows from the size of the batch.
	Priority *int `json:"priority,omitempty" minimum:"0" maximum:"999" example:"5"`
	// The beginning of the ARKs that are minted for it. By default that of the archive.
	Shoulder string `json:"shoulder,omitempty" maxLength:"20" example:"fk4"`
	// Refuse files without a digest.
	RequireDigest bool `json:"requireDigest,omitempty"`
	// Mail addresses that hear of each submission, beside those of the submission.
	Notification []string `json:"notification,omitempty" maxItems:"20" example:"[\"maps@example.org\"]"`
	// Mails that are not sent. none: all are sent; partial: not that a batch is queued; full: none is sent.
	Suppress string `json:"suppress,omitempty" enum:"none,partial,full"`
	// A request to a server of the depositor for each preserved job.
	Callback *Callback `json:"callback,omitempty"`
}

// Callback is a signed request to a depositor's server for each preserved job.
type Callback struct {
	// Where it is sent: an https URL.
	URL string `json:"url" maxLength:"2048" example:"https://example.org/preserved"`
	// The name of the secret in AWS Secrets Manager that signs it. It begins with archivist/.
	Secret string `json:"secret" maxLength:"512" example:"archivist/callback"`
	// required, the default: a job whose callback fails is Failed until it is requeued. best-effort: it completes.
	Mode string `json:"mode,omitempty" enum:"required,best-effort"`
}

// Collection is a collection with its profile.
type Collection struct {
	// The name of the collection.
	Name string `json:"name" example:"maps"`
	// It has no profile of its own: the profile is the default.
	Default bool `json:"default,omitempty"`
	// How it is treated.
	Profile Profile `json:"profile"`
}

// Event is something that happened to a batch, a job, an object or a collection.
type Event struct {
	// The id of the event.
	ID string `json:"id" example:"01M7ZBMEYHBB62YP6RY21T1GQ7.Job"`
	// Its number among the events of its subject, from 1 without gaps.
	Version int64 `json:"version" example:"3"`
	// What happened.
	Type string `json:"type"`
	// When it happened.
	Time string `json:"time" format:"date-time" example:"2026-11-22T09:31:12Z"`
	// Whether it succeeded.
	Outcome string `json:"outcome" enum:"success,failure"`
	// The person or account that caused it.
	Actor string `json:"actor,omitempty" example:"an operator"`
	// The part of the system that did it.
	Component string `json:"component,omitempty" example:"scheduler"`
	// The particulars. Their form follows from the type.
	Detail json.RawMessage `json:"detail,omitempty"`
}
