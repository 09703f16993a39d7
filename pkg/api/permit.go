package api

import (
	"slices"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"archivist/pkg/kernel/fault"
)

// may returns a Denied if the key does not allow an operation that is called for a project or an
// archive, "" if it is for none. An Administrator may do everything. The roles of a researcher and of a
// notifier are for one project or archive, which has to be in the path; an operation that needs such a
// role, and has none there, is open to nobody but an Administrator. The messages say what is needed,
// never which keys there are.
func (x Access) may(op *huma.Operation, project, archive string) error {
	need := operations[op.OperationID].needs()
	switch {
	case x.Role == "":
		return fault.New(fault.Denied,
			"%q needs the role %s; the API key has no role. The setting apiKeys of the "+
				"deployment makes keys with roles", op.Summary, need)
	case x.Role == Administrator:
		return nil
	case x.Role != need:
		return fault.New(fault.Denied, "%q needs the role %s; the API key has the role %s",
			op.Summary, need, x.Role)
	case x.Role == Notifier && (x.Archive == "" || x.Archive != archive):
		return fault.New(fault.Denied, "the API key is for the archive %q only", x.Archive)
	case x.Role == Researcher && (x.Project == "" || x.Project != project):
		return fault.New(fault.Denied, "the API key is for the research project %q only", x.Project)
	}
	return nil
}

// ofRevisions reports whether operations with this tag are of the revision queue.
func ofRevisions(tag string) bool { return tag == "Archives" || tag == "Tasks" }

// refuse answers a request with an error before a handler has seen it.
func (a *API) refuse(c huma.Context, err error) {
	_, w := humago.Unwrap(c)
	a.problem(err).(*refusal).write(w)
}

// errNoRevisions: the deployment has no revision queue.
var errNoRevisions = fault.New(fault.Conflict,
	"this deployment has no revision queue: the setting revisionQueue makes one")

// deployed refuses a call of the revision queue where there is none. What the routes with these tags use is nil there.
func (a *API) deployed(c huma.Context, next func(huma.Context)) {
	if a.Revisions == nil && slices.ContainsFunc(c.Operation().Tags, ofRevisions) {
		a.refuse(c, errNoRevisions)
		return
	}
	next(c)
}

// permitted refuses a call that its key does not allow, before anything of the request is read. The id
// of the key is in the context, put there by WithKey. An id that is not in a.Keys has the zero Access,
// and so no rights: a key that was made outside of the deployment is refused.
func (a *API) permitted(c huma.Context, next func(huma.Context)) {
	if a.Keys == nil {
		next(c)
		return
	}

	id, _ := c.Context().Value(keyed{}).(string)
	access := a.Keys[id]
	err := access.may(c.Operation(), c.Param("project"), c.Param("archive"))
	if err != nil {
		a.refuse(c, err)
		return
	}

	next(huma.WithValue(c, named{}, access.Name))
}
