package console_test

import (
	"html"
	"net/http"
	"net/url"
	"strings"
	"testing"

	v1 "archivist/pkg/api/v1"
)

// TestFilters: a filter that is not accepted stays in its form, and what is wrong is said at its
// field, in words.
func TestFilters(t *testing.T) {
	b := begin(t, true).browser()
	long := strings.Repeat("x", 501)
	for at, want := range map[string]struct{ field, says string }{
		"jobs?after=2026-02-30&message=kept": {"after", `found "2026-02-30"; expected a time`},
		"jobs?localId=" + long: {"localId",
			"it is too long: at most 500 characters are possible"},
		"jobs?order=x":              {"order", "expected one of newest, oldest"},
		"jobs?state=Nope":           {"state", `found "Nope"; expected one of Pending`},
		"batches?before=yesterday":  {"before", "expected a time"},
		"objects?q=title:":          {"q", "there is no text here"},
		"objects?q=%22&date=1851":   {"q", "there is no second quotation mark"},
		"objects?localId=a&title=b": {"localId", "give its collection, too"},
		"objects?title=" + long:     {"title", "at most 200 characters"},
		"jobs?cursor=x":             {"", "invalid cursor"},
		"batches?cursor=x":          {"", "invalid cursor"},
		"objects?cursor=x":          {"", "invalid cursor"},
	} {
		resp, page := b.get(at)
		text := html.UnescapeString(page)
		if resp.StatusCode != 422 || !strings.Contains(text, want.says) ||
			strings.Contains(text, "validation failed") || strings.Contains(page, "hx-trigger=\"every") {
			t.Errorf("%.60s: %d\n%s", at, resp.StatusCode, page)
		}
		_, query, _ := strings.Cut(at, "?")
		typed, _ := url.ParseQuery(query)
		for n := range parsed(t, page).Descendants() {
			name := attr(n, "name")
			if strings.HasPrefix(attr(n, "id"), "f-") && n.Data == "input" && typed.Has(name) &&
				attr(n, "value") != typed.Get(name) {
				t.Errorf("%.60s: %s has %q", at, name, attr(n, "value"))
			}
			if id := attr(n, "id"); id != "" && strings.HasPrefix(id, "f-") &&
				(attr(n, "aria-describedby") == "wrong-"+name) != (name == want.field) {
				t.Errorf("%.60s: %s is described by %q", at, name, attr(n, "aria-describedby"))
			}
		}
	}
	job := b.submit(b.file("sample", "here.txt", "content"), v1.Completed)
	resp, page := b.get("jobs?state=Nope&batch=" + job.Batch)
	if resp.StatusCode != 422 || !strings.Contains(page, "expected one of Pending") {
		t.Errorf("of a batch: %d\n%s", resp.StatusCode, page)
	}
	if _, page := b.get("objects?format=%22x%22"); strings.Contains(page, "quotation mark") {
		t.Errorf("a format with marks is not a phrase:\n%s", page)
	}
}

// TestAddresses: what no thing can have as its name is an address without a page.
func TestAddresses(t *testing.T) {
	b := begin(t, true).browser()
	long := strings.Repeat("x", 600)
	for _, at := range []string{"objects/99999/x%2Fy", "objects/99999%2Fa/b",
		"objects/99999/x%2fy/premis", "objects/99999/" + long, "objects/99999/..", "jobs/",
		"jobs/" + long, "jobs/%ff", "jobs/%00", "batches/" + long, "collections/a%2Fb",
		"collections/%ff", "collections/%00", "collections/" + long, "operations/" + long,
		"doctor/" + long, "research/" + long, "research/a%2Fb", "components/" + long,
		"consumers/" + long, "consumers/%2e%2e", "replays/" + long,
		"archives/a/revisions/99999999999999999999", "archives/a/revisions/x",
		"assets/%ff"} {
		resp, page := b.get(at)
		if resp.StatusCode != 404 || strings.Contains(page, "console.invalid") ||
			strings.Contains(page, "validation") || strings.Contains(page, long) {
			t.Errorf("%.60s: %d\n%s", at, resp.StatusCode, page)
		}
	}
}

