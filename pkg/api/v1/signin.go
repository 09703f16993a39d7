package v1

import "context"

// SignIn says where people sign in, for the command line.
type SignIn struct {
	// The URL of the OpenID Connect issuer.
	Issuer string `json:"issuer" example:"https://login.example.org"`
	// The client as which the command line signs in. It has no secret.
	ClientID string `json:"clientId" example:"archivist-cli"`
	// The scopes that it asks for.
	Scopes []string `json:"scopes" example:"[\"openid\",\"offline_access\"]"`
}

// SignIn returns where people sign in. It needs no token, and sends none.
func (c *Client) SignIn(ctx context.Context) (SignIn, error) {
	open := *c
	open.Bearer = nil
	return get[SignIn](ctx, &open, "/v1/sign-in")
}
