package consumer

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"archivist/pkg/events/envelope"
	"archivist/pkg/events/filter"
	"archivist/pkg/kernel/explain"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// States of an event, for a consumer.
const (
	EventUnplaced    = "unplaced"     // it has no place in the log yet
	EventNotSelected = "not-selected" // the consumer does not handle it
	EventSkipped     = "skipped"      // it was before the start, or a person skipped it
	EventWaiting     = "waiting"      // the cursor has not come to it
	EventDebounced   = "quiet"        // it waits until its order key is quiet
	EventParked      = "parked"
	EventHandled     = "handled"
)

// Explain says why a consumer did or did not get an event, and what is to be done if it waits. It
// judges by the present definition, so an event that was handled under an earlier one can be said
// to be not selected. It reads, and changes nothing. Files of a version are explained together, by
// its event. A NotFound means that there is no such consumer.
func (s *Store) Explain(ctx context.Context, name string, e envelope.Event) (explain.Explanation, error) {
	p, err := s.became(ctx, name, e)
	p.Kind, p.ID = explain.Happened, e.ID
	p.Add("consumer", name)
	p.Add("partition", e.Partition)
	return explain.Only(p), err
}

// became is what became of an event.
func (s *Store) became(ctx context.Context, name string, e envelope.Event) (x explain.Part, err error) {
	c, err := s.Get(ctx, name)
	if err != nil {
		return x, err
	}

	if e.Seq == 0 {
		x.State, x.Waits = EventUnplaced, explain.Turn
		x.Why = "the event has no place in the log yet; it gets one within a minute or two"
		return x, nil
	}

	f, err := filter.Compile(c.Filter)
	if err != nil {
		return x, err
	}

	cur, err := s.cursor(ctx, name, e.Partition)
	if err != nil {
		return x, err
	}

	x.Waits = explain.Nothing
	if skip := decide(c, f, e, cur.From); skip != "" {
		x.State, x.Why = EventNotSelected, skip
		if skip == skipFilter {
			x.Why += ": " + c.Filter
		}
		return x, nil
	}

	if e.Seq > cur.Seq {
		x = s.waiting(c, cur)
		x.State = EventWaiting
		x.Why = fmt.Sprintf("the consumer has come to event %d of the partition %s, and this is event %d: %s",
			cur.Seq, e.Partition, e.Seq, x.Why)
		if cur.Files != nil && e.Seq == cur.Files.Event.Seq {
			x.Waits, x.Why = explain.Worker, fmt.Sprintf("it has come to file %d of the version", cur.Files.Done)
		}
		return x, nil
	}

	err = s.passed(ctx, c, f, cur, e, &x)
	return x, err
}

// passed explains an event that the cursor has passed.
func (s *Store) passed(ctx context.Context, c Consumer, f *filter.Filter, cur cursor, e envelope.Event,
	x *explain.Part) (err error) {
	for _, one := range show(f, e) {
		x.State, x.Why, err = s.fate(ctx, c, cur, one.Event)
		if err != nil || x.State != EventHandled {
			break
		}
	}

	unsettled := x.State == "" || x.State == EventHandled // nothing of the event itself is parked, or waits
	if err == nil && unsettled && f.SelectsFiles(e) {
		x.State, x.Why, err = s.fateOfFiles(ctx, c, cur, e)
	}

	switch x.State {
	case EventParked:
		x.Waits, x.Do = explain.Person, parkedSteps(c.Name)
	case EventDebounced:
		x.Waits = explain.Time
	}
	return err
}

// parkedSteps is what a person can do with parked events.
func parkedSteps(consumer string) []explain.Step {
	return []explain.Step{
		{What: "See what is parked", Command: "archivist consumer parked " + consumer},
		{What: "When the cause is corrected, handle them again",
			Command: "archivist consumer redrive " + consumer + " --all --reason TEXT"}}
}