// TestAnew: a form that was sent is sent again with something else in it. Nothing is done, and it
// is said what was, and that this can be sent, too.
func TestAnew(t *testing.T) {
	w := begin(t, true)
	b := w.browser()
	w.files["/a.txt"] = "content"
	_, page := b.get("submit")
	form := formAt(t, page, "submit")
	form.Set("kind", "url")
	form.Set("collection", "sample")
	form.Set("url", "http://"+sourceHost+"/a.txt")
	form.Set("what", "First")
	form.Set("step", "do")
	resp, _ := b.post("submit", form)
	first := strings.TrimPrefix(resp.Request.URL.String(), home)
	form.Set("what", "Second")
	resp, page = b.post("submit", form)
	if resp.StatusCode != 422 || !strings.Contains(page, "This form was sent already") ||
		!strings.Contains(page, `href="./`+first+`"`) || strings.Contains(page, "Idempotency") ||
		!strings.HasPrefix(first, "batches/") {
		t.Errorf("%s: %d\n%s", first, resp.StatusCode, page)
	}
	next := formAt(t, page, "submit")
	if next.Get("what") != "Second" || next.Get("form") == form.Get("form") {
		t.Errorf("the form has %v", next)
	}
	next.Set("step", "do")
	resp, page = b.post("submit", next)
	second := strings.TrimPrefix(resp.Request.URL.String(), home)
	if second == first || !strings.HasPrefix(second, "batches/") {
		t.Errorf("sent again: %s\n%s", second, page)
	}

	job := w.submit(w.file("sample", "none.txt", ""), v1.Failed)
	act := url.Values{"target": {"job:" + job.ID}, "action": {"prioritize"}, "priority": {"7"},
		"reason": {"A first one"}, "step": {"do"}, "form": {formAt(t, page, "act").Get("form")}}
	resp, page = b.post("act", act)
	if resp.StatusCode != 200 {
		t.Fatalf("%d\n%s", resp.StatusCode, page)
	}
	act.Set("priority", "8")
	resp, page = b.post("act", act)
	if resp.StatusCode != 409 || !strings.Contains(page, "This form was sent already") ||
		!strings.Contains(page, `href="./jobs/`+job.ID+`"`) || strings.Contains(page, "api:") {
		t.Errorf("%d\n%s", resp.StatusCode, page)
	}
	again := formAt(t, page, "act")
	resp, page = b.post("act", again)
	if resp.StatusCode != 200 {
		t.Fatalf("%d\n%s", resp.StatusCode, page)
	}
	if is, err := w.api.Job(t.Context(), job.ID); err != nil || is.Priority != 8 {
		t.Errorf("%d, %v", is.Priority, err)
	}
}

// TestDone: what was done is said once, on the page to which it led. No link can claim it.
func TestDone(t *testing.T) {
	w := begin(t, true)
	b := w.browser()
	says := func(page string) bool { return strings.Contains(page, `<p class="done"`) }
	if _, page := b.get("queue?did=pause"); says(page) {
		t.Errorf("a link claims that something was done:\n%s", page)
	}
	_, page := b.get("queue")
	form := url.Values{"target": {"queue"}, "action": {"pause"}, "reason": {"A try"},
		"step": {"do"}, "form": {formAt(t, page, "act").Get("form")}}
	resp, _ := b.still().post("act", form)
	if to := resp.Header.Get("Location"); to != "./queue" {
		t.Fatalf("it leads to %q", to)
	}
	_, page = b.get("jobs") // another tab
	if says(page) {
		t.Errorf("another page says it:\n%s", page)
	}
	_, page = b.get("queue", "HX-Request", "true")
	if says(page) {
		t.Errorf("a part says it:\n%s", page)
	}
	_, page = b.get("queue")
	if !says(page) || !strings.Contains(page, "It is paused.") {
		t.Errorf("it is not said:\n%s", page)
	}
	_, page = b.get("queue")
	if says(page) {
		t.Errorf("it is said again:\n%s", page)
	}
}

