package eventlog

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/guregu/dynamo/v2"

	"archivist/pkg/events/check"
	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/table"
)

// RestoreLog is what a person does about a damaged log. A place that was given twice, or is
// missing, cannot be repaired: which events a consumer has seen by it is not known.
const RestoreLog = check.Restore +
	"; then raise the epoch of the log, so that no consumer misses events: archivist " +
	"event raise-epoch"

// Rules are the rules of events, and of the log.
func Rules(pg *check.Page) check.Rules {
	kinds := []check.Kind{
		{PK: directory, SK: headPrefix, Rule: checkHead},
		{PK: directory, SK: epochSK, Rule: checkEpoch},
		{PK: directory},
		{PK: "LOG", SK: seqPrefix, Rule: checkReference, Needs: eventOf},
		{PK: "LOG", SK: filePrefix}, // the chain of files has a check of its own: archivist event verify
		{PK: "STAGE", SK: stageSK, Rule: checkStage},
		{PK: "STAGE"},
	}

	for _, t := range event.Types {
		k := check.Events(t, checkEvent)
		k.Expires, k.Needs = Expires(t), placeOf
		kinds = append(kinds, k)
	}
	return check.Rules{Kinds: kinds}
}

// SubjectOf is the subject of the events of a partition of the table, e.g. of JOB#ID. Its type is the zero Type if the
// partition is of none.
func SubjectOf(pk string) event.Subject {
	name, id, _ := strings.Cut(pk, "#")
	return subjectNamed(name, id)
}

// subjectNamed is a subject by the name of its type, in any case.
func subjectNamed(name, id string) event.Subject {
	for _, t := range event.Types {
		if strings.EqualFold(t.String(), name) {
			return event.Subject{Type: t, ID: id}
		}
	}
	return event.Subject{ID: id}
}

// Expires reports whether events of a type of subjects are removed after some time. Types of
// one subject may be kept for different times: one that is not permanent is enough, since it
// leaves gaps between the others.
func Expires(of event.Type) bool {
	return slices.ContainsFunc(envelope.Kinds, func(k envelope.Kind) bool {
		return k.Subject == of.String() && k.Class != envelope.Permanent
	})
}

// placeOf is the key of the place of an event, if it has one.
func placeOf(r table.Raw) []table.Key {
	var e event.Row
	if r.Decode(&e) != nil || e.Seq == 0 {
		return nil // if it cannot be read, its rule says so
	}
	return []table.Key{referenceKey(e.Partition, e.Seq)}
}

// eventOf is the key of the event at a place.
func eventOf(r table.Raw) []table.Key {
	var ref reference
	if r.Decode(&ref) != nil {
		return nil
	}
	return []table.Key{event.Key(subjectNamed(ref.SubjectType, ref.SubjectID), ref.Version)}
}

// checkEvent checks that the event before this one exists: so there are no gaps. It checks the
// event's place in the log.
//
// By induction over all events, the numbers of a subject are then without gaps from 1, or
// from where those that expire begin.
func checkEvent(ctx context.Context, x *check.Row) error {
	var e event.Row
	if !x.Into(&e) {
		return nil
	}

	s := SubjectOf(x.PK)
	if event.Key(s, e.Version) != x.Key {
		x.Add("event-key", check.LostHistory, nil,
			"the event has the number %d, which differs from its key", e.Version)
		return nil
	}

	err := checkPlace(ctx, x, s, &e)
	if err != nil || e.Version == 1 {
		return err
	}
	return checkPrevious(ctx, x, s, &e)
}

// checkPrevious checks that the event before this one exists, and has an earlier place. The
// events of a subject are one partition in the order of their numbers, so the one before is
// usually the row before, without a read.
func checkPrevious(ctx context.Context, x *check.Row, s event.Subject, e *event.Row) error {
	var previous event.Row
	k := event.Key(s, e.Version-1)
	if x.Before.Key == k && x.Before.Decode(&previous) == nil && inOrder(&previous, e) {
		return nil
	}

	found, err := x.Read(ctx, k, &previous)
	removed := Expires(s.Type) && x.LateBy(e.Time, DefaultRetention.Log)
	switch {
	case err != nil:
	case !found && !removed:
		x.Add("event-gap", check.LostHistory, nil, "there is event %d, but no event %d", e.Version,
			e.Version-1)
	case found && !inOrder(&previous, e):
		x.Add("event-order", RestoreLog, nil,
			"it has the place %d of %s, and the event before it has the place %d of "+
				"%q", e.Seq, e.Partition, previous.Seq, previous.Partition)
	}
	return err
}

