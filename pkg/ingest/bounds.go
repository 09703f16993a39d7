package ingest

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"archivist/pkg/fault"
)

// Bounds of what a depositor gives, in bytes. What is within them can be held by
// every later step: rows, events, XML, ANVL, mails.
const (
	MaxURL       = 2048
	MaxMetadata  = 4000 // of one element
	MaxSubmitter = 200
	MaxNote      = 2000
	MaxMails     = 20
	// MaxJobs is how many jobs a batch has: the ids of jobs are in order up to it.
	MaxJobs = 99_999
	// MaxReason is how much is said of a failure.
	MaxReason = 16_000
)

// Unstorable reports whether a character cannot be kept by every later step: a
// control character, or one that XML 1.0 does not have.
func Unstorable(r rune) bool { return unicode.IsControl(r) || r == 0xFFFE || r == 0xFFFF }

// CheckText returns an Invalid that names the field if a text of one line is longer
// than so many bytes, not UTF-8, or has a character that cannot be stored.
func CheckText(field, text string, most int) error {
	switch {
	case len(text) > most:
		return fault.New(fault.Invalid, "%s has %d bytes; at most %d are allowed", field, len(text), most)
	case !utf8.ValidString(text):
		return fault.New(fault.Invalid, "%s is not valid UTF-8", field)
	case strings.ContainsFunc(text, Unstorable):
		return fault.New(fault.Invalid, "%s has a control character or a line break (%q); expected one line of text",
			field, Cut(text, 100))
	}
	return nil
}

// Cut returns the first n bytes of text at most, cut at a character, with "…"
// where something was left out.
func Cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + "…"
}
