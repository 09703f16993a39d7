// Package graph draws what depends on what: as text for Graphviz and Mermaid, and as a picture in
// SVG.
//
// It knows nothing of what the nodes are: workflows, versions and components are drawn by it.
// Labels may have any text, also from outside; each format escapes it.
package graph

import (
	"fmt"
	"strings"
)

// Graph is what is drawn. The same value gives the same bytes. The texts keep the order of nodes
// and links. Links to nodes that are not there are left out of Mermaid and SVG.
type Graph struct {
	Name  string `json:"name"`
	Nodes []Node `json:"nodes"`
	Links []Link `json:"links,omitempty"`
	Says  string `json:"-"` // the description of its picture; "": which node waits for which
}

// Node is a box with a label.
type Node struct {
	// ID is unique in the graph, and not shown.
	ID    string `json:"id"`
	Label string `json:"label"`
	Note  string `json:"note,omitempty"`  // a second line
	State string `json:"state,omitempty"` // of package workflow, or any other word; a third line
	// Group: nodes of one group are next to each other, under its name.
	Group string `json:"group,omitempty"`
	Round bool   `json:"round,omitempty"` // it is not of the same kind as the others
}

// Kind is what a link means.
type Kind string

// The kinds. Links of the last two are dashed.
const (
	Then    Kind = "depends" // To waits for From
	Cancels Kind = "cancels" // From cancels To
	Absent  Kind = "absent"  // To needs that From is not there
)

// Link goes from one node to another.
type Link struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Kind  Kind   `json:"kind"`
	Label string `json:"label,omitempty"`
}

// dashed reports whether the link is no plain one.
func (l Link) dashed() bool { return l.Kind == Cancels || l.Kind == Absent }

// lines are the texts of a node, one below the other.
func (n Node) lines() []string {
	out := []string{n.Label}
	for _, s := range []string{n.Note, n.State} {
		if s != "" {
			out = append(out, s)
		}
	}
	return out
}

// groups are the names of groups in the order of their first nodes; "" is among them.
func (g Graph) groups() []string {
	var out []string
	seen := map[string]bool{}
	for _, n := range g.Nodes {
		if !seen[n.Group] {
			seen[n.Group] = true
			out = append(out, n.Group)
		}
	}
	return out
}

// Add puts the nodes and links of another graph into this one. A node that is in both keeps
// what it has here. A link that is in both is there once.
func (g *Graph) Add(other Graph) {
	known := map[string]bool{}
	for _, n := range g.Nodes {
		known[n.ID] = true
	}

	for _, n := range other.Nodes {
		if !known[n.ID] {
			g.Nodes = append(g.Nodes, n)
		}
	}

	links := map[Link]bool{}
	for _, l := range g.Links {
		links[l] = true
	}

	for _, l := range other.Links {
		if !links[l] {
			g.Links = append(g.Links, l)
		}
	}
}

// DOT is the graph in the language of Graphviz. Groups are clusters, for which Graphviz needs
// names that begin with "cluster".
func (g Graph) DOT() string {
	var b strings.Builder
	fmt.Fprintf(&b, "digraph %s {\n  rankdir=LR;\n  node [shape=box];\n", quoteDOT(g.Name))
	for i, group := range g.groups() {
		indent := "  "
		if group != "" {
			fmt.Fprintf(&b, "  subgraph cluster_%d {\n    label=%s;\n", i+1, quoteDOT(group))
			indent = "    "
		}

		for _, n := range g.Nodes {
			if n.Group != group {
				continue
			}
			shape := ""
			if n.Round {
				shape = ", shape=ellipse"
			}
			label := quoteDOT(strings.Join(n.lines(), "\n"))
			fmt.Fprintf(&b, "%s%s [label=%s%s];\n", indent, quoteDOT(n.ID), label, shape)
		}

		if group != "" {
			b.WriteString("  }\n")
		}
	}

	for _, l := range g.Links {
		var with []string
		if l.Label != "" {
			with = append(with, "label="+quoteDOT(l.Label))
		}

		if l.dashed() {
			with = append(with, "style=dashed")
		}

		if l.Kind == Cancels {
			with = append(with, "color=red", "constraint=false")
		}

		fmt.Fprintf(&b, "  %s -> %s", quoteDOT(l.From), quoteDOT(l.To))
		if len(with) > 0 {
			fmt.Fprintf(&b, " [%s]", strings.Join(with, ", "))
		}

		b.WriteString(";\n")
	}
	return b.String() + "}\n"
}

// quoteDOT is a text as Graphviz reads it. Names need no quotes. (Source: "The DOT Language",
// Graphviz.)
func quoteDOT(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}

// Mermaid is the graph as a flowchart of Mermaid, which Markdown files can contain. Nodes get
// ids of their own (n1, n2), since Mermaid's ids allow few characters.
func (g Graph) Mermaid() string {
	var b strings.Builder
	b.WriteString("flowchart LR\n")
	ids := map[string]string{}
	for i, n := range g.Nodes {
		ids[n.ID] = fmt.Sprintf("n%d", i+1)
	}

	for i, group := range g.groups() {
		indent := "  "
		if group != "" {
			fmt.Fprintf(&b, "  subgraph g%d [%s]\n", i+1, quoteMermaid(group))
			indent = "    "
		}

		for _, n := range g.Nodes {
			if n.Group != group {
				continue
			}
			form := "%s%s[%s]\n"
			if n.Round {
				form = "%s%s([%s])\n"
			}
			fmt.Fprintf(&b, form, indent, ids[n.ID], quoteMermaid(n.lines()...))
		}

		if group != "" {
			b.WriteString("  end\n")
		}
	}

	for _, l := range g.Links {
		if ids[l.From] == "" || ids[l.To] == "" {
			continue
		}

		arrow, label := "-->", ""
		if l.dashed() {
			arrow = "-.->"
		}

		if l.Label != "" {
			label = "|" + quoteMermaid(l.Label) + "|"
		}

		fmt.Fprintf(&b, "  %s %s%s %s\n", ids[l.From], arrow, label, ids[l.To])
	}
	return b.String()
}

// quoteMermaid is lines of text as Mermaid reads them. Mermaid has entities that begin with #
// instead of &. It changes the lines that it is given.
func quoteMermaid(lines ...string) string {
	escape := strings.NewReplacer("&", "#amp;", `"`, "#quot;", "<", "#lt;", ">", "#gt;", "#",
		"#35;")
	for i, s := range lines {
		lines[i] = escape.Replace(s)
	}
	return `"` + strings.Join(lines, "<br>") + `"`
}
