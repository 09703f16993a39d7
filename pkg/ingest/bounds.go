package ingest

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"archivist/pkg/kernel/fault"
)

// Limits of a depositor's input, in bytes. Every later step can store what is within
// them: rows, events, XML, ANVL, mails.
const (
	MaxURL       = 2048
	MaxMetadata  = 4000 // of one element
	MaxSubmitter = 200
	MaxNote      = 2000
	MaxMails     = 20
	MaxCallback  = 2000 // of a submission's own callback, a URL
	// MaxJobs is the largest number of jobs in a batch. Up to it, job ids sort in row order.
	MaxJobs = 99_999
	// MaxReason limits the reason of a failure.
	MaxReason = 16_000
)

// Unstorable reports whether some later step cannot store a character: a control
// character, or one that XML 1.0 does not allow. (Source: XML 1.0, section 2.2.)
func Unstorable(r rune) bool { return unicode.IsControl(r) || r == 0xFFFE || r == 0xFFFF }

// CheckText returns an Invalid that names the field if a line of text is longer than most
// bytes, is not UTF-8, or has a character that cannot be stored.
func CheckText(field, text string, most int) error {
	switch {
	case len(text) > most:
		return fault.New(fault.Invalid, "%s has %d bytes; at most %d are allowed", field, len(text), most)
	case !utf8.ValidString(text):
		return fault.New(fault.Invalid, "%s is not valid UTF-8", field)
	case strings.ContainsFunc(text, Unstorable):
		return fault.New(fault.Invalid,
			"%s has a control character or a line break (%q); expected one line of text",
			field, Cut(text, 100))
	}
	return nil
}

// Cut shortens a text to at most n bytes, at the end of a character, and adds "…" if
// something was cut off. That adds 3 bytes to the n.
func Cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + "…"
}
