package console_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	v1 "archivist/pkg/api/v1"
)

// TestOrderOfJobs: the address of a list keeps its order; an unknown one is refused with those
// that there are, and so is a cursor of another one.
func TestOrderOfJobs(t *testing.T) {
	w := begin(t, true)
	_, err := call(w, "/v1/queue/actions", v1.Action{Action: "pause", Reason: "So that jobs wait"})
	w.must(err)
	w.submit(w.many(120), v1.Pending)
	b := w.browser()
	jobsAt := func(path string) (ids []string, next string) {
		t.Helper()
		resp, page := b.get(path)
		if resp.StatusCode != 200 {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
		for n := range parsed(t, page).Descendants() {
			if attr(n, "name") == "job" {
				ids = append(ids, attr(n, "value"))
			}
			if attr(n, "rel") == "next" {
				next = "jobs" + attr(n, "href")
			}
		}
		return ids, next
	}
	read := func(path string) (all []string) {
		t.Helper()
		for path != "" {
			var ids []string
			ids, path = jobsAt(path)
			all = append(all, ids...)
		}
		return all
	}
	var newest []string
	w.until("all jobs are there", func() bool {
		newest = read("jobs")
		return len(newest) == 120
	})
	oldest := read("jobs?order=oldest")
	slices.Reverse(oldest)
	if !slices.Equal(oldest, newest) {
		t.Errorf("%d jobs, %d of them the oldest first, not turned around", len(newest),
			len(oldest))
	}
	_, next := jobsAt("jobs?order=oldest")
	if resp, page := b.get(strings.Replace(next, "order=oldest", "order=newest",
		1)); resp.StatusCode != 422 ||
		!strings.Contains(page, "invalid cursor") {
		t.Errorf("a cursor of the other order: %d", resp.StatusCode)
	}
	for _, path := range []string{"jobs?order=size", "batches?order=size"} {
		if resp, page := b.get(path); resp.StatusCode != 422 || !strings.Contains(page,
			"newest, oldest") {
			t.Errorf("%s: %d\n%s", path, resp.StatusCode, page)
		}
	}
}

// TestCountsOfJobs: the list of jobs has a place for the counts by state, which the browser takes
// from the page that counts them; without a script it leads there. With a collection, only its
// jobs are counted.
func TestCountsOfJobs(t *testing.T) {
	w := begin(t, true)
	_, err := call(w, "/v1/queue/actions", v1.Action{Action: "pause", Reason: "So that jobs wait"})
	w.must(err)
	w.submit(w.file("sample", "a.txt", "a"), v1.Pending)
	w.submit(w.file("letters", "b.txt", "b"), v1.Pending)
	b := w.browser()
	for path, want := range map[string]string{"jobs": "2", "jobs?collection=letters": "1",
		"jobs?collection=nobody": "0"} {
		list := b.countsOn(t, path)
		if !regexp.MustCompile(`Pending(</a>)? <b>`+want+`</b>`).MatchString(list) ||
			strings.Contains(list, "state=Pending") != (want != "0") {
			t.Errorf("%s: the counts are\n%s", path, list)
		}
	}
}

// countsOn are the counts by state that a browser adds to a list.
func (b *browser) countsOn(t *testing.T, path string) string {
	t.Helper()
	_, page := b.get(path)
	to := ""
	for n := range parsed(t, page).Descendants() {
		if attr(n, "hx-trigger") == "load" && attr(n, "hx-select") == "#by-state" {
			to = attr(n, "hx-get")
		}
	}
	if to == "" || !strings.Contains(page, `<a href="`+html.EscapeString(to)+`">`) {
		t.Fatalf("%s has no place for counts:\n%s", path, page)
	}
	_, counts := b.get(strings.TrimPrefix(to, "./"))
	_, list, _ := strings.Cut(counts, `id="by-state"`)
	list, _, _ = strings.Cut(list, "</ul>")
	return list
}

// TestCountsOfBatches: the list of batches has a place for the counts by state, as that of jobs has.
// Each leads to the list of just these. With a collection, only its batches are counted, and a
// depositor gets those of the own collection.
func TestCountsOfBatches(t *testing.T) {
	w := begin(t, false)
	w.adminOf(w.as("alma"))
	_, err := call(w, "/v1/queue/actions", v1.Action{Action: "pause", Reason: "So that jobs wait"})
	w.must(err)
	w.submit(w.file("letters", "a.txt", "a"), v1.Pending)
	w.submit(w.file("sample", "b.txt", "b"), v1.Pending)
	w.submit(w.file("sample", "c.txt", "c"), v1.Pending)
	for _, c := range []struct{ user, path, says string }{
		{"vera", "batches", `"./batches?state=Processing">Processing</a> <b>3<`},
		{"vera", "batches?collection=sample&state=Failed",
			`"./batches?collection=sample&amp;state=Processing">Processing</a> <b>2<`},
		{"vera", "batches?collection=nobody", `<li>Processing <b>0<`},
		{"lena", "batches", `"./batches?collection=letters&amp;state=Processing">Processing</a> <b>1<`},
		{"duo", "batches", `"./batches?collection=letters&amp;state=Processing">Processing</a> <b>1<`},
		{"duo", "batches?collection=sample", `collection=sample&amp;state=Processing">Processing</a> <b>2<`},
	} {
		list := w.as(c.user).countsOn(t, c.path)
		for _, says := range []string{c.says, "<li>Failed <b>0<", "not counted: those that are completed"} {
			if !strings.Contains(list, says) {
				t.Errorf("%s, %s: %q is not in\n%s", c.user, c.path, says, list)
			}
		}
	}
	if resp, _ := w.as("lena").get("batch-counts?collection=sample"); resp.StatusCode != 404 {
		t.Errorf("another collection: %d", resp.StatusCode)
	}
}

// TestCountsByBatch: jobs are counted by batch, too, each with a link to just these; a depositor
// gets the counts of the own collections, and of no others.
func TestCountsByBatch(t *testing.T) {
	w := begin(t, false)
	w.adminOf(w.as("alma"))
	_, err := call(w, "/v1/queue/actions", v1.Action{Action: "pause", Reason: "So that jobs wait"})
	w.must(err)
	mine := w.submit(w.file("letters", "a.txt", "a"), v1.Pending)
	many := w.submit(w.many(3), v1.Pending)
	count := func(path string, by *browser) (batches []string, page string) {
		t.Helper()
		resp, page := by.get(path)
		if resp.StatusCode != 200 {
			t.Fatalf("%s: %d", path, resp.StatusCode)
		}
		links := regexp.MustCompile(`jobs\?batch=(\w+)&amp;state=Pending">(\d)<`)
		for _, one := range links.FindAllStringSubmatch(page, -1) {
			batches = append(batches, one[1]+" "+one[2])
		}
		return batches, page
	}
	all := []string{many.Batch + " 3", mine.Batch + " 1"}
	w.until("all wait", func() bool {
		n, err := w.api.JobCounts(t.Context(), v1.CountOf{Batches: true})
		return err == nil && len(n.Batches) == 2 && n.All[0].Jobs == 4
	})
	if got, page := count("job-counts?by=batch", w.as("vera")); !slices.Equal(got, all) ||
		!strings.Contains(page, "archivist job counts --batches --quick") {
		t.Errorf("counted %q:\n%s", got, page)
	}
	if got, _ := count("job-counts?by=batch&collection=letters", w.as("vera")); !slices.Equal(got, all[1:]) {
		t.Errorf("of a collection: %q", got)
	}
	lena := w.as("lena")
	if got, page := count("job-counts?by=batch", lena); !slices.Equal(got, all[1:]) ||
		strings.Contains(page, many.Collection) {
		t.Errorf("a depositor: %q\n%s", got, page)
	}
	if resp, _ := lena.get("job-counts?collection=" + many.Collection); resp.StatusCode != 404 {
		t.Errorf("another collection: %d", resp.StatusCode)
	}
}
