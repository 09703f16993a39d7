package v1

// Progress is the progress of a job.
type Progress struct {
	// The number of files of the object, once it is known.
	Files int `json:"files" example:"3"`
	// The total size of these files in bytes, once it is known.
	Bytes int64 `json:"bytes" example:"3145728"`
	// The progress of the current stage, as text.
	Done string `json:"done,omitempty" example:"1 of 3 files"`
}

// Job is the current state of the ingest of one object.
type Job struct {
	// The id of the job: that of its batch, a hyphen, and its row in the manifest.
	ID string `json:"id" example:"01M7ZBMEYHBB62YP6RY21T1GQ6-00001"`
	// The id of its batch.
	Batch string `json:"batch" example:"01M7ZBMEYHBB62YP6RY21T1GQ6"`
	// The collection that the object belongs to.
	Collection string `json:"collection" example:"maps"`
	// The title of the object, as far as it is known.
	Title string `json:"title,omitempty" example:"Map of the harbour"`
	// The URL of its payload, without its secrets; of an uploaded one its name, and who uploaded it. Absent if there is
	// none.
	Source string `json:"source,omitempty" example:"https://example.org/map.tif"`
	// When the job was created.
	Created string `json:"created" format:"date-time" example:"2026-11-22T09:30:00Z"`
	// The state of the job.
	State string `json:"state"`
	// Since when it is in that state, or at the place where it waits. Absent for one of an earlier
	// version that has not changed since.
	Since string `json:"since,omitempty" format:"date-time" example:"2026-11-22T09:31:00Z"`
	// The states that it was in, in the order in which it first entered them. Absent in lists.
	Stages []JobStage `json:"stages,omitempty"`
	// What the caller may do with it in this state: actions of `POST /v1/jobs/{id}/actions`. Each says by a dry run
	// what it would do. Absent if there is nothing, and in lists.
	Actions []string `json:"actions,omitempty" example:"[\"requeue\"]"`
	// Whether it is Failed or Deleted because its batch was cancelled.
	Cancelled bool `json:"cancelled,omitempty"`
	// The last state that it completed. A requeued job continues after that state.
	LastSuccessfulState string `json:"lastSuccessfulState,omitempty"`
	// Whether the job is parked: it waits, without an execution, for something that another job holds.
	Parked bool `json:"parked,omitempty"`
	// What stops the job, if it is Held: a hold of the job, of its batch or of its collection.
	Hold *Hold `json:"hold,omitempty"`
	// From 0 (first) to 999 (last).
	Priority int `json:"priority" minimum:"0" maximum:"999" example:"5"`
	// The work space that it needs in bytes; 0 until it is known.
	SpaceNeeded int64 `json:"spaceNeeded" example:"3145728"`
	// The number of retries of its stages.
	RetryCount int `json:"retryCount" example:"0"`
	// Whether the job failed and a requeue can succeed once the cause is corrected.
	Recoverable bool `json:"recoverable,omitempty"`
	// The identifiers of the object.
	Identifiers Identifiers `json:"identifiers"`
	// The version of the object that has the content of the job. Absent until it is stored.
	Version int `json:"version,omitempty" example:"1"`
	// Whether the object already had this content, so that no new version was created.
	NoChange bool `json:"noChange,omitempty"`
	// The sha512 of the OCFL inventory of that version.
	InventoryDigest string `json:"inventoryDigest,omitempty"`
	// Warnings about its manifest and its files, at most the first few. The depositor should check them.
	Warnings []string `json:"warnings,omitempty" example:"[\"file a.tif: size differs, digest matched\"]"`
	// The reason for its failure, or the message of its last stage.
	Message string `json:"message,omitempty"`
	// What became of its callbacks. Absent until it has come to them, and if there are none.
	Callbacks []Notice `json:"callbacks,omitempty"`
	// The progress of the job.
	Progress Progress `json:"progress"`
	// The container that its files come from, once it is unpacked. Absent if its payload is none.
	Container *JobContainer `json:"container,omitempty"`
	// What it made of the files of the version before. Absent for a job of the mode add, and until its version is
	// decided.
	Update *JobUpdate `json:"update,omitempty"`
}

