package component

import (
	"fmt"
	"slices"
	"strings"
)

// An edge of the assembly line: a condition of a component is on an event that another records.
type edge struct {
	from, to string // nodes
	event    string
	how      string // the name of the list
}

// dashed reports whether the condition is that the event is not there.
func (e edge) dashed() bool { return e.how == "future" || e.how == "old" }

// label is the text of the edge.
func (e edge) label() string {
	if e.how == "pastSuccess" {
		return e.event
	}
	return e.event + " (" + e.how + ")"
}

// graphed is the assembly line as nodes and edges.
type graphed struct {
	components []Definition // sorted by name
	sources    []string     // events that no component records, sorted
	edges      []edge
}

// graph derives the assembly line from definitions. The conditions of a component on its own event are
// left out.
func graph(all []Definition) graphed {
	g := graphed{components: slices.Clone(all)}
	slices.SortFunc(g.components, func(a, b Definition) int { return strings.Compare(a.Name, b.Name) })
	by := map[string]string{}
	for _, d := range g.components {
		by[d.Event] = d.Name
	}
	for _, d := range g.components {
		for _, l := range []struct {
			how   string
			names []string
		}{{"pastSuccess", d.PastSuccess}, {"pastFailure", d.PastFailure}, {"future", d.Future}, {"old", d.Old}} {
			for _, event := range l.names {
				if event == d.Event {
					continue
				}
				from, recorded := by[event]
				if !recorded {
					from = "event " + event
					g.sources = append(g.sources, event)
				}
				g.edges = append(g.edges, edge{from: from, to: d.Name, event: event, how: l.how})
			}
		}
	}
	slices.Sort(g.sources)
	g.sources = slices.Compact(g.sources)
	return g
}

// DOT is the assembly line of these components as a graph in the language of Graphviz. An edge goes
// from the component that records an event to one whose condition names it; it is dashed if the item
// must not have the event. Events that no component records are nodes of their own.
func DOT(all []Definition) string {
	g := graph(all)
	var b strings.Builder
	b.WriteString("digraph components {\n  rankdir=LR;\n  node [shape=box];\n")
	for _, d := range g.components {
		fmt.Fprintf(&b, "  %q [label=%q];\n", d.Name, d.Name+`\n`+d.Event)
	}
	for _, s := range g.sources {
		fmt.Fprintf(&b, "  %q [label=%q, shape=ellipse];\n", "event "+s, s)
	}
	for _, e := range g.edges {
		style := ""
		if e.dashed() {
			style = ", style=dashed"
		}
		fmt.Fprintf(&b, "  %q -> %q [label=%q%s];\n", e.from, e.to, e.label(), style)
	}
	// A line break in a label is the two characters that Graphviz reads, not an escaped backslash.
	return strings.ReplaceAll(b.String(), `\\n`, `\n`) + "}\n"
}

// Mermaid is the same graph as a flowchart of Mermaid, which Markdown files can contain.
func Mermaid(all []Definition) string {
	g := graph(all)
	nodes := map[string]string{}
	var b strings.Builder
	b.WriteString("flowchart LR\n")
	for i, d := range g.components {
		nodes[d.Name] = fmt.Sprintf("c%d", i+1)
		fmt.Fprintf(&b, "  c%d[\"%s<br>%s\"]\n", i+1, d.Name, d.Event)
	}
	for i, s := range g.sources {
		nodes["event "+s] = fmt.Sprintf("e%d", i+1)
		fmt.Fprintf(&b, "  e%d([\"%s\"])\n", i+1, s)
	}
	for _, e := range g.edges {
		arrow := "-->"
		if e.dashed() {
			arrow = "-.->"
		}
		fmt.Fprintf(&b, "  %s %s|\"%s\"| %s\n", nodes[e.from], arrow, e.label(), nodes[e.to])
	}
	return b.String()
}