// checkPlace checks that an event has its place in the log once, or waits for it. The
// relay gives places some time after the commit, so an event without one is usual for
// seconds. A place up to the partition's Trimmed was removed on purpose: it is in the
// archive's files.
func checkPlace(ctx context.Context, x *check.Row, s event.Subject, e *event.Row) error {
	if e.Seq == 0 {
		return unplaced(ctx, x, s, e)
	}

	var ref reference
	if x.Paired(referenceKey(e.Partition, e.Seq), &ref) && ref.names(e) {
		return nil
	}

	found, err := x.Read(ctx, referenceKey(e.Partition, e.Seq), &ref)
	if err != nil || found && ref.names(e) {
		return err
	}

	if found {
		x.Add("event-place", RestoreLog, nil,
			"it has the place %d of %s, where the log has %s %s, version %d", e.Seq,
			e.Partition, ref.SubjectType, ref.SubjectID, ref.Version)
		return nil
	}

	var h head
	if _, err := x.Read(ctx, headKey(e.Partition), &h); err != nil {
		return err
	}
	if e.Seq > h.Trimmed {
		x.Add("event-place", RestoreLog, nil,
			"it has the place %d of %s, where the log has nothing",
			e.Seq, e.Partition)
	}
	return nil
}

// unplaced checks that the sweep finds an event without a place, and has not been due for
// long. An event waits in the index work from its own transaction on, so the sweep finds it
// even if the message of the stream is lost. One that is not there, once the scan for events
// of earlier releases has ended, would never be placed.
func unplaced(ctx context.Context, x *check.Row, s event.Subject, e *event.Row) error {
	repair := func(ctx context.Context) error { return placed(ctx, x.Page, s, e.Key()) }
	if e.WorkPK != "" {
		if x.Late(e.Time) {
			x.Add("event-overdue", "", repair, "it waits for its place in the log since %d", e.Time)
		}
		return nil
	}

	var past earlier // events of earlier releases get their places by a scan
	if _, err := x.Read(ctx, table.Key{PK: directory, SK: earlierSK}, &past); err != nil {
		return err
	}
	if past.Done > 0 {
		x.Add("event-unplaced", "", repair, "it has no place in the log, and is not in the index work")
	}
	return nil
}

