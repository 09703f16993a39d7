package research

// The details of the events of research. They are stored and published as JSON, with a schema of
// each type: a field keeps its name and its meaning for ever. Times are in milliseconds since 1970.

// Applied is the detail of project.applied: the project as it was configured.
type Applied struct {
	Project    Project `json:"project"`
	Generation int64   `json:"round"`
}

// Because is the detail of what a person did for a reason.
type Because struct {
	Reason string `json:"reason"`
}

// Recorded is the detail of episode.curated and clip.curated: what is known now.
type Recorded struct {
	Media Media `json:"media"`
}

// Assigned is the detail of lease.created.
type Assigned struct {
	Project  string   `json:"project"`
	Episode  string   `json:"episode"`
	Clips    []string `json:"clips"`
	Analysis string   `json:"analysis"`
	Until    int64    `json:"until"`
}

// Accepted is the detail of lease.accepted.
type Accepted struct {
	Researcher string `json:"researcher"`
}

// Extended is the detail of lease.extended.
type Extended struct {
	Until int64 `json:"until"`
}

// Ended is the detail of lease.ended.
type Ended struct {
	Why     string `json:"why"`
	Results int    `json:"results"` // that were stored while it was live
	Reason  string `json:"reason,omitempty"`
}

// Researched is the detail of episode.researched.
type Researched struct {
	Clip       string   `json:"clip,omitempty"`
	Analysis   string   `json:"analysis"`
	Hits       int      `json:"hits"`
	Best       *Hit     `json:"best,omitempty"`
	Problem    *Problem `json:"problem,omitempty"`
	Lease      string   `json:"lease"`
	Researcher string   `json:"researcher"`
}

// Conduct is the detail of project.researcher-paused and project.researcher-resumed. Until is the end of the pause, 0
// when a person has ended it.
type Conduct struct {
	Researcher string `json:"researcher"`
	Until      int64  `json:"until,omitempty"`
	Reason     string `json:"reason"`
}

// Differing is the detail of episode.differs.
type Differing struct {
	Clip        string   `json:"clip"`
	Analysis    string   `json:"analysis"`
	Researchers []string `json:"researchers"` // names, in order
}

// Reviewed is the detail of episode.reviewed.
type Reviewed struct {
	Clip     string `json:"clip"`
	Lease    string `json:"lease"`    // whose result it is
	Hits     []int  `json:"hits"`     // places of it, numbered from 1
	Accepted bool   `json:"accepted"` // else they are rejected
	Reason   string `json:"reason"`
}

// Decided is the detail of episode.decided.
type Decided struct {
	Clip       string `json:"clip"`
	Lease      string `json:"lease,omitempty"`      // whose result counts
	Researcher string `json:"researcher,omitempty"` // of that
	Another    bool   `json:"another,omitempty"`    // one more researcher is asked
	Reason     string `json:"reason"`
}
