package ingest

import (
	"fmt"
	"hash/fnv"
)

// Work is how an item (a job or a batch) is driven. Times are milliseconds
// since 1970.
type Work struct {
	Exec       int64  `dynamo:"exec_no"`              // which execution drives it now
	Tries      int    `dynamo:"tries,omitempty"`      // takes since its last progress
	Due        int64  `dynamo:"due_ms,omitempty"`     // when the sweep looks at it
	Repairs    int    `dynamo:"repairs,omitempty"`    // repairs since its last progress
	Blocked    string `dynamo:"blocked,omitempty"`    // why no execution brought it to a worker, as far as it is known
	Entered    int64  `dynamo:"entered,omitempty"`    // when it came into its state or to its gate
	Parked     bool   `dynamo:"parked,omitempty"`     // waits for a lock, or until Due, without an execution
	Waits      string `dynamo:"waits_for,omitempty"`  // the lock that it waits for
	WaitsOn    string `dynamo:"waits_on,omitempty"`   // the job that holds the lock
	Checkpoint string `dynamo:"checkpoint,omitempty"` // how far the step is, for people: "80 of 1,400 bytes"
	Done       int    `dynamo:"done_no,omitempty"`    // how far the step is, counted in what it works on
}

// progress resets what counts towards giving up.
func (w *Work) progress() { w.Tries, w.Repairs, w.Blocked = 0, 0, "" }

// Claimed notes that a worker has the item.
func (w *Work) Claimed() {
	w.Tries++
	w.Blocked = ""
}

// Stuck reports whether an item that was just repaired does not go on by itself: it
// is known what keeps it, or the repairs before were in vain.
func (w *Work) Stuck() bool { return w.Blocked != "" || w.Repairs >= StuckRepairs }

// Places in the index "work": the gates, due#shard for what is to be repaired, and
// one for what is to be removed, so that no repair waits behind a clean-up.
const (
	WorkPending      = "pending"
	WorkProvisioning = "provisioning"
	WorkParked       = "parked"
	WorkCleanUp      = "clean"
	DueShards        = 4
)

func due(id string, at int64) (place, rank string) {
	h := fnv.New32a()
	h.Write([]byte(id))
	return DuePK(int(h.Sum32() % DueShards)), DueSK(at) + "#" + id
}

// DueSK orders due items by time, in milliseconds.
func DueSK(at int64) string { return fmt.Sprintf("%013d", at) }

// DuePK names one shard of the items that are due, in order of time.
func DuePK(shard int) string { return fmt.Sprintf("due#%d", shard) }
