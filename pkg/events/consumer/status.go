package consumer

import (
	"context"
	"time"

	"archivist/pkg/events/envelope"
	"archivist/pkg/events/filter"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// Status is a consumer with how far it has come. What is counted is over all partitions; LagSeconds
// is the longest.
type Status struct {
	Consumer

	// Behind counts events that it has still to handle. Those that its filter does not select do not count, as far as
	// this was looked at (statusRead); nor do those that are not kept any more.
	Behind int64 `json:"behind"`

	// AtLeast: events were not counted in some partitions, in which it is behind, too.
	AtLeast bool `json:"atLeast,omitempty"`

	// LagSeconds is for how long the oldest of these waits. Since is when it happened, in milliseconds since 1970; 0:
	// there is none.
	LagSeconds int64 `json:"lagSeconds"`
	Since      int64 `json:"since,omitempty"`

	// Parked counts rows of parked events: several that were coalesced are one.
	Parked int64 `json:"parked"`

	// Waiting counts order keys that wait until they are quiet.
	Waiting int64 `json:"waiting,omitempty"`

	// NextRun is that of a scheduled consumer, in milliseconds since 1970; 0: it is not known yet.
	NextRun int64 `json:"nextRun,omitempty"`

	// Broken says why its filter cannot be read, "" if it can: nothing is known of what it has still to handle.
	Broken string `json:"broken,omitempty"`

	// Stopped counts the partitions in which it does not go on.
	Stopped int `json:"stopped,omitempty"`

	// Counted is when this was counted, in milliseconds since 1970; 0: it was not yet.
	Counted int64   `json:"counted"`
	Places  []Place `json:"partitions"`
}

// Place is how far a consumer has come in one partition. Times are milliseconds since 1970.
type Place struct {
	Partition string `json:"partition"`

	// All events up to Seq are handled, parked, or wait until their key is quiet. Head is the
	// newest event.
	Seq        int64 `json:"seq"`
	Head       int64 `json:"head"`
	LagSeconds int64 `json:"lagSeconds"`
	Since      int64 `json:"since,omitempty"`
	Parked     int64 `json:"parked"`
	Waiting    int64 `json:"waiting,omitempty"`
	Redrives   int   `json:"redrives,omitempty"` // that are not finished
	Running    bool  `json:"running,omitempty"`
	Moved      int64 `json:"moved,omitempty"`
	Stop       *Stop `json:"stop,omitempty"`
}

// Show reads a consumer with how far it has come in each partition. It is read row by row, so it is
// not of one moment. A missing consumer is a NotFound.
func (s *Store) Show(ctx context.Context, name string) (Status, error) {
	c, err := s.Get(ctx, name)
	if err != nil {
		return Status{}, err
	}

	partitions, err := s.Log.Partitions(ctx)
	if err != nil {
		return Status{}, err
	}

	at, err := s.places(ctx, name)
	if err != nil {
		return Status{}, err
	}

	read, err := s.readAhead(ctx, partitions, at)
	if err != nil {
		return Status{}, err
	}
	st, err := s.status(ctx, c, partitions, at, read)
	if err != nil {
		return st, err
	}
	st.NextRun, err = s.nextRun(ctx, c)
	return st, err
}

// nextRun is that of a scheduled consumer, in milliseconds since 1970; 0: it is not known yet, or there is none.
func (s *Store) nextRun(ctx context.Context, c Consumer) (int64, error) {
	if c.Mode != Scheduled {
		return 0, nil
	}
	var t timer
	err := s.Table.Get(ctx, table.Key{PK: own(c.Name), SK: scheduleSK}, &t)
	if fault.Is(err, fault.NotFound) {
		return 0, nil
	}
	return t.Next, err
}

// eventsAfter reads the events of a partition after a seq, as far as owes needs them.
type eventsAfter func(ctx context.Context, p envelope.Partition,
	seq int64) ([]envelope.Event, error)

func (s *Store) readAfter(ctx context.Context, p envelope.Partition,
	seq int64) ([]envelope.Event, error) {
	if far(p, seq) {
		return s.Log.Read(ctx, p.Name, seq, 1)
	}
	return s.Log.Read(ctx, p.Name, seq, statusRead)
}

// readAhead is readAfter, for which the next events of all partitions in which a consumer is far behind were read at
// once.
func (s *Store) readAhead(ctx context.Context, partitions []envelope.Partition,
	at map[string]cursor) (eventsAfter, error) {
	var places []envelope.Place
	for _, p := range partitions {
		if seq := at[p.Name].Seq; far(p, seq) {
			places = append(places, envelope.Place{Partition: p.Name, Seq: seq + 1})
		}
	}
	next, err := s.Log.At(ctx, places)
	return func(ctx context.Context, p envelope.Partition, seq int64) ([]envelope.Event, error) {
		if e, there := next[envelope.Place{Partition: p.Name, Seq: seq + 1}]; there {
			return []envelope.Event{e}, nil
		}
		return s.readAfter(ctx, p, seq) // it is near, or in the archive
	}, err
}

// status sums up the places of a consumer.
func (s *Store) status(ctx context.Context, c Consumer, partitions []envelope.Partition,
	at map[string]cursor, read eventsAfter) (Status, error) {
	now := s.Now()
	st := Status{Consumer: c, Counted: now.UnixMilli()}
	f, err := filter.Compile(c.Filter)
	if err != nil { // another release wrote it: that hides no other consumer
		st.Broken, f = err.Error(), nil
	}

	for _, p := range partitions {
		cur := at[p.Name]
		behind, since, err := s.owes(ctx, c, f, p, cur, read)
		if err != nil {
			return st, err
		}

		st.Places = append(st.Places, Place{
			Partition:  p.Name,
			Seq:        cur.Seq,
			Head:       p.Head,
			LagSeconds: lagOf(since, now),
			Since:      since,
			Parked:     cur.Parked,
			Waiting:    cur.Pending,
			Redrives:   len(cur.Orders),
			Running:    cur.Live(now),
			Moved:      cur.Moved,
			Stop:       cur.Stop,
		})

		st.Behind += behind
		st.AtLeast = st.AtLeast || f == nil && cur.Seq < p.Head
		if since > 0 && (st.Since == 0 || since < st.Since) {
			st.LagSeconds, st.Since = lagOf(since, now), since
		}
		st.Parked += cur.Parked
		st.Waiting += cur.Pending
		if cur.Stop != nil {
			st.Stopped++
		}
	}
	return st, nil
}

// statusRead is how many events of a partition are looked at, at most, to tell which a consumer has still to handle.
const statusRead = 50

// lagOf is for how many seconds an event has been waiting that happened at a time, in milliseconds since 1970; 0 for
// none.
func lagOf(since int64, now time.Time) int64 {
	if since == 0 {
		return 0
	}
	return max(0, (now.UnixMilli()-since)/1000)
}

// far reports whether there are too many events after a seq to look at each.
func far(p envelope.Partition, seq int64) bool { return p.Head-seq > statusRead }

// owes counts the events of a partition that a consumer has still to handle, and says when the first of them happened.
// A cursor moves past what its filter does not select only some minutes later, so a number is no event to handle by
// itself. More than statusRead count as they are. Without a filter nothing is known: none.
func (s *Store) owes(ctx context.Context, c Consumer, f *filter.Filter, p envelope.Partition,
	cur cursor, read eventsAfter) (events, since int64, err error) {
	if cur.Seq >= p.Head || f == nil {
		return 0, 0, nil
	}

	facts, err := read(ctx, p, cur.Seq)
	if err != nil || len(facts) == 0 {
		return 0, 0, err
	}
	if far(p, cur.Seq) {
		return p.Head - cur.Seq, facts[0].Time, nil
	}

	for _, e := range facts {
		if why := decide(c, f, e, cur.From); why != "" && why != skipDepth {
			continue
		}
		if events == 0 {
			since = e.Time
		}
		events++
	}
	return events, since, nil
}

// Passed returns, for each partition, the seq up to which every required consumer has
// handled all events: those that are parked or wait count as not handled. A partition in
// which a required consumer has not been is at 0. ok is false if there is no required
// consumer: nothing is held back. Events up to it may expire.
func (s *Store) Passed(ctx context.Context,
	partitions []envelope.Partition) (seqs map[string]int64, ok bool,
	err error) {
	list, err := s.List(ctx)
	if err != nil {
		return nil, false, err
	}

	seqs = map[string]int64{}
	for _, c := range list {
		if !c.Required {
			continue
		}

		at, err := s.places(ctx, c.Name)
		if err != nil {
			return nil, false, err
		}

		for _, p := range partitions {
			floor, err := s.floor(ctx, c.Name, p.Name, at[p.Name])
			if err != nil {
				return nil, false, err
			}
			if old, seen := seqs[p.Name]; !seen || floor < old {
				seqs[p.Name] = floor
			}
		}

		ok = true
	}
	return seqs, ok, nil
}

// floor is the seq before the oldest event that a consumer still needs: parked and waiting rows
// have only references, and read the events again from the log.
func (s *Store) floor(ctx context.Context, name, partition string, cur cursor) (int64, error) {
	floor := cur.Seq
	if cur.Parked > 0 {
		rows, err := readAll[parkedRow](ctx, s.Table, table.Query{PK: parkedPK(name, partition)})
		if err != nil {
			return 0, err
		}
		for _, row := range rows {
			floor = min(floor, row.Refs[0].Seq-1)
		}
	}

	if cur.Pending > 0 {
		rows, err := readAll[pendingRow](ctx, s.Table,
			table.Query{PK: pendingKey(name, partition, "").PK})
		if err != nil {
			return 0, err
		}
		for _, row := range rows {
			floor = min(floor, row.Refs[0].Seq-1)
		}
	}
	return floor, nil
}
