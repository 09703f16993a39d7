// Package eventlog puts events in order: each event gets one place in the log, from which
// consumers read.
//
// An event is written by the transaction of its change (package event), and has no place then.
// The relay gives it one: Place reads the events of a subject that have none, and in one
// transaction inserts a reference for each into the log of its partition, raises the
// partition's head, and writes the place on the event's row. The condition that the event has
// no place yet, and the revision of the head, are the fences: no lease is needed. So each event
// is placed exactly once, the events of a subject in the order of their versions, whatever
// wakes the relay, how often, and how late. Sweep places what nothing woke the relay for.
//
//	placed, err := l.Place(ctx, subjects) // those of a batch of stream records
//	…
//	events, err := l.Read(ctx, "maps", after, 100) // without payload
//	events, err = l.Events(ctx, events)            // with it
//
// A log has the events of one collection, "site" those without one; it is one partition. Split divides a busy
// one by a hash of the subject. Older parts of the log are in S3 (ArchiveTo); Read reads both.
package eventlog

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"archivist/pkg/bucket"
	"archivist/pkg/envelope"
	"archivist/pkg/fault"
	"archivist/pkg/table"
)

// Site is the log of the events without a collection.
const Site = "site"

// Log places and reads events. Table, Now and NewID must be set.
type Log struct {
	Table   *table.Table
	Now     func() time.Time
	NewID   func() string
	Bucket  *bucket.Bucket // the archive; nil: there is none, and nothing expires
	Readers int            // reads at once; 8 unless set

	noEarlier atomic.Bool // no events of earlier releases are left

	mu     sync.Mutex
	splits map[string]split // by log, as last read; a closed head shows that one is old
	opened opened           // the file of the archive that was last read
}

// head is the row of a partition: its newest place. All heads are in one partition of the table,
// so that one query lists them.
type head struct {
	table.Head
	Log        string `dynamo:"log_of"`
	Generation int    `dynamo:"generation_no"`
	Part       int    `dynamo:"part_no"`
	Last       int64  `dynamo:"last_seq"`
	Placed     int64  `dynamo:"placed_ms"` // never falls
	Closed     int64  `dynamo:"closed_count"`
	Trimmed    int64  `dynamo:"trimmed_seq,omitempty"` // up to it references are in the archive only
	TrimmedAt  int64  `dynamo:"trimmed_ms,omitempty"`
}

// split is the row of a log that was split: its present generation.
type split struct {
	table.Head
	Log        string `dynamo:"log_of"`
	Generation int    `dynamo:"generation_no"`
	Parts      int    `dynamo:"parts_count"`
}

// reference is the place of one event. Facts is JSON, "" if it is too large for a second row: then
// the event's own row is read.
type reference struct {
	table.Head
	SubjectType string `dynamo:"subject_type"`
	SubjectID   string `dynamo:"subject_id"`
	Version     int64  `dynamo:"version"`
	Placed      int64  `dynamo:"placed_ms"`
	Facts       string `dynamo:"facts,omitempty"`
}

// Keys of the log's rows.
const (
	directory  = "LOGS"
	epochSK    = "EPOCH" // before the heads
	headPrefix = "HEAD#"
	logPrefix  = "LOG#"
	earlierSK  = "PAST" // behind the heads
	seqPrefix  = "SEQ#"
)

// firstEpoch is the epoch of a table that was never restored.
const firstEpoch int64 = 1

func headKey(partition string) table.Key { return table.Key{PK: directory, SK: headPrefix + partition} }
func splitKey(log string) table.Key      { return table.Key{PK: directory, SK: logPrefix + log} }
func seqSK(seq int64) string             { return fmt.Sprintf("%s%012d", seqPrefix, seq) }

// partitionKey is the partition of the table with the references of a partition of the log.
func partitionKey(partition string) string { return logPrefix + partition }

// name of a part of a log. A collection's name has no colon.
func name(log string, generation, part int) string {
	if generation == 0 {
		return log
	}
	return fmt.Sprintf("%s:%d:%d", log, generation, part)
}

// partOf is the part of a log that has the events of a subject, whose partition key is given.
func (s split) partOf(pk string) int {
	if s.Parts < 2 {
		return 0
	}
	h := fnv.New64a()
	h.Write([]byte(pk))
	return int(h.Sum64() % uint64(s.Parts))
}

// splitOf is how a log is split, as far as this process knows.
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

// Partitions lists all partitions of all logs, in order of their names. A consumer finishes the
// closed partitions of a log before it begins those of a later generation.
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
	return h.partition(epoch.Epoch), err
}

// epoch reads the row of the epoch, which is first missing.
func (l *Log) epoch(ctx context.Context) (epochRow, error) {
	r := epochRow{Epoch: firstEpoch, Head: table.Head{PK: directory, SK: epochSK}}
	err := l.Table.Get(ctx, r.Key(), &r)
	if fault.Is(err, fault.NotFound) {
		return r, nil
	}
	return r, err
}

func (h head) partition(epoch int64) envelope.Partition {
	return envelope.Partition{Name: strings.TrimPrefix(h.SK, headPrefix), Log: h.Log, Generation: h.Generation,
		Part: h.Part, Head: h.Last, Closed: h.Closed > 0, Horizon: 1, Epoch: epoch}
}

// facts are an event without its payload, at its place.
func facts(e envelope.Event, partition string, seq int64) envelope.Event {
	e = e.Facts()
	e.Partition, e.Seq = partition, seq
	return e
}

// readers limits what is read at once.
func (l *Log) readers() int { return cmp.Or(l.Readers, 8) }
