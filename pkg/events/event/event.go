// Package event records what happened to a subject: a batch, a job, an object, or another of Types.
//
// An event is a row, written by the transaction that changes its subject, so there is
// neither a change without its event nor an event without its change. Its version is the
// number that the subject's row has after the change: the versions of a subject have no
// gaps, and two writers cannot both write the next one. So the event also proves the
// commit: a writer that got no answer reads which transaction wrote the event.
//
//	tx := table.Begin(newID())
//	row.Version++
//	tx.Save(&row)
//	err := event.Append(tx, event.Subject{Type: event.Job, ID: row.ID}, row.Version,
//		event.New{Type: "job.state", Time: now, Component: "download"})
//	…
//	err = tx.Commit(ctx)
//
// Events are kept after the rows of their subject are removed; for how long, depends on their kind (package eventlog).
package event

import (
	"cmp"
	"context"
	"fmt"

	"archivist/pkg/events/envelope"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// Outcomes of what happened.
const (
	Success = "success"
	Failure = "failure"
)

// New is an event as its writer describes it. What the writer cannot know follows from the context
// (Origin), the type and the transaction.
type New struct {
	Type      string // dotted, e.g. "job.state"
	Time      int64  // milliseconds since 1970
	Outcome   string // Success unless set
	Detail    any    // marshalled to JSON; at most MaxDetail
	Actor     string // the person or account that caused the event
	Component string // the part of the system that made the change

	Objects []envelope.Ref // others acted upon, each with its role

	// Parents are the containers, the outermost first; a collection among them decides the log.
	Parents     []envelope.Ref
	Identifiers []string // all by which the subject is known

	// Before and After are properties of the subject by name, marshalled to JSON. The event has
	// those that differ.
	Before any
	After  any
}

// Origin is what a call knows about the changes that it makes: the software that runs, the request
// of a person, and the event that caused the call. It is in the context, so that code between the
// edge and the change need not pass it on.
type Origin struct {
	Version string            // of the software
	Modules []envelope.Module // that took part
	Request string
	Cause   envelope.Cause

	// Staged is the transaction of an event that was staged before. Package eventlog sets it.
	Staged envelope.Transaction
}

// originKey is the key of the Origin in a context.
type originKey struct{}

// From returns a context whose events have that origin.
func From(ctx context.Context, o Origin) context.Context {
	return context.WithValue(ctx, originKey{}, o)
}

// OriginOf is the origin of the events of a call.
func OriginOf(ctx context.Context) Origin {
	o, _ := ctx.Value(originKey{}).(Origin)
	return o
}

// Prefix begins the sort keys of events.
const Prefix = "EV#"

// Key of the subject's event of that version. Twelve digits sort as numbers do.
func Key(s Subject, version int64) table.Key {
	return table.Key{PK: s.Key().PK, SK: fmt.Sprintf("%s%012d", Prefix, version)}
}

// MaxDetail limits the detail of an event, and what it says of before and after, each, in bytes of
// JSON. What is larger is stored elsewhere, and named by the event: rows have at most 400 KB, and
// transactions 4 MB.
const MaxDetail = 64 << 10

// Append puts the event of the subject's next version into the transaction, and makes it the proof
// of the commit. version is the version of the subject's row in the same transaction. A commit is
// Stale if the subject has an event of that version already. An event of a type that is not in
// envelope.Kinds is refused, and one whose detail is too large is an Invalid. The index in the
// transaction, and the origin, are known at the commit: so the row is composed there.
func Append(tx *table.Tx, s Subject, version int64, e New) error {
	if err := s.check(); err != nil {
		return err
	}

	row, err := e.row(s, version)
	if err != nil {
		return err
	}

	// Where it waits for its place does not depend on the commit.
	row.wait()
	tx.Later(func(ctx context.Context, index, count int) {
		row.Tx, row.ID = tx.ID(), fmt.Sprintf("%s.%d", tx.ID(), index)
		o := OriginOf(ctx)
		row.Software, row.Modules, row.Request, row.Cause = o.Version, o.Modules, o.Request, o.Cause
		row.TxIndex, row.TxCount = index, count
		if o.Staged.Count > 0 {
			row.Tx, row.TxIndex, row.TxCount = o.Staged.ID, o.Staged.Index, o.Staged.Count
			row.ID = fmt.Sprintf("%s.%d", row.Tx, row.TxIndex)
		}
		tx.Insert(row)
	})

	tx.Prove(row.Key())
	return nil
}

// row is the row of an event, without its origin and its place in the transaction. Its schema is
// the newest of its type.
func (e New) row(s Subject, version int64) (*Row, error) {
	kind, err := e.kind(s.Type)
	if err != nil {
		return nil, err
	}

	detail, err := marshal(e.Detail)
	if err != nil {
		return nil, fmt.Errorf("event: detail of %s: %w", e.Type, err)
	}

	before, after, err := changed(e.Before, e.After)
	if err != nil {
		return nil, fmt.Errorf("event: before and after of %s: %w", e.Type, err)
	}

	if size := max(len(detail), len(before), len(after)); size > MaxDetail {
		return nil, fault.New(fault.Invalid,
			"event: the detail of %s has %d bytes; at most %d are allowed", e.Type,
			size, MaxDetail)
	}

	k := Key(s, version)
	return &Row{
		Head:        table.Head{PK: k.PK, SK: k.SK},
		SubjectType: s.Type.String(),
		SubjectID:   s.ID,
		Version:     version,
		Type:        e.Type,
		Time:        e.Time,
		Outcome:     cmp.Or(e.Outcome, Success),
		Detail:      detail,
		Actor:       e.Actor,
		Component:   e.Component,
		Schema:      kind.Schema,
		Objects:     e.Objects,
		Parents:     e.Parents,
		Identifiers: e.Identifiers,
		Before:      before,
		After:       after,
	}, nil
}

// kind is the kind of an event that is written about a type of subjects. An unknown type, or one of
// other subjects, is a defect of the caller, so its error has no kind.
func (e New) kind(of Type) (envelope.Kind, error) {
	kind, known := envelope.KindOf(e.Type)
	switch {
	case !known:
		return kind, fmt.Errorf("event: there is no type of events %q; add it to envelope.Kinds",
			e.Type)
	case kind.Subject != of.name:
		return kind, fmt.Errorf("event: %s is about a %s, not a %s", e.Type, kind.Subject, of)
	}
	return kind, nil
}

// Page lists a subject's events, oldest first, a page at a time; cursor is that of the page before,
// "" at the beginning, and the one that is returned is "" at the end. A subject without events has
// an empty page.
func Page(ctx context.Context, t *table.Table, s Subject, cursor string) ([]Row, string, error) {
	if err := s.check(); err != nil {
		return nil, "", err
	}
	var rows []Row
	next, err := t.Page(ctx, table.Query{PK: s.Key().PK, Prefix: Prefix, Cursor: cursor}, &rows)
	return rows, next, err
}
