package component

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"archivist/pkg/fault"
	"archivist/pkg/table"
)

// Runner runs components. Each instance of a component has a slot, which is its lease: a run holds it
// from Start to End. An execution of the state machine component-run does the run:
//
//	Find → WorkLane, in up to as many lanes at once as the component's concurrency → Find → … → End
//
// Find hands out the heads of the component's line. A claim on an item is taken when its turn comes,
// so each lease is short. A lane has a row, which each result is written with: when the run loses
// its slot, its lanes are closed by the same transaction, and what its workers still do is not
// stored.
//
//	COMPONENTRUNS  SLOT#{component}#{instance}  who runs, and until when that is believed
//	COMPONENTRUNS  TIME#{component}             the next time of its schedule
//	RUN#{run}      RUN                          the run
//	RUN#{run}      LANE#{number}                what was done in a lane
//	RUN#{run}      ITEM#{time}#{claim}          what was done with an item
type Runner struct {
	Store     *Store
	Functions map[string]Function
	// Call calls a Lambda function. An error of the kind Unavailable or Denied means that the function
	// cannot be called; another one is its own.
	Call       func(ctx context.Context, arn string, w Work) (Result, error)
	Executions Executions
	Metric     func(name string, value float64)
	Log        *slog.Logger
}

// Executions are those of the state machine component-run.
type Executions interface {
	// Start starts one. A Conflict means that its name was used before.
	Start(ctx context.Context, name string, in RunInput) error
	// Stop stops one. It is no error if it has ended.
	Stop(ctx context.Context, name, why string) error
}

// RunInput is the input of an execution.
type RunInput struct {
	Run RunRef `json:"run"`
}

// RunRef names an execution of a run.
type RunRef struct {
	Component string `json:"component"`
	Slot      int    `json:"slot"`
	Run       string `json:"run"`
	Exec      int64  `json:"exec"` // 1, and more if one execution was not enough
}

// execution is the name of the execution, of at most 80 characters: an id has 26.
func (r RunRef) execution() string { return fmt.Sprintf("%s-%d", r.Run, r.Exec) }

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
	keepItems = 30 * 24 * time.Hour
	keepRuns  = 365 * 24 * time.Hour
)

// Machine is the state machine.
const Machine = "component-run"

// Metrics of runs.
const (
	MetricRepairs = "ComponentRepairs"     // runs whose execution was lost
	MetricLate    = "ComponentLateResults" // results that were not stored, because the lease had ended
	MetricBroken  = "ComponentBrokenItems" // items that cannot be read or saved
)

const runsPK = "COMPONENTRUNS"

// slotRow is the lease of an instance of a component.
type slotRow struct {
	table.Head
	Component string `dynamo:"component_name"`
	Number    int    `dynamo:"slot_no"`
	Run       string `dynamo:"run_id,omitempty"` // "": it is free
	Exec      int64  `dynamo:"exec_no,omitempty"`
	Due       int64  `dynamo:"due_ms,omitempty"` // after it the run is taken for lost
	Fence     int64  `dynamo:"fence"`            // the number of runs so far
	Wanted    bool   `dynamo:"is_wanted,omitempty"`
	Fruitless int    `dynamo:"fruitless_n,omitempty"` // runs in a row in which nothing could be done
	Rest      int64  `dynamo:"rest_ms,omitempty"`     // until then no other is started by the system
}

func slotKey(component string, number int) table.Key {
	return table.Key{PK: runsPK, SK: fmt.Sprintf("SLOT#%s#%02d", component, number)}
}

func newSlot(component string, number int) *slotRow {
	k := slotKey(component, number)
	return &slotRow{Head: table.Head{PK: k.PK, SK: k.SK}, Component: component, Number: number}
}

// free gives the slot back. After a run in which nothing could be done, the next one that the system
// starts by itself waits, twice as long each time.
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

