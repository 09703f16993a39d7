package console

import "archivist/pkg/kernel/access"

// deed is something that a person can do to a thing, and of which the API has no dry run. If it loses something, or a
// filter says what it is done to, that is shown, and has to be confirmed. The API decides whether it is done.
type deed struct {
	Name   string // unique among those of a kind
	Action string // as the API has it; "" = Name
	Title  string // of the button
	Means  string // what happens, and what is lost
	Done   string // what the page says afterwards
	Role   access.Role
	// States are those in which it is offered; nil = all.
	States []string
	Loses  bool // it cannot be undone
	// Row: it is done to a part of the thing, and offered beside that.
	Row    bool
	Fields []asking
	// Path is where the API does it, if that is not where it acts on things of the kind: the request names no action.
	Path string
	// To is the page afterwards, if that is not the one of the thing. {id} is the id of what was made.
	To      string
	Command string // that does the same, without options
}

// asking is a field of the form of a deed, beside the reason.
type asking struct {
	Name, Label string
	// Form is how it is asked for, and which JSON it becomes: text, filter, number, day, flag, choice, names (a list)
	// or values (NAME=VALUE). "" = it is not asked for: Value is sent.
	Form     string
	Value    string
	List     bool // Value is sent as a list
	Choices  []string
	Required bool
	Option   string // of the command; "" = it is an argument of it
}

// deedKind is what can be done to a kind of thing. {0}, {1} and {2} are the parts of its id, in Page (the page of the
// thing, below /console/), in Path (where the API acts on it), and in the paths and commands of its deeds.
type deedKind struct {
	Page, Path string
	Deeds      []deed
}
