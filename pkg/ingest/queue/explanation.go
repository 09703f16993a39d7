package queue

import "strings"

// Explanation states what an item waits for, or how it ended.
type Explanation struct {
	State   string  `json:"state"`
	Waits   WaitsOn `json:"waitsFor"`
	Why     string  `json:"why"`          // a sentence or two for depositors
	On      string  `json:"on,omitempty"` // the job that it waits for
	Details Details `json:"details"`      // for operators
}

// WaitsOn is what kind of thing an item waits for.
type WaitsOn string

// What items wait for.
const (
	OnNothing WaitsOn = "nothing" // it has ended
	OnPerson  WaitsOn = "person"  // a person must act
	OnTurn    WaitsOn = "turn"    // nothing is missing: the scheduler admits it
	OnLock    WaitsOn = "lock"    // another job works on the same object
	OnSlot    WaitsOn = "slot"    // the limit of running jobs is reached
	OnSpace   WaitsOn = "space"   // work space
	OnStart   WaitsOn = "start"   // a worker starts shortly
	OnWorker  WaitsOn = "worker"  // a worker works on it
	OnSource  WaitsOn = "source"  // the source asks to retry later
	OnJobs    WaitsOn = "jobs"    // a batch's jobs
	OnHold    WaitsOn = "hold"    // the end of a hold or a pause
	OnCancel  WaitsOn = "cancel"  // the operation that ends the jobs of its cancelled batch
)

// Details are what an operator needs to find an item in AWS. Times are milliseconds since
// 1970, 0 if there is none.
type Details struct {
	Execution string // its name
	Tries     int    // tries by a worker since its last progress
	Repairs   int    // executions that replaced one without progress
	Leased    int64  // end of the worker's lease
	Due       int64  // when the sweep checks it
}

// details returns those of a row.
func details(it item, id string) Details {
	row := it.common()
	d := Details{Tries: row.Tries, Repairs: row.Repairs, Due: row.Due}
	if _, driven := it.stage(); driven {
		d.Execution, d.Leased = ExecutionName(id, row.Exec), row.Until
	}
	return d
}

// capital is a text with a capital at its beginning.
func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }
