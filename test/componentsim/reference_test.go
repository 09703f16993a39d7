package componentsim

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"archivist/pkg/components/component"
	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
)

// fact is one event of an item, or of its subject.
type fact struct {
	envelope.Event
	own    bool
	name   string // by which conditions know it; "": by none
	detail struct {
		Component string                 `json:"component"`
		Event     string                 `json:"event"`
		Events    []string               `json:"events"`
		BasedOn   component.SeenVersions `json:"basedOn"`
		Changed   bool                   `json:"changed"`
		Priority  int                    `json:"priority"`
		Types     []string               `json:"types"`
		Run       string                 `json:"run"`
	}
}

// factOf reads an event.
func factOf(row event.Row) (f fact, err error) {
	f.Event, err = row.Envelope()
	if err != nil {
		return f, err
	}
	f.own = row.SubjectType == event.Item.String()
	if f.own && len(f.Detail) > 0 {
		err = json.Unmarshal(f.Detail, &f.detail)
	}
	switch {
	case !f.own:
		f.name = f.Type
	case f.Type == "component.ran" || f.Type == "item.event":
		f.name = f.detail.Event
	}
	return f, err
}

// maker is who made a change: of a subject, the component that asked for it.
func (f fact) maker() string {
	if n := len(f.Cause.Components); n > 0 && !f.own {
		return f.Cause.Components[n-1]
	}
	return f.Context.Component
}

// content reports whether the event changed the content of the item.
func (f fact) content() bool {
	return !f.own || f.Type == "item.create" || f.Type == "item.change" || f.Type == "component.ran" && f.detail.Changed
}

// history is what is known of an item: the specification of the fold. It keeps all events and looks
// through all of them for each question.
type history struct {
	id        string
	facts     []fact // those of the subject, then its own
	forgotten bool
}

// historyOf is the history of an item up to a version of each sequence.
func (c *checker) historyOf(id string, applied, version int64) history {
	h := history{id: id}
	kind, subject, _ := strings.Cut(id, ":")
	if kind == component.KindObject {
		h.facts = append(h.facts, c.subjects["OBJECT#"+subject][:applied]...)
	}
	own := c.subjects["COMPONENTITEM#"+id][:version]
	for i, f := range own {
		switch f.Type {
		case "item.forget":
			h.forgotten, h.facts, own = true, nil, c.subjects["COMPONENTITEM#"+id][i+1:version]
		case "item.create", "item.change":
			h.forgotten = false
		}
	}
	h.facts = append(h.facts, own...)
	return h
}

// all are the events of a name that count, oldest first.
func (h history) all(name string) (all []fact) {
	for _, f := range h.facts {
		if f.Type == "item.revoke" && slices.Contains(f.detail.Events, name) {
			all = nil
		}
		if f.name == name {
			all = append(all, f)
		}
	}
	return all
}

// newest is the newest event of a name that counts, nil if there is none.
func (h history) newest(name string) *fact {
	all := h.all(name)
	if len(all) == 0 {
		return nil
	}
	return &all[len(all)-1]
}

// failures counts the failures in a row up to the newest event of a name.
func (h history) failures(name string) (n int) {
	for _, f := range slices.Backward(h.all(name)) {
		if f.Outcome != event.Failure {
			return n
		}
		n++
	}
	return n
}

// since are the newest changes of the content by others, of each sequence, on which an event is not
// based.
func (h history) since(name string, based component.SeenVersions) (changes []fact) {
	for _, own := range []bool{false, true} {
		after := based.Subject
		if own {
			after = based.Item
		}
		for _, f := range slices.Backward(h.facts) {
			if f.own == own && f.content() && f.Version > after && f.maker() != name {
				changes = append(changes, f)
				break
			}
		}
	}
	return changes
}

// verdict is the judgement of one component on one item.
type verdict struct {
	ready bool
	from  int64 // when it is tried again; 0: now
	deep  bool  // it is not ready only because the chain of causes is too long
}

