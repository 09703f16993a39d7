package console_test

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"image"
	"image/jpeg"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"golang.org/x/net/html"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/app/inprocess"
	"archivist/pkg/console"
)

var update = flag.Bool("update", false, "write the table of roles and pages anew")

// rolesPages is the file of the table: what each role gets of each page.
const rolesPages = "testdata/rolespages.txt"

// visitors are the users by their roles, the administrator last.
var visitors = []struct{ user, role string }{{"nora", "no role"}, {"nils", "notifier"}, {"rita", "researcher"},
	{"lena", "depositor of letters"}, {"dora", "depositor of sample"}, {"vera", "viewer"}, {"otto", "operator"},
	{"alma", "administrator"}}

// onePage is an address of a page of the console: its pattern, what the page shows, and its path below /console/.
type onePage struct{ pattern, what, path string }

// everything lets happen what the pages of all areas show, and returns an address of each page; of some, several.
func (w *world) everything() (all []onePage) {
	w.Helper()
	failed := w.submit(w.file("sample", "none.txt", ""), v1.Failed)
	done := w.submit(w.file("sample", "here.txt", "content"), v1.Completed)
	var fails atomic.Bool
	w.outside(&fails, "The function is broken")
	foreign := w.submit(w.file("letters", "letter.txt", "content"), v1.Completed)
	op := w.tried(failed.Batch)
	examined := w.examined()
	replay, err := w.api.StartReplay(w.Context(), "outside", v1.ReplayRequest{Reason: "A test"}, "")
	w.must(err)
	w.until("the replay has ended", func() bool {
		is, err := w.api.Replay(w.Context(), replay.ID)
		w.must(err)
		return is.State == v1.ReplayDone
	})
	w.line()
	runs, err := w.api.Runs(w.Context(), "first", 1)
	w.must(err)
	w.book(strings.Replace(hostileTasks, `x"'}`, `x"; echo x > left.txt', outputs: [left.txt]}`, 1))
	episode, clip := w.found()
	for _, job := range []v1.Job{failed, done, foreign} {
		w.reported(job)
	}
	w.packaged(done, foreign)
	pictures := w.pictures()
	_, err = call(w, "/v1/queue/actions", v1.Action{Action: "pause", Reason: "So that a job waits"})
	w.must(err)
	waits := w.submit(w.file("sample", "waits.txt", "waits"), v1.Pending)

	for _, p := range console.Paths() {
		if !strings.Contains(p, "{id}") && !strings.Contains(p, "{n") {
			all = append(all, onePage{p, "", strings.TrimSuffix(p, "{$}")})
		}
	}
	all = slices.DeleteFunc(all, func(p onePage) bool {
		return strings.Contains(p.path, "{") || slices.Contains([]string{"deed", "event", "task", "item"}, p.path)
	})
	const objects, jingles = "objects/{naan}/{name}", "research/{project}"
	all = append(all, onePage{"batches/{id}", "failed", "batches/" + failed.Batch},
		onePage{"batches/{id}", "of letters", "batches/" + foreign.Batch},
		onePage{"batches/{id}", "waits", "batches/" + waits.Batch},
		onePage{"jobs/{id}", "failed", "jobs/" + failed.ID}, onePage{"jobs/{id}", "done", "jobs/" + done.ID},
		onePage{"jobs/{id}", "of letters", "jobs/" + foreign.ID}, onePage{"jobs/{id}", "waits", "jobs/" + waits.ID},
		onePage{objects, "of sample", objectOf(done)}, onePage{objects, "of letters", objectOf(foreign)},
		onePage{objects + "/correct", "of sample", objectOf(done) + "/correct"},
		onePage{objects + "/correct", "of letters", objectOf(foreign) + "/correct"},
		onePage{"collections/{id}", "sample", "collections/sample"},
		onePage{"collections/{id}", "letters", "collections/letters"},
		onePage{"operations/{id}", "", "operations/" + op.ID}, onePage{"doctor/{id}", "", "doctor/" + examined.ID},
		onePage{"deed", "of an operator", "deed?kind=consumer&deed=redrive-one&id=outside&event=x"},
		onePage{"deed", "of an administrator", "deed?kind=consumer&deed=delete&id=outside"},
		onePage{jingles, "", "research/jingles"}, onePage{jingles + "/matrix", "", "research/jingles/matrix"},
		onePage{jingles + "/feeds", "", "research/jingles/feeds"},
		onePage{jingles + "/episodes/{key}", "", "research/jingles/episodes/" + episode},
		onePage{jingles + "/clips/{key}", "", "research/jingles/clips/" + clip},
		onePage{"components/{name}", "", "components/second"},
		onePage{"components/{name}/runs/{run}", "", "components/first/runs/" + runs[0].ID},
		onePage{"item", "", "item?id=item:one"}, onePage{"archives/{name}", "", "archives/book"},
		onePage{"archives/{name}/revisions/{n}", "", "archives/book/revisions/1"},
		onePage{"task", "", "task?id=book/1/break"},
		onePage{"event", "", "event?subject=Job:" + done.ID + "&version=1"},
		onePage{"consumers/{name}", "", "consumers/outside"}, onePage{"replays/{id}", "", "replays/" + replay.ID})
	_, err = w.api.MakeZip(w.Context(), foreign.Identifiers.Primary, 1) // of the other object it can be made
	w.must(err)
	return append(all, append(pictures, filesOf(all, "research/jingles/episodes/"+episode)...)...)
}

