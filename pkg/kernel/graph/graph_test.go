package graph_test

import (
	"encoding/xml"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"archivist/pkg/kernel/graph"
)

var update = flag.Bool("update", false, "write the golden files")

// sample has every kind of node and link.
func sample() graph.Graph {
	g := graph.Graph{Name: `Tasks of "maps" <1>`, Nodes: []graph.Node{
		{ID: "1:COMMIT", Label: "COMMIT", State: "succeeded", Group: "revision 1", Round: true},
		{ID: "1:index", Label: "index", State: "running", Group: "revision 1"},
		{ID: "2:COMMIT", Label: "COMMIT", State: "succeeded", Group: "revision 2", Round: true},
		{ID: "2:index", Label: "index", Note: "lock disk", State: "blocked", Group: "revision 2"},
		{ID: "2:report", Label: "a report whose name is long & has <signs>", State: "unknown", Group: "revision 2"},
	}, Links: []graph.Link{
		{From: "1:COMMIT", To: "1:index", Kind: graph.Then},
		{From: "1:COMMIT", To: "2:COMMIT", Kind: graph.Then},
		{From: "2:COMMIT", To: "2:index", Kind: graph.Then},
		{From: "2:index", To: "1:index", Kind: graph.Cancels, Label: "cancels"},
		{From: "2:index", To: "2:report", Kind: graph.Then, Label: "if failed"},
		{From: "1:COMMIT", To: "2:report", Kind: graph.Absent, Label: "never"},
	}}
	return g
}

// TestGolden: pictures are as they were looked at. After a change run it with -update, and look at them.
func TestGolden(t *testing.T) {
	g := sample()
	for name, got := range map[string]string{"sample.dot": g.DOT(), "sample.mmd": g.Mermaid(), "sample.svg": g.SVG()} {
		file := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(file); err != nil || string(want) != got {
			t.Errorf("%s: %v; got\n%s", name, err, got)
		}
	}
}

// TestAdd: what is in both is there once, as it was first.
func TestAdd(t *testing.T) {
	g := sample()
	other := sample()
	other.Nodes[1].State = "failed"
	other.Nodes = append(other.Nodes, graph.Node{ID: "3", Label: "3"})
	other.Links = append(other.Links, graph.Link{From: "2:index", To: "3", Kind: graph.Then})
	g.Add(other)
	if len(g.Nodes) != 6 || len(g.Links) != 7 || g.Nodes[1].State != "running" {
		t.Errorf("%+v", g)
	}
}

// picture are the parts of an SVG that have places.
type picture struct {
	rects  []rect
	texts  []rect
	labels []rect   // what is written beside links, and the names of groups
	links  [][]rect // points on the way of each link, without size
}

type rect struct{ x, y, w, h int }

// look reads a picture as browsers do, and fails if it is not well-formed.
func look(t *testing.T, svg string) (p picture, whole rect) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(svg))
	var open []rect
	onLabel, anchor := false, ""
	for {
		token, err := d.Token()
		if err == io.EOF {
			return p, whole
		}
		if err != nil {
			t.Fatalf("%s\n%s", err, svg)
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			if data, isText := token.(xml.CharData); isText && len(open) > 0 {
				r := open[0]
				r.w = len([]rune(string(data))) * 7 // the letters of the font have 7 or 8
				open = nil
				if !onLabel {
					p.texts = append(p.texts, r)
					continue
				}
				if anchor == "middle" {
					r.x -= r.w / 2
				}
				p.labels = append(p.labels, rect{r.x, r.y - 9, r.w, 11})
			}
			continue
		}
		at := map[string]int{}
		class, way := "", ""
		for _, a := range start.Attr {
			at[a.Name.Local], _ = strconv.Atoi(a.Value)
			switch a.Name.Local {
			case "class":
				class = a.Value
			case "d":
				way = a.Value
			case "text-anchor":
				anchor = a.Value
			}
		}
		r := rect{at["x"], at["y"], at["width"], at["height"]}
		switch {
		case start.Name.Local == "svg":
			whole = r
		case start.Name.Local == "rect" && strings.HasPrefix(class, "ag-box"):
			p.rects = append(p.rects, r)
		case start.Name.Local == "path" && strings.HasPrefix(class, "ag-link"):
			p.links = append(p.links, pointsOf(t, way))
		case start.Name.Local == "text":
			open, onLabel = []rect{r}, strings.Contains(class, "ag-label")
		}
	}
}

// pointsOf are points on the path of a link, of lines and cubic Bézier curves.
func pointsOf(t *testing.T, way string) (all []rect) {
	t.Helper()
	at := [2]float64{}
	for _, part := range regexp.MustCompile(`[MLHC][^MLHC]*`).FindAllString(way, -1) {
		var n []float64
		for text := range strings.FieldsSeq(part[1:]) {
			x, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatal(err)
			}
			n = append(n, x)
		}
		switch part[0] {
		case 'M':
			at = [2]float64{n[0], n[1]}
			continue
		case 'H':
			n = []float64{n[0], at[1]}
		}
		if len(n) == 2 { // a line is a curve, too
			n = []float64{at[0], at[1], n[0], n[1], n[0], n[1]}
		}
		for i := range 41 {
			u := float64(i) / 40
			v := 1 - u
			of := func(k int) int {
				return int(v*v*v*at[k] + 3*v*v*u*n[k] + 3*v*u*u*n[2+k] + u*u*u*n[4+k])
			}
			all = append(all, rect{of(0), of(1), 0, 0})
		}
		at = [2]float64{n[4], n[5]}
	}
	return all
}

