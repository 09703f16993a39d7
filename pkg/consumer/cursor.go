package consumer

import (
	"context"
	"fmt"
	"sort"
	"strings"

	"archivist/pkg/envelope"
	"archivist/pkg/fault"
	"archivist/pkg/lease"
	"archivist/pkg/table"
)

// cursor is how far a consumer has come in a partition: all events up to Seq are handled,
// parked, or wait until their key is quiet. A run holds its lease. Only the run writes it,
// and the parked and waiting events beside it, except for the flag Woken, and what a person
// changes. Times are milliseconds since 1970.
type cursor struct {
	table.Head
	lease.On
	Seq     int64   `dynamo:"seq"`
	Files   *opened `dynamo:"files_of,omitempty"` // the event after Seq, of a version whose files are being handled
	Started bool    `dynamo:"started,omitempty"`
	Epoch   int64   `dynamo:"epoch,omitempty"`   // of the log, when it started
	From    int64   `dynamo:"from_ms,omitempty"` // events before this time are not handled
	Woken   int64   `dynamo:"woken_ms,omitempty"`
	Moved   int64   `dynamo:"moved_ms,omitempty"`
	Due     int64   `dynamo:"due_ms,omitempty"` // when there is something to do again
	Parked  int64   `dynamo:"parked,omitempty"`
	Pending int64   `dynamo:"pending,omitempty"` // order keys that wait until they are quiet
	Move    string  `dynamo:"move_id,omitempty"` // of the last transaction of a run

	Tried []tried `dynamo:"tried,omitempty"` // of the events after it, those that failed when the time was over

	Begin int64  `dynamo:"begin_seq,omitempty"`     // it started after this one
	Reset string `dynamo:"reset_id,omitempty"`      // the last that moved it
	Skips []span `dynamo:"skips,omitempty"`         // the newest
	Last  int64  `dynamo:"last_seq,omitempty"`      // of a replay, the event with which it ends
	Page  string `dynamo:"page_key,omitempty"`      // of a rebuild, the place in what is stored
	After string `dynamo:"after_subject,omitempty"` // of a rebuild: the last that is handled of the page
	Done  bool   `dynamo:"page_done,omitempty"`     // of a replay: it has ended here, too early if Stop is set

	// Of a replay, how many of its steps are begun again, after they have called the target: the
	// events of a step may be handled twice.
	Repeats int64 `dynamo:"repeats,omitempty"`

	Stop   *Stop   `dynamo:"stop_why,omitempty"`
	Orders []order `dynamo:"orders,omitempty"`
}

// tried is how often an event, or the first of several that are handled as one, was tried.
type tried struct {
	ID    string `dynamo:"id"`
	Tries int    `dynamo:"tries"`
}

// span is a range of events that a person wanted not to be handled: those after After, up to To.
type span struct {
	After int64 `dynamo:"after_seq"`
	To    int64 `dynamo:"to_seq"`
}

// maxSkips is how many ranges a cursor remembers, for explain.
const maxSkips = 20

// Reasons why a cursor does not move.
const (
	Blocked      = "blocked"     // an event failed, and the consumer's policy is Block
	Full         = "full"        // as many events are parked as can be
	OldEpoch     = "epoch"       // the log was restored from a backup
	Unreachable  = "unreachable" // the target cannot be called
	Unreadable   = "unreadable"  // the files of a version cannot be read
	maxStopTries = 20
)

// Stop says why a cursor does not move, and since when.
type Stop struct {
	Kind   string `dynamo:"kind" json:"kind"`
	Reason string `dynamo:"why" json:"reason"`
	Seq    int64  `dynamo:"seq" json:"seq,omitempty"` // of the event before which it stands
	Since  int64  `dynamo:"since_ms" json:"since"`
	Tries  int    `dynamo:"tries" json:"tries"`
}

// position is how far the cursor is.
func (c *cursor) position() position { return position{c.Seq, c.Files} }

const cursorPrefix = "CURSOR#"

func cursorKey(consumer, partition string) table.Key {
	return table.Key{PK: own(consumer), SK: cursorPrefix + partition}
}

func (c *cursor) partition() string { return strings.TrimPrefix(c.SK, cursorPrefix) }

