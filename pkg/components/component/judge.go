package component

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/events/filter"
)

// Verdict says whether a component can work on an item, and if not, which condition is the first
// that does not hold. The reason is a sentence for people.
type Verdict struct {
	Ready bool `json:"ready"`

	// NotBefore: it is ready from this time on, in milliseconds since 1970. 0: now.
	NotBefore int64 `json:"notBefore,omitempty"`

	// Condition is the first that does not hold, e.g. "pastSuccess".
	Condition string `json:"condition,omitempty"`
	Reason    string `json:"reason"`

	Cause envelope.Cause `json:"-"` // of what the component does, if it is ready
}

// maxDepth is the condition that ends a chain of components that wake each other. Unlike the others
// it raises an alarm: the item waits until a person, or a change with another cause, makes it
// ready.
const maxDepth = "maxDepth"

// compiled is a definition with its filter. It is shared by all goroutines, and not changed.
type compiled struct {
	Definition
	filter *filter.Filter

	// born is the epoch in which the component was made: places that were decided before are of
	// another of its name.
	born int64

	// backfilled is the epoch of the newest change of its conditions.
	backfilled int64
}

// compile compiles a definition that was checked.
func compile(d Definition) (compiled, error) {
	c := compiled{Definition: d}
	if d.Items == nil || d.Items.Filter == "" {
		return c, nil
	}

	var err error
	c.filter, err = filter.Compile(d.Items.Filter)
	return c, err
}

// judge decides whether the component can work on an item, from what is known of it alone. (Source:
// "Advanced Triggering" of the autonomous-components text; for each name the newest event that is
// not revoked counts.) A pause is none of the conditions: a paused component keeps its line.
func (c *compiled) judge(it *Item) Verdict {
	for _, condition := range []func(*Item) Verdict{c.judgeItem, c.judgePast, c.judgeFuture,
		c.judgeOld} {
		if v := condition(it); v.Condition != "" {
			return v
		}
	}

	cause := c.cause(it)
	if c.MaxDepth != AnyDepth && cause.Depth > c.MaxDepth {
		return no(maxDepth,
			"it would be change %d in a chain of causes that begins with event %s; at most %d are "+
				"accepted. Components change the item in turn; correct their definitions",
			cause.Depth,
			cause.Root,
			c.MaxDepth)
	}

	v := Verdict{Ready: true, Reason: "all conditions hold", Cause: cause, NotBefore: c.againAt(it)}
	if w := it.Waits[c.Name]; w.Until > v.NotBefore {
		v.NotBefore = w.Until
	}
	return v
}

// no is the verdict of a condition that does not hold.
func no(condition, format string, args ...any) Verdict {
	return Verdict{Condition: condition, Reason: fmt.Sprintf(format, args...)}
}

// judgeItem judges which item it is.
func (c *compiled) judgeItem(it *Item) Verdict {
	if it.Forgotten {
		return no("items", "the item was forgotten")
	}

	for _, t := range c.Types {
		if !slices.Contains(it.Types, t) {
			return no("types", "the item is not of the type %s; its types are: %s", t,
				strings.Join(it.Types, ", "))
		}
	}

	switch {
	case c.Items != nil && c.filter == nil && !slices.Contains(c.Items.IDs, it.ID):
		return no("items", "the item is not in the set of items")
	case c.filter != nil && !c.filter.MatchState(it.facts()):
		return no("items", "the filter does not select the item")
	}
	return Verdict{}
}

// facts is what a filter sees of an item: its subject, or the custom item itself, as an event that
// says how it is now.
func (it *Item) facts() envelope.Event {
	e := envelope.Event{
		Type:        envelope.Snapshot,
		Outcome:     event.Success,
		Parents:     it.Parents,
		Identifiers: it.Identifiers,
	}

	s, ok := subjectOf(it.ID)
	if !ok {
		s = itemSubject(it.ID)
	}

	e.Subject = envelope.Ref{Type: s.Type.String(), ID: s.ID}
	return e
}

// judgePast judges the events that the item must have, with success or with failure.
func (c *compiled) judgePast(it *Item) Verdict {
	for _, name := range c.PastSuccess {
		if v := it.must("pastSuccess", name, event.Success); v.Condition != "" {
			return v
		}
	}

	for _, name := range c.PastFailure {
		if v := it.must("pastFailure", name, event.Failure); v.Condition != "" {
			return v
		}
	}
	return Verdict{}
}

// must judges one event that the item must have, with an outcome. Only the newest of the name
// counts: a later failure hides an earlier success.
func (it *Item) must(condition, name, outcome string) Verdict {
	m, ok := it.Marks[name]
	switch {
	case !ok:
		return no(condition,
			"there is no event %s that counts; it must be there with the outcome %s", name, outcome)
	case m.Outcome != outcome:
		return no(condition, "the newest event %s (number %d) has the outcome %s; it must be %s",
			name, m.Version,
			m.Outcome, outcome)
	}
	return Verdict{}
}

