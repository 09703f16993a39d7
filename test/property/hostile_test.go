package property

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf16"

	"pgregory.net/rapid"

	"archivist/pkg/ingest"
)

// TestAcceptedEnds: a submission with hostile values is refused with a reason before the
// first write to the storage root, or it is preserved unchanged, and can be read, reported
// and rebuilt.
func TestAcceptedEnds(t *testing.T) { explore(t, hostileHistories()) }

func hostileHistories() *rapid.Generator[history] {
	return rapid.Custom(func(t *rapid.T) history {
		h := histories(2).Draw(t, "plain")
		s := &h.Submissions[len(h.Submissions)-1]
		for range rapid.IntRange(1, 2).Draw(t, "values") {
			*s = hostile(t, *s)
		}
		return h
	})
}

func repeat(s string, bytes int) value { return value(strings.Repeat(s, bytes/len(s))) }

// texts are values of an element; those of strangeTexts may be refused.
var texts = []value{repeat("ü", 2000), repeat("ü", 2002), repeat("地図 ", 4000), "(:unas) x", "# no comment", ": colon",
	"a: b", "&amp; <b>&#10;</b> ]]>",
	"\U0001F5FA\uFE0F map", "e\u0301", "\u202Eright to left", "\u00a0x\u00a0", "\uE000\U0010FFFD", "\u0378", "100 %",
	"\\\"'`$", "--", "{{.}} ${x} %s %d", "ark:/99999/fk4"}
var strangeTexts = []value{repeat("x", 4001), repeat("long ", 100_000), "a\x00b", "a\x1bb", "a\x7fb", "a\tb", "a\nb",
	"a\r\nwho: forged\n\nb", "a\u0085b\u2028c", "\xff\xfe", "Z\xfcrich", "lost \ufffd", "\ufffe", "\uffff", "\u200b",
	"\u2029"}

// localIDs are of objects.
var localIDs = []value{repeat("i", 500), "a#b", "#", "LOCAL#maps#a", "../..", "e\u0301", "\u00e9", "A", "100%", "a b",
	"'\"<&>", "id:1", "/"}
var strangeIDs = []value{repeat("i", 501), repeat("ü", 500) + "x", " a ", "\ta", "a;b", "a\nb", "a\x00b", "a\x7f",
	"\xff", "a\ufffdb", "", ";", "\u2028", "ark:/99999/fk4zzz", "https://n2t.net/ark:/99999/fk4"}

// paths are names of files.
var paths = []value{repeat("n", 255), repeat("n", 300) + ".txt", "x/" + repeat("ü", 904), repeat("d/", 400) + "f",
	repeat("segment/", 3000) + "f", "sub/mrt-erc.txt", "inventory.json", "0=ocfl_object_1.1",
	"a\\b", "x y/z", "x#y", "x?y=z&w+v", "%41.txt", "~", "-", "producer/x", "e\u0301.txt", "\u00e9.txt", "\u202Etxt",
	"CON", "a.", "a:b", "*", "\"q\"", "a\u2028b"}
var strangePaths = []value{".", "..", "a/../b", "a//b", "/a", "a/", "a\x00b", "a\nb", "a\x7f", "\xff.txt",
	"lost\ufffd.txt", repeat("n/", 20_000) + "f", "a ", "./a"}

// sizes are sizes of a file in a manifest.
var sizes = []size{"-1", "9223372036854775807", "9223372036854775808", "4611686018427387904", "99999999999999999999999",
	"1e3", "abc", "0x10", " ", "+5", "007"}

// brought is a description as it lies in a package.
type brought struct {
	name    string // of the file
	text    value
	meaning said
	strange bool // it may be refused
}

func latin1(s string) value {
	var b []byte
	for _, c := range s {
		b = append(b, byte(c))
	}
	return value(b)
}

func utf16le(s string) value {
	b := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune(s)) {
		b = append(b, byte(u), byte(u>>8))
	}
	return value(b)
}

