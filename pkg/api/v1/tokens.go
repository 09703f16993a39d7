package v1

import "context"

// TokenStates are the states of a token of the deployment.
var TokenStates = []string{TokenActive, TokenExpired, TokenRevoked}

// The states of tokens.
const (
	TokenActive  = "active"  // calls with it are accepted
	TokenExpired = "expired" // its time is over
	TokenRevoked = "revoked" // a person ended it
)

// TokenRequest asks for a token of the deployment.
type TokenRequest struct {
	// The name: of the program or the computer that uses it. No two active tokens have one name.
	Name string `json:"name" pattern:"^[a-z0-9][a-z0-9-]{0,39}$" example:"scanner-hook"`
	// What it allows: roles, each with what it is limited to.
	Grants []string `json:"grants" minItems:"1" maxItems:"50" example:"[\"depositor:maps\"]"`
	// In how many days it ends.
	Days int `json:"days" minimum:"1" maximum:"366" example:"90"`
	// The reason. It is kept in the events.
	Reason string `json:"reason" minLength:"1" maxLength:"500" example:"The hook of the scanner."`
}

// Token is a token of the deployment, without its secret: nobody can read that again.
type Token struct {
	// The id of the token. Events name who calls with it token:ID.
	ID string `json:"id" example:"01M7ZBMEYHBB62YP6RY21T1GQ9"`
	// The name of the token.
	Name string `json:"name" example:"scanner-hook"`
	// The state of the token.
	State string `json:"state"`
	// What it allows: roles, each with what it is limited to.
	Grants []string `json:"grants" example:"[\"depositor:maps\"]"`
	// When it was made.
	Created string `json:"created" format:"date-time" example:"2026-11-22T09:30:00Z"`
	// Who made it.
	By string `json:"by" example:"4711 (\"Ada Lovelace\")"`
	// The reason for which it was made.
	Reason string `json:"reason" example:"The hook of the scanner."`
	// When it ends, unless it is revoked before.
	Expires string `json:"expires" format:"date-time" example:"2027-02-20T09:30:00Z"`
	// The day (UTC) of the last call that is known. Absent if none is known.
	Used string `json:"used,omitempty" format:"date" example:"2026-11-23"`
	// When it was revoked. Absent if it was not.
	Revoked string `json:"revoked,omitempty" format:"date-time" example:"2026-11-24T09:30:00Z"`
	// Who revoked it. Absent if nobody did.
	RevokedBy string `json:"revokedBy,omitempty" example:"4711 (\"Ada Lovelace\")"`
	// The reason for which it was revoked. Absent if it was not.
	RevokedReason string `json:"revokedReason,omitempty" example:"The scanner is sold."`
}

// NewToken is a token that was just made, with its text.
type NewToken struct {
	Token
	// The text of the token: what calls send as Authorization: Bearer TEXT. It is in this answer only.
	Text string `json:"token" example:"arc_01M7ZBMEYHBB62YP6RY21T1GQ9_…"`
}

// TokenAction is an action on a token.
type TokenAction struct {
	// The action.
	Action string `json:"action" enum:"revoke"`
	// The reason. It is kept in the events.
	Reason string `json:"reason" minLength:"1" maxLength:"500" example:"The scanner is sold."`
}

// CreateToken makes a token. The same key again is a conflict that names the token: its text is told once.
func (c *Client) CreateToken(ctx context.Context, in TokenRequest, key string) (NewToken, error) {
	return post[NewToken](ctx, c, "/v1/tokens", in, key)
}

// Token returns a token by its id, or an active one by its name.
func (c *Client) Token(ctx context.Context, idOrName string) (Token, error) {
	return get[Token](ctx, c, at("tokens", idOrName))
}

// Tokens lists tokens, newest first.
func (c *Client) Tokens(ctx context.Context, f Filter) ([]Token, error) {
	return list[Token](ctx, c, "/v1/tokens", f.Limit, f.query()...)
}

// RevokeToken ends a token: when it returns, the token is accepted no more. One that is revoked stays so.
func (c *Client) RevokeToken(ctx context.Context, id, reason string) (Token, error) {
	return post[Token](ctx, c, at("tokens", id, "actions"), TokenAction{"revoke", reason})
}
