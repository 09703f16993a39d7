package fixity

// Outcomes of a check.
const (
	OK         = "ok"
	Damaged    = "damaged"    // a file has another digest, or is missing
	Unreadable = "unreadable" // no damage was found, but some file could not be read
)

// Kinds of problems of a file.
const (
	Mismatch   = "mismatch"
	Missing    = "missing"
	Unread     = "unreadable"
	BadSidecar = "sidecar" // the sidecar of an inventory is missing, or has no digest
	BadRecord  = "record"  // an inventory is not the one that is on record
	Unnamed    = "unnamed" // no inventory names the key, and nothing of the object may be there
)

// Problem is what is wrong with one file.
type Problem struct {
	Key      string `dynamo:"file_key" json:"key"` // in the storage bucket
	Kind     string `dynamo:"problem" json:"kind"`
	Expected string `dynamo:"expected,omitempty" json:"expected,omitempty"` // digest
	Actual   string `dynamo:"actual,omitempty" json:"actual,omitempty"`     // digest
	Reason   string `dynamo:"reason,omitempty" json:"reason,omitempty"`
}

// Result of a check of an object.
type Result struct {
	Outcome  string    `dynamo:"fixity_outcome,omitempty" json:"outcome"`
	Checked  int64     `dynamo:"checked_ms,omitempty" json:"checked"` // when it ended, milliseconds since 1970
	Version  int       `dynamo:"head_version,omitempty" json:"version"`
	Files    int       `dynamo:"files,omitempty" json:"files"`
	Bytes    int64     `dynamo:"bytes_read,omitempty" json:"bytes"`
	Problems []Problem `dynamo:"problems,omitempty" json:"problems,omitempty"`
	More     int       `dynamo:"more_problems,omitempty" json:"moreProblems,omitempty"` // that Problems does not list

	// OnRecord is the newest version whose inventory was compared with a digest outside of the storage
	// root. 0: none is on record, so the inventories were compared with each other only.
	OnRecord int `dynamo:"on_record,omitempty" json:"onRecord"`
}

// mostProblems is the maximum number of problems that a Result lists.
const mostProblems = 20

// add notes a problem. The worst of all decides the outcome: damage counts more than a file that
// could not be read.
func (r *Result) add(p Problem) {
	switch {
	case p.Kind != Unread:
		r.Outcome = Damaged
	case r.Outcome == OK:
		r.Outcome = Unreadable
	}

	if len(r.Problems) == mostProblems {
		r.More++
		return
	}

	r.Problems = append(r.Problems, p)
}
