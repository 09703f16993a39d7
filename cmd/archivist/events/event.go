package events

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"archivist/cmd/archivist/command"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/terminal"
)

// eventListCmd lists events of one of three: of a subject, of a collection, or of a partition of the log. Only
// in a partition is there an order among subjects.
type eventListCmd struct {
	Collection string `short:"c" xor:"of" help:"Collection, newest first; site has what is in none." placeholder:"NAME"`
	Subject    string `short:"s" xor:"of" help:"TYPE:ID, or the id of a batch, job or object." placeholder:"ID"`
	Partition  string `short:"p" xor:"of" help:"Partition of the log, in order." placeholder:"NAME"`
	After      int64  `help:"Of a partition: begin after this place." placeholder:"SEQ"`
	Filter     string `help:"Only events that this filter selects, e.g. Object+Create." placeholder:"FILTER"`
	command.Limit
}

func (eventListCmd) Prints() any { return v1.LogEvent{} }

// Run lists those of a collection newest first, and those of a partition in order from --after on; without any of
// these, the newest of all. It requests one event more than is shown, to detect that there are more.
func (c *eventListCmd) Run(a *command.App) error {
	subject, err := subjectNamed(c.Subject)
	if err != nil {
		return err
	}

	list, err := a.Client.LogEvents(a.Ctx, v1.EventFilter{
		Subject:    subject,
		Collection: c.Collection,
		Partition:  c.Partition,
		After:      c.After,
		Filter:     c.Filter,
		Limit:      c.More(),
	})
	if err == nil && (c.Limit.Limit <= 0 || len(list.Items) <= c.Limit.Limit) {
		c.end(a, list)
	}
	return command.List(a, c.Limit, logColumns...)(list.Items, err)
}

// end says what there is beyond the end of the list.
func (c *eventListCmd) end(a *command.App, list v1.EventPage) {
	if list.Incomplete != "" {
		a.Warn("the list ends before the first event: %s (--collection NAME)",
			terminal.Printable(list.Incomplete))
	}
	if list.Others > 0 {
		a.Warn("%s are not in the list: archivist event list --collection NAME shows one",
			terminal.Count(list.Others, "other log"))
	}
}

// logColumns show the subject in the form in which the commands take it; programs get the type and the id, and
// the place in the log.
var logColumns = []terminal.Column[v1.LogEvent]{
	{
		Title: "time",
		Text:  func(e v1.LogEvent) string { return command.Minute(e.Time) },
		Raw:   func(e v1.LogEvent) string { return e.Time },
	},
	{Title: "type", Text: func(e v1.LogEvent) string { return e.Type }},
	{
		Title: "subject",
		Text:  func(e v1.LogEvent) string { return shownSubject(subjectText(e)) },
		Raw:   subjectText,
		Share: 6,
	},
	{Title: "no.", Text: func(e v1.LogEvent) string { return strconv.FormatInt(e.Version, 10) }},
	{Title: "outcome", Text: func(e v1.LogEvent) string { return e.Outcome }},
	{
		Title: "changed",
		Text:  func(e v1.LogEvent) string { return strings.Join(e.Properties, " ") },
		Share: 1,
	},

	{Text: func(e v1.LogEvent) string { return e.Partition }},
	{Text: func(e v1.LogEvent) string { return strconv.FormatInt(e.Seq, 10) }},
	{Text: func(e v1.LogEvent) string { return e.Context.Component }},
	{Text: func(e v1.LogEvent) string { return e.Context.Actor }},
	{Text: func(e v1.LogEvent) string { return e.ID }},
}

// subjectText is the subject of an event as the API names it.
func subjectText(e v1.LogEvent) string { return e.Subject.Type + ":" + e.Subject.ID }

// shownSubject is a subject as people see it, and as subjectNamed takes it: without the type if that follows
// from the form of the id.
func shownSubject(text string) string {
	_, id, _ := strings.Cut(text, ":")
	if named, err := subjectNamed(id); err == nil && named == text {
		return id
	}
	return text
}

// subjectNamed is a subject as the API names it: TYPE:ID. The type of a batch, a job or an object may be left
// out, since their ids have forms of their own; "" stays "". All else without a type is Invalid.
func subjectNamed(text string) (string, error) {
	types := map[v1.Kind]string{v1.KindBatch: "Batch", v1.KindJob: "Job", v1.KindObject: "Object"}
	// Ids of batches and jobs, and ARKs, have forms that nothing else has.
	kind := v1.KindOf(text)
	switch {
	case text == "":
		return "", nil
	case types[kind] != "":
		return types[kind] + ":" + text, nil
	case strings.Contains(text, ":"):
		return text, nil
	}
	return "", fault.New(fault.Invalid,
		"%q: expected TYPE:ID, e.g. Collection:maps, or the id of a batch, a job or "+
			"an object", text)
}

// eventTailCmd shows the newest events of a partition, and follows it: the order is that in which consumers get
// them.
type eventTailCmd struct {
	Partition string `arg:"" help:"Partition of the log: a collection, or site." default:"site"`
	Watch     bool   `short:"w" help:"Follow it until you press Ctrl-C: a log has no end."`
	Filter    string `help:"Only events that this filter selects." placeholder:"FILTER"`
	Lines     int64  `short:"n" default:"10" help:"Begin with so many of the newest places." placeholder:"N"`
}

