package graph

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
)

// style has the colours, light and dark. What a state is, is also in words and in the form of its
// picture. Names begin with ag-, because a page that contains the picture has styles of its own.
const style = `<style>
.ag-text{font:13px ui-monospace,"DejaVu Sans Mono",Menlo,Consolas,monospace;fill:#1f2328}
.ag-note{fill:#57606a}
.ag-label{font-size:12px;fill:#57606a;stroke:#ffffff;stroke-width:4px;paint-order:stroke}
.ag-lane{fill:#f6f8fa;stroke:#d0d7de}
.ag-box{fill:#ffffff;stroke:#57606a;stroke-width:1.5px}
.ag-link{fill:none;stroke:#57606a;stroke-width:1.5px}
.ag-tip{fill:#57606a}
.ag-dashed{stroke-dasharray:6 4}
.ag-cancels{stroke:#cf222e}
.ag-cancelstip,.ag-cancelslabel{fill:#cf222e}
.ag-icon{fill:none;stroke-width:2px;stroke:#57606a}
.ag-good{stroke:#1a7f37}
.ag-bad{stroke:#cf222e}
.ag-busy{stroke:#0969da}
.ag-wait{stroke:#9a6700}
.ag-back{fill:#ffffff}
@media (prefers-color-scheme:dark){
.ag-text{fill:#e6edf3}
.ag-note{fill:#9ea7b3}
.ag-label{fill:#9ea7b3;stroke:#0d1117}
.ag-lane{fill:#161b22;stroke:#30363d}
.ag-box{fill:#0d1117;stroke:#8b949e}
.ag-link{stroke:#8b949e}
.ag-tip{fill:#8b949e}
.ag-cancels{stroke:#ff7b72}
.ag-cancelstip{fill:#ff7b72}
.ag-icon{stroke:#8b949e}
.ag-good{stroke:#3fb950}
.ag-bad{stroke:#ff7b72}
.ag-busy{stroke:#58a6ff}
.ag-wait{stroke:#d29922}
.ag-back{fill:#0d1117}
}
</style>
`

// look is how a state is shown.
type look struct{ class, icon string }

// looks by state, those of package workflow. The pictures are 12 by 12.
var looks = map[string]look{
	"blocked":    {"ag-wait", "M4 2v8M8 2v8"},                            // a pause
	"manual":     {"ag-wait", "M6 1a2 2 0 1 0 .01 0zM2 11q0-5 4-5t4 5z"}, // a person
	"awaiting":   {"ag-wait", "M2 1h8M2 11h8M3 1l6 10M9 1l-6 10"},        // an hourglass
	"ready":      {"ag-wait", "M6 1a5 5 0 1 0 .01 0z"},                   // a ring
	"dispatched": {"ag-busy", "M1 6h9M6 2l4 4l-4 4"},                     // an arrow
	"running":    {"ag-busy", "M3 1l7 5l-7 5z"},                          // play
	"retry-wait": {"ag-wait", "M10 6a4 4 0 1 1-1.5-3.1M9 0v3h-3"},        // again
	"succeeded":  {"ag-good", "M1 6l4 4l6-8"},                            // a tick
	"failed":     {"ag-bad", "M2 2l8 8M10 2l-8 8"},                       // a cross
	"cancelled":  {"ag-bad", "M2 2h8v8h-8z"},                             // stop
	"superseded": {"", "M1 2l4 4l-4 4M6 2l4 4l-4 4"},                     // forward
	"skipped":    {"", "M1 8q5-8 9 0M10 3v5h-5"},                         // a jump
	"invalid":    {"ag-bad", "M6 1v6M6 9.5v1.5"},                         // an exclamation mark
	"":           {"", ""},
}

// SVG is the graph as a picture that needs nothing else. Its title and description say what
// it shows to those who do not see it. It has no script and nothing from elsewhere. Several
// of them can be in one page: their ids differ, as long as their graphs do.
func (g Graph) SVG() string { return g.picture(nil) }

