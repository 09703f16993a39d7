package eventlog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"archivist/pkg/events/envelope"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// The archive keeps the log in S3 for ever, as files of JSON Lines. A file has events of one
// partition that were placed on one day (UTC); a busy day has several. The first line says which,
// and names the file before with its SHA-256, so the files of a partition are a chain. Each other
// line is an event with the SHA-256 of its JSON, by which a damaged line is found.

// Header is the first line of a file. It is composed anew when a file is verified, so its fields
// and their order stay.
type Header struct {
	Partition string  `json:"partition"`
	Epoch     int64   `json:"epoch"`
	Day       string  `json:"day"` // on which the events were placed, e.g. "2026-11-22", UTC
	First     int64   `json:"first"`
	Last      int64   `json:"last"`
	Before    *Before `json:"before,omitempty"` // nil in the first file of a partition
}

// Before is the file before: changing any file of the chain changes the digests of all that follow.
type Before struct {
	Key    string `json:"key"`
	SHA256 string `json:"sha256"` // of the whole file, hexadecimal
}

// text is the line, without its end.
func (h Header) text() []byte {
	text, _ := json.Marshal(h) // of strings and numbers: it cannot fail
	return text
}

// line is every other line of a file: one event, with its payload and its place.
type line struct {
	// SHA256 is that of the bytes of Event, in hexadecimal. So Event is never encoded anew.
	SHA256 string          `json:"sha256"`
	Event  json.RawMessage `json:"event"`
}

// file is the row of a file, in the partition of the references: the index by which readers find an
// event. Size is in bytes, First and Last are seqs, both included.
type file struct {
	table.Head
	Name   string `dynamo:"s3_name"`
	Day    string `dynamo:"day_of"`
	First  int64  `dynamo:"first_seq"`
	Last   int64  `dynamo:"last_seq"`
	SHA256 string `dynamo:"sha_256"`
	Size   int    `dynamo:"byte_count"`
}

// named is a file as the next one names it.
func (f file) named() *Before {
	if f.Name == "" {
		return nil
	}
	return &Before{Key: f.Name, SHA256: f.SHA256}
}

// filePrefix begins the sort keys of files, before those of references, by the first seq of each.
const filePrefix = "FILE#"

func fileSK(first int64) string { return fmt.Sprintf("%s%012d", filePrefix, first) }

// fileName is the S3 key of a file: "epoch-1/maps/0.0/2026-11-22-000000000001.jsonl", with
// generation and part. It follows from what the file has, so two calls write the same one. A
// collection's name has no slash.
func fileName(p envelope.Partition, day string, first int64) string {
	return fmt.Sprintf("epoch-%d/%s/%d.%d/%s-%012d.jsonl", p.Epoch, p.Log, p.Generation, p.Part,
		day, first)
}

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

// parse reads a file. It checks the digest and the place of each event, and that there are as many
// as the first line says. An error names the line; events are then those before it.
func parse(data []byte) (h Header, events []envelope.Event, err error) {
	first, rest, _ := strings.Cut(string(data), "\n")
	if err := json.Unmarshal([]byte(first), &h); err != nil {
		return h, nil, fmt.Errorf("line 1: %w", err)
	}

	for n := int64(2); rest != ""; n++ {
		var text string
		var ended bool
		text, rest, ended = strings.Cut(rest, "\n")
		e, err := parseLine(text, ended, h.Partition, h.First+n-2)
		if err != nil {
			return h, events, fmt.Errorf("line %d: %w", n, err)
		}

		events = append(events, e)
	}

	if int64(len(events)) != h.Last-h.First+1 || len(events) == 0 {
		return h, events,
			fmt.Errorf("line 1: it names the events %d to %d; the file has %d", h.First, h.Last,
				len(events))
	}
	return h, events, nil
}

// parseLine reads the line of the event that has that place. ended is whether the line has its end.
func parseLine(text string, ended bool, partition string, seq int64) (e envelope.Event, err error) {
	var in line
	if err := json.Unmarshal([]byte(text), &in); err != nil {
		return e, err
	}

	if err := json.Unmarshal(in.Event, &e); err != nil {
		return e, err
	}

	switch {
	case sum(in.Event) != in.SHA256:
		return e, errors.New("the event does not have its SHA-256")
	case e.Seq != seq || e.Partition != partition:
		return e, fmt.Errorf("it is the event %s %d", e.Partition, e.Seq)
	case !ended:
		return e, errors.New("it is cut off")
	}
	return e, nil
}

// newestFile is the last file of a partition; the zero value if there is none.
func (l *Log) newestFile(ctx context.Context, partition string) (file, error) {
	return l.fileAt(ctx, partition, 999_999_999_999)
}

// fileAt is the last file of a partition that begins at a place or before it; the zero value if
// there is none.
func (l *Log) fileAt(ctx context.Context, partition string, seq int64) (file, error) {
	var rows []file
	q := table.Query{
		PK:    partitionKey(partition),
		From:  filePrefix,
		To:    fileSK(seq),
		Desc:  true,
		Limit: 1,
	}

	_, err := l.Table.Page(ctx, q, &rows)
	if err != nil || len(rows) == 0 {
		return file{}, err
	}
	return rows[0], nil
}

// archived are the events of a file of the archive from a place on, to the end of that file. A
// place that is in no file is a NotFound.
func (l *Log) archived(ctx context.Context, partition string,
	from int64) ([]envelope.Event, error) {
	f, err := l.fileAt(ctx, partition, from)
	if err != nil {
		return nil, err
	}

	if l.Bucket == nil || f.Last < from {
		return nil, fault.New(fault.NotFound, "the event %d of %s is not kept", from, partition)
	}

	events, err := l.contents(ctx, f)
	if err != nil {
		return nil, err
	}
	return events[from-f.First:], nil
}

// contents are the events of a file. Those of the last one are kept: readers go through a file in
// steps. One goroutine reads at a time, so that a file is in memory once. A file that is not as it
// was written is an error.
func (l *Log) contents(ctx context.Context, f file) ([]envelope.Event, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.opened.name == f.Name {
		return l.opened.events, nil
	}

	data, _, err := l.Bucket.Read(ctx, f.Name)
	if err != nil {
		return nil, err
	}

	damaged := func(err error) error {
		return fmt.Errorf("eventlog: the file %s in the archive is damaged: %w", f.Name, err)
	}

	_, events, err := parse(data)
	if err != nil {
		return nil, damaged(err)
	}

	if sum(data) != f.SHA256 || int64(len(events)) != f.Last-f.First+1 {
		return nil, damaged(errors.New("it does not have its SHA-256"))
	}

	l.opened = opened{f.Name, events}
	return events, nil
}
