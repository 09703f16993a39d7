package v1

// The states of bulk operations.
const (
	OperationRunning     = "Running"
	OperationDone        = "Done"
	OperationInterrupted = "Interrupted"
)

// Doctor is the operation that checks the system.
const Doctor = "doctor"

// Hold is a hold of a job, a batch or a collection, or a pause of the queue or the storage.
type Hold struct {
	// What is held or paused: job:ID, batch:ID, collection:NAME, queue or storage.
	Target string `json:"target" example:"collection:maps"`
	// The reason.
	Reason string `json:"reason" example:"Rights are unclear."`
	// Who placed the hold.
	Actor string `json:"actor" example:"an operator"`
	// The time at which the hold began.
	Since string `json:"since" format:"date-time" example:"2026-11-22T09:30:00Z"`
	// The time at which the hold ends by itself. Without it, a person must end it.
	Until string `json:"until,omitempty" format:"date-time" example:"2026-11-23T06:00:00Z"`
}

// OperationRequest is a request to start a bulk operation, or the doctor.
type OperationRequest struct {
	// What to do with each job: an action on jobs. doctor checks the whole system instead.
	Action string `json:"action" enum:"hold,release,requeue,fail,delete,prioritize,clean-up,doctor" example:"requeue"`
	// The jobs: at least a batch, a collection, or one of the states Held, Failed, Pending and
	// Provisioning. Not for doctor.
	Filter *JobFilter `json:"filter,omitempty"`
	ActionOptions
	// For hold: the time at which the holds end by themselves.
	Until string `json:"until,omitempty" format:"date-time" example:"2026-11-23T06:00:00Z"`
	// For prioritize: from 0 (first) to 999 (last).
	Priority *int `json:"priority,omitempty" minimum:"0" maximum:"999" example:"1"`
	// For doctor: repair what can be repaired without loss.
	Repair bool `json:"repair,omitempty"`
}

// Operation is a bulk operation, or a run of the doctor.
type Operation struct {
	// The id of the operation.
	ID string `json:"id" example:"01M7ZBMEYHBB62YP6RY21T1GQ8"`
	// The action on each job, or doctor.
	Action string `json:"action" example:"requeue"`
	// The state of the operation. One that is Interrupted can be continued.
	State string `json:"state" enum:"Running,Done,Interrupted" example:"Running"`
	// What the caller may do with it in this state: actions of `POST /v1/operations/{id}/actions`. Absent if there is
	// nothing, and in lists.
	Actions []string `json:"actions,omitempty" example:"[\"interrupt\"]"`
	// The jobs. Absent for doctor.
	Filter *JobFilter `json:"filter,omitempty"`
	// The reason.
	Reason string `json:"reason" example:"The source is reachable again."`
	// Who started it.
	Actor string `json:"actor" example:"an operator"`
	// Whether it is a dry run: nothing is changed.
	DryRun bool `json:"dryRun"`
	// Whether the warnings were accepted.
	Confirm bool `json:"confirm,omitempty"`
	// For hold: the time at which the holds end by themselves.
	Until string `json:"until,omitempty" format:"date-time" example:"2026-11-23T06:00:00Z"`
	// For prioritize: the priority.
	Priority *int `json:"priority,omitempty" example:"1"`
	// For doctor: whether it repairs what it can.
	Repair bool `json:"repair,omitempty"`
	// Whether it is still selecting jobs. Until all are selected, planned rises.
	Planning bool `json:"planning,omitempty"`
	// The number of its jobs by result.
	Counts OperationCounts `json:"counts"`
	// What it is doing now, as text.
	Progress string `json:"progress,omitempty" example:"the storage root from a3"`
	// For operators: the execution of the state machine admin-action that runs it.
	Execution string `json:"execution,omitempty" example:"01M7ZBMEYHBB62YP6RY21T1GQ8-1"`
	// When it was started.
	Started string `json:"started" format:"date-time" example:"2026-11-22T09:30:00Z"`
	// When it was done. Absent before.
	Ended string `json:"ended,omitempty" format:"date-time" example:"2026-11-22T09:32:00Z"`
}