// runRow is a run.
type runRow struct {
	table.Head
	Component  string   `dynamo:"component_name"`
	Slot       int      `dynamo:"slot_no"`
	State      RunState `dynamo:"run_state"`
	Why        string   `dynamo:"ended_by,omitempty"`
	Definition int      `dynamo:"definition_no"`
	Actor      string   `dynamo:"actor,omitempty"`
	Reason     string   `dynamo:"reason,omitempty"`
	Started    int64    `dynamo:"started_ms"`
	Ended      int64    `dynamo:"ended_ms,omitempty"`
	Until      int64    `dynamo:"until_ms"` // the run's time-out
	MaxItems   int      `dynamo:"most_items"`
	Exec       int64    `dynamo:"exec_no"`
	Rounds     int      `dynamo:"rounds_n"` // of this execution
	Lanes      int      `dynamo:"lanes_n"`  // rows of lanes
	Seen       int64    `dynamo:"seen_n"`   // items that were taken before the last round
	Empty      int      `dynamo:"empty_n"`  // rounds in a row in which nothing was done
}

func runKey(run string) table.Key { return table.Key{PK: "RUN#" + run, SK: "RUN"} }

func runShelf(component string) string { return "RUNS#" + component }

// laneRow counts what was done in a lane.
type laneRow struct {
	table.Head
	Closed bool     `dynamo:"is_closed,omitempty"` // the run has ended: nothing more is stored
	Done   int64    `dynamo:"done_n"`
	Failed int64    `dynamo:"failed_n"`
	NotYet int64    `dynamo:"notyet_n"`
	Again  int64    `dynamo:"again_n"`
	Passed int64    `dynamo:"passed_n"` // items that were not ready any more
	Broken []string `dynamo:"broken_items,omitempty"`
}

func laneKey(run string, lane int) table.Key {
	return table.Key{PK: runKey(run).PK, SK: fmt.Sprintf("LANE#%02d", lane)}
}

func (r *Runner) now() int64 { return millis(r.Store.Now()) }

func (r *Runner) metric(name string, n float64) {
	if r.Metric != nil && n != 0 {
		r.Metric(name, n)
	}
}

// after is a moment from now on, as DynamoDB's expiry has it.
func after(now int64, d time.Duration) int64 { return time.UnixMilli(now).Add(d).Unix() }

// Start starts a run of a component for a person. If all of its instances are running already, the
// next one is started after them, and one that is running is returned. A Conflict says why there is
// nothing to run.
func (r *Runner) Start(ctx context.Context, component string, by By) (run string, err error) {
	c, err := r.component(ctx, component)
	if err != nil {
		return "", err
	}
	if c.Paused {
		return "", fault.New(fault.Conflict, "component %s is paused; resume it first", component)
	}
	run, err = r.start(ctx, c, by)
	if err == nil && run == "" {
		err = fault.New(fault.Conflict, "component %s has nothing to do: no item is ready. explain says for an item "+
			"which condition does not hold", component)
	}
	return run, err
}