// TestManyRefused: the form of an action on many jobs is shown again with what is wrong at its
// field, and is not offered where the filter names nothing by which the jobs are found.
func TestManyRefused(t *testing.T) {
	w := begin(t, true)
	b := w.browser()
	job := w.submit(w.file("sample", "none.txt", ""), v1.Failed)
	for at, offered := range map[string]bool{"jobs": false, "jobs?message=none": false,
		"jobs?state=Completed": false, "jobs?state=Failed": true, "jobs?collection=sample": true,
		"jobs?batch=" + job.Batch: true, "jobs?state=Failed&before=2100-01-01": false} {
		if _, page := b.get(at); strings.Contains(page, "/operations/new?") != offered {
			t.Errorf("%s offers it: %v", at, !offered)
		}
	}
	_, page := b.get("operations/new")
	form := formAt(t, page, "operations")
	form.Set("action", "prioritize")
	form.Set("message", "a message")
	form.Set("reason", "the reason")
	form.Set("priority", "12")
	for change, says := range map[string]string{
		"":                "expected a batch, a collection, or one of the states",
		"state=Completed": "prioritize acts on jobs",
		"priority=many":   "expected a number from 0 to 999",
		"until=never":     "expected a time in UTC",
	} {
		name, value, _ := strings.Cut(change, "=")
		sent := url.Values{}
		for n, values := range form {
			sent[n] = values
		}
		if name != "" {
			sent.Set("collection", "sample")
			sent.Set(name, value)
		}
		resp, page := b.post("operations", sent)
		at := "wrong-" + name
		if name == "" {
			at = "wrong-filter"
		}
		if resp.StatusCode != 422 || !strings.Contains(page, says) ||
			!strings.Contains(page, `id="`+at+`"`) ||
			!strings.Contains(page, `aria-describedby="`+at+`"`) ||
			!strings.Contains(page, "To correct: 1 field below.") {
			t.Errorf("%s: %d\n%s", change, resp.StatusCode, page)
		}
		for n, values := range formAt(t, page, "operations") {
			if n != "form" && n != "step" && values[0] != sent.Get(n) {
				t.Errorf("%s: %s has %q", change, n, values)
			}
		}
	}
}

// TestBack: after an action one can go on where one was: to the list with its filter, or to the
// thing whose state does not allow it.
func TestBack(t *testing.T) {
	w := begin(t, true)
	b := w.browser()
	job := w.submit(w.file("sample", "none.txt", ""), v1.Failed)
	w.reported(job)
	_, page := b.get("jobs?state=Failed&message=none")
	form := formAt(t, page, "selected")
	form.Set("job", job.ID)
	form.Set("action", "prioritize")
	form.Set("priority", "7")
	form.Set("reason", "A try")
	_, page = b.post("selected", form)
	sure := formAt(t, page, "selected")
	sure.Set("step", "do")
	resp, page := b.post("selected", sure)
	if at := resp.Request.URL.String(); at != home+"jobs?message=none&state=Failed" ||
		!strings.Contains(page, "Its priority was set.") {
		t.Errorf("it leads to %s\n%s", at, page)
	}
	for _, back := range []string{"//evil.example/", "https://evil.example", "../../x", "queue"} {
		form.Set("back", back)
		form.Set("form", formAt(t, page, "selected").Get("form"))
		_, preview := b.post("selected", form)
		if to := formAt(t, preview, "selected").Get("back"); to != "jobs" {
			t.Errorf("%s leads to %q", back, to)
		}
	}

	act := url.Values{"target": {"job:" + job.ID}, "action": {"release"}, "reason": {"A try"},
		"step": {"do"}, "form": {formAt(t, page, "selected").Get("form")}}
	resp, page = b.post("act", act)
	if resp.StatusCode != 409 || !strings.Contains(page, `href="./jobs/`+job.ID+`"`) {
		t.Errorf("%d\n%s", resp.StatusCode, page)
	}
}

// TestEmpty: a page on which nothing is yet leads to what one can do, if one may do it.
func TestEmpty(t *testing.T) {
	w := begin(t, false)
	for at, do := range map[string]string{"": `href="./submit">Submit something`,
		"batches": `href="./submit">Submit something`, "jobs": `href="./submit">Submit something`,
		"objects":     `href="./submit">Submit something`,
		"collections": `href="./submit">Submit something`,
		"job-counts":  `href="./submit">Submit something`,
		"operations":  `href="./jobs">jobs</a>`, "doctor": `href="#do">Begin one`} {
		for _, user := range []string{"alma", "vera"} {
			if _, page := w.signed(user).get(at); strings.Contains(page, do) != (user == "alma") {
				t.Errorf("%s: %s is led on: %v", at, user, user != "alma")
			}
		}
	}
}

// TestForeign: a form of another site is refused with advice that helps.
func TestForeign(t *testing.T) {
	b := begin(t, true).browser()
	resp, page := b.post("act", url.Values{}, "Sec-Fetch-Site", "cross-site")
	if resp.StatusCode != http.StatusForbidden || strings.Contains(page, "administrator") ||
		!strings.Contains(page, "open the page here") {
		t.Errorf("%d\n%s", resp.StatusCode, page)
	}
}

// TestOrderSaid: the list of batches says in which order it is.
func TestOrderSaid(t *testing.T) {
	w := begin(t, true)
	w.submit(w.file("sample", "here.txt", "content"), v1.Completed)
	for at, says := range map[string]string{"batches": "<caption>Newest first",
		"batches?order=oldest": "<caption>Oldest first"} {
		if _, page := w.browser().get(at); !strings.Contains(page, says) {
			t.Errorf("%s:\n%s", at, page)
		}
	}
}
