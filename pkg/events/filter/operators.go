package filter

import (
	"slices"
	"strings"

	"archivist/pkg/events/envelope"
)

// The operators of a term: a field is one of some values (=), or none of them (!); a value may end
// in * and stands for all that begins with it. A further operator is decided here, read by the
// parser in compile.go, and is a pattern of EventBridge in pattern.go.

// term holds for an event if one of the event's values of its field is one of values.
type term struct {
	field  field
	not    bool
	values []value
}

// value is one value of a term, without its quotes and its asterisk.
type value struct {
	text   string
	prefix bool // it stands for all that begins with text
}

// mayHold reports whether the term may hold for a file whose id is only known to begin with that of
// e: the paths of files are in their list, which is read only if this is true. Of what other fields
// say, all files of a version are the same.
func (t term) mayHold(e envelope.Event) bool {
	if t.field.name != idField {
		return t.holds(e)
	}
	return t.not || slices.ContainsFunc(t.values, func(v value) bool {
		return strings.HasPrefix(v.text, e.Subject.ID) || v.prefix &&
			strings.HasPrefix(e.Subject.ID, v.text)
	})
}

// holds reports whether one of the event's values is one of the term's; a negated term, whether
// none is. So a negated term holds for an event that has no value.
func (t term) holds(e envelope.Event) bool {
	for _, got := range t.field.of(e) {
		if slices.ContainsFunc(t.values, func(v value) bool { return v.matches(got) }) {
			return !t.not
		}
	}
	return t.not
}

func (v value) matches(s string) bool {
	if v.prefix {
		return strings.HasPrefix(s, v.text)
	}
	return s == v.text
}

// String is the term as it is written.
func (t term) String() string {
	texts := make([]string, len(t.values))
	for i, v := range t.values {
		texts[i] = v.String()
	}
	s := t.field.name + "=" + strings.Join(texts, "|")
	if t.not {
		return "!" + s
	}
	return s
}

// String is the value as it is written, in quotes if it must be.
func (v value) String() string {
	s := v.text
	if v.mustQuote() {
		s = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
	}
	if v.prefix {
		return s + "*"
	}
	return s
}

// mustQuote reports whether the value, as it is, would be read as another one.
func (v value) mustQuote() bool {
	return v.text == "" || strings.ContainsAny(v.text, special) ||
		strings.TrimSpace(v.text) != v.text
}

// special are the characters that a value without quotes cannot have.
const special = `,|{}"*\`
