// Package queue is the ingest service. It keeps batches and jobs as rows, moves each by
// one transaction per change, drives them through executions of state machines, admits
// them where something is limited, and repairs what got lost.
//
// The rules (package ingest) say what may happen; this package makes it happen once. All
// state is in the table. Messages, executions and indexes are wake-ups: whoever gets one
// reads the row, and writes on the condition that nobody wrote it since. So a wake-up that
// is lost, late or repeated costs time only.
//
// A change of a job is one transaction of its row, its event, and whatever must agree with
// it: the counts of its batch, and the rows of the slot, the space and the locks that it
// has. After the commit the wake-ups that it owes are sent; the sweep sends again what got
// lost.
//
// Who calls what:
//
//	the API         Submit, Requeue, ForceFail, Job, Batch, Jobs, Events, ExplainJob, Overview …
//	a stage         Worker.Handle: read the item, take its lease, do the step, commit, answer
//	unpack          Claim.Unpack: the jobs of a batch, in chunks
//	the scheduler   Scheduler.Tick: the sweep (sweep.go), the gates (gates.go), the mails (mail.go)
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
