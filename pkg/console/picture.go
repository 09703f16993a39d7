package console

import (
	"html/template"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/graph"
)

// whatWaits is the name of most pictures.
const whatWaits = "What waits for what"

// pictureOf is a graph whose nodes lead to addresses. says is what it shows, in words; "": which
// node waits for which. All texts of it are escaped by package graph.
func pictureOf(name, says string, nodes []v1.GraphNode, links []v1.GraphLink,
	address func(id string) string) template.HTML {
	g := graph.Graph{Name: shown(name), Says: shown(says)}
	for _, n := range nodes {
		g.Nodes = append(g.Nodes, graph.Node{ID: n.ID, Label: shown(n.Label), Note: shown(n.Note),
			State: n.State, Group: shown(n.Group), Round: n.Round})
	}
	for _, l := range links {
		g.Links = append(g.Links, graph.Link{From: l.From, To: l.To, Kind: graph.Kind(l.Kind),
			Label: shown(l.Label)})
	}
	return template.HTML(g.Inline(address))
}
