package component

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"archivist/pkg/events/event"
	"archivist/pkg/formats/premis"
	"archivist/pkg/kernel/definition"
	"archivist/pkg/kernel/fault"
)

// found is an event of a PREMIS document, as an event of an item. The document's own text is kept
// in imported.
type found struct {
	id       premis.Identifier
	name     string
	outcome  string
	imported Imported
	revokes  []string // names of events, if it revokes them; then it has no name
}

// document is a PREMIS document being read. Agents can come after the events that name them, so
// they are put together at the end.
type document struct {
	events  []found
	refused []RefusedEvent
	ids     map[premis.Identifier]int // places in events
	agents  map[premis.Identifier]premis.Agent
}

// RefusedEvent is an event or agent of a document that cannot be imported.
type RefusedEvent struct {
	ID     premis.Identifier // zero if it has none
	Reason string
}

// IDType is the type of the identifiers of this archive's own events in PREMIS.
const IDType = "archivist"

// readDocument reads the events of a PREMIS document, the oldest first; of equal times, in the
// order of the document. Events that cannot be imported are refused, each with its reason, and the
// others are read; an Invalid means that the document as a whole cannot be read, or has no events.
// zone is that of times that state none.
func readDocument(in io.Reader,
	zone *time.Location) (events []found, refused []RefusedEvent, err error) {
	d := document{ids: map[premis.Identifier]int{}, agents: map[premis.Identifier]premis.Agent{}}
	for entry, err := range premis.Read(in, zone) {
		var r *premis.Refusal
		switch {
		case errors.As(err, &r):
			why := fmt.Sprintf("the %s in line %d %s", r.Kind, r.Line, r.Why)
			d.refused = append(d.refused, RefusedEvent{r.ID, why})
		case err != nil:
			return nil, nil, fault.New(fault.Invalid, "%w", err)
		case entry.Agent != nil:
			for _, id := range append(entry.Agent.Also, entry.Agent.ID) {
				d.agents[id] = *entry.Agent
			}
		default:
			d.add(entry.Event)
		}
	}

	if len(d.events)+len(d.refused) == 0 {
		return nil, nil, fault.New(fault.Invalid, "the document has no events")
	}

	d.name()
	slices.SortStableFunc(d.events,
		func(a, b found) int { return cmp.Compare(a.imported.At, b.imported.At) })
	return d.events, d.refused, nil
}

// add adds an event to the document, or the reason why it cannot be an event of an item. The same
// event twice is one.
func (d *document) add(e *premis.Event) {
	f, why := eventOf(e)
	if at, is := d.ids[e.ID]; is && why == "" {
		if reflect.DeepEqual(d.events[at], f) {
			return
		}
		why = "another event of the document has the same identifier"
	}

	if why != "" {
		d.refused = append(d.refused, RefusedEvent{e.ID, why})
		return
	}

	d.ids[e.ID] = len(d.events)
	d.events = append(d.events, f)
}

// outcomes are those of items by those of PREMIS. An item has no warning: it is a success, and
// Imported.Warned.
var outcomes = map[string]string{premis.Success: event.Success, premis.Warning: event.Success,
	premis.Failure: event.Failure}

// eventOf is an event of PREMIS as one of an item, or why there is none. The name of the event is
// its type, with _ in place of spaces and dots. An event that this archive has exported as a
// revocation is one again.
func eventOf(e *premis.Event) (f found, why string) {
	name := strings.ReplaceAll(strings.Join(strings.Fields(e.Type), "_"), ".", "_")
	f = found{
		id:      e.ID,
		name:    name,
		outcome: outcomes[e.Outcome],
		imported: Imported{
			IDType: e.ID.Type,
			ID:     e.ID.Value,
			Type:   e.Type,
			Time:   e.Written,
			At:     millis(e.Time),
			Warned: e.Outcome == premis.Warning,
			Detail: e.Detail,
			Note:   e.Note,
		},
	}

	for _, link := range e.Agents {
		f.imported.Agents = append(f.imported.Agents,
			Agent{IDType: link.Agent.Type, ID: link.Agent.Value, Role: link.Role})
	}

	if e.ID.Type == IDType && e.Type == RevokeType {
		f.name, f.outcome, f.revokes = "", "", revoked(e.Detail)
	}

	switch {
	case f.revokes != nil:
	case e.Type == RevokeType:
		return f, "it revokes events, and does not say which"
	case !eventNames.MatchString(f.name):
		return f, "its eventType \"" + definition.Clip(e.Type, 100) +
			"\" cannot be the name of an event here: " +
			"expected a letter, then letters, digits, _ and -, at most 50 (spaces and dots become _)"
	case f.outcome == "":
		return f, "it states no outcome; success or failure decides what components do"
	}

	if f.imported.At < 0 {
		return f, "its time " + e.Written + " is before 1970"
	}
	return f, ""
}

// name adds what the document says of the agents, and refuses events that have become too large.
func (d *document) name() {
	fits := d.events[:0]
	for _, f := range d.events {
		for i := range f.imported.Agents {
			link := &f.imported.Agents[i]
			a := d.agents[premis.Identifier{Type: link.IDType, Value: link.ID}]
			link.Name, link.Type, link.Version = a.Name, a.Type, a.Version
		}

		text, _ := json.Marshal(f.imported) // it has texts and numbers only
		if len(text) > maxImported {
			d.refused = append(d.refused,
				RefusedEvent{f.id, fmt.Sprintf("it has %d bytes with its agents; at most %d "+
					"are kept", len(text), maxImported)})
			continue
		}

		fits = append(fits, f)
	}

	d.events = fits
}

// maxImported bounds what is kept of an imported event, in bytes: the detail has the name and a
// reason too.
const maxImported = event.MaxDetail - 4<<10

// RevokeType is the type of the events in PREMIS that revoke events of an item. Their detail is
// that of Revocation.
const RevokeType = "item.revoke"

// Revocation is the text that says which events are revoked, and why. An import reads it again, so
// it stays.
func Revocation(d Revoked) string {
	return strings.TrimSpace("Revoked: " + strings.Join(d.Events, ", ") + ". " + d.Reason)
}

// revocations are the details that Revocation writes, up to the end of the names.
var revocations = regexp.MustCompile(`^Revoked: ([A-Za-z0-9_, -]+)\.`)

// revoked are the names of the events that a text says are revoked, nil if it does not say so.
func revoked(text string) []string {
	m := revocations.FindStringSubmatch(text)
	if m == nil {
		return nil
	}
	return strings.Split(m[1], ", ")
}
