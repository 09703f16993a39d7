package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/guregu/dynamo/v2"

	"archivist/pkg/events/consumer"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/lease"
	"archivist/pkg/kernel/table"
)

// consumerCursor is how far a consumer has come in a partition of the log. Only what is
// checked is read; package consumer writes the row.
type consumerCursor struct {
	table.Head
	lease.On
	// Seq is the last place whose event was handled, parked or passed by. Woken is when the
	// consumer was last woken and has not run since (0: it has), Moved when the cursor last
	// moved; both in milliseconds since 1970. Parked and Pending count the consumer's rows of
	// this partition.
	Seq     int64 `dynamo:"seq"`
	Woken   int64 `dynamo:"woken_ms"`
	Moved   int64 `dynamo:"moved_ms"`
	Parked  int64 `dynamo:"parked"`
	Pending int64 `dynamo:"pending"`

	Reset string `dynamo:"reset_id"` // a person has put it back, at least once

	// Files is set while files of the version after Seq are being handled.
	Files struct {
		Event struct {
			Seq int64 `dynamo:"seq"`
		} `dynamo:"event"`
	} `dynamo:"files_of"`
}

// begun is the last event that is handled, or whose files are being handled. Files of that
// version can be parked while the cursor is still before it.
func (c *consumerCursor) begun() int64 { return max(c.Seq, c.Files.Event.Seq) }

// kept is a row of events that are parked, or wait until their key is quiet. Refs are in the
// order of the log. Due is when the key is quiet, Since and Began are when the row was made:
// milliseconds since 1970.
type kept struct {
	table.Head
	Refs []struct {
		Seq         int64  `dynamo:"seq"`
		SubjectType string `dynamo:"subject_type"`
		SubjectID   string `dynamo:"subject_id"`
		Version     int64  `dynamo:"version"`
	} `dynamo:"refs"`
	Due   int64 `dynamo:"due_ms"`
	Since int64 `dynamo:"since_ms"` // of parked ones
	Began int64 `dynamo:"began_ms"` // of waiting ones
}

// A replay has cursors of its own, under the consumer's name, "~" and the replay's id.
func cursorKey(consumer, partition string) table.Key {
	return table.Key{PK: "CONSUMER#" + consumer, SK: "CURSOR#" + partition}
}

// checkCursor checks that a cursor is not beyond its partition, counts what it keeps, and is
// not forgotten. A cursor beyond the head comes from a restore: what is placed there again
// would be skipped.
func checkCursor(ctx context.Context, x *rowCheck) error {
	var cur consumerCursor
	if !x.decode(&cur) {
		return nil
	}

	name, partition := strings.TrimPrefix(x.PK, "CONSUMER#"), strings.TrimPrefix(x.SK, "CURSOR#")
	if replay, is := replayOf(name); is {
		return x.ofReplay(ctx, replay)
	}

	var head logHead
	if _, err := x.read(ctx, headKey(partition), &head); err != nil {
		return err
	}

	if cur.Seq > head.Last {
		x.add("cursor-beyond", "archivist consumer reset "+name, nil,
			"the cursor is at %d of %s, the head is at %d",
			cur.Seq, partition, head.Last)
	}

	all, err := x.consumers(ctx)
	if err != nil {
		return err
	}

	if !all[name].exists {
		// The cursors of a new consumer are placed before it exists. What a wake-up leaves was
		// never moved.
		if x.late(cur.Moved, "") {
			x.add("cursor-consumer", noConsumer, x.orphan(all[name]),
				"the consumer %s does not exist", name)
		}
		return nil
	}

	if all[name].runs && cur.Woken > 0 && !cur.Live(x.Queue.Now()) && x.late(cur.Woken, "") {
		x.add("overdue", "archivist consumer show "+name, nil,
			"it was woken at %d, and has not run", cur.Woken)
	}
	return x.counts(ctx, &cur, name+"#"+partition)
}