// cursors reads all cursors of a consumer.
func (s *Store) cursors(ctx context.Context, name string) ([]cursor, error) {
	return readAll[cursor](ctx, s.Table, table.Query{PK: own(name), Prefix: cursorPrefix})
}

// cursor reads one; that of a partition in which the consumer has not been has the rev 0,
// and is at the beginning.
func (s *Store) cursor(ctx context.Context, name, partition string) (cursor, error) {
	k := cursorKey(name, partition)
	c := cursor{Head: table.Head{PK: k.PK, SK: k.SK}}
	err := s.Table.Get(ctx, k, &c)
	if fault.Is(err, fault.NotFound) {
		err = nil
	}
	return c, err
}

// put writes a cursor into tx.
func (c *cursor) put(tx *table.Tx) {
	tx.InsertOrSave(c)
}

// cursorsAtOnce is how many cursors one transaction places.
const cursorsAtOnce = 50

// placeCursors puts the cursors of a new consumer at its start, in all partitions that
// exist. Partitions that are made later are read from their beginning. An interrupted call
// is repeated as a whole: nobody reads the cursors before the consumer's row exists.
func (s *Store) placeCursors(ctx context.Context, d Definition, now int64) error {
	at, err := parseStart(d.Start)
	if err != nil {
		return err
	}
	partitions, err := s.Log.Partitions(ctx)
	if err != nil {
		return err
	}
	old, err := s.cursors(ctx, d.Name)
	if err != nil {
		return err
	}
	before := map[string]cursor{}
	for _, c := range old { // left by an earlier call
		before[c.partition()] = c
	}
	var all []cursor
	for _, p := range partitions {
		c, err := s.startOf(ctx, d.Name, p, at)
		if err != nil {
			return err
		}
		c.Rev, c.Moved = before[p.Name].Rev, now
		delete(before, p.Name)
		all = append(all, c)
	}
	for _, c := range before {
		all = append(all, cursor{Head: table.Head{PK: c.PK, SK: c.SK, Rev: c.Rev}, Moved: now})
	}
	sort.Slice(all, func(i, j int) bool { return all[i].SK < all[j].SK })
	return s.putCursors(ctx, all)
}

func (s *Store) putCursors(ctx context.Context, all []cursor) error {
	for len(all) > 0 {
		n := min(len(all), cursorsAtOnce)
		tx := s.Table.Begin(s.NewID())
		for i := range all[:n] {
			all[i].put(tx)
		}
		if err := tx.Commit(ctx); err != nil {
			return err
		}
		all = all[n:]
	}
	return nil
}

// startOf is the cursor of a consumer that starts in a partition.
func (s *Store) startOf(ctx context.Context, name string, p envelope.Partition, at start) (cursor, error) {
	k := cursorKey(name, p.Name)
	c := cursor{Head: table.Head{PK: k.PK, SK: k.SK}, Started: true, Epoch: p.Epoch}
	switch {
	case at.latest:
		c.Seq = p.Head
	case at.time > 0:
		seq, err := s.before(ctx, p, at.time-lateEvents)
		if err != nil {
			return c, err
		}
		c.Seq, c.From = seq, at.time
	case at.seq > 0:
		c.Seq = min(at.seq-1, p.Head)
	}
	c.Begin = c.Seq
	return c, nil
}

// lateEvents is how much earlier than its neighbours in the log an event may have happened,
// in milliseconds: it was placed late, because its wake-up was lost. A start by time
// searches that much earlier, and leaves out what is too old.
const lateEvents = 24 * 60 * 60 * 1000

// before is the seq of the last event in a partition that happened before a time, in
// milliseconds since 1970. The search takes the log as ordered by time.
func (s *Store) before(ctx context.Context, p envelope.Partition, at int64) (int64, error) {
	low, high := max(p.Horizon-1, 0), p.Head // low is before it, or the beginning; high is not, or the end
	for low < high {
		middle := low + (high-low)/2
		facts, err := s.Log.Read(ctx, p.Name, middle, 1)
		if err != nil {
			return 0, err
		}
		switch {
		case len(facts) == 0:
			return 0, fmt.Errorf("consumer: the partition %s has no event after %d, but its head is %d", p.Name, middle,
				p.Head)
		case facts[0].Time < at:
			low = facts[0].Seq
		default:
			high = middle
		}
	}
	return low, nil
}
