package eventlog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// A staged transaction has events of more subjects than one transaction of the table holds. They
// are rows of a stage until one row, its marker, says that they are committed. Before that nobody
// sees any of them. After it all of them happen: each is appended as the next event of its
// subject, in the transaction that removes it from the stage. Whoever commits does that at once;
// the sweep finishes what it left, and removes stages that were not committed.

// Abandoned is the age at which a stage that was not committed is removed.
const Abandoned = 24 * time.Hour

// Staged is one event of a staged transaction. Its subject has a row with a version, or no row; the
// event gets the subject's next version when it happens.
type Staged struct {
	Subject event.Subject
	Event   event.New
}

// States of a stage.
const (
	stageOpen      = "open"
	stageCommitted = "committed"
	stageRemoved   = "removed" // it was abandoned
)

// marker is the row of a stage. Its place in the index "work" is when the sweep looks at it: a day
// after it was opened, or soon after it was committed. It is removed when no event of the stage is
// left.
type marker struct {
	table.Head
	State string `dynamo:"stage_state"`
	Count int    `dynamo:"event_count"`
}

// stagedRow is one event of a stage. Its sort key ends with its index in the transaction, with six
// digits.
type stagedRow struct {
	table.Head
	SubjectType string `dynamo:"subject_type"`
	SubjectID   string `dynamo:"subject_id"`

	// Event and Origin are JSON: the event as its writer described it, and what the call knew about
	// its changes.
	Event  string `dynamo:"event_json"`
	Origin string `dynamo:"origin_json"`
}

const (
	stagePlace     = "staged" // the partition of the index "work"
	stagePrefix    = "STAGE#"
	stageSK        = "STAGE"
	stageRowPrefix = "EVENT#"
	stageTries     = 10 // of an event whose subject others change
)

func (m *marker) id() string { return strings.TrimPrefix(m.PK, stagePrefix) }

// due puts the marker into the index, where the sweep finds it at a time.
func (m *marker) due(at time.Time) {
	m.WorkPK, m.WorkSK = stagePlace,
		event.UnplacedAt(at.UnixMilli())
}

// marker reads the row of a stage. One that is not there is a NotFound, beside which it is ready to
// be inserted.
func (l *Log) marker(ctx context.Context, id string) (*marker, error) {
	m := &marker{Head: table.Head{PK: stagePrefix + id, SK: stageSK}}
	return m, l.Table.Get(ctx, m.Key(), m)
}

// Stage stores events that happen together, in this order, if CommitStage is called with the same
// id. Called again, it continues what was interrupted; the events must be the same. An id that was
// committed or removed is a Conflict.
func (l *Log) Stage(ctx context.Context, id string, all []Staged) error {
	m, err := l.openStage(ctx, id, len(all))
	if err != nil {
		return err
	}

	if m.State != stageOpen || m.Count != len(all) {
		return fault.New(fault.Conflict, "the stage %s is %s, with %d events", id, m.State, m.Count)
	}

	origin, err := json.Marshal(event.OriginOf(ctx))
	if err != nil {
		return err
	}

	for i, s := range all {
		if err := l.stageOne(ctx, m, i, s, string(origin)); err != nil {
			return err
		}
	}
	return nil
}

// openStage reads the marker of a stage, or makes it.
func (l *Log) openStage(ctx context.Context, id string, count int) (*marker, error) {
	m, err := l.marker(ctx, id)
	if !fault.Is(err, fault.NotFound) {
		return m, err
	}

	m.State, m.Count = stageOpen, count
	m.due(l.Now().Add(Abandoned))
	tx := l.Table.Begin(l.NewID())
	tx.Insert(m)
	return m, tx.Commit(ctx)
}

// stageOne stores event number i of a stage, if it is not stored. The condition on the marker keeps
// a late call from adding to a stage that was committed or removed.
func (l *Log) stageOne(ctx context.Context, m *marker, i int, s Staged, origin string) error {
	// What is accepted can always be appended later.
	if err := event.Append(l.Table.Begin("check"), s.Subject, 1, s.Event); err != nil {
		return err
	}

	text, err := json.Marshal(s.Event)
	if err != nil {
		return err
	}

	tx := l.Table.Begin(l.NewID())
	tx.Insert(&stagedRow{
		Head:        table.Head{PK: m.PK, SK: fmt.Sprintf("%s%06d", stageRowPrefix, i)},
		SubjectType: s.Subject.Type.String(),
		SubjectID:   s.Subject.ID,
		Event:       string(text),
		Origin:      origin,
	})

	tx.Require(m.Key(), "stage_state = ?", stageOpen)
	err = tx.Commit(ctx)
	var failed *table.ConditionError
	if errors.As(err, &failed) && !failed.Failed(m.Key()) {
		return nil // a call before has stored it
	}
	return err
}

// CommitStage makes the events of a stage happen: all of them, even if this process dies. Called
// again, it goes on. A stage that is not known is a NotFound: it has happened completely, was
// removed, or never was. A Conflict means that not all of its events are stored yet. After the
// marker says committed there is no way back.
func (l *Log) CommitStage(ctx context.Context, id string) error {
	m, err := l.marker(ctx, id)
	if err != nil {
		return err
	}

	if m.State == stageRemoved {
		return fault.New(fault.NotFound,
			"the stage %s was not committed in time, and is removed", id)
	}

	if m.State == stageOpen {
		if err := l.complete(ctx, m); err != nil {
			return err
		}
		m.State = stageCommitted
		m.due(l.Now().Add(Grace))
		if err := l.saveMarker(ctx, m); err != nil {
			return err
		}
	}
	return l.finishStage(ctx, m)
}

