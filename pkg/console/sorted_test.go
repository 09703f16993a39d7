package console_test

import (
	"html"
	"slices"
	"strings"
	"testing"

	v1 "archivist/pkg/api/v1"
)

// sortedList is what a test sees of a list that can be sorted.
type sortedList struct {
	ids   []string
	heads map[string]string
	aria  map[string]string // aria-sort by the text of the heading
	next  string
	page  string
	calls int64
}

// sortedAt reads a list.
func (b *browser) sortedAt(path string) (l sortedList) {
	b.Helper()
	l.heads, l.aria = map[string]string{}, map[string]string{}
	calls := b.TableCalls("api")
	resp, page := b.get(path)
	l.calls, l.page = int64(calls()), page
	if resp.StatusCode != 200 {
		b.Errorf("%s: %d", path, resp.StatusCode)
	}
	list, _, _ := strings.Cut(path, "?")
	for n := range parsed(b.T, page).Descendants() {
		switch {
		case n.Data == "a" && attr(n, "class") == "id" && n.Parent.Data == "td":
			l.ids = append(l.ids, n.FirstChild.Data)
		case attr(n, "rel") == "next":
			l.next = list + attr(n, "href")
		case n.Data == "a" && n.Parent.Data == "th":
			l.heads[n.FirstChild.Data] = list + attr(n, "href")
		}
		if at := attr(n, "aria-sort"); at != "" {
			l.aria[n.FirstChild.FirstChild.Data] = at
		}
	}
	return l
}

// refreshed is in a page that asks for what has changed.
const refreshed = `hx-trigger="every`

// TestSortedLists: the headings of lists sort them and turn them around, the address keeps it
// over all pages, and jobs are selected from such a list as from any. It stays as it is until it
// is loaded again, since it costs more. More than 1,000 are listed by age, which the page says. A
// depositor sorts the own ones only.
func TestSortedLists(t *testing.T) {
	w := begin(t, false)
	w.adminOf(w.as("alma"))
	_, err := call(w, "/v1/queue/actions", v1.Action{Action: "pause", Reason: "So that jobs wait"})
	w.must(err)
	large := w.submit(w.many(801), v1.Pending)
	w.until("all jobs are there", func() bool {
		b, err := w.api.Batch(t.Context(), large.Batch)
		w.must(err)
		return b.Counts.Processing == 801
	})
	var titled []string
	for _, name := range []string{"c.txt", "A.txt", "b.txt"} {
		titled = append(titled, w.submit(w.file("letters", name, name), v1.Pending).ID)
	}
	up := []string{titled[1], titled[2], titled[0]}
	down := slices.Clone(up)
	slices.Reverse(down)

	op := w.as("alma")
	l := op.sortedAt("jobs?collection=letters")
	if l.aria["Job"] != v1.Descending || len(l.aria) != 1 || len(l.heads) != 5 ||
		!strings.Contains(l.page, refreshed) || strings.Contains(l.page, "load it again") {
		t.Fatalf("by age: %v %v\n%s", l.aria, l.heads, l.page)
	}
	for _, want := range []struct {
		aria string
		ids  []string
	}{{v1.Ascending, up}, {v1.Descending, down}, {v1.Ascending, up}} {
		path := l.heads["Object"]
		l = op.sortedAt(path)
		if !slices.Equal(l.ids, want.ids) || l.aria["Object"] != want.aria || len(l.aria) != 1 ||
			l.calls > 10 ||
			!strings.Contains(l.page, "archivist job list -c letters --sort title") ||
			!strings.Contains(l.page, "by title, "+want.aria) ||
			strings.Contains(l.page, refreshed) || !strings.Contains(l.page, "load it again") ||
			!strings.Contains(l.page, `name="back" value="`+html.EscapeString(path)) {
			t.Errorf("%s: %v, %v, %d calls, expected %v\n%s", path, l.ids, l.aria, l.calls, want,
				l.page)
		}
	}
	form := formAt(t, l.page, "selected")
	form["job"] = l.ids[:2]
	form.Set("action", "prioritize")
	form.Set("priority", "3")
	form.Set("reason", "They are urgent")
	form.Set("step", "preview")
	if resp, page := op.post("selected", form); resp.StatusCode != 200 || !strings.Contains(page,
		up[1]) ||
		strings.Contains(page, up[2]) {
		t.Errorf("selected from a sorted list: %d\n%s", resp.StatusCode, page)
	}

	manySorted(op, large.Batch, titled)
	lena := w.as("lena")
	if l := lena.sortedAt("jobs?sort=title&order=descending"); !slices.Equal(l.ids, down) {
		t.Errorf("of a depositor: %v\n%s", l.ids, l.page)
	}
	if resp, _ := lena.get("jobs?sort=title&collection=sample"); resp.StatusCode != 404 {
		t.Errorf("of another collection: %d", resp.StatusCode)
	}
}

// manySorted fails if what is too much to be sorted is not listed by age, or what is not is not sorted.
// large is a batch with too many jobs, titled are the last ones that were submitted.
func manySorted(op *browser, large string, titled []string) {
	t := op.T
	t.Helper()
	const tooMany = "Not sorted: <bdi>more than 400 jobs match"
	l := op.sortedAt("jobs?sort=title")
	if !strings.Contains(l.page, tooMany) || l.aria["Job"] == "" || len(l.ids) != 50 ||
		l.ids[0] != titled[2] ||
		strings.Contains(l.next, "sort=") || l.calls > 10 {
		t.Errorf("too many: %v %v %s, %d calls\n%s", l.ids, l.aria, l.next, l.calls, l.page)
	}
	t.Logf("too many to be sorted: %d calls", l.calls)
	l = op.sortedAt("jobs?sort=title&batch=" + large)
	if !strings.Contains(l.page, "the batch has 801 jobs, and at most 800 can be sorted") ||
		len(l.ids) != 100 || l.ids[0] != large+"-00001" {
		t.Errorf("too many in a batch: %v\n%s", l.ids, l.page)
	}
	l = op.sortedAt("jobs?sort=title&order=oldest&batch=" + strings.Split(titled[0], "-")[0])
	if len(l.ids) != 1 || l.aria["Object"] != v1.Ascending {
		t.Errorf("in a batch: %v %v", l.ids, l.aria)
	}
	l = op.sortedAt("batches?sort=jobs")
	if len(l.ids) != 4 || l.ids[0] != large || l.aria["Jobs"] != v1.Descending ||
		strings.Contains(l.page, refreshed) ||
		l.calls > 10 {
		t.Errorf("batches: %v %v %d\n%s", l.ids, l.aria, l.calls, l.page)
	}
	for path, says := range map[string]string{"jobs?callback=failed": "callback", "batches?ark=x": "ark",
		"batches?callback=failed": "callback", "jobs?message=a&batch=" + large: "message",
		"jobs?order=oldest&batch=" + large: "ascending, descending"} {
		if resp, page := op.get(path); resp.StatusCode != 422 || !strings.Contains(page, says) ||
			strings.Contains(page, `name="job"`) {
			t.Errorf("%s: %d\n%s", path, resp.StatusCode, page)
		}
	}
	if resp, page := op.get("batches?sort=space"); resp.StatusCode != 422 ||
		!strings.Contains(page, "expected one of state, since, jobs, failed, bytes, submitter") {
		t.Errorf("what batches do not have: %d\n%s", resp.StatusCode, page)
	}
}