// pictures makes an object with a picture in each collection, and returns the addresses of their thumbnails.
func (w *world) pictures() (all []onePage) {
	w.Helper()
	var file bytes.Buffer
	w.must(jpeg.Encode(&file, image.NewGray(image.Rect(0, 0, 400, 300)), nil))
	b := w.administers().still()
	for _, collection := range []string{"sample", "letters"} {
		job := w.submit(w.file(collection, collection+".jpg", file.String()), v1.Completed)
		at := objectOf(job) + "/thumbnail?version=1&path=producer/" + collection + ".jpg"
		w.until("the thumbnail is made", func() bool {
			resp, _ := b.get(at)
			return resp.StatusCode == http.StatusFound
		})
		all = append(all, onePage{"objects/{naan}/{name}/thumbnail", "of " + collection, at})
	}
	return all
}

// packaged waits for the manifests of the objects of jobs.
func (w *world) packaged(jobs ...v1.Job) {
	w.Helper()
	b := w.administers().still()
	for _, job := range jobs {
		w.until("the manifest is made", func() bool {
			resp, _ := b.get(objectOf(job) + "/manifest")
			return resp.StatusCode == http.StatusFound
		})
	}
}

// filesOf are addresses of what answers with a file: beside the pages that have them, and of a recording.
func filesOf(pages []onePage, recording string) (all []onePage) {
	known := console.Files()
	of := []string{"version=1&path=producer/here.txt", "version=1&path=producer/letter.txt"}
	queries := map[string][]string{"content": of, "manifest": {"", ""}, "premis": {"", ""}}
	for _, p := range pages {
		path, query, _ := strings.Cut(p.path, "?")
		add := func(after, query string) {
			if slices.Contains(known, p.pattern+after) {
				all = append(all, onePage{p.pattern + after, p.what, strings.TrimSuffix(path+after+"?"+query, "?")})
			}
		}
		add("/history.json", query)
		if strings.HasPrefix(p.pattern, "batches/") && p.what != "waits" { // its batch has no report yet
			add("/report", "")
		}
		if p.pattern == "objects/{naan}/{name}" && p.what == "of letters" { // of the other object none is made
			add("/zip", "version=1")
		}
		for _, what := range slices.Sorted(maps.Keys(queries)) {
			if p.pattern == "objects/{naan}/{name}" {
				add("/"+what, queries[what][0])
				queries[what] = queries[what][1:]
			}
		}
	}
	return append(all, onePage{"formats.csv", "", "formats.csv"}, onePage{"filter.json", "", "filter.json"},
		onePage{"task/output", "", "task/output?id=book/1/write&attempt=1&path=left.txt"},
		onePage{"research/{project}/offsets", "", "research/jingles/offsets"},
		onePage{"research/{project}/episodes/{key}/labels", "", recording + "/labels?format=csv"})
}

// examined is an examination of the doctor that has ended.
func (w *world) examined() v1.Operation {
	w.Helper()
	op, err := w.api.Start(w.Context(), v1.OperationRequest{Action: v1.Doctor,
		ActionOptions: v1.ActionOptions{Reason: "A check"}}, "")
	w.must(err)
	w.until("it has ended", func() bool {
		is, err := w.api.Operation(w.Context(), op.ID)
		w.must(err)
		return is.State == v1.OperationDone
	})
	return op
}

// formsOf are what a page offers: the forms that it has and those of deeds to which it links, by what they do. Where a
// form lets one choose the action, each is one.
func formsOf(t *testing.T, page string) map[string]url.Values {
	t.Helper()
	all := map[string]url.Values{}
	doc := parsed(t, page)
	for n := range doc.Descendants() {
		if to := attr(n, "href"); n.Data == "a" && strings.Contains(to, "deed?") {
			u, err := url.Parse(to)
			if err != nil {
				t.Fatal(err)
			}
			form := u.Query()
			all["deed "+form.Get("kind")+" "+form.Get("deed")] = form
		}
		to := attr(n, "action")
		to = to[strings.LastIndex(to, "/")+1:]
		if n.Data != "form" || attr(n, "method") != "post" || to == "sign-out" {
			continue
		}
		form, actions, sends := fieldsOf(doc, n)
		if !sends { // it only shows
			continue
		}
		for _, action := range actions {
			one := maps.Clone(form)
			one.Set("action", action)
			all[to+" "+action] = one
		}
		if len(actions) == 0 {
			kind, _, _ := strings.Cut(form.Get("target"), ":")
			what := []string{to, cmp.Or(kind, form.Get("kind")), form.Get("action"), form.Get("deed")}
			if to != "act" && to != "deed" {
				what = []string{to, form.Get("action")}
			}
			all[strings.Join(slices.DeleteFunc(what, func(s string) bool { return s == "" }), " ")] = form
		}
	}
	return all
}

