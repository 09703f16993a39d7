package api

import (
	"context"
	"time"

	"github.com/danielgtaylor/huma/v2"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/fault"
)

// asking registers the routes that say who calls, where one signs in, and with what settings the deployment runs.
func (a *API) asking(h huma.API) {
	get(a, h, "/v1/sign-in", "signIn", "Say where people sign in", a.signIn)
	get(a, h, "/v1/whoami", "whoAmI", "Say who calls", a.whoAmI)
	get(a, h, "/v1/settings", "getSettings", "Get the settings of the deployment", a.settings)
}

// signIn says where people sign in. It is for everybody: who asks has no token yet.
func (a *API) signIn(context.Context, *struct{}) (v1.SignIn, error) {
	if a.SignIn.Issuer == "" {
		return v1.SignIn{}, fault.New(fault.NotFound,
			"nobody signs in here: the deployment has no issuer of tokens with a client for the "+
				"command line (the settings tokenIssuer and tokenClient)")
	}
	return a.SignIn, nil
}

// whoAmI is the caller as it was identified. On a local stack that is nobody, who may do everything.
func (a *API) whoAmI(ctx context.Context, _ *struct{}) (v1.Caller, error) {
	x := identityOf(ctx)
	out := v1.Caller{Subject: x.Subject, Name: x.Name, Grants: []string{}}
	for _, g := range x.Grants {
		out.Grants = append(out.Grants, g.String())
	}
	if !x.Expires.IsZero() {
		out.Expires = x.Expires.UTC().Format(time.RFC3339)
	}
	return out, nil
}

// settings are what the deployment runs with. They do not change while it runs, and no row is read.
func (a *API) settings(context.Context, *struct{}) (v1.Settings, error) { return a.Settings, nil }