// Inline is the picture as a part of a page that has its own styles for the classes: SVG has them otherwise. A node
// leads to the address that the function has for its id, or with "" to none.
func (g Graph) Inline(address func(id string) string) string { return g.picture(address) }

// picture is the graph as a picture; address is nil if it stands for itself.
func (g Graph) picture(address func(id string) string) string {
	l := g.lay()
	sum := fnv.New32a()
	sum.Write([]byte(g.DOT()))
	id := fmt.Sprintf("ag-%08x", sum.Sum32()) // unique among the pictures of a page
	var b strings.Builder
	role, alone := "img", address == nil
	if !alone {
		role = "group" // a picture has no links
	}
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" role="%s" `+
		`aria-labelledby="%s-t %s-d" width="%d" height="%d" `+
		`viewBox="0 0 %d %d">`+"\n", role, id, id, l.width, l.height, l.width, l.height)
	fmt.Fprintf(&b, "<title id=\"%s-t\">%s</title>\n<desc id=\"%s-d\">%s</desc>\n", id,
		escape(g.Name), id,
		escape(cmp.Or(g.Says, g.said())))

	// The order is that of painting: lanes, links, boxes above them, and labels on top.
	if alone {
		b.WriteString(style)
	}
	for _, tip := range []string{"tip", "cancelstip"} {
		fmt.Fprintf(&b, `<marker id="%s-%s" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" `+
			`orient="auto"><path class="ag-%s" d="M0 0L10 5L0 10z"/></marker>`+"\n", id, tip, tip)
	}

	if alone {
		fmt.Fprintf(&b, `<rect class="ag-back" width="%d" height="%d"/>`+"\n", l.width, l.height)
	}
	for _, in := range l.lanes {
		if in.name == "" {
			continue
		}
		fmt.Fprintf(&b, `<rect class="ag-lane" x="%d" y="%d" width="%d" height="%d" rx="6"/>`+
			"\n", margin, in.y, l.width-2*margin, in.h)
	}

	for _, r := range l.routes {
		l.draw(&b, r, id)
	}

	for _, box := range l.boxes {
		if box.node != nil {
			box.drawLinked(&b, address)
		}
	}

	for _, r := range l.routes {
		r.drawLabel(&b)
	}
	for _, in := range l.lanes {
		if in.name != "" { // above the links that come from another lane
			fmt.Fprintf(&b, `<text class="ag-text ag-label" x="%d" y="%d">%s</text>`+"\n",
				margin+padX, in.y+row, escape(in.name))
		}
	}
	return b.String() + "</svg>\n"
}

// said is the graph in words. Of a large one only the numbers are. A description of more than
// fifty links is too long to be read aloud.
func (g Graph) said() string {
	out := fmt.Sprintf("%d nodes, %d links.", len(g.Nodes), len(g.Links))
	if len(g.Links) > 50 {
		return out
	}

	names := map[string]string{}
	for _, n := range g.Nodes {
		names[n.ID] = n.Label
		if n.Group != "" {
			names[n.ID] += " (" + n.Group + ")"
		}
		if n.State != "" {
			out += fmt.Sprintf(" %s is %s.", names[n.ID], n.State)
		}
	}

	for _, l := range g.Links {
		switch from, to := names[l.From], names[l.To]; l.Kind {
		case Cancels:
			out += fmt.Sprintf(" %s cancels %s.", from, to)
		case Absent:
			out += fmt.Sprintf(" %s needs that %s is not there.", to, from)
		default:
			out += fmt.Sprintf(" %s waits for %s.", to, from)
		}
	}
	return out
}

