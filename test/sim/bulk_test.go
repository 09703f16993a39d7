package sim

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table/tabletest"
)

// bulkAsk is a bulk operation that an admin asks for. One with an id of its request may be
// asked for again.
type bulkAsk struct {
	ingest.Bulk
	request string
	actor   string // a repeated request is of the same actor
	dryRun  bool
}

// bulkWeights are the weights of bulk operations.
var bulkWeights = []choice{{name: ingest.ActRequeue, weight: 8}, {name: ingest.ActRelease, weight: 6},
	{name: ingest.ActHold, weight: 2}, {name: ingest.ActFail, weight: 1}, {name: ingest.ActDelete, weight: 1},
	{name: ingest.ActPrioritize, weight: 2}, {name: ingest.ActCleanUp, weight: 2}}

// operate starts a bulk operation, or stops or continues one.
func (a *actor) operate(ctx context.Context) {
	ops := a.w.check.sortedOperations()
	switch n := a.Rng.IntN(6); {
	case n == 0 && len(ops) > 0:
		a.steer(ctx, ops[a.Rng.IntN(len(ops))])
	case n == 1 && len(a.w.bulks) > 0:
		a.startBulk(ctx, a.w.bulks[a.Rng.IntN(len(a.w.bulks))])
	default:
		a.startBulk(ctx, a.askBulk())
	}
}

// steer interrupts or continues an operation.
func (a *actor) steer(ctx context.Context, id string) {
	admin, role := queue.Admin{Queue: a.q}, ingest.Administrator
	if a.w.check.operations[id].State == ingest.OperationInterrupted || a.Rng.IntN(4) == 0 {
		_, err := admin.Continue(ctx, id, "go on", a.Name, role)
		a.w.Log("  (%s continues %s%s)", a.Name, id, errorText(err))
		return
	}
	_, err := admin.Interrupt(ctx, id, "wait", a.Name, role)
	a.w.Log("  (%s interrupts %s%s)", a.Name, id, errorText(err))
}

// askBulk draws a bulk operation.
func (a *actor) askBulk() bulkAsk {
	one := func(n int) bool { return a.Rng.IntN(n) == 0 }
	name := draw1(a.Rng, bulkWeights).name
	replaces := name == ingest.ActRequeue || name == ingest.ActRelease // what is newer: never confirmed in bulk
	b := bulkAsk{Bulk: ingest.Bulk{Name: name, Confirm: !replaces && !one(3)}, actor: a.Name, dryRun: one(8)}
	states := ingest.BulkActions[name]
	state := states[a.Rng.IntN(len(states))]
	switch batches := a.w.check.sortedBatches(); {
	case one(2) && len(batches) > 0:
		b.Filter.Batch = batches[a.Rng.IntN(len(batches))]
	case one(2):
		b.Filter.Collection = fmt.Sprint("c", a.Rng.IntN(collections))
	default:
		b.Filter.State = state
	}
	if one(4) {
		b.Filter.State = state
	}
	if one(6) {
		b.Filter.Message = "simulation"
	}
	if name == ingest.ActPrioritize {
		priority := a.Rng.IntN(100)
		b.Priority = &priority
	}
	if name == ingest.ActHold && one(2) {
		b.Until = time.Now().Add(time.Duration(1+a.Rng.IntN(30)) * time.Minute).UnixMilli()
	}
	if one(2) {
		a.w.requests++
		b.request = fmt.Sprint("request", a.w.requests)
		a.w.bulks = append(a.w.bulks, b)
	}
	return b
}

// startBulk starts a bulk operation. The same request must not start a second one.
func (a *actor) startBulk(ctx context.Context, b bulkAsk) *queue.Operation {
	met := a.Met
	o, err := queue.Admin{Queue: a.q}.Start(ctx, b.Bulk, "the simulation", b.actor, ingest.Administrator, b.request,
		b.dryRun)
	if err != nil {
		a.w.Log("  (%s bulk %s of %+v: refused: %v)", a.Name, b.Name, b.Filter, err)
		if fault.Of(err) == "" && a.Met == met && !a.Dead() && !a.w.Throttles() && a.w.s.refuses != refusesRows {
			a.w.check.fail("bulk %s was refused without a kind: %v", b.Name, err)
		}
		return nil
	}
	a.w.Log("  (%s bulk %s of %+v is operation %s, dry run %v)", a.Name, b.Name, b.Filter, o.Operation.ID, b.dryRun)
	a.w.Met("bulk: " + string(b.Name))
	if b.request != "" {
		first := a.w.check.started[b.request]
		if first != "" && first != o.Operation.ID {
			a.w.check.fail("%s started the operations %s and %s", b.request, first, o.Operation.ID)
		}
		a.w.check.started[b.request] = o.Operation.ID
	}
	return o
}

