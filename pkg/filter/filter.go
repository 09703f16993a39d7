// Package filter selects events by what they say. A filter is written in the grammar of
// DSpace's event consumers (source: DSpace, org.dspace.event.ConsumerProfile and Event), so
// a filter of a DSpace configuration can be used as it is:
//
//	Item|Collection+Create|Modify|Modify_Metadata:Bundle+Add|Remove
//
// Clauses are separated by colons. An event is selected if one clause selects it: the type of
// its subject is one of those before the plus sign, and its action one of those after it.
// * or All stands for every type, or every action. Upper and lower case are the same.
//
// A clause can have terms in braces, all of which must hold:
//
//	Object+Modify{parent=maps, !component=derivatives}:Job+All{outcome=failure, type=job.*}
//
// A term has one value, or several separated by |, of which one must be equal. A value with
// an asterisk at its end stands for all values that begin so. An exclamation mark before the
// term selects the events for which it does not hold. A value can be in double quotes.
//
//	id         the id of the subject
//	parent     the id of a container of the subject, at any depth
//	actor      the person or account
//	component  the part of the system that made the change
//	outcome    success or failure
//	property   a name of what changed
//	type       the type of the event, e.g. job.state
//
// A filter is a value without references to anything else, and is safe for concurrent use.
package filter

import (
	"slices"
	"strings"

	"archivist/pkg/envelope"
)

// Filter is a compiled filter. Compile makes it.
type Filter struct {
	clauses []clause
	also    *Filter // it must select the event, too; nil: there is none
}

// clause selects by subject type and action, and by all of its terms.
type clause struct {
	subjects []string // canonical names; nil: all
	actions  []string // likewise
	terms    []term
}

// term holds for an event if one of the event's values of its field is one of values.
type term struct {
	field  field
	not    bool
	values []value
}

type value struct {
	text   string
	prefix bool // it stands for all that begins with text
}

// Match reports whether the filter selects the event. It looks at the event's facts only.
func (f *Filter) Match(e envelope.Event) bool {
	return (f.also == nil || f.also.Match(e)) && slices.ContainsFunc(f.clauses, func(c clause) bool {
		return among(c.actions, e.Action) && c.holds(e)
	})
}

// SelectsFiles reports whether the filter may select the event of a file of the version whose event
// e is. Only a clause that names File does, other than by All: so most consumers need no lists of files.
func (f *Filter) SelectsFiles(e envelope.Event) bool {
	if !e.HasFiles() {
		return false
	}
	file, _ := envelope.PresentFile(e, 1, envelope.File{}) // an empty file can be encoded
	may := func(c clause) bool {
		return among(c.subjects, file.Subject.Type) && among(c.actions, file.Action) &&
			!slices.ContainsFunc(c.terms, func(t term) bool { return !t.mayHold(file) })
	}
	return (f.also == nil || slices.ContainsFunc(f.also.clauses, may)) &&
		slices.ContainsFunc(f.clauses, func(c clause) bool { return c.subjects != nil && may(c) })
}

// mayHold reports whether the term may hold for a file whose id is only known to begin with that of e.
func (t term) mayHold(e envelope.Event) bool {
	if t.field.name != idField {
		return t.holds(e)
	}
	return t.not || slices.ContainsFunc(t.values, func(v value) bool {
		return strings.HasPrefix(v.text, e.Subject.ID) || v.prefix && strings.HasPrefix(e.Subject.ID, v.text)
	})
}

// Names reports whether a clause names that type of subject, other than by All.
func (f *Filter) Names(subject string) bool {
	return slices.ContainsFunc(f.clauses, func(c clause) bool { return slices.Contains(c.subjects, subject) })
}

// Fields are the names of the fields at which a clause looks, each once, sorted.
func (f *Filter) Fields() (names []string) {
	for _, c := range f.clauses {
		for _, t := range c.terms {
			names = append(names, t.field.name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// And is a filter that selects what both do.
func (f *Filter) And(other *Filter) *Filter {
	both := *f
	both.also = other
	return &both
}

// MatchState is Match for an event that says how something is now, not what was done to it:
// the filter selects it whatever actions it names.
func (f *Filter) MatchState(e envelope.Event) bool {
	return slices.ContainsFunc(f.clauses, func(c clause) bool { return c.holds(e) })
}

// holds reports whether the clause selects the event, whatever its action is.
func (c clause) holds(e envelope.Event) bool {
	return among(c.subjects, e.Subject.Type) &&
		!slices.ContainsFunc(c.terms, func(t term) bool { return !t.holds(e) })
}

func among(names []string, name string) bool { return names == nil || slices.Contains(names, name) }

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

// String is the filter in its canonical form, which Compile reads as the same filter.
func (f *Filter) String() string {
	parts := make([]string, len(f.clauses))
	for i, c := range f.clauses {
		parts[i] = list(c.subjects) + "+" + list(c.actions) + c.braces()
	}
	return strings.Join(parts, ":")
}

func list(names []string) string {
	if names == nil {
		return "All"
	}
	return strings.Join(names, "|")
}

func (c clause) braces() string {
	if len(c.terms) == 0 {
		return ""
	}
	parts := make([]string, len(c.terms))
	for i, t := range c.terms {
		parts[i] = t.String()
	}
	return "{" + strings.Join(parts, ", ") + "}"
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

func (v value) mustQuote() bool {
	return v.text == "" || strings.ContainsAny(v.text, special) || strings.TrimSpace(v.text) != v.text
}