// replayOf is the id of the replay that keeps rows under a name: that of its consumer, and its id.
func replayOf(name string) (id string, is bool) {
	_, id, is = strings.Cut(name, "~")
	return id, is
}

// ofReplay checks that the replay that has the row has not ended: its end removes its rows. A
// replay that has ended just now may still be removing them.
func (x *rowCheck) ofReplay(ctx context.Context, id string) error {
	var row struct {
		table.Head
		Text string `dynamo:"replay_json"`
	}

	found, err := x.read(ctx, table.Key{PK: "REPLAY#" + id, SK: "REPLAY"}, &row)
	if err != nil {
		return err
	}

	var p consumer.Replay
	if found {
		if err := json.Unmarshal([]byte(row.Text), &p); err != nil {
			return err
		}
	}

	if found && (p.State != consumer.ReplayDone || !x.late(p.Ended, "")) {
		return nil
	}

	x.add("replay-ended", "archivist doctor --repair", x.orphan(consumerInfo{deleted: true}),
		"the replay %s has "+
			"ended, and this row of it was not removed", id)

	return nil
}

// orphan removes the row, if its consumer was deleted: then nobody needs it. Of a consumer
// whose row is missing it says up to where events were handled. The result is nil if a person
// has to act. The row is read from what the scan has, so that it is removed only in the
// revision that was checked.
func (x *rowCheck) orphan(of consumerInfo) func(context.Context) error {
	if !of.deleted {
		return nil
	}
	return func(ctx context.Context) error {
		var h table.Head
		if err := x.Decode(&h); err != nil {
			return err
		}
		return x.commit(ctx, func(tx *table.Tx) { tx.Remove(&h) })
	}
}

// noConsumer is what a person does about rows of a consumer that does not exist.
const noConsumer = restoreRow +
	", or apply the definition of the consumer again: archivist consumer apply"

// counts checks the numbers of rows that a cursor says it keeps: a run does not read them if a
// number is 0. Of more than mostCounted it only checks that they are counted. A wrong 0 hides
// events for good; any other wrong number costs a query in each run.
func (x *rowCheck) counts(ctx context.Context, cur *consumerCursor, of string) error {
	for attribute, says := range map[string]int64{"parked": cur.Parked, "pending": cur.Pending} {
		is, all, err := x.rows(ctx, strings.ToUpper(attribute)+"#"+of)
		if err != nil {
			return err
		}

		if is == says || !all && says > is {
			continue
		}

		var repair func(context.Context) error
		// A number beyond mostCounted is not known, so nothing is set.
		if all && !cur.Live(x.Queue.Now()) { // a run would lose its lease
			repair = x.setNumber(cur.Rev, attribute, is)
		}

		x.add("cursor-counts", "archivist doctor --repair", repair,
			"the cursor counts %d rows that are %s, there "+
				"are %d", says, attribute, is)
	}
	return nil
}

// mostCounted is how many rows of one cursor are counted. More than MaxParked are not parked.
const mostCounted = 5000

// rows counts the rows of a partition of the table, up to mostCounted. all is false if there
// may be more.
func (d Doctor) rows(ctx context.Context, pk string) (n int64, all bool, err error) {
	query := table.Query{PK: pk, Limit: 1000}
	for n < mostCounted {
		var rows []table.Head
		query.Cursor, err = d.Queue.Table.Page(ctx, query, &rows)
		n += int64(len(rows))
		if err != nil || query.Cursor == "" {
			return n, true, err
		}
	}
	return n, false, nil
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
// cursor, exist, and are found when they are due. Due rows are found in the index work, at a
// place for the consumer and the partition, by their time.
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
	should.WorkPK, should.WorkSK = "quiet#"+strings.TrimPrefix(x.PK, "PENDING#"),
		fmt.Sprintf("%013d", row.Due)
	if row.Head != should {
		x.add("index-place", "", x.moves(should),
			"the row is at %q %q of the index work, and should be at %q %q",
			row.WorkPK, row.WorkSK, should.WorkPK, should.WorkSK)
	}

	all, err := x.consumers(ctx)
	if all[name].runs && x.late(row.Due, "") {
		x.add("overdue", "archivist consumer show "+name, nil, "its key is due since %d", row.Due)
	}
	return err
}

