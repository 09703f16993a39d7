package api

import (
	"context"
	"strings"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/research"
	"archivist/pkg/revisions/revision"
)

// Role is what a key of the API is for. An operation names the role that it needs in the table of
// operations; one that names none needs an Administrator. So a new operation is closed until it is opened.
type Role string

// The roles.
const (
	Administrator Role = "administrator" // everything
	Researcher    Role = "researcher"    // what the researchers of one project call
	Notifier      Role = "notifier"      // it says that a revision of one archive was committed
)

// Access is what a key of the API allows. The zero value allows nothing. A Researcher without a
// project, or a Notifier without an archive, can call nothing.
type Access struct {
	Role    Role
	Project string // the only one of a Researcher
	Archive string // the only one of a Notifier

	// The name of the key, for events: it says which of the deployment's keys has acted. "" if it is
	// not known.
	Name string
}

// ParseAccess reads what String returns: "administrator", or e.g. "researcher:jingles" or "notifier:maps". All
// else is an Invalid.
func ParseAccess(text string) (Access, error) {
	role, name, bound := strings.Cut(text, ":")
	switch {
	case Role(role) == Administrator && !bound:
		return Access{Role: Administrator}, nil
	case Role(role) == Researcher && research.Names.MatchString(name):
		return Access{Role: Researcher, Project: name}, nil
	case Role(role) == Notifier && revision.Names.MatchString(name):
		return Access{Role: Notifier, Archive: name}, nil
	}
	return Access{}, fault.New(fault.Invalid,
		"found %q; expected administrator, researcher:PROJECT or "+
			"notifier:ARCHIVE", text)
}

// String is the role, with the project of a researcher, and the archive of a notifier. ParseAccess
// reads it back.
func (x Access) String() string {
	bound := x.Project + x.Archive
	if bound == "" {
		return string(x.Role)
	}
	return string(x.Role) + ":" + bound
}

// keyed is the key of a context for the id of the API key, named for the name of the key.
type (
	keyed struct{}
	named struct{}
)

// WithKey says with which key a request came: by its id, which the gateway knows when it has verified
// the key. What the request itself says must not get here.
func WithKey(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, keyed{}, id)
}
