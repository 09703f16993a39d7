package consumer

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"archivist/pkg/events/envelope"
	"archivist/pkg/events/filter"
	"archivist/pkg/kernel/fault"
)

// Trial is a page of what a filter selects of the log. The counts are those of the page.
type Trial struct {
	// Read counts events that were looked at, with those of files.
	Read int `json:"read"`

	// Selected counts those that a consumer would get, as it gets them.
	Selected int `json:"selected"`

	// Events are the first of those that are selected, as facts; never nil.
	Events []envelope.Event `json:"events"`

	// Cursor continues with the next page; "": this was the last.
	Cursor string `json:"cursor,omitempty"`

	// lists counts the lists of files that were read; the page ends at until.
	lists int
	until time.Time
}

// Bounds of a page of a trial. A list of files takes two or three requests to S3.
const (
	trialRead   = 5000
	trialLists  = 50
	trialEvents = 100
	trialTime   = 15 * time.Second // of the 29 that a request has
)

// DryRun tries a filter on the past log, in the partition of that name, or in all (""). from is as
// in Definition.Start; a seq needs the name of a partition. It reads a page; the cursor of the page
// before continues ("" at the beginning and at the end). Nothing is handled or changed. An Invalid
// means that the filter, from or the cursor cannot be read; a NotFound that there is no such
// partition.
func (s *Store) DryRun(ctx context.Context, text, partition, from, page string) (Trial, error) {
	t := Trial{Events: []envelope.Event{}}
	f, err := filter.Compile(text)
	if err != nil {
		return t, fault.New(fault.Invalid, "%w", err)
	}

	at, err := parseStart(from)
	if err != nil {
		return t, fault.New(fault.Invalid, "from: %w", err)
	}

	if at.seq > 0 && partition == "" {
		return t, fault.New(fault.Invalid,
			"from: %q: each partition has seqs of its own; name the partition", from)
	}

	name, on, err := parseTrialCursor(page)
	if err != nil {
		return t, err
	}

	all, err := s.trialPartitions(ctx, partition, name)
	if err != nil {
		return t, err
	}

	t.until = s.Now().Add(trialTime)
	for _, p := range all {
		if s.late(&t) {
			t.Cursor = "." + p.Name
			return t, nil
		}

		begin := cursor{From: at.time}
		if p.Name == name && on != nil {
			begin.Seq, begin.Files = on.seq, on.files
		} else if begin, err = s.startOf(ctx, "dry-run", p, at); err != nil {
			return t, err
		}

		full, err := s.try(ctx, f, p, begin, &t)
		if full || err != nil {
			return t, err
		}
	}
	return t, nil
}

// trialPartitions are the partition of that name, or all ("") from the name of one on, sorted by
// name: so a cursor that names a partition is a place among them, even if others were made
// meanwhile.
func (s *Store) trialPartitions(ctx context.Context, name,
	from string) ([]envelope.Partition, error) {
	if name != "" {
		p, err := s.Log.Partition(ctx, name)
		return []envelope.Partition{p}, err
	}
	all, err := s.Log.Partitions(ctx)
	all = slices.DeleteFunc(all, func(p envelope.Partition) bool { return p.Name < from })
	slices.SortFunc(all,
		func(a, b envelope.Partition) int { return strings.Compare(a.Name, b.Name) })
	return all, err
}

// late reports whether the time of a trial is over.
func (s *Store) late(t *Trial) bool { return s.Now().After(t.until) }

// try reads events of one partition into t, and reports whether the page is full; then t.Cursor
// says where it goes on. at is a place as a consumer would have it, and is not stored.
func (s *Store) try(ctx context.Context, f *filter.Filter, p envelope.Partition, at cursor,
	t *Trial) (bool, error) {
	for at.Seq < p.Head {
		if t.full() || s.late(t) {
			t.Cursor = trialCursor(p.Name, at.position())
			return true, nil
		}

		facts, err := s.Log.Read(ctx, p.Name, at.Seq, min(MaxWindow, trialRead-t.Read))
		if err != nil || len(facts) == 0 {
			return false, err
		}

		for _, e := range facts {
			if t.full() {
				break
			}

			if at.Files == nil {
				t.Read++
			}

			if e.Time < at.From {
				at.Files = nil
			} else if err := s.tryOne(ctx, f, e, &at, t); err != nil {
				return false, err
			}

			if at.Files != nil {
				break
			}

			at.Seq = e.Seq
		}
	}
	return false, nil
}

// tryOne reads an event into t, with files if the filter may select them. If the page is full
// before the end of their list, at says where; the event itself is counted on the page on which its
// files begin.
func (s *Store) tryOne(ctx context.Context, f *filter.Filter, e envelope.Event, at *cursor,
	t *Trial) error {
	from := opened{}
	if at.Files != nil {
		from, at.Files = *at.Files, nil
	} else {
		for _, one := range show(f, e) {
			t.add(one.Event)
		}
	}

	if !f.SelectsFiles(e) {
		return nil
	}

	t.lists++
	return s.eachFile(ctx, e, from.Done, from.Next, func(file seen, _ int64) error {
		if t.Read >= trialRead {
			at.Files = file.ref.before().files
			return errEnough
		}
		t.Read++
		if f.Match(file.Event) {
			t.add(file.Facts())
		}
		return nil
	})
}

func (t *Trial) full() bool { return t.Read >= trialRead || t.lists >= trialLists }

func (t *Trial) add(e envelope.Event) {
	t.Selected++
	if len(t.Events) < trialEvents {
		t.Events = append(t.Events, e)
	}
}

// trialCursor is a position in a partition as text: "SEQ.PARTITION", or "SEQ-FILES-BYTE.PARTITION",
// where FILES of the version after SEQ are done, and the next is at BYTE of their list.
func trialCursor(partition string, at position) string {
	if at.files != nil {
		return fmt.Sprintf("%d-%d-%d.%s", at.seq, at.files.Done, at.files.Next, partition)
	}
	return fmt.Sprintf("%d.%s", at.seq, partition)
}

// parseTrialCursor reads what trialCursor writes; anything else is an Invalid. on is nil for
// ".PARTITION": its start was not looked for yet.
func parseTrialCursor(cursor string) (partition string, on *position, err error) {
	if cursor == "" {
		return "", nil, nil
	}

	invalid := fault.New(fault.Invalid,
		"invalid cursor; use that of the page before, or leave it out to "+
			"begin again")

	where, partition, _ := strings.Cut(cursor, ".")
	if partition == "" {
		return "", nil, invalid
	}

	if where == "" {
		return partition, nil, nil
	}

	on, err = parsePosition(where)
	if err != nil {
		return "", nil, invalid
	}
	return partition, on, nil
}

// parsePosition reads "SEQ" or "SEQ-FILES-BYTE".
func parsePosition(text string) (*position, error) {
	seq, inFiles, has := strings.Cut(text, "-")
	n, err := strconv.ParseInt(seq, 10, 64)
	if err != nil {
		return nil, err
	}

	at := &position{seq: n}
	if has {
		at.files = &opened{}
		if _, err := fmt.Sscanf(inFiles, "%d-%d", &at.files.Done, &at.files.Next); err != nil {
			return nil, err
		}
	}

	if at.seq < 0 || has && (at.files.Done < 0 || at.files.Next < 0) {
		return nil, fmt.Errorf("a negative number in %q", text)
	}
	return at, nil
}
