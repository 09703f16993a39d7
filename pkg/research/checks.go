package research

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"archivist/pkg/kernel/definition"
	"archivist/pkg/kernel/fault"
)

// printable refuses text that is no line of characters: not UTF-8, with control characters, longer
// than MaxName characters, or with spaces at its ends. Such text comes from broken files, and would
// break lists and logs. Empty text is printable.
func printable(field, text string) error {
	wrong := func(r rune) bool { return unicode.IsControl(r) }
	switch {
	case !utf8.ValidString(text) || strings.ContainsFunc(text, wrong):
		return fault.New(fault.Invalid, "%s: found %q; expected UTF-8 without control characters",
			field,
			definition.Clip(text, 60))
	case utf8.RuneCountInString(text) > MaxName:
		return fault.New(fault.Invalid, "%s has %d characters; at most %d are possible", field,
			utf8.RuneCountInString(text), MaxName)
	case strings.TrimSpace(text) != text:
		return fault.New(fault.Invalid, "%s: found %q; spaces at its ends are not possible", field,
			definition.Clip(text, 60))
	}
	return nil
}

// oneLine reports whether text is one line of 1 to most bytes.
func oneLine(field, text string, most int) bool {
	return text != "" && len(text) <= most && printable(field, text) == nil
}

// invalidIf is an Invalid if a condition holds, nil otherwise: so several checks are one
// expression, whose first failure counts (cmp.Or).
func invalidIf(holds bool, format string, args ...any) error {
	if !holds {
		return nil
	}
	return fault.New(fault.Invalid, format, args...)
}
