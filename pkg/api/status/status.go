// Package status tells how the whole deployment is, on one screen: what has failed, what waits and
// since when, what is on hold, which events are parked, what is damaged or not copied, which alarms
// are raised, and what runs.
//
//	s := &status.Service{Queue: q, Consumers: consumers, Components: components, Now: time.Now}
//	now := s.Status(ctx, false)
//
// Each section is read by itself, with a limit of its time and of what it reads. One that cannot be
// read says why, and the others are there; it is never shown as one in which there is nothing. It
// changes nothing.
package status

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
)

// reader reads a section. An error says why it is not known.
type reader struct {
	name, command string
	read          func(ctx context.Context, s *section) error
}

// sections are all sections in their order: what may need a person first.
func (s *Service) sections() []reader {
	return []reader{
		{"failures", "archivist job list --state failed", s.failures},
		{"waiting", "archivist queue show", s.waiting},
		{"holds", "archivist queue holds", s.holds},
		{"events", "archivist consumer list", s.events},
		{"preservation", "archivist object preservation status", s.preservation},
		{"components", "archivist component list", s.components},
		{"archives", "archivist archive list", s.archives},
		{"research", "archivist research list", s.research},
		{"alarms", "", s.alarms},
		{"running", "archivist queue show", s.running},
	}
}

// Status reads all sections at once. What several of them need is read once. attention: only the
// lines are there that need a person, and no others are read.
func (s *Service) Status(ctx context.Context, attention bool) v1.Status {
	one := *s
	one.attention = attention
	one.seen = &seen{}
	all := one.sections()
	out := v1.Status{At: ingest.Timestamp(s.Now().UnixMilli()), Sections: make([]v1.StatusSection,
		len(all))}
	var reading sync.WaitGroup
	for i, r := range all {
		reading.Go(func() { out.Sections[i] = r.section(ctx, s.Now(), attention) })
	}
	reading.Wait()

	for _, part := range out.Sections {
		needed := part.State == v1.SectionAttention || part.State == v1.SectionUnavailable
		out.Attention = out.Attention || needed
	}
	if o, err := one.overview(ctx); err == nil { // a section has read it
		q := NumbersOf(o)
		out.Queue = &q
	}
	return out
}

// NumbersOf are the numbers of the queue, and its holds.
func NumbersOf(o queue.Overview) v1.Queue {
	out := v1.Queue{
		Waiting:       o.Waiting,
		MoreThan:      o.MoreThan,
		Running:       o.Running,
		MaxInFlight:   o.MaxInFlight,
		SpaceFree:     o.SpaceFree,
		OldestWaiting: o.OldestWaiting,
		OldestSince:   o.OldestSince,
		LastSweep:     o.LastSweep,
	}
	for i := range o.Holds {
		out.Holds = append(out.Holds, HoldOf(o.Holds[i].Target(), o.Holds[i].Hold))
	}
	return out
}

// HoldOf is the wire form of the hold of a target.
func HoldOf(t ingest.Target, h ingest.Hold) v1.Hold {
	return v1.Hold{Target: t.String(), Reason: h.Reason, Actor: h.Actor,
		Since: since(h.Since), Until: since(h.Until)}
}

// section reads a section. Of one that cannot be read no lines are shown, since others are missing.
func (r reader) section(ctx context.Context, now time.Time, attention bool) v1.StatusSection {
	ctx, cancel := context.WithTimeout(ctx, sectionTime)
	defer cancel()
	in := section{StatusSection: v1.StatusSection{Name: r.name, Command: r.command,
		State: v1.SectionOK}, now: now}
	if err := r.read(ctx, &in); err != nil {
		return v1.StatusSection{Name: r.name, Command: r.command, State: v1.SectionUnavailable,
			Summary: "not known: " + why(err), Lines: []v1.StatusLine{}}
	}
	if attention {
		in.Lines = slices.DeleteFunc(in.Lines, func(l v1.StatusLine) bool { return !l.Attention })
	}
	return in.finished()
}

// why is the reason of an error for people.
func why(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Sprintf("it was not read within %s", sectionTime)
	}
	return queue.CauseOf(err)
}
