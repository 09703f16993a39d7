// Package v1 is the wire form of the API: its types, and a client that needs
// nothing but HTTP.
package v1

import "encoding/json"

// Digest is a depositor's digest of the payload.
type Digest struct {
	Algorithm string `json:"algorithm" doc:"adler32, crc32, md5, sha1, sha256, sha384 or sha512; case and hyphens do not count" example:"sha256"`
	Value     string `json:"value" doc:"in hexadecimal"`
}

// Payload is what is to be ingested, by reference.
type Payload struct {
	URL      string  `json:"url" format:"uri" maxLength:"2048" doc:"http or https" example:"https://example.org/manifest.checkm"`
	Type     string  `json:"type,omitempty" enum:"file,object-manifest,batch-manifest,single-file-batch-manifest" doc:"told from the content when not given"`
	Filename string  `json:"filename,omitempty" maxLength:"4096" doc:"of a file; the last part of the URL when not given"`
	Size     *int64  `json:"size,omitempty" minimum:"0" doc:"bytes; 0 is an empty file"`
	Digest   *Digest `json:"digest,omitempty"`
}

// Identifiers of an object: its ark, and the depositor's own.
type Identifiers struct {
	Primary string   `json:"primary,omitempty" maxLength:"500" doc:"an ARK of this archive" example:"ark:/99999/fk4tq65d6k"`
	Local   []string `json:"local,omitempty" maxItems:"20" doc:"the depositor's own; a known one means a new version of that object"`
}

// Metadata is the kernel description (ERC).
type Metadata struct {
	Who   string `json:"who,omitempty" maxLength:"4000" doc:"creator; at most 4,000 bytes in one line, as the others"`
	What  string `json:"what,omitempty" maxLength:"4000" doc:"title"`
	When  string `json:"when,omitempty" maxLength:"4000" doc:"date"`
	Where string `json:"where,omitempty" maxLength:"4000"`
}

// BatchRequest is a submission.
type BatchRequest struct {
	Collection   string       `json:"collection" pattern:"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$" example:"maps"`
	Submitter    string       `json:"submitter,omitempty" maxLength:"200"`
	Mode         string       `json:"mode,omitempty" enum:"add" doc:"add: the payload is the complete new state of the object"`
	Payload      Payload      `json:"payload"`
	Identifiers  *Identifiers `json:"identifiers,omitempty"`
	Metadata     *Metadata    `json:"metadata,omitempty"`
	IfVersion    int          `json:"ifVersion,omitempty" minimum:"1" doc:"refuse if the object is at another version"`
	Notification []string     `json:"notification,omitempty" maxItems:"20" doc:"mail addresses that the report goes to"`
	Note         string       `json:"note,omitempty" maxLength:"2000"`
}

// Accepted answers a submission.
type Accepted struct {
	ID       string   `json:"id"`
	State    string   `json:"state"`
	Warnings []string `json:"warnings,omitempty"`
}

// Counts of a batch's jobs.
type Counts struct {
	Expected   int   `json:"expected"`
	Processing int64 `json:"processing"`
	Held       int64 `json:"held"`
	Failed     int64 `json:"failed"`
	Completed  int64 `json:"completed"`
	Deleted    int64 `json:"deleted"`
}

// Batch is a batch as it is now.
type Batch struct {
	ID           string        `json:"id"`
	State        string        `json:"state"`
	Collection   string        `json:"collection"`
	Submitter    string        `json:"submitter,omitempty"`
	Note         string        `json:"note,omitempty"`
	Created      string        `json:"created"`
	Counts       Counts        `json:"counts"`
	Report       string        `json:"report,omitempty" doc:"path of the API that gives the report; absent until there is one" example:"/v1/batches/01M7ZBMEYHBB62YP6RY21T1GQ6/report"`
	Message      string        `json:"message,omitempty"`
	MailProblems []MailProblem `json:"mailProblems,omitempty" doc:"mails about the batch that did not get to a recipient; of one batch only, not in lists"`
}

