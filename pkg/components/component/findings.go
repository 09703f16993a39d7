package component

import (
	"fmt"

	"archivist/pkg/kernel/fault"
)

// Reconciled is what a part of a reconciliation found, and repaired but for Damaged, Moving and
// what changes meanwhile.
type Reconciled struct {
	Items   int `json:"items"`   // that were looked at
	Places  int `json:"places"`  // items that were at another place than their events say
	Behind  int `json:"behind"`  // items that did not know the newest events of their subject
	Missing int `json:"missing"` // rows of lines that were not there
	Foreign int `json:"foreign"` // rows of lines of no item
	Counts  int `json:"counts"`  // rows of counts that were wrong

	// Moving counts rows of counts that could not be compared: items moved meanwhile, or cannot be
	// read.
	Moving  int `json:"moving"`
	Damaged int `json:"damaged"` // items that cannot be read; these are not repaired

	Findings []string `json:"findings,omitempty"` // the first of them, in words
}

// maxFindings is how many findings a call returns in words.
const maxFindings = 50

// repairs is how much was repaired. An item that is behind its subject is not wrong: the consumer
// comes.
func (r *Reconciled) repairs() int { return r.Places + r.Missing + r.Foreign + r.Counts }

// find counts a finding in n, and keeps it in words, if there is room.
func (r *Reconciled) find(n *int, format string, args ...any) {
	*n++
	if len(r.Findings) < maxFindings {
		r.Findings = append(r.Findings, fmt.Sprintf(format, args...))
	}
}

// Add adds what another part found.
func (r *Reconciled) Add(other Reconciled) {
	r.Items += other.Items
	r.Places += other.Places
	r.Behind += other.Behind
	r.Missing += other.Missing
	r.Foreign += other.Foreign
	r.Counts += other.Counts
	r.Moving += other.Moving
	r.Damaged += other.Damaged
	r.Findings = append(r.Findings, other.Findings...)
	r.Findings = r.Findings[:min(len(r.Findings), maxFindings)]
}

// readable turns the error about a damaged item into a finding.
func readable(err error, out *Reconciled, id string) error {
	if fault.Is(err, fault.Invalid) {
		out.find(&out.Damaged, "%s: %v", id, err)
		return nil
	}
	return err
}
