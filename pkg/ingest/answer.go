package ingest

// Answer is the answer to a message's task token. It depends on the job's or batch's row alone.
type Answer string

// Answers: after Success the execution continues; the others are error names that
// the definition catches.
//
// Continue repeats the state with a new message. Parked and Superseded end the execution without a
// failure: a gate, or another execution, goes on with the item. StageFail fails the execution.
const (
	Success    Answer = "Success"
	Continue   Answer = "Continue"
	Parked     Answer = "Parked"
	Superseded Answer = "Superseded"
	StageFail  Answer = "StageFailed"
)

// Answer returns the answer to the token of execution exec at state at, for the
// current state of the job.
func (j *Job) Answer(at State, exec int64) Answer {
	switch {
	// Whatever the state: another execution drives the job, or will.
	case j.Exec != exec:
		return Superseded
	case j.State == at && !j.Parked:
		return Continue
	case j.State == Failed:
		return StageFail
	// Provisioning has no stage: it is the end of the execution that has estimated the job.
	case j.Parked || j.State == Provisioning && isAfter(j.State, at):
		return Parked
	case isAfter(j.State, at):
		return Success
	}
	return Superseded
}

// Answer returns the answer to the token of execution exec at a batch's stage.
func (b *Batch) Answer(stage Stage, exec int64) Answer {
	now, working := StageOfBatch(b.State)
	switch {
	case b.Exec != exec:
		return Superseded
	case working && now == stage:
		return Continue
	}
	return Success
}