// TestPicture: whatever the graph, boxes are in the picture, do not cover each other, and have all of
// their text. No link runs behind a box, and what is written beside one covers neither a box nor a text.
func TestPicture(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		g := graph.Graph{Name: "any"}
		n := 1 + rnd.IntN(25)
		for i := range n {
			g.Nodes = append(g.Nodes, graph.Node{ID: fmt.Sprint(i), Label: strings.Repeat("ü", 1+rnd.IntN(30)),
				Group: []string{"", "a", "b"}[rnd.IntN(3)], State: []string{"", "running", "skipped"}[rnd.IntN(3)]})
		}
		for range rnd.IntN(3 * n) { // cycles too, and links to nodes that there are not
			g.Links = append(g.Links, graph.Link{From: fmt.Sprint(rnd.IntN(n + 1)), To: fmt.Sprint(rnd.IntN(n + 1)),
				Kind: []graph.Kind{graph.Then, graph.Cancels, graph.Absent}[rnd.IntN(3)], Label: "x"})
		}
		svg := g.SVG()
		if svg != g.SVG() {
			t.Fatal("not the same twice")
		}
		p, whole := look(t, svg)
		if len(p.rects) != n {
			t.Errorf("seed %d: %d boxes of %d", seed, len(p.rects), n)
		}
		for i, r := range p.rects {
			if !inside(whole, r) {
				t.Errorf("seed %d: %v is not in %v", seed, r, whole)
			}
			for _, other := range p.rects[:i] {
				if covers(r, other) {
					t.Errorf("seed %d: %v covers %v", seed, r, other)
				}
			}
		}
		p.free(t, seed, whole)
		for _, text := range p.texts {
			holds := text.x+text.w <= whole.w
			for _, r := range p.rects {
				if text.x >= r.x && text.x < r.x+r.w && text.y > r.y && text.y < r.y+r.h {
					holds = inside(r, text)
				}
			}
			if !holds {
				t.Errorf("seed %d: a text at %v is cut", seed, text)
			}
		}
	}
}

// inside reports whether a part is within another one; covers, whether two of them overlap.
func inside(in, r rect) bool {
	return r.x >= in.x && r.y >= in.y && r.x+r.w <= in.x+in.w && r.y+r.h <= in.y+in.h
}

func covers(a, b rect) bool {
	return a.x < b.x+b.w && b.x < a.x+a.w && a.y < b.y+b.h && b.y < a.y+a.h
}

// free fails if a link runs behind a box, or a label covers something.
func (p picture) free(t *testing.T, seed uint64, whole rect) {
	t.Helper()
	for _, link := range p.links {
		for _, at := range link {
			for _, r := range p.rects {
				if covers(rect{r.x + 2, r.y + 2, r.w - 4, r.h - 4}, rect{at.x, at.y, 1, 1}) {
					t.Fatalf("seed %d: a link runs behind the box %v at %v", seed, r, at)
				}
			}
			if !inside(whole, at) {
				t.Fatalf("seed %d: a link leaves the picture at %v", seed, at)
			}
		}
	}
	for i, label := range p.labels {
		for _, other := range slices.Concat(p.rects, p.labels[:i]) {
			if covers(label, other) {
				t.Errorf("seed %d: the label %v covers %v", seed, label, other)
			}
		}
		if !inside(whole, label) {
			t.Errorf("seed %d: the label %v is cut", seed, label)
		}
	}
}

// TestAccessible: those who do not see the picture, or its colours, know the same.
func TestAccessible(t *testing.T) {
	svg := sample().SVG()
	ids := regexp.MustCompile(`aria-labelledby="(\S+) (\S+)"`).FindStringSubmatch(svg)
	if len(ids) != 3 || !strings.Contains(svg, `<title id="`+ids[1]+`">`) ||
		!strings.Contains(svg, `<desc id="`+ids[2]+`">`) {
		t.Error(ids)
	}
	for _, want := range []string{`role="img"`, "prefers-color-scheme:dark",
		"index (revision 2) cancels index (revision 1).",
		"index (revision 2) is blocked.",
		"a report whose name is long &amp; has &lt;signs&gt; (revision 2) waits for index",
		">running</text>", "needs that COMMIT (revision 1) is not there."} {
		if !strings.Contains(svg, want) {
			t.Errorf("%s is not in\n%s", want, svg)
		}
	}
	pictures := map[string]bool{}
	for _, state := range []string{"blocked", "awaiting", "ready", "dispatched", "running", "retry-wait", "succeeded",
		"failed", "cancelled", "superseded", "skipped"} {
		one := graph.Graph{Nodes: []graph.Node{{ID: "a", Label: "a", State: state}}}
		icon := regexp.MustCompile(`class="ag-icon[^>]* d="([^"]+)"`).FindStringSubmatch(one.SVG())
		if icon == nil || pictures[icon[1]] {
			t.Errorf("%s has no picture of its own", state)
			continue
		}
		pictures[icon[1]] = true
	}
}

// TestInline: in a page, the picture has links and no styles of its own, and no text becomes an element or an address.
func TestInline(t *testing.T) {
	g := sample()
	g.Nodes[0].ID = `x" onload="evil()`
	svg := g.Inline(func(id string) string {
		if id == "1:index" {
			return ""
		}
		return "./task?id=" + id
	})
	look(t, svg)
	if strings.Contains(svg, "<style") || strings.Contains(svg, ` onload="`) || strings.Contains(svg, `role="img"`) ||
		strings.Count(svg, "<a href=") != len(g.Nodes)-1 {
		t.Error(svg)
	}
}
