package queue

import (
	"context"
	"time"
)

// Checker checks the rules that the stored state of the system must keep.
type Checker interface {
	// Check checks one page from a cursor ("" at the beginning), and stops earlier at until.
	// With repair it corrects what can be corrected without the loss of anything. The same page
	// again repairs nothing twice; what it has repaired is no longer a finding.
	Check(ctx context.Context, cursor string, repair bool, until time.Time) (CheckedPage, error)
}

// CheckedPage is what one page of a check found.
type CheckedPage struct {
	Cursor   string // of the next page, "" at the end
	Checked  int    // rows, objects and jobs' work files in this page
	Findings []Finding
	Progress string // what the next page checks, e.g. "the storage root from a3"
}

// MaxFindings limits the findings of a page, so that one transaction can keep them.
const MaxFindings = 50

// Finding is a rule that does not hold.
type Finding struct {
	Invariant string `dynamo:"invariant" json:"invariant"` // stable name, e.g. "batch-counts"
	Subject   string `dynamo:"about" json:"subject"`       // e.g. "job:01M…-00001", or a key
	Evidence  string `dynamo:"evidence" json:"evidence"`
	Command   string `dynamo:"command,omitempty" json:"command,omitempty"` // that repairs it, or what a person must do
	Repaired  bool   `dynamo:"repaired,omitempty" json:"repaired,omitempty"`
}
