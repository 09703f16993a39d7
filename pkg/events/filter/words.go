package filter

import (
	"maps"
	"slices"

	"archivist/pkg/events/envelope"
)

// Words are what filters are made of, for those who write one: it is completed by them, and
// explained.
type Words struct {
	Subjects []Subject
	Actions  []string // that events have
	Terms    []Term
	Signs    []Sign
}

// Subject is a type of subjects of which there are events.
type Subject struct {
	Name    string
	Also    []string // other names
	Actions []string // that its events have
	Types   []string // of its events
}

// Term is a field of events that a term can name.
type Term struct {
	Name   string
	Means  string
	Values []string // that are known
	Only   bool     // there are no others
}

// Sign is a sign between names, and after which of them it can be: Subject, Action, Brace (which
// opens terms), Field, Value or Terms (which are closed).
type Sign struct{ Text, After, Means string }

// The places after which signs can be.
const (
	AfterSubject = "subject"
	AfterAction  = "action"
	AfterBrace   = "brace"
	AfterField   = "field"
	AfterValue   = "value"
	AfterTerms   = "terms"
)

// signs are all of them. clause, names, terms and term read them.
var signs = []Sign{
	{"+", AfterSubject, "and what happened to it"},
	{"|", AfterSubject, "or another type"},
	{"|", AfterAction, "or something else happened"},
	{"{", AfterAction, "and terms that must hold, too"},
	{":", AfterAction, "or another alternative"},
	{"!", AfterBrace, "the term must not hold"},
	{"=", AfterField, "its value"},
	{"|", AfterValue, "or another value"},
	{"*", AfterValue, "or any value that begins so"},
	{",", AfterValue, "and another term"},
	{"}", AfterValue, "no more terms"},
	{":", AfterTerms, "or another alternative"},
}

// Language returns the words. What can be written, and no event has, is not among them.
func Language() Words {
	types := map[string][]string{}
	for _, k := range envelope.Kinds {
		types[k.Subject] = append(types[k.Subject], k.Type)
	}
	types[collectionType] = append(types[collectionType], envelope.CollectionAdd)
	types[fileType] = append(types[fileType], envelope.FileCreate)

	w := Words{Signs: slices.Clone(signs)}
	for _, s := range subjects {
		if does := happens[s.is]; does != nil {
			w.Subjects = append(w.Subjects, Subject{s.is, s.also, does, types[s.is]})
		}
	}
	for _, a := range actions {
		if slices.ContainsFunc(slices.Collect(maps.Values(happens)), func(does []string) bool {
			return slices.Contains(does, a.is)
		}) {
			w.Actions = append(w.Actions, a.is)
		}
	}
	for _, f := range fields {
		w.Terms = append(w.Terms, Term{f.name, f.means, f.only, f.only != nil})
	}
	return w
}
