package eventlog

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"archivist/pkg/envelope"
	"archivist/pkg/event"
	"archivist/pkg/fault"
	"archivist/pkg/table"
)

// Read returns the events of a partition after a place, in order and without payload, at most
// limit. It returns fewer at the end of the partition, and may return fewer elsewhere: only an empty
// result is the end. It never leaves out an event that is placed before one that it returns.
func (l *Log) Read(ctx context.Context, partition string, after int64, limit int) ([]envelope.Event, error) {
	if limit < 1 {
		return nil, nil
	}
	var rows []reference
	q := table.Query{PK: partitionKey(partition), From: seqSK(after + 1), To: seqPrefix + "~", Limit: limit}
	if _, err := l.Table.Page(ctx, q, &rows); err != nil {
		return nil, err
	}
	out, err := l.follow(ctx, partition, after, rows)
	if err != nil || len(out) > 0 {
		return out, err
	}
	return l.readArchive(ctx, partition, after, limit)
}

// follow are the facts at references that follow a place. The rows of one transaction become
// readable one by one: what is behind a gap waits.
func (l *Log) follow(ctx context.Context, partition string, after int64, rows []reference) (out []envelope.Event,
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

// readArchive reads on from a place in the archive, if the table does not have it any more.
func (l *Log) readArchive(ctx context.Context, partition string, after int64, limit int) ([]envelope.Event, error) {
	var h head
	err := l.Table.Get(ctx, headKey(partition), &h)
	if fault.Is(err, fault.NotFound) || err == nil && h.Trimmed <= after {
		return nil, nil
	}
	if err != nil {
		return nil, err
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

// factsOf are the facts of the event at a reference.
func (l *Log) factsOf(ctx context.Context, r reference) (e envelope.Event, err error) {
	if r.Facts != "" {
		if err := json.Unmarshal([]byte(r.Facts), &e); err != nil {
			return e, fmt.Errorf("eventlog: the facts of %s: %w", r.Key(), err)
		}
		return e, nil
	}
	one, err := l.Events(ctx, []envelope.Event{{Subject: envelope.Ref{Type: r.SubjectType, ID: r.SubjectID},
		Version: r.Version, Partition: strings.TrimPrefix(r.PK, logPrefix), Seq: r.seq()}})
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
		var row event.Row
		raw, kept := rows[keys[i]]
		if kept {
			err = raw.Decode(&row)
			if err == nil {
				out[i], err = row.Envelope()
			}
		} else {
			out[i], err = l.expired(ctx, f)
		}
		if err != nil {
			return nil, err
		}
		out[i].Partition, out[i].Seq = f.Partition, f.Seq
	}
	return out, nil
}

// expired is an event that only the archive has.
func (l *Log) expired(ctx context.Context, f envelope.Event) (envelope.Event, error) {
	events, err := l.archived(ctx, f.Partition, f.Seq)
	if err != nil {
		return f, err
	}
	if e := events[0]; e.Subject == f.Subject && e.Version == f.Version {
		return e, nil
	}
	return f, fault.New(fault.NotFound, "the event %d of %s is not that of %s %s version %d", f.Seq, f.Partition,
		f.Subject.Type, f.Subject.ID, f.Version)
}
