package queue

// The system's own metrics. They are put only when they are not 0.
const (
	Repairs       = "Repairs"       // repairs by the sweep
	RepairErrors  = "RepairErrors"  // repairs and clean-ups that failed
	GateErrors    = "GateErrors"    // jobs that could not be admitted because of an error
	MissingRows   = "MissingRows"   // reservation rows of jobs that were missing
	MailFailures  = "MailFailures"  // failed tries of mails
	FailedJobs    = "FailedJobs"    // jobs that became Failed
	Crashes       = "Crashes"       // workers that ended without releasing their lease
	Stuck         = "Stuck"         // repairs of items that do not continue by themselves
	OldestWaiting = "OldestWaiting" // seconds
	SpaceUsed     = "SpaceUsed"     // percent
)