// fieldsOf are the fields of a form as a browser sends them with all jobs selected, the actions of which one can be
// chosen, and whether the form can be sent.
func fieldsOf(doc, of *html.Node) (form url.Values, actions []string, sends bool) {
	form = url.Values{}
	for n := range doc.Descendants() {
		inside := n == of || attr(of, "id") != "" && attr(n, "form") == attr(of, "id")
		for p := n.Parent; p != nil && !inside; p = p.Parent {
			inside = p == of
		}
		name, value := attr(n, "name"), attr(n, "value")
		switch {
		case !inside:
		case n.Data == "button":
			sends = sends || attr(n, "type") != "button"
		case n.Data == "option" && attr(n.Parent, "name") == "action":
			actions = append(actions, value)
		case n.Data == "option" && !form.Has(attr(n.Parent, "name")):
			form.Set(attr(n.Parent, "name"), chosen(n))
		case n.Data == "input" && attr(n, "type") == "checkbox" && name != "job", attr(n, "type") == "radio":
		case n.Data == "input" && name != "", n.Data == "textarea":
			form.Add(name, value)
		}
	}
	return form, actions, sends
}

// chosen is what is sent of an option: its value or, if it has none, its text.
func chosen(option *html.Node) string {
	if slices.ContainsFunc(option.Attr, func(a html.Attribute) bool { return a.Key == "value" }) {
		return attr(option, "value")
	}
	return option.FirstChild.Data
}

// shows is what a page shows a user: the status, and the forms that it offers.
func (w *world) shows(user string, p onePage) (status int, forms map[string]url.Values) {
	w.Helper()
	b := w.signed(user)
	if slices.Contains(console.Files(), p.pattern) { // what it leads to is of the storage
		resp, _ := b.still().get(p.path)
		return resp.StatusCode, nil
	}
	resp, page := b.get(p.path)
	if resp.StatusCode != http.StatusOK {
		return resp.StatusCode, nil
	}
	w.leads(user, p.path, page)
	return resp.StatusCode, formsOf(w.T, page)
}

// leads fails if a page links to what its user may not get.
func (w *world) leads(user, path, page string) {
	w.Helper()
	at, err := url.Parse(home + path)
	w.must(err)
	for n := range parsed(w.T, page).Descendants() {
		to, err := at.Parse(attr(n, "href"))
		w.must(err)
		to.Fragment = ""
		below, inside := strings.CutPrefix(to.String(), home)
		known := user + " " + below
		if n.Data != "a" || !inside || w.followed[known] {
			continue
		}
		w.followed[known] = true
		resp, text := w.signed(user).still().get(below)
		if resp.StatusCode == http.StatusForbidden {
			w.Errorf("%s leads %s to %s: %d\n%s", path, user, below, resp.StatusCode, mainOf(text))
		}
	}
}

// row is that as a line of the table.
func row(role string, status int, forms map[string]url.Values) string {
	return strings.TrimSpace(fmt.Sprintf("%-21s %d  %s", role, status,
		strings.Join(slices.Sorted(maps.Keys(forms)), "; ")))
}

