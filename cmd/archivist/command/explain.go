package command

import (
	"fmt"
	"strconv"
	"strings"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/terminal"
)

// ExplainCmd says what anything waits for, and what can be done about it.
type ExplainCmd struct {
	ID         string `arg:"" name:"id" help:"Id or name of a thing, or TYPE:ID."`
	Collection string `short:"c" help:"The id is a local id in this collection." placeholder:"NAME"`
	Component  string `help:"The id is an item: only what this component waits for." placeholder:"NAME"`
	Consumer   string `help:"The id is the subject of an event: what this consumer did with it." placeholder:"NAME"`
	Event      int64  `help:"With --consumer: the number of the event." placeholder:"N"`
	Clip       string `help:"The id is an episode: the pair of it and this clip." placeholder:"KEY"`
}

// Help lists what has an explanation.
func (ExplainCmd) Help() string {
	return `ID is the id of a batch, a job, an operation, a run or a lease; an ARK, or a local id with -c;
item:ID; the name of a component, a consumer, an archive or a research project; ARCHIVE/12 for a
revision, ARCHIVE/12/TASK for a task; PROJECT/NAME for an episode, a clip or a researcher. If
several things have one name, TYPE:ID asks for one of them, e.g. Collection:maps.`
}

// Prints is an empty value of what it prints; its fields are those of --json.
func (ExplainCmd) Prints() any { return v1.Explanation{} }

// Run shows the explanation.
func (c *ExplainCmd) Run(a *App) error {
	return Show(a, ShowExplanation)(a.Client.ExplainWith(a.Ctx, c.ID, v1.ExplainOf{Collection: c.Collection,
		Component: c.Component, Consumer: c.Consumer, Event: c.Event, Clip: c.Clip}))
}

// ahead is how many come before the thing, and the first of them, "" if it is in no line.
func ahead(x v1.Explanation) string {
	if x.Ahead == nil {
		return ""
	}
	says := strconv.Itoa(*x.Ahead)
	if x.MoreAhead {
		says = "at least " + says
	}
	if x.Line == nil || len(x.Line.First) == 0 {
		return says
	}

	var who []string
	for _, b := range x.Line.First {
		one := fmt.Sprintf("%s (%s)", b.ID, b.State)
		if b.ID == "" {
			one = "one of another collection"
		}
		if b.Has {
			one += " has the lock"
		}
		who = append(who, one)
	}
	if more := *x.Ahead - len(who); more > 0 || x.MoreAhead {
		who = append(who, fmt.Sprintf("%d more", more))
	}
	return says + ": " + strings.Join(who, ", ")
}

// line is what the thing stands in line for.
func line(x v1.Explanation) string {
	switch {
	case x.Line == nil:
		return ""
	case x.Line.Stop != "":
		return fmt.Sprintf("%s %s (%s)", x.Line.Before, x.Line.Name, x.Line.Stop)
	}
	return x.Line.Before + " " + x.Line.Name
}

// todo prints what a person can do. For people, the command is on a line of its own that is not broken: it can be
// copied.
func todo(p terminal.Page, s v1.ExplainedStep) {
	switch {
	case s.Command == "":
		p.Fields("to do", s.What)
	case p.ForPeople():
		p.Fields("to do", s.What+":")
		fmt.Fprintln(p, "  "+terminal.Printable(s.Command))
	default:
		p.Fields("to do", s.What+": "+s.Command)
	}
}

// ShowExplanation prints an explanation: first why, then what is behind it, and what a person can do.
func ShowExplanation(p terminal.Page, x v1.Explanation) {
	p.Fields("what", x.Kind+" "+x.ID, "state", x.State, "why", x.Why, "waits for", x.WaitsFor,
		"in line for", line(x), "before it", ahead(x))
	for i, l := range x.Chain {
		if i > 0 {
			p.Fields("behind it", fmt.Sprintf("%s %s (%s): %s", l.Kind, l.ID, l.State, l.Why))
		}
	}
	if x.Cut {
		p.Fields("behind it", "…")
	}
	p.Fields("since", x.Since, "until", x.Until)
	for _, s := range x.Do {
		todo(p, s)
	}
	for _, f := range x.Facts {
		p.Fields("detail", f.Name+": "+f.Value)
	}
}