// MailProblem is a mail about a batch that did not get to a recipient.
type MailProblem struct {
	Mail    string `json:"mail" enum:"queued,report"`
	To      string `json:"to,omitempty" doc:"absent if the mail could not be composed for anybody"`
	Problem string `json:"problem"`
	Tries   int    `json:"tries"`
	NextTry string `json:"nextTry,omitempty" doc:"absent if it is given up"`
	Text    string `json:"text" doc:"all of it in a sentence"`
}

// Progress of a job.
type Progress struct {
	Files int    `json:"files"`
	Bytes int64  `json:"bytes"`
	Done  string `json:"done,omitempty"`
}

// Job is a job as it is now.
type Job struct {
	ID                  string      `json:"id"`
	Batch               string      `json:"batch"`
	Collection          string      `json:"collection"`
	State               string      `json:"state"`
	LastSuccessfulState string      `json:"lastSuccessfulState,omitempty"`
	Parked              bool        `json:"parked,omitempty"`
	Priority            int         `json:"priority"`
	SpaceNeeded         int64       `json:"spaceNeeded"`
	RetryCount          int         `json:"retryCount"`
	Recoverable         bool        `json:"recoverable,omitempty"`
	Identifiers         Identifiers `json:"identifiers"`
	Version             int         `json:"version,omitempty"`
	NoChange            bool        `json:"noChange,omitempty"`
	InventoryDigest     string      `json:"inventoryDigest,omitempty"`
	Message             string      `json:"message,omitempty"`
	Progress            Progress    `json:"progress"`
}

// Event is something that happened to a job, a batch or an object.
type Event struct {
	ID        string          `json:"id"`
	Version   int64           `json:"version"`
	Type      string          `json:"type"`
	Time      string          `json:"time"`
	Outcome   string          `json:"outcome"`
	Actor     string          `json:"actor,omitempty"`
	Component string          `json:"component,omitempty"`
	Detail    json.RawMessage `json:"detail,omitempty"`
}

// Explanation names the one thing that an item waits for.
type Explanation struct {
	State    string `json:"state"`
	WaitsFor string `json:"waitsFor"`
	Why      string `json:"why"`
	On       string `json:"on,omitempty"`
	// For operators: how the item is driven.
	Execution string `json:"execution,omitempty" doc:"name of the execution in Step Functions that drives the item"`
	Tries     int    `json:"tries,omitempty" doc:"takes by a worker since the last progress"`
	Repairs   int    `json:"repairs,omitempty" doc:"executions that replaced one without progress"`
	Leased    string `json:"leasedUntil,omitempty" doc:"until when a worker has the item"`
	Due       string `json:"nextCheck,omitempty" doc:"when the item is looked at if there is no progress"`
}

// Action on a job.
type Action struct {
	Action  string `json:"action" enum:"requeue,fail"`
	Reason  string `json:"reason" minLength:"1" maxLength:"2000"`
	Confirm bool   `json:"confirm,omitempty" doc:"of requeue: also if the object has a version by a later submission, which the job then replaces as the newest"`
}

// Object is a preserved object.
type Object struct {
	ARK             string   `json:"ark"`
	Collection      string   `json:"collection"`
	Title           string   `json:"title,omitempty"`
	LocalIDs        []string `json:"localIds,omitempty"`
	Version         int      `json:"version"`
	Created         string   `json:"created"`
	Modified        string   `json:"modified"`
	InventoryDigest string   `json:"inventoryDigest"`
	Stored          string   `json:"stored,omitempty" doc:"where the object is: the prefix of its keys in the storage bucket"`
}

// Version is one version of an object.
type Version struct {
	Version         int    `json:"version"`
	Created         string `json:"created"`
	Job             string `json:"job,omitempty"`
	Files           int    `json:"files"`
	Bytes           int64  `json:"bytes"`
	InventoryDigest string `json:"inventoryDigest"`
}

// File is one file of a version.
type File struct {
	Path      string            `json:"path"`
	Size      int64             `json:"size"`
	MediaType string            `json:"mediaType,omitempty"`
	Digests   map[string]string `json:"digests"`
}