// placed gives the events of a subject their places, as the sweep does. It fails if a later
// event of the subject has its place already: the order of a subject's events in the log can
// then not be kept.
func placed(ctx context.Context, pg *check.Page, s event.Subject, k table.Key) error {
	l := Log{Table: pg.Table, Now: pg.Now, NewID: pg.NewID}
	if _, err := l.Place(ctx, []event.Subject{s}); err != nil {
		return err
	}
	var e event.Row
	if err := pg.Table.Get(ctx, k, &e); err != nil || e.Seq > 0 {
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

// checkEpoch checks that each raise of the epoch has its event.
func checkEpoch(ctx context.Context, x *check.Row) error {
	var row epochRow
	if !x.Into(&row) {
		return nil
	}
	return x.History(ctx, logSubject, row.Version, "")
}

// checkStage checks that the sweep looks at a staged transaction in time. The marker of a
// transaction whose events are staged is in the index work until all are appended; its sort
// key there is the due time, in milliseconds since 1970.
func checkStage(_ context.Context, x *check.Row) error {
	var m marker
	if !x.Into(&m) {
		return nil
	}

	due, err := strconv.ParseInt(m.WorkSK, 10, 64)
	if err != nil || x.Late(due) {
		x.Add("overdue", "find the cause in the log of the relay", nil,
			"the events staged there were due at %q, in %q", m.WorkSK, m.WorkPK)
	}
	return nil
}

// checkReference checks that the place before this one exists, and that the event at it says
// so: then each event has one place, and the log has no gaps. An event that expires may be
// gone while its place is still there.
func checkReference(ctx context.Context, x *check.Row) error {
	var ref reference
	seq, err := strconv.ParseInt(strings.TrimPrefix(x.SK, seqPrefix), 10, 64)
	if !x.Into(&ref) {
		return nil
	}

	partition := x.ID()
	if err != nil || referenceKey(partition, seq) != x.Key {
		x.Add("row-key", RestoreLog, nil, "it is no place of a log")
		return nil
	}

	if err := noGap(ctx, x, partition, seq); err != nil {
		return err
	}

	s := subjectNamed(ref.SubjectType, ref.SubjectID)
	var e event.Row
	if x.Paired(event.Key(s, ref.Version), &e) && e.Partition == partition && e.Seq == seq {
		return nil
	}

	found, err := x.Read(ctx, event.Key(s, ref.Version), &e)
	switch {
	case err != nil:
	case !found && !Expires(s.Type):
		x.Add("log-event", RestoreLog, nil, "%s %s, version %d, does not exist", ref.SubjectType,
			ref.SubjectID, ref.Version)
	case found && (e.Partition != partition || e.Seq != seq):
		x.Add("log-event", RestoreLog, nil, "%s %s, version %d, has the place %d of %q",
			ref.SubjectType, ref.SubjectID, ref.Version, e.Seq, e.Partition)
	}
	return err
}

// noGap checks that the place before this one exists, or is in the archive only. Whoever reads
// the log goes on from number to number.
func noGap(ctx context.Context, x *check.Row, partition string, seq int64) error {
	previous := referenceKey(partition, seq-1)
	if seq == 1 || x.Before.Key == previous {
		return nil
	}

	missing, err := x.Missing(ctx, previous)
	if err != nil || !missing {
		return err
	}

	var h head
	if _, err := x.Read(ctx, headKey(partition), &h); err != nil {
		return err
	}
	if seq-1 > h.Trimmed {
		x.Add("log-gap", RestoreLog, nil, "there is a place %d, but no place %d", seq, seq-1)
	}
	return nil
}

// checkHead checks that the head of a partition is at its newest place, and that it is closed
// if the log was split after it. A head that is behind its places is set forward: the number
// that it gives next is taken, so nothing could be placed in the partition. A head that is
// ahead means that places are lost.
func checkHead(ctx context.Context, x *check.Row) error {
	var h, last = head{}, []table.Head{}
	if !x.Into(&h) {
		return nil
	}

	partition := strings.TrimPrefix(x.SK, headPrefix)
	query := table.Query{PK: partitionKey(partition), Prefix: seqPrefix, Desc: true, Limit: 1}
	if _, err := x.Table.Page(ctx, query, &last); err != nil {
		return err
	}

	newest := h.Trimmed
	if len(last) > 0 {
		n, err := strconv.ParseInt(strings.TrimPrefix(last[0].SK, seqPrefix), 10, 64)
		if err != nil {
			return nil // the check of that row reports it
		}
		newest = n
	}

	switch {
	case newest > h.Last: // until it is repaired, nothing can be placed
		forward := x.Setting(h.Rev, func(u *dynamo.Update) { u.Set("last_seq", newest) })
		x.Add("log-head", "", forward, "the head is at %d, the newest place is %d", h.Last, newest)
	case newest < h.Last:
		x.Add("log-head", RestoreLog, nil, "the head is at %d, the newest place is %d", h.Last, newest)
	}

	var now split
	found, err := x.Read(ctx, splitKey(h.Log), &now)
	if found && h.Closed == 0 && h.Generation < now.Generation {
		closed := x.Setting(h.Rev, func(u *dynamo.Update) { u.Set("closed_count", 1) })
		x.Add("log-open", "", closed, "the log was split after it, and it is not closed")
	}

	if err != nil || h.Trimmed == 0 {
		return err
	}
	return checkTrimmed(ctx, x, partition, h.Trimmed)
}

// checkTrimmed checks that the places that were removed are in the archive. Files of the archive sort by the first
// place in them, so a descending query begins with the newest.
func checkTrimmed(ctx context.Context, x *check.Row, partition string, trimmed int64) error {
	var files []file
	query := table.Query{PK: partitionKey(partition), Prefix: filePrefix, Desc: true, Limit: 1}
	_, err := x.Table.Page(ctx, query, &files)
	if err != nil {
		return err
	}

	if len(files) == 0 || files[0].Last < trimmed {
		x.Add("log-archive", RestoreLog, nil, "places were removed up to %d, which the archive does not have", trimmed)
	}
	return nil
}

// Heads are the heads of partitions, for the rules of other packages. PartitionOfHead tells which one a head is of.
func Heads(rule func(ctx context.Context, x *check.Row) error) check.Kind {
	return check.Kind{PK: directory, SK: headPrefix, Rule: rule}
}

// PartitionOfHead is the name of the partition of a head.
func PartitionOfHead(k table.Key) string { return strings.TrimPrefix(k.SK, headPrefix) }

// PartitionOf reads the head of a partition.
func PartitionOf(ctx context.Context, pg *check.Page, name string) (Partition, error) {
	var h head
	_, err := pg.Read(ctx, headKey(name), &h)
	return Partition{h.Last, h.Trimmed, h.TrimmedAt}, err
}
