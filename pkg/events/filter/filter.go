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

	"archivist/pkg/events/envelope"
)

// Filter is a compiled filter. Compile makes it; the zero value selects nothing.
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

// Match reports whether the filter selects the event. It looks at the event's facts only.
func (f *Filter) Match(e envelope.Event) bool {
	return (f.also == nil || f.also.Match(e)) &&
		slices.ContainsFunc(f.clauses, func(c clause) bool {
			return among(c.actions, e.Action) && c.holds(e)
		})
}

// SelectsFiles reports whether the filter may select the event of a file of the version whose event
// e is. Only a clause that names File does, other than by All: so most consumers need no lists of
// files.
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

// Names reports whether a clause names that type of subject, other than by All. Clauses of a filter
// that And has added do not count.
func (f *Filter) Names(subject string) bool {
	return slices.ContainsFunc(f.clauses,
		func(c clause) bool { return slices.Contains(c.subjects, subject) })
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

// And is a filter that selects what both do. Both must be as Compile has made them: a filter has
// one second part, which Match and SelectsFiles look at.
func (f *Filter) And(other *Filter) *Filter {
	both := *f
	both.also = other
	return &both
}

// MatchState is Match for an event that says how something is now, not what was done to it: the
// filter selects it whatever actions it names. A consumer that only wants deletions would otherwise
// never get what a rebuild is for.
func (f *Filter) MatchState(e envelope.Event) bool {
	return slices.ContainsFunc(f.clauses, func(c clause) bool { return c.holds(e) })
}

// holds reports whether the clause selects the event, whatever its action is.
func (c clause) holds(e envelope.Event) bool {
	return among(c.subjects, e.Subject.Type) &&
		!slices.ContainsFunc(c.terms, func(t term) bool { return !t.holds(e) })
}

// among reports whether a list of a clause has the name; nil has all.
func among(names []string, name string) bool { return names == nil || slices.Contains(names, name) }

// String is the filter in its canonical form, which Compile reads as the same filter.
func (f *Filter) String() string {
	parts := make([]string, len(f.clauses))
	for i, c := range f.clauses {
		parts[i] = list(c.subjects) + "+" + list(c.actions) + c.braces()
	}
	return strings.Join(parts, ":")
}

// list is a list of names in the canonical form.
func list(names []string) string {
	if names == nil {
		return "All"
	}
	return strings.Join(names, "|")
}

// braces are the terms of a clause in the canonical form, "" if there are none.
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
