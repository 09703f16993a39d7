package ingest

// Called is what became of the callback of a job to one receiver, as the step that called it
// recorded it with its end. A step that died between a call and its end has recorded nothing: the
// next one calls again, with the same id.
type Called struct {
	By   string `dynamo:"named_by"`  // whose receiver it is: CalledByProfile or CalledBySubmission
	Site string `dynamo:"call_site"` // its scheme and host: the path of such a URL is often a secret
	At   int64  `dynamo:"at_ms"`     // when it was delivered, or the last try ended
	// Tries are the requests of the steps that ended, since the job has come to the callback.
	Tries   int    `dynamo:"tries"`
	Problem string `dynamo:"problem,omitempty"` // why it was not delivered; "" = it was
}

// Who has named the receiver of a callback.
const (
	CalledByProfile    = "profile"
	CalledBySubmission = "submission"
)

// CalledState is what became of a callback.
type CalledState string

// The states. One that failed has failed its job: a requeue calls again. One that is given up is
// not called again.
const (
	CallWaits     CalledState = "waits"
	CallDelivered CalledState = "delivered"
	CallFailed    CalledState = "failed"
	CallGivenUp   CalledState = "given-up"
)

// CallState is what became of one of the job's callbacks.
func (j *Job) CallState(c Called) CalledState {
	switch {
	case j.State.Open():
		return CallWaits
	case c.Problem == "":
		return CallDelivered
	case j.State == Failed && !j.NotRecoverable:
		return CallFailed
	}
	return CallGivenUp
}

// CalledBefore is how often an earlier step has called a receiver.
func (j *Job) CalledBefore(by, site string) int {
	for _, c := range j.Calls {
		if c.By == by && c.Site == site {
			return c.Tries
		}
	}
	return 0
}

// amountOf are the attributes of Counts by what became of a callback.
var amountOf = map[CalledState]string{CallDelivered: "n_called", CallFailed: "n_call_failed",
	CallGivenUp: "n_uncalled"}

// Amounts are what the job adds to the amounts of its batch: the keys are attributes of Counts. One
// that has not ended adds nothing.
func (j *Job) Amounts() map[string]int64 {
	sums := map[string]int64{}
	if j.State == Completed && j.Bytes > 0 {
		sums["n_bytes"] = j.Bytes
	}
	for _, c := range j.Calls {
		if name := amountOf[j.CallState(c)]; name != "" {
			sums[name]++
		}
	}
	return sums
}

// Add adds amounts of a job.
func (a *Amounts) Add(sums map[string]int64) {
	a.Bytes = AddSizes(a.Bytes, sums["n_bytes"])
	a.Called += sums["n_called"]
	a.CallFailed += sums["n_call_failed"]
	a.Uncalled += sums["n_uncalled"]
}
