// Package statistics counts what happens in each collection, live: what is ingested, and
// what is downloaded.
//
// The counts follow from the event log alone. Each partition of the log has its own row of
// counts, which also has the sequence number of the last event that was counted. Both change
// in one transaction, so an event is counted once, however often it is delivered.
//
//	STATISTICS#{log}  TOTAL#{partition}        all that was counted in a partition, and up to where
//	STATISTICS#{log}  DAY#{date}#{partition}   of one day, in UTC
//	STATISTICS#{log}  OBJECT#{ark}             of one object: its downloads
package statistics

import (
	"context"
	"encoding/json"
	"time"

	"archivist/pkg/events/consumer"
	"archivist/pkg/events/envelope"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// Name of the consumer, of its handler, and of the component that its events would have.
const Name = "statistics"

// Definition is the consumer that counts. Events of a partition are counted in order and
// never merged. A failure can only be one of the table: the cursor then waits, because an
// event that was parked would be left out.
var Definition = consumer.Definition{
	Name:          Name,
	Version:       1,
	Description:   "Counts ingests and downloads of each collection.",
	Filter:        "Object+Create:Version+Create:Job+All:File+Disseminate",
	Target:        consumer.Target{Handler: Name},
	MaxDepth:      consumer.AnyDepth,
	Order:         consumer.OrderCollection,
	Concurrency:   1,
	OnFailure:     consumer.Block,
	Start:         consumer.StartHorizon,
	Required:      true,
	IgnoreReplays: true,
}

// Counts are numbers by name. The names are stored.
type Counts map[string]int64

// add adds to the counts. c must not be nil.
func (c Counts) add(more Counts) {
	for name, n := range more {
		c[name] += n
	}
}

// Names of counts.
const (
	Objects   = "objects"   // that were added
	Versions  = "versions"  // that were stored
	Files     = "files"     // of these versions
	Bytes     = "bytes"     // of these files
	Completed = "completed" // jobs
	Failed    = "failed"    // jobs; one that is requeued and fails again counts twice
	Downloads = "downloads" // of files
)

// Names lists the names in the order in which they are shown.
var Names = []string{Objects, Versions, Files, Bytes, Completed, Failed, Downloads}

// Row is the counts of one partition, day or object. LastSeq is the sequence number of the
// last event of the partition that was counted; only the row of the partition has it.
type Row struct {
	table.Head
	Log     string `dynamo:"log_name"`
	LastSeq int64  `dynamo:"last_seq,omitempty"`
	// LastAt is the time of the last event that was counted, in milliseconds since 1970.
	LastAt int64  `dynamo:"last_at_ms"`
	Counts Counts `dynamo:"counts"`
	// Hours are the counts of the last hours, by their names; only the row of a partition has them.
	Hours map[string]Counts `dynamo:"by_hour,omitempty"`
}

// partition of the rows of a log. A log is a collection, or "site" for events that belong to none.
func partition(log string) string { return "STATISTICS#" + log }

// listed is the place in the index "list" of the rows of partitions. The second part of the place is
// the name of the partition, so that logs are listed by name.
const listed = "statistics"

// Prefixes of sort keys.
const (
	totalPrefix  = "TOTAL#"
	dayPrefix    = "DAY#"
	objectPrefix = "OBJECT#"
)

// Counter counts events: the consumer's handler.
type Counter struct {
	Table *table.Table
	NewID func() string
}

// Handle counts events once. Replayed events were counted when they were new, and snapshots are not
// events of the log. It reports no failures of single events: an error is one of the table, and the
// batch is called again. What was counted before the error is not counted twice, because the sequence
// number was written with the counts.
func (c Counter) Handle(ctx context.Context, b consumer.Batch) ([]consumer.Failure, error) {
	if b.Replay {
		return nil, nil
	}

	for rest := b.Events; len(rest) > 0; {
		n, err := c.some(ctx, rest)
		if err != nil {
			return nil, err
		}
		rest = rest[n:]
	}
	return nil, nil
}

// mostRows is the maximum number of rows that one transaction changes. A transaction of DynamoDB has at
// most 100 actions. The check is before each event, which adds up to two rows more: its day and its
// object.
const mostRows = 50

// some counts the first events that are of one partition and fit into one transaction, and returns
// their number. After a Stale all rows are read anew; if others keep changing them, it is an Unavailable. n is at
// least 1 without an error.
func (c Counter) some(ctx context.Context, items []consumer.Item) (n int, err error) {
	err = c.Table.Again(ctx, "the statistics", func() error {
		n, err = c.try(ctx, items)
		return err
	})
	return n, err
}

// try is one try of some. Events up to LastSeq were counted before, by a call that died after its
// commit or that ran at the same time. Those that add nothing do not raise LastSeq by themselves: it is
// of what was counted, so a run of such events writes nothing.
func (c Counter) try(ctx context.Context, items []consumer.Item) (n int, err error) {
	first := items[0].Event
	change := change{table: c.Table, log: first.Log()}
	total, err := change.row(ctx, totalPrefix+first.Partition)
	if err != nil {
		return 0, err
	}

	total.ListPK, total.ListSK = listed, first.Partition
	any := false
	for _, item := range items {
		if item.Partition != first.Partition || len(change.rows) >= mostRows {
			break
		}

		n++
		if item.Seq <= total.LastSeq {
			continue
		}

		counted, err := change.count(ctx, total, item.Event)
		if err != nil {
			return 0, err
		}

		if counted {
			total.LastSeq = item.Seq
		}

		any = any || counted
	}

	if !any {
		return n, nil
	}
	return n, change.commit(ctx, c.NewID())
}

// change is what one transaction changes. The rows are in the order in which they were first used; the
// first is that of the partition. None is there twice, since DynamoDB refuses two actions on one item
// in a transaction.
type change struct {
	table *table.Table
	log   string
	rows  []*Row
}

// row reads a row, once in a change. One that does not exist is begun. Its Rev is 0 then, and its
// Counts are never nil.
func (ch *change) row(ctx context.Context, sk string) (*Row, error) {
	for _, r := range ch.rows {
		if r.SK == sk {
			return r, nil
		}
	}

	r := &Row{Head: table.Head{PK: partition(ch.log), SK: sk}, Log: ch.log}
	if err := ch.table.Get(ctx, r.Key(), r); err != nil && !fault.Is(err, fault.NotFound) {
		return nil, err
	}

	if r.Counts == nil {
		r.Counts = Counts{}
	}

	ch.rows = append(ch.rows, r)
	return r, nil
}

// count adds an event to the rows of its partition, of its day, and of its object. It reports whether
// the event adds anything. The day is that of the event, not of the counting, so late events are
// counted where they belong.
func (ch *change) count(ctx context.Context, total *Row, e envelope.Event) (bool, error) {
	counts := countsOf(e)
	if len(counts) == 0 {
		return false, nil
	}

	day := time.UnixMilli(e.Time).UTC().Format(time.DateOnly)
	to := []string{total.SK, dayPrefix + day + "#" + e.Partition}
	if ark := objectOf(e); counts[Downloads] > 0 && ark != "" {
		to = append(to, objectPrefix+ark)
	}

	for _, sk := range to {
		r, err := ch.row(ctx, sk)
		if err != nil {
			return false, err
		}
		r.Counts.add(counts)
		r.LastAt = max(r.LastAt, e.Time)
	}
	total.inHour(counts, e.Time)
	return true, nil
}

// commit writes all rows at once, each on the condition that its revision is the one that was read. A
// Stale means that another call has counted meanwhile.
func (ch *change) commit(ctx context.Context, id string) error {
	tx := ch.table.Begin(id)
	for _, r := range ch.rows {
		tx.InsertOrSave(r)
	}
	return tx.Commit(ctx)
}

// countsOf is what an event adds to the counts. It is nil, or has no entries, for events that are not
// counted. The maps of ended are shared: callers must not change them.
func countsOf(e envelope.Event) Counts {
	switch e.Type {
	case "object.create":
		return Counts{Objects: 1}
	case "version.create":
		var stored struct{ Files, Bytes int64 }
		_ = json.Unmarshal(e.Detail, &stored) // a version without these counts adds none
		return Counts{Versions: 1, Files: stored.Files, Bytes: stored.Bytes}
	case "job.state":
		return ended[stateAfter(e)]
	}

	if e.Action == envelope.Disseminate {
		return Counts{Downloads: 1}
	}
	return nil
}

// ended are the counts of jobs by the state that they came to.
var ended = map[string]Counts{"Completed": {Completed: 1}, "Failed": {Failed: 1}}

// stateAfter is the state that a job came to with an event.
func stateAfter(e envelope.Event) string {
	var detail struct{ To string }
	_ = json.Unmarshal(e.Detail, &detail) // another detail names no state
	return detail.To
}

// objectOf is the ark of the object that a file is part of, "" if the event names none.
func objectOf(e envelope.Event) string {
	for _, p := range e.Parents {
		if p.Type == "Object" {
			return p.ID
		}
	}
	return ""
}

// The counts of the last hours are in the rows of partitions: so they cost no write of their own, and those of all
// partitions are few rows.

// hourForm is how an hour is named, in UTC; names sort by time.
const hourForm = "2006-01-02T15"

// KeptHours is for how many hours counts are kept, with the one of the newest event.
const KeptHours = 25

// inHours are the counts that are kept by hour.
var inHours = []string{Completed, Failed, Bytes}

// inHour adds the counts of an event to its hour. Hours that are too old are dropped, and an event of one adds nothing.
func (r *Row) inHour(counts Counts, at int64) {
	hour := time.UnixMilli(at).UTC()
	newest := hour
	for name := range r.Hours {
		if t, err := time.Parse(hourForm, name); err == nil && t.After(newest) {
			newest = t
		}
	}
	oldest := newest.Add(-(KeptHours - 1) * time.Hour).Format(hourForm)
	for name := range r.Hours {
		if name < oldest {
			delete(r.Hours, name)
		}
	}

	name := hour.Format(hourForm)
	for _, of := range inHours {
		if counts[of] == 0 || name < oldest {
			continue
		}
		if r.Hours == nil {
			r.Hours = map[string]Counts{}
		}
		if r.Hours[name] == nil {
			r.Hours[name] = Counts{}
		}
		r.Hours[name][of] += counts[of]
	}
}
