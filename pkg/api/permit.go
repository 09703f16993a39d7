package api

import (
	"errors"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"archivist/pkg/kernel/access"
	"archivist/pkg/kernel/fault"
)

// may returns an error if an identity may not call an operation. It is the one place that decides. The roles of a
// researcher and of a notifier are for one project or archive, which is in the path; that of a depositor is for what
// is in a collection, which the scope of the operation finds. What is said of it is the same whether a thing is in
// another collection or does not exist. The messages say what is needed, never what there is.
func (a *API) may(c huma.Context, x access.Identity) error {
	op := c.Operation()
	of := operations[op.OperationID]
	collections := x.Of(access.Depositor)
	switch limited := x.Of(of.also); {
	case of.open || of.anyone || x.Is(of.needs()):
		return nil
	case len(limited) > 0:
		within := map[access.Role]string{access.Researcher: "project",
			access.Notifier: "archive"}[of.also]
		if slices.Contains(limited, c.Param(within)) {
			return nil
		}
		return fault.New(fault.Denied, "%q: the caller is %s of the %s %s only", op.Summary,
			of.also, within,
			strings.Join(limited, ", "))
	case of.scope != nil && len(collections) > 0:
		return a.inside(c, of.scope, collections)
	case len(x.Grants) > 0:
		return fault.New(fault.Denied, "%q needs the role %s; the caller has %s", op.Summary,
			of.anyOf(), has(x))
	case len(x.Claims) > 0:
		return fault.New(fault.Denied, "%q needs the role %s; the token gives none in the claim %s",
			op.Summary,
			of.anyOf(), strings.Join(x.Claims, " or "))
	}
	return fault.New(fault.Denied, "%q needs the role %s; the caller has none", op.Summary,
		of.anyOf())
}

// has are the grants of an identity, for people.
func has(x access.Identity) string {
	var all []string
	for _, g := range x.Grants {
		all = append(all, g.String())
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// ofRevisions reports whether operations with this tag are of the revision queue.
func ofRevisions(tag string) bool { return tag == "Archives" || tag == "Tasks" }

// refuse answers a request with an error before a handler has seen it.
func (a *API) refuse(c huma.Context, err error) {
	_, w := humago.Unwrap(c)
	a.problem(err).(*refusal).write(w)
}

// challenge says in a header how to call, to one who is not authenticated (RFC 6750, section 3).
func challenge(c huma.Context, err error) {
	if !errors.Is(err, access.ErrUnauthenticated) {
		return
	}
	says := "Bearer"
	if r, _ := humago.Unwrap(c); len(sentBy(r, false)) > 0 {
		says = `Bearer error="invalid_token"`
	}
	c.SetHeader("WWW-Authenticate", says)
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

// permitted refuses a call that its caller may not make, before the handler reads anything.
func (a *API) permitted(c huma.Context, next func(huma.Context)) {
	if err := a.may(c, identityOf(c.Context())); err != nil {
		a.refuse(c, err)
		return
	}
	next(c)
}
