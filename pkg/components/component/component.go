// Package component runs autonomous components: robots, each of which works on an item when its
// condition on what has happened to the item holds, and records its own event when it is done
// (source: the autonomous-components text).
//
// An item is an object, a version or a batch of the system, its subject, or a custom item that people
// made. Each has one row: the fold of the subject's events and of the item's own events, which does
// not depend on how the two are interleaved. An own event is written together with the row and with
// the item's places in the lines of all components, in one transaction. So a line is never behind
// its items:
//
//	COMPONENTITEM#{item}  COMPONENTITEM                the item
//	COMPONENTITEM#{item}  EV#{version}                 its own events
//	COMPONENTS        #HEAD, {component}                     definitions; the head has their epoch
//	COMPONENTEPOCH#{part}  EPOCH                             the epoch once more, for new items
//	LINE#{component}  ready#{rank}#{first event}#{item}      it can be worked on
//	LINE#{component}  later#{not before}#{item}              likewise, from a time on
//	LINE#{component}  running#{until}#{item}                 it is being worked on
//	LINE#{component}  failed#{item}                          a person, or a change, must come first
//	LINE#{component}  count#{shard}                          how many items are at each
//
// A component polls its line: that costs calls for the items that it takes, however many there are.
//
// # How the parts work together
//
// judge.go decides whether a component can work on an item, fold.go what is known of the item by
// its events, place.go where it is in the lines: pure functions, all three. change.go writes an
// item with its event and its places; every change of an item goes through it. run.go has what is
// stored and passed on of a run. A Runner (runner.go) starts runs (runstart.go), hands out the items
// of a line (runfind.go, rundeal.go), works on them (runwork.go), records the results (runrecord.go)
// and ends the run (runend.go); its Tick is called every minute. People act on items (control.go,
// items.go, imports.go) and on components (apply.go, delete.go).
//
// # What always holds
//
//   - An item's row, its newest own event, and its rows in all lines are of one transaction.
//   - An own event is never changed or removed. What no longer counts is revoked by another event.
//   - A result is recorded only under a claim that is live, and in a lane that is open: a late
//     worker records none.
//   - At most one run of a component has the claim on an item; at most Instances runs of it are
//     going.
//   - Wake-ups and executions carry no truth: what is lost costs time, and Tick makes up for it.
//   - A line can be made again from the items, and an item from its events (Reconcile, Repair).
package component

import (
	"cmp"
	"context"
	"hash/fnv"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/registry"
)

// Item is what is known of an item: the fold of its events (see apply). It is stored as JSON in the
// item's row, so names of fields stay. Times are milliseconds since 1970.
type Item struct {
	ID string `json:"id"` // see ParseID

	// Types are sorted. Those of an item with a subject are the type of that.
	Types       []string       `json:"types,omitempty"`
	Parents     []envelope.Ref `json:"parents,omitempty"`
	Identifiers []string       `json:"identifiers,omitempty"`

	// Priority is 1 to 9, and 9 is first; 0 is the default (see Rank).
	Priority int `json:"priority"`

	// First is the time of its oldest event, by which items of one priority are in order.
	First int64 `json:"first"`

	// Version is the number of its newest own event, and Applied the subject's version up to which
	// the subject's events are known.
	Version int64 `json:"version"`
	Applied int64 `json:"applied"`

	// Marks are the newest events that are not revoked, by their names.
	Marks map[string]Mark `json:"marks,omitempty"`

	// Revoked are the numbers of own events up to which the events of a name do not count; Cleared
	// that up to which none does, because the item was forgotten.
	Revoked map[string]int64 `json:"revoked,omitempty"`
	Cleared int64            `json:"cleared,omitempty"`

	// Subject and Own are the newest change of the content in each sequence, and the newest by
	// another component than that one.
	Subject [2]Change `json:"subjectChanges"`
	Own     [2]Change `json:"ownChanges"`

	// Claims and Waits are by component. A claim that has ended stays until another is taken or a
	// person acts.
	Claims map[string]Claim `json:"claims,omitempty"`
	Waits  map[string]Wait  `json:"waits,omitempty"`

	// Forgotten: a person took it out of all lines. Its events stay, and its number goes on.
	Forgotten bool `json:"forgotten,omitempty"`
}

// State is an item, and where it is in the lines of the components.
type State struct {
	Item

	// Classes has one of Classes for each component that the item has something to do with.
	Classes map[string]string
}

// Mark is the newest event of a name. The newest is the one with the highest number, whatever the
// times say.
type Mark struct {
	ID      string       `json:"id"`      // of the event
	Version int64        `json:"version"` // in the sequence of the event's subject
	Outcome string       `json:"outcome"`
	At      int64        `json:"at"` // when it was registered
	BasedOn SeenVersions `json:"basedOn"`

	// Failures is how many events of the name in a row were failures, up to and with this one.
	Failures int            `json:"failures,omitempty"`
	Cause    envelope.Cause `json:"cause"` // of what happens because of the event
}

