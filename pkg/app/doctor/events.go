package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"archivist/pkg/events/consumer"
	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/events/eventlog"
	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/views/history"
)

// lostHistory is what a person does about a missing or surplus event.
const lostHistory = "compare with a backup of the table (docs/restore.md): the history of the subject is damaged"

// subjectType is the type of subjects with a partition name, e.g. "JOB". It is the zero Type for
// a name that is none.
func subjectType(name string) event.Type {
	for _, t := range event.Types {
		if strings.ToUpper(t.String()) == name {
			return t
		}
	}
	return event.Type{}
}

// checkEvent checks that the event before this one exists: so there are no gaps. It checks the
// event's place in the log. The first event of a batch must have the batch's row, or those
// that follow say that it was deleted.
//
// By induction over all events, the numbers of a subject are then without gaps from 1, or
// from where those that expire begin.
func checkEvent(ctx context.Context, x *rowCheck) error {
	var e event.Row
	if !x.decode(&e) {
		return nil
	}

	name, id, _ := strings.Cut(x.PK, "#")
	s := subjectOf(subjectType(name), id)
	if event.Key(s, e.Version) != x.Key {
		x.add("event-key", lostHistory, nil,
			"the event has the number %d, which differs from its key", e.Version)
		return nil
	}

	if err := x.checkEventPlace(ctx, s, &e); err != nil {
		return err
	}

	if err := x.checkRecord(ctx, &e); err != nil {
		return err
	}

	if e.Version == 1 {
		return x.subjectExists(ctx, s)
	}
	return x.checkPrevious(ctx, s, &e)
}

// checkPrevious checks that the event before this one exists, and has an earlier place. The
// events of a subject are one partition in the order of their numbers, so the one before is
// usually the row before, without a read.
func (x *rowCheck) checkPrevious(ctx context.Context, s event.Subject, e *event.Row) error {
	var previous event.Row
	k := event.Key(s, e.Version-1)
	if x.before.Key == k && x.before.Decode(&previous) == nil && inOrder(&previous, e) {
		return nil
	}

	found, err := x.read(ctx, k, &previous)
	switch {
	case err != nil:
	case !found && !x.expired(s, e.Time):
		x.add("event-gap", lostHistory, nil, "there is event %d, but no event %d", e.Version,
			e.Version-1)
	case found && !inOrder(&previous, e):
		x.add("event-order", restoreLog, nil,
			"it has the place %d of %s, and the event before it has the place %d of "+
				"%q", e.Seq, e.Partition, previous.Seq, previous.Partition)
	}
	return err
}

// checkRecord checks that the record of an object has an event of the object, its versions or its items that the
// consumer of the record has passed. One that is missing is recorded: the row follows from the event alone.
func (x *rowCheck) checkRecord(ctx context.Context, row *event.Row) error {
	e, err := row.Envelope()
	if err != nil || e.Seq == 0 {
		return nil // others say so
	}

	k, kept, err := history.KeyOf(e)
	if err != nil || !kept || x.paired(k, &table.Head{}) {
		return nil
	}

	all, err := x.consumers(ctx)
	if err != nil || !all[history.Name].exists {
		return err
	}

	// The cursor first: what it has passed then is recorded.
	var cur consumerCursor
	if _, err := x.read(ctx, cursorKey(history.Name, e.Partition), &cur); err != nil {
		return err
	}

	missing, err := x.missing(ctx, k)
	if err != nil || !missing || e.Seq > cur.Seq {
		return err
	}

	x.add("record-event", "archivist doctor --repair", func(ctx context.Context) error {
		b := consumer.Batch{Consumer: history.Name, Events: []consumer.Item{{Event: e}}}
		failed, err := history.Recorder{Table: x.Queue.Table, NewID: x.Queue.NewID}.Handle(ctx, b)
		if err == nil && len(failed) > 0 {
			err = errors.New(failed[0].Reason)
		}
		return err
	}, "the record of the object does not have the event %s (%s)", e.ID, e.Type)
	return nil
}

// expires reports whether events of a type of subjects are removed after some time. Types of
// one subject may be kept for different times: one that is not permanent is enough, since it
// leaves gaps between the others.
func expires(of event.Type) bool {
	return slices.ContainsFunc(envelope.Kinds, func(k envelope.Kind) bool {
		return k.Subject == of.String() && k.Class != envelope.Permanent
	})
}

