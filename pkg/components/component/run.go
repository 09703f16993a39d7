package component

import (
	"context"
	"fmt"
	"time"

	"archivist/pkg/kernel/table"
)

// Machine is the name of the state machine, whose definition is
// statemachines/component-run.asl.json.
const Machine = "component-run"

// RunInput is the input of an execution.
type RunInput struct {
	Run RunRef `json:"run"`
}

// Executions are those of the state machine component-run. They carry no truth: a run without one
// is given up by Tick.
type Executions interface {
	// Start starts one. A Conflict means that its name was used before.
	Start(ctx context.Context, name string, in RunInput) error
	// Stop stops one. It is no error if it has ended.
	Stop(ctx context.Context, name, why string) error
}

// RunRef names an execution of a run. It is what a state machine passes on, so names of fields
// stay.
type RunRef struct {
	Component string `json:"component"`
	Slot      int    `json:"slot"`
	Run       string `json:"run"`

	// Exec is 1, and more if one execution was not enough: the next one has a new name, and the one
	// before ends.
	Exec int64 `json:"exec"`
}

// execution is the name of the execution, of at most 80 characters: an id has 26.
func (r RunRef) execution() string { return fmt.Sprintf("%s-%d", r.Run, r.Exec) }

// Page is what a run does next: the input of the next state of the state machine, so names of
// fields stay. Lanes is never nil, since a Map state needs a list.
type Page struct {
	Run   RunRef `json:"run"`
	Next  string `json:"next"`
	Lanes []Lane `json:"lanes"`

	// Of a component whose runnable is a task.
	Task *PageTask `json:"task,omitempty"`

	// Seconds is the time-out of an item.
	Seconds int `json:"seconds,omitempty"`
}

// PageTask is a Task all of whose fields are there: a path of the state machine must lead
// somewhere.
type PageTask struct {
	Task
	Groups []string `json:"securityGroups"`
}

// What a run does next.
const (
	NextWork = "Work"  // the items of the lanes
	NextTask = "Tasks" // likewise, by a container; one item in each lane
	NextEnd  = "End"
	NextNone = "None" // the run has ended, or goes on in another execution
)

// Lane is a list of items, which are worked on one after the other.
type Lane struct {
	Number int      `json:"number"`
	Items  []string `json:"items"`
}

// Times of runs.
const (
	// FunctionTime is the time-out of the function that works on items.
	FunctionTime = 15 * time.Minute
	// laneTime is how long a lane's items may take, all together.
	laneTime = MaxItemSeconds * time.Second
	// StoreTime is left for a result to be stored, after the item's time-out.
	StoreTime = 45 * time.Second
	// startTime is how long an execution has to begin, and to go on after a round.
	startTime = 5 * time.Minute
	// keepItems is for how long the row of an item of a run is kept, keepRuns that of a run and of
	// its lanes, since they were made. The events of items are kept for ever.
	keepItems = 30 * 24 * time.Hour
	keepRuns  = 365 * 24 * time.Hour
)

const (
	// maxTakes bounds how often an item is taken again, because its worker ended without a result.
	maxTakes = 3
	// firstWait is the wait after the first answer "not yet"; it doubles with each, up to mostWait.
	firstWait = time.Minute
	mostWait  = time.Hour
	// maxResultReason and maxReport bound what is stored of a result, in bytes. An event's detail
	// has at most event.MaxDetail.
	maxResultReason = 1000
	maxReport       = 48 << 10
	// unwind is how long a function may take to return after its time.
	unwind = 5 * time.Second
)

// Metrics of runs.
const (
	// MetricRepairs counts runs whose execution was lost.
	MetricRepairs = "ComponentRepairs"
	// MetricLate counts results that were not stored, because the lease had ended.
	MetricLate = "ComponentLateResults"
	// MetricBroken counts items that cannot be read or saved.
	MetricBroken = "ComponentBrokenItems"
)

// runsPK is the partition of the table with the slots and schedules of all components.
const runsPK = "COMPONENTRUNS"

// slotRow is the lease of an instance of a component (source: "Lockserver" of the
// autonomous-components text: each component is locked while it polls and runs). It has no time at
// which it ends by itself: after Due the tick gives the run up, in a transaction that closes its
// lanes. Times are milliseconds since 1970.
type slotRow struct {
	table.Head
	Component string `dynamo:"component_name"`
	Number    int    `dynamo:"slot_no"`

	// Run "": it is free.
	Run  string `dynamo:"run_id,omitempty"`
	Exec int64  `dynamo:"exec_no,omitempty"`

	// Due: after it the run is taken for lost. It is moved on with each round.
	Due int64 `dynamo:"due_ms,omitempty"`

	// Fence is the number of runs so far.
	Fence int64 `dynamo:"fence"`

	// Wanted: another run is to follow, also if nobody wakes the component then.
	Wanted bool `dynamo:"is_wanted,omitempty"`

	// Fruitless is how many runs in a row could do nothing; until Rest no other is started by the
	// system.
	Fruitless int   `dynamo:"fruitless_n,omitempty"`
	Rest      int64 `dynamo:"rest_ms,omitempty"`
}

func slotKey(component string, number int) table.Key {
	return table.Key{PK: runsPK, SK: fmt.Sprintf("SLOT#%s#%02d", component, number)}
}

func newSlot(component string, number int) *slotRow {
	k := slotKey(component, number)
	return &slotRow{Head: table.Head{PK: k.PK, SK: k.SK}, Component: component, Number: number}
}

