// Package envelope is what every event says: what happened to which subject, when, by whom,
// as part of which change, and because of which other event (source: the
// object-model-events text, "Contents of an Event").
//
// It has values only. Package event writes events and reads them from the table; filters,
// consumers, the API and the command line see them in this form.
package envelope

import "encoding/json"

// Ref names a thing: a subject, a parent, or another object that an event acted upon.
type Ref struct {
	Role string `json:"role,omitempty"` // of an object acted upon, e.g. "collection"
	Type string `json:"type"`           // of a subject, e.g. "Object"
	ID   string `json:"id"`
}

// Module is a piece of software that took part.
type Module struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Transaction is the change that an event is part of. The events of one transaction are committed
// together: a reader that sees one of them knows by Count how many there are.
type Transaction struct {
	ID    string `json:"id"`
	Index int    `json:"index"` // of the event in it, from 0
	Count int    `json:"count"` // of its events
}

// Context says who made a change, and with what.
type Context struct {
	// Actor is the person or account.
	Actor string `json:"actor,omitempty"`

	// Component is the part of the system, e.g. "download" or a consumer's name, and Version that
	// of its software.
	Component string   `json:"component,omitempty"`
	Version   string   `json:"componentVersion,omitempty"`
	Modules   []Module `json:"modules,omitempty"`

	// Request is the id of the request of a person, if there was one.
	Request     string      `json:"request,omitempty"`
	Transaction Transaction `json:"transaction"`
}

// Cause is the event because of which a consumer made a change. An event that no other event
// caused has the zero Cause: it is its own root, at depth 0.
type Cause struct {
	Event string `json:"event,omitempty"` // the id of the event that caused this one
	Root  string `json:"root,omitempty"`  // the id of the event at the beginning of the chain
	Depth int    `json:"depth,omitempty"` // of the chain: 1 = caused by a root

	// Components are those that made the events of the chain, the root's first, and the consumers and
	// components that asked for them, each after the event because of which it did.
	Components []string `json:"components,omitempty"`
}

// AskedBy is the consumer or component because of which the change was made: the last of the chain. It is "" for a
// change that no event caused.
func (c Cause) AskedBy() string {
	if len(c.Components) == 0 {
		return ""
	}
	return c.Components[len(c.Components)-1]
}

// Event is one event. Times are milliseconds since 1970. Detail, Before and After are not part of a
// reference in the log: there they are nil (see Facts). It is what consumers, the archive and the
// bus have as JSON, so names of fields stay.
type Event struct {
	// ID is the id of the transaction, a dot, and the event's index in it. What is presented
	// besides an event has that event's id, a # and more.
	ID      string `json:"id"`
	Subject Ref    `json:"subject"`
	Version int64  `json:"version"` // of the subject, without gaps
	Type    string `json:"type"`    // dotted, e.g. "job.state"
	Action  string `json:"action"`  // one of Actions, which filters name
	Time    int64  `json:"time"`
	Outcome string `json:"outcome"` // "success" or "failure"

	// Objects are others acted upon, each with its role.
	Objects []Ref `json:"objects,omitempty"`

	// Parents are the containers at that time, the outermost first.
	Parents []Ref `json:"parents,omitempty"`

	// Identifiers are all by which the subject is known, so that an event of its deletion still
	// names it.
	Identifiers []string `json:"identifiers,omitempty"`

	// Properties are the names of what changed, sorted.
	Properties []string `json:"properties,omitempty"`

	Context Context `json:"context"`
	Cause   Cause   `json:"cause"`

	Detail json.RawMessage `json:"detail,omitempty"` // typed per event type and Schema
	Before json.RawMessage `json:"before,omitempty"` // of what changed, by its names
	After  json.RawMessage `json:"after,omitempty"`
	Schema int             `json:"schema"` // version of Detail, of this Type

	// Partition and Seq are the place in the log. Seq 0: it has no place yet.
	Partition string `json:"partition,omitempty"`
	Seq       int64  `json:"seq,omitempty"`
}

// Actions that filters name. Each event type has one of them.
const (
	Create         = "create"
	Modify         = "modify" // of content or of state
	ModifyMetadata = "modify-metadata"
	Add            = "add"    // to a container
	Remove         = "remove" // from a container
	Delete         = "delete"
	Install        = "install"
	Disseminate    = "disseminate"
)

// Facts is the event without its payload: what a reference in the log carries, and all that filters
// look at. So it is decided who gets an event without reading it.
func (e Event) Facts() Event {
	e.Detail, e.Before, e.After = nil, nil, nil
	return e
}