// escape is a text in XML, without characters that XML does not have. (Source: Extensible
// Markup Language 1.0, section 2.2.) A character that is not there becomes a space, a byte
// that is not UTF-8 the replacement character.
func escape(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0xfffe || r == 0xffff {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;").Replace(s)
}

// drawLinked draws a node, and lets it lead to its address.
func (b *box) drawLinked(out *strings.Builder, address func(id string) string) {
	to := ""
	if address != nil {
		to = address(b.node.ID)
	}
	if to == "" {
		b.draw(out)
		return
	}
	fmt.Fprintf(out, `<a href="%s">`, escape(to))
	b.draw(out)
	out.WriteString("</a>")
}

// draw draws a node. The state is the last of its lines, behind its picture.
func (b *box) draw(to *strings.Builder) {
	n := b.node
	look := looks[n.State]
	round := 6
	if n.Round {
		round = b.h / 2
	}

	classes := "ag-box " + look.class
	if slices.Contains([]string{"blocked", "superseded", "skipped"}, n.State) {
		classes += " ag-dashed"
	}

	fmt.Fprintf(to, `<g><title>%s</title><rect class="%s" x="%d" y="%d" width="%d" height="%d" rx="%d"/>`,
		escape(strings.Join(n.lines(), ", ")), strings.TrimSpace(classes), b.x, b.y, b.w, b.h, round)

	for i, line := range n.lines() {
		class, x, y := "ag-text", b.x+padX, b.y+padY+(i+1)*row-5
		if i > 0 {
			class += " ag-note"
		}

		if n.State != "" && i == len(n.lines())-1 {
			if look.icon == "" {
				look.icon = "M3 6h6" // of a word that is no known state
			}
			fmt.Fprintf(to, `<path class="%s" transform="translate(%d %d)" d="%s"/>`,
				strings.TrimSpace("ag-icon "+look.class), x, y-11, look.icon)
			x += icon
		}

		fmt.Fprintf(to, `<text class="%s" x="%d" y="%d">%s</text>`, class, x, y, escape(line))
	}

	to.WriteString("</g>\n")
}

// draw draws a link.
func (l *laid) draw(to *strings.Builder, r *route, id string) {
	class, tip := "ag-link", "tip"
	if r.link.dashed() {
		class += " ag-dashed"
	}
	if r.link.Kind == Cancels {
		class, tip = class+" ag-cancels", "cancelstip"
	}
	fmt.Fprintf(to, `<path class="%s" marker-end="url(#%s-%s)" d="%s"/>`+"\n", class, id, tip,
		l.path(r))
}

// path is the way of a link: from the right of a box to the left of the next. Behind the detours of a column, each part
// is a cubic Bézier curve whose ends are level. A link of a node to itself is a small loop above it.
func (l *laid) path(r *route) string {
	from, to := r.boxes[0], r.boxes[len(r.boxes)-1]
	switch {
	case from == to:
		x, y := from.x+from.w/2, from.y
		return fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x-14, y, x-20, y-18, x+20, y-18, x+14, y)
	case r.detours():
		way := "M"
		for i, p := range r.detour {
			if i > 0 {
				way += "L"
			}
			way += fmt.Sprintf("%d %d", p.x, p.y)
		}
		return way
	}

	way := fmt.Sprintf("M%d %d", from.x+from.w, from.middle())
	for i := 1; i < len(r.boxes); i++ {
		a, b := r.boxes[i-1], r.boxes[i]
		x1, x2 := a.x+a.w, b.x
		if zone := l.zones[a.layer+1]; zone > 0 {
			x1 += zone
			way += fmt.Sprintf("H%d", x1)
		}
		bend := (x2 - x1) / 2
		way += fmt.Sprintf("C%d %d %d %d %d %d", x1+bend, a.middle(), x2-bend, b.middle(), x2,
			b.middle())
		if b.node == nil {
			way += fmt.Sprintf("H%d", b.x+b.w)
		}
	}
	return way
}

// drawLabel writes what a link says.
func (r *route) drawLabel(to *strings.Builder) {
	if r.link.Label == "" {
		return
	}
	anchor, class := "middle", ""
	if r.detours() {
		anchor = "start"
	}
	if r.link.Kind == Cancels {
		class = " ag-cancelslabel"
	}
	fmt.Fprintf(to, `<text class="ag-text ag-label%s" text-anchor="%s" x="%d" y="%d">%s</text>`+
		"\n", class, anchor, r.label.x, r.label.y, escape(r.link.Label))
}
