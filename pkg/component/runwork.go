package component

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"archivist/pkg/envelope"
	"archivist/pkg/event"
	"archivist/pkg/fault"
	"archivist/pkg/table"
)

// Taken is an item on which a run has the claim: the work, and what is recorded of it.
type Taken struct {
	Work  Work   `json:"work"`
	Event string `json:"event"` // the name of the event
	Since int64  `json:"since"`
	Until int64  `json:"until"` // the end of the claim

	Cause envelope.Cause `json:"cause"` // of the event
}

const (
	// maxTakes bounds how often an item is taken again, because its worker ended without a result.
	maxTakes = 3
	// The wait after the first answer "not yet"; it doubles with each.
	firstWait = time.Minute
	mostWait  = time.Hour
	// maxResultReason and maxReport bound what is stored of a result, in bytes. An event's detail has at most
	// event.MaxDetail.
	maxResultReason = 1000
	maxReport       = 48 << 10
	// unwind is how long a function may take to return after its time.
	unwind = 5 * time.Second
)

// errLate: the claim of a worker has ended, or its run: it stores nothing.
var errLate = errors.New("the claim on the item has ended")

// errPassed: another run works on the item.
var errPassed = errors.New("another run works on the item")

// WorkLane works on the items of a lane, one after the other, as long as there is time for one more.
// What is left is found again. An error means that the lane cannot go on.
func (r *Runner) WorkLane(ctx context.Context, ref RunRef, lane Lane) error {
	began := r.now()
	for i, item := range lane.Items {
		c, err := r.component(ctx, ref.Component)
		if fault.Is(err, fault.NotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		longest := (c.itemTime() + unwind + StoreTime).Milliseconds()
		if i > 0 && r.now()+longest > began+FunctionTime.Milliseconds() {
			return nil
		}
		err = r.Work(ctx, ref, lane.Number, item)
		if errors.Is(err, errOver) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// itemTime is the time-out of an item.
func (d *Definition) itemTime() time.Duration { return time.Duration(d.Timeout.Item) * time.Second }

// Work works on an item: it takes the claim, runs the runnable, and stores the result. An item that
// cannot be worked on, whatever the reason, is no error: it is noted, and the run goes on.
func (r *Runner) Work(ctx context.Context, ref RunRef, lane int, item string) error {
	t, err := r.Take(ctx, ref, lane, item)
	if err != nil || t == nil {
		return err
	}
	result, err := r.perform(ctx, t)
	return r.Record(ctx, ref, lane, *t, result, err)
}

// Take takes the claim on an item for a run, if the item is still ready. nil: it is not worked on.
func (r *Runner) Take(ctx context.Context, ref RunRef, lane int, item string) (*Taken, error) {
	l, err := r.lane(ctx, ref, lane)
	if err != nil {
		return nil, err
	}
	if l.Closed {
		return nil, errOver
	}
	var t *Taken
	_, err = r.Store.change(ctx, item, func(c *change) (err error) {
		t, err = r.take(c, ref, lane)
		return err
	})
	switch {
	case errors.Is(err, errPassed) || err == nil && t == nil:
		return nil, r.pass(ctx, ref, lane, "")
	case err == nil && t.Work.Claim == "": // its failure is recorded
		return nil, nil
	case fault.Is(err, fault.Unavailable) || errors.Is(err, errOver):
		return nil, err
	case err != nil:
		return nil, r.broken(ctx, ref, lane, item, err)
	}
	return t, nil
}

// lane reads a lane; errOver if the run does not have it.
func (r *Runner) lane(ctx context.Context, ref RunRef, number int) (*laneRow, error) {
	l := &laneRow{}
	err := r.Store.Table.Get(ctx, laneKey(ref.Run, number), l)
	if fault.Is(err, fault.NotFound) {
		return nil, errOver
	}
	return l, err
}

// pass counts an item that is not worked on, and notes one that is broken.
func (r *Runner) pass(ctx context.Context, ref RunRef, lane int, broken string) error {
	for range startTries {
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
		if err := tx.Commit(ctx); !fault.Is(err, fault.Stale) {
			return err
		}
	}
	return fault.New(fault.Unavailable, "lane %d of run %s keeps changing", lane, ref.Run)
}

// take puts the claim into the change of an item. If the item is not ready, its place is corrected by
// the same change, and nil is returned.
func (r *Runner) take(c *change, ref RunRef, lane int) (*Taken, error) {
	d, err := c.defs.of(ref.Component)
	if err != nil || d.Paused {
		return nil, errOver
	}
	it := c.item()
	before, held := it.Claims[d.Name]
	if before.Live(c.now) {
		return nil, errPassed
	}
	delete(it.Claims, d.Name)
	v := d.judge(it)
	if !v.Ready || v.NotBefore > c.now {
		return nil, nil
	}
	claim := Claim{Run: ref.Run, ID: c.s.NewID(), Since: c.now, Until: c.now + d.claimTime().Milliseconds(),
		Based: Based{Subject: it.Applied, Item: it.Version}, Cause: v.Cause, Takes: 1}
	if held {
		claim.Takes = before.Takes + 1
	}
	t := taken(d, it, ref, claim)
	if claim.Takes > maxTakes {
		why := fmt.Sprintf("the worker ended %d times without a result: out of memory or time, or a defect", maxTakes)
		return &Taken{}, r.record(c, ref, lane, t, Result{Outcome: event.Failure, Reason: why})
	}
	if it.Claims == nil {
		it.Claims = map[string]Claim{}
	}
	it.Claims[d.Name] = claim
	// What the subject's events say is known up to this moment.
	if s, ok := subjectOf(it.ID); ok {
		c.tx.Require(event.Key(s, it.Applied+1), "attribute_not_exists(pk)")
	}
	return &t, nil
}

// claimTime is how long a claim lasts: it outlives the work.
func (d *Definition) claimTime() time.Duration {
	if d.Runnable.Task != nil {
		return d.itemTime() + FunctionTime // for the calls of the function before and after the task
	}
	return d.itemTime() + unwind + StoreTime
}

func taken(d *compiled, it *Item, ref RunRef, claim Claim) Taken {
	kind, subject, _ := strings.Cut(it.ID, ":")
	cause := claim.Cause
	cause.Components = append(slices.Clone(cause.Components), d.Name)
	return Taken{Event: d.Event, Since: claim.Since, Until: claim.Until, Cause: claim.Cause, Work: Work{
		Component: d.Name, Version: d.Version, Run: ref.Run, Claim: claim.ID, Item: it.ID, Kind: kind,
		Subject: subject, Types: it.Types, Parents: it.Parents, BasedOn: claim.Based, Cause: cause,
		Header: cause.Encode(), Deadline: claim.Since + d.itemTime().Milliseconds(), MaxResult: d.MaxResults}}
}

// answer is what a runnable returned.
type answer struct {
	Result
	err error
}

// perform runs the runnable. A runnable that fails, panics or takes too long is a failure of the
// item; one that cannot be called now is not.
func (r *Runner) perform(ctx context.Context, t *Taken) (Result, error) {
	d, err := r.component(ctx, t.Work.Component)
	if err != nil {
		return Result{}, fault.New(fault.Unavailable, "the component cannot be read: %w", err)
	}
	o := event.OriginOf(ctx)
	o.Cause = t.Work.Cause
	limit := time.Duration(t.Work.Deadline-r.now()) * time.Millisecond
	ctx, cancel := context.WithTimeout(event.From(ctx, o), limit)
	defer cancel()
	answers := make(chan answer, 1)
	go func() {
		var a answer
		defer func() {
			if p := recover(); p != nil {
				r.Log.Error("a component's function panicked", "component", d.Name, "item", t.Work.Item, "panic", p,
					"stack", string(debug.Stack()))
				a = answer{err: fmt.Errorf("the function panicked: %v", p)}
			}
			answers <- a
		}()
		a.Result, a.err = r.call(ctx, d, t.Work)
	}()
	a, returned := wait(ctx, answers)
	switch {
	case !returned:
		return Result{}, fmt.Errorf("timed out after %d s; the function did not return", d.Timeout.Item)
	case a.err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return Result{}, fmt.Errorf("timed out after %d s", d.Timeout.Item)
	}
	return a.Result, a.err
}

// wait waits for an answer until ctx ends, and a little longer.
func wait(ctx context.Context, answers <-chan answer) (a answer, returned bool) {
	select {
	case a = <-answers:
		return a, true
	case <-ctx.Done():
	}
	late := time.NewTimer(unwind)
	defer late.Stop()
	select {
	case a = <-answers:
		return a, true
	case <-late.C:
		return a, false
	}
}

func (r *Runner) call(ctx context.Context, d *compiled, w Work) (Result, error) {
	if d.Runnable.Lambda != "" {
		result, err := r.Call(ctx, d.Runnable.Lambda, w)
		if fault.Is(err, fault.Denied) {
			err = fault.New(fault.Unavailable, "%w", err)
		}
		return result, err
	}
	f, known := r.Functions[d.Runnable.Function]
	if !known {
		return Result{}, fault.New(fault.Unavailable, "there is no function %q in this version of the system",
			d.Runnable.Function)
	}
	return f.Run(ctx, w)
}

// Record stores the result of an item under its claim, once. After the end of the claim, or of the
// run, nothing is stored. An item that cannot take a result, because its row is full, is broken.
func (r *Runner) Record(ctx context.Context, ref RunRef, lane int, t Taken, result Result, failed error) error {
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
		r.Log.Warn("a result came too late and is not stored", "component", ref.Component, "item", t.Work.Item,
			"run", ref.Run, "outcome", result.Outcome, "reason", result.Reason)
		r.metric(MetricLate, 1)
		return nil
	case fault.Is(err, fault.Invalid):
		return r.broken(ctx, ref, lane, t.Work.Item, err)
	}
	return err
}

// broken notes an item that cannot be read or saved, and lets it wait, so that it does not come before
// others in the next run.
func (r *Runner) broken(ctx context.Context, ref RunRef, lane int, item string, err error) error {
	r.Log.Error("an item cannot be worked on", "component", ref.Component, "item", item, "error", err)
	r.metric(MetricBroken, 1)
	if fault.Is(err, fault.Invalid) {
		parked := r.park(ctx, ref.Component, item)
		if parked != nil {
			r.Log.Warn("its place could not be changed", "component", ref.Component, "item", item, "error", parked)
		}
	}
	return r.pass(ctx, ref, lane, item)
}

// park moves an item that is due in a component's line to a later time, whatever is wrong with it. When it
// can be saved again, its next change puts it where it should be.
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
	due := classOf(from) == Ready || from != "" && from < fmt.Sprintf("%s#%013d$", classOf(from), now)
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

// settle makes the result of an item from what its runnable answered.
func settle(result Result, failed error) Result {
	switch {
	case fault.Is(failed, fault.Unavailable):
		result = Result{NotYet: true, Reason: failed.Error()}
	case failed != nil:
		result.Outcome, result.Reason, result.NotYet, result.Again = event.Failure, failed.Error(), false, false
	case result.NotYet || result.Again:
		result.Again = !result.NotYet
	case result.Outcome == "":
		result.Outcome = event.Success
	case result.Outcome != event.Success && result.Outcome != event.Failure:
		result.Outcome, result.Reason = event.Failure,
			fmt.Sprintf("the component answered with the outcome %q; expected success or failure", result.Outcome)
	}
	result.Reason = cut(result.Reason, maxResultReason)
	return result
}

// cut shortens a text to at most so many bytes.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len("…")], "") + "…"
}

// maxText bounds the text of a Work for a container: the overrides of a task may have 8,192
// characters ("RunTask", Amazon ECS API reference), with its token.
const maxText = 6000

// Text is the work as JSON, for a container. If it is too long, it is without types and parents.
func (w Work) Text() (string, error) {
	data, err := json.Marshal(w)
	if err == nil && len(data) > maxText {
		w.Types, w.Parents = nil, nil
		data, err = json.Marshal(w)
	}
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
	row := newRunItem(ref, t, c.now, result)
	switch {
	case result.NotYet:
		l.NotYet++
		wait := it.Waits[name]
		wait = Wait{Times: wait.Times + 1, Reason: result.Reason, Until: c.now + waitAfter(wait.Times).Milliseconds()}
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
		err = c.append("component.ran", result.Outcome, name, By{Actor: "component:" + name}, ranBy(t, c.now, result))
		row.Event = fmt.Sprintf("%s.%d", c.tx.ID(), c.events-1)
	}
	c.tx.Save(l)
	c.tx.Insert(row)
	return err
}

func waitAfter(times int) time.Duration {
	return min(mostWait, firstWait<<min(times, 10))
}

// ranBy is the detail of the event.
func ranBy(t Taken, now int64, result Result) Ran {
	d := Ran{Component: t.Work.Component, Definition: t.Work.Version, Event: t.Event, Run: t.Work.Run,
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

// Cut keeps at most so many entries of a report, and at most 48 KB of them. The last one then says how
// many there were.
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

// runItem is what a run did with an item.
type runItem struct {
	table.Head
	Item    string `dynamo:"item_id"`
	State   string `dynamo:"item_state"` // the outcome, or "notYet" or "again"
	Reason  string `dynamo:"reason,omitempty"`
	Event   string `dynamo:"event_id,omitempty"`
	Started int64  `dynamo:"started_ms"`
	Ended   int64  `dynamo:"ended_ms"`
}

func newRunItem(ref RunRef, t Taken, now int64, result Result) *runItem {
	row := &runItem{Head: table.Head{PK: runKey(ref.Run).PK, SK: fmt.Sprintf("ITEM#%013d#%s", t.Since, t.Work.Claim),
		ExpiresAt: after(now, keepItems)},
		Item: t.Work.Item, State: result.Outcome, Reason: result.Reason, Started: t.Since, Ended: now}
	switch {
	case result.NotYet:
		row.State = "notYet"
	case result.Again:
		row.State = "again"
	}
	return row
}