// Queue is the queue at a glance.
type Queue struct {
	Waiting       map[string]int `json:"waiting"`
	Running       int            `json:"running"`
	MaxInFlight   int            `json:"maxInFlight"`
	SpaceFree     int64          `json:"spaceFree"`
	OldestWaiting string         `json:"oldestWaiting,omitempty"`
	OldestSince   string         `json:"oldestSince,omitempty"`
	LastSweep     string         `json:"lastSweep,omitempty" doc:"when the scheduler swept last; it does so each minute"`
}

// List is a page of a list.
type List[T any] struct {
	Items  []T    `json:"items"`
	Cursor string `json:"cursor,omitempty" doc:"of the next page; absent on the last"`
}

// Problem is a refusal (RFC 9457).
type Problem struct {
	Type   string       `json:"type" format:"uri"`
	Title  string       `json:"title"`
	Status int          `json:"status"`
	Detail string       `json:"detail"`
	Errors []FieldError `json:"errors,omitempty"`
}

// FieldError is what is wrong with one field of a request.
type FieldError struct {
	Location string `json:"location,omitempty"`
	Message  string `json:"message"`
}

// Reindexed says what a reindex did.
type Reindexed struct {
	Objects int            `json:"objects"` // looked at
	Changed int            `json:"changed"` // of which rows were missing
	Failed  []NotReindexed `json:"failed,omitempty" doc:"objects that were not brought back as a whole"`
	Cursor  string         `json:"cursor,omitempty" doc:"of the rest: ask again with it; absent at the end"`
}

// NotReindexed is an object that was not brought back as a whole, and why.
type NotReindexed struct {
	ARK    string `json:"ark,omitempty" doc:"absent where the object cannot be read"`
	Stored string `json:"stored" doc:"where the object is declared in the storage bucket"`
	Why    string `json:"why"`
}

// ReceiptFile is one file of a receipt.
type ReceiptFile struct {
	Path    string            `json:"path"`
	Size    int64             `json:"size"`
	Digests map[string]string `json:"digests" doc:"computed from what came"`
	Given   *Digest           `json:"given,omitempty" doc:"by the depositor; it was found to be right"`
}

// Receipt says what is preserved of a job.
type Receipt struct {
	Job      string        `json:"job"`
	Batch    string        `json:"batch"`
	ARK      string        `json:"ark"`
	Version  int           `json:"version"`
	NoChange bool          `json:"noChange,omitempty"`
	Created  string        `json:"created"`
	Files    []ReceiptFile `json:"files"`
	Cursor   string        `json:"cursor,omitempty" doc:"of the next files; none after the last"`
}

// Profile is how a collection is treated. What is left out is as by default.
type Profile struct {
	Title         string    `json:"title,omitempty" maxLength:"500"`
	Priority      *int      `json:"priority,omitempty" minimum:"0" maximum:"999" doc:"of its jobs, 0 is best; by default by the size of the batch"`
	Shoulder      string    `json:"shoulder,omitempty" maxLength:"20" doc:"of its arks, e.g. fk4; by default that of the archive"`
	RequireDigest bool      `json:"requireDigest,omitempty" doc:"refuse manifests with a file that has no digest"`
	Notification  []string  `json:"notification,omitempty" maxItems:"20" doc:"mail addresses, beside those of a submission"`
	Suppress      string    `json:"suppress,omitempty" enum:"none,partial,full" doc:"mails that are not sent: none; partial: that a submission is queued; full: all"`
	Callback      *Callback `json:"callback,omitempty"`
}

// Callback is a signed request to a depositor's server for each preserved job.
type Callback struct {
	URL    string `json:"url" maxLength:"2048" doc:"https"`
	Secret string `json:"secret" maxLength:"512" doc:"name of the secret in Secrets Manager that signs the request; it begins with archivist/" example:"archivist/callback"`
	Mode   string `json:"mode,omitempty" enum:"required,best-effort" doc:"required (by default): a job whose callback fails is Failed until it is requeued"`
}

// Collection is a collection with its profile.
type Collection struct {
	Name    string  `json:"name"`
	Default bool    `json:"default,omitempty" doc:"it has no profile of its own"`
	Profile Profile `json:"profile"`
}