// Wake starts a run of a component if that has something to do. It is what Store.Wake is for.
func (r *Runner) Wake(ctx context.Context, component string) error {
	c, err := r.component(ctx, component)
	if fault.Is(err, fault.NotFound) || err == nil && c.Paused {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = r.start(ctx, c, bySystem)
	return err
}

// bySystem is who starts a run because an item is ready.
var bySystem = By{Actor: "system", Reason: "there is something to do"}

func (r *Runner) component(ctx context.Context, name string) (*compiled, error) {
	defs, err := r.Store.load(ctx)
	if err != nil {
		return nil, err
	}
	return defs.of(name)
}

// startTries bounds how often a start is decided again because another change was first.
const startTries = 10

// start starts a run, or notes that one is wanted. It returns "" if there is nothing to do.
func (r *Runner) start(ctx context.Context, c *compiled, by By) (run string, err error) {
	for range startTries {
		run, err = r.tryStart(ctx, c, by)
		if !fault.Is(err, fault.Stale) {
			return run, err
		}
	}
	return "", fault.New(fault.Unavailable, "component %s is being started by others; try again in a moment", c.Name)
}

func (r *Runner) tryStart(ctx context.Context, c *compiled, by By) (string, error) {
	slots, err := r.slots(ctx, c.Name)
	if err != nil {
		return "", err
	}
	free, going := choose(c, slots)
	work, err := r.hasWork(ctx, c, len(going))
	switch {
	case err != nil:
		return "", err
	case work && free != nil && by == bySystem && r.now() < free.Rest:
		return "", nil
	case work && free != nil:
		return r.hold(ctx, c, free, by)
	case len(going) > 0:
		return going[0].Run, r.want(ctx, going[0], true)
	}
	return "", r.want(ctx, free, false)
}

// slots reads the slots of a component that have been used.
func (r *Runner) slots(ctx context.Context, component string) (slots []*slotRow, err error) {
	var rows []slotRow
	_, err = r.Store.Table.Page(ctx, table.Query{PK: runsPK, Prefix: "SLOT#" + component + "#"}, &rows)
	for i := range rows {
		slots = append(slots, &rows[i])
	}
	return slots, err
}

// choose finds a free slot among those that a component may use, and those of runs that are going.
func choose(c *compiled, slots []*slotRow) (free *slotRow, going []*slotRow) {
	known := map[int]*slotRow{}
	for _, s := range slots {
		known[s.Number] = s
		if s.Run != "" {
			going = append(going, s)
		}
	}
	for n := range c.Instances {
		s := known[n]
		if s == nil {
			s = newSlot(c.Name, n)
		}
		if s.Run == "" && (free == nil || s.Wanted) {
			free = s
		}
	}
	return free, going
}

// hasWork reports whether a component has more to do than those of its runs that are going can do
// at once.
func (r *Runner) hasWork(ctx context.Context, c *compiled, going int) (bool, error) {
	most := going*c.Concurrency + 1
	n := 0
	for _, q := range r.heads(c.Name, most) {
		var rows []placeRow
		if _, err := r.Store.Table.Page(ctx, q, &rows); err != nil {
			return false, err
		}
		n += len(rows)
		if n >= most {
			return true, nil
		}
	}
	return false, nil
}

// heads are the queries for what a component can do now: items that are ready, items whose run was
// lost, and items that had to wait.
func (r *Runner) heads(component string, most int) []table.Query {
	pk, now := linePK(component), r.now()
	upTo := func(class string) table.Query {
		return table.Query{PK: pk, From: class + "#", To: fmt.Sprintf("%s#%013d$", class, now), Limit: most}
	}
	return []table.Query{{PK: pk, Prefix: Ready + "#", Limit: most}, upTo(Running), upTo(Later)}
}

// want notes on a slot that a run is wanted, or that it is not.
func (r *Runner) want(ctx context.Context, s *slotRow, wanted bool) error {
	if s == nil || s.Wanted == wanted {
		return nil
	}
	s.Wanted = wanted
	tx := r.Store.Table.Begin(r.Store.NewID())
	put(tx, s, s.Rev)
	return tx.Commit(ctx)
}

// hold gives a slot to a new run, and starts its execution. If that fails, the tick finds the run.
func (r *Runner) hold(ctx context.Context, c *compiled, s *slotRow, by By) (string, error) {
	now := r.now()
	ref := RunRef{Component: c.Name, Slot: s.Number, Run: r.Store.NewID(), Exec: 1}
	s.Run, s.Exec, s.Due, s.Wanted = ref.Run, ref.Exec, now+startTime.Milliseconds(), false
	s.Fence++
	k := runKey(ref.Run)
	run := &runRow{Head: table.Head{PK: k.PK, SK: k.SK, ListPK: runShelf(c.Name), ListSK: ref.Run,
		ExpiresAt: after(now, keepRuns)},
		Component: c.Name, Slot: s.Number, State: RunGoing, Definition: c.Version, Actor: by.Actor, Reason: by.Reason,
		Started: now, Until: now + int64(c.Timeout.Run)*1000, MaxItems: c.MaxItems, Exec: ref.Exec}
	tx := r.Store.Table.Begin(r.Store.NewID())
	tx.Insert(run)
	put(tx, s, s.Rev)
	if err := tx.Commit(ctx); err != nil {
		return "", err
	}
	return ref.Run, r.execute(ctx, ref)
}

// execute starts an execution of a run, unless that was done before.
func (r *Runner) execute(ctx context.Context, ref RunRef) error {
	err := r.Executions.Start(ctx, ref.execution(), RunInput{Run: ref})
	if err == nil || fault.Is(err, fault.Conflict) {
		return nil
	}
	return fault.New(fault.Unavailable, "run %s of component %s: its execution could not be started; the run is given "+
		"up and another one started within %s: %w", ref.Run, ref.Component, startTime+time.Minute, err)
}
