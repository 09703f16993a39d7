package test

import (
	"flag"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "draw the picture of the wings again")

// TestWingsPicture: the picture of docs/develop.md shows the wings, their packages, and which is above which.
func TestWingsPicture(t *testing.T) {
	const path = "../docs/images/wings.svg"
	drawn := drawWings(t)
	if *update {
		if err := os.WriteFile(path, []byte(drawn), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil || string(have) != drawn {
		t.Errorf("%s is not that of the table; go test ./test -run Wings -update draws it (%v)", path, err)
	}
}

// packagesOf are the packages of a wing, by their paths in it; that of the wing's own folder is "".
func packagesOf(t *testing.T, wing string) (names []string) {
	t.Helper()
	for _, pattern := range []string{"", "*/", "*/*/"} {
		found, err := filepath.Glob("../pkg/" + wing + "/" + pattern + "*.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range found {
			dir, _ := filepath.Rel("../pkg/"+wing, filepath.Dir(file))
			dir = filepath.ToSlash(dir)
			if wingOf("pkg/"+wing+"/"+dir) == wing && !strings.HasSuffix(dir, "test") && dir != "." {
				names = append(names, dir)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Sizes of the picture, in pixels.
const (
	pictureWidth = 960
	lineHeight   = 17
	gap          = 12
	letter       = 6.6 // width of one, on average
)

// drawWings draws the wings as boxes: those that import others above them.
func drawWings(t *testing.T) string {
	rows, rank := [][]int{}, map[string]int{}
	for i, w := range wings {
		at := 0
		for _, below := range strings.Fields(w.imports) {
			at = max(at, rank[below]+1)
		}
		rank[w.folder] = at
		for len(rows) <= at {
			rows = append(rows, nil)
		}
		rows[at] = append(rows[at], i)
	}
	slices.Reverse(rows)

	var boxes strings.Builder
	y := gap
	for _, row := range rows {
		width := (pictureWidth - gap*(len(row)+1)) / len(row)
		height, drawn := 0, make([]string, len(row))
		for i, at := range row {
			x, lines := gap+i*(width+gap), 0
			drawn[i], lines = drawWing(t, at, x, y, width)
			height = max(height, lineHeight*(lines+2))
		}
		for i := range row {
			x := gap + i*(width+gap)
			fmt.Fprintf(&boxes, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"6\"/>\n%s", x, y, width,
				height, drawn[i])
		}
		y += height + gap
	}
	return fmt.Sprintf(frame, pictureWidth, y, pictureWidth, y) + boxes.String() + "</svg>\n"
}

// drawWing draws the text of a wing's box, and returns how many lines are below its name.
func drawWing(t *testing.T, at, x, y, width int) (drawn string, lines int) {
	y += 20
	drawn = fmt.Sprintf("<text x=\"%d\" y=\"%d\" class=\"name\">pkg/%s</text>\n", x+gap, y, wings[at].folder)
	most := int(float64(width-2*gap) / letter)
	write := func(class, text string) {
		for _, line := range wrap(text, most) {
			lines++
			drawn += fmt.Sprintf("<text x=\"%d\" y=\"%d\" class=\"%s\">%s</text>\n", x+gap, y+lineHeight*lines, class,
				html.EscapeString(line))
		}
	}
	write("why", wings[at].why)
	write("package", strings.Join(packagesOf(t, wings[at].folder), " · "))
	return drawn, lines
}

// wrap breaks a text into lines of at most most letters, between words.
func wrap(text string, most int) (lines []string) {
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len([]rune(line))+1+len([]rune(word)) > most {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

const frame = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-labelledby="t d">
<title id="t">The wings of pkg</title>
<desc id="d">Each box is a wing with its packages. It imports only wings below it.</desc>
<style>
text { font: 12px system-ui, sans-serif; fill: #1f2328; }
.name { font-weight: 600; font-size: 14px; }
.package { fill: #57606a; }
rect { fill: #f6f8fa; stroke: #8c959f; }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3; }
.package { fill: #9da7b3; }
rect { fill: #161b22; stroke: #6e7681; }
}
</style>
`
