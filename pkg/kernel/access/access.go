// Package access says who calls, and what they may do: a verified identity with its grants. It knows how a token is
// verified (Verifier), and nothing of routes and rows.
//
//	v := access.Verifier{Issuer: "https://login.example.org", Audiences: []string{"archivist"}, Now: time.Now}
//	who, err := v.Verify(ctx, token) // who.Subject, who.Grants
package access

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"time"

	"archivist/pkg/kernel/fault"
)

// Role is what a grant lets its owner do.
type Role string

// The roles. Each of the first three has what the ones after it have; the others are for one thing.
const (
	Administrator Role = "administrator" // everything
	Operator      Role = "operator"      // acts on what runs, and reads everything
	Viewer        Role = "viewer"        // reads everything
	Depositor     Role = "depositor"     // submits to one collection, and reads what is in it
	Researcher    Role = "researcher"    // what the researchers of one project call
	Notifier      Role = "notifier"      // says that a revision of one archive was committed
)

// Grant is a role, and what it is limited to: the collection of a Depositor, the project of a Researcher, the archive
// of a Notifier; "" for the others. The zero value grants nothing.
type Grant struct {
	Role Role
	Of   string
}

// Names are the patterns of what a role is limited to, by the role. They are those of collections, research projects
// and archives, which a test compares. A role that is not here is limited to nothing.
var Names = map[Role]*regexp.Regexp{
	Depositor:  regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`),
	Researcher: regexp.MustCompile(`^[a-z][a-z0-9-]{0,39}$`),
	Notifier:   regexp.MustCompile(`^[a-z][a-z0-9-]{0,39}$`),
}

// Parse reads what String returns: e.g. "viewer" or "depositor:maps". All else is an Invalid.
func Parse(text string) (Grant, error) {
	name, of, limited := strings.Cut(text, ":")
	g := Grant{Role(name), of}
	switch g.Role {
	case Administrator, Operator, Viewer:
		if !limited {
			return g, nil
		}
	case Depositor, Researcher, Notifier:
		if Names[g.Role].MatchString(of) {
			return g, nil
		}
	}
	return Grant{}, fault.New(fault.Invalid, "found %q; expected administrator, operator, viewer, "+
		"depositor:COLLECTION, researcher:PROJECT or notifier:ARCHIVE", text)
}

// String is the role, with what it is limited to. Parse reads it back.
func (g Grant) String() string {
	if g.Of == "" {
		return string(g.Role)
	}
	return string(g.Role) + ":" + g.Of
}

// Identity is who calls, as it was verified. The zero value may do nothing.
type Identity struct {
	Subject string    // of a token: stable, and not given to another one later; "" = anybody, where calls need no token
	Name    string    // for people: of a person or a program; "" if it is not known
	Grants  []Grant   // without order
	Expires time.Time // when the token ends; zero if it does not
	Claims  []string  // the claims in which grants were looked for; nil if they are not from a token
}

// Is reports whether the identity has a role that has all that another one has: an Administrator is an Operator, and
// both are Viewers.
func (x Identity) Is(r Role) bool {
	above := []Role{Administrator, Operator, Viewer}
	i := slices.Index(above, r)
	return i >= 0 && slices.ContainsFunc(x.Grants,
		func(g Grant) bool { return slices.Contains(above[:i+1], g.Role) })
}

// Of are the things for which an identity has a role, e.g. the collections of a Depositor, in order.
func (x Identity) Of(r Role) (names []string) {
	for _, g := range x.Grants {
		if g.Role == r && g.Of != "" {
			names = append(names, g.Of)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// ErrUnauthenticated is in the chain of each error that says that a token is not accepted. These are of the kind
// Denied, and their texts are for the caller.
var ErrUnauthenticated = errors.New("not authenticated")

// Refused is an error with ErrUnauthenticated. The text says what is wrong with the token, never what is in it.
func Refused(text string) error {
	return &fault.Error{Kind: fault.Denied, Msg: text, Err: ErrUnauthenticated}
}
