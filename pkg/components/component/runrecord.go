package component

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// Taken is an item on which a run has the claim: the work, and what is recorded of it. Of a task it
// passes through the state machine, so names of fields stay. Times are milliseconds since 1970.
type Taken struct {
	Work  Work   `json:"work"`
	Event string `json:"event"` // the name of the event
	Since int64  `json:"since"`

	// Until is the end of the claim.
	Until int64 `json:"until"`

	Cause envelope.Cause `json:"cause"` // of the event
}

// taken is the work on an item under a claim. The cause that a runnable passes on has the component
// as its last, so that a change that it makes is known to be its own.
func taken(d *compiled, it *Item, ref RunRef, claim Claim) Taken {
	kind, subject, _ := strings.Cut(it.ID, ":")
	cause := claim.Cause
	cause.Components = append(slices.Clone(cause.Components), d.Name)
	return Taken{Event: d.Event, Since: claim.Since, Until: claim.Until, Cause: claim.Cause,
		Work: Work{
			Component: d.Name, Version: d.Version, Run: ref.Run, Claim: claim.ID, Item: it.ID,
			Kind:    kind,
			Subject: subject, Types: it.Types, Parents: it.Parents, BasedOn: claim.BasedOn,
			Cause:  cause,
			Header: cause.Encode(), Deadline: claim.Since + d.itemTime().Milliseconds(),
			MaxResult: d.MaxResults}}
}

// errLate: the claim of a worker has ended, or its run: it stores nothing.
var errLate = errors.New("the claim on the item has ended")

// lane reads a lane; errOver if the run does not have it: then it was never handed out, or its rows
// have expired.
func (r *Runner) lane(ctx context.Context, ref RunRef, number int) (*laneRow, error) {
	l := &laneRow{}
	err := r.Store.Table.Get(ctx, laneKey(ref.Run, number), l)
	if fault.Is(err, fault.NotFound) {
		return nil, errOver
	}
	return l, err
}

// pass counts an item that is not worked on, and notes one that is broken, if broken is its id. A
// closed lane counts no more: errOver.
func (r *Runner) pass(ctx context.Context, ref RunRef, lane int, broken string) error {
	return r.Store.Table.Again(ctx, fmt.Sprintf("lane %d of run %s", lane, ref.Run), func() error {
		l, err := r.lane(ctx, ref, lane)
		if err != nil || l.Closed {
			return cmp.Or(err, errOver)
		}

		if broken == "" {
			l.Passed++
		} else {
			l.Broken = append(l.Broken, broken)
		}

		tx := r.Store.Table.Begin(r.Store.NewID())
		tx.Save(l)
		return tx.Commit(ctx)
	})
}

// Record stores the result of an item under its claim, once. After the end of the claim, or of the
// run, nothing is stored. An item that cannot take a result, because its row is full, is broken.
// What comes too late is no error of the caller: it is logged and counted. failed is the error of
// the runnable, nil for none.
func (r *Runner) Record(ctx context.Context, ref RunRef, lane int, t Taken, result Result,
	failed error) error {
	result = settle(result, failed)
	_, err := r.Store.change(ctx, t.Work.Item, func(c *change) error {
		claim, held := c.item().Claims[ref.Component]
		if !held || claim.ID != t.Work.Claim || !claim.Live(c.now) {
			return errLate
		}
		return r.record(c, ref, lane, t, result)
	})

	switch {
	case errors.Is(err, errLate) || errors.Is(err, errOver) || fault.Is(err, fault.NotFound):
		r.Log.Warn("a result came too late and is not stored", "component", ref.Component, "item",
			t.Work.Item,
			"run", ref.Run, "outcome", result.Outcome, "reason", result.Reason)
		r.metric(MetricLate, 1)
		return nil
	case fault.Is(err, fault.Invalid):
		return r.broken(ctx, ref, lane, t.Work.Item, err)
	}
	return err
}

// broken notes an item that cannot be read or saved, and lets it wait, so that it does not come
// before others in the next run. The run goes on: one item's damage must not stop the others.
func (r *Runner) broken(ctx context.Context, ref RunRef, lane int, item string, err error) error {
	r.Log.Error("an item cannot be worked on", "component", ref.Component, "item", item, "error", err)
	r.metric(MetricBroken, 1)
	if fault.Is(err, fault.Invalid) {
		parked := r.park(ctx, ref.Component, item)
		if parked != nil {
			r.Log.Warn("its place could not be changed", "component", ref.Component, "item", item,
				"error", parked)
		}
	}
	return r.pass(ctx, ref, lane, item)
}

// park moves an item that is due in a component's line to a later time, whatever is wrong with it.
// When it can be saved again, its next change puts it where it should be.
func (r *Runner) park(ctx context.Context, component, item string) error {
	c, err := r.component(ctx, component)
	if err != nil {
		return err
	}

	row, now := &itemRow{}, r.now()
	if err := r.Store.Table.Get(ctx, itemSubject(item).Key(), row); err != nil {
		return err
	}

	from := row.placeIn(c)
	due := classOf(from) == Ready || from != "" &&
		from < fmt.Sprintf("%s#%013d$", classOf(from), now)
	if !due || !stands(from) {
		return nil
	}

	to := fmt.Sprintf("%s#%013d#%s", Later, now+mostWait.Milliseconds(), item)
	tx := r.Store.Table.Begin(r.Store.NewID())
	c.move(tx, item, from, to)
	row.Places[component] = to
	tx.Save(row)
	return tx.Commit(ctx)
}

