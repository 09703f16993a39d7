package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/html/atom"

	v1 "archivist/pkg/api/v1"
)

// session is the cookie of the session of a browser, nil if it has none.
func (b *browser) session() *http.Cookie {
	at, err := url.Parse(home)
	b.must(err)
	for _, c := range b.Jar.Cookies(at) {
		if c.Name == "archivist" {
			return c
		}
	}
	return nil
}

// TestSignIn: who opens a page signs in, and comes back to it; who signs out has no session any more.
func TestSignIn(t *testing.T) {
	w := begin(t, false)
	b := w.browser()
	resp, page := b.get("jobs?collection=sample&state=Failed")
	if resp.Request.URL.Host != issuerHost || !strings.Contains(page, "The console asks to act for you") {
		t.Fatalf("%s\n%s", resp.Request.URL, page)
	}
	if q := resp.Request.URL.Query(); strings.Contains(q.Get("scope"), "offline") || q.Get("code_challenge") == "" {
		t.Errorf("what is asked for: %v", q)
	}
	resp, page = b.choose(page, "vera")
	if resp.Request.URL.String() != home+"jobs?collection=sample&state=Failed" || resp.StatusCode != 200 ||
		!strings.Contains(page, "Vera, a viewer") || b.session() == nil {
		t.Fatalf("%s %d\n%s", resp.Request.URL, resp.StatusCode, page)
	}

	stolen := b.session().Value
	resp, page = b.post("sign-out", formAt(t, page, "sign-out"))
	if resp.Request.URL.String() != home+"signed-out" || b.session() != nil ||
		!strings.Contains(page, "you may still be signed in") {
		t.Errorf("%s %v\n%s", resp.Request.URL, b.session(), page)
	}
	if resp, _ := b.still().get(""); resp.StatusCode != 303 || resp.Header.Get("Location") != "./sign-in?" {
		t.Errorf("after that: %d %v", resp.StatusCode, resp.Header)
	}
	for _, value := range []string{"no token", stolen[:len(stolen)-2], strings.Replace(stolen, ".", ".A", 1)} {
		resp, _ := w.browser().still().get("", "Cookie", "archivist="+value)
		if resp.StatusCode != 303 {
			t.Errorf("with the token %.20q: %d", value, resp.StatusCode)
		}
	}
	resp, _ = w.browser().still().get("", "Cookie", "archivist="+stolen+"; archivist="+stolen)
	if resp.StatusCode != 303 {
		t.Errorf("with two cookies: %d", resp.StatusCode)
	}
}

// TestFixation: a browser gets a session only by a sign-in that it has begun itself, and by none twice.
func TestFixation(t *testing.T) {
	w := begin(t, false)
	mine, other := w.browser().still(), w.browser().still()
	begun := func(b *browser) url.Values {
		resp, _ := b.get("sign-in")
		at, err := url.Parse(resp.Header.Get("Location"))
		w.must(err)
		return at.Query()
	}
	// The attacker signs in, and keeps the answer of the issuer for the victim.
	theirs := begun(other)
	form := url.Values{"user": {"otto"}, "answer": {"yes"}}
	for name, values := range theirs {
		form[name] = values
	}
	resp, text := other.send("http://"+issuerHost+"/authorize", form)
	answer := resp.Header.Get("Location")
	if resp.StatusCode != 303 || !strings.HasPrefix(answer, home+"callback?") {
		t.Fatalf("%d %s\n%s", resp.StatusCode, answer, text)
	}

	own := begun(mine)
	code := func(state string) string {
		at, err := url.Parse(answer)
		w.must(err)
		q := at.Query()
		q.Set("state", state)
		return home + "callback?" + q.Encode()
	}
	for what, at := range map[string]string{"the answer to another": answer, "with its state": code(own.Get("state")),
		"without a state": code(""), "of another issuer": code(own.Get("state")) + "&iss=x", "refused": home +
			"callback?error=access_denied&state=" + own.Get("state")} {
		b := w.browser().still()
		b.Jar = mine.Jar
		begun(b)
		if what == "refused" {
			at = home + "callback?error=access_denied&state=" + begun(b).Get("state")
		}
		resp, text := b.do(http.MethodGet, at, nil)
		if resp.StatusCode != 422 && resp.StatusCode != 403 || b.session() != nil {
			t.Errorf("%s: %d %v\n%s", what, resp.StatusCode, b.session(), text)
		}
	}
	if resp, _ := w.browser().still().do(http.MethodGet, answer, nil); resp.StatusCode != 422 {
		t.Errorf("in a browser that has begun none: %d", resp.StatusCode)
	}
	if resp, _ := other.do(http.MethodGet, answer, nil); resp.StatusCode != 303 || other.session() == nil {
		t.Errorf("in its own browser: %d", resp.StatusCode)
	}
	if resp, _ := other.do(http.MethodGet, answer, nil); resp.StatusCode != 422 {
		t.Errorf("twice: %d", resp.StatusCode)
	}
}