// judgeFuture judges the events that the item must not have, whatever their outcome. Stopped is one
// for every component. A failure of the component itself is not one as long as it is to be tried
// again.
func (c *compiled) judgeFuture(it *Item) Verdict {
	if m, ok := it.Marks[Stopped]; ok {
		return no("stopped",
			"a person stopped the work on the item (event %s, number %d); revoke it to go on",
			Stopped,
			m.Version)
	}

	for _, name := range c.Future {
		m, ok := it.Marks[name]
		if !ok || name == c.Event && c.retries(m) {
			continue
		}

		if name == c.Event && m.Outcome == event.Failure {
			return no("future",
				"the component failed with the item (event %s, number %d); revoke the event to try "+
					"again", name, m.Version)
		}
		return no("future", "the item has the event %s already (number %d, %s)", name, m.Version,
			m.Outcome)
	}
	return Verdict{}
}

// judgeOld judges the events that the item must not have, unless its content was changed since by
// another, or the time of the component's own event has come again.
func (c *compiled) judgeOld(it *Item) Verdict {
	for _, name := range c.Old {
		m, ok := it.Marks[name]
		if !ok || name == c.Event && c.again(m) || len(c.since(it, m)) > 0 {
			continue
		}
		return no("old",
			"the item has the event %s (number %d, %s), and its content was not changed by another "+
				"since; revoke the event to work on it again", name, m.Version, m.Outcome)
	}
	return Verdict{}
}

// since are the changes of the content that the component did not make, and on which an event is
// not based. Versions are compared, not times, so a change of the same millisecond is never lost.
func (c *compiled) since(it *Item, m Mark) (changes []Change) {
	if f := foreign(it.Subject, c.Name); f.Version > m.BasedOn.Subject {
		changes = append(changes, f)
	}
	if f := foreign(it.Own, c.Name); f.Version > m.BasedOn.Item {
		changes = append(changes, f)
	}
	return changes
}

// retries reports whether the item is tried again after this event of the component: after each of
// the first Max failures in a row.
func (c *compiled) retries(m Mark) bool {
	return c.Retry != nil && m.Outcome == event.Failure && m.Failures <= c.Retry.Max
}

// again reports whether the item is worked on again some time after this event of the component.
func (c *compiled) again(m Mark) bool { return c.retries(m) || c.EveryDays > 0 }

// againAt is when the item is tried again after a failure, or worked on again some days later, in
// milliseconds since 1970; 0: now. A change by another does not wait for that time.
func (c *compiled) againAt(it *Item) int64 {
	m, ok := it.Marks[c.Event]
	if !ok || slices.Contains(c.Old, c.Event) && len(c.since(it, m)) > 0 {
		return 0
	}

	switch {
	case c.retries(m):
		return m.At + backoffMillis(c.Retry.Backoff, m.Failures)
	case c.EveryDays > 0:
		return m.At + int64(c.EveryDays)*24*3600*1000
	}
	return 0
}

// cause is the deepest of the causes that made the item ready: with it a chain of components that
// wake each other comes to its limit. If no condition names an event, it is the newest change of
// the item by another.
func (c *compiled) cause(it *Item) (deepest envelope.Cause) {
	consider := func(cause envelope.Cause) {
		if deepest.Event == "" || cause.Depth > deepest.Depth {
			deepest = cause
		}
	}

	for _, names := range [][]string{c.PastSuccess, c.PastFailure} {
		for _, name := range names {
			consider(it.Marks[name].Cause)
		}
	}

	for _, name := range c.Old {
		if m, ok := it.Marks[name]; ok {
			for _, f := range c.since(it, m) {
				consider(f.Cause)
			}
		}
	}

	for _, kept := range [][2]Change{it.Subject, it.Own} {
		if f := foreign(kept, c.Name); deepest.Event == "" && f.Version > 0 {
			consider(f.Cause)
		}
	}
	return deepest
}

// stops is 1 if the component works on an item no more because the chain of its causes is too long,
// and that was not so before: so one alarm is raised for each, not one with each change. before is
// the item in JSON, "" if it is new.
func (c *compiled) stops(before string, it *Item) int {
	if c.judge(it).Condition != maxDepth {
		return 0
	}
	var old Item
	if before != "" && json.Unmarshal([]byte(before), &old) == nil &&
		c.judge(&old).Condition == maxDepth {
		return 0
	}
	return 1
}

// backoffMillis is the wait after a number of failures in a row, in milliseconds: the backoff of
// the definition, in seconds, which doubles each time, up to a day.
func backoffMillis(seconds, failures int) int64 {
	wait := int64(seconds) * 1000
	for range failures - 1 {
		wait = min(2*wait, MaxBackoff*1000)
	}
	return wait
}
