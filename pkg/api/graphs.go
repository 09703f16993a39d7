package api

import (
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/graph"
)

// wireGraph is the wire form of the nodes and links of a graph.
func wireGraph(g graph.Graph) ([]v1.GraphNode, []v1.GraphLink) {
	return each(g.Nodes, func(n graph.Node) v1.GraphNode { return v1.GraphNode(n) }),
		each(g.Links, func(l graph.Link) v1.GraphLink {
			return v1.GraphLink{From: l.From, To: l.To, Kind: string(l.Kind), Label: l.Label}
		})
}