func (eventTailCmd) Prints() any { return v1.LogEvent{} }

// Run prints a line for each event: with --json it is an object. With --watch it waits for more, less often the
// longer none comes, and goes on after a few failures of the API. Each event comes once, since the place of the
// last one read is known; one that the filter does not select moves the place, too.
func (c *eventTailCmd) Run(a *command.App) error {
	after, err := c.begin(a)
	if err != nil {
		return err
	}

	for n, missed := 0, 0; ; n++ {
		list, err := a.Client.LogEvents(a.Ctx, v1.EventFilter{
			Partition: c.Partition,
			After:     after,
			Filter:    c.Filter,
		})

		switch {
		case a.Ctx.Err() != nil:
			return a.Ctx.Err()
		case c.Watch && fault.Is(err, fault.Unavailable) && missed < command.MostMissed:
			missed++
		case err != nil:
			return err
		default:
			after, missed = list.After, 0
		}

		if len(list.Items) > 0 {
			n = 0
		}

		for _, e := range list.Items {
			if err := c.line(a, e); err != nil {
				return err
			}
		}

		if !c.Watch {
			return nil
		}

		if err := a.Wait(a.Ctx, command.Pause(n)); err != nil {
			return err
		}
	}
}

// begin is the place after which the newest events begin, not before the horizon: older ones cannot be read. It
// counts places, not events that the filter selects. A partition without events is NotFound, with those that
// there are.
func (c *eventTailCmd) begin(a *command.App) (int64, error) {
	parts, err := a.Client.LogPartitions(a.Ctx)
	if err != nil {
		return 0, err
	}

	var names []string
	for _, p := range parts {
		if p.Name == c.Partition {
			// Places before the horizon have expired; 0 is before the first.
			return max(p.Head-c.Lines, p.Horizon-1, 0), nil
		}
		names = append(names, p.Name)
	}
	return 0, fault.New(fault.NotFound, "the log has no partition %q; it has: %s", c.Partition,
		cmp.Or(strings.Join(names, ", "), "none yet"))
}

// line prints one event.
func (c *eventTailCmd) line(a *command.App, e v1.LogEvent) error {
	if a.JSON != nil {
		return a.PrintLine(a.Out, e)
	}
	at := e.Time
	if t, err := time.Parse(time.RFC3339, e.Time); err == nil {
		at = t.UTC().Format(time.DateTime)
	}
	_, err := fmt.Fprintf(a.Screen, "%s  %d  %s  %s %d\n", at, e.Seq, e.Type,
		terminal.Printable(shownSubject(subjectText(e))), e.Version)
	return err
}

// oneEvent are the arguments that name an event. They are permanent, unlike its place in the log, which a
// restore can change.
type oneEvent struct {
	Subject string `arg:"" help:"Subject: TYPE:ID, or the id of a batch, job or object."`
	Number  int64  `arg:"" help:"Number of the event among those of its subject, from 1."`
}

// eventShowCmd shows one event.
type eventShowCmd struct{ oneEvent }

func (eventShowCmd) Prints() any { return v1.LogEvent{} }

// Run shows what the event says, with its cause, if a consumer made it, and its place in the log.
func (c *eventShowCmd) Run(a *command.App) error {
	subject, err := subjectNamed(c.Subject)
	if err != nil {
		return err
	}

	e, err := a.Client.LogEvent(a.Ctx, subject, c.Number)
	if err != nil {
		return err
	}
	return a.Print(e, func(p terminal.Page) {
		pairs := []string{"event", e.ID, "type", e.Type, "action", e.Action, "subject",
			subjectText(e), "number",
			strconv.FormatInt(e.Version, 10), "time", e.Time, "outcome", e.Outcome, "in",
			refsText(e.Parents),
			"with", refsText(e.Objects), "identifiers", strings.Join(e.Identifiers, " "), "actor",
			e.Context.Actor,
			"component", strings.TrimSpace(e.Context.Component + " " + e.Context.Version),
			"request", e.Context.Request,
			"cause", causeText(e.Cause), "before", string(e.Before), "after", string(e.After),
			"detail",
			string(e.Detail), "place", placeText(e)}
		p.Fields(pairs...)
	})
}

// refsText lists things, each with its role in the event if it has one.
func refsText(all []v1.EventRef) string {
	var out []string
	for _, r := range all {
		out = append(out, strings.TrimSpace(r.Role+" "+r.Type+":"+r.ID))
	}
	return strings.Join(out, ", ")
}

// causeText is what caused an event: the event before, the first of the chain, and the consumers that made it;
// "" if a person or the archive itself did.
func causeText(c v1.EventCause) string {
	if c.Event == "" {
		return ""
	}
	return fmt.Sprintf("event %s, root %s, depth %d, made by %s", c.Event, c.Root, c.Depth,
		strings.Join(c.Components, ", "))
}

// placeText is the place of an event in the log: "none yet" until the relay has given it one, a moment after the
// event.
func placeText(e v1.LogEvent) string {
	if e.Seq == 0 {
		return "none yet"
	}
	return fmt.Sprintf("%s %d", e.Partition, e.Seq)
}
