package consumer

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"archivist/pkg/events/envelope"
	"archivist/pkg/kernel/definition"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// Limits of replays, each with its reason.
const (
	// maxReplays is how many can be unfinished: each wakes runs every minute.
	maxReplays = 10
	// maxReplayFailure is how many failures a finished replay lists: they are in its row.
	maxReplayFailure = 20
	// replayKeepDays is for how long the row of a finished one is kept.
	replayKeepDays = 90
	// maxReplayCursors is how many partitions one can read: the cursors of all of them are read
	// whenever one is at its end, 1.5 MB of rows.
	maxReplayCursors = 5000
)

// States of a replay. It goes through them in this order, and never back; a cancelled one goes to
// ReplayEnding at once.
const (
	ReplayPreparing = "preparing" // its cursors are being placed
	ReplayRunning   = "running"
	ReplayEnding    = "ending" // its result is being written, then its rows are removed
	ReplayDone      = "done"
)

// Range selects events of the log for a replay. The zero Range is all events that are kept.
type Range struct {
	// Partition "" is all of them.
	Partition string `json:"partition,omitempty"`

	// From and Until are as in Definition.Start, both included. Until is StartLatest unless set:
	// the newest event when the replay begins. From is StartHorizon unless set.
	From  string `json:"from,omitempty"`
	Until string `json:"until,omitempty"`

	// Filter is in addition to the consumer's; "": all that it selects.
	Filter string `json:"filter,omitempty"`
}

// Replay is a repetition of events for one consumer, or, if Rebuild is set, a snapshot of
// everything that is stored. Its calls of the target are marked Batch.Replay. It has cursors of its
// own: the consumer's do not move. Times are milliseconds since 1970. The whole is stored as JSON
// in one row, so names of fields stay.
type Replay struct {
	ID       string `json:"id"`
	Consumer string `json:"consumer"`

	// Into is the name of a shadow: calls have it as Batch.Consumer, so that the handler
	// builds something else beside what is in use. "": the consumer itself.
	Into    string `json:"into,omitempty"`
	Rebuild bool   `json:"rebuild,omitempty"`
	Range   Range  `json:"range"`

	State   string `json:"state"`
	Actor   string `json:"actor"`
	Reason  string `json:"reason"`
	Created int64  `json:"created"`
	Ended   int64  `json:"ended,omitempty"`

	Cancelled bool `json:"cancelled,omitempty"`

	// ConsumerCreated tells the consumer from a later one of its name. Ends is why a replay that
	// nobody cancelled had to end too early.
	ConsumerCreated int64  `json:"consumerCreated,omitempty"`
	Ends            string `json:"ends,omitempty"`

	// Of one that has ended: how many events, or groups of coalesced ones, failed, and the first.
	// What ended the replay, or a part of it, too early is one of them, with the name of the
	// consumer or of the part as its id. Summed: they are known.
	Summed   bool      `json:"summed,omitempty"`
	Failed   int64     `json:"failed,omitempty"`
	Failures []Failure `json:"failures,omitempty"`

	// Repeats is how many steps were begun again after an interruption: the events of each, at most
	// a window of them, may have been handled twice.
	Repeats int64 `json:"repeats,omitempty"`
}

// Progress is how far a replay is, in events of the log that were read, or snapshots.
type Progress struct {
	Partitions int    `json:"partitions"`
	Finished   int    `json:"finished"` // of these
	Read       int64  `json:"read"`
	Total      int64  `json:"total,omitempty"` // 0: not known, of a rebuild
	Failed     int64  `json:"failed"`
	Repeats    int64  `json:"repeats"`         // as in Replay
	Stops      []Stop `json:"stops,omitempty"` // of partitions that do not move now

	Paused bool `json:"paused,omitempty"` // it waits, because its consumer is paused
}

// replayRow is a replay as JSON. It is in the index "list" under its consumer, newest first, and in
// the index "work" until it is finished; then DynamoDB removes it after replayKeepDays.
type replayRow struct {
	table.Head
	Text string `dynamo:"replay_json"`
}

const (
	replaySK     = "REPLAY"
	openReplays  = "replays" // place in the index "work" of those that are not finished
	replayPrefix = "REPLAY#"
)

func replayKey(id string) table.Key { return table.Key{PK: replayPrefix + id, SK: replaySK} }

// run is the name under which its cursors and parked events are kept, and with which runs of it are
// woken. No consumer can have it, since names have no ~.
func (p *Replay) run() string { return p.Consumer + "~" + p.ID }

// replayOf is the id of the replay whose run has that name.
func replayOf(name string) (id string, is bool) {
	_, id, is = strings.Cut(name, "~")
	return id, is
}

// open reports whether the replay is not finished.
func (p *Replay) open() bool { return p.State != ReplayDone }

// set takes over the replay, and puts the row at its places in the indexes.
func (row *replayRow) set(p Replay) error {
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}

	row.Text = string(text)
	row.ListPK, row.ListSK = openReplays+"#"+p.Consumer, fmt.Sprintf("%013d#%s", p.Created, p.ID)
	row.WorkPK, row.WorkSK = openReplays, p.ID
	if !p.open() {
		row.WorkPK, row.WorkSK = "", ""
		row.ExpiresAt = p.Ended/1000 + replayKeepDays*24*60*60
	}
	return nil
}