// TestReturn: after a sign-in the browser is at the console, whatever the address of the sign-in says.
func TestReturn(t *testing.T) {
	w := begin(t, false)
	for to, want := range map[string]string{"jobs?state=Held": "jobs?state=Held", "": "", "batches/X": "batches/X",
		"https://evil.example/": "", "//evil.example/": "", "/\\evil.example": "", "\\\\evil.example": "",
		"../../v1/jobs": "", "%2e%2e/%2e%2e/v1": "", "javascript:alert(1)": "", "jobs/../../../x": "",
		"jobs\r\nSet-Cookie: x=y": "", "http:evil": "", "user@evil.example:80/": ""} {
		b := w.browser()
		_, page := b.get("sign-in?to=" + url.QueryEscape(to))
		if resp, _ := b.choose(page, "vera"); resp.Request.URL.String() != home+want && want != "batches/X" &&
			(want != "" || resp.Request.URL.String() != start) || !strings.HasPrefix(resp.Request.URL.String(), start) {
			t.Errorf("%q leads to %s", to, resp.Request.URL)
		}
	}
}

// TestEnded: what was written into a form is not lost when the session has ended, and is sent only by the person.
func TestEnded(t *testing.T) {
	w := begin(t, false)
	b := w.as("otto")
	_, page := b.get("queue")
	form := formAt(t, page, "act", "target=queue", "action=pause")
	form.Set("reason", "A very long \"reason\" <b>")
	form.Set("step", "do")
	b.Jar = w.browser().Jar
	resp, page := b.post("act", form)
	again := formAt(t, page, "act", "reason=A very long \"reason\" <b>")
	if resp.StatusCode != 401 || again == nil || again.Get("form") != "" {
		t.Fatalf("%d %v\n%s", resp.StatusCode, again, page)
	}
	if resp, page := b.still().get("queue", "HX-Request", "true"); resp.StatusCode != 401 {
		t.Errorf("a part of a page: %d\n%s", resp.StatusCode, page)
	}

	b.Jar = w.as("otto").Jar
	resp, page = b.post("act", again) // the person has signed in elsewhere, and presses the button
	again = formAt(t, page, "act", "action=pause")
	if resp.StatusCode != 403 || again == nil {
		t.Fatalf("%d\n%s", resp.StatusCode, page)
	}
	resp, page = b.post("act", again)
	if resp.Request.URL.String() != home+"queue" {
		t.Errorf("%s %d\n%s", resp.Request.URL, resp.StatusCode, page)
	}
	_, page = b.get("queue")
	if !strings.Contains(page, "The queue is paused") || !strings.Contains(page, "&lt;b&gt;") {
		t.Errorf("%s", page)
	}
}

// TestEndedInAProfile: all that was written into a long form can be sent again.
func TestEndedInAProfile(t *testing.T) {
	w := begin(t, false)
	b := w.as("alma")
	w.adminOf(b)
	_, err := w.api.PutCollection(t.Context(), "sample", v1.Profile{Title: "Maps", LegalHold: new("Case 17")})
	w.must(err)
	_, page := b.get("collections/sample")
	form := formAt(t, page, "profile")
	form.Set("title", "Maps and charts")
	form.Del("reason")
	jar := b.Jar
	b.Jar = w.browser().Jar
	resp, page := b.post("profile", form)
	again := formAt(t, page, "profile")
	if resp.StatusCode != 401 || again == nil {
		t.Fatalf("%d\n%s", resp.StatusCode, page)
	}
	b.Jar = jar
	_, page = b.post("profile", again)
	_, page = b.post("profile", formAt(t, page, "profile", "title=Maps and charts"))
	one, err := w.api.Collection(t.Context(), "sample")
	if err != nil || one.Profile.Title != "Maps and charts" || one.Profile.LegalHold == nil {
		t.Errorf("%+v, %v\n%s", one.Profile, err, page)
	}
}

// TestConfirmed: what loses something is not done by a form without the confirmation: it is shown, to be confirmed.
func TestConfirmed(t *testing.T) {
	w := begin(t, true)
	job := w.submit(w.file("sample", "none.txt", ""), v1.Failed)
	b := w.browser()
	_, page := b.get("jobs/" + job.ID)
	form := formAt(t, page, "act", "action=delete")
	form.Set("reason", "no longer wanted")
	form.Set("step", "do")
	form.Set("job", job.ID)
	form.Set("batch", job.Batch)
	for path, says := range map[string]string{"act": "Delete?", "selected": "Delete 1 job?",
		"operations": "Preview: delete"} {
		_, page := b.post(path, form)
		now, err := w.api.Job(t.Context(), job.ID)
		if err != nil || now.State != v1.Failed || !strings.Contains(page, says) {
			t.Errorf("%s without a confirmation: %s, %v\n%s", path, now.State, err, page)
		}
	}
	if _, page := b.get(""); !strings.Contains(page, "jobs?message=Not&#43;Found.") {
		t.Errorf("the first page does not lead to the jobs with this cause:\n%s", page)
	}
	form.Set("confirm", "yes")
	b.post("act", form)
	if now, err := w.api.Job(t.Context(), job.ID); err != nil || now.State != v1.Deleted {
		t.Errorf("confirmed: %s, %v", now.State, err)
	}
}

