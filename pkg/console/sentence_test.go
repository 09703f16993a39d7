package console_test

import (
	"strings"
	"testing"

	"golang.org/x/net/html"
	"pgregory.net/rapid"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/console"
)

// TestSentence: a time in a sentence is an element with its value, and all else stays text. What
// only contains a time, as an address does, and what only looks like one, are no times.
func TestSentence(t *testing.T) {
	const marked = `<time datetime="2026-11-30T13:54:01Z">2026-11-30 13:54:01 UTC</time>`
	for text, want := range map[string]string{
		"paused since 2026-11-30T13:54:01Z":          "paused since " + marked,
		"2026-11-30T13:54:01Z, or later":             marked + ", or later",
		"(since 2026-11-30T13:54:01Z)…":              "(since " + marked + ")…",
		"at 2026-11-30T14:54:01+01:00.":              "at " + marked + ".",
		"<b>2026-11-30T13:54:01Z</b>":                "&lt;b&gt;2026-11-30T13:54:01Z&lt;/b&gt;",
		`"2026-11-30T13:54:01Z" & more`:              "&#34;" + marked + "&#34; &amp; more",
		"2026-11-30T13:54:01Z 2026-11-30T13:54:01Z":  marked + " " + marked,
		"https://example.org/2026-11-30T13:54:01Z/a": "https://example.org/2026-11-30T13:54:01Z/a",
		"time:2026-11-30T13:54:01Z":                  "time:2026-11-30T13:54:01Z",
		"2026-11-30T13:54:01Z/a.pdf":                 "2026-11-30T13:54:01Z/a.pdf",
		"on 2026-13-30T13:54:01Z":                    "on 2026-13-30T13:54:01Z",
		"a time, e.g. 2026-11-30T13:54:01Z":          "a time, e.g. 2026-11-30T13:54:01Z",
		"on 2026-11-30T13:54:01":                     "on 2026-11-30T13:54:01",
		"":                                           "",
		"\u202e at 2026-11-30T13:54:01Z":             "[U+202E] at " + marked,
	} {
		if got := string(console.Sentence(text)); got != want {
			t.Errorf("%q: %s; expected %s", text, got, want)
		}
	}
	long := strings.Repeat("long ", 40)
	if got := string(console.Brief(long + "2026-11-30T13:54:01Z")); got != long[:160]+"…" {
		t.Errorf("a list shows %q", got)
	}
}

// TestSentenceIsText: whatever a text has, its elements are times, with a value and no other
// attribute, and what one reads is the text but for the form of the times.
func TestSentenceIsText(t *testing.T) {
	parts := []string{"2026-11-30T13:54:01Z", " ", `"`, "'", "<", ">", "&", "<time datetime=",
		"</time>", "<script>", "onload=", "&#60;", "-->", "]]>", "(", "a"}
	times := 0
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 0, 12).Draw(t, "parts"), "")
		root, err := html.Parse(strings.NewReader("<p>" + string(console.Sentence(text)) + "</p>"))
		if err != nil {
			t.Fatal(err)
		}
		var read strings.Builder
		for n := range root.Descendants() {
			switch {
			case n.Type == html.TextNode && n.Parent.Data == "time":
				times++
				read.WriteString(attr(n.Parent, "datetime"))
			case n.Type == html.TextNode:
				read.WriteString(n.Data)
			case n.Type != html.ElementNode:
				t.Fatalf("%q has a node of another kind: %q", text, n.Data)
			case n.Data == "time" && len(n.Attr) == 1 && n.Attr[0].Key == "datetime":
			case !strings.Contains(" html head body p ", " "+n.Data+" ") || len(n.Attr) > 0:
				t.Fatalf("%q has the element %s %v", text, n.Data, n.Attr)
			}
		}
		if read.String() != text {
			t.Fatalf("%q is read as %q", text, read.String())
		}
	})
	if times == 0 {
		t.Error("no text had a time: nothing was tested")
	}
}

// TestTimesInSentences: a time that somebody has written into a reason, and one that a service
// has put into an explanation, are elements on the pages; and what else is in the reason is
// text.
func TestTimesInSentences(t *testing.T) {
	w := begin(t, true)
	b := w.browser()
	_, err := call(w, "/v1/queue/actions", v1.Action{Action: "pause",
		Reason: evil + " until 2031-01-02T03:04:05Z"})
	w.must(err)
	const marked = `<time datetime="2031-01-02T03:04:05Z">2031-01-02 03:04:05 UTC</time>`
	for _, path := range []string{"", "queue"} {
		_, page := b.get(path)
		if !strings.Contains(page, "until "+marked) || !strings.Contains(page, "&lt;evil-tag") {
			t.Errorf("%q:\n%s", path, page)
		}
		harmless(t, path, page)
	}
	out, err := w.api.Submit(t.Context(), w.file("sample", "here.txt", "content"), "")
	w.must(err)
	var jobs []v1.Job
	w.until("it has a job that waits", func() bool {
		jobs, err = w.api.Jobs(t.Context(), v1.Filter{Batch: out.ID, State: v1.Pending})
		w.must(err)
		return len(jobs) > 0
	})
	_, page := b.get("jobs/" + jobs[0].ID)
	found := ""
	for n := range parsed(t, page).Descendants() {
		if n.Data == "time" && n.PrevSibling != nil && strings.Contains(n.PrevSibling.Data, "since") &&
			strings.Contains(n.PrevSibling.Data, "paused") {
			found = attr(n, "datetime")
		}
	}
	if found == "" {
		t.Errorf("the explanation has no time of its own:\n%s", page)
	}
	left, err := console.UnmarkedSentences()
	if err != nil || len(left) > 0 {
		t.Errorf("%v; times in these stay as they are: use sentence or brief: %q", err, left)
	}
}

// TestTimesInDetails: a time that a detail has as a number is one for people; other numbers stay.
func TestTimesInDetails(t *testing.T) {
	got := console.Detail([]byte(`{"started": 1796073930112, "bytes": 1796073930112, "at": 5, "until": "now"}`))
	if want := "started 2026-11-30T21:25:30Z · bytes 1796073930112 · at 5 · until now"; got != want {
		t.Errorf("found %q; expected %q", got, want)
	}
}