// replayRow reads a replay. A missing one is a NotFound.
func (s *Store) replayRow(ctx context.Context, id string) (row replayRow, p Replay, err error) {
	err = s.Table.Get(ctx, replayKey(id), &row)
	if fault.Is(err, fault.NotFound) {
		return row, p, fault.New(fault.NotFound,
			"there is no replay %q; finished ones are kept for %d days",
			definition.Clip(id, 60), replayKeepDays)
	}

	if err != nil {
		return row, p, err
	}

	if err := json.Unmarshal([]byte(row.Text), &p); err != nil {
		return row, p, fmt.Errorf("consumer: the replay %s: %w", id, err)
	}
	return row, p, nil
}

// replayed reads the consumer of a replay as the replay runs it: under the replay's name, and with
// the consumer's present definition. It is nil if the replay must wait, because the consumer is
// paused, or end. Failures are parked, in any case, and keys do not wait until they are quiet.
func (s *Store) replayed(ctx context.Context, p *Replay) (*Consumer, error) {
	r, err := s.row(ctx, p.Consumer)
	if err != nil {
		return nil, err
	}

	c, why, err := r.replayable(p)
	if err != nil || why != "" || c.Paused && p.Into == "" {
		return nil, err
	}

	c.Name, c.Mode, c.OnFailure = p.run(), Async, Park
	if c.Coalesce != nil {
		c.Coalesce = &Coalesce{Cancel: c.Coalesce.Cancel}
	}
	return &c, nil
}

// replayable reads the consumer of a replay, and returns why the replay must not go on, "" if it
// may. A consumer that was deleted and made again is another one: it may have quite another target.
func (r *row) replayable(p *Replay) (c Consumer, why string, err error) {
	if r.State != active {
		return c, "consumer " + p.Consumer + " was deleted", nil
	}

	if r.Created != p.ConsumerCreated {
		return c, "consumer " + p.Consumer + " was deleted, and another of its name was made", nil
	}

	c, err = r.consumer()
	if err != nil {
		return c, "", err
	}

	if c.IgnoreReplays {
		why = "consumer " + p.Consumer +
			" is not replayed any more (ignoreReplays in its definition)"
	}
	return c, why, nil
}

// Replays lists the replays of a consumer, the newest first: those that are not finished, and those
// of the last 90 days. cursor is that of the page before, "" at the beginning; next is "" at the
// end.
func (s *Store) Replays(ctx context.Context, name,
	cursor string) (list []Replay, next string, err error) {
	return s.replays(ctx, table.Query{
		Index:  "list",
		PK:     openReplays + "#" + name,
		Desc:   true,
		Limit:  50,
		Cursor: cursor,
	})
}

// openReplays are those that are not finished, in the order of their ids. The index lags, so a
// replay that has just begun can be missing, and maxReplays is not exact.
func (s *Store) openReplays(ctx context.Context) (list []Replay, err error) {
	list, _, err = s.replays(ctx, table.Query{
		Index: "work",
		PK:    openReplays,
		Limit: 2 * maxReplays,
	})
	return slices.DeleteFunc(list, func(p Replay) bool { return !p.open() }), err
}

// replays reads the replays that an index finds, each from its own row: the index has only the
// keys.
func (s *Store) replays(ctx context.Context,
	q table.Query) (list []Replay, next string, err error) {
	var found []table.Head
	if next, err = s.Table.Page(ctx, q, &found); err != nil {
		return nil, "", err
	}

	for _, h := range found {
		_, p, err := s.replayRow(ctx, strings.TrimPrefix(h.PK, replayPrefix))
		if fault.Is(err, fault.NotFound) {
			continue // the index lags
		}
		if err != nil {
			return nil, "", err
		}
		list = append(list, p)
	}
	return list, next, nil
}

// ShowReplay reads a replay and its progress. One that does not run has only its result, as far as
// it is known. A missing one is a NotFound.
func (s *Store) ShowReplay(ctx context.Context, id string) (Replay, Progress, error) {
	_, p, err := s.replayRow(ctx, id)
	if err != nil || p.State != ReplayRunning {
		return p, Progress{Failed: p.Failed, Repeats: p.Repeats}, err
	}

	cursors, err := s.cursors(ctx, p.run())
	if err != nil {
		return p, Progress{}, err
	}

	c, err := s.replayed(ctx, &p)
	cursors = slices.DeleteFunc(cursors, func(cur cursor) bool { return cur.nothing(p) })
	out := Progress{Partitions: len(cursors), Paused: c == nil}
	if err != nil {
		return p, out, err
	}

	for _, cur := range cursors {
		out.Read += cur.Seq - cur.Begin
		out.Failed += cur.Parked
		out.Repeats += cur.Repeats
		if !p.Rebuild {
			out.Total += cur.Last - cur.Begin
		}

		switch {
		case cur.finished():
			out.Finished++
		case cur.Stop != nil:
			out.Stops = append(out.Stops, *cur.Stop)
		}
	}
	return p, out, nil
}

// finished reports whether a cursor of a replay is at its end: it has come to the last event, or
// ended too early, and no key waits.
func (c *cursor) finished() bool {
	return c.Pending == 0 && (c.Done || c.Last > 0 && c.Seq >= c.Last)
}

// nothing reports whether a replay of the log has no events in a partition.
func (c *cursor) nothing(p Replay) bool {
	return !p.Rebuild && c.Done && c.Stop == nil && c.Begin >= c.Last
}

// within leaves out the events behind the end of a replay.
func (c *cursor) within(facts []envelope.Event) []envelope.Event {
	if c.Last == 0 {
		return facts
	}
	i := slices.IndexFunc(facts, func(e envelope.Event) bool { return e.Seq > c.Last })
	if i < 0 {
		return facts
	}
	return facts[:i]
}
