package doctor

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/guregu/dynamo/v2"

	"archivist/pkg/events/event"
	"archivist/pkg/events/eventlog"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/views/browse"
	"archivist/pkg/views/history"
)

// logKinds are the kinds of rows of the event log, of its consumers, and of what these keep. What
// consumers and components keep for themselves (SEARCH to FILE) follows no rule of the log; of objects, it is
// compared with them (views.go).
var logKinds = []kind{
	{pk: "LOGS", sk: "HEAD#", check: checkHead},
	{pk: "LOGS", sk: "EPOCH", check: checkEpoch},
	{pk: "LOGS"},
	{pk: "LOG", sk: "SEQ#", check: checkReference},
	{pk: "LOG", sk: "FILE#"}, // the chain of files has a check of its own: archivist event verify
	{pk: "STAGE", sk: "STAGE", check: checkStage},
	{pk: "STAGE"},
	{pk: "CONSUMER", sk: "CURSOR#", check: checkCursor},
	{pk: "CONSUMER", sk: "SCHEDULE"},
	{pk: "CONSUMERS"},
	{pk: "SHIPPED"}, // which definitions of consumers were installed
	{pk: "PARKED", check: checkParked},
	{pk: "PENDING", check: checkPending},
	{pk: "REPLAY", sk: "REPLAY", expires: true},
	{pk: "LEDGER", expires: true},
	{pk: "SEARCH"},
	{pk: "BROWSE", check: checkEntry},
	{pk: "HISTORY"},
	{pk: "STATISTICS", sk: "DAY#", check: checkDay},
	{pk: "STATISTICS"},
	{pk: "DERIVATIVES"},
	{pk: "FORMATS"},
	{pk: "FIXITY", sk: "DAY#", expires: true},
	{pk: "FIXITY"},
	{pk: "REPLICA"},
	{pk: "FILE"},
}

// restoreLog is what a person does about a damaged log. A place that was given twice, or is
// missing, cannot be repaired: which events a consumer has seen by it is not known.
const restoreLog = restoreRow +
	"; then raise the epoch of the log, so that no consumer misses events: archivist " +
	"event raise-epoch"

// logHead is the row of a partition of the log. Only the attributes that are checked are
// read; package eventlog writes the row.
type logHead struct {
	table.Head
	// Log is the collection, or "site"; Generation counts the splits of the log before this
	// partition. Closed is above 0 once a split has closed it.
	Log        string `dynamo:"log_of"`
	Generation int    `dynamo:"generation_no"`
	Last       int64  `dynamo:"last_seq"`
	Closed     int64  `dynamo:"closed_count"`
	Trimmed    int64  `dynamo:"trimmed_seq"` // up to it, references are in the archive only
	TrimmedAt  int64  `dynamo:"trimmed_ms"`
}

func headKey(partition string) table.Key { return table.Key{PK: "LOGS", SK: "HEAD#" + partition} }

// referenceKey is the key of a place. The number has twelve digits, so that keys sort as
// numbers do.
func referenceKey(partition string, seq int64) table.Key {
	return table.Key{PK: "LOG#" + partition, SK: fmt.Sprintf("SEQ#%012d", seq)}
}

// logReference is the place of an event. It has no copy of the event: subject and version are
// the event's own key.
type logReference struct {
	table.Head
	SubjectType string `dynamo:"subject_type"`
	SubjectID   string `dynamo:"subject_id"`
	Version     int64  `dynamo:"version"`
}

// names reports whether the reference is that of an event.
func (r *logReference) names(e *event.Row) bool {
	return r.SubjectType == e.SubjectType && r.SubjectID == e.SubjectID && r.Version == e.Version
}

