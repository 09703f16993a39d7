package consumer

import (
	"context"
	"time"

	"archivist/pkg/envelope"
	"archivist/pkg/fault"
	"archivist/pkg/table"
)

// Status is a consumer with how far it has come.
type Status struct {
	Consumer
	Behind     int64   `json:"behind"`            // events of the log that it has not looked at
	LagSeconds int64   `json:"lagSeconds"`        // how long the oldest of these waits
	Parked     int64   `json:"parked"`            // rows of parked events
	Waiting    int64   `json:"waiting,omitempty"` // order keys that wait until they are quiet
	NextRun    int64   `json:"nextRun,omitempty"` // of a scheduled consumer, in milliseconds since 1970
	Places     []Place `json:"partitions"`
}

// Place is how far a consumer has come in one partition. Times are milliseconds since 1970.
type Place struct {
	Partition  string `json:"partition"`
	Seq        int64  `json:"seq"`  // all events up to it are handled, parked, or wait until their key is quiet
	Head       int64  `json:"head"` // the newest event
	LagSeconds int64  `json:"lagSeconds"`
	Parked     int64  `json:"parked"`
	Waiting    int64  `json:"waiting,omitempty"`
	Redrives   int    `json:"redrives,omitempty"` // that are not finished
	Running    bool   `json:"running,omitempty"`
	Moved      int64  `json:"moved,omitempty"`
	Stop       *Stop  `json:"stop,omitempty"`
}

// Show reads a consumer with how far it has come in each partition.
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
	if fault.Is(err, fault.NotFound) {
		err = nil
	}
	st.NextRun = t.Next
	return st, err
}

// places are a consumer's cursors by partition.
func (s *Store) places(ctx context.Context, name string) (map[string]cursor, error) {
	cursors, err := s.cursors(ctx, name)
	at := map[string]cursor{}
	for _, cur := range cursors {
		at[cur.partition()] = cur
	}
	return at, err
}

// status sums up the places of a consumer.
func (s *Store) status(ctx context.Context, c Consumer, partitions []envelope.Partition,
	at map[string]cursor) (Status, error) {
	st := Status{Consumer: c}
	now := s.Now()
	for _, p := range partitions {
		cur := at[p.Name]
		lag, err := s.lag(ctx, p, cur, now)
		if err != nil {
			return st, err
		}
		st.Places = append(st.Places, Place{Partition: p.Name, Seq: cur.Seq, Head: p.Head, LagSeconds: lag,
			Parked: cur.Parked, Waiting: cur.Pending, Redrives: len(cur.Orders), Running: cur.Live(now),
			Moved: cur.Moved, Stop: cur.Stop})
		st.Behind += max(0, p.Head-max(cur.Seq, p.Horizon-1))
		st.LagSeconds = max(st.LagSeconds, lag)
		st.Parked += cur.Parked
		st.Waiting += cur.Pending
	}
	return st, nil
}

// lag is for how many seconds the next event of a cursor has been waiting.
func (s *Store) lag(ctx context.Context, p envelope.Partition, cur cursor, now time.Time) (int64, error) {
	if cur.Seq >= p.Head {
		return 0, nil
	}
	facts, err := s.Log.Read(ctx, p.Name, cur.Seq, 1)
	if err != nil || len(facts) == 0 {
		return 0, err
	}
	return max(0, (now.UnixMilli()-facts[0].Time)/1000), nil
}

// ParkedEvent is a parked event, or several of a key that were coalesced. Times are
// milliseconds since 1970.
type ParkedEvent struct {
	Partition string       `json:"partition"`
	Key       string       `json:"key"`
	ID        string       `json:"id"`
	Subject   envelope.Ref `json:"subject"`
	Number    int64        `json:"number,omitempty"` // among the events of its subject, or 0
	Type      string       `json:"type"`
	Time      int64        `json:"time"`
	Seq       int64        `json:"seq"`
	Coalesced []string     `json:"coalesced,omitempty"` // the ids of all, if they are several
	Reason    string       `json:"reason"`
	Stack     string       `json:"stack,omitempty"`
	Behind    string       `json:"behind,omitempty"` // it waits for this event of its key
	Tries     int          `json:"tries"`
	Since     int64        `json:"since"`
	Version   int          `json:"consumerVersion"` // of the definition, at the last try
}

// Parked lists a page of the events that a consumer has parked in a partition: those of a
// key one after the other, in the order of the log.
func (s *Store) Parked(ctx context.Context, name, partition, cursor string) ([]ParkedEvent, string, error) {
	if _, err := s.Get(ctx, name); err != nil {
		return nil, "", err
	}
	var rows []parkedRow
	next, err := s.Table.Page(ctx, table.Query{PK: parkedPK(name, partition), Cursor: cursor}, &rows)
	if err != nil {
		return nil, "", err
	}
	list := make([]ParkedEvent, len(rows))
	for i, row := range rows {
		list[i] = row.event(partition)
	}
	return list, next, nil
}

// event describes a parked row.
func (row *parkedRow) event(partition string) ParkedEvent {
	f := row.Refs[len(row.Refs)-1]
	p := ParkedEvent{Partition: partition, Key: row.OrderKey, ID: f.ID, Type: f.Type, Time: f.Time, Seq: f.Seq,
		Subject: envelope.Ref{Type: f.SubjectType, ID: f.SubjectID}, Number: f.Version, Reason: row.Reason,
		Stack: row.Stack, Behind: row.Behind, Tries: row.Tries, Since: row.Since, Version: row.Version}
	if s := f.Shown; s != nil {
		p.Type, p.Subject, p.Number = s.Type, envelope.Ref{Type: s.SubjectType, ID: s.SubjectID}, 0
	}
	if row.Behind != "" {
		p.Reason = "it waits behind the event " + row.Behind + " of its key"
	}
	if len(row.Refs) > 1 {
		for _, f := range row.Refs {
			p.Coalesced = append(p.Coalesced, f.ID)
		}
	}
	return p
}

// Passed returns, for each partition, the seq up to which every required consumer has
// handled all events: those that are parked or wait count as not handled. A partition in
// which a required consumer has not been is at 0. ok is false if there is no required
// consumer: nothing is held back. Events up to it may expire.
func (s *Store) Passed(ctx context.Context, partitions []envelope.Partition) (seqs map[string]int64, ok bool,
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

// floor is the seq before the oldest event that a consumer still needs.
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
		rows, err := readAll[pendingRow](ctx, s.Table, table.Query{PK: pendingKey(name, partition, "").PK})
		if err != nil {
			return 0, err
		}
		for _, row := range rows {
			floor = min(floor, row.Refs[0].Seq-1)
		}
	}
	return floor, nil
}