// OperationCounts counts the jobs of a bulk operation, or what the doctor checked.
type OperationCounts struct {
	// The jobs that were selected so far.
	Planned int `json:"planned" example:"120"`
	// The jobs on which the action was done, or had nothing to change; for a dry run, would be.
	Done int `json:"done" example:"80"`
	// The jobs on which the action was refused.
	Refused int `json:"refused" example:"3"`
	// The jobs that are neither done nor refused yet.
	Left int `json:"left" example:"37"`
	// For doctor: the rows and files that were checked.
	Checked int `json:"checked" example:"4200"`
	// For doctor: the findings.
	Findings int `json:"findings" example:"2"`
	// For doctor: the findings that were repaired.
	Repaired int `json:"repaired" example:"1"`
}

// OperationAction is a request to interrupt or to continue an operation.
type OperationAction struct {
	// interrupt: the operation stops; jobs that are in progress may still be done. continue: an interrupted
	// operation continues with the jobs that are left.
	Action string `json:"action" enum:"interrupt,continue" example:"interrupt"`
	// The reason. It is kept in the events.
	Reason string `json:"reason" minLength:"1" maxLength:"1000" example:"It was the wrong collection."`
}

// Refusal is a job on which the action of an operation was refused.
type Refusal struct {
	// The id of the job.
	Job string `json:"job" example:"01M7ZBMEYHBB62YP6RY21T1GQ6-00001"`
	// Why the action was refused.
	Reason string `json:"reason" example:"job 01M7ZBMEYHBB62YP6RY21T1GQ6-00001 is Completed"`
}

// The outcomes of the items of an operation.
const (
	ItemLeft    = "left"
	ItemDone    = "done"
	ItemRefused = "refused"
)

// OperationItem is a job that an operation acts on.
type OperationItem struct {
	// The id of the job, or of a held batch without jobs.
	Job string `json:"job" example:"01M7ZBMEYHBB62YP6RY21T1GQ6-00001"`
	// Whether the action is done or was refused, or is left to do.
	Outcome string `json:"outcome" enum:"left,done,refused" example:"done"`
	// What was done, or would be done by a dry run, or why it was refused.
	Message string `json:"message,omitempty" example:"job 01M7ZBMEYHBB62YP6RY21T1GQ6-00001 continues at Processing"`
}

// Finding is a rule that the doctor found violated.
type Finding struct {
	// The name of the rule.
	Invariant string `json:"invariant" example:"batch-counts"`
	// What it is about: a row, a key or an object.
	Subject string `json:"subject" example:"batch:01M7ZBMEYHBB62YP6RY21T1GQ6"`
	// What was found, and what was expected.
	Evidence string `json:"evidence" example:"it counts 3 failed jobs; 2 of its jobs are Failed"`
	// The command that repairs it, or what a person must do.
	Command string `json:"command,omitempty" example:"archivist doctor --repair"`
	// Whether it was repaired.
	Repaired bool `json:"repaired,omitempty"`
}

// OperationChange is the detail of an event of an operation.
type OperationChange struct {
	// The action on each job, or doctor.
	Action string `json:"action" example:"requeue"`
	// The jobs. Absent for doctor.
	Filter *JobFilter `json:"filter,omitempty"`
	// The state after.
	State string `json:"state" enum:"Running,Done,Interrupted" example:"Running"`
	// The number of the execution that runs it. It never decreases.
	Exec int64 `json:"exec" example:"1"`
	// The reason.
	Reason string `json:"reason,omitempty"`
	// Whether it is a dry run: nothing is changed.
	DryRun bool `json:"dryRun,omitempty"`
	// The number of its jobs by result.
	Counts OperationCounts `json:"counts"`
}
