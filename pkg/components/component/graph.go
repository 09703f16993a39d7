package component

import (
	"slices"
	"strings"

	"archivist/pkg/kernel/graph"
)

// edge is one of the assembly line: a condition of a component is on an event that another records.
type edge struct {
	from, to string // nodes
	event    string
	how      string // the name of the list
}

// dashed reports whether the condition is that the event is not there.
func (e edge) dashed() bool { return e.how == "future" || e.how == "old" }

// label is the text of the edge: the event, and the list that names it unless that is the usual
// one, pastSuccess.
func (e edge) label() string {
	if e.how == "pastSuccess" {
		return e.event
	}
	return e.event + " (" + e.how + ")"
}

// assembly is the assembly line as nodes and edges.
type assembly struct {
	components []Definition // sorted by name
	sources    []string     // events that no component records, sorted
	edges      []edge
}

// graphed derives the assembly line from definitions. The conditions of a component on its own
// event are left out: each has one. The result does not depend on the order of all.
func graphed(all []Definition) assembly {
	g := assembly{components: slices.Clone(all)}
	slices.SortFunc(g.components,
		func(a, b Definition) int { return strings.Compare(a.Name, b.Name) })
	by := map[string]string{}
	for _, d := range g.components {
		by[d.Event] = d.Name
	}

	for _, d := range g.components {
		for _, l := range d.lists() {
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

// Graph is the assembly line of these components. A link goes from the component that records an
// event to one whose condition names it; it is dashed if the item must not have the event. Events
// that no component records are nodes of their own.
func Graph(all []Definition) graph.Graph {
	g := graphed(all)
	out := graph.Graph{Name: "components"}
	for _, d := range g.components {
		out.Nodes = append(out.Nodes, graph.Node{ID: d.Name, Label: d.Name, Note: d.Event})
	}

	for _, s := range g.sources {
		out.Nodes = append(out.Nodes, graph.Node{ID: "event " + s, Label: s, Round: true})
	}

	for _, e := range g.edges {
		kind := graph.Then
		if e.dashed() {
			kind = graph.Absent
		}
		out.Links = append(out.Links, graph.Link{
			From:  e.from,
			To:    e.to,
			Kind:  kind,
			Label: e.label(),
		})
	}
	return out
}
