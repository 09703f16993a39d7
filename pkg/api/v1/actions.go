package v1

// Action is a request of a client to act on something: a JobAction, BatchAction,
// CollectionAction or PauseAction. A route refuses fields that its actions do not have.
type Action struct {
	Action   string `json:"action"`
	Reason   string `json:"reason"`
	Confirm  bool   `json:"confirm,omitempty"`
	DryRun   bool   `json:"dryRun,omitempty"`
	Until    string `json:"until,omitempty"`
	Priority *int   `json:"priority,omitempty"`
}

// ActionOptions are the fields of every action.
type ActionOptions struct {
	// The reason. It is kept in the events.
	Reason string `json:"reason" minLength:"1" maxLength:"1000" example:"The source is reachable again."`
	// Whether the warnings are accepted. An action that needs it is refused without it, and says why.
	Confirm bool `json:"confirm,omitempty"`
	// A dry run: return what would be done, with all warnings, and change nothing.
	DryRun bool `json:"dryRun,omitempty"`
}

// JobAction is a request to act on a job.
type JobAction struct {
	// hold: a Pending job waits until it is released. release: a Held job continues. requeue: a
	// Failed job continues after its last successful state. fail: a job that has started fails.
	// delete: a Failed or Held job is deleted. prioritize: the job gets another priority.
	// clean-up: the work files of a Failed job are removed now.
	Action string `json:"action" enum:"hold,release,requeue,fail,delete,prioritize,clean-up" example:"requeue"`
	ActionOptions
	// For hold: the time at which the hold ends by itself. Without it, a person must release the job.
	Until string `json:"until,omitempty" format:"date-time" example:"2026-11-23T06:00:00Z"`
	// For prioritize: from 0 (first) to 999 (last).
	Priority *int `json:"priority,omitempty" minimum:"0" maximum:"999" example:"1"`
}

// BatchAction is a request to act on a batch.
type BatchAction struct {
	// hold: its waiting jobs become Held instead of starting. release: the hold ends. cancel: its
	// jobs that have not started are deleted, other unfinished ones fail, then the batch reports. delete: a
	// Failed or Held batch is deleted with all its jobs. update-report: a Failed batch reports what changed
	// since its last report. clean-up: the rows of a Completed batch are removed now; for a Failed batch, next
	// in the response is the operation that removes the work files of its jobs.
	Action string `json:"action" enum:"hold,release,cancel,delete,update-report,clean-up" example:"update-report"`
	ActionOptions
	// For hold: the time at which the hold ends by itself. Without it, a person must end it.
	Until string `json:"until,omitempty" format:"date-time" example:"2026-11-23T06:00:00Z"`
}

// CollectionAction is a request to act on a collection.
type CollectionAction struct {
	// hold: new submissions and Pending jobs become Held instead of starting. release: the hold ends; what
	// it has stopped stays Held until it is released.
	Action string `json:"action" enum:"hold,release" example:"hold"`
	ActionOptions
	// For hold: the time at which the hold ends by itself. Without it, a person must end it.
	Until string `json:"until,omitempty" format:"date-time" example:"2026-11-23T06:00:00Z"`
}

// PauseAction is a request to pause or to resume the queue or the storage.
type PauseAction struct {
	// pause: no job is admitted, or nothing is stored. What runs, finishes. resume: the pause ends.
	Action string `json:"action" enum:"pause,resume" example:"pause"`
	ActionOptions
	// For pause: the time at which it ends by itself. Without it, a person must end it.
	Until string `json:"until,omitempty" format:"date-time" example:"2026-11-23T06:00:00Z"`
}

// ActionOutcome is what an action did, or would do.
type ActionOutcome struct {
	// The action.
	Action string `json:"action" example:"requeue"`
	// What it applied to: job:ID, batch:ID, collection:NAME, queue or storage.
	Target string `json:"target" example:"job:01M7ZBMEYHBB62YP6RY21T1GQ6-00001"`
	// Whether it changed something. It did not if it was a dry run, or if nothing had to be changed.
	Changed bool `json:"changed"`
	// Whether it was a dry run.
	DryRun bool `json:"dryRun"`
	// What was done, or would be done, in a sentence.
	Summary string `json:"summary" example:"job 01M7ZBMEYHBB62YP6RY21T1GQ6-00001 continues at Downloading"`
	// The state before, if the state changes.
	From string `json:"from,omitempty" example:"Failed"`
	// The state after, if the state changes.
	To string `json:"to,omitempty" example:"Downloading"`
	// For a dry run: whether the action needs confirm.
	NeedsConfirm bool `json:"needsConfirm,omitempty"`
	// A bulk operation that usually follows, e.g. the release of the jobs that a hold has stopped.
	Next *Bulk `json:"next,omitempty"`
	// The id of the bulk operation that completes the action. Absent if the action is complete.
	Operation string `json:"operation,omitempty" example:"01M7ZBMEYHBB62YP6RY21T1GQ8"`
}

// ActionResult is what an action did, or would do.
type ActionResult struct {
	ActionOutcome
	// What the person should know.
	Warnings []string `json:"warnings,omitempty" example:"[\"the depositor is not notified of this job\"]"`
}

// JobActionResult is what an action on a job did, with the fields of the job after it.
type JobActionResult struct {
	ActionOutcome
	// What the person should know about the action. The job has its own warnings.
	Warnings []string `json:"warnings,omitempty" example:"[\"the depositor is not notified of this job\"]"`
	Job
}

// JobFilter selects jobs. A job must match every field that is set.
type JobFilter struct {
	// Jobs of this batch.
	Batch string `json:"batch,omitempty" minLength:"1" maxLength:"64" example:"01M7ZBMEYHBB62YP6RY21T1GQ6"`
	// Jobs of this collection.
	Collection string `json:"collection,omitempty" minLength:"1" maxLength:"100" example:"maps"`
	// Jobs in this state. Case is ignored. By default those in every state that the action applies to.
	State string `json:"state,omitempty" minLength:"1" maxLength:"20" example:"Failed"`
	// Jobs that entered their state before this time.
	Before string `json:"before,omitempty" format:"date-time" example:"2026-11-22T06:00:00Z"`
	// Jobs whose message contains this text. Case is ignored.
	Message string `json:"message,omitempty" minLength:"1" maxLength:"1000" example:"404 Not Found"`
	// For release: leave on hold the jobs and batches that have a hold of their own.
	KeepOwnHolds bool `json:"keepOwnHolds,omitempty"`
}

// Bulk is an action on all jobs that a filter selects.
type Bulk struct {
	// The action.
	Action string `json:"action" example:"release"`
	// The jobs.
	Filter JobFilter `json:"filter"`
	// For prioritize: from 0 (first) to 999 (last).
	Priority *int `json:"priority,omitempty" minimum:"0" maximum:"999" example:"1"`
	// Whether the warnings are accepted.
	Confirm bool `json:"confirm,omitempty"`
	// For hold: the time at which the hold ends by itself.
	Until string `json:"until,omitempty" format:"date-time" example:"2026-11-23T06:00:00Z"`
}
