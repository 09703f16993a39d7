package v1

import "context"

// Caller is who makes a request, as the API knows it.
type Caller struct {
	// The subject of the token, as events name it. Absent for a call without a token, on a local stack.
	Subject string `json:"subject,omitempty" example:"4711"`
	// The name that the issuer of the token knows, or that of a token of the deployment. Absent if it is not known.
	Name string `json:"name,omitempty" example:"Ada Lovelace"`
	// The roles, each with what it is limited to, e.g. the collection of a depositor.
	Grants []string `json:"grants" example:"[\"viewer\",\"depositor:maps\"]"`
	// When the token ends. Absent if it does not.
	Expires string `json:"expires,omitempty" example:"2026-11-22T10:30:00Z"`
}

// WhoAmI returns who calls.
func (c *Client) WhoAmI(ctx context.Context) (Caller, error) {
	return get[Caller](ctx, c, "/v1/whoami")
}
