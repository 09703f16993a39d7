// Package ingest is the ingest queue as values: batches, jobs, their states, and the rules
// that move them. It has no effects: times and settings are arguments, and the result of a
// rule is a new value, which package queue writes.
//
// A batch is one submission, a job is one object of it. A job goes through the states of
// Order; each state between the gates has a Stage, whose worker ends a step with a Result:
//
//	Pending ─gate 1─► Estimating ─► Provisioning ─gate 2─► Downloading ─► Processing
//		─► Storing ─► Recording ─► Notify ─► Completed
//
// A gate is where jobs wait, without cost, for limited resources: gate 1 grants a slot,
// gate 2 a slot, work space and the locks of the object. Choose decides which job goes
// first. A job whose step fails finally is Failed; a requeue continues it at the step that failed, in its turn
// at a gate.
//
// Where to find a rule:
//
//	state.go      the states, and which may follow which
//	stage.go      the stages, and how often each is tried
//	timeouts.go   the time-outs of stages and queues, and why each is longer than the one before
//	priority.go   which job goes first at a gate
//	choose.go     which job fits: slots, work space, shares of collections, patience
//	retry.go      when a failed try, or an item without progress, is tried again
//	rules.go      the settings of the rules
//	next.go       how a step's result, an admission or a requeue changes a job
//	hold.go       how a hold stops a job or a batch, and how it continues
//	delete.go     what a person deletes, and when its work files are removed
//	answer.go     the answer to an execution, for any message
//	wake.go       which wake-ups are due after a change of an item
//	mail.go       which mails are due after a change of a batch, and when they are tried again
//	bounds.go     the limits of a depositor's input
package ingest
