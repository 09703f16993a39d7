package ingest

// Answer is what a message's token is told. It is decided by the row alone.
type Answer string

// Answers: Success goes on in the execution; the others are error names that
// the definition catches.
const (
	Success    Answer = "Success"
	Continue   Answer = "Continue"
	Parked     Answer = "Parked"
	Superseded Answer = "Superseded"
	StageFail  Answer = "StageFailed"
)

// Answer says what the token of execution exec at state at is told, given the
// job as it is now.
func (j *Job) Answer(at State, exec int64) Answer {
	switch {
	case j.Exec != exec:
		return Superseded
	case j.State == at && !j.Parked:
		return Continue
	case j.State == Failed:
		return StageFail
	case j.Parked || j.State == Provisioning && past(j.State, at):
		return Parked
	case past(j.State, at):
		return Success
	}
	return Superseded
}

// Answer says what the token of execution exec at a batch's stage is told.
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
