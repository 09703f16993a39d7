package console_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"html"
	"regexp"
	"strings"
	"testing"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/console"
)

// TestLongOutput: the page of a task begins with the newest output, and leads back to the first line and forward to
// the last; each page is small.
func TestLongOutput(t *testing.T) {
	w := beginWith(t, true, revisionQueue)
	const lines = 30_000
	w.book(fmt.Sprintf(`[{name: count, command: 'seq 1 %d'}]`, lines))
	b := w.browser()
	const at = "task?id=book/1/count"
	leads := func(page, says string) string {
		found := regexp.MustCompile(`<a href="([^"]*)#output">` + says + `<`).FindStringSubmatch(page)
		if found == nil {
			return ""
		}
		return "task" + html.UnescapeString(found[1])
	}
	// read follows a link as far as it leads, and returns the output of all these pages.
	read := func(path, says string, join func(all, more string) string) (all string, pages int) {
		for path != "" {
			_, page := b.get(path)
			_, text, _ := strings.Cut(page, `<pre dir="auto">`)
			text, _, _ = strings.Cut(text, "</pre>")
			all = join(all, html.UnescapeString(regexp.MustCompile("<[^>]*>").ReplaceAllString(text, "")))
			var small bytes.Buffer
			z := gzip.NewWriter(&small)
			_, _ = z.Write([]byte(page))
			_ = z.Close()
			path, pages = leads(page, says), pages+1
			if small.Len() > 100_000 || pages > 20 {
				t.Fatalf("page %d has %d bytes", pages, small.Len())
			}
		}
		return all, pages
	}
	var want strings.Builder
	for n := range lines {
		fmt.Fprintln(&want, n+1)
	}

	_, page := b.get(at)
	if !strings.Contains(page, fmt.Sprint(lines-1, "\n", lines, "\n")) ||
		!strings.Contains(page, `class="wide log tail"`) || leads(page, "The newest output") != "" {
		t.Errorf("the page does not begin with the newest output:\n%s", page)
	}
	back, pages := read(at, "Earlier output", func(all, more string) string { return more + all })
	if back != want.String() || pages < 3 {
		t.Errorf("backwards: %d bytes on %d pages", len(back), pages)
	}
	_, earlier := b.get(leads(page, "Earlier output"))
	fileOfEvents(t, b, earlier)
	begin := leads(page, "From the beginning")
	forth, _ := read(begin, "Later output", func(all, more string) string { return all + more })
	if forth != want.String() || !strings.Contains(begin, "attempt=1&") {
		t.Errorf("forwards from %s: %d bytes", begin, len(forth))
	}
	_, page = b.get(begin)
	if leads(page, "The newest output") == "" || strings.Contains(page, "log tail") {
		t.Errorf("the first page does not lead to the newest output")
	}
}

// fileOfEvents fails if a page of a task does not lead to its events as a file.
func fileOfEvents(t *testing.T, b *browser, page string) {
	t.Helper()
	at := regexp.MustCompile(`href="\./([^"]*history.json[^"]*)"`).FindStringSubmatch(page)
	if at == nil {
		t.Fatalf("no file of events:\n%s", page)
	}
	if resp, text := b.get(html.UnescapeString(at[1])); resp.StatusCode != 200 {
		t.Errorf("%s: %d %s", at[1], resp.StatusCode, text)
	}
}

// TestLaterOutput: a page of output leads to what follows, unless the attempt has ended there: an answer of the API
// can end after a few characters, e.g. if a program writes a word now and then.
func TestLaterOutput(t *testing.T) {
	few, many := []v1.TaskLogPart{{Text: "a"}}, make([]v1.TaskLogPart, 3)
	for i := range many {
		many[i].Text = strings.Repeat("a", 40_000)
	}
	for want, log := range map[string]v1.TaskLog{
		"from=000009":   {Parts: few, Next: "000009"},
		"from=000001.2": {Parts: many, Next: "000009", Ended: true},
		"":              {Parts: few, Next: "000009", Ended: true},
	} {
		if is := console.LaterOutput(log, "000001"); is != want {
			t.Errorf("%q, want %q", is, want)
		}
	}
	if is := console.LaterOutput(v1.TaskLog{Next: "000009"}, "000009"); is != "" {
		t.Errorf("behind the end: %q", is)
	}
}
