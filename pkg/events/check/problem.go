package check

import "context"

// Problem is a rule that does not hold.
type Problem struct {
	// Invariant is the short name of the rule, which docs/operations.md explains.
	Invariant string
	Subject   string // what it is about, e.g. "job:ID", or the key of the row
	Evidence  string // what was found, in words
	Command   string // what a person does
	// Repair corrects what follows from other rows; nil: a person has to act. A Stale means that something has changed
	// since: the row is to be checked again.
	Repair func(ctx context.Context) error
}

// Repair is what a person does about what can be repaired, if the rule does not name a narrower command.
const Repair = "archivist doctor --repair"

// Restore is what a person does about a row that is lost or damaged.
const Restore = "restore the row from a backup of the table (docs/restore.md)"
