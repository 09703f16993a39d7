package api

import (
	"context"
	"time"

	"github.com/danielgtaylor/huma/v2"

	v1 "archivist/pkg/api/v1"
)

// asking registers the route that says who calls.
func (a *API) asking(h huma.API) {
	get(a, h, "/v1/whoami", "whoAmI", "Say who calls", a.whoAmI)
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
