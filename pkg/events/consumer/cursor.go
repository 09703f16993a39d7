package consumer

import (
	"context"
	"slices"
	"strings"
	"time"

	"archivist/pkg/events/envelope"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/lease"
	"archivist/pkg/kernel/table"
)

// cursor is how far a consumer has come in a partition: all events up to Seq are handled, parked,
// or wait until their key is quiet. A run holds its lease. Only the run writes it, and the parked
// and waiting events beside it, except for the flag Woken, and what a person changes. Every write
// is conditioned on the revision, so a run that was overtaken cannot write. The key is
// own(consumer), CURSOR#partition. Times are milliseconds since 1970.
type cursor struct {
	table.Head
	lease.On
	Seq int64 `dynamo:"seq"`

	// Files is the event after Seq, of a version whose files are being handled; nil: none is.
	Files *opened `dynamo:"files_of,omitempty"`

	// Started is whether it has a place; until then its Epoch, that of the log when it started, is
	// not known. A cursor that nobody placed, in a partition that was made after the consumer,
	// starts with its first run, at the beginning.
	Started bool  `dynamo:"started,omitempty"`
	Epoch   int64 `dynamo:"epoch,omitempty"`

	// From: events before this time are not handled.
	From int64 `dynamo:"from_ms,omitempty"`

	// Woken is when a wake-up was sent that no run has answered yet; 0: none is on its way. While
	// it is set, and not lost, no other is sent: so a thousand events cost one.
	Woken int64 `dynamo:"woken_ms,omitempty"`

	// Moved is when a run last wrote the cursor, or a person or a start placed it.
	Moved int64 `dynamo:"moved_ms,omitempty"`

	// Due is when there is something to do again: a stopped cursor is tried, or a key is quiet; 0:
	// nothing is known.
	Due int64 `dynamo:"due_ms,omitempty"`

	// Parked counts rows of parked events, and Pending order keys that wait until they are quiet.
	// Both are written with the rows that they count.
	Parked  int64 `dynamo:"parked,omitempty"`
	Pending int64 `dynamo:"pending,omitempty"`

	// Move is the id of the last transaction of a run. By it a run whose answer was lost knows its
	// own write again, although the flag was set since.
	Move string `dynamo:"move_id,omitempty"`

	// Tried has, of the events after it, those that failed when the time was over: the next run
	// goes on counting.
	Tried []tried `dynamo:"tried,omitempty"`

	// Ends counts the runs in a row in which nothing was handled because their time was over.
	Ends int `dynamo:"ends_n,omitempty"`

	// Begin is the event after which it started.
	Begin int64 `dynamo:"begin_seq,omitempty"`

	// Reset is the id of the last reset that moved it: an interrupted reset moves it once.
	Reset string `dynamo:"reset_id,omitempty"`

	// Skips are the newest ranges that people skipped; only explain reads them.
	Skips []span `dynamo:"skips,omitempty"`

	// Last is, of a replay, the event with which it ends; 0: it has no end.
	Last int64 `dynamo:"last_seq,omitempty"`

	// Page is, of a rebuild, the place in what is stored, as State gives it; "": the beginning.
	Page string `dynamo:"page_key,omitempty"`

	// After is, of a rebuild, the subject that was handled last of the page; "": none.
	After string `dynamo:"after_subject,omitempty"`

	// Done, of a replay: it has ended here, too early if Stop is set.
	Done bool `dynamo:"page_done,omitempty"`

	// Of a replay, how many of its steps are begun again, after they have called the target: the
	// events of a step may be handled twice.
	Repeats int64 `dynamo:"repeats,omitempty"`

	// Stop is why it does not move; nil: it does. Orders are what people want done with parked
	// events, oldest first.
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

// maxSkips is how many ranges a cursor remembers, for explain. The row is written with every step,
// so it stays small.
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

// Stop says why a cursor does not move, and since when. Reason is for people. Tries counts the runs
// that found the same at the same event.
type Stop struct {
	Kind   string `dynamo:"kind" json:"kind"`
	Reason string `dynamo:"why" json:"reason"`
	Seq    int64  `dynamo:"seq" json:"seq,omitempty"` // of the event before which it stands
	Since  int64  `dynamo:"since_ms" json:"since"`
	Tries  int    `dynamo:"tries" json:"tries"`
}

// wait is the time until a stopped cursor is tried again: it doubles from a minute to an hour. So a
// target that is away for a night is called some times, and one that comes back soon waits a
// minute.
func (s *Stop) wait() time.Duration {
	d := time.Minute
	for range s.Tries - 1 {
		d *= 2
		if d > time.Hour {
			return time.Hour
		}
	}
	return d
}

// position is how far the cursor is.
func (c *cursor) position() position { return position{c.Seq, c.Files} }

// jump puts a cursor at a place, as a person wants. A run that is at work loses its lease: what it
// has done by then is not written, and is done again if it is after the new place. The epoch
// becomes the log's present one, which is how a consumer goes on after a restore.
func (c *cursor) jump(seq int64, p envelope.Partition, now int64) {
	if seq > c.Seq {
		c.Skips = append(slices.Clone(c.Skips), span{After: c.Seq, To: seq})
		c.Skips = c.Skips[max(0, len(c.Skips)-maxSkips):]
	} else if seq < c.Seq {
		c.Skips = nil
		c.Begin = min(c.Begin, seq)
	}
	c.Release()
	c.Started, c.Epoch = true, p.Epoch
	c.Seq, c.Files, c.Tried, c.Stop, c.Moved, c.Due, c.From = seq, nil, nil, nil, now, now, 0
}

// resting reports whether the cursor is stopped, and not to be tried again yet. A wake-up does not
// change that: otherwise each new event would call a target that is away.
func (c *cursor) resting(now time.Time) bool { return c.Stop != nil && now.UnixMilli() < c.Due }

// halt stops the cursor until it is tried again; a nil s clears the stop, since the step has
// succeeded.
func (c *cursor) halt(s *Stop, now time.Time) {
	c.Stop = s
	if s != nil {
		c.Due = now.Add(s.wait()).UnixMilli()
	}
}

// due makes sure that the cursor is looked at no later than at a time; an earlier due time stays.
func (c *cursor) due(at int64) {
	if c.Due == 0 || at < c.Due {
		c.Due = at
	}
}

// tries is how often the event of that id was tried, in runs whose time was over.
func (c *cursor) tries(id string) int {
	for _, t := range c.Tried {
		if t.ID == id {
			return t.Tries
		}
	}
	return 0
}

// cursorPrefix begins the sort keys of cursors; the name of the partition follows.
const cursorPrefix = "CURSOR#"

func cursorKey(consumer, partition string) table.Key {
	return table.Key{PK: own(consumer), SK: cursorPrefix + partition}
}

func (c *cursor) partition() string { return strings.TrimPrefix(c.SK, cursorPrefix) }

// cursors reads all cursors of a consumer.
func (s *Store) cursors(ctx context.Context, name string) ([]cursor, error) {
	return readAll[cursor](ctx, s.Table, table.Query{PK: own(name), Prefix: cursorPrefix})
}

// places are a consumer's cursors by partition. A partition in which it has not been is missing:
// the zero cursor of the map is then what it has there.
func (s *Store) places(ctx context.Context, name string) (map[string]cursor, error) {
	cursors, err := s.cursors(ctx, name)
	at := map[string]cursor{}
	for _, cur := range cursors {
		at[cur.partition()] = cur
	}
	return at, err
}

// cursor reads one; that of a partition in which the consumer has not been has the rev 0, and is at
// the beginning. It is not a NotFound: such a partition was made after the consumer, and all of its
// events are new.
func (s *Store) cursor(ctx context.Context, name, partition string) (cursor, error) {
	k := cursorKey(name, partition)
	c := cursor{Head: table.Head{PK: k.PK, SK: k.SK}}
	if err := s.Table.Get(ctx, k, &c); err != nil && !fault.Is(err, fault.NotFound) {
		return c, err
	}
	return c, nil
}

// put writes a cursor into tx, on the condition that it is as it was read, or does not exist if it
// was not there.
func (c *cursor) put(tx *table.Tx) {
	tx.InsertOrSave(c)
}
