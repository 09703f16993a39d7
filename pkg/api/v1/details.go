package v1

import "archivist/pkg/ingest/notify"

// The types of events. The detail of an event of a job or a batch is a StateChange, but
// that of batch.mail is a MailOutcome. The detail of an event of an object is an
// ObjectRecord, that of collection.profile a Profile, that of a hold of a collection or
// of a pause a HoldChange, and that of an operation an OperationChange.
const (
	EventBatchState        = "batch.state"
	EventBatchCancelled    = "batch.cancelled"
	EventBatchMail         = "batch.mail"
	EventBatchRepaired     = "batch.repaired"
	EventJobState          = "job.state"
	EventJobRequeued       = "job.requeued"
	EventJobRepaired       = "job.repaired"
	EventJobPreserved      = "job.preserved"
	EventJobCleaned        = "job.cleaned"
	EventJobCleaning       = "job.cleaning"
	EventJobPrioritized    = "job.prioritized"
	EventJobContinued      = "job.continued"
	EventJobHeld           = "job.held"
	EventJobReleased       = "job.released"
	EventObjectCreate      = "object.create"
	EventObjectModify      = "object.modify"
	EventCollectionProfile = "collection.profile"
	EventCollectionHeld    = "collection.held"
	EventCollectionRelease = "collection.released"
	EventBatchHeld         = "batch.held"
	EventBatchReleased     = "batch.released"
	EventQueuePaused       = "queue.paused"
	EventQueueResumed      = "queue.resumed"
	EventStoragePaused     = "storage.paused"
	EventStorageResumed    = "storage.resumed"
	EventEpochRaised       = "epoch.raised"
	EventOperationStarted  = "operation.started"
	EventOperationDone     = "operation.done"
	EventOperationStopped  = "operation.interrupted"
	EventOperationContinue = "operation.continued"
	EventOperationRepaired = "operation.repaired"
	EventConsumerCreated   = "consumer.created"
	EventConsumerChanged   = "consumer.changed"
	EventConsumerPaused    = "consumer.paused"
	EventConsumerResumed   = "consumer.resumed"
	EventConsumerRun       = "consumer.run"
	EventConsumerSkipped   = "consumer.skipped"
	EventConsumerReset     = "consumer.reset"
	EventConsumerRedriven  = "consumer.redriven"
	EventConsumerDiscarded = "consumer.discarded"
	EventConsumerDeleted   = "consumer.deleted"
	EventConsumerReplayed  = "consumer.replayed"
	EventConsumerRebuilt   = "consumer.rebuilt"
	EventReplayCancelled   = "consumer.replay-cancelled"
	EventReplayDone        = "consumer.replay-done"
	EventComponentCreated  = "component.created"
	EventComponentChanged  = "component.changed"
	EventComponentPaused   = "component.paused"
	EventComponentResumed  = "component.resumed"
	EventComponentDeleted  = "component.deleted"
	EventDerivativeCreate  = "derivative.create"
	EventObjectRepair      = "object.repair"
	EventProjectApplied    = "project.applied"
	EventProjectPaused     = "project.paused"
	EventProjectResumed    = "project.resumed"
	EventResearcherPaused  = "project.researcher-paused"
	EventResearcherResumed = "project.researcher-resumed"
	EventEpisodeCurated    = "episode.curated"
	EventEpisodeWithdrawn  = "episode.withdrawn"
	EventEpisodeResearched = "episode.researched"
	EventEpisodeDeferred   = "episode.deferred"
	EventEpisodeSetAside   = "episode.set-aside"
	EventEpisodeDiffers    = "episode.differs"
	EventEpisodeDecided    = "episode.decided"
	EventEpisodeReviewed   = "episode.reviewed"
	EventEpisodeRetried    = "episode.retried"
	EventClipCurated       = "clip.curated"
	EventClipWithdrawn     = "clip.withdrawn"
	EventClipDeferred      = "clip.deferred"
	EventClipSetAside      = "clip.set-aside"
	EventClipRetried       = "clip.retried"
	EventLeaseCreated      = "lease.created"
	EventLeaseAccepted     = "lease.accepted"
	EventLeaseExtended     = "lease.extended"
	EventLeaseEnded        = "lease.ended"
	EventArchiveAdded      = "archive.added"
	EventArchiveChanged    = "archive.changed"
	EventArchivePaused     = "archive.paused"
	EventArchiveResumed    = "archive.resumed"
	EventArchiveStopped    = "archive.stopped"
	EventArchiveBackfilled = "archive.backfilled"
	EventArchiveDeleted    = "archive.deleted"
	EventRevisionNotified  = "revision.notified"
	EventRevisionSkipped   = "revision.skipped"
	EventRevisionCommitted = "revision.committed"
	EventTaskPlanned       = "task.planned"
	EventTaskState         = "task.state"
	EventTaskTold          = "task.told"
	EventUploadOpened      = "upload.opened"
	EventUploadSubmitted   = "upload.submitted"
	EventUploadExpired     = "upload.expired"
	EventUploadDiscarded   = "upload.discarded"
	EventUploadRemoved     = "upload.removed"
	EventTokenCreated      = "token.created"
	EventTokenRevoked      = "token.revoked"
)

