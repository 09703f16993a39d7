package v1

// Notice is what became of a callback to one receiver, or of a mail to one recipient.
type Notice struct {
	// What is delivered: a callback, or which mail.
	Kind string `json:"kind" enum:"callback,queued,report,update-report,delayed"`
	// The recipient of the mail, or the scheme and host of the callback. Absent if it is not known
	// yet.
	To string `json:"to,omitempty" example:"https://hooks.example.org"`
	// Who has named the receiver of a callback. Absent for mails.
	NamedBy string `json:"namedBy,omitempty" enum:"profile,submission"`
	// waits: it was not tried yet, or a job that was requeued sends its callbacks again. delivered:
	// the receiver, or the mail service, has accepted it. failed: it is tried again, a mail by
	// itself, a callback if its job is requeued. given-up: it is not tried again.
	State string `json:"state" enum:"waits,delivered,failed,given-up"`
	// When it was delivered, or the last try ended. Absent before.
	At string `json:"at,omitempty" format:"date-time" example:"2026-11-22T09:31:12Z"`
	// How often it was tried. One that died before it could be noted is not counted.
	Tries int `json:"tries" example:"1"`
	// How many other recipients the mail was delivered to, whose names an earlier version has not
	// noted. Absent if there are none.
	Others int `json:"others,omitempty"`
	// How many recipients of the mail it is about, whom only the profile of the collection names,
	// and whose addresses the caller may not see. Absent if it is about one that is seen.
	OfProfile int `json:"ofProfile,omitempty"`
	// Why it was not delivered.
	Problem string `json:"problem,omitempty" example:"https://hooks.example.org answered 410 Gone"`
	// When it is tried next. Absent if that is never, or when a person requeues the job.
	NextTry string `json:"nextTry,omitempty" format:"date-time" example:"2026-11-22T09:35:00Z"`
	// What to do about it. Absent if that is nothing.
	Advice string `json:"advice,omitempty" example:"Correct the server of the callback, then requeue the job."`
}

// The states of a Notice.
const (
	NoticeWaits     = "waits"
	NoticeDelivered = "delivered"
	NoticeFailed    = "failed"
	NoticeGivenUp   = "given-up"
)

// CallbackCounts are how many callbacks of the jobs of a batch became what. A job that has not
// ended is not counted.
type CallbackCounts struct {
	// Those that their receivers have accepted.
	Delivered int64 `json:"delivered" example:"997"`
	// Those that have failed their jobs: a requeue sends them again.
	Failed int64 `json:"failed" example:"2"`
	// Those that are not sent again, although they were not delivered, or not sent at all.
	GivenUp int64 `json:"givenUp" example:"1"`
}
