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

// Verifies verifies a bearer token; access.Verifier does it. An error that is not an Unavailable has
// access.ErrUnauthenticated, and its text is for the caller.
type Verifies interface {
	Verify(ctx context.Context, token string) (access.Identity, error)
}

// keyed is the key of a context for the id of the API key, calling that for the identity.
type (
	keyed   struct{}
	calling struct{}
)

// WithKey says with which key a request came: by its id, which the gateway knows when it has verified
// the key. What the request itself says must not get here.
func WithKey(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, keyed{}, id)
}

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

// identify is who calls: the subject of the bearer token, or else the API key, or else, where calls need neither,
// anybody, who may do everything.
func (a *API) identify(c huma.Context) (x access.Identity, err error) {
	r, _ := humago.Unwrap(c)
	id, _ := c.Context().Value(keyed{}).(string)
	tokens := bearers(r)
	switch {
	case len(tokens) > 1:
		return x, access.Refused("Authorization: expected one token, found several")
	case len(tokens) > 0:
		return a.bearer(c, tokens[0])
	case id != "" && a.Keys != nil:
		return a.Keys[id],
			nil // an id that is not known has no grants: the key was made outside of the deployment
	case a.Keys == nil && a.Issuer == nil:
		return access.Identity{Grants: []access.Grant{{Role: administrator}}}, nil
	}
	return x, access.Refused("the call does not say who makes it; send a token in the header " +
		"Authorization: Bearer TOKEN, or a key of the deployment in the header x-api-key")
}

// bearers are the bearer tokens of a request. What else is in the header Authorization is not for us: a proxy before
// the API can have a scheme of its own.
func bearers(r *http.Request) (tokens []string) {
	for _, value := range r.Header.Values("Authorization") {
		scheme, token, _ := strings.Cut(strings.TrimSpace(value), " ")
		if strings.EqualFold(scheme, "Bearer") {
			tokens = append(tokens, strings.TrimSpace(token))
		}
	}
	return tokens
}

// bearer is the identity of a token.
func (a *API) bearer(c huma.Context, token string) (x access.Identity, err error) {
	switch {
	case c.Header(v1.UserHeader) != "":
		return x, fault.New(fault.Invalid,
			"%s: who calls is the subject of the token; leave the header out", v1.UserHeader)
	case a.Issuer == nil:
		return x, access.Refused("this deployment has no issuer of tokens")
	}
	return a.Issuer.Verify(c.Context(), token)
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
