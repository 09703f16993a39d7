package consumer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"archivist/pkg/events/envelope"
	"archivist/pkg/events/filter"
	"archivist/pkg/kernel/fault"
)

// ref names an event, shortly: with it the log finds the event again. It is stored in rows of
// parked and waiting events, and for the file that comes next on the cursor. Version is the event's
// number among those of its subject.
type ref struct {
	Seq         int64  `dynamo:"seq"`
	ID          string `dynamo:"id"`
	SubjectType string `dynamo:"subject_type"`
	SubjectID   string `dynamo:"subject_id"`
	Version     int64  `dynamo:"version"`
	Type        string `dynamo:"event_type"`
	Time        int64  `dynamo:"at_ms"`

	// Shown nil: the event itself; else the ID is that of what is presented.
	Shown *shown `dynamo:"shown,omitempty"`
}

// seen is an event as consumers see it: one of the log, or one that is presented besides it, such
// as that of a file of a version. Each has an order key of its own, and fails on its own.
type seen struct {
	envelope.Event
	ref ref
}

// shown says which event is presented. It is found again in the event of the log, or, if it is
// that of a file, in the list of the version's files.
type shown struct {
	Type        string `dynamo:"event_type"`
	SubjectType string `dynamo:"subject_type"`
	SubjectID   string `dynamo:"subject_id"`

	// File is the number of the file, from 1; 0: it is that of no file. At is the byte of the list
	// at which it begins, so that it can be read again without what is before.
	File int   `dynamo:"file_number,omitempty"`
	At   int64 `dynamo:"from_byte,omitempty"`
}

func refOf(e envelope.Event) ref {
	return ref{
		Seq:         e.Seq,
		ID:          e.ID,
		SubjectType: e.Subject.Type,
		SubjectID:   e.Subject.ID,
		Version:     e.Version,
		Type:        e.Type,
		Time:        e.Time,
	}
}

// facts are those by which the log finds the event.
func (f ref) facts(partition string) envelope.Event {
	return envelope.Event{
		ID:        f.ID,
		Subject:   envelope.Ref{Type: f.SubjectType, ID: f.SubjectID},
		Version:   f.Version,
		Type:      f.Type,
		Time:      f.Time,
		Partition: partition,
		Seq:       f.Seq,
	}
}

func refsOf(events []seen) (refs []ref) {
	for _, e := range events {
		refs = append(refs, e.ref)
	}
	return refs
}

// logged is an event of the log as it is.
func logged(e envelope.Event) seen { return seen{Event: e, ref: refOf(e)} }

// presented is an event p that is presented besides e: that of a file has its number and the byte
// at which it begins in the list, others have 0.
func presented(e, p envelope.Event, file int, at int64) seen {
	s := seen{Event: p, ref: refOf(e)}
	s.ref.ID = p.ID
	s.ref.Shown = &shown{
		Type:        p.Type,
		SubjectType: p.Subject.Type,
		SubjectID:   p.Subject.ID,
		File:        file,
		At:          at,
	}
	return s
}

// show returns what a filter selects of what readers see of an event, without files.
func show(f *filter.Filter, e envelope.Event) (all []seen) {
	for i, p := range envelope.Present(e) {
		switch {
		case !f.Match(p):
		case i == 0:
			all = append(all, logged(p))
		default:
			all = append(all, presented(e, p, 0, 0))
		}
	}
	return all
}

// selects reports whether a filter selects an event, or one that is presented besides it. The
// files of a version are not read for that.
func selects(f *filter.Filter, e envelope.Event) bool {
	return slices.ContainsFunc(envelope.Present(e), f.Match) || f.SelectsFiles(e)
}

// place is where the event is in its partition, as a text that sorts as the events do: the seq with
// twelve digits, and behind a # which of the events that are presented it is, of files the number
// with eight digits.
func (f ref) place() string {
	if f.Shown == nil {
		return seqText(f.Seq)
	}
	_, which, _ := strings.Cut(f.ID, "#")
	if f.Shown.File > 0 {
		which = fmt.Sprintf("%08d", f.Shown.File)
	}
	return seqText(f.Seq) + "#" + which
}

// position is how far a cursor is: all events up to seq are done with, and of the event after it
// all files before those in files, unless that is nil. The event itself is done with before its
// files.
type position struct {
	seq   int64
	files *opened
}

// opened is a version whose files are being handled.
type opened struct {
	Event ref `dynamo:"event"`
	Done  int `dynamo:"files_done"`

	// Done is how many files are done with, and Next the byte at which the next one begins in the
	// list.
	Next int64 `dynamo:"next_byte"`
}

// before reports whether p is before another position. A version with its files done is the
// position of its seq.
func (p position) before(other position) bool {
	if p.seq != other.seq || other.files == nil {
		return p.seq < other.seq
	}
	return p.files == nil || p.files.Done < other.files.Done
}

// before is the position of a cursor that stands before the event. Of an event that is presented
// besides one of the log and is not a file's, it is that before the event of the log: these are
// handled in one step.
func (f ref) before() position {
	p := position{seq: f.Seq - 1}
	if f.Shown != nil && f.Shown.File > 0 {
		p.files = &opened{Event: f, Done: f.Shown.File - 1, Next: f.Shown.At}
		p.files.Event.ID, _, _ = strings.Cut(f.ID, "#")
		p.files.Event.Shown = nil
	}
	return p
}

// showOne is the event that f names, which is e or is presented besides it. If it is not presented
// any more, or the file is not in the list, it is a NotFound.
func (s *Store) showOne(ctx context.Context, e envelope.Event, f ref) (one seen, err error) {
	switch {
	case f.Shown == nil:
		return logged(e), nil
	case f.Shown.File == 0:
		all := envelope.Present(e)
		i := slices.IndexFunc(all, func(p envelope.Event) bool { return p.ID == f.ID })
		if i < 0 {
			return one, fault.New(fault.NotFound, "%s is not presented any more", f.ID)
		}
		return presented(e, all[i], 0, 0), nil
	}

	err = s.eachFile(ctx, e, f.Shown.File-1, f.Shown.At, func(file seen, _ int64) error {
		one = file
		return errEnough
	})
	if err != nil {
		return one, err
	}

	if one.ID != f.ID {
		return one, fault.New(fault.NotFound, "%s is not in the list of files of %s", f.ID,
			e.Subject.ID)
	}
	return one, nil
}

// errEnough ends the reading of a list of files early, without an error.
var errEnough = errors.New("consumer: enough files")

// eachFile calls each with the events of the files of a version, from the one behind number done
// on, which is at a byte of their list; next is where the next one is. each may return errEnough. A
// deployment that cannot read lists answers with an Unavailable.
func (s *Store) eachFile(ctx context.Context, e envelope.Event, done int, at int64,
	each func(file seen, next int64) error) error {
	if s.Files == nil {
		return fault.New(fault.Unavailable,
			"the files of versions cannot be read here, and the filter names File")
	}

	err := s.Files(ctx, e, at, func(f envelope.File, next int64) error {
		done++
		p, err := envelope.PresentFile(e, done, f)
		if err != nil {
			return err
		}
		this := presented(e, p, done, at)
		at = next
		return each(this, next)
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// seqText is a seq as a text that sorts as numbers do, as in the keys of the log.
func seqText(seq int64) string { return fmt.Sprintf("%012d", seq) }
