package api

import (
	"context"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest"
	"archivist/pkg/kernel/access"
	"archivist/pkg/kernel/fault"
)

// The roles that operations name.
const (
	administrator = access.Administrator
	operator      = access.Operator
	viewer        = access.Viewer
)

// calling is the key of a context for the identity.
type calling struct{}

// identityOf is who makes a request, as identified found out. Without it, nobody, who may do nothing.
func identityOf(ctx context.Context) access.Identity {
	x, _ := ctx.Value(calling{}).(access.Identity)
	return x
}

// identified finds out who calls, before anything else of the request is read. What is there to say who calls is
// verified, also where nobody needs to say it.
func (a *API) identified(c huma.Context, next func(huma.Context)) {
	if operations[c.Operation().OperationID].open {
		next(c)
		return
	}

	x, err := a.identify(c)
	if err != nil {
		challenge(c, err)
		a.refuse(c, err)
		return
	}
	next(huma.WithValue(c, calling{}, x))
}

// identify is who calls: the subject of the bearer token, or else, where the API is open, anybody, who may do
// everything. A token is verified there, too.
func (a *API) identify(c huma.Context) (x access.Identity, err error) {
	r, _ := humago.Unwrap(c)
	tokens := sentBy(r, operations[c.Operation().OperationID].form)
	switch {
	case len(tokens) > 1:
		return x, access.Refused("Authorization: expected one token, found several")
	case len(tokens) > 0:
		return a.bearer(c, tokens[0])
	case a.Open:
		return access.Identity{Grants: []access.Grant{{Role: administrator}}}, nil
	case c.Header("x-api-key") != "":
		return x, access.Refused(noKeys)
	}
	return x, access.Refused(noToken)
}

// sent is a token of a request. With the scheme Basic it has the name that the client says it has.
type sent struct {
	token, name string
	basic       bool
}

// sentBy are the tokens of a request: those of the scheme Bearer, and, where Merritt's clients call, of Basic. What
// else is in the header Authorization is not for us: a proxy before the API can have a scheme of its own.
func sentBy(r *http.Request, basic bool) (tokens []sent) {
	for _, value := range r.Header.Values("Authorization") {
		scheme, _, _ := strings.Cut(strings.TrimSpace(value), " ")
		ofBasic := strings.EqualFold(scheme, "Basic")
		token, name, ok := access.Credentials(value)
		if ok && !ofBasic || ofBasic && basic {
			tokens = append(tokens, sent{token, name, ofBasic})
		}
	}
	return tokens
}

// bearer is the identity of a token. With the scheme Basic, the user is the name of the token: so a token that was
// copied to another program is not taken for that of its user.
func (a *API) bearer(c huma.Context, s sent) (x access.Identity, err error) {
	switch {
	case c.Header(v1.UserHeader) != "":
		return x, fault.New(fault.Invalid,
			"%s: who calls is the subject of the token; leave the header out", v1.UserHeader)
	case a.Authenticator == nil:
		return x, access.Refused("this deployment takes no tokens")
	}
	x, err = a.Authenticator.Verify(c.Context(), s.token)
	if err == nil && s.basic && s.name != x.Name {
		return access.Identity{}, access.Refused("Authorization: the user of Basic is not the name of the token; " +
			"send the name that archivist token list shows, and the token as the password")
	}
	return x, err
}

// roleOf is the role of an identity for actions, which have rules of their own: some need an administrator.
func roleOf(x access.Identity) ingest.Role {
	switch {
	case x.Is(administrator):
		return ingest.Administrator
	case x.Is(operator):
		return ingest.Operator
	}
	return ingest.Viewer
}
