// Package fault is the closed list of the kinds of errors. Every edge (HTTP, command line,
// state machine) reports them in its own way from one table.
//
// An error gets its kind where it arises, with a message for the person who can act, and
// keeps it however often it is wrapped:
//
//	err := fault.New(fault.Conflict, "job %s is %s; requeue needs Failed", id, state)
//	…
//	http.Error(w, err.Error(), fault.At(err).Status) // 409
//
// Callers check the kind (Is, Of), never the text. An error without a kind is a defect.
//
// Whether the same call is worth another try is told by the kind: an Unavailable is, after a
// while; a Stale is, after reading again; the others are not, until a person or another
// change has acted.
package fault

import (
	"errors"
	"fmt"
)

// Kind says what a caller can do about an error. An error may wrap one of another kind; the
// outermost counts.
type Kind string

// The kinds. Invalid: the input is wrong; the message describes the error. NotFound: it
// does not exist. Conflict: its state does not allow the action. Held: it waits for a
// person or for the end of another lease. Stale: another change was made in the meantime.
// Unavailable: the same request may succeed later. Denied: the caller's role does not allow
// the action.
const (
	Invalid     Kind = "Invalid"
	NotFound    Kind = "NotFound"
	Conflict    Kind = "Conflict"
	Held        Kind = "Held"
	Stale       Kind = "Stale"
	Unavailable Kind = "Unavailable"
	Denied      Kind = "Denied"
)

// Edge is how one kind is reported at each edge of the system. The exit code 8 is the command
// line's own.
type Edge struct {
	Status int    // HTTP status
	Exit   int    // exit code of the command line
	Name   string // error name in a state machine
}

// Edges maps every kind to its edges; an error of no kind is Unknown.
var Edges = map[Kind]Edge{
	Invalid:     {422, 2, "Invalid"},
	NotFound:    {404, 3, "NotFound"},
	Conflict:    {409, 4, "Conflict"},
	Held:        {423, 5, "Held"},
	Stale:       {409, 6, "Stale"},
	Unavailable: {503, 7, "Unavailable"},
	Denied:      {403, 9, "Denied"},
}

// Unknown is the edge of an error without a kind, which is a defect of this software. The
// message of such an error is not for callers: it may have names of resources.
var Unknown = Edge{500, 1, "Unknown"}

// Error is an error of a known kind with a message for the person who can act.
type Error struct {
	Kind Kind
	Msg  string
	Err  error // the cause, or nil; Msg has its text already
}

// Error returns the message.
func (e *Error) Error() string { return e.Msg }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// New makes an error of a kind. A %w verb keeps its cause reachable. With more than one %w,
// none of the causes is kept. The new kind hides that of a cause.
func New(k Kind, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &Error{Kind: k, Msg: err.Error(), Err: errors.Unwrap(err)}
}

// Of returns the kind of err, or "" when it has none. It finds the first *Error of the chain,
// also below errors.Join.
func Of(err error) Kind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return ""
}

// Is reports whether err is of kind k.
func Is(err error, k Kind) bool { return err != nil && Of(err) == k }

// At returns the edge of err's kind. It is Unknown for an error without a kind; err must not
// be nil, which has none either.
func At(err error) Edge {
	if e, ok := Edges[Of(err)]; ok {
		return e
	}
	return Unknown
}
