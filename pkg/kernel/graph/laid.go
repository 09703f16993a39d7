package graph

import "unicode/utf8"

// Sizes, in units of SVG. Letters of the font are at most 8 wide.
const (
	letter  = 8
	row     = 18 // of text
	padX    = 12
	padY    = 9
	icon    = 20 // room for the picture of a state
	between = 22 // nodes of a column
	least   = 60 // between columns
	thread  = 12 // height of a link that passes a column
	margin  = 16
	heading = 22 // of a group
)

// box is a node, or a place where a link passes a column. layer is its column, from 0 on the
// left; lane is the index of its group, from the top. x and y are those of its upper left
// corner. weight is where it should be in its column.
type box struct {
	node       *Node
	layer      int
	lane       int
	x, y, w, h int
	to, from   []*box // neighbours
	weight     int
}

// middle is the height of the middle.
func (b *box) middle() int { return b.y + b.h/2 }

// route is a link with the boxes that it goes through. boxes are its ends, and between them
// one place in each column that it passes. A link that does not go to the right has only its ends, and a detour.
type route struct {
	link   Link
	boxes  []*box
	detour []point
	label  point // the middle of the label's line of text; of a detour, its beginning
}

// laid is a graph with places. All numbers are whole, so that the same graph gives the same
// bytes on every machine.
type laid struct {
	boxes         []*box // of nodes and links
	routes        []*route
	lanes         []lane
	zones         []int // width of the detours before the first column, and behind each column
	starts        []int // where they begin
	width, height int
}

// lane has the nodes of a group.
type lane struct {
	name string
	y, h int
}

// width is the most that a text takes. Letters of some languages are twice as wide as those
// of others. From U+1100 (Hangul) on, a letter counts twice.
func width(s string) int {
	n := utf8.RuneCountInString(s)
	for _, r := range s {
		if r >= 0x1100 {
			n++
		}
	}
	return n * letter
}

// point is a place in the picture.
type point struct{ x, y int }

// detours reports whether a link does not simply go to the right: it goes around all boxes, by the ways between columns
// and between lanes, in which there are none. What cancels ends at the right of its target, what else depends in a
// circle at the left.
func (r *route) detours() bool {
	from, to := r.boxes[0], r.boxes[len(r.boxes)-1]
	return r.link.Kind == Cancels || to.layer <= from.layer
}

// ways are the columns behind which a detour leaves and arrives; -1 is before the first one.
func (r *route) ways() (out, in int) {
	from, to := r.boxes[0], r.boxes[len(r.boxes)-1]
	if r.link.Kind == Cancels {
		return from.layer, to.layer
	}
	return from.layer, to.layer - 1
}