// expired reports whether events of a subject may have been removed that happened before a
// time. before is in milliseconds since 1970.
func (d Doctor) expired(s event.Subject, before int64) bool {
	return expires(s.Type) &&
		d.Queue.Now().Sub(time.UnixMilli(before)) > eventlog.DefaultRetention.Log
}

// missing reports whether there is no row with a key. An error other than that counts as not
// missing, so the caller checks it first.
func (d Doctor) missing(ctx context.Context, k table.Key) (bool, error) {
	_, err := d.Queue.Table.Raw(ctx, k)
	if fault.Is(err, fault.NotFound) {
		return true, nil
	}
	return false, err
}

// subjectExists checks that a batch with events has a row, unless it was deleted. Only
// batches are checked so: the events of other subjects outlive their rows, or their rows are
// never removed.
func (x *rowCheck) subjectExists(ctx context.Context, s event.Subject) error {
	if s.Type != event.Batch || x.before.PK == x.PK {
		return nil
	}

	missing, err := x.missing(ctx, s.Key())
	if err != nil || !missing {
		return err
	}

	last, err := x.lastState(ctx, s)
	if err != nil {
		return err
	}
	if last != string(ingest.BatchDeleted) {
		x.subject = "batch:" + s.ID
		x.add("batch-row", restoreRow, nil,
			"the batch has no row; by its events it is %s", last)
	}
	return nil
}

// recent is how many of the newest events are read to find the last change of state: those
// of mails name no state.
const recent = 20

// newest reads the newest events of a subject, the last first. It may be empty.
func (d Doctor) newest(ctx context.Context, s event.Subject) (rows []event.Row, err error) {
	query := table.Query{PK: s.Key().PK, Prefix: event.Prefix, Desc: true, Limit: recent}
	_, err = d.Queue.Table.Page(ctx, query, &rows)
	return rows, err
}

// lastState is the state in which a subject is by its events. It is "" if none of the newest
// events names a state, or there are none.
func (d Doctor) lastState(ctx context.Context, s event.Subject) (string, error) {
	rows, err := d.newest(ctx, s)
	return stateIn(rows), err
}

// stateIn is the state of the first change of state that some events name: jobs, batches and
// instances of tasks name it alike.
func stateIn(rows []event.Row) string {
	for _, e := range rows {
		var change struct{ To string }
		if json.Unmarshal([]byte(e.Detail), &change) == nil && change.To != "" {
			return change.To
		}
	}
	return ""
}

// history checks that the newest event of a subject has the row's version, and names its
// state ("" for a subject without states). The row before is often the newest event, since
// "EV#" sorts before the names of most rows; a query is made only otherwise.
func (x *rowCheck) history(ctx context.Context, s event.Subject, version int64,
	state string) error {
	var rows []event.Row
	var last event.Row
	if x.before.Key == event.Key(s, version) && x.before.Decode(&last) == nil {
		rows = []event.Row{last}
	}

	if len(rows) == 0 || state != "" && stateIn(rows) == "" {
		var err error
		rows, err = x.newest(ctx, s)
		if err != nil {
			return err
		}
	}

	found := int64(0)
	if len(rows) > 0 {
		found = rows[0].Version
	}

	if found != version {
		x.add("event-last", lostHistory, nil, "the row is at version %d, its newest event is %d",
			version, found)
		return nil
	}

	if to := stateIn(rows); state != "" && to != "" && to != state {
		x.add("event-state", lostHistory, nil, "the row is %s, by its newest event it is %s", state, to)
	}
	return nil
}

// checkCollection checks the history of a profile. A collection without a profile has no row,
// and is not checked.
func checkCollection(ctx context.Context, x *rowCheck) error {
	var row struct {
		table.Head
		Number int64 `dynamo:"version"`
	}

	if !x.decode(&row) {
		return nil
	}

	_, name, _ := strings.Cut(x.PK, "#")
	x.subject = "collection:" + name
	// Events by an earlier release are in a partition with the bare name, until they are moved.
	var moved []event.Row
	_, err := x.Queue.Table.Page(ctx, table.Query{PK: name, Prefix: event.Prefix, Limit: 1}, &moved)
	if err != nil || len(moved) > 0 {
		return err
	}
	return x.history(ctx, subjectOf(event.Collection, name), row.Number, "")
}