// moves puts the row at its place in the index work, unless it has changed. The whole row is
// not saved, because kept has only a part of its attributes.
func (x *rowCheck) moves(to table.Head) func(context.Context) error {
	return func(ctx context.Context) error {
		return x.Queue.Table.Change(ctx, x.Key, x.Queue.NewID(), func(u *dynamo.Update) {
			u.Set("place", to.WorkPK).Set("ranking", to.WorkSK).If("rev = ?", to.Rev)
		}, &table.Head{})
	}
}

// keeps checks the events of a row, and returns the name of its consumer. An event that is
// kept, and not passed by the cursor, would be handled twice: first in its order, and then
// again when what is kept is redriven. After a reset by a person that is as it should be.
func (x *rowCheck) keeps(ctx context.Context, row *kept) (name string, err error) {
	_, rest, _ := strings.Cut(x.PK, "#")
	name, partition, _ := strings.Cut(rest, "#")
	if replay, is := replayOf(name); is {
		return name, x.ofReplay(ctx, replay)
	}

	all, err := x.consumers(ctx)
	if err != nil {
		return name, err
	}

	if !all[name].exists {
		x.add("kept-consumer", noConsumer, x.orphan(all[name]), "the consumer %s does not exist", name)
		return name, nil
	}

	if len(row.Refs) == 0 {
		x.add("kept-event", restoreRow, nil, "it keeps no events")
		return name, nil
	}

	var cur consumerCursor
	if _, err := x.read(ctx, cursorKey(name, partition), &cur); err != nil {
		return name, err
	}

	if last := row.Refs[len(row.Refs)-1].Seq; last > cur.begun() && cur.Reset == "" {
		x.add("kept-cursor", "archivist consumer show "+name, nil,
			"it keeps event %d, and the cursor is at %d: the "+
				"event will be handled out of its order", last, cur.Seq)
		return name, nil
	}

	if all[name].required > 0 {
		if err := x.keptTrimmed(ctx, row, partition, name, all[name]); err != nil {
			return name, err
		}
	}
	return name, x.keptEvents(ctx, row, name)
}

// keptTrimmed checks that what a required consumer keeps was not removed from the log. It is
// a finding without loss: the event is read from the archive, which is slower.
func (x *rowCheck) keptTrimmed(ctx context.Context, row *kept, partition, name string,
	info consumerInfo) error {
	var head logHead
	if _, err := x.read(ctx, headKey(partition), &head); err != nil {
		return err
	}

	if row.Refs[0].Seq <= head.Trimmed && info.held(head, max(row.Since, row.Began)) {
		x.add("log-expired", "archivist consumer show "+name, nil,
			"it keeps event %d, and places were removed up to "+
				"%d: the event is read from the archive", row.Refs[0].Seq, head.Trimmed)
	}
	return nil
}

// keptEvents checks that the events of a row exist. Those that expire may be in the archive
// only. One finding for a row is enough: what a person does about it concerns the row as a
// whole.
func (x *rowCheck) keptEvents(ctx context.Context, row *kept, name string) error {
	var keys []table.Key
	for _, ref := range row.Refs {
		s := subjectOf(subjectType(strings.ToUpper(ref.SubjectType)), ref.SubjectID)
		if !expires(s.Type) {
			keys = append(keys, event.Key(s, ref.Version))
		}
	}

	if len(keys) == 0 {
		return nil
	}

	rows, err := x.Queue.Table.Many(ctx, keys)
	if err != nil {
		return err
	}

	for _, k := range keys {
		if _, found := rows[k]; !found {
			x.add("kept-event", "archivist consumer discard "+name, nil,
				"it keeps the event %s, which does not exist", k)
			return nil
		}
	}
	return nil
}