// ExplainConsumer says what a consumer waits for: of the partitions in which it is behind, that whose events wait
// longest. A NotFound means that there is no such consumer.
func (s *Store) ExplainConsumer(ctx context.Context, name string) (explain.Explanation, error) {
	st, err := s.Show(ctx, name)
	if err != nil {
		return explain.Explanation{}, err
	}

	p := explain.Part{Link: explain.Link{State: "up to date", Waits: explain.Nothing,
		Why: "It has handled all events."}}
	switch {
	case st.Broken != "":
		p.State, p.Waits = "broken", explain.Person
		p.Why = "Its filter cannot be read, so that it handles nothing: " + st.Broken + "."
		p.Do = []explain.Step{{What: "Apply a corrected definition",
			Command: "archivist consumer apply FILE"}}
	case st.Behind == 0 && !st.runs():
		p = s.waiting(st.Consumer, cursor{})
		p.State, p.Why = "up to date", "It has come to the end of the log; "+p.Why
	case st.Behind == 0 && st.Waiting > 0:
		p.Waits, p.Why = explain.Time, fmt.Sprintf("It has read all events; %d order keys wait until they are quiet.",
			st.Waiting)
	case st.Behind > 0:
		p, err = s.behind(ctx, st)
		if err != nil {
			return explain.Explanation{}, err
		}
	}

	if st.Parked > 0 {
		p.Why = fmt.Sprintf("%s. %d events are parked, since they could not be handled.",
			strings.TrimSuffix(p.Why, "."), st.Parked)
		p.Do = append(p.Do, parkedSteps(name)...)
		if p.Waits == explain.Nothing {
			p.State, p.Waits = "parked", explain.Person
		}
	}
	p.Kind, p.ID = explain.Consumer, name
	return explain.Only(p), nil
}

// behind explains a consumer that is behind, by the partition whose events wait longest.
func (s *Store) behind(ctx context.Context, st Status) (explain.Part, error) {
	worst := slices.MaxFunc(st.Places, func(a, b Place) int {
		return cmp.Or(cmp.Compare(a.LagSeconds, b.LagSeconds), cmp.Compare(a.Head-a.Seq, b.Head-b.Seq))
	})
	cur, err := s.cursor(ctx, st.Name, worst.Partition)
	if err != nil {
		return explain.Part{}, err
	}

	p := s.waiting(st.Consumer, cur)
	p.State = "behind"
	p.Why = fmt.Sprintf("It is %d events behind; in the partition %s it has come to event %d of %d: %s", st.Behind,
		worst.Partition, worst.Seq, worst.Head, p.Why)
	p.Since = s.Now().UnixMilli() - worst.LagSeconds*1000
	if st.NextRun > 0 && p.Waits == explain.Time {
		p.Until = st.NextRun
	}
	return p, nil
}

// fateOfFiles is what became of the files of a version that the cursor has passed: the first of
// them that is parked, or that some may wait. It does not read their list.
func (s *Store) fateOfFiles(ctx context.Context, c Consumer, cur cursor,
	e envelope.Event) (state, reason string,
	err error) {
	if cur.Parked > 0 {
		rows, err := readAll[parkedRow](ctx, s.Table,
			table.Query{PK: parkedPK(c.Name, e.Partition)})
		if err != nil {
			return "", "", err
		}
		for _, row := range rows {
			if slices.ContainsFunc(row.Refs,
				func(f ref) bool { return f.Seq == e.Seq && f.Shown != nil }) {
				p := row.event(e.Partition)
				return EventParked,
					fmt.Sprintf("%s %s is parked: %s", p.Subject.Type, p.Subject.ID, p.Reason), nil
			}
		}
	}

	if cur.Pending > 0 {
		return EventDebounced,
			fmt.Sprintf("%d order keys wait until they are quiet; files of the version can be among "+
				"them", cur.Pending), nil
	}

	state, reason = cur.passed(e)
	return state, reason, nil
}

