package console_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	v1 "archivist/pkg/api/v1"
)

// picture is the picture of a page, "" if there is none.
func picture(page string) string {
	_, after, _ := strings.Cut(page, `<svg xmlns`)
	svg, _, _ := strings.Cut(after, "</svg>")
	return svg
}

// inOrder reports whether texts are in another one, in this order.
func inOrder(in string, texts ...string) bool {
	for _, t := range texts {
		_, after, there := strings.Cut(in, t)
		if !there {
			return false
		}
		in = after
	}
	return true
}

// TestStandsBefore: the page of a job that waits shows who stands before it: as a picture, from
// what stops the gate to the job, with links, and as a list that says the same; the same table
// gives the same picture.
func TestStandsBefore(t *testing.T) {
	w := begin(t, true)
	_, err := call(w, "/v1/queue/actions", v1.Action{Action: "pause", Reason: evil})
	w.must(err)
	var ids []string
	for range 8 {
		ids = append(ids, w.submit(w.file("sample", "here.txt", "content"), v1.Pending).ID)
	}
	slices.Sort(ids)
	_, page := w.browser().get("jobs/" + ids[7])
	svg := picture(page)
	var want []string
	for _, id := range ids[:5] {
		want = append(want, `/jobs/`+id+`"`)
	}
	all := append([]string{"queue paused", "gate", "pending"}, want...)
	if !inOrder(svg, append(all, "+ 2 more", "this job")...) {
		t.Errorf("the picture is %s", svg)
	}
	for _, says := range []string{"<title id=", "<desc id=", "Who stands before job " + ids[7],
		"In line for the gate pending: queue paused. 1: Job " + ids[0] + " is Pending. 2: Job " + ids[1],
		". 2 more. At the end: this job, which is Pending."} {
		if !strings.Contains(svg, says) {
			t.Errorf("the picture does not say %q: %s", says, svg)
		}
	}
	_, list, _ := strings.Cut(page, `<ol class="before"`)
	if !inOrder(list, append(want, "2 more", "this job", "</ol>")...) ||
		!strings.Contains(page, "In line for <bdi>the gate pending</bdi>: <strong>queue paused</strong>") {
		t.Errorf("the list is %.2000s", list)
	}
	if _, again := w.browser().get("jobs/" + ids[7]); picture(again) != svg {
		t.Error("it is drawn otherwise the second time")
	}

	_, page = w.browser().get("jobs/" + ids[0])
	if svg := picture(page); !inOrder(svg, "queue paused", "gate", "this job") || strings.Contains(svg, "href") ||
		!strings.Contains(page, "It is the first: no other is before it.") {
		t.Errorf("the picture of the first is %s", svg)
	}
}

// TestStandsBeforeDepositors: a depositor sees no line in which jobs of other collections stand.
func TestStandsBeforeDepositors(t *testing.T) {
	w := begin(t, false)
	w.adminOf(w.as("alma"))
	_, err := call(w, "/v1/queue/actions", v1.Action{Action: "pause", Reason: "So that jobs wait"})
	w.must(err)
	others := w.submit(w.file("sample", "here.txt", "content"), v1.Pending)
	own := w.submit(w.file("letters", "one.txt", "content"), v1.Pending)
	asked := w.submit(w.file("letters", "two.txt", "content"), v1.Pending)
	lena := w.as("lena")
	if _, page := lena.get("jobs/" + asked.ID); strings.Contains(page, others.ID) ||
		strings.Contains(page, others.Batch) || picture(page) != "" || strings.Contains(page, own.ID) {
		t.Errorf("lena sees %s", page)
	}
	w.submit(w.file("sample", "later.txt", "content"), v1.Pending) // one that is behind them says nothing
}

// TestStandsAtALock: the page of a job that waits for another one shows who has the object, and who
// is next. The queue has that line, the first at each gate, and the limits.
func TestStandsAtALock(t *testing.T) {
	w := begin(t, true)
	files, release := w.web.Hosts[sourceHost], make(chan struct{})
	t.Cleanup(func() { close(release) })
	w.web.Hosts[sourceHost] = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow.txt" && r.Method == http.MethodGet {
			select {
			case <-release:
			case <-r.Context().Done():
			}
		}
		files.ServeHTTP(rw, r)
	})
	of := func(name string) v1.BatchRequest {
		in := w.file("sample", name, "content of "+name)
		size := int64(len("content of " + name))
		in.Identifiers, in.Payload.Size = &v1.Identifiers{Local: []string{"the same"}}, &size
		return in
	}
	holder := w.submit(of("slow.txt"), v1.Downloading)
	second, third := w.submit(of("b.txt"), v1.Provisioning), w.submit(of("c.txt"), v1.Provisioning)

	_, page := w.browser().get("jobs/" + third.ID)
	svg := picture(page)
	for what, text := range map[string]string{"picture": svg, "page": page} {
		if !inOrder(text, "lock", "the same", holder.ID, "has the lock", second.ID, "this job") ||
			strings.Contains(text, "waits for lock") {
			t.Errorf("the %s is %s", what, text)
		}
	}
	if !strings.Contains(page, `<ol class="before"`) || strings.Contains(svg, "more") {
		t.Errorf("the page is %s", page)
	}

	_, page = w.browser().get("queue")
	_, after, _ := strings.Cut(page, `id="gates"`)
	if !inOrder(after, second.ID, "works on the same object", "provisioning, number 2", third.ID,
		"works on the same object", `id="locks"`, "the same", holder.ID, v1.Downloading, second.ID, third.ID,
		`id="limits"`, "Jobs at once",
		v1.Downloading+" 1", "Jobs of one collection at once", "sample</a> 1", "Work space",
		holder.ID) {
		t.Errorf("the queue is %s", page)
	}
}