// pair reads what belongs to events, to places of the log and to entries of lists, for the rows of a page at
// once: the place of each event and its copy in the record of its object, the event of each place, and the row
// that names each entry. That is a read for a
// hundred rows instead of one for each. What it has read may be older than the row; so it can only confirm
// that a row is right, and a row that seems wrong is read again.
func (p *page) pair(ctx context.Context, rows []table.Raw) (err error) {
	var keys []table.Key
	for _, r := range rows {
		if strings.HasPrefix(r.PK, "BROWSE#") {
			if k, is := browse.PlaceOf(r); is {
				keys = append(keys, k)
			}
			continue
		}

		of, place := strings.HasPrefix(r.SK, event.Prefix),
			strings.HasPrefix(r.PK, "LOG#") && strings.HasPrefix(r.SK, "SEQ#")
		var is event.Row // a place has the same names for the subject and its version
		if !of && !place || r.Decode(&is) != nil {
			continue // if it cannot be read, its check reports that
		}

		switch {
		case of && is.Seq > 0:
			keys = append(keys, referenceKey(is.Partition, is.Seq))
			if k, kept := recordOf(r); kept {
				keys = append(keys, k)
			}
		case place:
			s := subjectOf(subjectType(strings.ToUpper(is.SubjectType)), is.SubjectID)
			keys = append(keys, event.Key(s, is.Version))
		}
	}

	if len(keys) > 0 {
		p.pairs, err = p.Queue.Table.Many(ctx, keys)
	}
	return err
}

// recordOf is where the record of an object has the event of a row, if it has it.
func recordOf(r table.Raw) (k table.Key, kept bool) {
	var row event.Row
	if r.Decode(&row) != nil {
		return k, false
	}

	e, err := row.Envelope()
	if err != nil {
		return k, false
	}
	k, kept, err = history.KeyOf(e)
	return k, kept && err == nil
}

// paired decodes what was read for a row of the page, and reports whether there is any.
func (p *page) paired(k table.Key, row any) bool {
	raw, found := p.pairs[k]
	return found && raw.Decode(row) == nil
}

// read reads a row that may be missing. The error is one of the table, or of a row that
// cannot be decoded; never a NotFound.
func (d Doctor) read(ctx context.Context, k table.Key, row any) (found bool, err error) {
	err = d.Queue.Table.Get(ctx, k, row)
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	return err == nil, err
}

// checkEventPlace checks that an event has its place in the log once, or waits for it. The
// relay gives places some time after the commit, so an event without one is usual for
// seconds. A place up to the partition's Trimmed was removed on purpose: it is in the
// archive's files.
func (x *rowCheck) checkEventPlace(ctx context.Context, s event.Subject, e *event.Row) error {
	if e.Seq == 0 {
		return x.unplaced(ctx, s, e)
	}

	var ref logReference
	if x.paired(referenceKey(e.Partition, e.Seq), &ref) && ref.names(e) {
		return nil
	}

	found, err := x.read(ctx, referenceKey(e.Partition, e.Seq), &ref)
	if err != nil || found && ref.names(e) {
		return err
	}

	if found {
		x.add("event-place", restoreLog, nil,
			"it has the place %d of %s, where the log has %s %s, version %d", e.Seq,
			e.Partition, ref.SubjectType, ref.SubjectID, ref.Version)
		return nil
	}

	var head logHead
	if _, err := x.read(ctx, headKey(e.Partition), &head); err != nil {
		return err
	}
	if e.Seq > head.Trimmed {
		x.add("event-place", restoreLog, nil,
			"it has the place %d of %s, where the log has nothing",
			e.Seq, e.Partition)
	}
	return nil
}