// judge is the specification of triggers (source: "Advanced Triggering" of the autonomous-components
// text).
func (h history) judge(d *component.Definition) (v verdict) {
	if !h.eligible(d) {
		return v
	}
	var causes []fact
	for _, name := range append(slices.Clone(d.PastSuccess), d.PastFailure...) {
		f := h.newest(name)
		if f == nil || (f.Outcome == event.Success) != slices.Contains(d.PastSuccess, name) {
			return v
		}
		causes = append(causes, *f)
	}
	again := h.again(d)
	if h.newest("Manually_stopped") != nil {
		return v
	}
	for _, name := range d.Future {
		if h.newest(name) != nil && (name != d.Event || again == 0) {
			return v
		}
	}
	news := false
	for _, name := range d.Old {
		f := h.newest(name)
		if f == nil {
			continue
		}
		since := h.since(d.Name, f.detail.BasedOn)
		if len(since) == 0 && (name != d.Event || again == 0) {
			return v
		}
		news = news || name == d.Event && len(since) > 0
		causes = append(causes, since...)
	}
	if h.depth(d, causes) > d.MaxDepth {
		return verdict{deep: true}
	}
	v.ready = true
	if !news {
		v.from = again
	}
	return v
}

// again is when a component works on an item again without a change: after a failure, or some days later.
// 0: it does not.
func (h history) again(d *component.Definition) int64 {
	f, failures := h.newest(d.Event), h.failures(d.Event)
	switch {
	case f == nil:
		return 0
	case failures > 0 && d.Retry != nil && failures <= d.Retry.Max:
		return f.Time + int64(d.Retry.Backoff)*1000<<(failures-1)
	case d.EveryDays > 0:
		return f.Time + int64(d.EveryDays)*24*3600*1000
	}
	return 0
}

// eligible reports whether the item is one of those that a component works on at all.
func (h history) eligible(d *component.Definition) bool {
	for _, t := range d.Types {
		if !slices.Contains(h.types(), t) {
			return false
		}
	}
	switch {
	case h.forgotten:
		return false
	case d.Items != nil && len(d.Items.IDs) > 0:
		return slices.Contains(d.Items.IDs, h.id)
	case d.Items != nil: // the only filter: custom items
		return strings.HasPrefix(h.id, "item:")
	}
	return true
}

// depth of what the component would do: one more than that of the deepest cause. An item without any
// is there because of the newest change of its content.
func (h history) depth(d *component.Definition, causes []fact) (deepest int) {
	if len(causes) == 0 {
		causes = h.since(d.Name, component.SeenVersions{})[:min(1, len(h.since(d.Name, component.SeenVersions{})))]
	}
	for _, f := range causes {
		deepest = max(deepest, f.Cause.Depth+1)
	}
	return deepest
}

func (h history) types() (types []string) {
	if strings.HasPrefix(h.id, "object:") {
		return []string{"Object"}
	}
	for _, f := range h.facts {
		if f.Type == "item.create" || f.Type == "item.change" {
			types = f.detail.Types
		}
	}
	return types
}

func (h history) priority() int {
	priority := 5
	for _, f := range h.facts {
		if f.Type == "item.prioritize" {
			priority = f.detail.Priority
		}
	}
	return priority
}

func (h history) first() (first int64) {
	for _, f := range h.facts {
		if first == 0 || f.Time < first {
			first = f.Time
		}
	}
	return first
}

// place is where the item belongs in the line of a component, as its row has it: who has claimed it,
// and until when the component itself does not want to look at it again, are not events.
func (h history) place(d *component.Definition, it *component.Item) string {
	if claim, held := it.Claims[d.Name]; held {
		return fmt.Sprintf("running#%013d#%s", claim.Until, h.id)
	}
	v := h.judge(d)
	v.from = max(v.from, it.Waits[d.Name].Until)
	switch f := h.newest(d.Event); {
	case v.ready && v.from == 0:
		return fmt.Sprintf("ready#%d#%013d#%s", 9-h.priority(), h.first(), h.id)
	case v.ready:
		return fmt.Sprintf("later#%013d#%s", v.from, h.id)
	case f == nil || h.forgotten:
		return ""
	case f.Outcome == event.Failure:
		return "failed#" + h.id
	}
	return "done"
}
