package check

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/guregu/dynamo/v2"

	"archivist/pkg/events/event"
	"archivist/pkg/kernel/table"
)

const unreadable = "unreadable"

// Unreadable is the problem of something that cannot be checked because what belongs to it cannot be read.
func Unreadable(subject string, err error) Problem {
	return Problem{
		Invariant: unreadable,
		Subject:   subject,
		Command:   Restore,
		Evidence:  "it could not be checked: " + err.Error(),
	}
}

// Row is the check of one row. It is used by one goroutine, and thrown away after each try.
type Row struct {
	*Page
	table.Raw
	// Before is the row that the scan returned before this one, or empty. It may be of another partition, and may be
	// older than the row; it saves a read if it is the one that is needed: rows of a partition come together, in the
	// order of their sort keys.
	Before   table.Raw
	Subject  string // of the problems, the key if it is ""
	Problems []Problem
	// Rest is what a rule still has to do, as JSON: the next page goes on with this row, and has it as From.
	Rest, From json.RawMessage
}

// Writing tells the writes of a row apart: also those of a row that was removed and made
// again. The place of an event leaves its row's revision. Amend, by which the relay gives an
// event its place, leaves rev and id as they are.
type Writing struct {
	Rev   int64  `dynamo:"rev"`
	TxID  string `dynamo:"wid"`
	Place int64  `dynamo:"log_seq"`
}

// Written is the newest write of the row.
func (x *Row) Written() Writing { return WrittenOf(x.Raw) }

// WrittenOf is the newest write of a row.
func WrittenOf(row table.Raw) (w Writing) {
	_ = dynamo.UnmarshalItem(row.Item, &w) // zero: rows are compared with themselves
	return w
}

// Add adds a problem. Without a repair, command says what a person has to do.
func (x *Row) Add(invariant, command string, repair func(context.Context) error, evidence string, args ...any) {
	one := Problem{Invariant: invariant, Subject: x.Subject, Command: command, Repair: repair,
		Evidence: fmt.Sprintf(evidence, args...)}
	if one.Subject == "" {
		one.Subject = x.Key.String()
	}
	x.Problems = append(x.Problems, one)
}

// ID is the part of the partition behind the kind.
func (x *Row) ID() string {
	_, id, _ := strings.Cut(x.PK, "#")
	return id
}

// Into decodes the row. A row that cannot be read is a problem, and false is returned.
func (x *Row) Into(row any) bool {
	err := x.Decode(row)
	if err != nil {
		x.Problems = append(x.Problems, Unreadable(x.Key.String(), err))
	}
	return err == nil
}

// History checks that the newest event of a subject has the row's version, and names its state ("" for a subject
// without states). The row before is often the newest event, since "EV#" sorts before the names of most rows; a query
// is made only otherwise.
func (x *Row) History(ctx context.Context, s event.Subject, version int64, state string) error {
	var rows []event.Row
	var last event.Row
	if x.Before.Key == event.Key(s, version) && x.Before.Decode(&last) == nil {
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
		x.Add("event-last", LostHistory, nil, "the row is at version %d, its newest event is %d", version, found)
		return nil
	}

	if to := stateIn(rows); state != "" && to != "" && to != state {
		x.Add("event-state", LostHistory, nil, "the row is %s, by its newest event it is %s", state, to)
	}
	return nil
}

// LostHistory is what a person does about a missing or surplus event.
const LostHistory = "compare with a backup of the table (docs/restore.md): the history of the subject is damaged"

// Numbered checks the history of a subject by the number of its newest event in the row, of which nothing else is
// read. The subject has the id of the row's partition.
func (x *Row) Numbered(ctx context.Context, of event.Type) error {
	var row struct {
		table.Head
		Number int64 `dynamo:"version"`
	}
	if !x.Into(&row) {
		return nil
	}
	return x.History(ctx, event.Subject{Type: of, ID: x.ID()}, row.Number, "")
}

// Placed compares a row's places in the indexes with those that it should have. save saves the row as it should be;
// nil: it is not repaired now, e.g. since a worker has its lease. is and should are heads of the same row, so they
// differ in places only: they follow from the row's state, and each write derives them.
func (x *Row) Placed(is, should table.Head, save func(tx *table.Tx)) {
	if is == should {
		return
	}

	var repair func(ctx context.Context) error
	if save != nil {
		repair = func(ctx context.Context) error {
			return x.Commit(ctx, func(tx *table.Tx) error { save(tx); return nil })
		}
	}

	x.Add("index-place", "", repair, "the row is at %q %q of the index work and at %q %q of the index list; "+
		"its places are %q %q and %q %q", is.WorkPK, is.WorkSK, is.ListPK, is.ListSK, should.WorkPK, should.WorkSK,
		should.ListPK, should.ListSK)
}

// Making is the repair that writes rows which follow from another one, on the condition that it is the same: they were
// derived from that.
func (x *Row) Making(of *table.Head, put func(tx *table.Tx)) func(context.Context) error {
	return func(ctx context.Context) error {
		return x.Commit(ctx, func(tx *table.Tx) error {
			put(tx)
			tx.Require(of.Key(), "rev = ?", of.Rev)
			return nil
		})
	}
}

// Removing is the repair that removes the row, if it is the same. others are rows that must not exist.
func (x *Row) Removing(others ...table.Key) func(context.Context) error {
	return func(ctx context.Context) error {
		var head table.Head
		err := x.Decode(&head)
		if err != nil {
			return err
		}
		return x.Commit(ctx, func(tx *table.Tx) error {
			tx.Remove(&head)
			for _, k := range others {
				tx.Require(k, "attribute_not_exists(pk)")
			}
			return nil
		})
	}
}

// Setting is the repair that sets attributes of the row, unless it has changed. Two attributes of one row that are
// wrong need two runs: the first repair raises the rev.
func (x *Row) Setting(rev int64, set func(u *dynamo.Update)) func(context.Context) error {
	return func(ctx context.Context) error {
		return x.Table.Change(ctx, x.Key, x.NewID(), func(u *dynamo.Update) {
			set(u)
			u.If("rev = ?", rev)
		}, &table.Head{})
	}
}

// Owns checks that an owner has its row at a place that follows from the owner alone. of is the head of the owner's
// row. One that is missing is made on the condition that the owner is the same; also is put with it, nil: nothing.
// One of another is not touched: the rule of that row says what is wrong with it.
func (x *Row) Owns(ctx context.Context, rule string, of *table.Head, owner string, place table.Key,
	also func(tx *table.Tx)) error {
	var there table.Owned
	found, err := x.Read(ctx, place, &there)
	switch {
	case err != nil || there.Owner == owner:
		return err
	case found:
		x.Add(rule, Restore, nil, "its row %s is of %s", place, there.Owner)
		return nil
	}

	x.Add(rule, Repair, x.Making(of, func(tx *table.Tx) {
		tx.Insert(table.OwnedAt(owner, place)[0])
		if also != nil {
			also(tx)
		}
	}), "its row %s is missing", place)
	return nil
}