// EventTypes are the types of events.
var EventTypes = []string{EventUploadOpened, EventUploadSubmitted, EventUploadExpired, EventUploadDiscarded,
	EventUploadRemoved, EventTokenCreated, EventTokenRevoked,
	EventBatchState, EventBatchCancelled, EventBatchMail, EventBatchRepaired,
	EventJobState,
	EventJobRequeued,
	EventJobRepaired, EventJobPreserved, EventJobCleaned, EventJobCleaning, EventJobPrioritized,
	EventJobContinued, EventObjectCreate, EventObjectModify,
	EventCollectionProfile, EventCollectionHeld, EventCollectionRelease, EventBatchHeld,
	EventBatchReleased,
	EventJobHeld, EventJobReleased, EventQueuePaused, EventQueueResumed, EventStoragePaused,
	EventStorageResumed,
	EventEpochRaised,
	EventOperationStarted, EventOperationDone, EventOperationStopped, EventOperationContinue,
	EventOperationRepaired, EventConsumerCreated, EventConsumerChanged, EventConsumerPaused,
	EventConsumerResumed, EventConsumerRun, EventConsumerSkipped, EventConsumerReset, EventConsumerRedriven,
	EventConsumerDiscarded, EventConsumerDeleted, EventConsumerReplayed, EventConsumerRebuilt,
	EventReplayCancelled, EventReplayDone, EventComponentCreated, EventComponentChanged,
	EventComponentPaused,
	EventComponentResumed, EventComponentDeleted, EventDerivativeCreate, EventObjectRepair,
	EventProjectApplied,
	EventProjectPaused, EventProjectResumed, EventResearcherPaused, EventResearcherResumed,
	EventEpisodeCurated, EventEpisodeWithdrawn,
	EventEpisodeResearched,
	EventEpisodeDeferred, EventEpisodeSetAside, EventEpisodeDiffers, EventEpisodeDecided,
	EventEpisodeReviewed,
	EventEpisodeRetried, EventClipCurated,
	EventClipWithdrawn,
	EventClipDeferred, EventClipSetAside, EventClipRetried, EventLeaseCreated, EventLeaseAccepted,
	EventLeaseExtended,
	EventLeaseEnded, EventArchiveAdded, EventArchiveChanged, EventArchivePaused,
	EventArchiveResumed,
	EventArchiveStopped, EventArchiveBackfilled, EventArchiveDeleted, EventRevisionNotified,
	EventRevisionSkipped,
	EventRevisionCommitted, EventTaskPlanned, EventTaskState, EventTaskTold}

// StateChange is the detail of an event of a job or a batch.
type StateChange struct {
	// The state before. Absent in the first event.
	From string `json:"from,omitempty" example:"Downloading"`
	// The state after.
	To string `json:"to" example:"Processing"`
	// The number of the execution that drives the job or batch. It never decreases.
	Exec int64 `json:"exec" example:"2"`
	// The reason.
	Reason string `json:"reason,omitempty"`
	// Whether the job is parked: it waits, without an execution, for something that another job holds.
	Parked bool `json:"parked,omitempty"`
	// The bulk operation, or the request with an Idempotency-Key, that caused the change.
	Request string `json:"request,omitempty" example:"01M7ZBMEYHBB62YP6RY21T1GQ8"`
}

