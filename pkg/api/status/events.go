package status

import (
	"context"
	"fmt"
	"time"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/components/component"
	"archivist/pkg/components/preservation"
	"archivist/pkg/events/consumer"
	"archivist/pkg/ingest"
	"archivist/pkg/revisions/revision"
)

// late is from when on a consumer that is behind needs a person.
const late = time.Hour

// events are the consumers of events that need a person: events are parked, it has stopped, or it is far behind.
func (s *Service) events(ctx context.Context, out *section) error {
	all, unread, err := s.Consumers.ShowLate(ctx, late)
	if err != nil {
		return err
	}

	out.cut(unread > 0, "how far consumers are behind in %s was not read",
		ingest.Counted(unread, "more partition"))
	parked := int64(0)
	for _, c := range all {
		parked += c.Parked
		out.ofConsumer(c)
	}
	out.Summary = fmt.Sprintf("%s, %s parked", ingest.Counted(len(all), "consumer"),
		ingest.Counted(parked, "event"))
	return nil
}

// ofConsumer adds what is to be said of a consumer.
func (s *section) ofConsumer(c consumer.Status) {
	if c.Broken != "" {
		s.add(v1.StatusLine{Text: fmt.Sprintf("the filter of %s cannot be read, so that it handles "+
			"nothing: %s", c.Name, ingest.Cut(c.Broken, 300)), Attention: true, Count: 1,
			Command: "archivist consumer show " + c.Name})
	}
	if c.Parked > 0 {
		s.add(v1.StatusLine{Text: c.Name + ": parked events, which wait for a person",
			Attention: true, Count: c.Parked,
			Command: "archivist consumer parked " + c.Name})
	}
	for _, p := range c.Places {
		if p.Stop != nil {
			s.add(v1.StatusLine{Text: fmt.Sprintf("%s has stopped in %s before event %d: %s",
				c.Name, p.Partition,
				p.Stop.Seq, ingest.Cut(p.Stop.Reason, 300)), Attention: true, Count: 1,
				Command: "archivist consumer show " + c.Name})
		}
	}

	behind := v1.StatusLine{Count: c.Behind, Since: since(c.Since),
		Command: "archivist consumer show " + c.Name}
	switch waits := time.Duration(c.LagSeconds)*time.Second > late; {
	case c.Paused && c.Behind > 0:
		behind.Text = c.Name + " is paused: events wait for it"
		s.add(behind)
	case c.Mode != consumer.Scheduled && waits:
		behind.Text, behind.Attention = c.Name+" is behind: events wait for it", true
		s.add(behind)
	}
}

// ofPreservation are the components that find damage and make copies, with what an item that has failed means.
var ofPreservation = map[string]string{
	preservation.FixityCheck: "objects with stored files that are damaged, missing or unreadable",
	preservation.CopyCheck:   "objects with copies that are damaged, missing or unreadable",
	preservation.Replication: "versions that could not be copied to the second bucket",
}

// preservation is what is damaged, and what is not copied. The components count it: an item of theirs that has failed
// stays so until it is worked on again with success.
func (s *Service) preservation(ctx context.Context, out *section) error {
	all, err := s.tally(ctx)
	if err != nil {
		return err
	}
	found := map[string]component.Counts{}
	for _, c := range all {
		text, is := ofPreservation[c.Name]
		if !is {
			continue
		}
		found[c.Name] = c.Counts
		if n := c.Counts.Failed; n > 0 {
			out.add(v1.StatusLine{Text: text, Attention: true, Count: n, Command: lineOf(c.Name)})
		}
	}

	checks, checked := found[preservation.FixityCheck]
	copies, copied := found[preservation.Replication]
	if !checked {
		out.add(v1.StatusLine{Text: "there is no component fixity-check: nobody reads the " +
			"stored files again",
			Attention: true, Count: 1, Command: "archivist component list"})
	}
	if copies.Ready > 0 {
		if copies.Oldest, err = s.Components.Oldest(ctx, preservation.Replication); err != nil {
			return err
		}
	}
	if n := copies.Ready + copies.Later + copies.Running; n > 0 {
		out.add(v1.StatusLine{Text: "versions that are not copied yet", Count: n,
			Since:     since(copies.Oldest),
			Attention: out.old(copies.Oldest), Command: "archivist component show " +
				"" + preservation.Replication})
	}

	damaged := checks.Failed + found[preservation.CopyCheck].Failed
	out.Summary = fmt.Sprintf("%s damaged or unreadable, %s not copied", ingest.Counted(damaged,
		"object"),
		ingest.Counted(copies.Ready+copies.Later+copies.Running+copies.Failed, "version"))
	if !copied {
		out.Summary = ingest.Counted(damaged, "object") + " damaged or unreadable; this " +
			"deployment makes no copies"
	}
	return nil
}

// lineOf is the command that lists the items of a component that have failed.
func lineOf(name string) string { return "archivist component line " + name + " failed" }

// components are the other components with items that have failed, and those that are paused.
func (s *Service) components(ctx context.Context, out *section) error {
	all, err := s.tally(ctx)
	if err != nil {
		return err
	}

	failed, busy := int64(0), int64(0)
	for _, c := range all {
		busy += c.Counts.Running
		if c.Paused {
			out.add(v1.StatusLine{Text: c.Name + " is paused: its items wait", Count: c.Counts.Ready,
				Command: "archivist component show " + c.Name})
		}
		if _, elsewhere := ofPreservation[c.Name]; elsewhere || c.Counts.Failed == 0 {
			continue
		}
		failed += c.Counts.Failed
		out.add(v1.StatusLine{Text: c.Name + ": items that have failed", Attention: true,
			Count: c.Counts.Failed, Command: lineOf(c.Name)})
	}
	out.Summary = fmt.Sprintf("%s, %s failed, %s in work", ingest.Counted(len(all), "component"),
		ingest.Counted(failed, "item"), ingest.Counted(busy, "item"))
	return nil
}

// archives are the archives whose revisions are not planned, and why.
func (s *Service) archives(ctx context.Context, out *section) error {
	if s.Revisions == nil {
		out.State, out.Summary = v1.SectionAbsent, "this deployment has no revision queue"
		return nil
	}

	all, more, err := s.Revisions.Archives(ctx, "")
	if err != nil {
		return err
	}
	out.cut(more != "", "the first %d archives were read", len(all))
	for _, a := range all {
		if a.Mode == revision.Active && a.Missed == 0 {
			continue
		}
		line := v1.StatusLine{Text: fmt.Sprintf("%s is %s: %s", a.Name, a.Mode, ingest.Cut(a.Why,
			300)), Count: 1,
			Attention: a.Mode == revision.Stopped, Command: "archivist archive show " + a.Name}
		if a.Mode == revision.Active {
			line.Text, line.Count = a.Name+": its head could not be read, in so many looks in a "+
				"row", int64(a.Missed)
			line.Attention = a.Missed >= mostMissed
		}
		out.add(line)
	}
	out.Summary = ingest.Counted(len(all), "archive")
	return nil
}

// mostMissed is from how many looks in a row on that fail a person should look: the waits double, so they take hours.
const mostMissed = 5