// free gives the slot back, in memory. After a run in which nothing could be done, the next one
// that the system starts by itself waits, twice as long each time: else items that cannot be worked
// on would start runs without end.
func (r *slotRow) free(now int64, done RunCounts) {
	r.Run, r.Exec, r.Due = "", 0, 0
	if done.taken() > 0 {
		r.Fruitless, r.Rest = 0, 0
		return
	}
	r.Fruitless++
	r.Rest = now + waitAfter(r.Fruitless-1).Milliseconds()
}

// RunState is how far a run is.
type RunState string

// States of runs.
const (
	RunGoing       RunState = "running"
	RunEnded       RunState = "ended"
	RunInterrupted RunState = "interrupted" // it lost its lease
)

// runRow is a run. It is kept for a year. Times are milliseconds since 1970.
type runRow struct {
	table.Head
	Component string   `dynamo:"component_name"`
	Slot      int      `dynamo:"slot_no"`
	State     RunState `dynamo:"run_state"`

	// Why is why it ended although there was more to do, or who interrupted it; "": all was done.
	Why        string `dynamo:"ended_by,omitempty"`
	Definition int    `dynamo:"definition_no"`
	Actor      string `dynamo:"actor,omitempty"`
	Reason     string `dynamo:"reason,omitempty"`
	Started    int64  `dynamo:"started_ms"`
	Ended      int64  `dynamo:"ended_ms,omitempty"`

	// Until is the run's time-out: no round begins after it.
	Until    int64 `dynamo:"until_ms"`
	MaxItems int   `dynamo:"most_items"`
	Exec     int64 `dynamo:"exec_no"`

	// Rounds is how many rounds this execution has begun. Their number is bounded, and then another
	// execution goes on.
	Rounds int `dynamo:"rounds_n"`

	// Lanes is how many rows of lanes there are.
	Lanes int `dynamo:"lanes_n"`

	// Seen is how many items were taken before the last round, and Empty how many rounds in a row
	// began with that number, the last one too: so nothing was done in those before it.
	Seen  int64 `dynamo:"seen_n"`
	Empty int   `dynamo:"empty_n"`
}

// Run is a run of a component, as it is shown. Times are milliseconds since 1970.
type Run struct {
	ID         string   `json:"id"`
	Component  string   `json:"component"`
	Definition int      `json:"definition"` // its version
	Slot       int      `json:"slot"`
	State      RunState `json:"state"`

	// Why it ended, if there was more to do.
	Why     string `json:"why,omitempty"`
	Actor   string `json:"actor,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Started int64  `json:"started"`
	Ended   int64  `json:"ended,omitempty"`

	// Until is the run's time-out.
	Until      int64     `json:"until"`
	MaxItems   int       `json:"maxItems"`
	Executions int64     `json:"executions"`
	Counts     RunCounts `json:"counts"`
	Broken     []string  `json:"brokenItems,omitempty"`

	// Items are a page of them, the newest first.
	Items []RunItem `json:"items,omitempty"`
}

// RunItem is what a run did with an item.
type RunItem struct {
	Item    string `json:"item"`
	State   string `json:"state"` // success, failure, notYet or again
	Reason  string `json:"reason,omitempty"`
	Event   string `json:"event,omitempty"`
	Started int64  `json:"started"`
	Ended   int64  `json:"ended"`
}

func runKey(run string) table.Key { return table.Key{PK: "RUN#" + run, SK: "RUN"} }

func runShelf(component string) string { return "RUNS#" + component }

// laneRow counts what was done in a lane. A result is written with it, on the condition that it is
// as it was read: so a lane is the fence of its run's workers, and one that is closed lets nothing
// more be stored.
type laneRow struct {
	table.Head

	// Closed: the run has ended.
	Closed bool  `dynamo:"is_closed,omitempty"`
	Done   int64 `dynamo:"done_n"`
	Failed int64 `dynamo:"failed_n"`
	NotYet int64 `dynamo:"notyet_n"`
	Again  int64 `dynamo:"again_n"`

	// Passed counts items that were not ready any more, and Broken names those that cannot be read
	// or saved.
	Passed int64    `dynamo:"passed_n"`
	Broken []string `dynamo:"broken_items,omitempty"`
}

func laneKey(run string, lane int) table.Key {
	return table.Key{PK: runKey(run).PK, SK: fmt.Sprintf("LANE#%02d", lane)}
}

// totals is what was done in all lanes.
type totals struct {
	RunCounts
	broken []string
}

// sum adds up what was done in lanes.
func sum(lanes []laneRow) (t totals) {
	for i := range lanes {
		l := &lanes[i]
		t.Done += l.Done
		t.Failed += l.Failed
		t.NotYet += l.NotYet
		t.Again += l.Again
		t.Passed += l.Passed
		t.broken = append(t.broken, l.Broken...)
	}

	t.Broken = int64(len(t.broken))
	return t
}

// RunCounts is what was done in a run: how often, since an item can be worked on more than once.
type RunCounts struct {
	// Done is with success, Failed with failure.
	Done   int64 `json:"done"`
	Failed int64 `json:"failed"`

	// NotYet are tried again later; of Again a part of the work was done.
	NotYet int64 `json:"notYet"`
	Again  int64 `json:"again"`

	// Passed were not ready any more, or are another run's.
	Passed int64 `json:"passed"`

	// Broken cannot be read or saved.
	Broken int64 `json:"broken"`
}

// taken is how often the work on an item was done.
func (c RunCounts) taken() int64 { return c.Done + c.Failed + c.NotYet + c.Again }

// waitAfter is how long to wait after so many times before: a minute, doubled each time, up to an
// hour.
func waitAfter(times int) time.Duration {
	return min(mostWait, firstWait<<min(times, 10))
}
