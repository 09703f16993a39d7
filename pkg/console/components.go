package console

import (
	"html/template"
	"slices"
	"strconv"
	"strings"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/terminal"
)

// components is the page of components.
type components struct {
	Items   []v1.Component
	Picture template.HTML
}

// showComponents lists the components with their lines, and shows them as an assembly line.
func (c *Console) showComponents(v *visit) (view, error) {
	all, err := v.api.Components(v.Context())
	if err != nil {
		return view{}, err
	}
	is, moving := components{Items: all}, false
	counts := map[string]v1.ComponentCounts{}
	for _, one := range all {
		counts[one.Name] = one.Counts
		moving = moving || one.Counts.Running > 0 || one.Filling != nil
	}
	g, err := v.api.ComponentGraph(v.Context())
	if err != nil {
		return view{}, err
	}
	for i, n := range g.Nodes {
		if x, known := counts[n.ID]; known {
			g.Nodes[i].Note += "; " + lineOf(x)
		}
	}
	for i, l := range g.Links {
		if x, known := counts[l.From]; known { // as many as have passed the station
			g.Links[i].Label = strings.TrimSpace(l.Label + " " + number(x.Done))
		}
	}
	base := baseOf(v.Request)
	is.Picture = pictureOf(whatWaits, "", g.Nodes, g.Links, func(id string) string {
		if _, known := counts[id]; !known {
			return ""
		}
		return base + subjectPage("Component", id)
	})
	return view{Title: "Assembly lines", Body: is, Moving: moving,
		Command: "archivist component list", Said: terminal.Count(len(all), "component") + "."}, nil
}

// lineOf are the numbers of the items of a component, without those that are 0.
func lineOf(n v1.ComponentCounts) string {
	var all []string
	for _, x := range []struct {
		n    int64
		what string
	}{{n.Ready, "ready"}, {n.Later, "later"}, {n.Running, "running"}, {n.Failed, "failed"},
		{n.Done, "done"}} {
		if x.n > 0 {
			all = append(all, number(x.n)+" "+x.what)
		}
	}
	if len(all) == 0 {
		return "no items"
	}
	return strings.Join(all, ", ")
}

// component is the page of a component.
type component struct {
	v1.Component
	Class  string // of the items that are listed
	Counts []classCount
	Line   []v1.LineItem
	More   string // the address of more items
	Runs   []v1.ComponentRun
	Deeds  []deedOffer
	Events []v1.Event
	Older  string
}

// classCount is how many items of a component are in a class; N of done are not listed.
type classCount struct {
	Name, Says string
	N          int64
}

// showComponent shows a component: its line, its runs, and what can be done.
func (c *Console) showComponent(v *visit) (view, error) {
	name := v.PathValue("name")
	one, err := v.api.Component(v.Context(), name)
	if err != nil {
		return view{}, err
	}
	n := one.Counts
	is := component{Component: one, Class: v.field("class"), Counts: []classCount{
		{"ready", "can be worked on", n.Ready}, {"later", "are tried again at a time", n.Later},
		{"running", "are worked on", n.Running}, {"failed", "need a person or a change", n.Failed}}}
	line, err := pageOf[v1.LineItem](v, parts("components", name, "line"), v.field("cursor"),
		"class", is.Class)
	if err != nil {
		return view{}, err
	}
	is.Line, is.More = line.Items, v.more("cursor", line.Cursor)
	runs, err := pageOf[v1.ComponentRun](v, parts("components", name, "runs"), "")
	if err != nil {
		return view{}, err
	}
	is.Runs = runs.Items[:min(len(runs.Items), mostRecent)]
	states := []string{"runs"}
	if one.Paused {
		states[0] = "paused"
	}
	going := func(r v1.ComponentRun) bool { return r.State == v1.RunGoing }
	if slices.ContainsFunc(runs.Items, going) {
		states = append(states, "working")
	}
	is.Deeds = v.deedsOn("component", states, name)
	log, err := pageOf[v1.Event](v, parts("components", name, "events"), v.field("events"))
	is.Events, is.Older = log.Items, v.more("events", log.Cursor)
	return view{Title: "Component " + name, Body: is, Moving: n.Running > 0 || one.Filling != nil,
		Command: "archivist component show " + quoted(name), Said: lineOf(n) + "."}, err
}

// run is the page of a run of a component.
type run struct {
	v1.ComponentRun
	More string
}

// showRun shows a run of a component, with the items that it has worked on.
func (c *Console) showRun(v *visit) (view, error) {
	name, id := v.PathValue("name"), v.PathValue("run")
	one, err := call[v1.ComponentRun](v, "GET", parts("components", name, "runs", id)+"?"+
		query("cursor", v.field("cursor")), nil, "")
	return view{Title: "Run of " + name, Body: run{one, v.more("cursor", one.Cursor)},
		Moving: one.State == v1.RunGoing, Command: "archivist component runs " + quoted(name),
		Said: "The run is " + one.State + "."}, err
}

// item is the page of an item.
type item struct {
	v1.Item
	Page    string // of what it stands for; "" = there is none
	Why     []v1.ExplainedLink
	WhyNot  string
	History []v1.ItemEvent
	More    string // the address of more of it
	Deeds   []deedOffer
	Next    []itemRow
}

// itemRow is where an item is in the line of a component.
type itemRow struct {
	v1.ItemLine
	Release string // the address of the form that ends the lease; "" = it cannot
}

// showItem shows an item: where it is in the lines, its timeline, and what can be done.
func (c *Console) showItem(v *visit) (view, error) {
	id := v.field("id")
	if id == "" {
		return view{}, fault.New(fault.Invalid, "id: it names an item, and is missing")
	}
	one, err := v.api.Item(v.Context(), id)
	if err != nil {
		return view{}, err
	}
	states := []string{"goes"}
	if one.Stopped {
		states[0] = "stopped"
	}
	is := item{Item: one, Page: standsFor(one.ID)}
	moving := false
	for _, l := range one.Lines {
		row := itemRow{ItemLine: l}
		if l.Class == "running" {
			row.Release = v.deedAt("item", "release", []string{one.ID}, "component", l.Component)
			states, moving = append(states, "leased"), true
		}
		is.Next = append(is.Next, row)
	}
	if why, err := v.api.Explain(v.Context(), one.ID); err == nil {
		is.Why = why.Chain
	} else {
		is.WhyNot = err.Error()
	}
	is.Deeds = v.deedsOn("item", states, one.ID)
	history, err := pageOf[v1.ItemEvent](v, "/v1/item/history", v.field("cursor"), "id", one.ID)
	is.History, is.More = history.Items, v.more("cursor", history.Cursor)
	return view{Title: "Item " + one.ID, Body: is, Moving: moving,
		Command: "archivist component item show " + quoted(one.ID) + " --timeline",
		Said:    strconv.Itoa(len(one.Events)) + " events count."}, err
}

// standsFor is the page of the batch that an item stands for, below /console/; "" for another item.
func standsFor(id string) string {
	kind, rest, _ := strings.Cut(id, ":")
	if kind != "batch" {
		return ""
	}
	return subjectPage("Batch", rest)
}
