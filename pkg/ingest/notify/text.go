package notify

import (
	"fmt"
	"strings"
	"unicode"
)

// mostText limits one text of a job in a mail, in bytes.
const mostText = 1000

// Cut limits a text to a number of bytes, cut between characters.
func Cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// line is a text within one line: it can neither begin another one nor send
// control characters to a terminal. Nor can it change the direction of what follows (bidirectional
// controls of Unicode).
func line(s string) string {
	return Cut(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' ||
			unicode.Is(unicode.Bidi_Control, r) {
			return ' '
		}
		return r
	}, s), mostText)
}

// lines is a text of several lines, of which each is indented.
func lines(indent, s string) string {
	var b strings.Builder
	for l := range strings.Lines(Cut(s, 4*mostText)) {
		b.WriteString(indent + line(strings.TrimRight(l, "\r\n")) + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// object names a job's object for the depositor: its title and local ids.
func object(j Job) string {
	ids := make([]string, len(j.LocalIDs))
	for i, id := range j.LocalIDs {
		ids[i] = line(id)
	}
	text := line(j.Title)
	if len(ids) > 0 {
		text = strings.TrimSpace(text + " (" + strings.Join(ids, ", ") + ")")
	}
	return text
}

// change describes what a job changed.
func change(j Job) string {
	if j.NoChange {
		return fmt.Sprintf("no change, still version %d", j.Version)
	}
	return fmt.Sprintf("version %d, %s, %s", j.Version, count(j.Files, "file"),
		count(j.Bytes, "byte"))
}

// gone says what became of the object of a deleted or cancelled job.
func gone(j Job) string {
	if j.Next != "" {
		return j.Next
	}
	if j.Version > 0 {
		return fmt.Sprintf("Its job was deleted after the object was preserved as %s, version %d.",
			line(j.ARK),
			j.Version)
	}
	if j.Cancelled {
		return "It had not started. Submit it again if it is to be preserved."
	}
	return "It was deleted before it was preserved. Submit it again if it is to be preserved."
}

// shownWarnings is how many warnings of a job a mail has.
const shownWarnings = 3

// warnings are the first of a list, and how many more there are.
func warnings(all []string) []string {
	if left := len(all) - shownWarnings; left > 0 {
		return append(all[:shownWarnings:shownWarnings], fmt.Sprintf("%d more in the report", left))
	}
	return all
}

// count is a number of things with their name, as in 1 file or 3 files.
func count[N int | int64](n N, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
