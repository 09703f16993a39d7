// Package queue is the ingest service. It keeps batches and jobs as rows, changes each by
// one transaction per change, drives them through executions of state machines, admits
// jobs where resources are limited, and repairs what was lost.
//
// The rules (package ingest) define what may happen; this package makes it happen once. All
// state is in the table. Messages, executions and indexes are wake-ups: a process that gets
// one reads the row, and writes it on the condition that it was not written since. So a
// wake-up that is lost, late or repeated costs only time.
//
// A change of a job is one transaction of its row, its event, and all that must agree with
// it: the counts of its batch, and the rows of its slot, space and locks. After the commit
// the due wake-ups are sent; the sweep sends again what was lost.
//
// The rows are in one table, with the events of each in its partition:
//
//	JOB#{job}          JOB                  a job
//	BATCH#{batch}      BATCH                a batch
//	BATCH#{batch}      COUNT                the numbers of its jobs by class
//	SLOT, SPACE        {job}                a slot, and the work space of a job
//	LOCK#{name}        LOCK                 the job that owns a lock
//	LOCK#{name}        WAITS#{job}          a place in the line for it
//	NAMED#{what}       {created}#{id}       a job or batch under its state, its submitter, a local id …
//	HOLD               queue, batch#{id} …  a pause or a hold
//	MAIL#{batch}       {kind}#{exec}        a pending mail
//	OPERATION#{id}     OPERATION            a bulk operation, with REFUSED# and FINDING# rows
//	ACT#{request}      {target}             the receipt of an action, or of an operation's item
//	KEY#{digest}       KEY                  an Idempotency-Key
//	LEASE#clock        SWEEP                when the last sweep began, and whether lists of all are whole
//	LEASE#clock        HOURS                the most that waited and ran in each of the last hours
//
// Who calls what:
//
//	the API         Submit, Job, Batch, Jobs, Events, ExplainJob, Overview …; Admin.Act, Admin.Start
//	admin-action    Admin.Act, Admin.Start; Admin.RunPage: the next page of a bulk operation
//	a stage         Worker.Handle: read the item, take its lease, do the step, commit, answer
//	unpack          Claim.Unpack: the jobs of a batch, in chunks
//	the scheduler   Scheduler.Tick: the sweep (sweep.go), the gates (gates.go), the mails (sendmail.go)
//	EventBridge     Stopped: a person stopped an execution
//
// A step gets a Claim: a copy of its job or batch, which only the worker writes.
//
//	func (s Count) Run(ctx context.Context, c *queue.Claim) (ingest.Result, error) {
//		n, err := s.count(ctx, c.Job.URL)
//		if err != nil {
//			return ingest.Result{}, err // the try failed: it is tried again
//		}
//		c.Job.Files = n
//		return ingest.Result{Outcome: ingest.StepNext}, nil
//	}
package queue
