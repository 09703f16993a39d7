package api

import (
	"context"
	"maps"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/token"
	"archivist/pkg/kernel/fault"
)

// TokenRequest is a request to make a token.
type TokenRequest struct {
	Acting
	Body v1.TokenRequest
}

// TokenAction is a request to act on a token.
type TokenAction struct {
	IDInput
	Acting
	Body v1.TokenAction
}

// TokensInput selects a page of tokens.
type TokensInput struct {
	State  string `query:"state"`
	Cursor string `query:"cursor"`
}

// MadeToken is the response to a request for a token.
type MadeToken struct {
	Location string `header:"Location" doc:"The token's URL, relative." example:"tokens/01M7ZBMEYHBB62YP6RY21T1GQ9"`
	Body     v1.NewToken
}

// tokens registers the routes of the deployment's own tokens.
func (a *API) tokens(h huma.API) {
	const path = "/v1/tokens"
	huma.Register(h, huma.Operation{
		Method:        http.MethodPost,
		Path:          path,
		OperationID:   "createToken",
		Summary:       "Create a token",
		DefaultStatus: http.StatusCreated,
	}, a.createToken)
	get(a, h, path, "listTokens", "List the tokens", a.listTokens)
	get(a, h, path+"/{id}", "getToken", "Get a token",
		func(ctx context.Context, in *IDInput) (v1.Token, error) {
			return a.oneToken(a.Tokens.Token(ctx, in.ID))
		})
	post(a, h, path+"/{id}/actions", "actOnToken", "Revoke a token",
		func(ctx context.Context, in *TokenAction) (v1.Token, error) {
			by, err := in.by(in.Body.Reason)
			if err != nil {
				return v1.Token{}, err
			}
			return a.oneToken(a.Tokens.Revoke(ctx, in.ID, by))
		})
}

// errTokenMakesToken keeps one who has found a token from outliving its revocation by others.
var errTokenMakesToken = fault.New(fault.Denied, "a token of the deployment cannot make another one; "+
	"sign in as an administrator: archivist login")

// createToken makes a token. Its text is in this answer, and nowhere else.
func (a *API) createToken(ctx context.Context, in *TokenRequest) (*MadeToken, error) {
	if in.who.OwnToken() {
		return nil, a.problem(errTokenMakesToken)
	}
	by, err := in.by(in.Body.Reason)
	if err != nil {
		return nil, a.problem(err)
	}
	row, text, err := a.Tokens.Create(ctx, token.Request{Name: in.Body.Name, Grants: in.Body.Grants,
		Days: in.Body.Days, By: by})
	if err != nil {
		return nil, a.problem(err)
	}
	return &MadeToken{"tokens/" + row.ID, v1.NewToken{Token: a.wireToken(*row), Text: text}}, nil
}

// listTokens lists tokens, newest first.
func (a *API) listTokens(ctx context.Context, in *TokensInput) (v1.List[v1.Token], error) {
	state, err := filterBy(in.State, v1.TokenStates)
	if err != nil {
		return v1.List[v1.Token]{}, err
	}

	read := func(cursor string) (p queue.Page[token.Token], err error) {
		p.Items, p.Cursor, err = a.Tokens.Tokens(ctx, cursor)
		return p, err
	}
	p, err := filtered(a, read, in.Cursor, inState(state,
		func(t token.Token) string { return string(t.State(a.Tokens.Now())) }))
	return list(p, a.wireToken), err
}

// oneToken is the wire form of a token that was read, if it was.
func (a *API) oneToken(row *token.Token, err error) (v1.Token, error) {
	if err != nil {
		return v1.Token{}, err
	}
	return a.wireToken(*row), nil
}

// wireToken is the wire form of a token, without the hash of its secret.
func (a *API) wireToken(t token.Token) v1.Token {
	return v1.Token{
		ID:            t.ID,
		Name:          t.Name,
		State:         string(t.State(a.Tokens.Now())),
		Grants:        t.Grants,
		Created:       timestamp(t.Created),
		By:            t.By,
		Reason:        t.Reason,
		Expires:       timestamp(t.Expires),
		Used:          t.Used,
		Revoked:       timestamp(t.Revoked),
		RevokedBy:     t.RevokedBy,
		RevokedReason: t.RevokedReason,
	}
}

// tokenID is the token of the examples.
const tokenID = "01M7ZBMEYHBB62YP6RY21T1GQ9"

var tokenExample = v1.Token{ID: tokenID, Name: "scanner-hook", State: v1.TokenActive,
	Grants: []string{"depositor:maps"}, Created: timeExample, By: `4711 ("Ada Lovelace")`,
	Reason: "The hook of the scanner.", Expires: "2027-02-20T09:30:00Z", Used: "2026-11-23"}

// newTokenExample is what is not used yet, with its text.
func newTokenExample() v1.NewToken {
	t := v1.NewToken{Token: tokenExample, Text: "arc_" + tokenID + "_…"}
	t.Used = ""
	return t
}

// revokedExample is the token after the action.
func revokedExample() v1.Token {
	t := tokenExample
	t.State, t.Revoked, t.RevokedBy, t.RevokedReason = v1.TokenRevoked, "2026-11-24T09:30:00Z", t.By,
		"The scanner is sold."
	return t
}

// tokenOperations are added to operations when the package is initialized.
var tokenOperations = map[string]about{
	"createToken": {tag: "Tokens", refusals: []problemType{conflict},
		request: v1.TokenRequest{Name: "scanner-hook", Grants: []string{"depositor:maps"}, Days: 90,
			Reason: "The hook of the scanner."},
		answer: newTokenExample(),
		description: "A token for a hook or a small program. Its text is in this response only: " +
			"the archive keeps a hash. The header `Location` is the URL of the token, relative " +
			"to the request.\n\nA call with a token of the deployment makes no other one, " +
			"whatever its role. With an `Idempotency-Key` the token is made once; a repetition " +
			"is a conflict that names the token, since the text cannot be told again."},
	"listTokens": {tag: "Tokens", states: v1.TokenStates,
		answer: v1.List[v1.Token]{Items: []v1.Token{tokenExample}, Cursor: cursorExample},
		description: "Newest first, 50 to a page. The filter is applied before the paging. A " +
			"token that was just made may not be there yet. Tokens are listed until 90 days " +
			"after their end."},
	"getToken": {tag: "Tokens", refusals: []problemType{notFound}, answer: tokenExample,
		description: "The current state of the token, without its text."},
	"actOnToken": {tag: "Tokens", refusals: []problemType{notFound, changed},
		request: v1.TokenAction{Action: "revoke", Reason: "The scanner is sold."},
		answer:  revokedExample(),
		description: "`revoke` ends a token: after the response no call with it is accepted. A " +
			"token that is revoked stays as it is."},
}

func init() {
	maps.Copy(operations, tokenOperations)
	parameters["getToken id"] = parameter{"The id of the token, or the name of an active one.", tokenID}
	parameters["actOnToken id"] = parameter{"The id of the token.", tokenID}
	parameters["listTokens state"] = parameter{"Only tokens in this state. Case is ignored.",
		v1.TokenActive}
}
