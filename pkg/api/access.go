package api

import (
	"context"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"archivist/pkg/fault"
	"archivist/pkg/research"
	"archivist/pkg/revision"
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

// Access is what a key of the API allows. The zero value allows nothing.
type Access struct {
	Role    Role
	Project string // the only one of a Researcher
	Archive string // the only one of a Notifier
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
	return Access{}, fault.New(fault.Invalid, "found %q; expected administrator, researcher:PROJECT or "+
		"notifier:ARCHIVE", text)
}

// String is the role, with the project of a researcher, and the archive of a notifier.
func (x Access) String() string {
	bound := x.Project + x.Archive
	if bound == "" {
		return string(x.Role)
	}
	return string(x.Role) + ":" + bound
}

// may returns a Denied if the key does not allow an operation that is called for a project or an archive, "" if it
// is for none.
func (x Access) may(op *huma.Operation, project, archive string) error {
	need := operations[op.OperationID].needs()
	switch {
	case x.Role == "":
		return fault.New(fault.Denied, "%q needs the role %s; the API key has no role. The setting apiKeys of the "+
			"deployment makes keys with roles", op.Summary, need)
	case x.Role == Administrator:
		return nil
	case x.Role != need:
		return fault.New(fault.Denied, "%q needs the role %s; the API key has the role %s", op.Summary, need, x.Role)
	case x.Role == Notifier && (x.Archive == "" || x.Archive != archive):
		return fault.New(fault.Denied, "the API key is for the archive %q only", x.Archive)
	case x.Role == Researcher && (x.Project == "" || x.Project != project):
		return fault.New(fault.Denied, "the API key is for the research project %q only", x.Project)
	}
	return nil
}

// keyed is the key of a context for the id of the API key.
type keyed struct{}

// WithKey says with which key a request came: by its id, which the gateway knows when it has verified the key. What
// the request itself says must not get here.
func WithKey(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, keyed{}, id)
}

// ofRevisions reports whether operations with this tag are of the revision queue.
func ofRevisions(tag string) bool { return tag == "Archives" || tag == "Tasks" }

// deployed refuses a call of the revision queue where there is none.
func (a *API) deployed(c huma.Context, next func(huma.Context)) {
	if a.Revisions == nil && slices.ContainsFunc(c.Operation().Tags, ofRevisions) {
		_, w := humago.Unwrap(c)
		a.problem(fault.New(fault.Conflict, "this deployment has no revision queue: the setting revisionQueue makes "+
			"one")).(*refusal).write(w)
		return
	}
	next(c)
}

// permitted refuses a call that its key does not allow, before anything of the request is read.
func (a *API) permitted(c huma.Context, next func(huma.Context)) {
	if a.Keys == nil {
		next(c)
		return
	}
	id, _ := c.Context().Value(keyed{}).(string)
	err := a.Keys[id].may(c.Operation(), c.Param("project"), c.Param("archive"))
	if err != nil {
		_, w := humago.Unwrap(c)
		a.problem(err).(*refusal).write(w)
		return
	}
	next(c)
}
