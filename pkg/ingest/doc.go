// Package ingest is the ingest queue as values: batches, jobs, their states, and the rules
// that move them. It decides and touches nothing: times and settings are arguments, and
// the result of a rule is a new value. Package queue writes it.
//
// A batch is one submission, a job is one object of it. A job goes through the states of
// Order; each state between the gates has a Stage, whose worker ends a step with a Result:
//
//	Pending ─gate 1─► Estimating ─► Provisioning ─gate 2─► Downloading ─► Processing
//		─► Storing ─► Recording ─► Notify ─► Completed
//
// A gate is where jobs wait, without cost, for what is limited: gate 1 gives a slot, gate 2
// a slot, work space and the locks of the object. Choose decides who goes first. Wherever
// a step fails for good, the job is Failed; a requeue brings it back to that state.
//
// Where to find a rule:
//
//	state.go      the states, and which may follow which
//	stage.go      the stages, and how often each is tried
//	timeouts.go   the time-outs of stages and queues, and why each is longer than the one before
//	priority.go   who goes first at a gate
//	choose.go     who fits: slots, work space, shares of collections, patience
//	retry.go      when a failed try, or an item without progress, is tried again
//	next.go       what a step's result, an admission or a requeue makes of a job
//	answer.go     what an execution is told, whichever message comes
//	wake.go       which wake-ups an item is owed after a change
//	mail.go       which mails a batch owes, and when they are tried again
//	bounds.go     the limits of what a depositor gives
package ingest