// TestRolesPages: each role gets of each page and file, and is offered there, what a table says; no page leads to one
// that its user may not get. What an administrator is offered, and another role is not, is refused,
// and changes nothing; what a role is offered is not refused for the role.
func TestRolesPages(t *testing.T) {
	w := beginWith(t, false, func(s *inprocess.Settings) {
		revisionQueue(s)
		jingles(s)
	})
	w.adminOf(w.as("alma"))
	pages := w.everything()
	for _, p := range append(console.Paths(), console.Files()...) {
		if !slices.ContainsFunc(pages, func(o onePage) bool { return o.pattern == p }) {
			t.Errorf("%s is not opened: give it an address, and let something happen that it shows", p)
		}
	}
	var table strings.Builder
	own := map[onePage]string{} // what the administrator gets
	for _, p := range pages {
		fmt.Fprintln(&table, strings.TrimSpace(p.pattern+" "+p.what))
		status, offered := w.shows("alma", p)
		own[p] = row("administrator", status, offered)
		if status >= http.StatusBadRequest {
			t.Errorf("%s: nobody gets it (%d), so its rows prove nothing", p.path, status)
		}
		for _, v := range visitors {
			status, forms := w.shows(v.user, p)
			fmt.Fprintf(&table, "\t%s\n", row(v.role, status, forms))
			w.refuses(v.user, p, status, offered, forms)
		}
	}
	if *update {
		w.must(os.WriteFile(rolesPages, []byte(table.String()), 0o644))
	}
	want, err := os.ReadFile(rolesPages)
	w.must(err)
	for i, line := range strings.Split(table.String(), "\n") {
		if lines := strings.Split(string(want), "\n"); i >= len(lines) || lines[i] != line {
			t.Fatalf("line %d of %s: found\n%s\nIf it is right: go test ./pkg/console -run TestRolesPages -update",
				i+1, rolesPages, line)
		}
	}
	for _, p := range pages {
		status, offered := w.shows("alma", p)
		if is := row("administrator", status, offered); is != own[p] {
			t.Errorf("%s was changed by what was refused:\n%s\n%s", p.path, own[p], is)
		}
	}
	if where := w.stored(refusedReason); len(where) > 0 {
		t.Errorf("what was refused is stored: %v", where)
	}
	for _, v := range visitors { // what they do changes what there is: so this is the last
		w.permits(v.user, pages)
	}
	if len(w.stored(offeredReason)) == 0 { // so the search above would find what was done
		t.Error("the reason of what was done is not found")
	}
}

// The reasons of forms that are to be refused, and of others.
const (
	refusedReason = "I may not do this, and try it"
	offeredReason = "I am offered this, and do it"
)

// permits sends as a user each form once that a page offers to the user. What the API says to it depends on what was
// done before: but it never says that the user may not do it.
func (w *world) permits(user string, pages []onePage) {
	w.Helper()
	sent := map[string]bool{}
	for _, p := range pages {
		_, forms := w.shows(user, p)
		for _, what := range slices.Sorted(maps.Keys(forms)) {
			if sent[what] {
				continue
			}
			sent[what] = true
			status, text := w.sends(user, what, "do", offeredReason, forms[what])
			if status == http.StatusForbidden {
				w.Errorf("%s: %s is offered %q: %d\n%s", p.path, user, what, status, mainOf(text))
			}
		}
	}
}

// refuses sends as a user the forms that a page offers an administrator, and not the user.
func (w *world) refuses(user string, p onePage, status int, offered, own map[string]url.Values) {
	w.Helper()
	for what, form := range offered {
		if own[what] != nil {
			continue
		}
		for _, step := range []string{"preview", "do"} {
			got, text := w.sends(user, what, step, refusedReason, form)
			unknown := status == http.StatusNotFound && got == status
			if got != http.StatusForbidden && !unknown || strings.Contains(text, "not of this session") {
				w.Errorf("%s: %s sends %q to %s: %d, and not 403\n%s", p.path, user, what, step, got, mainOf(text))
			}
		}
	}
}

// sends sends a form as a user, with what a person would write: to preview, or to do, which is confirmed.
func (w *world) sends(user, what, step, reason string, fields url.Values) (status int, text string) {
	w.Helper()
	b := w.signed(user)
	_, page := b.get("search")
	form := maps.Clone(fields)
	form.Set("form", formAt(w.T, page, "sign-out").Get("form"))
	form.Set("reason", reason)
	form.Set("step", step)
	if step == "do" {
		form.Set("sure", "yes")
	}
	to, _, _ := strings.Cut(what, " ")
	if step == "do" && to != "operations" {
		form.Set("confirm", "yes")
	}
	if to == "submit" {
		for name, value := range map[string]string{"kind": "url", "note": reason,
			"url": "http://" + sourceHost + "/here.txt"} {
			form.Set(name, value)
		}
	}
	for name, value := range map[string]string{"collection": "sample", "event": "Second_done", "events": "First_done",
		"filter": "Object+Create", "priority": "5"} {
		if form.Has(name) && form.Get(name) == "" && (name != "priority" || strings.HasSuffix(what, " prioritize")) {
			form.Set(name, value)
		}
	}
	resp, text := b.still().post(to, form)
	return resp.StatusCode, text
}

// mainOf is the text of the content of a page.
func mainOf(page string) string {
	_, text, _ := strings.Cut(page, "<main")
	text, _, _ = strings.Cut(text, "</main>")
	return text
}

// stored are the keys of the rows that have a text.
func (w *world) stored(text string) (keys []string) {
	w.Helper()
	for _, item := range w.Table().All() {
		data, err := attributevalue.MarshalMapJSON(item)
		w.must(err)
		if strings.Contains(string(data), text) {
			keys = append(keys, fmt.Sprint(item["pk"], item["sk"]))
		}
	}
	return keys
}