// unplaced checks that the sweep finds an event without a place, and has not been due for
// long. An event waits in the index work from its own transaction on, so the sweep finds it
// even if the message of the stream is lost. One that is not there, once the scan for events
// of earlier releases has ended, would never be placed.
func (x *rowCheck) unplaced(ctx context.Context, s event.Subject, e *event.Row) error {
	place := func(ctx context.Context) error { return x.place(ctx, s, e.Key()) }
	if e.WorkPK != "" {
		if x.late(e.Time, "") {
			x.add("event-overdue", "", place, "it waits for its place in the log since %d", e.Time)
		}
		return nil
	}

	var past struct {
		table.Head
		Done int64 `dynamo:"done_ms"`
	}

	// Events of earlier releases get their places by a scan.
	if _, err := x.read(ctx, table.Key{PK: "LOGS", SK: "PAST"}, &past); err != nil {
		return err
	}
	if past.Done > 0 {
		x.add("event-unplaced", "", place,
			"it has no place in the log, and is not in the index work")
	}
	return nil
}

// place gives the events of a subject their places, as the sweep does. It fails if a later
// event of the subject has its place already: the order of a subject's events in the log can
// then not be kept.
func (x *rowCheck) place(ctx context.Context, s event.Subject, k table.Key) error {
	l := eventlog.Log{Table: x.Queue.Table, Now: x.Queue.Now, NewID: x.Queue.NewID}
	if _, err := l.Place(ctx, []event.Subject{s}); err != nil {
		return err
	}
	var e event.Row
	if err := x.Queue.Table.Get(ctx, k, &e); err != nil || e.Seq > 0 {
		return err
	}
	return errors.New("events after it have their places already")
}

// inOrder reports whether an event has a place only if the one before it of the same subject
// has an earlier one. Of places in different logs that cannot be told. Within one log, a
// later generation of partitions is later as a whole, since a split closes those before it.
func inOrder(before, e *event.Row) bool {
	switch {
	case e.Seq == 0:
		return true
	case before.Seq == 0:
		return false
	case before.Partition == e.Partition:
		return before.Seq < e.Seq
	}

	log, generation := partOf(before.Partition)
	other, next := partOf(e.Partition)
	return log != other || generation < next
}

// partOf is the log that a partition is a part of, e.g. "maps:2:0" of maps, and its generation.
func partOf(partition string) (log string, generation int) {
	log, part, _ := strings.Cut(partition, ":")
	number, _, _ := strings.Cut(part, ":")
	generation, _ = strconv.Atoi(number) // 0: the log was not split then
	return log, generation
}

// checkEpoch checks that each raise of the epoch has its event.
func checkEpoch(ctx context.Context, x *rowCheck) error {
	var row struct {
		table.Head
		Number int64 `dynamo:"version"`
	}
	if !x.decode(&row) {
		return nil
	}
	return x.history(ctx, subjectOf(event.Queue, "log"), row.Number, "")
}

// checkStage checks that the sweep looks at a staged transaction in time. The marker of a
// transaction whose events are staged is in the index work until all are appended; its sort
// key there is the due time, in milliseconds since 1970.
func checkStage(_ context.Context, x *rowCheck) error {
	var marker table.Head
	if !x.decode(&marker) {
		return nil
	}

	due, err := strconv.ParseInt(marker.WorkSK, 10, 64)
	if err != nil || x.late(due, "") {
		x.add("overdue", "find the cause in the log of the relay", nil,
			"the events staged there were due at %q, in %q",
			marker.WorkSK, marker.WorkPK)
	}
	return nil
}

// checkReference checks that the place before this one exists, and that the event at it says
// so: then each event has one place, and the log has no gaps. An event that expires may be
// gone while its place is still there.
func checkReference(ctx context.Context, x *rowCheck) error {
	var ref logReference
	seq, err := strconv.ParseInt(strings.TrimPrefix(x.SK, "SEQ#"), 10, 64)
	if !x.decode(&ref) {
		return nil
	}

	partition := strings.TrimPrefix(x.PK, "LOG#")
	if err != nil || referenceKey(partition, seq) != x.Key {
		x.add("row-key", restoreLog, nil, "it is no place of a log")
		return nil
	}

	if err := x.noGap(ctx, partition, seq); err != nil {
		return err
	}

	s := subjectOf(subjectType(strings.ToUpper(ref.SubjectType)), ref.SubjectID)
	var e event.Row
	if x.paired(event.Key(s, ref.Version), &e) && e.Partition == partition && e.Seq == seq {
		return nil
	}

	found, err := x.read(ctx, event.Key(s, ref.Version), &e)
	switch {
	case err != nil:
	case !found && !expires(s.Type):
		x.add("log-event", restoreLog, nil, "%s %s, version %d, does not exist", ref.SubjectType,
			ref.SubjectID,
			ref.Version)
	case found && (e.Partition != partition || e.Seq != seq):
		x.add("log-event", restoreLog, nil, "%s %s, version %d, has the place %d of %q",
			ref.SubjectType, ref.SubjectID,
			ref.Version, e.Seq, e.Partition)
	}
	return err
}