// MaxEventNames is how many names the events of an item can have that people register or
// import: an item's row has the newest event of each, and must stay below 400 KB.
const MaxEventNames = 100

// BasedOn says how much of an item was known when work began: the versions of the two sequences. A
// change with a higher number has come since, even within the same millisecond.
type SeenVersions struct {
	Subject int64 `json:"subject"`
	Item    int64 `json:"item"`
}

// Change is an event that changed the content of an item. Version 0: there was none.
type Change struct {
	Version   int64          `json:"version,omitempty"` // in its sequence
	Component string         `json:"component,omitempty"`
	Cause     envelope.Cause `json:"cause,omitzero"` // of what happens because of it
}

// Claim is the lease of a component on an item. Only the run that has it can record the result. It
// lasts as long as the work on one item may, so what a dead worker held is free in minutes.
type Claim struct {
	Run string `json:"run"`

	// ID is a new one each time, so that a run that has taken the item twice can tell its workers
	// apart. Until is the end of the lease.
	ID      string         `json:"id"`
	Until   int64          `json:"until"`
	Since   int64          `json:"since"`
	BasedOn SeenVersions   `json:"basedOn"`
	Cause   envelope.Cause `json:"cause,omitzero"`

	// Takes is how often the item was taken without a result, with this time.
	Takes int `json:"takes,omitempty"`
}

// Live reports whether the claim is held at a time, in milliseconds since 1970.
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
	KindCustom  = "item"
)

// subjects are the types of the subjects of items, by their kinds. A custom item has none.
var subjects = map[string]event.Type{
	KindObject:  event.Object,
	KindVersion: event.Version,
	KindBatch:   event.Batch,
}

// parents are the types that a parent can have.
var parents = []event.Type{event.Collection, event.Batch, event.Object, event.Version, event.Item}

// IDOf is the id of the item whose subject is s; "" if there are no items of its type. The item
// need not be there yet.
func IDOf(s envelope.Ref) string {
	for kind, of := range subjects {
		if of.String() == s.Type {
			return kind + ":" + s.ID
		}
	}
	return ""
}

// maxID is how long the id of an item may be, in bytes: it is part of sort keys, which have at most
// 1,024 bytes ("Service, account, and table quotas in Amazon DynamoDB").
const maxID = 400

