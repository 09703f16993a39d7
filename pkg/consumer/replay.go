package consumer

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"archivist/pkg/definition"
	"archivist/pkg/envelope"
	"archivist/pkg/event"
	"archivist/pkg/fault"
	"archivist/pkg/filter"
	"archivist/pkg/table"
)

// Limits of replays, each with its reason.
const (
	maxReplays       = 10  // that are not finished: each wakes runs every minute
	maxReplayFailure = 20  // failures that a finished replay lists: they are in its row
	replayKeepDays   = 90  // the row of a finished one
	maxReplayCursors = 500 // partitions of one
)

// States of a replay.
const (
	ReplayPreparing = "preparing" // its cursors are being placed
	ReplayRunning   = "running"
	ReplayEnding    = "ending" // its result is being written, then its rows are removed
	ReplayDone      = "done"
)

// Range selects events of the log for a replay. The zero Range is all events that are kept.
type Range struct {
	Partition string `json:"partition,omitempty"` // "": all
	From      string `json:"from,omitempty"`      // as in Definition.Start; StartHorizon
	Until     string `json:"until,omitempty"`     // likewise, inclusive; StartLatest, when the replay begins
	Filter    string `json:"filter,omitempty"`    // in addition to the consumer's; "": all that it selects
}

// Replay is a repetition of events for one consumer, or, if Rebuild is set, a snapshot of
// everything that is stored. Its calls of the target are marked Batch.Replay. It has cursors
// of its own: the consumer's do not move. Times are milliseconds since 1970.
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

	// ConsumerCreated tells the consumer from a later one of its name. Ends is why a replay that nobody
	// cancelled had to end too early.
	ConsumerCreated int64  `json:"consumerCreated,omitempty"`
	Ends            string `json:"ends,omitempty"`

	// Of one that has ended: how many events, or groups of coalesced ones, failed, and the first. What
	// ended the replay, or a part of it, too early is one of them, with the name of the consumer or of
	// the part as its id. Summed: they are known.
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

// replayRow is a replay.
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

// run is the name under which its cursors and parked events are kept, and with which runs
// of it are woken. No consumer can have it.
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
	row.Text = string(text)
	row.ListPK, row.ListSK = openReplays+"#"+p.Consumer, fmt.Sprintf("%013d#%s", p.Created, p.ID)
	row.WorkPK, row.WorkSK = openReplays, p.ID
	if !p.open() {
		row.WorkPK, row.WorkSK = "", ""
		row.ExpiresAt = p.Ended/1000 + replayKeepDays*24*60*60
	}
	return err
}