// JobStage is how long a job was in a state.
type JobStage struct {
	// The state.
	State string `json:"state"`
	// When it first entered the state.
	Since string `json:"since" format:"date-time" example:"2026-11-22T09:30:00Z"`
	// When it last left the state. Absent while it is in it.
	Until string `json:"until,omitempty" format:"date-time" example:"2026-11-22T09:31:00Z"`
	// How many seconds it was in the state, of all times together, until it last left it.
	Seconds float64 `json:"seconds" example:"60"`
	// How often it entered the state: once, and once more each time that it was requeued for it.
	Times int `json:"times" example:"1"`
	// How often the step was tried since its last progress. Absent for states that it has left.
	Tries int `json:"tries,omitempty" example:"2"`
}

// RunningJob is a job that runs.
type RunningJob struct {
	// The id of the job.
	Job string `json:"job" example:"01M7ZBMEYHBB62YP6RY21T1GQ6-00001"`
	// Its collection.
	Collection string `json:"collection" example:"maps"`
	// Its state, which is that of its stage.
	State string `json:"state" example:"Downloading"`
	// When it entered the state.
	Since string `json:"since" format:"date-time" example:"2026-11-22T09:30:00Z"`
	// The name of the execution that drives it.
	Execution string `json:"execution" example:"01M7ZBMEYHBB62YP6RY21T1GQ6-00001-2"`
	// The id of the claim of the worker that has it. Absent while none has it.
	Worker string `json:"worker,omitempty" example:"01M7ZBMEYHBB62YP6RY21T1GQ7"`
	// How much is done.
	Progress Progress `json:"progress"`
}

// GateHead is one of the first jobs at a gate.
type GateHead struct {
	// The gate: pending, provisioning or parked.
	Gate string `json:"gate" example:"pending"`
	// Its place there, from 1.
	Place int `json:"place" example:"1"`
	// The id of the job.
	Job string `json:"job" example:"01M7ZBMEYHBB62YP6RY21T1GQ6-00001"`
	// Its collection.
	Collection string `json:"collection" example:"maps"`
	// When it came to the gate.
	Since string `json:"since" format:"date-time" example:"2026-11-22T09:30:00Z"`
	// Why it does not pass.
	Why string `json:"why" example:"Waiting to start: all 20 slots are in use."`
}

// LockLine is a line of jobs that work on the same, one after another.
type LockLine struct {
	// What they work on: an ARK, or a local id. `earlier manifests`: they wait until manifests of
	// the same depositor are read.
	Of string `json:"of" example:"ark:/99999/fk4tq65d6k"`
	// The job, or the batch whose jobs are not made yet, that comes first.
	First string `json:"first" example:"01M7ZBMEYHBB62YP6RY21T1GQ5-00001"`
	// Whether it has the lock: it works on it now.
	Has bool `json:"has,omitempty"`
	// The collection of the job that comes first. Absent, as the two below, if that is not known.
	Collection string `json:"collection,omitempty" example:"maps"`
	// The state of that job.
	State string `json:"state,omitempty" example:"Storing"`
	// Since when it is in that state.
	Since string `json:"since,omitempty" format:"date-time" example:"2026-11-22T09:30:00Z"`
	// How many of the jobs that were looked at wait for it.
	Waiting int `json:"waiting" example:"2"`
	// The first of these, in their order, at most 5.
	Jobs []string `json:"jobs" example:"[\"01M7ZBMEYHBB62YP6RY21T1GQ6-00001\"]"`
}

// LockLines are the lines before locks.
type LockLines struct {
	// The lines, the longest first, at most 10.
	Lines []LockLine `json:"lines"`
	// At how many jobs it was looked: the first 25 at each of the gates provisioning and parked.
	Looked int `json:"looked" example:"25"`
	// Whether more jobs wait there: lines of these, and what they add to a line, are not known.
	More bool `json:"more,omitempty"`
}

// QueueLimits are what the gates may grant, and how much of it is granted. How many jobs may run at
// once is `maxInFlight`.
type QueueLimits struct {
	// How many jobs of one collection may run at once. Absent: as many as of all.
	OfCollection int `json:"ofCollection,omitempty" example:"10"`
	// How many jobs of each collection run, of those with most, at most 10.
	Collections []QueueUse `json:"collections"`
	// How many jobs run in each stage. A stage has no limit of its own: all may be in one. Of more
	// than 100 that run, 100 are counted.
	Stages []QueueUse `json:"stages"`
	// The whole work space in bytes. How much of it is free is `spaceFree`.
	Space int64 `json:"space" example:"10995116277760"`
	// Jobs whose size is not known wait until so many bytes are free.
	Reserve int64 `json:"reserve,omitempty" example:"1099511627776"`
	// After so many minutes, freed work space is kept for a job that lacks it. Absent: never.
	PatienceMinutes int `json:"patienceMinutes,omitempty" example:"60"`
	// The job that has most of the work space. Absent if none has any.
	LargestHolder string `json:"largestHolder,omitempty" example:"01M7ZBMEYHBB62YP6RY21T1GQ6-00001"`
	// How many bytes that job has. Absent if none has any.
	LargestHeld int64 `json:"largestHeld,omitempty" example:"1099511627776"`
}

