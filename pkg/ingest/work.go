package ingest

import (
	"fmt"
	"hash/fnv"
)

// Work is the processing state of an item (a job or a batch). Times are milliseconds
// since 1970.
type Work struct {
	Exec       int64  `dynamo:"exec_no"`              // number of the execution that drives it
	Tries      int    `dynamo:"tries,omitempty"`      // tries since its last progress
	Due        int64  `dynamo:"due_ms,omitempty"`     // when the sweep checks it
	Repairs    int    `dynamo:"repairs,omitempty"`    // repairs since its last progress
	Blocked    string `dynamo:"blocked,omitempty"`    // why it did not reach a worker, if known
	Entered    int64  `dynamo:"entered,omitempty"`    // when it entered its state or reached its gate
	Parked     bool   `dynamo:"parked,omitempty"`     // waits for a lock, or until Due, without an execution
	Waits      string `dynamo:"waits_for,omitempty"`  // the lock that it waits for, or WaitsForStorage, WaitsForTurn
	WaitsOn    string `dynamo:"waits_on,omitempty"`   // the job that holds the lock
	Checkpoint string `dynamo:"checkpoint,omitempty"` // progress of the step, for people: "80 of 1,400 bytes"
	Done       int    `dynamo:"done_no,omitempty"`    // progress of the step, as a number of finished parts
}

// What a parked job waits for, beside locks.
const (
	WaitsForStorage = "storage" // the end of the storage's pause
	WaitsForTurn    = "turn"    // its turn among the new jobs: a person has requeued it
)

// progress resets what counts towards giving up.
func (w *Work) progress() { w.Tries, w.Repairs, w.Blocked = 0, 0, "" }

// Claimed counts a try: a worker has claimed the item.
func (w *Work) Claimed() {
	w.Tries++
	w.Blocked = ""
}

// Interrupted takes back the try of a worker that has lost the item to an action of a person: it has not failed. One
// try stays, since a worker had the item.
func (w *Work) Interrupted() { w.Tries = max(min(w.Tries, 1), w.Tries-1) }

// Places in the index "work": the gates, due#shard for items to be repaired, one for items
// on hold, in the order in which their holds end, one for rows and work files to be removed,
// so that no repair waits behind a clean-up, and one for failed jobs without work files.
//
//	pending, provisioning, parked   jobs at a gate, in the order of their turns
//	due#{shard}                     {due time}#{id}: what the sweep repairs, of any kind
//	held                            {end of the hold}#{id}
//	clean                           {due time}#{id}: work files of jobs, rows of batches
//	failed                          {time of the failure}#{id}
//	mail                            {due time}#{batch}#{kind}: see PlaceMail
//
// Times are milliseconds since 1970, with thirteen digits. Batches and operations have their kind
// before the id.
const (
	WorkPending      = "pending"
	WorkProvisioning = "provisioning"
	WorkParked       = "parked"
	WorkHeld         = "held"
	WorkCleanUp      = "clean"
	WorkFailed       = "failed"
	DueShards        = 8
)

// due is the place of an item among the due ones. Its shard follows from its id, so it stays the
// same.
func due(id string, at int64) (place, rank string) {
	h := fnv.New32a()
	h.Write([]byte(id))
	return DuePK(int(h.Sum32() % DueShards)), DueSK(at) + "#" + id
}

// heldPlace is the place of an item on hold, whose hold ends at a time, or never if that is 0. The
// sweep reads the place only up to now.
func heldPlace(id string, ends int64) (place, rank string) {
	const never = 9_999_999_999_999 // behind every time
	if ends == 0 {
		ends = never
	}
	return WorkHeld, DueSK(ends) + "#" + id
}

// DueSK orders due items by time, in milliseconds.
func DueSK(at int64) string { return fmt.Sprintf("%013d", at) }

// DuePK is the partition of one shard of the due items, which are in order of time.
func DuePK(shard int) string { return fmt.Sprintf("due#%d", shard) }
