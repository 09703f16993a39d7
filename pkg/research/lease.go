package research

// Why a lease ended. However it ends, its pairs without a result are due again.
const (
	Final   = "final"   // all results that were announced are stored
	Expired = "expired" // its researcher was not heard of
	Revoked = "revoked" // by a person
)

// Lease is a work item: pairs of an episode with clips that one researcher may research. Times are
// in milliseconds since 1970, 0 for what has not happened.
//
// It is created without a researcher and published; it is accepted once, extended by results, and
// ended once. It excludes other leases on its pairs until its row says that it has ended: one whose
// time has passed is ended by the next pass of the assigner.
type Lease struct {
	ID         string   `dynamo:"lease_id"` // ordered by the time of its creation
	Project    string   `dynamo:"project_name"`
	Episode    string   `dynamo:"episode_key"`
	Clips      []string `dynamo:"clip_keys"`     // keys, in the order of research; 1 to MaxMaxClips
	Analysis   string   `dynamo:"analysis_name"` // "name@version", when it was created
	Generation int64    `dynamo:"round_no"`      // of that analysis

	Created   int64 `dynamo:"created_ms"`
	Until     int64 `dynamo:"until_ms"`               // its end, which results move
	QueueEnd  int64 `dynamo:"queue_end_ms"`           // the message has left the queue by then
	Published int64 `dynamo:"published_ms,omitempty"` // 0: perhaps the message was not sent

	Accepted   int64  `dynamo:"accepted_ms,omitempty"`
	Recording  int64  `dynamo:"recording_no,omitempty"` // of the episode just before; 0: not known
	Researcher string `dynamo:"researcher,omitempty"`
	Token      string `dynamo:"accept_token,omitempty"` // of the acceptance, made by the researcher

	Stored  int    `dynamo:"stored_n"`            // results of it
	Last    int64  `dynamo:"last_ms,omitempty"`   // when the newest of them came
	Results *int   `dynamo:"results_n,omitempty"` // as the final one announced
	Ended   int64  `dynamo:"ended_ms,omitempty"`  // 0: it has not ended
	Why     string `dynamo:"why_ended,omitempty"` // Final, Expired or Revoked
}

// Live reports whether its researcher may still work on it at a time, in milliseconds since 1970:
// only a live lease is accepted or extended.
func (l *Lease) Live(now int64) bool { return l.Ended == 0 && now < l.Until }

// ends is when the lease ends, 0 if it has no end in the line.
func (l *Lease) ends() int64 {
	if l.Ended > 0 {
		return 0
	}
	return l.Until
}

// waits is when the work item leaves the queue if nobody accepts it, 0 if it does not wait there.
func (l *Lease) waits() int64 {
	if l.Ended > 0 || l.Accepted > 0 {
		return 0
	}
	return l.QueueEnd
}

// Message is the work item on the queue of pending work (source: the requirement, "Publishing a
// Work-Item"). Acceptance answers with what is needed for the research.
type Message struct {
	Lease   string   `json:"lease"`
	Project string   `json:"project"`
	Episode string   `json:"episode"`
	Clips   []string `json:"clips"`
	Ends    int64    `json:"ends"` // of its time in the queue, in milliseconds since 1970
}
