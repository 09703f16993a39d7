package eventlog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/guregu/dynamo/v2"

	"archivist/pkg/events/envelope"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// Limits of one file. It is composed in memory.
const (
	fileEvents = 10_000
	fileBytes  = 8 << 20
)

// dayOf is the day of a time in milliseconds since 1970, in UTC, as "2026-11-22".
func dayOf(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.DateOnly) }

// ArchiveTo brings the events of a partition up to a seq into the archive, those of today too. It
// costs one query if they are there already. Several calls at once are harmless: they write the
// same files, and each file once. It can be repeated from any point of a crash.
func (l *Log) ArchiveTo(ctx context.Context, partition string, seq int64) error {
	if l.Bucket == nil {
		return errors.New("eventlog: the log has no archive")
	}
	for last := int64(-1); ; {
		newest, err := l.newestFile(ctx, partition)
		if err != nil || newest.Last >= seq {
			return err
		}

		if newest.Last == last {
			return fmt.Errorf("eventlog: archive %s: event %d cannot be archived", partition,
				last+1)
		}

		last = newest.Last
		p, err := l.Partition(ctx, partition)
		if err != nil {
			return err
		}

		if err := l.archiveNext(ctx, p); err != nil {
			return fmt.Errorf("eventlog: archive %s: %w", partition, err)
		}
	}
}

// archiveNext writes the next file of a partition, if it has an event that is in none. An event
// that is in neither the table nor a file is an error: the archive would have a gap.
func (l *Log) archiveNext(ctx context.Context, p envelope.Partition) error {
	before, err := l.newestFile(ctx, p.Name)
	if err != nil || before.Last >= p.Head {
		return err
	}

	first := before.Last + 1
	var refs []reference
	q := table.Query{PK: partitionKey(p.Name), From: seqSK(first), To: seqSK(first), Limit: 1}
	if _, err := l.Table.Page(ctx, q, &refs); err != nil {
		return err
	}

	if len(refs) == 0 {
		return fmt.Errorf("the event at %d is in neither the table nor the archive", first)
	}

	day := dayOf(refs[0].Placed)
	if day < dayOf(l.Now().UnixMilli()) {
		if err := l.endDay(ctx, p, refs[0].Placed); err != nil {
			return err
		}
	}

	h := Header{Partition: p.Name, Epoch: p.Epoch, Day: day, First: first, Before: before.named()}
	lines, err := l.lines(ctx, &h)
	if err != nil || h.Last < h.First {
		return err
	}
	return l.writeFile(ctx, p, h, lines)
}

// endDay makes sure that no event is placed on a day that is over: a placement that began before
// midnight and is late fails, because the head's revision rises, and is repeated with the time of
// the next day. Otherwise a file of the day would have to follow one of the next.
func (l *Log) endDay(ctx context.Context, p envelope.Partition, onDay int64) error {
	next := time.UnixMilli(onDay).UTC().Truncate(24 * time.Hour).Add(24 * time.Hour).UnixMilli()
	err := l.Table.Change(ctx, headKey(p.Name), l.NewID(), func(u *dynamo.Update) {
		u.Set("placed_ms", next).If("placed_ms < ?", next)
	}, &head{})
	if fault.Is(err, fault.Stale) { // there are events of later days
		return nil
	}
	return err
}

// lines are the lines of the next file: events of the header's day from its first one on, as many
// as one file has. It sets the header's last one; below the first one if there is none.
func (l *Log) lines(ctx context.Context, h *Header) ([]byte, error) {
	var out bytes.Buffer
	h.Last = h.First - 1
	for int(h.Last-h.First)+1 < fileEvents {
		var refs []reference
		q := table.Query{
			PK:    partitionKey(h.Partition),
			From:  seqSK(h.Last + 1),
			To:    seqPrefix + "~",
			Limit: table.MaxGets,
		}

		if _, err := l.Table.Page(ctx, q, &refs); err != nil {
			return nil, err
		}

		events, ended, err := l.ofDay(ctx, h, refs)
		if err != nil {
			return nil, err
		}

		for _, e := range events {
			data, err := json.Marshal(e)
			if err != nil {
				return nil, err
			}
			if out.Len() > 0 && out.Len()+len(data) > fileBytes {
				return out.Bytes(), nil
			}
			fmt.Fprintf(&out, "{\"sha256\":%q,\"event\":%s}\n", sum(data), data)
			h.Last = e.Seq
		}

		if ended {
			return out.Bytes(), nil
		}
	}
	return out.Bytes(), nil
}