// runPages is one invocation of the function of the machine admin-action for an operation:
// it runs pages, and its execution continues until the operation runs under another or not
// at all. It returns whether the message is kept for later.
func (a *actor) runPages(ctx context.Context, m queue.Message) (keep bool) {
	a.Begin(timing.Short)
	o := a.w.check.operations[m.Operation]
	a.acted, a.does = a.w.check.changes, ingest.Action{Name: o.Name, Target: ingest.Target{Kind: ingest.TargetJob},
		Request: m.Operation, Actor: o.Actor, DryRun: o.DryRun}
	defer func() { a.does = ingest.Action{} }()
	for range 1 + a.Rng.IntN(3) {
		row, err := queue.Admin{Queue: a.q}.RunPage(ctx, m.Operation, m.Exec, time.Now().Add(timing.Short/2))
		if err != nil {
			a.w.Log("  (%s page of %s: %v)", a.Name, m.Operation, err)
			return true
		}
		if !row.RunsAs(m.Exec) {
			return false
		}
	}
	a.w.deliver(m)
	return false
}

// finishOperations continues the interrupted operations, and runs all until they are done.
func (w *world) finishOperations(ctx context.Context, a *actor) {
	for _, id := range w.check.sortedOperations() {
		if w.check.operations[id].State == ingest.OperationInterrupted {
			_, err := queue.Admin{Queue: a.q}.Continue(ctx, id, "go on", a.Name, ingest.Administrator)
			if err != nil {
				w.check.fail("operation %s was not continued: %v", id, err)
			}
		}
	}
	w.until(ctx, a, func() bool { return w.check.unfinished() == nil })
}

// until runs the scheduler and the workers until something is so, or a long time has passed.
func (w *world) until(ctx context.Context, a *actor, so func() bool) {
	for end := time.Now().Add(quiet); !so() && time.Now().Before(end) && w.check.err == nil; {
		a.tick(ctx, true)
		w.drain(ctx, a)
		a.Until = time.Time{}
		_ = a.Sleep(5 * time.Minute)
	}
}

// items are the receipts of one operation or request, by their sort keys.
type items map[string]queue.Outcome

// receiptRow checks a changed receipt: what has an outcome never changes.
func (c *checker) receiptRow(ch tabletest.Change) {
	of, sk := strings.TrimPrefix(text(either(ch), "pk"), "ACT#"), text(either(ch), "sk")
	if ch.After == nil {
		c.fail("the receipt %s of %s was removed", sk, of)
		return
	}
	if text(ch.Before, "outcome") != "" {
		c.fail("the receipt %s of %s was written twice", sk, of)
	}
	if c.receipts[of] == nil {
		c.receipts[of] = items{}
	}
	c.receipts[of][sk] = queue.Outcome(text(ch.After, "outcome"))
}

// operationRow checks an operation against its receipts: all are planned, and those up to
// its cursor are counted.
func (c *checker) operationRow(o ingest.Operation) {
	prev := c.operations[o.ID]
	c.operations[o.ID] = o
	var is ingest.Tally
	for sk, outcome := range c.receipts[o.ID] {
		is.Planned++
		switch {
		case o.Planning || o.Cursor == "" || sk < o.Cursor: // it acts on the last items first
		case outcome == queue.ItemDone:
			is.Done++
		case outcome == queue.ItemRefused:
			is.Refused++
		default:
			c.fail("operation %s has passed the item %s, which is pending", o.ID, sk)
		}
	}
	if is != o.Tally {
		c.fail("operation %s counts %+v, its receipts are %+v", o.ID, o.Tally, is)
	}
	if o.State == ingest.OperationDone && (o.Tally.Left() != 0 || o.Tally.Done+o.Tally.Refused != o.Tally.Planned) {
		c.fail("operation %s is done with %+v", o.ID, o.Tally)
	}
	if prev.State == ingest.OperationDone {
		c.fail("operation %s was written after its end", o.ID)
	}
	if prev.State != o.State {
		c.w.Met("operation " + string(o.State))
	}
}

// unfinished names an operation that is not done. A row that cannot be read delays all that
// select it.
func (c *checker) unfinished() error {
	if c.w.s.refuses == refusesRows {
		return nil
	}
	for _, id := range c.sortedOperations() {
		if o := c.operations[id]; o.State != ingest.OperationDone {
			return fmt.Errorf("operation %s (%s) is still %s: %+v", id, o.Name, o.State, o.Tally)
		}
	}
	return nil
}

func (c *checker) sortedOperations() []string { return slices.Sorted(maps.Keys(c.operations)) }
