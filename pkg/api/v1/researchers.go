package v1

// ResearchHello says that a researcher is present.
type ResearchHello struct {
	// The name of the researcher. Two programs have two names.
	Researcher string `json:"researcher" minLength:"1" maxLength:"100" example:"bench-3"`
	// How many work items it takes at once.
	Capacity int `json:"capacity" minimum:"1" maximum:"64" example:"1"`
	// The computer on which it runs.
	Host string `json:"host,omitempty" maxLength:"200" example:"bench-3.example.org"`
	// The program and its version.
	Software string `json:"software,omitempty" maxLength:"100" example:"archivist v1.4.0"`
}

// ResearchWelcome is the answer to a hello.
type ResearchWelcome struct {
	// When the researcher is absent, if it says nothing more.
	Until string `json:"until" format:"date-time" example:"2026-11-22T09:31:30Z"`
	// How often it should say that it is present.
	RenewSeconds int `json:"renewSeconds" example:"30"`
}

// ResearchBye says that a researcher leaves.
type ResearchBye struct {
	// The name of the researcher.
	Researcher string `json:"researcher" minLength:"1" maxLength:"100" example:"bench-3"`
}

// Researcher is one that is present.
type Researcher struct {
	// The name.
	Name string `json:"name" example:"bench-3"`
	// How many work items it takes at once.
	Capacity int `json:"capacity" example:"1"`
	// The computer on which it runs.
	Host string `json:"host,omitempty" example:"bench-3.example.org"`
	// The program and its version.
	Software string `json:"software,omitempty" example:"archivist v1.4.0"`
	// Since when it is present.
	Since string `json:"since" format:"date-time" example:"2026-11-22T09:00:00Z"`
	// When it is absent, if it says nothing more.
	Until string `json:"until" format:"date-time" example:"2026-11-22T09:31:30Z"`
}

// ResearchNext is a request for the next work item.
type ResearchNext struct {
	// The name of the researcher.
	Researcher string `json:"researcher" minLength:"1" maxLength:"100" example:"bench-3"`
	// A text of letters and digits that is used for this work item only. If the answer is lost, the same request gives
	// the same work item.
	Token string `json:"token" pattern:"^[A-Za-z0-9_-]{1,100}$" example:"01M7ZBMEYHBB62YP6RY21T1GQ9"`
}

// ResearchAccept is a request for a work item whose message was received from the queue.
type ResearchAccept struct {
	ResearchNext
	// The id of the lease in the message.
	Lease string `json:"lease" minLength:"1" maxLength:"60" example:"01M7ZBMEYHBB62YP6RY21T1GQ8"`
}

// ResearchRecording is an episode or a clip of a work item.
type ResearchRecording struct {
	// The key.
	Key string `json:"key" example:"mfrggzdfmztwq2lknnwg23tp"`
	// The title.
	Title string `json:"title,omitempty" example:"The morning show"`
	// The address of the recording.
	URL string `json:"url" example:"https://example.org/2026-11-22.mp3"`
	// The size of the recording in bytes, if it is known.
	Size int64 `json:"size,omitempty" example:"52428800"`
	// The SHA-256 digest of the recording, if it is known.
	SHA256 string `json:"sha256,omitempty"`
}

// ResearchWork is a work item with all that is needed for it.
type ResearchWork struct {
	// The lease.
	Lease ResearchLease `json:"lease"`
	// What is to be done with each pair.
	Analysis ResearchAnalysis `json:"analysis"`
	// The episode.
	Episode ResearchRecording `json:"episode"`
	// The clips, in the order of research.
	Clips []ResearchRecording `json:"clips"`
}

// ResearchHit is a place where a clip occurs.
type ResearchHit struct {
	// Nanoseconds from the beginning of the episode.
	Offset int64 `json:"offset" example:"61500000000"`
	// The length in nanoseconds.
	Length int64 `json:"length" example:"4200000000"`
	// How alike they are: 0 to 1.
	Score float64 `json:"score" example:"0.93"`
}

// ResearchWaveform is how loud a recording is, for people to see.
type ResearchWaveform struct {
	// The length of the recording in nanoseconds, at most 100 hours.
	Length int64 `json:"length" minimum:"1" example:"3600000000000"`
	// The loudest sample of each part of the recording, in 1 to 1,000 parts of the same length: a
	// byte for each, 255 is the loudest that there can be. In base64.
	Peaks []byte `json:"peaks"`
}

// ResearchProblem is why there is no result.
type ResearchProblem struct {
	// Whose recording it is.
	Of string `json:"of" enum:"episode,clip" example:"clip"`
	// Rejected: the recording cannot be researched. Failed: it could not be read now.
	Kind string `json:"kind" enum:"rejected,failed" example:"rejected"`
	// Why.
	Reason string `json:"reason" example:"the recording is silent"`
}

// ResearchReport is what a researcher says of a pair of its work item.
type ResearchReport struct {
	// The project.
	Project string `json:"project" example:"jingles"`
	// The id of the lease.
	Lease string `json:"lease" example:"01M7ZBMEYHBB62YP6RY21T1GQ8"`
	// The name of the researcher.
	Researcher string `json:"researcher" example:"bench-3"`
	// The analysis: its name and version.
	Analysis string `json:"analysis,omitempty" example:"correlation@1"`
	// The key of the episode.
	Episode string `json:"episode" example:"mfrggzdfmztwq2lknnwg23tp"`
	// The number of the result among those of the lease, from 1. Absent: the report only says that it is the final one.
	Sequence int `json:"sequence,omitempty" example:"1"`
	// The key of the clip. Absent if the problem is of the episode.
	Clip string `json:"clip,omitempty" example:"nbswy3dpnbswy3dpnbswy3dp"`
	// Where the clip occurs, at most 1,000 places. None is a result, too.
	Hits []ResearchHit `json:"hits,omitempty"`
	// Whether there are more hits than are reported.
	Truncated bool `json:"truncated,omitempty"`
	// Why there is no result.
	Problem *ResearchProblem `json:"problem,omitempty"`
	// How the episode sounds, if the researcher knows it: with one result of a work item is enough.
	// It is no part of the result.
	Waveform *ResearchWaveform `json:"waveform,omitempty"`
	// How long it took, in milliseconds.
	Millis int64 `json:"millis,omitempty" example:"2100"`
	// Whether the researcher is done with the work item. What it has not reported is given back.
	Final bool `json:"final,omitempty"`
	// With final: the number of results of the lease.
	Count int `json:"count,omitempty" example:"12"`
}

// ResearchReports is a request to store results.
type ResearchReports struct {
	// The reports.
	Reports []ResearchReport `json:"reports" minItems:"1" maxItems:"10"`
}

// ResearchReceived is the answer to reports.
type ResearchReceived struct {
	// The number of reports that will be stored.
	Reports int `json:"reports" example:"1"`
}
