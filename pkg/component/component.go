// Package component runs autonomous components: robots, each of which works on an item when its
// condition on what has happened to the item holds, and records its own event when it is done
// (source: the autonomous-components text).
//
// An item is an object, a version or a batch of the system, its subject, or a free item that
// people made. Each has one row: the fold of the subject's events and of the item's own events,
// which does not depend on how the two are interleaved. An own event is written together with the
// row and with the item's places in the lines of all components, in one transaction. So a line is
// never behind its items:
//
//	COMPONENTITEM#{item}  COMPONENTITEM                the item
//	COMPONENTITEM#{item}  EV#{version}                 its own events
//	COMPONENTS        #HEAD, {component}                     definitions; the head has their epoch
//	LINE#{component}  ready#{rank}#{first event}#{item}      it can be worked on
//	LINE#{component}  later#{not before}#{item}              likewise, from a time on
//	LINE#{component}  running#{until}#{item}                 it is being worked on
//	LINE#{component}  failed#{item}                          a person, or a change, must come first
//	LINE#{component}  count#{shard}                          how many items are at each
//
// A component polls its line: that costs calls for the items that it takes, however many there are.
package component

import (
	"cmp"
	"context"
	"hash/fnv"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"archivist/pkg/envelope"
	"archivist/pkg/event"
	"archivist/pkg/fault"
)

// Item is what is known of an item. Times are milliseconds since 1970.
type Item struct {
	ID          string         `json:"id"`              // see ParseID
	Types       []string       `json:"types,omitempty"` // sorted
	Parents     []envelope.Ref `json:"parents,omitempty"`
	Identifiers []string       `json:"identifiers,omitempty"`
	Priority    int            `json:"priority"` // 1 to 9; 9 is first
	First       int64          `json:"first"`    // the time of its oldest event

	Version int64 `json:"version"` // of its own events
	Applied int64 `json:"applied"` // the subject's version up to which the subject's events are known

	// Marks are the newest events that are not revoked, by their names.
	Marks map[string]Mark `json:"marks,omitempty"`
	// Revoked are the numbers of own events up to which the events of a name do not count; Cleared that
	// up to which none does, because the item was forgotten.
	Revoked map[string]int64 `json:"revoked,omitempty"`
	Cleared int64            `json:"cleared,omitempty"`
	// Subject and Own are the newest change of the content in each sequence, and the newest by
	// another component than that one.
	Subject [2]Change `json:"subjectChanges"`
	Own     [2]Change `json:"ownChanges"`

	Claims    map[string]Claim `json:"claims,omitempty"` // by component
	Waits     map[string]Wait  `json:"waits,omitempty"`  // by component
	Forgotten bool             `json:"forgotten,omitempty"`
}

// Mark is the newest event of a name.
type Mark struct {
	ID       string         `json:"id"`      // of the event
	Version  int64          `json:"version"` // in the sequence of the event's subject
	Outcome  string         `json:"outcome"`
	At       int64          `json:"at"` // when it was registered
	Based    Based          `json:"basedOn"`
	Failures int            `json:"failures,omitempty"` // in a row, up to and with this one
	Cause    envelope.Cause `json:"cause"`              // of what happens because of the event
}

// Based says how much of an item was known: the versions of the two sequences.
type Based struct {
	Subject int64 `json:"subject"`
	Item    int64 `json:"item"`
}

// Change is an event that changed the content of an item. Version 0: there was none.
type Change struct {
	Version   int64          `json:"version,omitempty"` // in its sequence
	Component string         `json:"component,omitempty"`
	Cause     envelope.Cause `json:"cause,omitzero"` // of what happens because of it
}

// Claim is the lease of a component on an item. Only the run that has it can record the result.
type Claim struct {
	Run   string         `json:"run"`
	ID    string         `json:"id"`    // a new one each time
	Until int64          `json:"until"` // the end of the lease
	Since int64          `json:"since"`
	Based Based          `json:"basedOn"`
	Cause envelope.Cause `json:"cause,omitzero"`
	// Takes is how often the item was taken without a result, with this time.
	Takes int `json:"takes,omitempty"`
}

// Live reports whether the claim is held at a time.
func (c Claim) Live(now int64) bool { return c.ID != "" && now < c.Until }

// Wait is why a component does not yet work on an item again: it said so itself.
type Wait struct {
	Until  int64  `json:"until"`
	Times  int    `json:"times"` // in a row
	Reason string `json:"reason,omitempty"`
}

// Kinds of items: what an item's id begins with.
const (
	KindObject  = "object"
	KindVersion = "version"
	KindBatch   = "batch"
	KindFree    = "item"
)

// subjects are the types of the subjects of items.
var subjects = map[string]event.Type{KindObject: event.Object, KindVersion: event.Version, KindBatch: event.Batch}

