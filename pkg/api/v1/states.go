package v1

// The states of jobs and batches. A job goes from Pending to Completed through the
// states of its stages; a batch from Pending through Processing and Reporting to
// Completed, or to Failed if one of its jobs failed.
const (
	Pending         = "Pending"
	Held            = "Held"
	Estimating      = "Estimating"
	Provisioning    = "Provisioning"
	Downloading     = "Downloading"
	Storing         = "Storing"
	Recording       = "Recording"
	Notify          = "Notify"
	Processing      = "Processing"
	Reporting       = "Reporting"
	UpdateReporting = "UpdateReporting"
	Completed       = "Completed"
	Failed          = "Failed"
	Deleted         = "Deleted"
)

// JobStates are the states that a job can be in, in the order of its path.
var JobStates = []string{Pending, Held, Estimating, Provisioning, Downloading, Processing,
	Storing, Recording, Notify, Completed, Failed, Deleted}

// BatchStates are the states that a batch can be in, in the order of its path.
var BatchStates = []string{Pending, Held, Processing, Reporting, UpdateReporting, Completed, Failed,
	Deleted}

// CountedBatchStates are the states in which batches wait, work, or need a person, but for the
// seconds of another report. Their batches are counted.
var CountedBatchStates = []string{Pending, Held, Processing, Reporting, Failed}

// Ended reports whether a state is final: a job or a batch leaves it only if a person acts.
func Ended(state string) bool { return state == Completed || state == Failed || state == Deleted }
