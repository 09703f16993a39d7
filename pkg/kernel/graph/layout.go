package graph

import (
	"cmp"
	"slices"
	"strings"
)

// lay finds the places of all: columns by the longest way along what waits, lanes by group, and
// in each the order with few crossings (source: Sugiyama, Tagawa and Toda, Methods for Visual
// Understanding of Hierarchical System Structures, 1981).
//
// The order and the heights depend on each other, so both are found anew four times. There is no
// promise of the fewest crossings.
func (g Graph) lay() *laid {
	l := &laid{}
	by := map[string]*box{}
	groups := g.groups()
	for i := range g.Nodes {
		n := &g.Nodes[i]
		if by[n.ID] != nil {
			continue
		}
		b := &box{node: n, lane: slices.Index(groups, n.Group)}
		b.w, b.h = n.size()
		by[n.ID] = b
		l.boxes = append(l.boxes, b)
	}

	l.columns(g, by)
	for _, link := range g.Links {
		if by[link.From] != nil && by[link.To] != nil {
			l.route(link, by[link.From], by[link.To])
		}
	}

	for _, name := range groups {
		l.lanes = append(l.lanes, lane{name: name})
	}

	l.across()
	for range 4 {
		l.down()
		l.order()
	}

	l.down()
	l.detours()
	l.labels()
	return l
}

// size is that of a node's box: all of its text fits.
func (n *Node) size() (w, h int) {
	for _, s := range n.lines() {
		w = max(w, width(s))
	}
	if n.State != "" {
		w = max(w, width(n.State)+icon)
	}
	return w + 2*padX, len(n.lines())*row + 2*padY
}

// columns puts each node behind all that it waits for. A cycle, which nothing should have, ends
// the search. A link that cancels does not say what is first, and is left out. Without one, there
// are at most as many rounds as nodes.
func (l *laid) columns(g Graph, by map[string]*box) {
	for range g.Nodes {
		changed := false
		for _, link := range g.Links {
			from, to := by[link.From], by[link.To]
			if link.Kind == Cancels || from == nil || to == nil || from == to ||
				to.layer > from.layer ||
				from.layer >= len(l.boxes)-1 {
				continue
			}
			to.layer, changed = from.layer+1, true
		}

		if !changed {
			break
		}
	}
	l.near(g, by)
}

// near moves nodes that wait for nothing to the right, next to the first that waits for them;
// those that are only cancelled go to the column of what cancels them. Without that, all of
// them would stand in the first column, with long links.
func (l *laid) near(g Graph, by map[string]*box) {
	waits, column := map[*box]bool{}, map[*box]int{}
	for _, link := range g.Links {
		from, to := by[link.From], by[link.To]
		if from == nil || to == nil {
			continue
		}
		if link.Kind != Cancels {
			waits[to] = true
			if c, known := column[from]; !known || to.layer-1 < c {
				column[from] = to.layer - 1
			}
		}
	}

	for _, link := range g.Links {
		from, to := by[link.From], by[link.To]
		if link.Kind != Cancels || from == nil || to == nil {
			continue
		}
		if _, known := column[to]; !known {
			column[to] = from.layer
		}
	}

	for _, b := range l.boxes {
		if !waits[b] {
			b.layer = max(0, column[b])
		}
	}
}

// route finds the columns that a link passes. One that does not go to the right has no places in them.
func (l *laid) route(link Link, from, to *box) {
	loop := func(r *route) bool { return from == to && r.boxes[0] == from && r.boxes[1] == from }
	if i := slices.IndexFunc(l.routes, loop); i >= 0 { // one is drawn, and says what all of them say
		if first := &l.routes[i].link; link.Label != "" {
			first.Label = strings.TrimPrefix(first.Label+", "+link.Label, ", ")
		}
		return
	}

	r := &route{link: link, boxes: []*box{from}}
	last, detours := from, link.Kind == Cancels || to.layer <= from.layer
	for layer := from.layer + 1; layer < to.layer && !detours; layer++ {
		pass := &box{layer: layer, lane: to.lane, h: thread}
		l.boxes = append(l.boxes, pass)
		last.to, pass.from = append(last.to, pass), append(pass.from, last)
		r.boxes, last = append(r.boxes, pass), pass
	}

	r.boxes = append(r.boxes, to)
	if !detours {
		last.to, to.from = append(last.to, to), append(to.from, last)
	}

	l.routes = append(l.routes, r)
}

// across sets how far right everything is. A column is as wide as its widest box; the gap
// before it has room for the labels of links that end there.
func (l *laid) across() {
	var widths, gaps []int // of columns, and before them
	for _, b := range l.boxes {
		for len(widths) <= b.layer {
			widths, gaps = append(widths, 0), append(gaps, least)
		}
		widths[b.layer] = max(widths[b.layer], b.w)
	}

	for _, r := range l.routes {
		if at := r.boxes[len(r.boxes)-1].layer; !r.detours() {
			gaps[at] = max(gaps[at], width(r.link.Label)+2*padX)
		}
	}

	l.zones, l.starts = l.widthOfZones(len(widths)), []int{margin}
	x := 2*margin + l.zones[0]
	for layer, w := range widths {
		if layer > 0 {
			x += gaps[layer] + l.zones[layer]
		}
		for _, b := range l.boxes {
			if b.layer == layer {
				b.x = x
				b.w = w // boxes of a column have one width
			}
		}
		x += w
		l.starts = append(l.starts, x)
	}

	l.width = x + l.zones[len(widths)] + 2*margin
	for _, name := range l.lanes {
		l.width = max(l.width, width(name.name)+4*margin)
	}
}

// cells are the boxes of each lane and column, in order. The keys are lane and layer.
func (l *laid) cells() map[[2]int][]*box {
	cells := map[[2]int][]*box{}
	for _, b := range l.boxes {
		at := [2]int{b.lane, b.layer}
		cells[at] = append(cells[at], b)
	}
	return cells
}

// down sets how far down everything is. A lane is as high as its highest column; the boxes of
// the others are in the middle.
func (l *laid) down() {
	tall := make([]int, len(l.lanes))
	cells := l.cells()
	height := func(boxes []*box) int {
		h := -between
		for _, b := range boxes {
			h += b.h + between
		}
		return h
	}

	for at, boxes := range cells {
		tall[at[0]] = max(tall[at[0]], height(boxes))
	}

	y := margin
	for i := range l.lanes {
		l.lanes[i].y, l.lanes[i].h = y, tall[i]+2*margin
		if l.lanes[i].name != "" {
			l.lanes[i].h += heading
		}
		y += l.lanes[i].h + margin
	}

	l.height = y
	for at, boxes := range cells {
		in := l.lanes[at[0]]
		y := in.y + in.h - margin - tall[at[0]] + (tall[at[0]]-height(boxes))/2
		for _, b := range boxes {
			b.y = y
			y += b.h + between
		}
	}
}

// order puts boxes near to what they are linked with. The weight of a box is the mean height
// of its neighbours (the barycentre of the source above). The sort is stable, so that equal
// ones keep the order of the graph.
func (l *laid) order() {
	for _, b := range l.boxes {
		sum, n := 0, 0
		for _, other := range append(slices.Clone(b.from), b.to...) {
			sum += other.middle()
			n++
		}
		b.weight = b.middle()
		if n > 0 {
			b.weight = sum / n
		}
	}
	slices.SortStableFunc(l.boxes, func(a, b *box) int {
		return cmp.Or(cmp.Compare(a.lane, b.lane), cmp.Compare(a.layer, b.layer),
			cmp.Compare(a.weight, b.weight))
	})
}