// HoldChange is the detail of the event that a hold or a pause began, changed or ended.
type HoldChange struct {
	// The reason that was given.
	Reason string `json:"reason" example:"the shelf is counted again"`
	// When it ends by itself. Absent if a person has to end it.
	Until string `json:"until,omitempty" example:"2026-11-24T08:00:00Z"`
}

// MailOutcome is the detail of the event that a mail was sent or abandoned.
type MailOutcome struct {
	// Which mail: the notice that the batch is queued, or the report.
	Mail string `json:"mail" enum:"queued,report,update-report,delayed"`
	// The number of tries.
	Tries int `json:"tries" example:"1"`
	// The number of recipients that it was sent to.
	Sent int `json:"sent" example:"2"`
	// The recipients that it was not sent to.
	Failed []Delivery `json:"failed,omitempty"`
}

// Delivery is the result of sending a mail to one recipient.
type Delivery struct {
	// The recipient.
	To string `json:"to" example:"maps@example.org"`
	// Whether it was sent.
	Sent bool `json:"sent"`
	// The error message of the mail service.
	Problem string `json:"problem,omitempty"`
}

// Changes are what versions without new content are.
var Changes = []string{"correction", "withdraw", "reinstate", "place-legal-hold", "lift-legal-hold", "retain",
	"embargo", "lift-embargo"}

// ObjectRecord is the detail of an event of an object: what was recorded about it.
type ObjectRecord struct {
	// The newest version.
	Version int `json:"version" example:"2"`
	// The number of versions that were recorded.
	Versions int `json:"versions" example:"1"`
	// The local ids that were not known before.
	LocalIDs []string `json:"localIds" nullable:"true" example:"[\"map-1851\"]"`
	// The job that stored the version. Absent if the rows were rebuilt from storage.
	Job string `json:"job,omitempty" example:"01M7ZBMEYHBB62YP6RY21T1GQ6-00001"`
	// What a version without new content is. Absent for a version with deposited content.
	Change string `json:"change,omitempty" example:"correction"`
	// The last day of the object's retention, if the version changes that.
	RetainUntil string `json:"retainUntil,omitempty" format:"date" example:"2036-12-31"`
	// The last day of the embargo on the object's files, if the version changes that.
	EmbargoUntil string `json:"embargoUntil,omitempty" format:"date" example:"2028-12-31"`
}

// Report lists how each job of a batch ended.
type Report struct {
	// The id of the batch.
	Batch string `json:"batch" example:"01M7ZBMEYHBB62YP6RY21T1GQ6"`
	// The collection of the batch.
	Collection string `json:"collection" example:"maps"`
	// The depositor's note about the batch.
	Note string `json:"note,omitempty" example:"Scans of 2026"`
	// When all jobs had ended.
	At string `json:"at" format:"date-time" example:"2026-11-22T09:32:00Z"`
	// The number of the report, from 1. Absent in a report that an earlier release saved.
	Number int `json:"number,omitempty" example:"1"`
	// The time of the earlier report that it is compared with. Absent if there is none.
	Since string `json:"since,omitempty" format:"date-time"`
	// Why the batch has no jobs.
	Message string `json:"message,omitempty"`
	// Why the jobs are not listed.
	Problem string `json:"problem,omitempty"`
	// Why not everything of the submission was ingested, although it has jobs.
	Incomplete string `json:"incomplete,omitempty"`
	// The URL of the submission that is called for each preserved job, without its query. Absent if there is none.
	Callback string `json:"callback,omitempty" example:"https://example.org/preserved?redacted"`
	// Warnings about the accepted manifest, at most the first few. The depositor should check them.
	Warnings []string `json:"warnings,omitempty"`
	// The number of jobs by result.
	Counts ReportCounts `json:"counts"`
	// The jobs that failed.
	Failed []ReportJob `json:"failed"`
	// The jobs that ended because the batch was cancelled. Those that had started are Failed, the others Deleted.
	// Absent in reports of before this list existed.
	Cancelled []ReportJob `json:"cancelled,omitempty"`
	// The jobs whose object is preserved.
	Completed []ReportJob `json:"completed"`
	// The jobs that were deleted.
	Deleted []ReportJob `json:"deleted,omitempty"`
	// The jobs that were requeued while the report was made.
	Open []ReportJob `json:"open"`
	// What has changed since the earlier report. Absent in the first report.
	Changes *ReportChanges `json:"changes,omitempty"`
}