// IDOf is the id of the item whose subject is s; "" if there are no items of its type.
func IDOf(s envelope.Ref) string {
	for kind, of := range subjects {
		if of.String() == s.Type {
			return kind + ":" + s.ID
		}
	}
	return ""
}

// maxID is how long the id of an item may be, in bytes: it is part of sort keys.
const maxID = 400

// free are ids of free items: what can be pasted into a URL, a file name or a command.
var free = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@+=-]{0,199}$`)

// ParseID reads the id of an item: "object:ark:/99999/fk4x", "version:ark:/99999/fk4x/v3",
// "batch:01J…" or "item:delivery-17". An ARK alone is an object's. Another text is an Invalid.
func ParseID(id string) (kind, subject string, err error) {
	if strings.HasPrefix(id, "ark:") {
		id = KindObject + ":" + id
	}
	kind, subject, _ = strings.Cut(id, ":")
	switch {
	case len(id) > maxID || !utf8.ValidString(id):
		return "", "", fault.New(fault.Invalid, "item: the id has %d bytes; expected at most %d, of text", len(id),
			maxID)
	case kind == KindFree && free.MatchString(subject):
		return kind, subject, nil
	case kind == KindFree:
		return "", "", fault.New(fault.Invalid, "item: %q: after item: expected 1 to 200 letters, digits and "+
			". _ : / @ + = -, beginning with a letter or digit", id)
	case subjects[kind] != event.Type{} && subject != "" && !strings.ContainsFunc(subject, isControl):
		return kind, subject, nil
	}
	return "", "", fault.New(fault.Invalid, "item: %q: expected object:ARK, version:ARK/vN, batch:ID or item:ID", id)
}

func isControl(r rune) bool { return r <= ' ' || r == 0x7f }

// subjectOf is the subject that an item follows; ok is false for a free item.
func subjectOf(id string) (s event.Subject, ok bool) {
	kind, name, _ := strings.Cut(id, ":")
	of, ok := subjects[kind]
	return event.Subject{Type: of, ID: name}, ok
}

func itemSubject(id string) event.Subject { return event.Subject{Type: event.Item, ID: id} }

// shards is how many rows have a component's counts, and in how many parts the items are listed.
const shards = 16

func shard(id string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(id))
	return h.Sum32() % shards
}

// Function is the work of a component: its runnable, in Go. It can be called with an item again
// after a crash, and must then make its effect once. An error is a failure of the item, except one
// of the kind fault.Unavailable: then nothing is recorded, and the item is worked on later.
type Function interface {
	Run(ctx context.Context, w Work) (Result, error)
}

// Work is one item to work on: what a function, or a runnable outside, is called with.
type Work struct {
	Component string         `json:"component"`
	Version   int            `json:"version"` // of the definition
	Run       string         `json:"run"`
	Claim     string         `json:"claim"` // unique to this call
	Item      string         `json:"item"`
	Kind      string         `json:"kind"`    // object, version, batch or item
	Subject   string         `json:"subject"` // the id without the kind, e.g. an ARK
	Types     []string       `json:"types,omitempty"`
	Parents   []envelope.Ref `json:"parents,omitempty"`
	BasedOn   Based          `json:"basedOn"`
	Cause     envelope.Cause `json:"cause"`
	Header    string         `json:"header"` // the cause as envelope.CauseHeader, for calls of the API
	Deadline  int64          `json:"deadline"`
	MaxResult int            `json:"maxResults"`
}

// Result is the result of the work.
type Result struct {
	Outcome string `json:"outcome,omitempty"` // event.Success unless set
	NotYet  bool   `json:"notYet,omitempty"`  // nothing is recorded, and the item is tried again later
	Again   bool   `json:"again,omitempty"`   // likewise, at once: a part of long work is done
	Changed bool   `json:"changed,omitempty"` // the content of the item was changed
	Reason  string `json:"reason,omitempty"`
	Report  Report `json:"report,omitzero"`
}

// Report is what a component found, in detail. It keeps at most maxResults entries.
type Report struct {
	Entries []Entry `json:"entries,omitempty"`
	Total   int     `json:"total,omitempty"` // of all, also those that are not kept
}

// Entry is one finding.
type Entry struct {
	File        string `json:"file,omitempty"`
	Type        string `json:"type"` // of the finding, e.g. "checksum"
	Component   string `json:"component,omitempty"`
	Description string `json:"description"`
	Details     string `json:"details,omitempty"`
}

// By says who makes a change, and why.
type By struct {
	Actor  string
	Reason string

	// Request is the id of the request, "" for none: the same request again changes nothing.
	Request string
}

// Rank is the priority of the item, 1 to 9.
func (it *Item) Rank() int { return cmp.Or(it.Priority, defaultPriority) }

const defaultPriority = 5

func millis(t time.Time) int64 { return t.UnixMilli() }
