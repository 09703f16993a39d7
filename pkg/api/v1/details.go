package v1

import "archivist/pkg/notify"

// The types of events. Those of a job or a batch but batch.mail have a StateChange as
// detail, batch.mail a MailOutcome, those of an object an ObjectRecord, and
// collection.profile a Profile.
const (
	EventBatchState        = "batch.state"
	EventBatchMail         = "batch.mail"
	EventBatchRepaired     = "batch.repaired"
	EventJobState          = "job.state"
	EventJobRequeued       = "job.requeued"
	EventJobRepaired       = "job.repaired"
	EventJobPreserved      = "job.preserved"
	EventJobCleaned        = "job.cleaned"
	EventJobContinued      = "job.continued"
	EventObjectCreate      = "object.create"
	EventObjectModify      = "object.modify"
	EventCollectionProfile = "collection.profile"
)

// EventTypes are the types of events.
var EventTypes = []string{EventBatchState, EventBatchMail, EventBatchRepaired, EventJobState, EventJobRequeued,
	EventJobRepaired, EventJobPreserved, EventJobCleaned, EventJobContinued, EventObjectCreate, EventObjectModify,
	EventCollectionProfile}

// Waits are the kinds of what a batch or a job waits for.
var Waits = []string{"nothing", "person", "turn", "lock", "slot", "space", "start", "worker", "source", "jobs"}

// StateChange is the detail of an event of a job or a batch.
type StateChange struct {
	// The state before. Absent in the first event.
	From string `json:"from,omitempty" example:"Downloading"`
	// The state after.
	To string `json:"to" example:"Processing"`
	// The number of the execution that drives it. It only rises.
	Exec int64 `json:"exec" example:"2"`
	// Why.
	Reason string `json:"reason,omitempty"`
	// It waits, without a worker, for something that another job has.
	Parked bool `json:"parked,omitempty"`
}

// MailOutcome is the detail of the event that a mail was sent, or given up.
type MailOutcome struct {
	// Which mail: that the batch is queued, or its report.
	Mail string `json:"mail" enum:"queued,report"`
	// How often it was tried.
	Tries int `json:"tries" example:"1"`
	// How many recipients it was sent to.
	Sent int `json:"sent" example:"2"`
	// The recipients that it was not sent to.
	Failed []Delivery `json:"failed,omitempty"`
}

// Delivery is how a mail went to one recipient.
type Delivery struct {
	// The recipient.
	To string `json:"to" example:"maps@example.org"`
	// Whether it was sent.
	Sent bool `json:"sent"`
	// What the mail service said.
	Problem string `json:"problem,omitempty"`
}

// ObjectRecord is the detail of an event of an object: what was recorded of it.
type ObjectRecord struct {
	// The newest version.
	Version int `json:"version" example:"2"`
	// Versions that were recorded with it.
	Versions int `json:"versions" example:"1"`
	// Local ids that were not known before.
	LocalIDs []string `json:"localIds" nullable:"true" example:"[\"map-1851\"]"`
	// The job that stored the version. Absent if rows were rebuilt from the storage.
	Job string `json:"job,omitempty" example:"01M7ZBMEYHBB62YP6RY21T1GQ6-00001"`
}

// Report says how each job of a batch ended.
type Report struct {
	// The id of the batch.
	Batch string `json:"batch" example:"01M7ZBMEYHBB62YP6RY21T1GQ6"`
	// The collection of the batch.
	Collection string `json:"collection" example:"maps"`
	// What the depositor says of the batch.
	Note string `json:"note,omitempty" example:"Scans of 2026"`
	// When all jobs had ended.
	At string `json:"at" format:"date-time" example:"2026-11-22T09:32:00Z"`
	// Why the batch has no jobs.
	Message string `json:"message,omitempty"`
	// Why the jobs are not listed.
	Problem string `json:"problem,omitempty"`
	// What the depositor should look at in the manifest, although it is accepted: the first warnings.
	Warnings []string `json:"warnings,omitempty"`
	// How many jobs it has of each kind.
	Counts ReportCounts `json:"counts"`
	// The jobs that failed.
	Failed []ReportJob `json:"failed"`
	// The jobs whose object is preserved.
	Completed []ReportJob `json:"completed"`
	// The jobs that were requeued while the report was made.
	Open []ReportJob `json:"open"`
}

// ReportCounts are the numbers of the jobs of a report.
type ReportCounts struct {
	// Jobs that failed.
	Failed int `json:"failed" example:"0"`
	// Jobs whose object is preserved.
	Completed int `json:"completed" example:"1"`
	// Jobs that were requeued while the report was made.
	Open int `json:"open" example:"0"`
}

// ReportJob is how one job ended.
type ReportJob struct {
	// The id of the job.
	Job string `json:"job" example:"01M7ZBMEYHBB62YP6RY21T1GQ6-00001"`
	// The state of the job.
	State string `json:"state"`
	// Where its payload was, without secrets.
	Source string `json:"source,omitempty" example:"https://example.org/map.checkm"`
	// The ARK of the object.
	ARK string `json:"ark,omitempty" example:"ark:/99999/fk4tq65d6k"`
	// The version of the object.
	Version int `json:"version,omitempty" example:"1"`
	// The object had this content already: no new version was made.
	NoChange bool `json:"noChange,omitempty"`
	// The sha512 of the OCFL inventory of the version.
	InventoryDigest string `json:"inventoryDigest,omitempty"`
	// The depositor's ids.
	LocalIDs []string `json:"localIds,omitempty" example:"[\"map-1851\"]"`
	// The title.
	Title string `json:"title,omitempty" example:"Map of the harbour"`
	// How many files were deposited.
	Files int `json:"files,omitempty" example:"3"`
	// The bytes of these files.
	Bytes int64 `json:"bytes,omitempty" example:"3145728"`
	// What the depositor should look at: the first warnings of its manifest and of its files.
	// Reports of before 2026-11-22 have a number here.
	Warnings notify.Warnings `json:"warnings,omitempty" example:"[\"file map.tif: the depositor's size is 80 bytes, but 1400 were received; the digest matched\"]"`
	// Each file, of jobs of a few files.
	FileDetails []ReceiptFile `json:"fileDetails,omitempty"`
	// The path, below the API's URL, of the receipt with all files.
	Receipt string `json:"receipt,omitempty" example:"/v1/jobs/01M7ZBMEYHBB62YP6RY21T1GQ6-00001/receipt"`
	// Why the files are not listed.
	Problem string `json:"problem,omitempty"`
	// Why it failed.
	Message string `json:"message,omitempty"`
	// A requeue can help once the cause is corrected.
	Recoverable bool `json:"recoverable,omitempty"`
	// What to do about it.
	Next string `json:"next,omitempty"`
}
