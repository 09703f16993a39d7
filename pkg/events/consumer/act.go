package consumer

import (
	"context"
	"fmt"
	"strings"

	"archivist/pkg/events/event"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/registry"
	"archivist/pkg/kernel/table"
)

// By says who makes a change, and why. A reason is required of every change but Apply; it is kept in the event.
type By = registry.By

// change is the detail of a consumer's event. It is stored for good, so its fields keep their
// names. Which of them are set follows from the type of the event.
type change struct {
	Reason     string      `json:"reason,omitempty"`
	Definition *Definition `json:"definition,omitempty"`
	Partition  string      `json:"partition,omitempty"`
	To         string      `json:"to,omitempty"`        // of a reset or skip
	Selection  string      `json:"selection,omitempty"` // of parked events
	Replay     string      `json:"replay,omitempty"`    // the id of one
	Into       string      `json:"into,omitempty"`
	Range      *Range      `json:"range,omitempty"`
	Failed     int64       `json:"failed,omitempty"` // of the events of a replay
}

// errUnchanged ends a change that would change nothing: then there is neither a write nor an event,
// and the call succeeds.
var errUnchanged = fmt.Errorf("consumer: nothing to change")

// act makes a change of a consumer with its event, in one transaction. decide returns the event's
// type and detail, and puts more rows into tx. It is called again, with a fresh row, if another
// change was first (a Stale); so it must not keep what it has computed from an earlier row. The
// same request again changes nothing.
//
// The errors are an Invalid for a missing reason, a NotFound for a consumer that is not there or is
// being deleted, an Unavailable after too many tries, and those of decide.
func (s *Store) act(ctx context.Context, name string, by By,
	decide func(tx *table.Tx, r *row) (eventType string, detail change, err error)) error {
	if err := by.Check(); err != nil {
		return err
	}
	return s.Table.Again(ctx, "consumer "+name, func() error {
		r, err := s.row(ctx, name)
		if err != nil {
			return err
		}
		done, err := r.Requests.Done(by)
		switch {
		case err != nil || done:
			return err
		case r.State != active:
			return missing(name)
		}
		return s.actOnce(ctx, &r, by, decide)
	})
}

// actOnce makes one try of act, on the row as it was read. A Stale means that it was not made,
// because a row of the transaction has changed since.
func (s *Store) actOnce(ctx context.Context, r *row, by By,
	decide func(tx *table.Tx, r *row) (eventType string, detail change, err error)) error {
	tx := s.Table.Begin(s.NewID())
	eventType, detail, err := decide(tx, r)
	if err == errUnchanged {
		return registry.Note(ctx, s.Table, s.NewID(), r, &r.Requests, by)
	}

	if err != nil {
		return err
	}

	if err := s.put(tx, r, eventType, by, detail); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// save writes a consumer's row with its definition and the event, and returns the consumer as it is
// then. A Stale means that another change was first: the caller reads the row again.
func (s *Store) save(ctx context.Context, r row, d Definition, eventType string,
	by By) (Consumer, error) {
	if err := r.set(d); err != nil {
		return Consumer{}, err
	}

	tx := s.Table.Begin(s.NewID())
	if err := s.put(tx, &r, eventType, by, change{Definition: &d}); err != nil {
		return Consumer{}, err
	}

	if err := tx.Commit(ctx); err != nil {
		return Consumer{}, err
	}
	return r.consumer()
}

// put puts a consumer's row into tx, with its next event. So a change is never without its event,
// and the numbers of the events have no gap: of two changes at once one fails on the row's
// revision.
func (s *Store) put(tx *table.Tx, r *row, eventType string, by By, detail change) error {
	detail.Reason = strings.TrimSpace(by.Reason)
	r.Number++
	r.Requests = r.Requests.With(by)
	tx.InsertOrSave(r)
	return event.Append(tx, subject(r.Name), r.Number, event.New{
		Type:        eventType,
		Time:        s.Now().UnixMilli(),
		Actor:       by.Actor,
		Component:   "consumers",
		Detail:      detail,
		Identifiers: []string{r.Name},
	})
}

// lostRace is nil for the error of a change that another call has made: what is written is the
// same, whoever writes it.
func lostRace(err error) error {
	if fault.Is(err, fault.Stale) {
		return nil
	}
	return err
}
