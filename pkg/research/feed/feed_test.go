package feed

import (
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"

	"archivist/pkg/kernel/fault"
)

// today is a fixed time.
var today = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func at(text string) int64 {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return t.UnixMilli()
}

// TestFormats: what stands in a feed of each format.
func TestFormats(t *testing.T) {
	for file, want := range map[string]Look{
		"podcast.rss": {Entries: []Entry{
			{"https://show.example.org/media/1.MP3", "Episode 1", "https://show.example.org/media/1.MP3",
				at("2026-11-03T13:30:00-05:00")},
			{"show-0", "In a group", "https://cdn.example.org/0.ogg", at("2026-10-01T12:00:00Z")},
			{"show-2", "Episode 2: Cats & dogs", "https://cdn.example.org/2.mp3?a=1&b=2",
				at("2026-11-10T08:30:00-05:00")},
		}, Skipped: []Skipped{
			{"it has no recording: no enclosure that is audio", 2, "Announcement"},
			{"the address of its recording is no http or https address without a password", 2, "No web address"},
		}},
		"podcast.atom": {Entries: []Entry{
			{"urn:2", "Updated only", "https://cdn.example.org/2.wav", at("2026-11-01T00:00:00Z")},
			{"urn:uuid:1225c695-cfb8-4ebb-aaaa-80da344efa6a", "Café au lait",
				"https://show.example.org/feeds/atom/1.flac", at("2026-11-13T17:30:02Z") + 250},
		}},
		"podcast.rdf": {Entries: []Entry{
			{"https://show.example.org/1", "Episode 1", "https://cdn.example.org/1.mp3", at("2026-11-03T00:00:00Z")},
		}},
	} {
		f, err := os.Open("testdata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Parse(iotest.OneByteReader(f), "https://show.example.org/rss", today)
		_ = f.Close()
		if err != nil || !reflect.DeepEqual(want, got) {
			t.Errorf("%s: %v\n%+v\n%+v", file, err, got, want)
		}
	}
}

// rss is a feed of those items.
func rss(items ...string) string {
	return `<rss version="2.0"><channel><title>t</title>` + strings.Join(items, "\n") + `</channel></rss>`
}

// item is an entry of an RSS feed.
func item(id, title, url, date string) string {
	return fmt.Sprintf(`<item><guid>%s</guid><title>%s</title><enclosure url="%s" type="audio/mpeg"/>`+
		`<pubDate>%s</pubDate></item>`, id, title, url, date)
}

func parse(t *testing.T, text string) (Look, error) {
	t.Helper()
	return Parse(strings.NewReader(text), "https://example.org/feed", today)
}

// TestOrderOfEntries: the order of entries does not matter, nor does a repetition.
func TestOrderOfEntries(t *testing.T) {
	items := []string{
		item("a", "old", "https://x.org/a.mp3", "1 Nov 2026 10:00:00 GMT"),
		item("a", "new", "https://x.org/a2.mp3", "2 Nov 2026 10:00:00 GMT"),
		item("b", "same date", "https://x.org/1.mp3", "2 Nov 2026 10:00:00 GMT"),
		item("b", "same date", "https://x.org/2.mp3", "2 Nov 2026 10:00:00 GMT"),
		item("", "z", "ftp://x.org/1.mp3", ""), item("", "y", "ftp://x.org/1.mp3", ""),
	}
	want, err := parse(t, rss(items...))
	if err != nil || len(want.Entries) != 2 || want.Entries[0].Title != "new" ||
		want.Entries[1].URL != "https://x.org/2.mp3" {
		t.Fatalf("%+v, %v", want, err)
	}
	if s := want.Skipped; len(s) != 2 || s[0].Count != 2 || s[1].Count != 2 || s[1].First != "y" {
		t.Errorf("skipped: %+v", s)
	}
	slices.Reverse(items)
	got, err := parse(t, rss(items...))
	if err != nil || !slices.Equal(got.Entries, want.Entries) {
		t.Errorf("in reverse: %+v, %v", got, err)
	}
}

// TestEntryLimits: ids and addresses are whole or refused, titles are shortened, dates are sane.
func TestEntryLimits(t *testing.T) {
	long := strings.Repeat("é", 300)
	for _, c := range []struct {
		name, item, reason string
		want               Entry
	}{
		{"the longest id", item(long, "t", "https://x.org/a.mp3", ""), "",
			Entry{long, "t", "https://x.org/a.mp3", 0}},
		{"a longer id", item(long+"é", "t", "https://x.org/a.mp3", ""),
			"its id is longer than 300 characters", Entry{}},
		{"an id without end", item(strings.Repeat("i", 100_000), "t", "https://x.org/a.mp3", ""),
			"its id is longer than 300 characters", Entry{}},
		{"an id with control characters", item("a&#x9b;b", "t", "https://x.org/a.mp3", ""),
			"its id has control characters", Entry{}},
		{"a long address", item("a", "t", "https://x.org/"+strings.Repeat("a", 2048), ""),
			"the address of its recording is longer than 2048 bytes", Entry{}},
		{"a long title", item("a", long+"é", "https://x.org/a.mp3", ""), "",
			Entry{"a", strings.Repeat("é", 299) + "…", "https://x.org/a.mp3", 0}},
		{"a title of lines", item("a", "one\n  two&#x9b;\t three", "https://x.org/a.mp3", ""), "",
			Entry{"a", "one two three", "https://x.org/a.mp3", 0}},
		{"control characters that XML does not have", item("a", "one\x03\x1btwo", "https://x.org/a.mp3", ""), "",
			Entry{"a", "onetwo", "https://x.org/a.mp3", 0}},
		{"a date before 1970", item("a", "t", "https://x.org/a.mp3", "1 Jan 1950 00:00:00 GMT"), "",
			Entry{"a", "t", "https://x.org/a.mp3", 0}},
		{"a day ahead", item("a", "t", "https://x.org/a.mp3", "23 Nov 2026 12:00:00 GMT"), "",
			Entry{"a", "t", "https://x.org/a.mp3", at("2026-11-23T12:00:00Z")}},
		{"more than a day ahead", item("a", "t", "https://x.org/a.mp3", "23 Nov 2026 12:00:01 GMT"), "",
			Entry{"a", "t", "https://x.org/a.mp3", 0}},
		{"no date", item("a", "t", "https://x.org/a.mp3", "yesterday"), "", Entry{"a", "t", "https://x.org/a.mp3", 0}},
		{"an entity of HTML, and one that is none", item("a", "x&nbsp;y &c", "https://x.org/a.mp3", ""), "",
			Entry{"a", "x y &c", "https://x.org/a.mp3", 0}},
		{"no id", item("", "t", "https://x.org/a.mp3", ""), "",
			Entry{"https://x.org/a.mp3", "t", "https://x.org/a.mp3", 0}},
		{"an address that is none", item("a", "t", "https://x.org/%zz.mp3", ""),
			"it has no recording: no enclosure that is audio", Entry{}},
	} {
		got, err := parse(t, rss(c.item))
		switch {
		case err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.reason != "":
			if len(got.Entries) != 0 || len(got.Skipped) != 1 || got.Skipped[0].Reason != c.reason {
				t.Errorf("%s: %+v", c.name, got)
			}
		case !slices.Equal(got.Entries, []Entry{c.want}) || (c.want.Published == 0) != (got.Undated == 1):
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

// TestUTF16: a feed in UTF-16 says the same as in UTF-8, in both orders of bytes, with and without a mark; and so
// does one that only claims to be in UTF-16.
func TestUTF16(t *testing.T) {
	declared := func(name string) string {
		return `<?xml version="1.0" encoding="` + name + `"?>` +
			rss(item("é1", "Žluťoučký 猫 🎵", "https://x.org/a.mp3", "Tue, 03 Nov 2026 13:30:00 -0500"))
	}
	want := Entry{"é1", "Žluťoučký 猫 🎵", "https://x.org/a.mp3", at("2026-11-03T13:30:00-05:00")}
	for name, of := range map[string]encoding.Encoding{
		"UTF-16":   unicode.UTF16(unicode.BigEndian, unicode.UseBOM),
		"utf-16":   unicode.UTF16(unicode.LittleEndian, unicode.UseBOM),
		"UTF-16BE": unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM),
		"UTF-16LE": unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM),
		"UTF-8":    unicode.UTF8BOM,
		"Utf-16":   encoding.Nop,
	} {
		text, err := of.NewEncoder().String(declared(name))
		if err != nil {
			t.Fatal(err)
		}
		got, err := Parse(iotest.OneByteReader(strings.NewReader(text)), "", today)
		if err != nil || !slices.Equal(got.Entries, []Entry{want}) {
			t.Errorf("%s (%x…): %v, %+v", name, text[:4], err, got)
		}
	}
}

// TestRefused: what is no feed, or would cost too much, is refused as a whole, with the line.
func TestRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                                 "it has no XML element",
		"hello":                            "it has no XML element",
		"<html><body>Not found</body>":     `its root element is "html"`,
		rss(item("a", "b", "c", "d"))[:90]: "unexpected EOF",

		"<rss>\n<channel>\n<item><title>\xff</title></item></channel></rss>": "line 3: invalid UTF-8",

		`<!DOCTYPE r [<!ENTITY a "b"><!ENTITY c "&a;&a;">]><rss><channel/></rss>`: "declares XML entities",

		`<?xml version="1.0" encoding="martian"?><rss/>`:    "martian",
		rss("<item><a>" + strings.Repeat("<b:c>", 100_000)): "nested more than 64 deep",
		"<rss><channel>" + strings.Repeat("<a>", 100_000):   "nested more than 64 deep",
		"<feed><entry><title>" + strings.Repeat("<b>", 70):  "nested more than 64 deep",
		rss(strings.Repeat("<item/>", MostEntries+1)):       "more than 10000 entries",
	} {
		got, err := parse(t, text)
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), want) || got.Entries != nil {
			t.Errorf("%.60q: %v, want %s", text, err, want)
		}
	}
	failed := errors.New("the connection broke")
	_, err := Parse(io.MultiReader(strings.NewReader(rss()[:30]), iotest.ErrReader(failed)), "", today)
	if !errors.Is(err, failed) || fault.Of(err) != "" {
		t.Errorf("an error of the reader is not the feed's: %v", err)
	}
}

