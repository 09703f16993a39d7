package consumer

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/guregu/dynamo/v2"

	"archivist/pkg/events/check"
	"archivist/pkg/events/event"
	"archivist/pkg/events/eventlog"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// trimGrace is how long one removal of old places may take: a consumer that became required
// during it has held nothing back. The same holds for an event that a consumer has parked
// during it.
const trimGrace = time.Hour

// noConsumer is what a person does about rows of a consumer that does not exist.
const noConsumer = check.Restore +
	", or apply the definition of the consumer again: archivist consumer apply"

// Checked are the rules of consumers, for one page of a run. Its methods may be called concurrently.
type Checked struct {
	pg *check.Page

	reading sync.Mutex
	all     map[string]known // nil: not read yet
	seqs    sync.Map         // keys of cursors, and how far these are
}

// NewChecked makes the rules for a page.
func NewChecked(pg *check.Page) *Checked { return &Checked{pg: pg} }

// Rules are the rules of consumers, of their cursors, and of what they keep.
func (c *Checked) Rules() check.Rules {
	return check.Rules{Kinds: []check.Kind{
		eventlog.Heads(c.checkTrimmed),
		{PK: "CONSUMER", SK: "CURSOR#", Rule: c.checkCursor},
		{PK: "CONSUMER", SK: "SCHEDULE"},
		{PK: rowPK},
		{PK: "SHIPPED"}, // which definitions were installed
		{PK: "PARKED", Rule: c.checkParked},
		{PK: "PENDING", Rule: c.checkPending},
		{PK: "REPLAY", SK: replaySK, Expires: true},
		{PK: "LEDGER", Expires: true},
	}}
}

// known is what is checked about a consumer.
type known struct {
	exists   bool
	deleted  bool // it was, by a person
	runs     bool
	required int64 // since when at least, in milliseconds since 1970; 0: it is not
}

// consumers reads all consumers, once for a page: there are at most MaxConsumers. Rows are checked at once, so the
// first that needs them reads, and the others wait.
func (c *Checked) consumers(ctx context.Context) (map[string]known, error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	if c.all != nil {
		return c.all, nil
	}

	all := map[string]known{}
	query := table.Query{PK: rowPK}
	for {
		var rows []row
		next, err := c.pg.Table.Page(ctx, query, &rows)
		if err != nil {
			return nil, err
		}

		for _, r := range rows {
			all[r.SK] = r.known()
		}

		if next == "" {
			c.all = all
			return all, nil
		}

		query.Cursor = next
	}
}

// known is what is checked about the consumer. One whose definition cannot be read is not paused.
func (r *row) known() known {
	is, err := r.consumer()
	info := known{exists: r.State != deleted, deleted: r.State == deleted,
		runs: r.State == active && (err != nil || !is.Paused)}
	if r.State == active && is.Required {
		info.required = r.Changed
	}
	return info
}

// Passed reports whether a consumer exists and has passed an event: what it keeps of the event's subject then is as
// the subject's row says. The cursor is read before what the consumer keeps.
func (c *Checked) Passed(ctx context.Context, name, partition string, seq int64) (bool, error) {
	all, err := c.consumers(ctx)
	if err != nil || !all[name].exists || seq == 0 {
		return false, err
	}

	// What is kept of a page can only be behind.
	at := cursorKey(name, partition)
	if was, read := c.seqs.Load(at); read && was.(int64) >= seq {
		return true, nil
	}

	var cur cursor
	_, err = c.pg.Read(ctx, at, &cur)
	c.seqs.Store(at, cur.Seq)
	return cur.Seq >= seq, err
}

// PassedNewest reports whether a consumer has passed the newest event of the subject of a row, whose number is
// version.
func (c *Checked) PassedNewest(ctx context.Context, x *check.Row, name string, s event.Subject,
	version int64) (bool, error) {
	var e event.Row
	k := event.Key(s, version)
	if x.Before.Key != k || x.Before.Decode(&e) != nil || e.Seq == 0 {
		found, err := c.pg.Read(ctx, k, &e)
		if err != nil || !found {
			return false, err
		}
	}
	return c.Passed(ctx, name, e.Partition, e.Seq)
}

// begun is the last event that is handled, or whose files are being handled. Files of that
// version can be parked while the cursor is still before it.
func (c *cursor) begun() int64 {
	if c.Files == nil {
		return c.Seq
	}
	return max(c.Seq, c.Files.Event.Seq)
}