// waiting is why a cursor has not come to an event yet. The first reason that holds is told: what a person has done
// comes before what the system does by itself.
func (s *Store) waiting(c Consumer, cur cursor) (x explain.Part) {
	switch {
	case c.Paused:
		x.Waits, x.Why = explain.Hold, "it is paused"
		x.Do = []explain.Step{{What: "Resume it", Command: "archivist consumer resume " + c.Name + " --reason TEXT"}}
	case c.Rebuild != "":
		x.Waits, x.Why = explain.Worker, "it is being rebuilt"
		x.Do = []explain.Step{{What: "See how far that is", Command: "archivist consumer show-replay " + c.Rebuild}}
	case c.Resets > 0:
		x.Waits = explain.Turn
		x.Why = "its cursors are being moved, as a person asked; it goes on within some minutes"
	case cur.Stop != nil:
		cur.Stop.explain(&x, c.Name, cur.partition())
		x.Until = cur.Due
	case cur.Live(s.Now()):
		x.Waits, x.Why = explain.Worker, "it is running"
	case len(cur.Orders) > 0:
		x.Waits, x.Why = explain.Log, "it handles parked events first"
	case c.Mode == Scheduled:
		x.Waits, x.Why = explain.Time, "it runs at its times: "+c.Schedule
		x.Do = []explain.Step{{What: "Let it run now",
			Command: "archivist consumer run " + c.Name + " --reason TEXT"}}
	default:
		x.Waits, x.Why = explain.Turn, "it will be woken; lost wake-ups are repeated within a few minutes"
	}
	return x
}

// explain says why a cursor does not move.
func (s *Stop) explain(x *explain.Part, consumer, partition string) {
	x.Since = s.Since
	switch s.Kind {
	case Blocked:
		x.Waits = explain.Person
		x.Why = fmt.Sprintf("it stops at event %d, which failed: %s. It tries again", s.Seq, s.Reason)
		x.Do = []explain.Step{{What: "If it can never be handled, skip it",
			Command: fmt.Sprintf("archivist consumer skip %s --partition %s --seq %d --reason TEXT", consumer,
				partition, s.Seq)}}
	case Unreachable:
		x.Waits, x.Why = explain.Source, fmt.Sprintf("its target cannot be called: %s. It tries again", s.Reason)
	default:
		x.Waits, x.Why = explain.Person, fmt.Sprintf("it stops: %s", s.Reason)
		x.Do = parkedSteps(consumer)
	}
}

// fate is what became of an event that the cursor has passed: it is parked, waits until its key is
// quiet, was skipped, or was handled.
func (s *Store) fate(ctx context.Context, c Consumer, cur cursor,
	e envelope.Event) (state, reason string, err error) {
	k := key(c, e)
	row, err := s.parkedAt(ctx, c.Name, e.Partition, k, e.ID)
	if err != nil {
		return "", "", err
	}

	if row != nil {
		return EventParked, row.event(e.Partition).Reason, nil
	}

	var p pendingRow
	err = s.Table.Get(ctx, pendingKey(c.Name, e.Partition, k), &p)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return "", "", err
	}

	if slices.ContainsFunc(p.Refs, func(f ref) bool { return f.ID == e.ID }) {
		return EventDebounced, fmt.Sprintf("it waits, together with %d others of its key %s, until %s",
			len(p.Refs)-1, k,
			time.UnixMilli(p.Due).UTC().Format(time.RFC3339)), nil
	}

	state, reason = cur.passed(e)
	return state, reason, nil
}

// passed is why the cursor is behind an event that neither is parked nor waits. Ranges that a
// person skipped are remembered only up to maxSkips, so an old one can count as handled.
func (c *cursor) passed(e envelope.Event) (state, reason string) {
	for _, r := range c.Skips {
		if r.After < e.Seq && e.Seq <= r.To {
			return EventSkipped, "a person moved the cursor past it; see the events of the consumer"
		}
	}

	if e.Seq <= c.Begin {
		return EventSkipped,
			"it was in the log before the consumer started; see the start of its definition"
	}
	return EventHandled,
		fmt.Sprintf("the consumer has handled it; its cursor is at event %d", c.Seq)
}

// parkedAt reads the row of a parked event; nil if it is not parked. Rows of a key have its hash in
// front, so only those of the key are read.
func (s *Store) parkedAt(ctx context.Context, name, partition, key, id string) (*parkedRow, error) {
	rows, err := readAll[parkedRow](ctx, s.Table,
		table.Query{PK: parkedPK(name, partition), Prefix: hash(key) + "#"})
	if err != nil {
		return nil, err
	}

	for i := range rows {
		if rows[i].has(id) {
			return &rows[i], nil
		}
	}
	return nil, nil
}
