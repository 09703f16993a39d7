package docs

import (
	"context"
	"encoding/xml"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// screens is the picture of a session with the demo: what two terminals show. "-on demo -update" records it anew.
const screens = "docs/images/session.svg"

// shown are the commands of its second terminal. One that begins with "until" is run, and not shown: a person takes
// longer than the component for which it waits.
var shown = []string{
	"dist/archivist submit localstack/sample/files/ebooks \\\n" +
		"  -c texts --new-collection --local-id cicero \\\n" +
		`  --what "Lorem ipsum in five formats" --watch`,
	"ARK=$(dist/archivist object list -c texts | cut -f1)",
	"until dist/archivist component item show version:$ARK/v1 | grep Format_identified; do sleep 1; done",
	"dist/archivist component item show version:$ARK/v1 --timeline",
}

// window is a terminal as it is drawn. Its lines have the styles that the programs printed.
type window struct {
	name  string
	lines []string
}

// record follows the session in the demo that was started, and compares or draws what it shows.
func (r *reader) record(t *testing.T, ctx context.Context) {
	inColour := slices.DeleteFunc(slices.Clone(r.env), func(v string) bool { return strings.HasPrefix(v, "NO_COLOR=") })
	shell := newSession(t, ctx, r.home, inColour)
	shell.styled = true
	preserved := r.started[:max(0, slices.Index(r.started, ""))]
	now := []window{
		{startDemo, slices.Concat(typed(startDemo), preserved, []string{more})},
		{"another terminal", nil},
	}
	for _, text := range shown {
		output := r.try(t, shell, command{text: text})
		if r.status != 0 {
			t.Fatalf("%s: exit status %d:\n%s", text, r.status, strings.Join(output, "\n"))
		}
		if !strings.HasPrefix(text, "until ") {
			now[1].lines = slices.Concat(now[1].lines, typed(text), output)
		}
	}
	if *update {
		write(t, draw(now))
		return
	}
	for i, w := range windows(t) {
		at := block{document: screens, line: i + 1}
		compare(t, at, command{text: w.name, want: plain(w.lines)}, plain(now[i].lines))
	}
}

// TestScreens: the picture is well-formed, its commands are those that are followed, and it is drawn as the code does.
func TestScreens(t *testing.T) {
	all := windows(t)
	if len(all) != 2 {
		t.Fatalf("%s has %d windows", screens, len(all))
	}
	var commands []string
	for _, c := range (block{language: "console", lines: plain(all[1].lines)}).commands() {
		commands = append(commands, c.text)
	}
	want := slices.DeleteFunc(slices.Clone(shown), func(c string) bool { return strings.HasPrefix(c, "until ") })
	if !slices.Equal(commands, want) {
		t.Errorf("%s shows the commands %q, expected %q", screens, commands, want)
	}
	drawn := draw(all)
	if *update {
		write(t, drawn)
	}
	if drawn != read(t, filepath.Join(root, screens)) {
		t.Errorf("%s is drawn otherwise now: go test ./test/docs -run TestScreens -update", screens)
	}
}

func write(t *testing.T, picture string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(root, screens), []byte(picture), 0o644); err != nil {
		t.Fatal(err)
	}
}

// plain are lines without styles.
func plain(lines []string) (out []string) {
	for _, line := range lines {
		out = append(out, styles.ReplaceAllString(line, ""))
	}
	return out
}

// Sizes in pixels: a character, a line, the bar of a window, the space at its sides, and that between windows.
const (
	cell        = 7.8
	row         = 18
	bar         = 30
	side, space = 16, 12
)

// draw draws windows one below the other. Each line is given its width, because fonts differ.
func draw(windows []window) string {
	columns := 0
	for _, w := range windows {
		for _, line := range plain(w.lines) {
			columns = max(columns, utf8.RuneCountInString(line))
		}
	}
	width, top := int(float64(columns)*cell)+2*side, 1
	var body strings.Builder
	for _, w := range windows {
		height := bar + row*len(w.lines) + side
		fmt.Fprintf(&body, "<g transform=\"translate(1 %d)\">\n<rect width=\"%d\" height=\"%d\" rx=\"8\"/>\n"+
			"<path d=\"M0 %d H%d\"/>\n<text class=\"name\" x=\"%d\" y=\"20\">%s</text>\n<g xml:space=\"preserve\">\n",
			top, width, height, bar, width, side, html.EscapeString(w.name))
		for i, line := range w.lines {
			fmt.Fprintf(&body, "<text x=\"%d\" y=\"%d\" textLength=\"%.1f\">%s</text>\n", side, bar+row*(i+1)+3,
				cell*float64(utf8.RuneCountInString(styles.ReplaceAllString(line, ""))),
				style.ReplaceAllString(html.EscapeString(line), `<tspan class="s$1">$2</tspan>`))
		}
		body.WriteString("</g>\n</g>\n")
		top += height + space
	}
	return fmt.Sprintf(head, width+2, top-space+1) + body.String() + "</svg>\n"
}

var (
	style   = regexp.MustCompile("\x1b\\[([0-9]+)m(.*?)\x1b\\[0m")
	ofStyle = regexp.MustCompile(`<tspan class="s([0-9]+)">(.*?)</tspan>`)
)

// windows reads the picture.
func windows(t *testing.T) (out []window) {
	t.Helper()
	var picture struct {
		Windows []struct {
			Name  string `xml:"text"`
			Lines []struct {
				Text string `xml:",innerxml"`
			} `xml:"g>text"`
		} `xml:"g"`
	}
	if err := xml.Unmarshal([]byte(read(t, filepath.Join(root, screens))), &picture); err != nil {
		t.Fatalf("%s: %v", screens, err)
	}
	for _, w := range picture.Windows {
		var lines []string
		for _, line := range w.Lines {
			lines = append(lines, html.UnescapeString(ofStyle.ReplaceAllString(line.Text, "\x1b[${1}m$2\x1b[0m")))
		}
		out = append(out, window{w.Name, lines})
	}
	return out
}

// head is the beginning of the picture. It is dark on light and dark pages, as many terminals are. The styles have the
// numbers of the codes (ECMA-48, SGR).
const head = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]d %[2]d" width="%[1]d" height="%[2]d" role="img" aria-labelledby="title desc">
<title id="title">Archivist in two terminals</title>
<desc id="desc">In the first terminal, make demo lists seven sample objects that it has preserved. In the second, the manifest of a text in five formats is submitted, and its batch is completed. Then the timeline of the stored version shows two events: record created it, and the component format-identification identified the formats of its files.</desc>
<style>
rect { fill: #161b22; stroke: #6e7681 }
path { stroke: #484f58 }
text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", "Liberation Mono", monospace; fill: #e6edf3; white-space: pre }
.name { fill: #b1bac4 }
.s1 { fill: #ffffff; font-weight: 600 }
.s31 { fill: #ff7b72 }
.s32 { fill: #56d364 }
.s33 { fill: #e3b341 }
.s34 { fill: #79c0ff }
</style>
`