// checkCursor checks that a cursor is not beyond its partition, counts what it keeps, and is
// not forgotten. A cursor beyond the head comes from a restore: what is placed there again
// would be skipped.
func (c *Checked) checkCursor(ctx context.Context, x *check.Row) error {
	var cur cursor
	if !x.Into(&cur) {
		return nil
	}

	name, partition := x.ID(), strings.TrimPrefix(x.SK, "CURSOR#")
	if replay, is := replayOf(name); is {
		return ofReplay(ctx, x, replay)
	}

	p, err := eventlog.PartitionOf(ctx, x.Page, partition)
	if err != nil {
		return err
	}

	if cur.Seq > p.Last {
		x.Add("cursor-beyond", "archivist consumer reset "+name, nil,
			"the cursor is at %d of %s, the head is at %d", cur.Seq, partition, p.Last)
	}

	all, err := c.consumers(ctx)
	if err != nil {
		return err
	}

	if !all[name].exists {
		// The cursors of a new consumer are placed before it exists. What a wake-up leaves was
		// never moved.
		if x.Late(cur.Moved) {
			x.Add("cursor-consumer", noConsumer, orphan(x, all[name]), "the consumer %s does not exist", name)
		}
		return nil
	}

	if all[name].runs && cur.Woken > 0 && !cur.Live(x.Now()) && x.Late(cur.Woken) {
		x.Add("overdue", "archivist consumer show "+name, nil, "it was woken at %d, and has not run", cur.Woken)
	}
	return counts(ctx, x, &cur, name+"#"+partition)
}

// ofReplay checks that the replay that has the row has not ended: its end removes its rows. A
// replay that has ended just now may still be removing them.
func ofReplay(ctx context.Context, x *check.Row, id string) error {
	_, p, err := (&Store{Table: x.Table}).replayRow(ctx, id)
	gone := fault.Is(err, fault.NotFound)
	if !gone && (err != nil || p.open() || !x.Late(p.Ended)) {
		return err
	}

	x.Add("replay-ended", check.Repair, x.Removing(), "the replay %s has ended, and this row of it was not removed", id)
	return nil
}

// orphan removes the row, if its consumer was deleted: then nobody needs it. Of a consumer
// whose row is missing it says up to where events were handled. The result is nil if a person
// has to act.
func orphan(x *check.Row, of known) func(context.Context) error {
	if !of.deleted {
		return nil
	}
	return x.Removing()
}

// counts checks the numbers of rows that a cursor says it keeps: a run does not read them if a
// number is 0. Of more than mostCounted it only checks that they are counted. A wrong 0 hides
// events for good; any other wrong number costs a query in each run.
func counts(ctx context.Context, x *check.Row, cur *cursor, of string) error {
	for attribute, says := range map[string]int64{"parked": cur.Parked, "pending": cur.Pending} {
		is, all, err := rows(ctx, x.Page, strings.ToUpper(attribute)+"#"+of)
		if err != nil {
			return err
		}

		if is == says || !all && says > is {
			continue
		}

		var repair func(context.Context) error
		// A number beyond mostCounted is not known, so nothing is set.
		if all && !cur.Live(x.Now()) { // a run would lose its lease
			repair = x.Setting(cur.Rev, func(u *dynamo.Update) { u.Set(attribute, is) })
		}

		x.Add("cursor-counts", check.Repair, repair, "the cursor counts %d rows that are %s, there are %d", says,
			attribute, is)
	}
	return nil
}

// mostCounted is how many rows of one cursor are counted. More than MaxParked are not parked.
const mostCounted = 5000

// rows counts the rows of a partition of the table, up to mostCounted. all is false if there
// may be more.
func rows(ctx context.Context, pg *check.Page, pk string) (n int64, all bool, err error) {
	query := table.Query{PK: pk, Limit: 1000}
	for n < mostCounted {
		var heads []table.Head
		query.Cursor, err = pg.Table.Page(ctx, query, &heads)
		n += int64(len(heads))
		if err != nil || query.Cursor == "" {
			return n, true, err
		}
	}
	return n, false, nil
}

// checkParked checks that parked events were passed by the cursor, and exist.
func (c *Checked) checkParked(ctx context.Context, x *check.Row) error {
	var p parkedRow
	if !x.Into(&p) {
		return nil
	}
	_, err := c.keeps(ctx, x, p.Refs, p.Since)
	return err
}

// checkPending checks that events that wait until their key is quiet were passed by the
// cursor, exist, and are found when they are due.
func (c *Checked) checkPending(ctx context.Context, x *check.Row) error {
	var p pendingRow
	if !x.Into(&p) {
		return nil
	}

	name, err := c.keeps(ctx, x, p.Refs, p.Began)
	if err != nil {
		return err
	}

	should := p
	_, partition, _ := strings.Cut(x.ID(), "#")
	should.WorkPK, should.WorkSK = debouncePlace(name, partition), dueText(p.Due)
	x.Placed(p.Head, should.Head, func(tx *table.Tx) { tx.Save(&should) })

	all, err := c.consumers(ctx)
	if all[name].runs && x.Late(p.Due) {
		x.Add("overdue", "archivist consumer show "+name, nil, "its key is due since %d", p.Due)
	}
	return err
}

