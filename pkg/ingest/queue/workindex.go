package queue

import (
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/table"
)

// candidate is a waiting job as the index shows it.
type candidate struct {
	table.Head
	ID         string `dynamo:"id"`
	Space      int64  `dynamo:"space_needed"`
	Known      bool   `dynamo:"size_known"`
	Entered    int64  `dynamo:"entered"`
	Collection string `dynamo:"coll"`
}

// gates are the places where jobs wait, in the order in which they are checked: first the
// jobs that already hold something.
var gates = []string{ingest.WorkParked, ingest.WorkProvisioning, ingest.WorkPending}

// due is an item past its due time as the index shows it.
type due struct {
	table.Head
	ID string `dynamo:"id"`
}

// isBatch reports whether it is a batch, not a job.
func (d due) isBatch() bool { return d.PK == batchKey(d.ID).PK }

// isOperation reports whether it is an operation.
func (d due) isOperation() bool { return d.PK == operationKey(d.ID).PK }

// dueMail is a mail past its due time as the index shows it.
type dueMail struct{ table.Head }

// dueRank is the upper limit, in the index, of the ranks that are due at now.
func dueRank(now time.Time) string { return ingest.DueSK(now.UnixMilli()) + "~" }

// countedMost limits how many waiting jobs of a gate are read.
const countedMost = 1000