// customIDs are ids of custom items: what can be pasted into a URL, a file name or a command.
var customIDs = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/@+=-]{0,199}$`)

// ParseID reads the id of an item: "object:ark:/99999/fk4x", "version:ark:/99999/fk4x/v3",
// "batch:01J…" or "item:delivery-17", and returns what is before the first colon, and what is
// behind it. An ARK alone is an object's. Another text is an Invalid. Whether there is such an item
// is not known by that.
func ParseID(id string) (kind, subject string, err error) {
	if strings.HasPrefix(id, "ark:") {
		id = KindObject + ":" + id
	}

	kind, subject, typed := strings.Cut(id, ":")
	if !typed { // the id of an item that was made by hand, without its kind
		kind, subject = KindCustom, id
	}

	switch {
	case len(id) > maxID || !utf8.ValidString(id):
		return "", "", fault.New(fault.Invalid,
			"item: the id has %d bytes; expected at most %d, of text", len(id), maxID)
	case kind == KindCustom && customIDs.MatchString(subject):
		return kind, subject, nil
	case kind == KindCustom:
		return "", "", fault.New(fault.Invalid,
			"item: %q: after item: expected 1 to 200 letters, digits and "+
				". _ : / @ + = -, beginning with a letter or digit", id)
	case subjects[kind] != event.Type{} && subject != "" &&
		!strings.ContainsFunc(subject, isControl):
		return kind, subject, nil
	}
	return "", "", fault.New(fault.Invalid,
		"item: %q: expected object:ARK, version:ARK/vN, batch:ID or item:ID", id)
}

func isControl(r rune) bool { return r <= ' ' || r == 0x7f }

// subjectOf is the subject that an item follows; ok is false for a custom item. The id must be one
// that ParseID has read.
func subjectOf(id string) (s event.Subject, ok bool) {
	kind, name, _ := strings.Cut(id, ":")
	of, ok := subjects[kind]
	return event.Subject{Type: of, ID: name}, ok
}

// itemSubject is the subject of an item's own events.
func itemSubject(id string) event.Subject { return event.Subject{Type: event.Item, ID: id} }

// shards is how many rows have a component's counts, and in how many parts the items are listed.
// One row of counts would be written with each change of any item, and conflict; the number is part
// of stored keys, and stays.
const shards = 16

// shard is the part of an item, by its id.
func shard(id string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(id))
	return h.Sum32() % shards
}

// Function is the work of a component: its runnable, in Go. It can be called with an item again
// after a crash, and must then make its effect once. An error is a failure of the item, except one
// of the kind fault.Unavailable: then nothing is recorded, and the item is worked on later. The
// context ends with the item's time-out; a function that does not return soon after it is a
// failure, and what it still does is not recorded.
type Function interface {
	Run(ctx context.Context, w Work) (Result, error)
}

// Work is one item to work on: what a function, or a runnable outside, is called with. It is JSON
// for the latter, so names of fields stay. Deadline is in milliseconds since 1970.
type Work struct {
	Component string `json:"component"`
	Version   int    `json:"version"` // of the definition
	Run       string `json:"run"`

	// Claim is unique to this call.
	Claim string `json:"claim"`
	Item  string `json:"item"`

	// Kind is object, version, batch or item, and Subject the id without it, e.g. an ARK.
	Kind    string         `json:"kind"`
	Subject string         `json:"subject"`
	Types   []string       `json:"types,omitempty"`
	Parents []envelope.Ref `json:"parents,omitempty"`
	BasedOn SeenVersions   `json:"basedOn"`
	Cause   envelope.Cause `json:"cause"`

	// Header is the cause as envelope.CauseHeader, for calls of the API. A runnable that sends it
	// keeps the chain of causes, so that components that change an item in turn come to an end.
	Header    string `json:"header"`
	Deadline  int64  `json:"deadline"`
	MaxResult int    `json:"maxResults"`
}

// Result is the result of the work. NotYet comes before Again, and both before Outcome.
type Result struct {
	// Outcome is event.Success unless set.
	Outcome string `json:"outcome,omitempty"`

	// NotYet: nothing is recorded, and the item is tried again later, after a wait that doubles up
	// to an hour.
	NotYet bool `json:"notYet,omitempty"`

	// Again: likewise, at once: a part of long work is done.
	Again bool `json:"again,omitempty"`

	// AgainAfter: likewise, if the item got an event of this name while it was worked on. Then there is work that the
	// function has perhaps not seen. "": none.
	AgainAfter string `json:"-"`

	// Changed: the content of the item was changed, so that components with it in old work on it
	// again.
	Changed bool   `json:"changed,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Report  Report `json:"report,omitzero"`
}

// Report is what a component found, in detail. It keeps at most maxResults entries (see Cut).
type Report struct {
	Entries []Entry `json:"entries,omitempty"`

	// Total counts all, also those that are not kept.
	Total int `json:"total,omitempty"`
}

// Entry is one finding. All but Type and Description can be empty. In PREMIS each is a line of the
// event's note.
type Entry struct {
	File        string `json:"file,omitempty"`
	Type        string `json:"type"` // of the finding, e.g. "checksum"
	Component   string `json:"component,omitempty"`
	Description string `json:"description"`
	Details     string `json:"details,omitempty"`
}

// By says who makes a change, and why.
type By = registry.By

// Rank is the priority of the item, 1 to 9; 5 unless a person has given it another.
func (it *Item) Rank() int { return cmp.Or(it.Priority, defaultPriority) }

// defaultPriority is in the middle of 1 to 9, so that items can be put before and behind all
// others.
const defaultPriority = 5

func millis(t time.Time) int64 { return t.UnixMilli() }

// after is a moment from now on, in seconds since 1970, as DynamoDB's expiry has it; now is in
// milliseconds.
func after(now int64, d time.Duration) int64 { return time.UnixMilli(now).Add(d).Unix() }

// clock is a time as it is shown.
func clock(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339) }

// cut shortens a text to at most so many bytes. It ends before a character that would be divided.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len("…")], "") + "…"
}

// Component is a component with its state. Paused in its definition is the present state, whatever
// was applied. Times are milliseconds since 1970.
type Component struct {
	Definition
	Created int64 `json:"created"`

	// Changed is when the definition, or whether it is paused, was last changed.
	Changed int64 `json:"changed"`

	// Backfill nil: the places of all items are as the definition says.
	Backfill *BackfillProgress `json:"fill,omitempty"`

	born int64 // of its rows of counts
}

// BackfillProgress is how far a back-fill is, which decides the places of all items again. One is for all
// components. Since is when it began, in milliseconds since 1970.
type BackfillProgress struct {
	// Shard is how many of the Of parts of the list of items are done.
	Shard int `json:"shard"`
	Of    int `json:"of"`

	// Items is how many were looked at.
	Items int64 `json:"items"`

	// Failed is how many could not be decided, because their row or an event is damaged.
	Failed int64 `json:"failed,omitempty"`
	Since  int64 `json:"since"`
}
