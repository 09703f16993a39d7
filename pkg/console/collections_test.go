package console_test

import (
	"strings"
	"testing"

	"golang.org/x/net/html"

	v1 "archivist/pkg/api/v1"
)

// TestCollection: a collection shows its counts by day, and is held and released.
func TestCollection(t *testing.T) {
	w := begin(t, true)
	w.submit(w.file("sample", "a.txt", "one"), v1.Completed)
	b, page := w.browser(), ""
	w.until("it is counted", func() bool {
		_, page = b.get("collections/sample")
		return strings.Contains(page, "<rect ")
	})
	for _, says := range []string{"Versions stored by day, at most 1", "archivist collection show sample",
		"By default it depends on the size of the batch"} {
		if !strings.Contains(page, says) {
			t.Errorf("the page does not say %q\n%s", says, page)
		}
	}
	if _, list := b.get("collections"); !strings.Contains(list, "collections/sample") {
		t.Errorf("the list:\n%s", list)
	}
	for _, action := range []string{"hold", "release"} {
		form := formAt(t, page, "act", "action="+action)
		if form == nil {
			t.Fatalf("%s is not offered\n%s", action, page)
		}
		form.Set("reason", "Rights")
		form.Set("step", "do")
		_, page = b.post("act", form)
	}
	one, err := w.api.Collection(t.Context(), "sample")
	if err != nil || one.Hold != nil {
		t.Errorf("after hold and release: %+v, %v", one.Hold, err)
	}
}

// TestProfile: the form has what the profile has, keeps what is refused, and overwrites no other change.
func TestProfile(t *testing.T) {
	w := begin(t, true)
	_, err := w.api.PutCollection(t.Context(), "sample", v1.Profile{Title: "Maps", RequireDigest: true,
		Notification: []string{"a@example.org", "b@example.org"},
		Sources: &v1.Sources{Credentials: []v1.Credential{
			{Host: "x.example.org", Secret: "archivist/sources/x"}}}})
	w.must(err)
	b := w.browser()
	_, page := b.get("collections/sample")
	form := formAt(t, page, "profile")
	form.Set("notification", "a@example.org\r\nb@example.org")
	form.Set("requireDigest", "yes")
	form.Set("sources.credentials", `{"host":"x.example.org","secret":"archivist/sources/x"}`)
	form.Set("priority", "soon")
	resp, page := b.post("profile", form)
	if resp.StatusCode != 422 || !strings.Contains(page, `value="soon"`) || !strings.Contains(page, "whole number") {
		t.Fatalf("a wrong priority: %d\n%s", resp.StatusCode, page)
	}
	form.Set("priority", "7")
	form.Set("callback.url", "nowhere")
	form.Set("callback.secret", "archivist/callback")
	resp, page = b.post("profile", form)
	if resp.StatusCode != 422 || !strings.Contains(page, `value="nowhere"`) ||
		!strings.Contains(page, `class="wrong"`) && !strings.Contains(page, "note bad") {
		t.Errorf("a wrong callback: %d\n%s", resp.StatusCode, page)
	}
	form.Del("callback.url")
	form.Del("callback.secret")
	resp, page = b.post("profile", form)
	if !strings.HasSuffix(resp.Request.URL.String(), "collections/sample") {
		t.Fatalf("%s %d\n%s", resp.Request.URL, resp.StatusCode, page)
	}
	one, err := w.api.Collection(t.Context(), "sample")
	p := one.Profile
	if err != nil || p.Title != "Maps" || !p.RequireDigest || len(p.Notification) != 2 || *p.Priority != 7 ||
		p.Callback != nil || p.Sources.Credentials[0].Host != "x.example.org" {
		t.Errorf("%+v, %v", p, err)
	}
	form.Set("title", "Other")
	if resp, page := b.post("profile", form); resp.StatusCode != 409 || !strings.Contains(page, "by somebody else") ||
		!strings.Contains(page, `value="Other"`) {
		t.Errorf("an old form: %d\n%s", resp.StatusCode, page)
	}
}

// TestProfileOvertaken: of a profile that somebody else has changed meanwhile, what is stored now
// stands beside each field that was changed here, and only there; what was written stays, and is
// saved when it is sent again. What only they have changed is in the form, says what it was, and
// stays.
func TestProfileOvertaken(t *testing.T) {
	w := begin(t, true)
	mails := []string{"a@example.org", "b@example.org"}
	_, err := w.api.PutCollection(t.Context(), "sample", v1.Profile{Title: "Maps",
		Notification: mails})
	w.must(err)
	b := w.browser()
	_, page := b.get("collections/sample")
	form := formAt(t, page, "profile")
	form.Set("title", "Mine")
	form.Set("notification", "a@example.org\r\nb@example.org")
	_, err = w.api.PutCollection(t.Context(), "sample", v1.Profile{Title: evil, RequireDigest: true,
		Notification: mails})
	w.must(err)

	resp, page := b.post("profile", form)
	harmless(t, "overtaken", page)
	beside := map[string]string{}
	for n := range parsed(t, page).Descendants() {
		if attr(n, "class") != "differs" {
			continue
		}
		says := ""
		for c := range n.Descendants() {
			if c.Type == html.TextNode {
				says += c.Data
			}
		}
		for f := range n.Parent.Descendants() {
			if name := attr(f, "name"); name != "" && attr(f, "type") != "hidden" {
				beside[name] = says
				if !strings.Contains(attr(f, "aria-describedby"), attr(n, "id")) {
					t.Errorf("%s is not described by what is stored", name)
				}
			}
		}
	}
	if resp.StatusCode != 409 || len(beside) != 2 || !strings.Contains(beside["title"], "<evil-tag") ||
		!strings.Contains(beside["title"], "Somebody else has changed it, too. Stored now: ") ||
		beside["requireDigest"] != "Somebody else has changed it meanwhile. It was: no" ||
		!strings.Contains(page, `value="Mine"`) || !strings.Contains(page, "1 field differs") ||
		!strings.Contains(page, "1 field has their value now") ||
		!strings.Contains(page, `name="requireDigest" value="yes" checked`) {
		t.Fatalf("%d %q\n%s", resp.StatusCode, beside, page)
	}
	form = formAt(t, page, "profile")
	form.Set("requireDigest", "yes") // as the page has it
	form.Set("notification", "a@example.org\r\nb@example.org")
	resp, page = b.post("profile", form)
	one, err := w.api.Collection(t.Context(), "sample")
	if err != nil || one.Profile.Title != "Mine" || !one.Profile.RequireDigest ||
		len(one.Profile.Notification) != 2 {
		t.Errorf("%d %+v, %v\n%s", resp.StatusCode, one.Profile, err, page)
	}
}
