package console

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "archivist/pkg/api/v1"
)

// TestShown: invisible characters are seen; those of scripts that are written from right to left stay.
func TestShown(t *testing.T) {
	for in, want := range map[string]string{"plain": "plain", "a\u202eb": "a[U+202E]b", "a\x1b[1m": "a[U+001B][1m",
		"شكرا\u200f!": "شكرا\u200f!", "a\nb": "a\nb", "\u2067x": "[U+2067]x", "": ""} {
		if got := shown(in); got != want {
			t.Errorf("%q is shown as %q, want %q", in, got, want)
		}
	}
	if got := cut(strings.Repeat("ä", 200)); got != strings.Repeat("ä", 160)+"…" {
		t.Errorf("a long text: %q", got)
	}
}

// TestNumbers: numbers are for people.
func TestNumbers(t *testing.T) {
	for in, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1000: "-1,000", -100: "-100",
		1234567: "1,234,567"} {
		if got := number(in); got != want {
			t.Errorf("%d: %q", in, got)
		}
	}
	for in, want := range map[float64]string{0.44: "0.4 s", 12: "12 s", 185: "3 min 5 s", 7620: "2 h 7 min",
		273600: "3 d 4 h"} {
		if got := seconds(in); got != want {
			t.Errorf("%f: %q", in, got)
		}
	}
	if got := utc("2026-11-30T09:30:00.250Z"); got != "2026-11-30 09:30:00 UTC" {
		t.Error(got)
	}
}

// TestQuoted: a command can be pasted into a shell, whatever its arguments are.
func TestQuoted(t *testing.T) {
	for in, want := range map[string]string{"maps": "maps", "": "''", "a b": "'a b'", "$(rm)": "'$(rm)'",
		"it's": `'it'\''s'`, "ark:/99999/fk4": "ark:/99999/fk4"} {
		if got := quoted(in); got != want {
			t.Errorf("%q: %s", in, got)
		}
	}
}

// TestCookies: outside of a local stack, cookies need https, are of this host only, and no script reads them.
func TestCookies(t *testing.T) {
	for local, want := range map[bool]string{true: "archivist=x; Path=/; Max-Age=3600; HttpOnly; SameSite=Lax",
		false: "__Host-archivist=x; Path=/; Max-Age=3600; HttpOnly; Secure; SameSite=Lax"} {
		w := httptest.NewRecorder()
		c := cookies{w: w, r: httptest.NewRequest(http.MethodGet, "/console/", nil), local: local}
		c.set(sessionCookie, "x", time.Hour)
		if got := w.Header().Get("Set-Cookie"); got != want {
			t.Errorf("%s", got)
		}
	}
}

// TestFormKey: only the session for which a form was made knows its token.
func TestFormKey(t *testing.T) {
	token := newForm("mine")
	key, ok := formKey("mine", token)
	if !ok || len(key) < 20 || key == token {
		t.Errorf("%q of %q", key, token)
	}
	name, mac, _ := strings.Cut(token, ".")
	for session, other := range map[string]string{"theirs": token, "": token, "mine": name, "mine ": "x." + mac} {
		if _, ok := formKey(session, other); ok {
			t.Errorf("%q is a form of %q", other, session)
		}
	}
	if _, ok := formKey("", "."+proof("", "")); ok {
		t.Error("nobody has forms")
	}
}

// TestWay: the states of a job are in their order, and where it stopped is after what it has done.
func TestWay(t *testing.T) {
	for _, row := range []struct {
		job  v1.Job
		want string
	}{
		{v1.Job{State: v1.Downloading, Stages: []v1.JobStage{{State: v1.Pending}, {State: v1.Estimating},
			{State: v1.Provisioning}, {State: v1.Downloading}}}, "done done done now ahead ahead ahead ahead ahead"},
		{v1.Job{State: v1.Failed, Stages: []v1.JobStage{{State: v1.Pending}, {State: v1.Estimating},
			{State: v1.Failed}}},
			"done done aside ahead ahead ahead ahead ahead ahead ahead"},
		{v1.Job{State: v1.Held, Stages: []v1.JobStage{{State: v1.Held}}},
			"aside ahead ahead ahead ahead ahead ahead ahead ahead ahead"},
	} {
		var classes []string
		for _, s := range wayOf(row.job) {
			classes = append(classes, s.Class)
		}
		if got := strings.Join(classes, " "); got != row.want {
			t.Errorf("%s: %s", row.job.State, got)
		}
	}
}

