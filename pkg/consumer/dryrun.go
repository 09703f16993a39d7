package consumer

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"archivist/pkg/envelope"
	"archivist/pkg/fault"
	"archivist/pkg/filter"
)

// Trial is a page of what a filter selects of the log.
type Trial struct {
	Read     int              `json:"read"`     // events that were looked at
	Selected int              `json:"selected"` // of these
	Events   []envelope.Event `json:"events"`   // the first of those that are selected, as facts
	Cursor   string           `json:"cursor,omitempty"`
}

// Bounds of a page of a trial.
const (
	trialRead   = 5000
	trialEvents = 100
)

// DryRun tries a filter on the past log, in the partition of that name, or in all ("").
// from is as in Definition.Start. It reads a page; the cursor of the page before continues
// ("" at the beginning and at the end). Nothing is handled or changed.
func (s *Store) DryRun(ctx context.Context, text, partition, from, cursor string) (Trial, error) {
	t := Trial{Events: []envelope.Event{}}
	f, err := filter.Compile(text)
	if err != nil {
		return t, fault.New(fault.Invalid, "%w", err)
	}
	at, err := parseStart(from)
	if err != nil {
		return t, fault.New(fault.Invalid, "from: %w", err)
	}
	name, after, err := parseTrialCursor(cursor)
	if err != nil {
		return t, err
	}
	all, err := s.Log.Partitions(ctx)
	slices.SortFunc(all, func(a, b envelope.Partition) int { return strings.Compare(a.Name, b.Name) })
	for _, p := range all {
		if partition != "" && p.Name != partition || p.Name < name {
			continue
		}
		begin, err := s.startOf(ctx, "dry-run", p, at)
		if err != nil {
			return t, err
		}
		if p.Name == name {
			begin.Seq = after
		}
		full, err := s.try(ctx, f, p, begin, &t)
		if full || err != nil {
			return t, err
		}
	}
	return t, err
}

// try reads events of one partition into t, and reports whether the page is full.
func (s *Store) try(ctx context.Context, f *filter.Filter, p envelope.Partition, at cursor, t *Trial) (bool, error) {
	for at.Seq < p.Head {
		if t.Read >= trialRead {
			t.Cursor = fmt.Sprintf("%d.%s", at.Seq, p.Name)
			return true, nil
		}
		facts, err := s.Log.Read(ctx, p.Name, at.Seq, min(MaxWindow, trialRead-t.Read))
		if err != nil || len(facts) == 0 {
			return false, err
		}
		for _, e := range facts {
			if e.Time >= at.From && f.Match(e) {
				t.add(e)
			}
		}
		t.Read += len(facts)
		at.Seq = facts[len(facts)-1].Seq
	}
	return false, nil
}

func (t *Trial) add(e envelope.Event) {
	t.Selected++
	if len(t.Events) < trialEvents {
		t.Events = append(t.Events, e)
	}
}

func parseTrialCursor(cursor string) (partition string, after int64, err error) {
	if cursor == "" {
		return "", 0, nil
	}
	if _, err := fmt.Sscanf(cursor, "%d.%s", &after, &partition); err != nil || after < 0 {
		return "", 0, fault.New(fault.Invalid, "invalid cursor; use that of the page before, or leave it out to begin "+
			"again")
	}
	return partition, after, nil
}
