package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/guregu/dynamo/v2"

	"archivist/pkg/event"
	"archivist/pkg/lease"
	"archivist/pkg/table"
)

// consumerCursor is how far a consumer has come in a partition of the log.
type consumerCursor struct {
	table.Head
	lease.On
	Seq     int64 `dynamo:"seq"`
	Woken   int64 `dynamo:"woken_ms"`
	Parked  int64 `dynamo:"parked"`
	Pending int64 `dynamo:"pending"`

	Reset string `dynamo:"reset_id"` // a person has put it back, at least once
}

// kept is a row of events that are parked, or wait until their key is quiet.
type kept struct {
	table.Head
	Refs []struct {
		Seq         int64  `dynamo:"seq"`
		SubjectType string `dynamo:"subject_type"`
		SubjectID   string `dynamo:"subject_id"`
		Version     int64  `dynamo:"version"`
	} `dynamo:"refs"`
	Due int64 `dynamo:"due_ms"`
}

// checkCursor checks that a cursor is not beyond its partition, counts what it keeps, and
// is not forgotten.
func checkCursor(ctx context.Context, x *rowCheck) error {
	var cur consumerCursor
	if !x.decode(&cur) {
		return nil
	}
	name, partition := strings.TrimPrefix(x.PK, "CONSUMER#"), strings.TrimPrefix(x.SK, "CURSOR#")
	var head logHead
	if _, err := x.read(ctx, headKey(partition), &head); err != nil {
		return err
	}
	if cur.Seq > head.Last {
		x.add("cursor-beyond", "archivist consumer reset "+name, nil, "the cursor is at %d of %s, the head is at %d",
			cur.Seq, partition, head.Last)
	}
	exists, runs, err := x.consumer(ctx, name)
	if err != nil {
		return err
	}
	if !exists {
		x.add("cursor-consumer", restoreRow, nil, "the consumer %s does not exist", name)
		return nil
	}
	if runs && cur.Woken > 0 && !cur.Live(x.Queue.Now()) && x.late(cur.Woken, "") {
		x.add("overdue", "archivist consumer show "+name, nil, "it was woken at %d, and has not run", cur.Woken)
	}
	return x.counts(ctx, &cur, name+"#"+partition)
}

// consumer reports whether a consumer exists, and is not paused.
func (d Doctor) consumer(ctx context.Context, name string) (exists, runs bool, err error) {
	var row struct {
		table.Head
		Text  string `dynamo:"definition_json"`
		State string `dynamo:"consumer_state"`
	}
	exists, err = d.read(ctx, table.Key{PK: "CONSUMERS", SK: name}, &row)
	var definition struct {
		Paused bool `json:"paused"`
	}
	_ = json.Unmarshal([]byte(row.Text), &definition) // one that cannot be read is not paused
	return exists, exists && row.State == "active" && !definition.Paused, err
}

// counts checks the numbers of rows that a cursor says it keeps: a run does not read them if
// a number is 0.
func (x *rowCheck) counts(ctx context.Context, cur *consumerCursor, of string) error {
	for attribute, says := range map[string]int64{"parked": cur.Parked, "pending": cur.Pending} {
		is, err := x.rows(ctx, strings.ToUpper(attribute)+"#"+of)
		if err != nil {
			return err
		}
		if is == says {
			continue
		}
		var repair func(context.Context) error
		if !cur.Live(x.Queue.Now()) { // a run would lose its lease
			repair = x.setNumber(cur.Rev, attribute, is)
		}
		x.add("cursor-counts", "", repair, "the cursor counts %d rows that are %s, there are %d", says, attribute, is)
	}
	return nil
}

// rows counts the rows of a partition of the table.
func (d Doctor) rows(ctx context.Context, pk string) (n int64, err error) {
	query := table.Query{PK: pk}
	for {
		var rows []table.Head
		query.Cursor, err = d.Queue.Table.Page(ctx, query, &rows)
		n += int64(len(rows))
		if err != nil || query.Cursor == "" {
			return n, err
		}
	}
}

// checkParked checks that parked events were passed by the cursor, and exist.
func checkParked(ctx context.Context, x *rowCheck) error {
	var row kept
	if !x.decode(&row) {
		return nil
	}
	_, err := x.keeps(ctx, &row)
	return err
}

// checkPending checks that events that wait until their key is quiet were passed by the
// cursor, exist, and are found when they are due.
func checkPending(ctx context.Context, x *rowCheck) error {
	var row kept
	if !x.decode(&row) {
		return nil
	}
	name, err := x.keeps(ctx, &row)
	if err != nil {
		return err
	}
	should := row.Head
	should.WorkPK, should.WorkSK = "quiet#"+strings.TrimPrefix(x.PK, "PENDING#"), fmt.Sprintf("%013d", row.Due)
	if row.Head != should {
		x.add("index-place", "", x.moves(should), "the row is at %q %q of the index work, and should be at %q %q",
			row.WorkPK, row.WorkSK, should.WorkPK, should.WorkSK)
	}
	_, runs, err := x.consumer(ctx, name)
	if runs && x.late(row.Due, "") {
		x.add("overdue", "archivist consumer show "+name, nil, "its key is due since %d", row.Due)
	}
	return err
}

// moves puts the row at its place in the index work, unless it has changed.
func (x *rowCheck) moves(to table.Head) func(context.Context) error {
	return func(ctx context.Context) error {
		return x.Queue.Table.Change(ctx, x.Key, x.Queue.NewID(), func(u *dynamo.Update) {
			u.Set("place", to.WorkPK).Set("ranking", to.WorkSK).If("rev = ?", to.Rev)
		}, &table.Head{})
	}
}

// keeps checks the events of a row, and returns the name of its consumer.
func (x *rowCheck) keeps(ctx context.Context, row *kept) (name string, err error) {
	_, rest, _ := strings.Cut(x.PK, "#")
	name, partition, _ := strings.Cut(rest, "#")
	var cur consumerCursor
	if _, err := x.read(ctx, table.Key{PK: "CONSUMER#" + name, SK: "CURSOR#" + partition}, &cur); err != nil {
		return name, err
	}
	for _, ref := range row.Refs {
		if ref.Seq > cur.Seq && cur.Reset == "" {
			x.add("kept-cursor", "archivist consumer show "+name, nil,
				"it keeps event %d, and the cursor is at %d: the event will be handled out of its order",
				ref.Seq, cur.Seq)
			return name, nil
		}
		s := subjectOf(subjectType(strings.ToUpper(ref.SubjectType)), ref.SubjectID)
		missing, err := x.missing(ctx, event.Key(s, ref.Version))
		if err != nil {
			return name, err
		}
		if missing {
			x.add("kept-event", "archivist consumer redrive "+name, nil,
				"it keeps %s %s, version %d, which does not exist",
				ref.SubjectType, ref.SubjectID, ref.Version)
		}
	}
	return name, nil
}