func lines(n int, format string) value {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return value(b.String())
}

func joinedCreators(n int) value {
	return value(strings.TrimSuffix(string(lines(n, "Creator %d; ")), "; "))
}

const (
	dcOpen    = `<dc xmlns:dc="http://purl.org/dc/elements/1.1/">`
	dataOpen  = `<resource xmlns="http://datacite.org/schema/kernel-4">`
	zurich    = dcOpen + "<dc:title>Zürich</dc:title></dc>"
	manyWhere = 10_000
)

var descriptions = sync.OnceValue(func() []brought {
	erc, dc, cite := "mrt-erc.txt", "mrt-dc.xml", "mrt-datacite.xml"
	return []brought{
		{erc, "\ufefferc:\nwho: B\nwhat: O M\n", said{Who: "B", What: "O M"}, false},
		{erc, "erc:\r\nwho: C\r\nwhat: R\r\n", said{Who: "C", What: "R"}, false},
		{erc, "erc: Who|What|2026\n", said{Who: "Who", What: "What", When: "2026"}, false},
		{erc, "erc:\n# who: no\nwho: a\n  b\n\tc\nwhat: d: e\n", said{Who: "a b c", What: "d: e"}, false},
		{erc, "who:\n  folded\n", said{Who: "folded"}, false},
		{erc, "erc:\n" + lines(5000, "who: Creator %d\n"), said{Who: joinedCreators(5000)}, false},
		{erc, "what: " + repeat("long ", 100_000) + "end\n", said{What: repeat("long ", 100_000) + "end"}, false},
		{erc, value("what: ") + repeat("x", 2<<20) + "\n", said{}, true},
		{erc, latin1("what: Zürich\n"), said{}, true},
		{erc, utf16le("what: Zürich\n"), said{}, true},
		{erc, "no colon\n", said{}, true},
		{erc, "  continues nothing\n", said{}, true},
		{erc, "what: a\x00b\n", said{}, true},
		{erc, "\xef\xbb", said{}, true},
		{erc, "", said{}, false},
		{erc, lines(manyWhere, "where: id %d\n"), said{}, true},
		{erc, lines(18, "where: id %d\n"), said{Local: slices.Collect(func(yield func(value) bool) {
			for i := range 18 {
				if !yield(value(fmt.Sprint("id ", i))) {
					return
				}
			}
		})}, true},
		{dc, value(`<?xml version="1.0" encoding="UTF-8"?>` + zurich), said{What: "Zürich"}, false},
		{dc, "\ufeff" + value(zurich), said{What: "Zürich"}, false},
		{dc, latin1(`<?xml version="1.0" encoding="ISO-8859-1"?>` + zurich), said{What: "Zürich"}, false},
		{dc, latin1(zurich), said{}, true},
		{dc, utf16le(`<?xml version="1.0" encoding="UTF-16"?>` + zurich), said{What: "Zürich"}, true},
		{dc, value(`<?xml version="1.0" encoding="x-none"?>` + zurich), said{}, true},
		{dc, value(`<?xml version="1.0" encoding="KOI8-R"?>` + dcOpen +
			"<dc:title>\xeb\xc1\xd2\xd4\xc1</dc:title></dc>"), said{What: "Карта"}, false},
		{dc, dcOpen + "<dc:title>a &amp; b &#x5730;</dc:title></dc>", said{What: "a & b 地"}, false},
		{dc, "<!DOCTYPE dc [<!ENTITY e \"x\">]>" + dcOpen + "<dc:title>&e;</dc:title></dc>", said{}, true},
		{dc, dcOpen + "<dc:title>cut", said{}, true},
		{dc, dcOpen + "<dc:title><![CDATA[<a>]]></dc:title></dc>", said{What: "<a>"}, false},
		{dc, dcOpen + "<dc:title>a\n   b</dc:title><dc:rights>" + repeat("r", 100_000) + "</dc:rights></dc>",
			said{What: "a b"}, false},
		{dc, dcOpen + lines(5000, "<dc:creator>Creator %d</dc:creator>") + "</dc>", said{Who: joinedCreators(5000)},
			false},
		{cite, dataOpen + "<creators>" + lines(5154, "<creator><creatorName>Creator %d</creatorName></creator>") +
			"</creators></resource>", said{Who: joinedCreators(5154)}, false},
		{cite, dataOpen + "<titles><title> \n </title></titles></resource>", said{}, false},
		{cite, "not XML at all", said{}, true},
	}
})