// QueueUse is how many jobs of a collection, or in a stage, run.
type QueueUse struct {
	// The collection, or the state of the stage.
	Name string `json:"name" example:"maps"`
	// How many.
	Running int `json:"running" example:"4"`
}

// JobContainer is a container that was unpacked.
type JobContainer struct {
	// Its file name.
	Name string `json:"name" example:"letters.zip"`
	// How it is packed.
	Kind string `json:"kind" enum:"zip,tar,tar.gz,tar.bz2"`
	// Its size in bytes.
	Size int64 `json:"size" example:"1048576"`
	// Its sha256.
	SHA256 string `json:"sha256" example:"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"`
	// Whether it is kept as a file of the object, too.
	Kept bool `json:"kept,omitempty"`
	// The version of BagIt, if its files are a bag, which was validated.
	Bag string `json:"bag,omitempty" example:"1.0"`
	// How many files of the bag were not in it, and were fetched from the URLs of its fetch.txt. By default none.
	Fetched int `json:"fetched,omitempty" example:"2"`
}

// JobUpdate is what an update made of the files of the version before.
type JobUpdate struct {
	// The number of files of the version.
	Files int `json:"files" example:"12"`
	// How many of them are those of the version before.
	Kept int `json:"kept" example:"10"`
	// How many files of the version before were deleted.
	Deleted int `json:"deleted" example:"1"`
}

// Queue is a summary of the queue.
type Queue struct {
	// The number of waiting jobs by place: pending, provisioning, parked, and held, which includes batches on hold. Up
	// to 100 are counted now. A greater number is what the scheduler has counted within the last 3 minutes, at most
	// 10,000. Jobs that wait until a time that their source asked for are in `/v1/job-counts`.
	Waiting map[string]int `json:"waiting"`
	// The places of `waiting` where more wait than that number. Absent if there are none.
	MoreThan []string `json:"moreThan,omitempty" example:"[\"pending\"]"`
	// The number of running jobs.
	Running int `json:"running" example:"4"`
	// The jobs that run, the one that has been in its state longest first. Of more than 100 these are those that were
	// submitted first.
	Now []RunningJob `json:"now,omitempty"`
	// The first jobs at each gate where jobs wait, at most 5, and why each does not pass. Those of
	// a gate are together, in the order in which they are admitted.
	Heads []GateHead `json:"heads,omitempty"`
	// The lines of jobs that work on the same, one after another. Absent in the status.
	Locks *LockLines `json:"locks,omitempty"`
	// The limits in force, and how much of them is in use. Absent in the status.
	Limits *QueueLimits `json:"limits,omitempty"`
	// The maximum number of running jobs.
	MaxInFlight int `json:"maxInFlight" example:"20"`
	// The free work space in bytes.
	SpaceFree int64 `json:"spaceFree" example:"10995116277760"`
	// The pauses of the queue and the storage, then the holds of collections and batches.
	Holds []Hold `json:"holds,omitempty"`
	// What the caller may do with the queue and the storage: actions of `POST /v1/queue/actions` and of `POST
	// /v1/storage/actions`. Absent if there is nothing.
	Actions map[string][]string `json:"actions,omitempty"`
	// The job that has waited longest.
	OldestWaiting string `json:"oldestWaiting,omitempty" example:"01M7ZBMEYHBB62YP6RY21T1GQ6-00001"`
	// The time since when that job has waited.
	OldestSince string `json:"oldestSince,omitempty" format:"date-time" example:"2026-11-22T09:30:00Z"`
	// The time of the scheduler's last sweep for overdue jobs. It runs each minute.
	LastSweep string `json:"lastSweep,omitempty" format:"date-time" example:"2026-11-22T09:40:00Z"`
}