// TestRate: how long a batch will take is told while it works, and only if something has ended.
func TestRate(t *testing.T) {
	v := &visit{now: time.Date(2026, 11, 30, 10, 10, 0, 0, time.UTC)}
	b := batch{Batch: v1.Batch{State: v1.Processing, Created: "2026-11-30T10:00:00Z", Counts: v1.Counts{Expected: 40}}}
	b.rate(v)
	if b.Rate != 0 || b.Left != 0 {
		t.Errorf("%+v", b)
	}
	b.Ended = 20
	b.rate(v)
	if b.Rate != 2 || b.Left != 600 {
		t.Errorf("%f a minute, %f s left", b.Rate, b.Left)
	}
}

// TestWithin: only addresses in the console are come back to.
func TestWithin(t *testing.T) {
	for to, want := range map[string]bool{"": true, "jobs": true, "jobs?state=Held": true, "batches/X": true,
		"/jobs": false, "//evil": false, "https://evil": false, "javascript:x": false, "../x": false,
		"a/../../x": false,
		"%2e%2e/x":  false, "\\evil": false, "a\nb": false, "./x": false, strings.Repeat("x", 3000): false} {
		if got := within(to); (got == to) != want || got != "" && got != to {
			t.Errorf("%.50q: %q", to, got)
		}
	}
}

// TestDidIsNotGiven: an address that somebody gave cannot claim that something was done.
func TestDidIsNotGiven(t *testing.T) {
	for to, want := range map[string]string{"queue?did=pause": "queue",
		"jobs?did=pause&state=Held": "jobs?state=Held"} {
		if got := within(to); got != want {
			t.Errorf("%q: %q, expected %q", to, got, want)
		}
	}
}

// TestBase: addresses are relative to the page, so that no path of a gateway is in them.
func TestBase(t *testing.T) {
	for path, want := range map[string]string{"/console": "console/", "/console/": "./", "/console/jobs": "./",
		"/console/jobs/X": "./../", "/console/a/b/c": "./../../"} {
		if got := baseOf(httptest.NewRequest(http.MethodGet, path, nil)); got != want {
			t.Errorf("%s: %s", path, got)
		}
	}
}

// TestPlaceOfForm: what a form of a thing leads to belongs to the place of the thing.
func TestPlaceOfForm(t *testing.T) {
	at := func(path string, form url.Values) string {
		v := &visit{Request: httptest.NewRequest(http.MethodGet, "/console/"+path, nil)}
		v.PostForm = form
		return v.at()
	}
	for path, want := range map[string]string{"deed": "deed", "deed?kind=none": "deed", "deed?kind=item": "components",
		"deed?kind=task": "archives", "correct": "objects", "zip": "objects", "profile": "collections",
		"selected": "jobs", "objects/1/2/correct": "objects", "": "", "act": "act"} {
		if got := at(path, nil); got != want {
			t.Errorf("%s: %q, expected %q", path, got, want)
		}
	}
	for target, want := range map[string]string{"job:X": "jobs", "storage": "queue", "none": "act"} {
		if got := at("act", url.Values{"target": {target}}); got != want {
			t.Errorf("%s: %q, expected %q", target, got, want)
		}
	}
	for kind := range deeds {
		got := at("deed", url.Values{"kind": {kind}})
		if !slices.ContainsFunc(places, func(p place) bool { return p.Path == got }) {
			t.Errorf("a deed on a %s belongs to %q, which is no place", kind, got)
		}
	}
}

