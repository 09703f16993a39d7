package ingest

// Wake is a wake-up that is due after a change of an item.
type Wake struct {
	Kind WakeKind
	ID   string // of the job, batch or operation
	Exec int64
	At   string // the state or step where the execution begins; the kind of the mail
}

// WakeKind is what a wake-up does.
type WakeKind string

// The wake-ups: start an execution of ingest-job, ingest-batch or admin-action, run the
// gates, check whether the batch can report, send a mail about a batch.
const (
	StartJob   WakeKind = "start-job"
	StartBatch WakeKind = "start-batch"

	StartOperation WakeKind = "start-operation"

	LookGates  WakeKind = "look-gates"
	CloseBatch WakeKind = "close-batch"
	SendMail   WakeKind = "send-mail"
)

// Wakes are the wake-ups that are due after a change of a job from prev to next. With a
// zero prev they are all that the job can need. They are sent after the commit. One that is lost
// delays the item until the sweep finds it.
func Wakes(prev, next Job) []Wake {
	var out []Wake
	if next.Running() && next.Exec != prev.Exec {
		out = append(out, Wake{StartJob, next.ID, next.Exec, string(next.State)})
	}

	if next.Waiting() || frees(prev, next) {
		out = append(out, Wake{Kind: LookGates})
	}

	if !next.State.Open() && (prev.State == "" || prev.State.Open()) {
		out = append(out, Wake{Kind: CloseBatch, ID: next.Batch})
	}
	return out
}

// frees reports whether a change of a job releases something that others wait for.
func frees(prev, next Job) bool {
	return prev.HasSlot && !next.HasSlot || prev.HasSpace && !next.HasSpace ||
		len(prev.Locks) > len(next.Locks)
}

// BatchWakes are the wake-ups that are due after a change of a batch. Like Wakes, with a zero prev
// they are all that it can need.
func BatchWakes(prev, next Batch) []Wake {
	var out []Wake
	if stage, ok := StageOfBatch(next.State); ok && next.Exec != prev.Exec {
		out = append(out, Wake{StartBatch, next.ID, next.Exec, stage.Name})
	}

	if next.Unpacked != prev.Unpacked || leavesLine(prev, next) {
		out = append(out, Wake{Kind: LookGates})
	}

	if next.State == BatchProcessing && next.Sealed {
		out = append(out, Wake{Kind: CloseBatch, ID: next.ID})
	}

	for _, kind := range Mails(prev, next) { // last: nothing waits for a mail
		out = append(out, Wake{SendMail, next.ID, next.Exec, string(kind)})
	}
	return out
}

// leavesLine reports whether a batch gives up the places in line of its only job.
func leavesLine(prev, next Batch) bool {
	before, after := prev.First(), next.First()
	return len(before.QueuedLocks()) > len(after.QueuedLocks())
}
