package eventlog

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"archivist/pkg/events/envelope"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// Finding is something in the archive that is not as it was written. Nothing repairs it: a version
// of the object in the bucket, or a backup, may be right.
type Finding struct {
	Partition string
	File      string // its key in the bucket; "" if no file is known
	Problem   string // with the line, if one event is damaged
}

// Verified is what a step of Verify has checked. Findings are for people; the check goes on after
// each.
type Verified struct {
	Files    int
	Events   int64
	Findings []Finding

	// Cursor is that of the next step, "PARTITION SEQ"; "" after the last one.
	Cursor string
}

// Verify checks the archive from a cursor ("" at the beginning) until a time, at least one file:
// that every event of the log that the table does not have is in a file, that each file is as it
// was written, down to the event that was changed, and that each names the one before. It changes
// nothing. An Invalid means that there is no archive, or that the cursor cannot be read; what is
// wrong with the archive is no error but a Finding.
func (l *Log) Verify(ctx context.Context, cursor string, until time.Time) (v Verified, err error) {
	if l.Bucket == nil {
		return v, fault.New(fault.Invalid, "this deployment has no archive of events")
	}

	partitions, err := l.Partitions(ctx)
	if err != nil {
		return v, err
	}

	name, after, err := cutCursor(cursor)
	if err != nil {
		return v, err
	}

	for _, p := range partitions {
		if p.Name < name {
			continue
		}

		if p.Name > name {
			after = 0
		}

		for more := true; more; {
			if v.Files > 0 && !l.Now().Before(until) {
				v.Cursor = fmt.Sprintf("%s %d", p.Name, after)
				return v, nil
			}
			after, more, err = l.verifyNext(ctx, p, after, &v)
			if err != nil {
				return v, err
			}
		}
	}
	return v, nil
}

// cutCursor is the partition and the place of a cursor of Verify.
func cutCursor(cursor string) (partition string, after int64, err error) {
	if cursor == "" {
		return "", 0, nil
	}
	if n, err := fmt.Sscanf(cursor, "%s %d", &partition, &after); err != nil || n != 2 ||
		after < 0 {
		return "", 0, fault.New(fault.Invalid,
			"cursor: %q: expected that of the step before", cursor)
	}
	return partition, after, nil
}

// verifyNext checks the file that follows a place, and returns the last place in it. more is false
// if there is none; then the table must have what follows.
func (l *Log) verifyNext(ctx context.Context, p envelope.Partition, after int64,
	v *Verified) (last int64, more bool,
	err error) {
	var rows []file
	q := table.Query{
		PK:    partitionKey(p.Name),
		From:  fileSK(after + 1),
		To:    filePrefix + "~",
		Limit: 1,
	}

	if _, err := l.Table.Page(ctx, q, &rows); err != nil {
		return after, false, err
	}

	if len(rows) == 0 {
		return after, false, l.verifyEnd(ctx, p, after, v)
	}

	f := rows[0]
	if f.First != after+1 {
		v.add(p, "", "the file with the events %d to %d is not known to the table", after+1,
			f.First-1)
	}

	v.Files++
	data, _, err := l.Bucket.Read(ctx, f.Name)
	if fault.Is(err, fault.NotFound) {
		v.add(p, f.Name, "the file of %s, with the events %d to %d, is missing",
			f.Day, f.First, f.Last)
		return f.Last, true, nil
	}

	if err != nil {
		return after, false, err
	}

	before, err := l.fileAt(ctx, p.Name, f.First-1)
	if err != nil {
		return after, false, err
	}

	v.check(p, f, before, data)
	return f.Last, true, nil
}

// check checks a file's content, given the file before. The first line is compared as a whole with
// what the rows say it must be; then each event has its own digest, and the file has that of its
// row.
func (v *Verified) check(p envelope.Partition, f, before file, data []byte) {
	want := Header{
		Partition: p.Name,
		Day:       f.Day,
		First:     f.First,
		Last:      f.Last,
		Before:    before.named(),
	}

	_, _ = fmt.Sscanf(f.Name, "epoch-%d/", &want.Epoch)
	h, events, err := parse(data)
	v.Events += int64(len(events))
	switch first, _, _ := bytes.Cut(data, []byte("\n")); {
	case !bytes.Equal(first, want.text()):
		v.add(p, f.Name, "line 1: expected %s, found %.500q", want.text(), first)
	case err != nil:
		v.add(p, f.Name, "%s", err)
	case sum(data) != f.SHA256:
		v.add(p, f.Name,
			"it does not have the SHA-256 with which it was written, though each of its %d events has "+
				"its own: an event and its SHA-256 were changed together", h.Last-h.First+1)
	}
}

// verifyEnd checks that what follows the last file is in the table: its first event must be there.
func (l *Log) verifyEnd(ctx context.Context, p envelope.Partition, last int64, v *Verified) error {
	if last >= p.Head {
		return nil
	}

	var rows []table.Head
	q := table.Query{PK: partitionKey(p.Name), From: seqSK(last + 1), To: seqPrefix + "~", Limit: 1}
	if _, err := l.Table.Page(ctx, q, &rows); err != nil {
		return err
	}

	if len(rows) == 0 || rows[0].SK != seqSK(last+1) {
		next := "the end"
		if len(rows) > 0 {
			next = strings.TrimLeft(strings.TrimPrefix(rows[0].SK, seqPrefix), "0")
		}
		v.add(p, "", "the events from %d up to %s are in neither the archive nor the table",
			last+1, next)
	}
	return nil
}

// add adds a finding about a file of a partition, or about no file.
func (v *Verified) add(p envelope.Partition, file, problem string, args ...any) {
	v.Findings = append(v.Findings, Finding{
		Partition: p.Name,
		File:      file,
		Problem:   fmt.Sprintf(problem, args...),
	})
}
