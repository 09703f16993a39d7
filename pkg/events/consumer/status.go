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

	// LagSeconds is for how long the oldest of these waits.
	LagSeconds int64 `json:"lagSeconds"`

	// Parked counts rows of parked events: several that were coalesced are one.
	Parked int64 `json:"parked"`

	// Waiting counts order keys that wait until they are quiet.
	Waiting int64 `json:"waiting,omitempty"`

	// NextRun is that of a scheduled consumer, in milliseconds since 1970; 0: it is not known yet.
	NextRun int64   `json:"nextRun,omitempty"`
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

	st, err := s.status(ctx, c, partitions, at)
	if err != nil || c.Mode != Scheduled {
		return st, err
	}

	var t timer
	err = s.Table.Get(ctx, table.Key{PK: own(name), SK: scheduleSK}, &t)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return st, err
	}

	st.NextRun = t.Next
	return st, nil
}

// status sums up the places of a consumer.
func (s *Store) status(ctx context.Context, c Consumer, partitions []envelope.Partition,
	at map[string]cursor) (Status, error) {
	st := Status{Consumer: c}
	now := s.Now()
	f, err := filter.Compile(c.Filter)
	if err != nil {
		return st, err
	}

	for _, p := range partitions {
		cur := at[p.Name]
		behind, lag, err := s.owes(ctx, c, f, p, cur)
		if err != nil {
			return st, err
		}

		st.Places = append(st.Places, Place{
			Partition:  p.Name,
			Seq:        cur.Seq,
			Head:       p.Head,
			LagSeconds: lag,
			Parked:     cur.Parked,
			Waiting:    cur.Pending,
			Redrives:   len(cur.Orders),
			Running:    cur.Live(now),
			Moved:      cur.Moved,
			Stop:       cur.Stop,
		})

		st.Behind += behind
		st.LagSeconds = max(st.LagSeconds, lag)
		st.Parked += cur.Parked
		st.Waiting += cur.Pending
	}
	return st, nil
}

// statusRead is how many events of a partition are looked at to tell which a consumer has still to handle.
const statusRead = 200

// owes counts the events of a partition that a consumer has still to handle, and says for how many seconds the first of
// them has been waiting. A cursor moves past what its filter does not select only some minutes later, so a number is no
// event to handle by itself. Of more than statusRead, the rest counts as it is.
func (s *Store) owes(ctx context.Context, c Consumer, f *filter.Filter, p envelope.Partition,
	cur cursor) (events, seconds int64, err error) {
	if cur.Seq >= p.Head {
		return 0, 0, nil
	}

	facts, err := s.Log.Read(ctx, p.Name, cur.Seq, statusRead)
	if err != nil || len(facts) == 0 {
		return 0, 0, err
	}

	last := facts[len(facts)-1]
	rest := max(0, p.Head-last.Seq)
	since := int64(0)
	for _, e := range facts {
		if why := decide(c, f, e, cur.From); why != "" && why != skipDepth {
			continue
		}
		if events == 0 {
			since = e.Time
		}
		events++
	}

	if events == 0 && rest > 0 {
		since = last.Time
	}
	if events+rest == 0 {
		return 0, 0, nil
	}
	return events + rest, max(0, (s.Now().UnixMilli()-since)/1000), nil
}

// lag is for how many seconds the next event of a cursor has been waiting, since it happened; 0 if
// there is none.
func (s *Store) lag(ctx context.Context, p envelope.Partition, cur cursor,
	now time.Time) (int64, error) {
	if cur.Seq >= p.Head {
		return 0, nil
	}
	facts, err := s.Log.Read(ctx, p.Name, cur.Seq, 1)
	if err != nil || len(facts) == 0 {
		return 0, err
	}
	return max(0, (now.UnixMilli()-facts[0].Time)/1000), nil
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
