package console_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// roleRow is a page with what each role gets: the status and the deeds that are offered, by alma (administrator), otto
// (operator), vera (viewer), dora (depositor of sample) and nora (no role).
type roleRow struct {
	path   string
	status [5]int
	deeds  [5]string
}

// usual are the statuses of a page that viewers see.
var usual = [5]int{200, 200, 200, 403, 403}

// deedsIn are the deeds that a page offers, as forms or as links to forms.
func deedsIn(t *testing.T, page string) string {
	t.Helper()
	var all []string
	for n := range parsed(t, page).Descendants() {
		if n.Data == "input" && attr(n, "name") == "deed" {
			all = append(all, attr(n, "value"))
		}
		if to := attr(n, "href"); strings.Contains(to, "deed?") {
			u, err := url.Parse(to)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, u.Query().Get("deed"))
		}
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), " ")
}

// roles compares what each role gets with a table. What is not offered is refused, too.
func (w *world) roles(rows []roleRow) {
	w.Helper()
	for _, row := range rows {
		for i, user := range []string{"alma", "otto", "vera", "dora", "nora"} {
			resp, page := w.signed(user).get(row.path)
			if resp.StatusCode != row.status[i] {
				w.Errorf("%s: %s gets %d, want %d", row.path, user, resp.StatusCode, row.status[i])
			}
			if has := deedsIn(w.T, page); has != row.deeds[i] && resp.StatusCode == 200 {
				w.Errorf("%s: %s is offered %q, want %q", row.path, user, has, row.deeds[i])
			}
		}
	}
}

// denied sends the form of a deed by those who may not do it.
func (w *world) denied(kind, deed string, ids, users []string, fields ...string) {
	w.Helper()
	for _, user := range users {
		b := w.signed(user)
		_, page := b.get("")
		form := url.Values{"form": {formAt(w.T, page, "sign-out").Get("form")}, "kind": {kind},
			"deed": {deed},
			"id":   ids, "reason": {"I may not"}, "step": {"do"}, "sure": {"yes"}}
		for i := 0; i+1 < len(fields); i += 2 {
			form.Set(fields[i], fields[i+1])
		}
		if resp, text := b.post("deed", form); resp.StatusCode != 403 {
			w.Errorf("%s may %s a %s: %d\n%.2000s", user, deed, kind, resp.StatusCode, text)
		}
	}
}

// do sends the form of a deed that a page offers, confirms it if it has to be, and returns the page to which it leads,
// below /console/.
func (b *browser) doDeed(page, deed string, fields ...string) (at, text string) {
	b.Helper()
	form := formAt(b.T, page, "deed", "deed="+deed)
	if form == nil {
		b.Fatalf("%s is not offered:\n%s", deed, page)
	}
	for i := 0; i+1 < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	form.Set("reason", "It has to be")
	form.Set("step", "try")
	resp, text := b.post("deed", form)
	wrong := strings.Contains(text, `id="wrong"`)
	if sure := formAt(b.T, text, "deed"); sure != nil && !wrong && resp.Request.URL.String() == home+"deed" {
		sure.Set("step", "do")
		if strings.Contains(text, "This cannot be undone") {
			if _, again := b.post("deed", sure); !strings.Contains(again, "This cannot be undone") {
				b.Errorf("%s is done without a confirmation:\n%s", deed, again)
			}
			sure.Set("sure", "yes")
		}
		resp, text = b.post("deed", sure)
	}
	return strings.TrimPrefix(resp.Request.URL.String(), home), text
}

// rowDeed is the form of a deed to which a row of a page links.
func (b *browser) rowDeed(page, deed string) string {
	b.Helper()
	for n := range parsed(b.T, page).Descendants() {
		if to := attr(n, "href"); strings.Contains(to, "deed?") && strings.Contains(to, "deed="+deed+"&") {
			_, text := b.get(to[strings.Index(to, "deed?"):])
			return text
		}
	}
	b.Fatalf("%s is not offered:\n%s", deed, page)
	return ""
}

// plain fails for pages that show stored text as anything but text, or that nothing of it is on.
func (b *browser) plain(paths ...string) {
	b.Helper()
	for _, path := range paths {
		resp, page := b.get(path)
		if resp.StatusCode != 200 || !strings.Contains(page, "evil-tag") {
			b.Errorf("%s: %d, and nothing of what was stored is shown", path, resp.StatusCode)
		}
		harmless(b.T, path, page)
		for n := range parsed(b.T, page).Descendants() {
			if n.Type == html.TextNode && strings.Contains(n.Data, "\u202e") {
				b.Errorf("%s turns the direction of what follows: %q", path, n.Data)
			}
		}
	}
}

// light fails for pages that cost too many calls of the table, or too many bytes.
func (w *world) light(most map[string]int) {
	w.Helper()
	b := w.browser()
	for path, n := range most {
		calls := w.TableCalls("api")
		resp, page := b.get(path)
		if has := calls(); has > n || resp.StatusCode != 200 || b.packed > 100<<10 {
			w.Errorf("%q: %d calls, at most %d; %d bytes; status %d", path, has, n, b.packed,
				resp.StatusCode)
		} else {
			w.Logf("%q: %d calls, %d bytes compressed of %d", path, has, b.packed, len(page))
		}
	}
}
