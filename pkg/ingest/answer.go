package ingest

// Answer is the answer to a message's task token. It depends on the job's or batch's row alone.
type Answer string

// Answers: after Success the execution continues; the others are error names that
// the definition catches.
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
	case j.Exec != exec:
		return Superseded
	case j.State == at && !j.Parked:
		return Continue
	case j.State == Failed:
		return StageFail
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