// TestEndedInAForm: a form of a page that is sent by GET, as a search, leads to the sign-in when the session has ended.
// It does so without a redirect: a browser follows none from a form to the issuer (form-action).
func TestEndedInAForm(t *testing.T) {
	w := begin(t, false)
	resp, page := w.browser().still().get("search?q=a+%26+b", "Sec-Fetch-Site", "same-origin")
	to := "./sign-in?to=search%3Fq%3Da%2B%2526%2Bb"
	if resp.StatusCode != 401 || resp.Header.Get("Location") != "" || resp.Header.Get("Refresh") != "0; url="+to ||
		!strings.Contains(page, `href="./sign-in?to=search%3fq%3da%2b%2526%2bb"`) {
		t.Errorf("%d %v\n%s", resp.StatusCode, resp.Header, page)
	}
	if resp, _ := w.browser().still().get("search?q=a", "Sec-Fetch-Site", "none"); resp.StatusCode != 303 {
		t.Errorf("an address that was typed: %d", resp.StatusCode)
	}
}

// TestForms: a form acts only if it was made for the session that sends it, and not for another site; and once.
func TestForms(t *testing.T) {
	w := begin(t, true)
	job := w.submit(w.file("sample", "none.txt", ""), v1.Failed)
	b, other := w.browser(), w.browser()
	_, page := b.get("jobs/" + job.ID)
	_, foreign := other.get("jobs/" + job.ID)
	form := formAt(t, page, "act", "action=requeue")
	form.Set("reason", "The source is back")
	form.Set("step", "do")
	good := form.Get("form")
	others := formAt(t, foreign, "act", "action=requeue").Get("form")
	requeued := func() (n int) {
		events, err := w.api.Events(t.Context(), job.ID)
		w.must(err)
		for _, e := range events {
			if e.Type == "job.requeued" {
				n++
			}
		}
		return n
	}
	for what, token := range map[string]string{"missing": "", "wrong": "x.y",
		"without proof":      strings.Split(good, ".")[0],
		"of another browser": others, "with another name": "A" + good} {
		form.Set("form", token)
		if resp, page := b.post("act", form); resp.StatusCode != 403 || requeued() != 0 {
			t.Errorf("a token that is %s: %d\n%s", what, resp.StatusCode, page)
		}
	}
	form.Set("form", good)
	target := form.Get("target")
	for _, wrong := range []string{"operation:..", "job:.", "nothing:x", ""} {
		form.Set("target", wrong)
		if resp, page := b.post("act", form); resp.StatusCode != 422 || !strings.Contains(page, "nothing to act on") {
			t.Errorf("%q: %d\n%s", wrong, resp.StatusCode, page)
		}
	}
	form.Set("target", target)
	for _, header := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"},
		{"Origin", "https://evil.example"}} {
		resp, page := b.post("act", form, header...)
		if resp.StatusCode != 403 || requeued() != 0 || strings.Contains(page, "The source is back") {
			t.Errorf("%v: %d\n%s", header, resp.StatusCode, page)
		}
	}
	form.Set("step", "preview")
	if resp, page := b.post("act", form); resp.StatusCode != 200 || requeued() != 0 ||
		!strings.Contains(page, "continues at") {
		t.Errorf("a preview: %d\n%s", resp.StatusCode, page)
	}
	form.Set("step", "do")
	for range 3 { // a double click, and a reload
		resp, page := b.post("act", form)
		to := resp.Request.URL.String()
		if resp.StatusCode != 200 || to != home+"jobs/"+job.ID+"" || requeued() != 1 {
			t.Errorf("%s %d: it was requeued %d times\n%s", to, resp.StatusCode, requeued(), page)
		}
	}
}

// TestStart: a browser that opens the address of the API is led to the console; another client is not. The first page
// is the same with and without a slash at its end, and no page leads to the one with it.
func TestStart(t *testing.T) {
	w := begin(t, true)
	b := w.browser()
	at := "http://" + consoleHost + "/"
	resp, page := b.do(http.MethodGet, at, nil, "Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
	if resp.Request.URL.String() != start || !strings.Contains(page, "<h1><bdi>Home</bdi></h1>") {
		t.Errorf("%s\n%s", resp.Request.URL, page)
	}
	if resp, _ := b.do(http.MethodGet, at, nil, "Accept", "application/json"); resp.StatusCode != http.StatusNotFound ||
		resp.Request.URL.String() != at || resp.Header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("a client of the API: %d %v", resp.StatusCode, resp.Header)
	}
	for _, path := range []string{"", "jobs", "batches/X"} {
		for _, at := range []string{home + path, strings.TrimSuffix(home+path, "/")} {
			resp, page := b.do(http.MethodGet, at, nil)
			for n := range parsed(t, page).Descendants() {
				to, err := resp.Request.URL.Parse(attr(n, "href"))
				if n.DataAtom == atom.A && (err != nil || to.String() == home) {
					t.Errorf("%s leads to %s by %q, %v", at, to, attr(n, "href"), err)
				}
			}
		}
	}
}