// TestHomeUnread: what could not be read is said to be not known, and never to be nothing.
func TestHomeUnread(t *testing.T) {
	c := &Console{Local: true, Now: time.Now, Log: slog.New(slog.DiscardHandler),
		API: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v1/whoami" {
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write([]byte(`{"subject":"vera","grants":["viewer"]}`))
				return
			}
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte(`{"type":"urn:archivist:problem:unavailable","status":503,"detail":"not now"}`))
		})}
	w := httptest.NewRecorder()
	c.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/console/", nil))
	page := w.Body.String()
	if w.Code != http.StatusOK || strings.Count(page, "Not known: <bdi>") != 3 ||
		strings.Contains(page, "Nothing was submitted") || strings.Contains(page, "Nothing needs you") {
		t.Errorf("%d\n%s", w.Code, page)
	}
}

// TestStyles: each selector has one rule, beside those for some media, and fields of each kind
// have their label above: a rule that is defined again elsewhere draws what nobody wanted. Charts
// are scaled, so they have no text.
func TestStyles(t *testing.T) {
	data, err := os.ReadFile("assets/console.css")
	if err != nil {
		t.Fatal(err)
	}
	const one = `[^{}]*\{[^{}]*\}` // a rule
	plain := regexp.MustCompile(`(?s)/\*.*?\*/|@media[^{]*\{(\s*(@keyframes[^{]*\{`+one+
		`\s*\}|`+one+`))*\s*\}`).ReplaceAll(data, nil)
	seen := map[string]bool{}
	for _, rule := range regexp.MustCompile(`([^{}]+)\{[^{}]*\}`).FindAllSubmatch(plain, -1) {
		selector := strings.Join(strings.Fields(string(rule[1])), " ")
		if seen[selector] {
			t.Errorf("%s has two rules", selector)
		}
		seen[selector] = true
	}
	if len(seen) < 100 || !seen[".stack label:has(+ input, + select, + textarea), .actions label"] {
		t.Errorf("%d selectors: %v", len(seen), seen)
	}
	shared, err := os.ReadFile("templates/shared.html")
	if err != nil {
		t.Fatal(err)
	}
	chart, _, _ := strings.Cut(string(shared)[strings.Index(string(shared),
		`{{define "chart"}}`):], "</svg>")
	if strings.Contains(chart, "<text") {
		t.Errorf("a chart has text, which is scaled with it:\n%s", chart)
	}
}

// TestTitles: numbers in titles are in the order of their values.
func TestTitles(t *testing.T) {
	for _, pair := range [][2]string{{"episode 9", "episode 10"}, {"Part2", "part 10"}, {"a", "b"},
		{"a", "a 1"}} {
		if compareTitles(pair[0], pair[1]) >= 0 || compareTitles(pair[1], pair[0]) <= 0 {
			t.Errorf("%q is not before %q", pair[0], pair[1])
		}
	}
}

// TestEarlierReports: the page of a batch leads to the newest reports and to the first, and to the
// others by a form.
func TestEarlierReports(t *testing.T) {
	for n, want := range map[int]string{0: "[] false", 1: "[] false", 2: "[1] false",
		12: "[11 10 9 8 7 6 5 4 3 2 1] false", 13: "[12 11 10 9 8 7 6 5 4 3 1] true"} {
		b := batch{Batch: v1.Batch{Reports: n}}
		b.reports()
		if got := fmt.Sprint(b.Earlier, b.AnyReport); got != want {
			t.Errorf("%d reports: %s", n, got)
		}
	}
}

// TestNoticesInOrder: callbacks that need a person come first, and what is left out is counted.
func TestNoticesInOrder(t *testing.T) {
	jobs := make([]v1.Job, 12)
	for i := range jobs {
		jobs[i] = v1.Job{ID: fmt.Sprint(i), Callbacks: []v1.Notice{{State: v1.NoticeDelivered},
			{State: v1.NoticeGivenUp}}}
	}
	jobs[9].Callbacks[1].State = v1.NoticeFailed
	b := batch{Batch: v1.Batch{Mails: []v1.Notice{{Kind: "report"}}}}
	b.notices(jobs)
	if len(b.Notices) != 21 || b.Unshown != 4 || b.Notices[0].Kind != "report" || b.Notices[1].Job != "9" ||
		b.Notices[2].Job != "0" || b.Notices[13].State != v1.NoticeDelivered {
		t.Errorf("%d more than %+v", b.Unshown, b.Notices)
	}
}
