package console_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	v1 "archivist/pkg/api/v1"
)

// actionsOf are the actions that a page offers.
func actionsOf(t *testing.T, page string) (all []string) {
	for n := range parsed(t, page).Descendants() {
		if n.Data == "input" && attr(n, "name") == "action" {
			all = append(all, attr(n, "value"))
		}
		if n.Data == "select" && attr(n, "name") == "action" {
			for o := range n.Descendants() {
				if o.Data == "option" {
					all = append(all, attr(o, "value"))
				}
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// adminOf lets the client of a world call as an administrator, with the token of a browser.
func (w *world) adminOf(b *browser) {
	token := b.session().Value
	w.api.Bearer = func(context.Context) (string, error) { return token, nil }
}

// TestRoles: each role sees what the API gives it, and is offered what the API lets it do. What is hidden is refused,
// too.
func TestRoles(t *testing.T) {
	w := begin(t, false)
	w.adminOf(w.as("alma"))
	failed := w.submit(w.file("sample", "none.txt", ""), v1.Failed)
	done := w.submit(w.file("sample", "here.txt", "content"), v1.Completed)
	foreign := w.submit(w.file("letters", "letter.txt", "content"), v1.Completed)
	op := w.tried(failed.Batch)

	many := "clean-up fail hold prioritize release requeue"
	for _, row := range []struct {
		path string
		// status and actions, by alma (administrator), otto (operator), vera (viewer), dora (depositor of sample), nora
		status  [5]int
		actions [5]string
	}{
		{"", [5]int{200, 200, 200, 200, 200}, [5]string{}},
		{"batches", [5]int{200, 200, 200, 200, 403}, [5]string{}},
		{"batches/" + failed.Batch, [5]int{200, 200, 200, 200, 403}, [5]string{"clean-up delete update-report",
			"clean-up update-report"}},
		{"batches/" + foreign.Batch, [5]int{200, 200, 200, 404, 403}, [5]string{"clean-up", "clean-up"}},
		{"batches?collection=letters", [5]int{200, 200, 200, 404, 403}, [5]string{}},
		{"jobs", [5]int{200, 200, 200, 200, 403}, [5]string{strings.Replace(many, "fail", "delete fail", 1), many}},
		{"jobs/" + failed.ID, [5]int{200, 200, 200, 200, 403}, [5]string{"clean-up delete prioritize requeue",
			"clean-up prioritize requeue"}},
		{"jobs/" + done.ID, [5]int{200, 200, 200, 200, 403}, [5]string{}},
		{"jobs/" + foreign.ID, [5]int{200, 200, 200, 404, 403}, [5]string{}},
		{"collections", [5]int{200, 200, 200, 200, 403}, [5]string{}},
		{"collections/sample", [5]int{200, 200, 200, 200, 403}, [5]string{"hold", "hold"}},
		{"collections/letters", [5]int{200, 200, 200, 404, 403}, [5]string{"hold", "hold"}},
		{"submit", [5]int{200, 200, 403, 200, 403}, [5]string{}},
		{"objects", [5]int{200, 200, 200, 200, 403}, [5]string{}},
		{"objects?collection=letters", [5]int{200, 200, 200, 404, 403}, [5]string{}},
		{"queue", [5]int{200, 200, 200, 403, 403}, [5]string{"pause", "pause"}},
		{"operations", [5]int{200, 200, 200, 403, 403}, [5]string{}},
		{"settings", [5]int{200, 200, 403, 403, 403}, [5]string{}},
		{"job-counts", [5]int{200, 200, 200, 200, 403}, [5]string{}},
		{"rebuilds", [5]int{200, 200, 200, 403, 403}, [5]string{}},
		{"operations/new", [5]int{200, 200, 403, 403, 403},
			[5]string{strings.Replace(many, "fail", "delete fail", 1), many}},
		{"operations/" + op.ID, [5]int{200, 200, 200, 403, 403}, [5]string{"requeue", "requeue"}},
		{"search?q=content", [5]int{200, 200, 200, 200, 200}, [5]string{}},
		{"nowhere", [5]int{404, 404, 404, 404, 404}, [5]string{}},
	} {
		for i, user := range []string{"alma", "otto", "vera", "dora", "nora"} {
			resp, page := w.signed(user).get(row.path)
			if resp.StatusCode != row.status[i] {
				t.Errorf("%s: %s gets %d, want %d", row.path, user, resp.StatusCode, row.status[i])
			}
			if has := strings.Join(actionsOf(t, page), " "); has != row.actions[i] && resp.StatusCode == 200 {
				t.Errorf("%s: %s is offered %q, want %q", row.path, user, has, row.actions[i])
			}
			if resp.StatusCode >= 400 && !strings.Contains(page, fmt.Sprintf("Status %d.", resp.StatusCode)) {
				t.Errorf("%s: %s is not told the status", row.path, user)
			}
		}
	}

	if _, page := w.signed("nora").get(""); !strings.Contains(page, "your roles give nothing to read here") ||
		strings.Contains(page, "Nothing was submitted yet") {
		t.Errorf("without a role:\n%s", page)
	}
	decisions := [5]string{"embargo place-legal-hold retain withdraw"}
	w.roles([]roleRow{{objectOf(done), [5]int{200, 200, 200, 200, 403}, decisions},
		{objectOf(foreign), [5]int{200, 200, 200, 404, 403}, decisions},
		{objectOf(done) + "/correct", [5]int{200, 403, 403, 403, 403}, [5]string{}}})
	w.denied("object", "withdraw", strings.SplitN(strings.TrimPrefix(done.Identifiers.Primary, "ark:/"), "/", 2),
		[]string{"otto", "vera", "dora", "nora"})
	w.refused(failed)
	if j, err := w.api.Job(t.Context(), failed.ID); err != nil || j.State != v1.Failed {
		t.Errorf("%s, %v", j.State, err)
	}
}

// refused sends forms that are not offered: the API refuses them.
func (w *world) refused(failed v1.Job) {
	for _, user := range []string{"otto", "vera", "dora", "nora"} {
		b := w.signed(user)
		_, page := b.get("")
		for what, target := range map[string]string{"delete": "job:" + failed.ID, "pause": "queue"} {
			form := url.Values{"form": {formAt(w.T, page, "sign-out").Get("form")}, "target": {target},
				"action": {what}, "reason": {"I may not"}, "step": {"do"}}
			resp, text := b.post("act", form)
			if resp.StatusCode != 403 && (user != "otto" || what != "pause") {
				w.Errorf("%s may %s: %d\n%.2000s", user, what, resp.StatusCode, text)
			}
		}
	}
}

// tried is a dry run of a requeue of the failed jobs of a batch, which has ended.
func (w *world) tried(batch string) v1.Operation {
	w.Helper()
	op, err := w.api.Start(w.Context(), v1.OperationRequest{Action: "requeue", Filter: &v1.JobFilter{Batch: batch},
		ActionOptions: v1.ActionOptions{Reason: "A try", DryRun: true}}, "")
	w.must(err)
	w.until("the operation has ended", func() bool {
		op, err = w.api.Operation(w.Context(), op.ID)
		w.must(err)
		return op.State == v1.OperationDone
	})
	return op
}

// signed is the browser of a user, who signs in once.
func (w *world) signed(user string) *browser {
	w.Helper()
	if w.users[user] == nil {
		w.users[user] = w.as(user)
	}
	return w.users[user]
}

// administers is a browser of an administrator: of anybody, where nobody signs in.
func (w *world) administers() *browser {
	w.Helper()
	b := w.browser()
	if resp, _ := b.get(""); resp.Request.URL.Host == issuerHost {
		return w.signed("alma")
	}
	return b
}

// evil is stored in each field of a depositor. It would be an element and an attribute, if it were not text.
const evil = `<script>evil()</script><evil-tag onload=evil()> " evil="x" ' javascript:evil() ` + "\u202egpj.exe {{.}}"

// TestHostile: what others have stored is text, on each page that shows it, and nothing else.
func TestHostile(t *testing.T) {
	w := begin(t, true)
	long := strings.Repeat("a long name ", 300)
	in := w.file("sample", "here.txt", "content")
	in.Submitter, in.Note = evil, evil
	in.Metadata = &v1.Metadata{What: evil + long, Who: evil}
	in.Identifiers = &v1.Identifiers{Local: []string{`<evil-tag>"evil="x"`}}
	in.Payload.Filename = `evil"><evil-tag onload=evil()>.txt`
	done := w.submit(in, v1.Completed)
	in.Payload = v1.Payload{URL: "http://" + sourceHost + `/none.txt?q=%22%3E%3Cevil-tag%3E`, Type: "file"}
	in.Identifiers = nil
	failed := w.submit(in, v1.Failed)
	_, err := w.api.Start(t.Context(), v1.OperationRequest{Action: "requeue", Filter: &v1.JobFilter{Batch: failed.Batch,
		Message: evil}, ActionOptions: v1.ActionOptions{Reason: evil, DryRun: true}}, "")
	w.must(err)
	ops, err := w.api.Operations(t.Context(), 1)
	w.must(err)
	_, err = call(w, "/v1/collections/sample/actions", v1.Action{Action: "hold", Reason: evil})
	w.must(err)

	b, shown := w.browser(), 0
	q := url.QueryEscape(evil)
	for _, path := range []string{"", "batches", "batches?message=" + q, "batches?submitter=" + q,
		"batches/" + done.Batch,
		"batches/" + failed.Batch, "jobs", "jobs?localId=" + q, "jobs/" + done.ID, "jobs/" + failed.ID, "queue",
		"objects", "objects?collection=sample", "objects?title=" + q, objectOf(done), objectOf(done) + "?version=" + q,
		"operations", "operations/" + ops[0].ID, "operations/new?message=" + q + "&batch=" + q, "search?q=" + q,
		"collections", "collections/sample", "collections/" + url.PathEscape(evil),
		"submit?what=" + q + "&kind=url&url=" + q + "&collection=" + q,
		"search?q=evil", "jobs/" + url.PathEscape(evil), "batches?state=" + q, "jobs?cursor=" + q, "queue?did=" + q} {
		_, page := b.get(path)
		if strings.Contains(page, "evil-tag") {
			shown++
		}
		harmless(t, path, page)
		for n := range parsed(t, page).Descendants() {
			if n.Type == html.TextNode && strings.Contains(n.Data, "\u202e") {
				t.Errorf("%s turns the direction of what follows: %q", path, n.Data)
			}
		}
	}
	if shown < 17 {
		t.Errorf("%d pages show what was stored", shown)
	}

	_, page := b.get("jobs/" + failed.ID)
	form := formAt(t, page, "act", "action=requeue")
	form.Set("reason", evil)
	for path, form := range map[string]url.Values{"act": form, "selected": {"form": form["form"],
		"job":    {failed.ID, evil},
		"action": {"requeue"}, "reason": {evil}}} {
		_, page := b.post(path, form)
		harmless(t, "POST "+path, page)
		form.Set("form", "none")
		_, page = b.post(path, form)
		harmless(t, "POST "+path+" without a token", page)
	}
}

// call acts on something for which the client has no method.
func call(w *world, path string, in v1.Action) (out v1.ActionResult, err error) {
	err = w.api.Call(w.Context(), http.MethodPost, path, in, &out)
	return out, err
}

// harmless fails for a page with an element, an attribute or an address that is not of a template.
func harmless(t *testing.T, path, page string) {
	t.Helper()
	for n := range parsed(t, page).Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		if strings.Contains(n.Data, "evil") || n.Data == "style" || n.Data == "iframe" || n.Data == "object" ||
			n.Data == "script" && (n.FirstChild != nil || !strings.Contains(attr(n, "src"), "assets/")) {
			t.Errorf("%s has the element %s", path, n.Data)
		}
		for _, a := range n.Attr {
			to := slices.Contains([]string{"href", "src", "action", "formaction"}, a.Key)
			bad := to && !strings.HasPrefix(a.Val, "./") && !strings.HasPrefix(a.Val, "?") &&
				!strings.HasPrefix(a.Val, "#")
			if bad || strings.HasPrefix(a.Key, "on") || strings.Contains(a.Key, "evil") || a.Key == "style" {
				t.Errorf("%s has the attribute %s=%q", path, a.Key, a.Val)
			}
		}
	}
}

// TestHeaders: each answer says what a browser may do with it, whoever asks for what.
func TestHeaders(t *testing.T) {
	w := begin(t, true)
	b := w.browser().still()
	_, page := b.get("")
	paths := []string{"", "jobs", "queue", "nowhere", "jobs/none", "jobs?state=none", "sign-in", "callback",
		"signed-out",
		"assets/none.js", "../console", "%2e%2e/x", "a//b", "search?q=x", "batches/none/report"}
	for n := range parsed(t, page).Descendants() {
		if at := attr(n, "src") + attr(n, "href"); strings.Contains(at, "assets/") {
			paths = append(paths, strings.TrimPrefix(at, "./"))
		}
	}
	for _, method := range []string{"GET", "POST", "PUT", "HEAD"} {
		for _, path := range paths {
			resp, _ := b.do(method, home+path, nil)
			h, policy := resp.Header, resp.Header.Get("Content-Security-Policy")
			if !strings.HasPrefix(policy, "default-src 'none'; script-src 'self'; ") ||
				strings.Contains(policy, "unsafe") ||
				!strings.Contains(policy, "frame-ancestors 'none'") || h.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s %s: %d %v", method, path, resp.StatusCode, h)
			}
			immutable := strings.Contains(h.Get("Cache-Control"), "immutable")
			if asset := strings.Contains(path, "-") && strings.HasPrefix(path, "assets/"); method == "GET" &&
				immutable != asset || !immutable && h.Get("Cache-Control") != "no-store" {
				t.Errorf("%s %s: %s", method, path, h.Get("Cache-Control"))
			}
		}
	}
	if len(paths) < 19 {
		t.Errorf("the page names too few assets: %v", paths)
	}
}

// TestLists: a page of a list costs few calls of the table, and few bytes, whatever is in it.
func TestLists(t *testing.T) {
	w := begin(t, true)
	_, err := call(w, "/v1/queue/actions", v1.Action{Action: "pause", Reason: "So that jobs wait"})
	w.must(err)
	job := w.submit(w.many(120), v1.Pending)
	for range 12 {
		w.submit(w.file("sample", "here.txt", "content"), v1.Pending)
	}
	b := w.browser()
	for path, most := range map[string]int{"": 55, "batches": 10, "jobs": 10, "jobs?batch=" + job.Batch: 10,
		"queue": 20, "collections": 10, "collections/sample": 10, "objects": 10, "objects?collection=sample": 10,
		"jobs?collection=sample": 10, "batches?collection=sample": 10, "operations": 10, "batches/" + job.Batch: 10,
		"jobs/" + job.ID: 10, "job-counts": 10, "job-counts?by=batch&collection=sample": 10, "job-counts?count=all": 18,
		"formats": 10, "formats?collection=sample": 10, "batch-counts?collection=sample": 5,
		"batch-counts": 10 + 1} { // the first search of a process reads whether the lists are whole
		calls := w.TableCalls("api")
		resp, page := b.get(path)
		if n := calls(); n > most || n == 0 || resp.StatusCode != 200 || b.packed > 100<<10 {
			t.Errorf("%q: %d calls, at most %d; %d bytes; status %d", path, n, most, b.packed, resp.StatusCode)
		} else {
			t.Logf("%q: %d calls, %d bytes compressed of %d", path, n, b.packed, len(page))
		}
	}

	seen := map[string]bool{}
	for path := "jobs"; path != ""; {
		_, page := b.get(path)
		path = ""
		for n := range parsed(t, page).Descendants() {
			if attr(n, "name") == "job" {
				seen[attr(n, "value")] = true
			}
			if attr(n, "rel") == "next" {
				path = "jobs" + attr(n, "href")
			}
		}
	}
	if len(seen) != 132 {
		t.Errorf("%d of 132 jobs are on the pages", len(seen))
	}
}

// TestLive: what has not changed is not sent again; what has changed is sent without what is around it.
func TestLive(t *testing.T) {
	w := begin(t, true)
	w.reported(w.submit(w.file("sample", "here.txt", "content"), v1.Completed))
	b := w.browser()
	for _, path := range []string{"batches", "jobs", "operations"} {
		resp, page := b.get(path)
		tag := resp.Header.Get("ETag")
		if !strings.Contains(page, `data-tag="`+strings.ReplaceAll(tag, `"`, "&#34;")) {
			t.Errorf("%s does not know its tag %s", path, tag)
		}
		resp, page = b.get(path, "HX-Request", "true", "If-None-Match", tag)
		if resp.StatusCode != http.StatusNotModified || page != "" {
			t.Errorf("%s: %d %.200s", path, resp.StatusCode, page)
		}
		resp, page = b.get(path, "HX-Request", "true", "If-None-Match", `"other"`)
		if resp.StatusCode != 200 || !strings.HasPrefix(page, `<div id="live"`) || strings.Contains(page, "<h1") {
			t.Errorf("%s: %d %.200s", path, resp.StatusCode, page)
		}
		if resp, _ := b.get(path, "If-None-Match", tag); resp.StatusCode != 200 {
			t.Errorf("%s as a whole: %d", path, resp.StatusCode)
		}
	}
	_, rests := b.get("jobs")
	_, err := call(w, "/v1/queue/actions", v1.Action{Action: "pause", Reason: "So that jobs wait"})
	w.must(err)
	w.submit(w.file("sample", "more.txt", "more"), v1.Pending)
	_, moves := b.get("jobs")
	if !strings.Contains(rests, "every 30s") || !strings.Contains(moves, "every 2s") {
		t.Error("what moves is not asked for more often than what rests")
	}
}

// TestOffered: on each job and batch, the page offers what a dry run of the API accepts, and nothing else.
func TestOffered(t *testing.T) {
	w := begin(t, true)
	failed := w.submit(w.file("sample", "none.txt", ""), v1.Failed)
	done := w.submit(w.file("sample", "here.txt", "content"), v1.Completed)
	_, err := call(w, "/v1/queue/actions", v1.Action{Action: "pause", Reason: "So that jobs wait"})
	w.must(err)
	waits := w.submit(w.file("sample", "more.txt", "more"), v1.Pending)
	held := w.submit(w.file("sample", "held.txt", "held"), v1.Pending)
	_, err = call(w, "/v1/jobs/"+held.ID+"/actions", v1.Action{Action: "hold", Reason: "Rights"})
	w.must(err)
	for _, job := range []v1.Job{failed, done, waits, held} {
		if job.State != v1.Pending {
			w.reported(job)
		}
		w.accepts("jobs/"+job.ID, "hold release requeue fail delete prioritize clean-up")
		w.accepts("batches/"+job.Batch, "hold release cancel delete update-report clean-up")
	}
	_, page := w.browser().get("queue")
	for _, row := range []struct {
		target, action string
		offered        bool
	}{{"queue", "resume", true}, {"queue", "pause", false}, {"storage", "pause", true}, {"storage", "resume", false}} {
		if has := formAt(t, page, "act", "target="+row.target, "action="+row.action); (has != nil) != row.offered {
			t.Errorf("%s of the %s: %v", row.action, row.target, has)
		}
	}
}

// unchanged are what summaries say of actions that have nothing to change.
var unchanged = []string{"already", "not on hold", "has no work files"}

// accepts compares what a page offers with what the API accepts.
func (w *world) accepts(path, actions string) {
	w.Helper()
	priority := 3
	var accepted []string
	for action := range strings.FieldsSeq(actions) {
		in := v1.Action{Action: action, Reason: "A try", DryRun: true, Confirm: true}
		if action == "prioritize" {
			in.Priority = &priority
		}
		out, err := call(w, "/v1/"+path+"/actions", in)
		same := slices.ContainsFunc(unchanged, func(says string) bool { return strings.Contains(out.Summary, says) })
		if err == nil && !same {
			accepted = append(accepted, action)
		}
	}
	slices.Sort(accepted)
	_, page := w.browser().get(path)
	if has := actionsOf(w.T, page); !slices.Equal(has, accepted) {
		w.Errorf("%s offers %q; the API accepts %q", path, has, accepted)
	}
}

// TestSelected: what is selected is acted on, after it was said what would be done; twice is once.
func TestSelected(t *testing.T) {
	w := begin(t, true)
	one := w.submit(w.file("sample", "none1.txt", ""), v1.Failed)
	two := w.submit(w.file("sample", "none2.txt", ""), v1.Failed)
	done := w.submit(w.file("sample", "here.txt", "content"), v1.Completed)
	b := w.browser()
	_, page := b.get("jobs")
	form := formAt(t, page, "selected")
	form["job"] = []string{one.ID, two.ID, done.ID}
	form.Set("action", "requeue")
	form.Set("reason", "The source is back")
	form.Set("step", "preview")
	resp, page := b.post("selected", form)
	sure := formAt(t, page, "selected")
	if resp.StatusCode != 200 || sure == nil || !slices.Equal(sure["job"], []string{one.ID, two.ID}) ||
		!strings.Contains(page, "It can be done with 2 of 3 jobs.") || !strings.Contains(page, "requeue needs Failed") {
		t.Fatalf("%d %v\n%s", resp.StatusCode, sure, page)
	}
	if j, err := w.api.Job(t.Context(), one.ID); err != nil || j.State != v1.Failed {
		t.Errorf("after the preview: %s, %v", j.State, err)
	}
	sure.Set("step", "do")
	for range 2 {
		if resp, page := b.post("selected", sure); resp.Request.URL.String() != home+"jobs" {
			t.Errorf("%s %d\n%s", resp.Request.URL, resp.StatusCode, page)
		}
	}
	for _, job := range []v1.Job{one, two} {
		events, err := w.api.Events(t.Context(), job.ID)
		n := 0
		for _, e := range events {
			if e.Type == "job.requeued" {
				n++
			}
		}
		if err != nil || n != 1 {
			t.Errorf("%s was requeued %d times, %v", job.ID, n, err)
		}
	}
}

// TestBulk: what a filter selects is acted on, after a preview of each job.
func TestBulk(t *testing.T) {
	w := begin(t, true)
	job := w.submit(w.file("sample", "none.txt", ""), v1.Failed)
	b := w.browser()
	_, page := b.get("operations/new?action=requeue&state=Failed&batch=" + job.Batch)
	form := formAt(t, page, "operations", "batch="+job.Batch)
	form.Set("action", "requeue")
	form.Set("state", "Failed")
	form.Set("reason", "The source is back")
	form.Set("step", "preview")
	resp, _ := b.post("operations", form)
	at, found := strings.CutPrefix(resp.Request.URL.String(), home)
	if !found || !strings.HasPrefix(at, "operations/") {
		t.Fatal(resp.Request.URL)
	}
	var sure url.Values
	w.until("the preview has ended", func() bool {
		_, page = b.get(at)
		sure = formAt(t, page, "operations")
		return sure != nil
	})
	if !strings.Contains(page, "nothing was changed") || !strings.Contains(page, job.ID) ||
		sure.Get("state") != "Failed" {
		t.Errorf("%v\n%s", sure, page)
	}
	sure.Set("step", "do")
	first, _ := b.post("operations", sure)
	again, _ := b.post("operations", sure)
	if first.Request.URL.String() != again.Request.URL.String() || first.Request.URL.String() == home+at {
		t.Errorf("%s, then %s", first.Request.URL, again.Request.URL)
	}
	w.until("it is requeued", func() bool {
		events, err := w.api.Events(t.Context(), job.ID)
		w.must(err)
		return slices.ContainsFunc(events, func(e v1.Event) bool { return e.Type == "job.requeued" })
	})
}

// TestSearch: an id leads to its page; another text to what is known of it.
func TestSearch(t *testing.T) {
	w := begin(t, true)
	job := w.submit(w.file("sample", "here.txt", "content"), v1.Completed)
	b := w.browser()
	for q, want := range map[string]string{job.ID: "jobs/" + job.ID, " " + job.Batch + " ": "batches/" + job.Batch,
		job.Identifiers.Primary: objectOf(job)} {
		if resp, page := b.get("search?q=" + url.QueryEscape(q)); resp.Request.URL.String() != home+want {
			t.Errorf("%q leads to %s\n%s", q, resp.Request.URL, page)
		}
	}
	page := ""
	w.until("the object is found", func() bool {
		_, page = b.get("search?q=here.txt")
		return strings.Contains(page, objectOf(job))
	})
	if _, page := b.get("jobs/" + job.ID); !strings.Contains(page, objectOf(job)) {
		t.Errorf("the job does not lead to its object:\n%s", page)
	}
	if resp, page := b.get("search?q=Collection:sample"); resp.Request.URL.String() != home+"collections/sample" {
		t.Errorf("%s\n%s", resp.Request.URL, page)
	}
	if _, page := b.get("search?q=sample"); !strings.Contains(page, `collections/sample"`) {
		t.Errorf("the name of a collection does not lead to it:\n%s", page)
	}
}