// keeps checks the events of a row that has kept them since then, and returns the name of its consumer. An event that
// is kept, and not passed by the cursor, would be handled twice: first in its order, and then
// again when what is kept is redriven. After a reset by a person that is as it should be.
func (c *Checked) keeps(ctx context.Context, x *check.Row, refs []ref, since int64) (name string, err error) {
	name, partition, _ := strings.Cut(x.ID(), "#")
	if replay, is := replayOf(name); is {
		return name, ofReplay(ctx, x, replay)
	}

	all, err := c.consumers(ctx)
	if err != nil {
		return name, err
	}

	if !all[name].exists {
		x.Add("kept-consumer", noConsumer, orphan(x, all[name]), "the consumer %s does not exist", name)
		return name, nil
	}

	if len(refs) == 0 {
		x.Add("kept-event", check.Restore, nil, "it keeps no events")
		return name, nil
	}

	var cur cursor
	if _, err := x.Read(ctx, cursorKey(name, partition), &cur); err != nil {
		return name, err
	}

	if last := refs[len(refs)-1].Seq; last > cur.begun() && cur.Reset == "" {
		x.Add("kept-cursor", "archivist consumer show "+name, nil,
			"it keeps event %d, and the cursor is at %d: the event will be handled out of its order", last, cur.Seq)
		return name, nil
	}

	if err := keptTrimmed(ctx, x, refs[0].Seq, partition, name, all[name], since); err != nil {
		return name, err
	}
	return name, keptEvents(ctx, x, refs, name)
}

// keptTrimmed checks that what a required consumer keeps was not removed from the log. It is
// a finding without loss: the event is read from the archive, which is slower.
func keptTrimmed(ctx context.Context, x *check.Row, first int64, partition, name string, of known, since int64) error {
	if of.required == 0 {
		return nil
	}

	p, err := eventlog.PartitionOf(ctx, x.Page, partition)
	if err == nil && first <= p.Trimmed && of.held(p, since) {
		x.Add("log-expired", "archivist consumer show "+name, nil,
			"it keeps event %d, and places were removed up to %d: the event is read from the archive", first, p.Trimmed)
	}
	return err
}

// keptEvents checks that the events of a row exist. Those that expire may be in the archive
// only. One finding for a row is enough: what a person does about it concerns the row as a
// whole.
func keptEvents(ctx context.Context, x *check.Row, refs []ref, name string) error {
	var keys []table.Key
	for _, f := range refs {
		s := eventlog.SubjectOf(strings.ToUpper(f.SubjectType) + "#" + f.SubjectID)
		if !eventlog.Expires(s.Type) {
			keys = append(keys, event.Key(s, f.Version))
		}
	}

	if len(keys) == 0 {
		return nil
	}

	found, err := x.Table.Many(ctx, keys)
	if err != nil {
		return err
	}

	for _, k := range keys {
		if _, there := found[k]; !there {
			x.Add("kept-event", "archivist consumer discard "+name, nil,
				"it keeps the event %s, which does not exist", k)
			return nil
		}
	}
	return nil
}

// checkTrimmed checks that each required consumer had passed the places that were removed. A consumer that a person
// has put back reads from the archive on purpose.
func (c *Checked) checkTrimmed(ctx context.Context, x *check.Row) error {
	partition := eventlog.PartitionOfHead(x.Key)
	p, err := eventlog.PartitionOf(ctx, x.Page, partition)
	if err != nil || p.Trimmed == 0 {
		return err
	}

	all, err := c.consumers(ctx)
	if err != nil {
		return err
	}

	for name, info := range all {
		if !info.held(p, 0) {
			continue
		}

		var cur cursor
		if _, err := x.Read(ctx, cursorKey(name, partition), &cur); err != nil {
			return err
		}

		if cur.Seq < p.Trimmed && cur.Reset == "" {
			x.Add("log-expired", "archivist consumer show "+name, nil,
				"places were removed up to %d, and the required consumer %s is at %d: it reads them from the archive",
				p.Trimmed, name, cur.Seq)
		}
	}
	return nil
}

// held reports whether a consumer should have held back what a partition has removed, if it
// has kept it since a time, in milliseconds since 1970. since is 0 for the consumer as a
// whole.
func (k known) held(p eventlog.Partition, since int64) bool {
	return k.required > 0 && max(k.required, since)+trimGrace.Milliseconds() < p.TrimmedAt
}
