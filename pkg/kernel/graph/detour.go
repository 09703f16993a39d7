package graph

import (
	"cmp"
	"slices"
)

// track is the distance between detours beside each other; beside is that of a label from a line.
const (
	track  = 12
	beside = 6
)

// widthOfZones is how wide the detours are behind each of n columns, with their labels; the first is before all.
func (l *laid) widthOfZones(n int) []int {
	tracks, texts, zones := make([]int, n+1), make([]int, n+1), make([]int, n+1)
	for _, r := range l.routes {
		if !r.detours() {
			continue
		}
		out, in := r.ways()
		if r.boxes[0] == r.boxes[1] { // its label is above the box, and can reach beyond it
			texts[out+1] = max(texts[out+1], width(r.link.Label))
			continue
		}
		tracks[out+1]++
		if in != out {
			tracks[in+1]++
		}
		if r.link.Label != "" {
			texts[out+1] = max(texts[out+1], width(r.link.Label)+2*beside)
		}
	}
	for i := range zones {
		if tracks[i]+texts[i] > 0 {
			zones[i] = (tracks[i]+1)*track + texts[i]
		}
	}
	return zones
}

// detours finds the ways of links that go around boxes. Each has a track of its own between columns, and between lanes.
func (l *laid) detours() {
	used, strips := make([]int, len(l.zones)), make([]int, len(l.lanes)+1)
	ends := map[*box]int{} // links at the right of a box, which have a height each
	next := func(way int) int {
		used[way+1]++
		return l.starts[way+1] + used[way+1]*track
	}
	right := func(b *box) point {
		ends[b]++
		return point{b.x + b.w, b.middle() + min(b.h/2-3, 4+5*ends[b])}
	}

	for _, r := range l.routes {
		from, to := r.boxes[0], r.boxes[len(r.boxes)-1]
		if !r.detours() || from == to {
			continue
		}
		out, in := r.ways()
		a := right(from)
		b := point{to.x, to.middle()}
		if r.link.Kind == Cancels {
			b = right(to)
		}
		x := next(out)
		r.detour = []point{a, {x, a.y}}
		if in == out {
			r.detour = append(r.detour, point{x, b.y}, b)
			continue
		}
		strip := max(from.lane, to.lane) // the way above this lane; below the last one if both are in one
		if from.lane == to.lane {
			strip++
		}
		y := l.above(strip) + 3*(strips[strip]%4)
		strips[strip]++
		x2 := next(in)
		r.detour = append(r.detour, point{x, y}, point{x2, y}, point{x2, b.y}, b)
	}
}

// above is the height of the way above a lane, or below the last one.
func (l *laid) above(strip int) int {
	if strip < len(l.lanes) {
		return l.lanes[strip].y - margin + 3
	}
	last := l.lanes[len(l.lanes)-1]
	return last.y + last.h + 3
}

// labels finds where what links say is written: beside a detour, and in the middle of the last part of another link.
// Labels between the same columns are below each other.
func (l *laid) labels() {
	type place struct {
		column int
		detour bool
	}
	all := map[place][]*route{}
	for _, r := range l.routes {
		if r.link.Label == "" {
			continue
		}
		a, b := r.boxes[len(r.boxes)-2], r.boxes[len(r.boxes)-1]
		at := place{b.layer, r.detours()}
		switch {
		case a == b:
			r.label = point{a.x + a.w/2 + 24, a.y - beside}
			continue
		case r.detours():
			out, _ := r.ways()
			at.column = out
			texts := a.x + a.w + l.zones[out+1]
			r.label = point{texts, (r.detour[1].y + r.detour[2].y) / 2}
		default:
			r.label = point{(a.x + a.w + l.zones[a.layer+1] + b.x) / 2,
				(a.middle()+b.middle())/2 - 4}
		}
		all[at] = append(all[at], r)
	}

	for at, routes := range all {
		wide, last := 0, 0
		for _, r := range routes {
			wide = max(wide, width(r.link.Label))
		}
		slices.SortStableFunc(routes, func(a, b *route) int {
			return cmp.Compare(a.label.y,
				b.label.y)
		})
		for i, r := range routes {
			if at.detour {
				r.label.x -= wide + beside
			}
			if i > 0 {
				r.label.y = max(r.label.y, last+row-3)
			}
			last = r.label.y
			l.height = max(l.height, last+margin)
		}
	}
}