// complete checks that all events of a stage are stored. They are stored in their order, so the
// last one tells.
func (l *Log) complete(ctx context.Context, m *marker) error {
	err := l.Table.Get(ctx,
		table.Key{PK: m.PK, SK: fmt.Sprintf("%s%06d", stageRowPrefix, m.Count-1)}, &stagedRow{})
	if fault.Is(err, fault.NotFound) {
		return fault.New(fault.Conflict, "the stage %s does not have all of its %d events yet",
			m.id(), m.Count)
	}
	return err
}

// saveMarker writes a marker on the condition that it is as it was read: of two that commit and
// remove a stage, one wins.
func (l *Log) saveMarker(ctx context.Context, m *marker) error {
	tx := l.Table.Begin(l.NewID())
	tx.Save(m)
	return tx.Commit(ctx)
}

// finishStage appends the events of a committed stage that are left, then removes the stage; or it
// removes one that was abandoned. Each event is taken off the stage by the transaction that appends
// it, so a crash repeats none.
func (l *Log) finishStage(ctx context.Context, m *marker) error {
	for {
		var rows []stagedRow
		if _, err := l.Table.Page(ctx, table.Query{PK: m.PK, Prefix: stageRowPrefix},
			&rows); err != nil {
			return err
		}

		if len(rows) == 0 {
			return l.drop(ctx, m)
		}

		for _, r := range rows {
			var err error
			if m.State == stageCommitted {
				err = l.happen(ctx, m, r)
			} else {
				err = l.drop(ctx, &r)
			}
			if err != nil {
				return err
			}
		}
	}
}

// happen appends one event of a stage, and removes it from the stage. If another call has removed
// it, it has happened. If the subject was changed meanwhile, the version is decided again; after
// stageTries the Stale is returned, and the sweep goes on.
func (l *Log) happen(ctx context.Context, m *marker, r stagedRow) error {
	var e event.New
	var origin event.Origin
	err := errors.Join(json.Unmarshal([]byte(r.Event), &e),
		json.Unmarshal([]byte(r.Origin), &origin))
	if err != nil {
		return err
	}

	s, err := event.Row{SubjectType: r.SubjectType, SubjectID: r.SubjectID}.Subject()
	if err != nil {
		return err
	}

	index, err := strconv.Atoi(strings.TrimPrefix(r.SK, stageRowPrefix))
	if err != nil {
		return err
	}

	origin.Staged = envelope.Transaction{ID: m.id(), Index: index, Count: m.Count}
	for try := 1; ; try++ {
		tx := l.Table.Begin(l.NewID())
		version, err := l.nextVersion(ctx, tx, s)
		if err != nil {
			return err
		}

		if err := event.Append(tx, s, version, e); err != nil {
			return err
		}

		tx.Remove(&r)
		err = tx.Commit(event.From(ctx, origin))
		var failed *table.ConditionError
		switch {
		case errors.As(err, &failed) && failed.Failed(r.Key()):
			return nil // another has done it
		case !fault.Is(err, fault.Stale) || try == stageTries:
			return err
		}
	}
}

// nextVersion is the version of the next event of a subject. If the subject has a row, it puts the
// new version there. Its event is the fence: another change of the subject has written that
// version.
func (l *Log) nextVersion(ctx context.Context, tx *table.Tx, s event.Subject) (int64, error) {
	var row struct {
		table.Head
		Version int64 `dynamo:"version"`
	}

	err := l.Table.Get(ctx, s.Key(), &row)
	if fault.Is(err, fault.NotFound) {
		return l.afterNewest(ctx, s)
	}

	if err != nil {
		return 0, err
	}
	tx.Count(s.Key(), map[string]int64{"version": 1})
	return row.Version + 1, nil
}

// afterNewest is the version after that of the newest event of a subject that has no row; 1 if it
// has no event.
func (l *Log) afterNewest(ctx context.Context, s event.Subject) (int64, error) {
	var newest []event.Row
	_, err := l.Table.Page(ctx, table.Query{
		PK:     s.Key().PK,
		Prefix: event.Prefix,
		Desc:   true,
		Limit:  1,
	}, &newest)
	if err != nil || len(newest) == 0 {
		return 1, err
	}
	return newest[0].Version + 1, nil
}

// sweepStages finishes committed stages that were interrupted, and removes those that were
// abandoned, until the time is over. One that fails does not stop the others.
func (l *Log) sweepStages(ctx context.Context, until time.Time) error {
	var due []marker
	q := table.Query{
		Index: "work",
		PK:    stagePlace,
		From:  "0",
		To:    event.UnplacedAt(l.Now().UnixMilli()),
	}

	if _, err := l.Table.Page(ctx, q, &due); err != nil {
		return err
	}

	var errs []error
	for _, found := range due {
		if !l.Now().Before(until) {
			break
		}
		if err := l.sweepStage(ctx, found.id()); err != nil && !fault.Is(err, fault.NotFound) {
			errs = append(errs, fmt.Errorf("eventlog: the stage %s: %w", found.id(), err))
		}
	}
	return errors.Join(errs...)
}

// sweepStage does what is due of one stage. A removal is written first, so that a late CommitStage
// finds it.
func (l *Log) sweepStage(ctx context.Context, id string) error {
	m, err := l.marker(ctx, id)
	if err != nil || m.WorkSK > event.UnplacedAt(l.Now().UnixMilli()) { // the index lags
		return err
	}

	if m.State == stageOpen {
		m.State = stageRemoved
		if err := l.saveMarker(ctx, m); err != nil {
			return err
		}
	}
	return l.finishStage(ctx, m)
}
