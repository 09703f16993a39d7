// Package eventlog puts events in order: each event gets one place in the log, from which consumers
// read.
//
// An event is written by the transaction of its change (package event), and has no place then. The
// relay gives it one: Place reads the events of a subject that have none, and in one transaction
// inserts a reference for each into the log of its partition, raises the partition's head, and
// writes the place on the event's row. The condition that the event has no place yet, and the
// revision of the head, are the fences: no lease is needed. So each event is placed exactly once,
// the events of a subject in the order of their versions, whatever wakes the relay, how often, and
// how late. Sweep places what nothing woke the relay for.
//
//	placed, err := l.Place(ctx, subjects) // those of a batch of stream records
//	…
//	events, err := l.Read(ctx, "maps", after, 100) // without payload
//	events, err = l.Events(ctx, events)            // with it
//
// A log has the events of one collection, "site" those without one; it is one partition. Split
// divides a busy one by a hash of the subject. Older parts of the log are in S3 (ArchiveTo); Read
// reads both.
//
// # What always holds
//
//   - An event has at most one place. It is written once, and never changes.
//   - Seqs of a partition begin with 1 and have no gaps, in the table and the archive together.
//   - The events of a subject are placed in the order of their versions. Over a split this needs
//     readers that finish a generation before they begin the next.
//   - What is removed from the table is in the archive, and every required consumer has passed it
//     (Expire).
//   - Wake-ups decide nothing: an event that nobody was woken for is placed by Sweep, about Grace
//     later.
package eventlog

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/definition"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// Site is the log of the events without a collection.
const Site = "site"

// logSubject is the subject of the events about the log as a whole.
var logSubject = event.Subject{Type: event.Queue, ID: "log"}

// Log places and reads events. Table, Now and NewID must be set. It can be used by several
// goroutines, and by several processes at once: what it keeps in memory is only what it has read.
type Log struct {
	Table *table.Table
	Now   func() time.Time
	NewID func() string

	// Bucket is the archive; nil: there is none, and nothing expires.
	Bucket *bucket.Bucket

	// Readers is how many reads are made at once; 8 unless set.
	Readers int

	// noEarlier: no events of earlier releases are left, so the sweep need not look for them.
	noEarlier atomic.Bool

	mu sync.Mutex

	// splits are by log, as last read. That one is old shows in a closed head, or in a placement
	// that fails.
	splits map[string]split

	// opened is the file of the archive that was last read.
	opened opened
}

// opened is a file that was read.
type opened struct {
	name   string
	events []envelope.Event
}

// head is the row of a partition: its newest place. All heads are in one partition of the table, so
// that one query lists them. Every placement raises its revision: of two at once, one fails. Times
// are milliseconds since 1970.
type head struct {
	table.Head
	Log        string `dynamo:"log_of"`
	Generation int    `dynamo:"generation_no"`
	Part       int    `dynamo:"part_no"`
	Last       int64  `dynamo:"last_seq"`

	// Placed is when the newest event got its place. It never falls, whatever the clocks of
	// processes say, so that the days of the archive are in order.
	Placed int64 `dynamo:"placed_ms"`

	// Closed is above 0 when a later generation has begun; it is a counter so that it can be raised
	// without being read.
	Closed int64 `dynamo:"closed_count"`

	// Trimmed is the seq up to which references are in the archive only.
	Trimmed   int64 `dynamo:"trimmed_seq,omitempty"`
	TrimmedAt int64 `dynamo:"trimmed_ms,omitempty"`
}

// Partition is what a head says of its partition. The zero Partition is one without a head.
type Partition struct {
	Last    int64 // the newest place
	Trimmed int64 // up to it, places are in the archive only
	// TrimmedAt is when they were removed, in milliseconds since 1970.
	TrimmedAt int64
}

// split is the row of a log that was split: its present generation, and how many parts that has. A
// log without the row has the generation 0, of one part.
type split struct {
	table.Head
	Log        string `dynamo:"log_of"`
	Generation int    `dynamo:"generation_no"`
	Parts      int    `dynamo:"parts_count"`
}

// epochRow is the row of the epoch. A table that was never restored has none.
type epochRow struct {
	table.Head
	Epoch   int64  `dynamo:"epoch_no"`
	Version int64  `dynamo:"version"`              // of the newest event
	Request string `dynamo:"request_id,omitempty"` // that raised it
}

// earlier is the row of the scan for events of earlier releases. There is one for the table,
// whoever scans. Times are milliseconds since 1970.
type earlier struct {
	table.Head
	From   int64  `dynamo:"from_ms"`                // when it begins
	Cursor string `dynamo:"scan_cursor,omitempty"`  // how far it is
	Done   int64  `dynamo:"done_ms,omitempty"`      // when it was complete
	Placed int64  `dynamo:"placed_count,omitempty"` // events that it placed
}

// reference is the place of one event: the row of a seq in its partition. Facts is JSON, "" if it
// is too large for a second row: then the event's own row is read. So a filter can be evaluated
// without reading the events. Version is that of the subject; Placed is in milliseconds since 1970.
type reference struct {
	table.Head
	SubjectType string `dynamo:"subject_type"`
	SubjectID   string `dynamo:"subject_id"`
	Version     int64  `dynamo:"version"`
	Placed      int64  `dynamo:"placed_ms"`
	Facts       string `dynamo:"facts,omitempty"`
}

// names reports whether the reference is that of an event.
func (r *reference) names(e *event.Row) bool {
	return r.SubjectType == e.SubjectType && r.SubjectID == e.SubjectID && r.Version == e.Version
}

// seq is the place of a reference.
func (r reference) seq() int64 {
	// Only this package makes the key, so it can be read.
	n, _ := strconv.ParseInt(strings.TrimPrefix(r.SK, seqPrefix), 10, 64)
	return n
}