// settle makes the result of an item from what its runnable answered. An Unavailable is not the
// item's fault: it is tried later. An outcome that does not exist is a failure, since it cannot be
// recorded.
func settle(result Result, failed error) Result {
	switch {
	case fault.Is(failed, fault.Unavailable):
		result = Result{NotYet: true, Reason: failed.Error()}
	case failed != nil:
		result.Outcome, result.Reason, result.NotYet, result.Again = event.Failure, failed.Error(),
			false, false
	case result.NotYet || result.Again:
		result.Again = !result.NotYet
	case result.Outcome == "":
		result.Outcome = event.Success
	case result.Outcome != event.Success && result.Outcome != event.Failure:
		result.Outcome, result.Reason = event.Failure,
			fmt.Sprintf("the component answered with the outcome %q; expected success or failure",
				result.Outcome)
	}

	result.Reason = cut(result.Reason, maxResultReason)
	return result
}

// maxText bounds the text of a Work for a container: the overrides of a task may have 8,192
// characters ("RunTask", Amazon ECS API reference), with its token.
const maxText = 6000

// Text is the work as JSON, for a container. If it is too long, it is without types and parents,
// which the container can read from the API.
func (w Work) Text() (string, error) {
	data, err := json.Marshal(w)
	if err != nil {
		return "", err
	}

	if len(data) <= maxText {
		return string(data), nil
	}

	w.Types, w.Parents = nil, nil
	data, err = json.Marshal(w)
	return string(data), err
}

// record puts a result into the change of an item: its event, or that it is tried again, the end of
// the claim, and the counts of the lane, whose revision is the fence.
func (r *Runner) record(c *change, ref RunRef, lane int, t Taken, result Result) error {
	l, err := r.lane(c.ctx, ref, lane)
	if err != nil {
		return err
	}

	if l.Closed {
		return errOver
	}

	// The chain of causes goes on from what made the item ready.
	o := event.OriginOf(c.ctx)
	o.Cause = t.Cause
	c.ctx = event.From(c.ctx, o)
	it, name := c.item(), ref.Component
	result.Again = result.Again || t.outdated(it, result.AgainAfter)
	row := newRunItem(ref, t, c.now, result)
	switch {
	case result.NotYet:
		l.NotYet++
		wait := it.Waits[name]
		wait = Wait{Times: wait.Times + 1, Reason: result.Reason,
			Until: c.now + waitAfter(wait.Times).Milliseconds()}
		if it.Waits == nil {
			it.Waits = map[string]Wait{}
		}
		it.Waits[name] = wait
		delete(it.Claims, name)
	case result.Again:
		l.Again++
		delete(it.Waits, name)
		delete(it.Claims, name)
	default:
		if result.Outcome == event.Success {
			l.Done++
		} else {
			l.Failed++
		}
		err = c.append("component.ran", result.Outcome, name, By{Actor: "component:" + name},
			ranBy(t, c.now, result))
		if err != nil {
			return err
		}
		row.Event = fmt.Sprintf("%s.%d", c.tx.ID(), c.events-1)
	}

	c.tx.Save(l)
	c.tx.Insert(row)
	return nil
}

// outdated reports whether the item has got an event of a name, "" for none, since the claim.
func (t Taken) outdated(it *Item, name string) bool {
	m, there := it.Marks[name]
	return there && m.Version > t.Work.BasedOn.Item
}

// ranBy is the detail of the event. The duration is from the claim to the record.
func ranBy(t Taken, now int64, result Result) Ran {
	d := Ran{Component: t.Work.Component, Definition: t.Work.Version, Event: t.Event,
		Run:     t.Work.Run,
		BasedOn: t.Work.BasedOn, Started: t.Since, Duration: now - t.Since, Changed: result.Changed,
		Reason: result.Reason}
	if len(result.Report.Entries) > 0 {
		report := result.Report.Cut(t.Work.MaxResult)
		d.Report = &report
	}
	return d
}

// KindCut is the type of the entry that says that others were left out.
const KindCut = "cut"

// Cut keeps at most so many entries of a report, and at most 48 KB of them, so that the event's
// detail stays below event.MaxDetail. The last one then says how many there were.
func (r Report) Cut(most int) Report {
	total := max(r.Total, len(r.Entries))
	kept, bytes := 0, 0
	for _, e := range r.Entries {
		text, err := json.Marshal(e)
		bytes += len(text) + 1
		if err != nil || bytes > maxReport {
			break
		}
		kept++
	}

	if total <= most && kept == len(r.Entries) {
		return Report{Entries: r.Entries, Total: total}
	}

	kept = min(kept, most-1)
	note := Entry{Type: KindCut, Description: fmt.Sprintf("%d of %d entries are kept", kept, total)}
	return Report{Entries: append(slices.Clone(r.Entries[:kept]), note), Total: total}
}

// runItem is what a run did with an item. Its key has the time of the claim, so that the newest are
// found first, and the claim, since a run can work on an item more than once. Times are
// milliseconds since 1970.
type runItem struct {
	table.Head
	Item    string `dynamo:"item_id"`
	State   string `dynamo:"item_state"` // the outcome, or "notYet" or "again"
	Reason  string `dynamo:"reason,omitempty"`
	Event   string `dynamo:"event_id,omitempty"`
	Started int64  `dynamo:"started_ms"`
	Ended   int64  `dynamo:"ended_ms"`
}

// newRunItem is the row of what a run did with an item. It is removed some time after: the item's
// event stays.
func newRunItem(ref RunRef, t Taken, now int64, result Result) *runItem {
	row := &runItem{Head: table.Head{PK: runKey(ref.Run).PK,
		SK:        fmt.Sprintf("ITEM#%013d#%s", t.Since, t.Work.Claim),
		ExpiresAt: after(now, keepItems)},
		Item: t.Work.Item, State: result.Outcome, Reason: result.Reason, Started: t.Since,
		Ended: now}

	switch {
	case result.NotYet:
		row.State = "notYet"
	case result.Again:
		row.State = "again"
	}
	return row
}