// ReportChanges counts the jobs of a report by what has changed since the earlier report.
type ReportChanges struct {
	// Jobs whose object was not preserved then.
	NowPreserved int `json:"nowPreserved"`
	// Jobs that failed since then.
	NewlyFailed int `json:"newlyFailed"`
	// Jobs that were failed then.
	StillFailed int `json:"stillFailed"`
	// The jobs that were failed then for which something else is to be done now.
	NextStep int `json:"nextStep"`
	// Jobs that were deleted since then.
	Deleted int `json:"deleted"`
}

// ReportCounts counts the jobs of a report by result.
type ReportCounts struct {
	// Jobs that failed.
	Failed int `json:"failed" example:"0"`
	// Jobs that ended because the batch was cancelled.
	Cancelled int `json:"cancelled" example:"0"`
	// Jobs whose object is preserved.
	Completed int `json:"completed" example:"1"`
	// Jobs that were deleted.
	Deleted int `json:"deleted" example:"0"`
	// Jobs that were requeued while the report was made.
	Open int `json:"open" example:"0"`
}

// ReportJob is the result of one job.
type ReportJob struct {
	// The id of the job.
	Job string `json:"job" example:"01M7ZBMEYHBB62YP6RY21T1GQ6-00001"`
	// The state of the job.
	State string `json:"state"`
	// Whether it ended because its batch was cancelled.
	Cancelled bool `json:"cancelled,omitempty"`
	// What has changed since the earlier report. Absent if nothing has, and in the first report.
	Change string `json:"change,omitempty" enum:"now preserved,newly failed,still failed,deleted"`
	// The URL of its payload, without secrets; of an uploaded one its name, and who uploaded it.
	Source string `json:"source,omitempty" example:"https://example.org/map.checkm"`
	// The ARK of the object.
	ARK string `json:"ark,omitempty" example:"ark:/99999/fk4tq65d6k"`
	// The version of the object.
	Version int `json:"version,omitempty" example:"1"`
	// Whether the object already had this content, so that no new version was created.
	NoChange bool `json:"noChange,omitempty"`
	// The sha512 of the OCFL inventory of the version.
	InventoryDigest string `json:"inventoryDigest,omitempty"`
	// The depositor's ids.
	LocalIDs []string `json:"localIds,omitempty" example:"[\"map-1851\"]"`
	// The title.
	Title string `json:"title,omitempty" example:"Map of the harbour"`
	// The number of deposited files, once it is known. Reports from before 2026-11-27 have none if it is 0.
	Files int `json:"files" required:"false" example:"3"`
	// The total size of these files in bytes, once it is known. Reports from before 2026-11-27 have none if it is 0.
	Bytes int64 `json:"bytes" required:"false" example:"3145728"`
	// Warnings about the manifest and the files, at most the first few. The depositor should check them.
	// Reports from before 2026-11-22 have a number here.
	Warnings notify.Warnings `json:"warnings,omitempty" example:"[\"file a.tif: size differs, digest matched\"]"`
	// The files, if the job has only a few.
	FileDetails []ReceiptFile `json:"fileDetails,omitempty"`
	// The path, below the API's URL, of the receipt with all files.
	Receipt string `json:"receipt,omitempty" example:"/v1/jobs/01M7ZBMEYHBB62YP6RY21T1GQ6-00001/receipt"`
	// Why the files are not listed.
	Problem string `json:"problem,omitempty"`
	// Why it failed.
	Message string `json:"message,omitempty"`
	// Whether a requeue can succeed once the cause is corrected.
	Recoverable bool `json:"recoverable,omitempty"`
	// What to do next.
	Next string `json:"next,omitempty"`
}
