package eventlog

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// Read returns the events of a partition after a place, in order and without payload, at most
// limit. It returns fewer at the end of the partition, and may return fewer elsewhere: only an
// empty result is the end. It never leaves out an event that is placed before one that it returns.
// A partition that does not exist is empty.
func (l *Log) Read(ctx context.Context, partition string, after int64,
	limit int) ([]envelope.Event, error) {
	if limit < 1 {
		return nil, nil
	}

	var rows []reference
	q := table.Query{
		PK:    partitionKey(partition),
		From:  seqSK(after + 1),
		To:    seqPrefix + "~",
		Limit: limit,
	}

	if _, err := l.Table.Page(ctx, q, &rows); err != nil {
		return nil, err
	}

	out, err := l.follow(ctx, partition, after, rows)
	if err != nil || len(out) > 0 {
		return out, err
	}
	return l.readArchive(ctx, partition, after, limit)
}

// At returns the facts of the events at some places, which it reads at once. Those that are not in the table are left
// out: they are in the archive, or not readable yet.
func (l *Log) At(ctx context.Context, places []envelope.Place) (map[envelope.Place]envelope.Event, error) {
	key := func(p envelope.Place) table.Key {
		return table.Key{PK: partitionKey(p.Partition), SK: seqSK(p.Seq)}
	}
	keys := make([]table.Key, len(places))
	for i, p := range places {
		keys[i] = key(p)
	}
	found, err := l.Table.Many(ctx, keys)
	if err != nil {
		return nil, err
	}

	at := map[envelope.Place]envelope.Event{}
	for _, p := range places {
		raw, there := found[key(p)]
		if !there {
			continue
		}
		var r reference
		if err := raw.Decode(&r); err != nil {
			return nil, err
		}
		e, err := l.factsOf(ctx, r)
		if err != nil {
			return nil, err
		}
		at[p] = facts(e, p.Partition, p.Seq)
	}
	return at, nil
}

// follow are the facts at references that follow a place. The rows of one transaction become
// readable one by one: what is behind a gap waits, since a cursor that has passed a gap would never
// come back to it.
func (l *Log) follow(ctx context.Context, partition string, after int64,
	rows []reference) (out []envelope.Event,
	err error) {
	for _, r := range rows {
		after++
		if r.SK != seqSK(after) {
			break
		}
		e, err := l.factsOf(ctx, r)
		if err != nil {
			return nil, err
		}
		out = append(out, facts(e, partition, after))
	}
	return out, nil
}

// readArchive reads on from a place in the archive, if the table does not have it any more. Whether
// that is so the head says, since the place may just as well be the end of the log.
func (l *Log) readArchive(ctx context.Context, partition string, after int64,
	limit int) ([]envelope.Event, error) {
	var h head
	err := l.Table.Get(ctx, headKey(partition), &h)
	if fault.Is(err, fault.NotFound) {
		return nil, nil
	}

	if err != nil {
		return nil, err
	}

	if h.Trimmed <= after {
		return nil, nil
	}

	events, err := l.archived(ctx, partition, after+1)
	if err != nil {
		return nil, err
	}

	out := make([]envelope.Event, min(limit, len(events)))
	for i := range out {
		out[i] = events[i].Facts()
	}
	return out, nil
}

// factsOf are the facts of the event at a reference; for very large ones with the payload.
func (l *Log) factsOf(ctx context.Context, r reference) (e envelope.Event, err error) {
	if r.Facts != "" {
		if err := json.Unmarshal([]byte(r.Facts), &e); err != nil {
			return e, fmt.Errorf("eventlog: the facts of %s: %w", r.Key(), err)
		}
		return e, nil
	}

	one, err := l.Events(ctx, []envelope.Event{{
		Subject:   envelope.Ref{Type: r.SubjectType, ID: r.SubjectID},
		Version:   r.Version,
		Partition: strings.TrimPrefix(r.PK, logPrefix),
		Seq:       r.seq(),
	}})
	if err != nil {
		return e, err
	}
	return one[0], nil
}

// Events returns events with their payload, in the same order, from the table or the archive. Of
// what it is given it uses the subject, its version, and the place. An event that is in neither is
// a NotFound.
func (l *Log) Events(ctx context.Context, facts []envelope.Event) ([]envelope.Event, error) {
	keys := make([]table.Key, len(facts))
	for i, f := range facts {
		s, err := event.Row{SubjectType: f.Subject.Type, SubjectID: f.Subject.ID}.Subject()
		if err != nil {
			return nil, err
		}
		keys[i] = event.Key(s, f.Version)
	}

	rows, err := l.Table.Many(ctx, keys)
	if err != nil {
		return nil, err
	}

	out := make([]envelope.Event, len(facts))
	for i, f := range facts {
		raw, kept := rows[keys[i]]
		e, err := l.eventOf(ctx, f, raw, kept)
		if err != nil {
			return nil, err
		}

		// Of a row that was read just before it was placed, the place is not on it yet.
		e.Partition, e.Seq = f.Partition, f.Seq
		out[i] = e
	}
	return out, nil
}

// eventOf is the event of these facts: from its row, or from the archive if the table has not kept
// it.
func (l *Log) eventOf(ctx context.Context, f envelope.Event, raw table.Raw,
	kept bool) (envelope.Event, error) {
	if !kept {
		return l.expired(ctx, f)
	}

	var row event.Row
	if err := raw.Decode(&row); err != nil {
		return envelope.Event{}, err
	}
	return row.Envelope()
}

// expired is an event that only the archive has. A file whose event at that place is another one is
// of another epoch: the event is not kept.
func (l *Log) expired(ctx context.Context, f envelope.Event) (envelope.Event, error) {
	events, err := l.archived(ctx, f.Partition, f.Seq)
	if err != nil {
		return f, err
	}
	if e := events[0]; e.Subject == f.Subject && e.Version == f.Version {
		return e, nil
	}
	return f, fault.New(fault.NotFound, "the event %d of %s is not that of %s %s version %d", f.Seq,
		f.Partition,
		f.Subject.Type, f.Subject.ID, f.Version)
}
