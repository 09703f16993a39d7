package eventlog

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"archivist/pkg/envelope"
	"archivist/pkg/event"
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
	var out []envelope.Event
	for _, r := range rows {
		seq, err := strconv.ParseInt(strings.TrimPrefix(r.SK, seqPrefix), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("eventlog: %s: %w", r.Key(), err)
		}
		// The rows of one transaction become readable one by one: what follows a gap waits.
		if seq != after+1 {
			break
		}
		e, err := l.factsOf(ctx, r)
		if err != nil {
			return nil, err
		}
		out = append(out, facts(e, partition, seq))
		after = seq
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
	return l.whole(ctx, envelope.Ref{Type: r.SubjectType, ID: r.SubjectID}, r.Version)
}

// Events returns events with their payload, in the same order.
func (l *Log) Events(ctx context.Context, facts []envelope.Event) ([]envelope.Event, error) {
	out := make([]envelope.Event, len(facts))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(l.readers())
	for i, f := range facts {
		g.Go(func() error {
			e, err := l.whole(ctx, f.Subject, f.Version)
			e.Partition, e.Seq = f.Partition, f.Seq
			out[i] = e
			return err
		})
	}
	return out, g.Wait()
}

// whole reads one event.
func (l *Log) whole(ctx context.Context, subject envelope.Ref, version int64) (envelope.Event, error) {
	s, err := event.Row{SubjectType: subject.Type, SubjectID: subject.ID}.Subject()
	if err != nil {
		return envelope.Event{}, err
	}
	var row event.Row
	if err := l.Table.Get(ctx, event.Key(s, version), &row); err != nil {
		return envelope.Event{}, err
	}
	return row.Envelope()
}