// Keys of the log's rows.
const (
	// The directory is the partition of the table with the epoch, all heads, the splits, and the
	// scan for earlier events. The first letters of the sort keys decide that Partitions reads the
	// epoch before the heads, and not what follows.
	directory  = "LOGS"
	epochSK    = "EPOCH" // before the heads
	headPrefix = "HEAD#"
	logPrefix  = "LOG#"
	earlierSK  = "PAST" // behind the heads
	seqPrefix  = "SEQ#"
)

// firstEpoch is the epoch of a table that was never restored.
const firstEpoch int64 = 1

func headKey(partition string) table.Key {
	return table.Key{PK: directory,
		SK: headPrefix + partition}
}
func splitKey(log string) table.Key { return table.Key{PK: directory, SK: logPrefix + log} }
func seqSK(seq int64) string        { return fmt.Sprintf("%s%012d", seqPrefix, seq) }

// partitionKey is the partition of the table with the references of a partition of the log.
func partitionKey(partition string) string { return logPrefix + partition }

func referenceKey(partition string, seq int64) table.Key {
	return table.Key{PK: partitionKey(partition), SK: seqSK(seq)}
}

// name of a part of a log: "maps", and after a split "maps:1:0". A collection's name has no colon.
func name(log string, generation, part int) string {
	if generation == 0 {
		return log
	}
	return fmt.Sprintf("%s:%d:%d", log, generation, part)
}

// partOf is the log that a partition is a part of, e.g. "maps:2:0" of maps, and its generation.
func partOf(partition string) (log string, generation int) {
	log, part, _ := strings.Cut(partition, ":")
	number, _, _ := strings.Cut(part, ":")
	generation, _ = strconv.Atoi(number) // 0: the log was not split then
	return log, generation
}

// partOf is the part of a log that has the events of a subject, whose partition key is given. All
// events of a subject are in one part, so that their order is that of the part. The hash is FNV-1a,
// and stays, since later events of a subject follow the earlier ones.
func (s split) partOf(pk string) int {
	if s.Parts < 2 {
		return 0
	}
	h := fnv.New64a()
	h.Write([]byte(pk))
	return int(h.Sum64() % uint64(s.Parts))
}

// splitOf is how a log is split, as far as this process knows. If that is old, placing fails and
// learn is called.
func (l *Log) splitOf(log string) split {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s, known := l.splits[log]; known {
		return s
	}
	return split{Log: log, Parts: 1}
}

// learn reads how a log is split now.
func (l *Log) learn(ctx context.Context, log string) error {
	s := split{Log: log, Parts: 1}
	err := l.Table.Get(ctx, splitKey(log), &s)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}

	l.mu.Lock()
	defer l.mu.Unlock()
	if l.splits == nil {
		l.splits = map[string]split{}
	}

	l.splits[log] = s
	return nil
}

// listed is a row of the directory: a head, or the epoch's.
type listed struct {
	head
	Epoch int64 `dynamo:"epoch_no"`
}

// Partitions lists all partitions of all logs, in order of their names, with the present epoch. A
// consumer finishes the closed partitions of a log before it begins those of a later generation. It
// reads one small row for each partition.
func (l *Log) Partitions(ctx context.Context) ([]envelope.Partition, error) {
	var out []envelope.Partition
	epoch := firstEpoch
	q := table.Query{PK: directory, From: epochSK, To: headPrefix + "~", Limit: 1000}
	for {
		var rows []listed
		next, err := l.Table.Page(ctx, q, &rows)
		if err != nil {
			return nil, err
		}

		for _, r := range rows {
			if r.SK == epochSK {
				epoch = r.Epoch
			} else {
				out = append(out, r.partition(epoch))
			}
		}

		if next == "" {
			return out, nil
		}

		q.Cursor = next
	}
}

// Partition reads one partition. One that has no events yet is a NotFound.
func (l *Log) Partition(ctx context.Context, name string) (envelope.Partition, error) {
	epoch, err := l.epoch(ctx)
	if err != nil {
		return envelope.Partition{}, err
	}
	var h head
	err = l.Table.Get(ctx, headKey(name), &h)
	if fault.Is(err, fault.NotFound) {
		return envelope.Partition{}, fault.New(fault.NotFound,
			"the log has no partition %q: one is named as its collection is, or site", definition.Clip(name, 110))
	}
	return h.partition(epoch.Epoch), err
}

// epoch reads the row of the epoch, which is first missing: then it has the rev 0 and firstEpoch.
func (l *Log) epoch(ctx context.Context) (epochRow, error) {
	r := epochRow{Epoch: firstEpoch, Head: table.Head{PK: directory, SK: epochSK}}
	err := l.Table.Get(ctx, r.Key(), &r)
	if fault.Is(err, fault.NotFound) {
		return r, nil
	}
	return r, err
}

// partition is the head as readers see it. The horizon is always 1: the archive keeps everything.
func (h head) partition(epoch int64) envelope.Partition {
	return envelope.Partition{
		Name:       strings.TrimPrefix(h.SK, headPrefix),
		Log:        h.Log,
		Generation: h.Generation,
		Part:       h.Part,
		Head:       h.Last,
		Closed:     h.Closed > 0,
		Horizon:    1,
		Epoch:      epoch,
		Placed:     h.Placed,
	}
}

// facts are an event without its payload, at its place: what readers of the log get.
func facts(e envelope.Event, partition string, seq int64) envelope.Event {
	e = e.Facts()
	e.Partition, e.Seq = partition, seq
	return e
}

// readers limits what is read at once.
func (l *Log) readers() int { return cmp.Or(l.Readers, 8) }
