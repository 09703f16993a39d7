package component

import (
	"encoding/json"
	"slices"
	"strings"

	"archivist/pkg/events/event"
)

// reference decides which component can work on an item by looking at all rows of its events, each time
// anew. It shares no code with the fold and the judge. With one of its rules set it is wrong.
type reference struct {
	byTime     bool // the newest event is that with the latest time
	noRevokes  bool // revoked events count
	ownChanges bool // a component is triggered by what it changed itself
	clocks     bool // whether the item changed since is decided by times
	anyOutcome bool // pastSuccess is held by a failure, too
	oneNewest  bool // a change by another is not seen if the component changed the item after it
}

// mutants are the wrong references. Each differs from the right one in some history.
var mutants = map[string]reference{
	"newest by time":          {byTime: true},
	"revoked events count":    {noRevokes: true},
	"own changes count":       {ownChanges: true},
	"old compares clocks":     {clocks: true},
	"any outcome":             {anyOutcome: true},
	"only the newest changed": {oneNewest: true},
}

// read is a row of an event with its detail.
type read struct {
	event.Row
	facts
	failures int // of its name in a row, up to and with it
}

// facts are what details of own events have.
type facts struct {
	Component string   `json:"component"`
	Event     string   `json:"event"`
	Events    []string `json:"events"`
	Types     []string `json:"types"`
	Changed   bool     `json:"changed"`
	Priority  int      `json:"priority"`
	BasedOn   struct{ Subject, Item int64 }
}

func readAll(rows []event.Row) (all []read) {
	for _, r := range rows {
		one := read{Row: r}
		_ = json.Unmarshal([]byte(r.Detail), &one.facts) // an event without a detail has none
		all = append(all, one)
	}
	return all
}

// newest is the newest event of a name that is not revoked.
func (ref reference) newest(own, subject []read, name string) (found read, ok bool) {
	rows := own
	if strings.Contains(name, ".") {
		rows = subject
	}
	for i, r := range rows {
		if r.Type != name && r.Event != name || !ref.noRevokes && revokedLater(rows[i+1:], name) {
			continue
		}
		if r.Outcome == event.Failure {
			r.failures = found.failures + 1
		}
		if ref.byTime && ok && r.Time <= found.Time {
			continue
		}
		found, ok = r, true
	}
	return found, ok
}

func revokedLater(rows []read, name string) bool {
	return slices.ContainsFunc(rows, func(r read) bool {
		return r.Type == "item.revoke" && slices.Contains(r.Events, name)
	})
}

// changedSince reports whether another changed the item since what an event is based on.
func (ref reference) changedSince(d Definition, own, subject []read, t read) bool {
	since := func(r read, based int64, by string) bool {
		if ref.clocks {
			return r.Time > t.Time && by != d.Name
		}
		return r.Version > based && (by != d.Name || ref.ownChanges)
	}
	var hits []bool // of the changes, oldest first
	for _, r := range subject {
		by := r.Row.Component
		if n := len(r.Cause.Components); n > 0 {
			by = r.Cause.Components[n-1]
		}
		hits = append(hits, since(r, t.BasedOn.Subject, by))
	}
	if ref.oneNewest && len(hits) > 0 {
		hits = hits[len(hits)-1:]
	}
	for _, r := range own {
		if r.Type == "item.create" || r.Type == "item.change" || r.Type == "component.ran" && r.Changed {
			hits = append(hits, since(r, t.BasedOn.Item, r.Row.Component))
		}
	}
	return slices.Contains(hits, true)
}

// ready says whether a component can work on an item, and from when on; 0: now.
func (ref reference) ready(d Definition, id string, own, subject []read) (ready bool, from int64) {
	if _, stopped := ref.newest(own, nil, "Manually_stopped"); stopped {
		return false, 0
	}
	var types []string
	for _, r := range own {
		if r.Type == "item.create" || r.Type == "item.change" {
			types = r.Types
		}
	}
	if len(subject) > 0 {
		types = []string{subject[0].SubjectType}
	}
	for _, t := range d.Types {
		if !slices.Contains(types, t) {
			return false, 0
		}
	}
	if d.Items != nil && !slices.Contains(d.Items.IDs, id) {
		return false, 0
	}
	for _, want := range []struct {
		names   []string
		outcome string
	}{{d.PastSuccess, event.Success}, {d.PastFailure, event.Failure}} {
		for _, name := range want.names {
			f, ok := ref.newest(own, subject, name)
			if !ok || f.Outcome != want.outcome && !ref.anyOutcome {
				return false, 0
			}
		}
	}
	retried := func(f read) bool {
		return d.Retry != nil && f.Outcome == event.Failure && f.failures <= d.Retry.Max
	}
	again := func(name string, f read) bool {
		return name == d.Event && (d.EveryDays > 0 || retried(f))
	}
	for _, name := range d.Future {
		if f, ok := ref.newest(own, subject, name); ok && !again(name, f) {
			return false, 0
		}
	}
	changed := false
	for _, name := range d.Old {
		f, ok := ref.newest(own, subject, name)
		if !ok {
			continue
		}
		since := ref.changedSince(d, own, subject, f)
		changed = changed || since && name == d.Event
		if !since && !again(name, f) {
			return false, 0
		}
	}
	if f, ok := ref.newest(own, subject, d.Event); ok && again(d.Event, f) && !changed {
		if !retried(f) {
			return true, f.Time + int64(d.EveryDays)*24*3600*1000
		}
		wait := int64(d.Retry.Backoff) * 1000
		for range f.failures - 1 {
			wait *= 2
		}
		return true, f.Time + wait
	}
	return true, 0
}