// ofDay are the events, with payload, of those references that follow the header's last one on its
// day, without a gap, and no more than the file has room for. ended means that there are no more of
// them now.
func (l *Log) ofDay(ctx context.Context, h *Header,
	refs []reference) (events []envelope.Event, ended bool, err error) {
	var some []envelope.Event
	room := fileEvents - int(h.Last-h.First) - 1
	for i, r := range refs {
		if dayOf(r.Placed) != h.Day || r.SK != seqSK(h.Last+1+int64(i)) || i == room {
			ended = i < room
			break
		}
		some = append(some, envelope.Event{
			Subject:   envelope.Ref{Type: r.SubjectType, ID: r.SubjectID},
			Version:   r.Version,
			Partition: h.Partition,
			Seq:       h.Last + 1 + int64(i),
		})
	}

	events, err = l.Events(ctx, some)
	return events, ended || len(refs) == 0, err
}

// writeFile puts a file into the bucket, then its row: a row never names a file that is not there.
// If another call, or one that died, has put that file, it is taken over as it is, since no object
// of the archive is ever overwritten.
func (l *Log) writeFile(ctx context.Context, p envelope.Partition, h Header, lines []byte) error {
	data := slices.Concat(h.text(), []byte("\n"), lines)
	key := fileName(p, h.Day, h.First)
	err := l.Bucket.Put(ctx, key, data, bucket.Condition{Absent: true})
	if fault.Is(err, fault.Stale) {
		data, h, err = l.existing(ctx, key, h)
	}

	if err != nil {
		return err
	}

	tx := l.Table.Begin(l.NewID())
	tx.Insert(&file{
		Head:   table.Head{PK: partitionKey(p.Name), SK: fileSK(h.First)},
		Name:   key,
		Day:    h.Day,
		First:  h.First,
		Last:   h.Last,
		SHA256: sum(data),
		Size:   len(data),
	})

	if err := tx.Commit(ctx); !fault.Is(err, fault.Stale) {
		return err
	}
	return nil // another call has written the same row
}

// existing reads a file that is in the bucket already, with its header.
func (l *Log) existing(ctx context.Context, key string, want Header) ([]byte, Header, error) {
	data, _, err := l.Bucket.Read(ctx, key)
	if err != nil {
		return nil, want, err
	}
	h, err := l.takeOver(ctx, key, data, want)
	return data, h, err
}

// takeOver checks that a file that is in the bucket already is of this log, and returns its header,
// which may end earlier or later than the wanted one. If its last event is not that of the table,
// the table was restored from a backup without a new epoch: a Conflict.
func (l *Log) takeOver(ctx context.Context, key string, data []byte, want Header) (Header, error) {
	h, events, err := parse(data)
	if err != nil {
		return h, fmt.Errorf("the file %s in the archive is damaged: %w", key, err)
	}

	same := h.Partition == want.Partition && h.First == want.First && h.Day == want.Day &&
		(h.Before == nil) == (want.Before == nil) && (h.Before == nil || *h.Before == *want.Before)
	var ref reference
	last := events[len(events)-1]
	err = l.Table.Get(ctx, table.Key{PK: partitionKey(want.Partition), SK: seqSK(h.Last)}, &ref)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return h, err
	}

	if !same || ref.SubjectID != last.Subject.ID || ref.Version != last.Version {
		return h, fault.New(fault.Conflict,
			"the file %s in the archive has other events than the table: the table "+
				"was restored from a backup, and the epoch of the log was not raised", key)
	}
	return h, nil
}