// replayRow reads a replay. A missing one is a NotFound.
func (s *Store) replayRow(ctx context.Context, id string) (row replayRow, p Replay, err error) {
	err = s.Table.Get(ctx, replayKey(id), &row)
	if fault.Is(err, fault.NotFound) {
		return row, p, fault.New(fault.NotFound, "there is no replay %q; finished ones are kept for %d days",
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

// Replay begins a replay of the events in r for a consumer, and returns it; into is the name
// of a shadow, or "". It runs in the background, from where it was after any crash.
//
// It is refused for a consumer whose definition has IgnoreReplays: what it does outside
// cannot be done again.
func (s *Store) Replay(ctx context.Context, name, into string, r Range, by By) (Replay, error) {
	if err := s.checkRange(ctx, &r); err != nil {
		return Replay{}, err
	}
	return s.beginReplay(ctx, Replay{Consumer: name, Into: into, Range: r}, by)
}

// Rebuild begins a rebuild: a consumer gets a snapshot of each collection, object and version
// that is stored now, and then the events from now on. Until it is done, the consumer does
// not run. With the name of a shadow as into, the consumer is left alone.
func (s *Store) Rebuild(ctx context.Context, name, into string, by By) (Replay, error) {
	return s.beginReplay(ctx, Replay{Consumer: name, Into: into, Rebuild: true}, by)
}

// beginReplay writes the row of a replay, with the consumer's event.
func (s *Store) beginReplay(ctx context.Context, p Replay, by By) (Replay, error) {
	p.ID = s.NewID()
	if by.Request != "" { // the same request again is the same replay
		p.ID = hash(p.Consumer + "#" + by.Request)
		_, made, err := s.replayRow(ctx, p.ID)
		if !fault.Is(err, fault.NotFound) {
			return made, err
		}
	}
	if err := s.checkShadow(ctx, p); err != nil {
		return p, err
	}
	if err := s.roomForReplay(ctx); err != nil {
		return p, err
	}
	p.State, p.Created, p.Actor, p.Reason = ReplayPreparing, s.Now().UnixMilli(), by.Actor, strings.TrimSpace(by.Reason)
	eventType, detail := "consumer.replayed", change{Replay: p.ID, Into: p.Into, Range: &p.Range}
	if p.Rebuild {
		eventType, detail.Range = "consumer.rebuilt", nil
	}
	err := s.act(ctx, p.Consumer, by, func(tx *table.Tx, r *row) (string, change, error) {
		c, err := r.consumer()
		if err == nil {
			err = c.mayReplay(p, r, s.Shadows)
		}
		if err != nil {
			return "", change{}, err
		}
		p.ConsumerCreated = r.Created
		if p.Rebuild && p.Into == "" {
			r.Rebuild = p.ID
			r.Resets = append(slices.Clone(r.Resets), reset{ID: p.ID, To: StartLatest, At: p.Created})
		}
		k := replayKey(p.ID)
		made := &replayRow{Head: table.Head{PK: k.PK, SK: k.SK}}
		err = made.set(p)
		tx.Insert(made)
		return eventType, detail, err
	})
	if err != nil {
		return p, err
	}
	if p.Rebuild && p.Into == "" {
		if err := s.finishResets(ctx, p.Consumer); err != nil {
			return p, err // the clock finishes them
		}
	}
	_, made, err := s.replayRow(ctx, p.ID)
	if fault.Is(err, fault.NotFound) {
		err = fault.New(fault.Conflict, "this idempotency key was used for another change of consumer %s; "+
			"use a new one", p.Consumer)
	}
	return made, err
}

// roomForReplay refuses one replay too many.
func (s *Store) roomForReplay(ctx context.Context) error {
	open, err := s.openReplays(ctx)
	if err == nil && len(open) >= maxReplays {
		err = fault.New(fault.Conflict, "%d replays are not finished; wait for one, or cancel it", len(open))
	}
	return err
}

// mayReplay refuses a replay that the consumer does not allow.
func (c *Consumer) mayReplay(p Replay, r *row, shadows []string) error {
	f, err := filter.Compile(c.Filter)
	switch {
	case err != nil:
		return err
	case c.IgnoreReplays:
		return fault.New(fault.Conflict, "consumer %s is not replayed: its effects are outside, or it counts "+
			"each event once (ignoreReplays in its definition)", c.Name)
	case p.Into != "" && c.Target.Handler != "" && !slices.Contains(shadows, c.Target.Handler):
		return fault.New(fault.Invalid, "into: the handler %s has one place for what it makes, and cannot build "+
			"another beside it; replay into consumer %s itself", c.Target.Handler, c.Name)
	case p.Rebuild && f.Names(event.File.String()):
		return fault.New(fault.Conflict, "rebuild: the filter of consumer %s names File, and a rebuild has no "+
			"events of files; replay its events", c.Name)
	case p.Rebuild && p.Into == "" && r.Rebuild != "":
		return fault.New(fault.Conflict, "consumer %s is being rebuilt by replay %s; wait for it, or cancel it", c.Name,
			r.Rebuild)
	}
	return nil
}

// checkShadow refuses a name of a shadow that something else uses.
func (s *Store) checkShadow(ctx context.Context, p Replay) error {
	if p.Into == "" {
		return nil
	}
	if !definition.Names.MatchString(p.Into) {
		return fault.New(fault.Invalid, "into: %q: expected 1 to 50 small letters, digits and hyphens, "+
			"beginning with a letter", definition.Clip(p.Into, 60))
	}
	c, err := s.Get(ctx, p.Into)
	switch {
	case fault.Is(err, fault.NotFound):
		return nil
	case err != nil:
		return err
	case !c.Paused:
		return fault.New(fault.Conflict, "into: consumer %s is running; pause it, or choose a name that no "+
			"consumer has", p.Into)
	}
	return nil
}

// checkRange refuses a range that cannot be replayed, and sets its defaults.
func (s *Store) checkRange(ctx context.Context, r *Range) error {
	if r.From == "" {
		r.From = StartHorizon
	}
	if r.Until == "" {
		r.Until = StartLatest
	}
	from, err := parseStart(r.From)
	if err != nil {
		return fault.New(fault.Invalid, "from: %w", err)
	}
	until, err := parseStart(r.Until)
	if err != nil {
		return fault.New(fault.Invalid, "until: %w", err)
	}
	switch {
	case from.latest:
		return fault.New(fault.Invalid, "from: %q: nothing would be replayed", r.From)
	case r.Until == StartHorizon:
		return fault.New(fault.Invalid, "until: %q: nothing would be replayed", r.Until)
	case from.seq+until.seq > 0 && r.Partition == "":
		return fault.New(fault.Invalid, "partition: each partition has seqs of its own; name the partition")
	case until.seq > 0 && from.seq > until.seq, until.time > 0 && from.time > until.time:
		return fault.New(fault.Invalid, "until: %s is before %s", r.Until, r.From)
	}
	if err := s.checkPartition(ctx, r.Partition); err != nil {
		return err
	}
	return checkFilter(r.Filter)
}

// checkPartition refuses a partition that does not exist, and too many.
func (s *Store) checkPartition(ctx context.Context, name string) error {
	if name != "" {
		_, err := s.Log.Partition(ctx, name)
		if fault.Is(err, fault.NotFound) {
			err = fault.New(fault.Invalid, "partition: there is no partition %q of the log", definition.Clip(name, 60))
		}
		return err
	}
	all, err := s.Log.Partitions(ctx)
	if err == nil && len(all) > maxReplayCursors {
		err = fault.New(fault.Invalid, "partition: the log has %d partitions, and one replay can read %d; name one",
			len(all), maxReplayCursors)
	}
	return err
}

// Replays lists the replays of a consumer, the newest first: those that are not finished, and
// those of the last 90 days.
func (s *Store) Replays(ctx context.Context, name, cursor string) (list []Replay, next string, err error) {
	return s.replays(ctx, table.Query{Index: "list", PK: openReplays + "#" + name, Desc: true, Limit: 50,
		Cursor: cursor})
}

func (s *Store) openReplays(ctx context.Context) (list []Replay, err error) {
	list, _, err = s.replays(ctx, table.Query{Index: "work", PK: openReplays, Limit: 2 * maxReplays})
	return slices.DeleteFunc(list, func(p Replay) bool { return !p.open() }), err
}

// replays reads the replays that an index finds.
func (s *Store) replays(ctx context.Context, q table.Query) (list []Replay, next string, err error) {
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

// ShowReplay reads a replay and its progress. One that has ended has only its result.
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

// CancelReplay ends a replay. What was handled is not undone; after a rebuild that did not
// end, what the consumer makes is not complete: rebuild it again.
func (s *Store) CancelReplay(ctx context.Context, id string, by By) error {
	_, p, err := s.replayRow(ctx, id)
	if err != nil {
		return err
	}
	return s.act(ctx, p.Consumer, by, func(tx *table.Tx, _ *row) (string, change, error) {
		saved, p, err := s.replayRow(ctx, id)
		if err == nil && (!p.open() || p.State == ReplayEnding) {
			err = errUnchanged
		}
		if err != nil {
			return "", change{}, err
		}
		p.State, p.Cancelled = ReplayEnding, true
		err = saved.set(p)
		tx.Save(&saved)
		return "consumer.replay-cancelled", change{Replay: id}, err
	})
}

// finished reports whether a cursor of a replay is at its end.
func (c *cursor) finished() bool {
	return c.Pending == 0 && (c.Done || c.Last > 0 && c.Seq >= c.Last)
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