// noGap checks that the place before this one exists, or is in the archive only. Whoever reads
// the log goes on from number to number.
func (x *rowCheck) noGap(ctx context.Context, partition string, seq int64) error {
	previous := referenceKey(partition, seq-1)
	if seq == 1 || x.before.Key == previous {
		return nil
	}

	missing, err := x.missing(ctx, previous)
	if err != nil || !missing {
		return err
	}

	var head logHead
	if _, err := x.read(ctx, headKey(partition), &head); err != nil {
		return err
	}
	if seq-1 > head.Trimmed {
		x.add("log-gap", restoreLog, nil, "there is a place %d, but no place %d", seq, seq-1)
	}
	return nil
}

// checkHead checks that the head of a partition is at its newest place, and that it is closed
// if the log was split after it. A head that is behind its places is set forward: the number
// that it gives next is taken, so nothing could be placed in the partition. A head that is
// ahead means that places are lost.
func checkHead(ctx context.Context, x *rowCheck) error {
	var head, last = logHead{}, []table.Head{}
	if !x.decode(&head) {
		return nil
	}

	partition := strings.TrimPrefix(x.SK, "HEAD#")
	query := table.Query{PK: "LOG#" + partition, Prefix: "SEQ#", Desc: true, Limit: 1}
	if _, err := x.Queue.Table.Page(ctx, query, &last); err != nil {
		return err
	}

	newest := head.Trimmed
	if len(last) > 0 {
		n, err := strconv.ParseInt(strings.TrimPrefix(last[0].SK, "SEQ#"), 10, 64)
		if err != nil {
			return nil // the check of that row reports it
		}
		newest = n
	}

	switch {
	case newest > head.Last: // until it is repaired, nothing can be placed
		x.add("log-head", "", x.setHead(head, "last_seq", newest),
			"the head is at %d, the newest place is %d", head.Last, newest)
	case newest < head.Last:
		x.add("log-head", restoreLog, nil, "the head is at %d, the newest place is %d", head.Last, newest)
	}

	var split logHead
	found, err := x.read(ctx, table.Key{PK: "LOGS", SK: "LOG#" + head.Log}, &split)
	if found && head.Closed == 0 && head.Generation < split.Generation {
		x.add("log-open", "", x.setHead(head, "closed_count", 1),
			"the log was split after it, and it is not closed")
	}

	if err != nil || head.Trimmed == 0 {
		return err
	}
	return x.checkTrimmed(ctx, partition, head)
}

// setHead sets a number of a head.
func (x *rowCheck) setHead(head logHead, name string, n int64) func(context.Context) error {
	return x.setNumber(head.Rev, name, n)
}

// setNumber sets a number of the row, unless it has changed. Two numbers of one row that are
// wrong need two runs: the first repair raises the rev.
func (x *rowCheck) setNumber(rev int64, name string, n int64) func(context.Context) error {
	return func(ctx context.Context) error {
		return x.Queue.Table.Change(ctx, x.Key, x.Queue.NewID(), func(u *dynamo.Update) {
			u.Set(name, n).If("rev = ?", rev)
		}, &table.Head{})
	}
}