// hostile puts one hostile value into a submission, and marks the submission if it may be
// refused for it.
func hostile(t *rapid.T, s submission) submission {
	s.Objects = slices.Clone(s.Objects)
	o := &s.Objects[rapid.IntRange(0, len(s.Objects)-1).Draw(t, "object")]
	o.Files = slices.Clone(o.Files)
	f := &o.Files[rapid.IntRange(0, len(o.Files)-1).Draw(t, "file")]
	either := func(good, strange []value) value {
		if rapid.Bool().Draw(t, "strange") {
			s.Strange = true
			return pick(t, strange, "value")
		}
		return pick(t, good, "value")
	}
	place := &s.Form
	if many(s.Kind) {
		place = &o.Row
		all := either
		either = func(good, strange []value) value { // a row is a line
			return value(strings.NewReplacer("\n", " ", "\r", " ").Replace(string(all(good, strange))))
		}
	}
	switch rapid.IntRange(0, 8).Draw(t, "where") {
	case 0:
		v := either(texts, strangeTexts)
		*pick(t, []*value{&place.Who, &place.What, &place.When}, "element") = v
	case 1:
		place.Local = append(slices.Clone(place.Local), either(localIDs, strangeIDs))
	case 2:
		for i := range rapid.SampledFrom([]int{21, 120, 10_000}).Draw(t, "ids") {
			place.Local = append(slices.Clip(place.Local), value(fmt.Sprint("many ", i)))
		}
		s.Strange = true
	case 3, 4:
		name := either(paths, strangePaths)
		if s.Kind == ingest.TypeFile {
			name = value(strings.ToValidUTF8(string(name), "\ufffd")) // as JSON carries it
		}
		if !o.has(name) {
			f.Name = name
		}
		s.Strange = s.Strange || clashes(*o)
	case 5:
		f.Check.Size = pick(t, sizes, "size")
		s.Strange = true
	case 6:
		s.Strange = true
		*pick(t, []*value{&s.Submitter, &s.Note}, "of the batch") = pick(t, append(slices.Clone(strangeTexts),
			texts...), "value")
		if rapid.Bool().Draw(t, "mail") {
			s.Mail = []value{pick(t, []value{"none", "a@b@c", "x@example.org\r\nBcc: y@example.org", "<x@example.org>",
				"Jane <x@example.org>", "ü@example.org", repeat("x", 300) + "@example.org", ""}, "address")}
		}
	default:
		if s.Kind == ingest.TypeFile || s.Kind == ingest.TypeSingleFileBatch {
			return s
		}
		d := pick(t, descriptions(), "description")
		d.meaning.Raw = d.text
		into := map[string]*said{"mrt-erc.txt": &o.ERC, "mrt-dc.xml": &o.DC, "mrt-datacite.xml": &o.DataCite}
		*into[d.name] = d.meaning
		s.Strange = s.Strange || d.strange
	}
	return s
}

// clashes reports whether a file's name is also the folder of another.
func clashes(o object) bool {
	for _, a := range o.Files {
		for _, b := range o.Files {
			if strings.HasPrefix(string(b.Name), string(a.Name)+"/") || a.Name != b.Name &&
				decode(string(a.Name)) == decode(string(b.Name)) {
				return true
			}
		}
	}
	return false
}