// TestDates: the forms of dates that feeds have.
func TestDates(t *testing.T) {
	for text, want := range map[string]string{
		"Sun, 06 Nov 1994 08:49:37 GMT":          "1994-11-06T08:49:37Z",
		"Sun, 6 Nov 94 08:49 EDT":                "1994-11-06T12:49:00Z",
		"6 November 1994 08:49:37 +0100":         "1994-11-06T07:49:37Z",
		"Sunday, 06 Nov 1994 08:49:37 PST (hi)":  "1994-11-06T16:49:37Z",
		"Sun, 06 Nov 1994 08:49:37 GMT+0200":     "1994-11-06T06:49:37Z",
		"Sun, 06 Nov 1994 08:49:37 CET":          "1994-11-06T08:49:37Z",
		"Sun, 06 Nov 1994 08:49:37 Z":            "1994-11-06T08:49:37Z",
		"Sun, 06 Nov 1994":                       "1994-11-06T00:00:00Z",
		"1994-11-06T08:49:37Z":                   "1994-11-06T08:49:37Z",
		"1994-11-06T08:49:37.5-02:00":            "1994-11-06T10:49:37.5Z",
		"1994-11-06T08:49Z":                      "1994-11-06T08:49:00Z",
		"1994-11-06 08:49:37":                    "1994-11-06T08:49:37Z",
		"1994-11-06":                             "1994-11-06T00:00:00Z",
		"1994-11":                                "1994-11-01T00:00:00Z",
		"1994":                                   "1994-01-01T00:00:00Z",
		"Sun Nov 6 08:49:37 UTC 1994":            "",
		"":                                       "",
		"soon":                                   "",
		"32 Nov 1994 08:49:37 GMT":               "",
		strings.Repeat("1994", 1000):             "",
		"Sun, 06 Nov 1994 08:49:37 +0000 (x (y)": "",
	} {
		got, ok := date(text)
		if ok != (want != "") || ok && got.UTC().Format(time.RFC3339Nano) != want {
			t.Errorf("%.50q: %v, %v; want %s", text, got, ok, want)
		}
	}
}

// FuzzParse: nothing makes the parser fail in another way than by an error, and what it returns keeps to
// the limits.
func FuzzParse(f *testing.F) {
	for _, file := range []string{"podcast.rss", "podcast.atom", "podcast.rdf"} {
		data, err := os.ReadFile("testdata/" + file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(data))
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := Parse(strings.NewReader(text), "https://example.org/feed", today)
		if err != nil && fault.Of(err) == "" {
			t.Errorf("an error without a kind: %v", err)
		}
		for _, e := range got.Entries {
			if e.ID == "" || len(e.ID) > 4*maxName || len(e.URL) > maxURL || e.Published < 0 ||
				e.Published > today.Add(tolerance).UnixMilli() || strings.ContainsAny(e.ID+e.Title, "\x00\n") {
				t.Errorf("%+v", e)
			}
		}
	})
}
