package componentsim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"archivist/pkg/components/component"
	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/test/adversary"
)

// scenario is what happens in the run of a seed. It is drawn once, from the seed alone.
type scenario struct {
	rounds  int // of each actor, with faults
	objects int
	free    int // custom items

	rate    int           // percentage of calls with a fault
	skew    time.Duration // at most, of each actor's clock
	latency time.Duration // of a call, at most; mostly calls take no time
	cutOff  bool          // a function is ended at its time-out, as in Lambda
	stormy  int           // rounds of settling in which faults continue
	turns   bool          // two components change an item in turn
	fails   int           // percentage of work that fails
	paused  bool          // the last component stays paused to the end
	lag     bool          // the list of items is behind
	deaf    bool          // once the faults have stopped, only ticks start components

	throttling adversary.Throttling
}

// partitions can be throttled.
var partitions = []string{"LINE#", "COMPONENTS", "COMPONENTITEM#", "OBJECT#", "ITEMS#", "LEASE#"}

func draw(rng *rand.Rand) scenario {
	one := func(n int) bool { return rng.IntN(n) == 0 }
	s := scenario{rounds: 6, objects: 1 + rng.IntN(2), free: 1 + rng.IntN(3), rate: 8}
	if one(6) {
		s.rounds = 12
	}
	if one(5) {
		s.rate = 20
	}
	if one(3) {
		s.skew = 2 * time.Second
	}
	if one(4) {
		s.latency = time.Second
	}
	s.cutOff = one(3)
	if one(5) {
		s.stormy = 4
	}
	s.turns, s.paused, s.deaf = one(3), one(4), one(2)
	s.lag = one(2)
	s.fails = []int{0, 20, 50}[rng.IntN(3)]
	if one(10) {
		s.throttling = adversary.Throttling{Of: partitions[rng.IntN(len(partitions))], From: 60 + rng.IntN(300),
			For: 80}
	}
	return s
}

// Names of the components.
const (
	intake  = "intake"  // takes objects into the line
	shape   = "shape"   // first of the line; it is a container
	facts   = "facts"   // is tried again after failures
	figures = "figures" // has a schedule, and works again after changes
	index   = "index"   // changes what it works on
	patient = "patient" // often says: not yet
	ping    = "ping"    // changes the item of pong
	pong    = "pong"    // and the other way round
)

// turn is the item that ping and pong change in turn, and depth where that stops.
const (
	turn  = "item:turn"
	depth = 5
)

// robot is the function of all other components, and arn the container.
const (
	robot   = "robot"
	arn     = "arn:aws:ecs:us-east-1:000000000000:task-definition/robot:1"
	cluster = "arn:aws:ecs:us-east-1:000000000000:cluster/robots"
)

// definitions are the components of a seed.
func (s scenario) definitions() []component.Definition {
	all := []component.Definition{
		{Name: intake, Event: "Received", PastSuccess: []string{"object.create"}, Future: []string{"Received"},
			Types: []string{"Object"}, Wake: true},
		{Name: shape, Event: "Shape_checked", PastSuccess: []string{"Received"}, Future: []string{"Shape_checked"},
			Wake: true, Schedule: "rate(10 minutes)"},
		{Name: facts, Event: "Facts_checked", PastSuccess: []string{"Shape_checked"}, Future: []string{"Facts_checked"},
			Wake: true, Retry: &component.Retry{Max: 2, Backoff: 60}},
		{Name: figures, Event: "Counted", PastSuccess: []string{"Facts_checked"}, Old: []string{"Counted"},
			Schedule: "rate(5 minutes)"},
		{Name: index, Event: "Indexed", Old: []string{"Indexed"}, Wake: true, Instances: 2, Types: []string{"Object"},
			EveryDays: 1},
		{Name: patient, Event: "Waited", PastSuccess: []string{"Received"}, Future: []string{"Waited"}, Wake: true,
			Items: &component.Items{Filter: "ComponentItem+*"}},
	}
	if s.turns {
		only := &component.Items{IDs: []string{turn}}
		all = append(all,
			component.Definition{Name: ping, Event: "Pinged", Old: []string{"Pinged"}, Items: only, Wake: true,
				MaxDepth: depth},
			component.Definition{Name: pong, Event: "Ponged", PastSuccess: []string{"Pinged"}, Old: []string{"Ponged"},
				Items: only, Wake: true, MaxDepth: depth})
	}
	for i := range all {
		d := &all[i]
		d.Runnable.Function = robot
		if d.Name == shape {
			d.Runnable = component.Runnable{Task: &component.Task{Cluster: cluster, Definition: arn, Container: "robot",
				Subnets: []string{"subnet-1"}}}
		}
		d.MaxItems, d.Concurrency = 5, 2
		d.Timeout = &component.Timeout{Item: int(itemTime / time.Second), Run: int(runTime / time.Second)}
	}
	return all
}

// changes are the components whose work changes the item.
var changes = []string{index, ping, pong}

// items are the ids of the items of a seed.
func (s scenario) items() (all []string) {
	for i := range s.objects {
		all = append(all, fmt.Sprintf("object:o%d", i))
	}
	return append(all, s.freeItems()...)
}

func (s scenario) freeItems() (all []string) {
	for i := range s.free {
		all = append(all, fmt.Sprintf("item:d%d", i))
	}
	if s.turns {
		all = append(all, turn)
	}
	return all
}

// thing is the row of an object.
type thing struct {
	table.Head
	Version int64 `dynamo:"version"`
}

// produce makes one change of an object, or of two at once.
func (a *actor) produce(ctx context.Context) {
	tx := a.table.Begin(a.newID())
	first := a.Rng.IntN(a.w.s.objects)
	ids := []int{first}
	if other := a.Rng.IntN(a.w.s.objects); other != first && a.Rng.IntN(2) == 0 {
		ids = append(ids, other)
	}
	for _, i := range ids {
		s := event.Subject{Type: event.Object, ID: fmt.Sprint("o", i)}
		if err := a.touch(ctx, tx, s); err != nil {
			a.w.Log("  (%s: touch %s: %v)", a.Name, s.ID, err)
			return
		}
	}
	err := tx.Commit(ctx)
	a.w.Log("  (%s changed %v: %v)", a.Name, ids, err)
}

// touch puts a change of an object into tx: its row, and one or two events at the same time.
func (a *actor) touch(ctx context.Context, tx *table.Tx, s event.Subject) error {
	k := s.Key()
	row := &thing{Head: table.Head{PK: k.PK, SK: k.SK}}
	err := a.table.Get(ctx, k, row)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}
	types := []string{"object.modify"}
	if row.Rev == 0 {
		types = slices.Insert(types, 0, "object.create")
	}
	for _, t := range types {
		row.Version++
		e := event.New{Type: t, Time: a.Now().UnixMilli(), Component: "archive", Actor: a.Name,
			Parents: []envelope.Ref{{Type: "Collection", ID: "c"}}, After: map[string]string{"state": t}}
		if err := event.Append(tx, s, row.Version, e); err != nil {
			return err
		}
	}
	tx.InsertOrSave(row)
	return nil
}
