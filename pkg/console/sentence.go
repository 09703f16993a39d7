package console

import (
	"html/template"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// moment matches a time as services write it in their sentences.
var moment = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)`)

// example matches what comes before an example.
var example = regexp.MustCompile(`(?:e\.g\.|such as|like) $`)

// longestExample is how much that can be: no more is looked at, else a text of many times costs the
// square of its length.
const longestExample = len("such as ")

// sentence is a text of a service or a person, e.g. a message or a reason, as shown has it. The
// times in it are elements of their own: the script shows these in the zone of the reader.
func sentence(text string) template.HTML { return timed(shown(text)) }

// brief is sentence of a text as a list shows it.
func brief(text string) template.HTML { return timed(cut(text)) }

// timed escapes a text, and marks up the times in it. One that is a part of something longer,
// e.g. of an address or an id, stays as it is.
func timed(text string) template.HTML {
	var out strings.Builder
	done := 0
	for _, at := range moment.FindAllStringIndex(text, -1) {
		one := text[at[0]:at[1]]
		t, err := time.Parse(time.RFC3339, one)
		if err != nil || !begins(text[:at[0]]) || !ends(text[at[1]:]) {
			continue
		}
		iso := t.UTC().Format(time.RFC3339Nano)
		out.WriteString(template.HTMLEscapeString(text[done:at[0]]))
		out.WriteString(`<time datetime="` + iso + `">` + utc(iso) + `</time>`)
		done = at[1]
	}
	out.WriteString(template.HTMLEscapeString(text[done:]))
	return template.HTML(out.String()) // the texts are escaped, and times have no markup
}

// begins reports whether a time can begin after a text. An example says how a time is written,
// so it stays as it is.
func begins(before string) bool {
	if example.MatchString(before[max(0, len(before)-longestExample):]) {
		return false
	}
	r, size := utf8.DecodeLastRuneInString(before)
	return size == 0 || unicode.IsSpace(r) || strings.ContainsRune(`("'[`, r)
}

// ends reports whether a word can end before a text: signs of a sentence may follow, and then a
// blank or the end.
func ends(after string) bool {
	rest := strings.TrimLeft(after, `.,;:!?)"']`)
	r, size := utf8.DecodeRuneInString(rest)
	return size == 0 || unicode.IsSpace(r) || r == '…'
}
