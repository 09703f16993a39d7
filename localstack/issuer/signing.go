package issuer

import (
	"crypto/rand"
	"github.com/go-jose/go-jose/v4"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4/jwt"

	"archivist/pkg/kernel/access"
)

// tokens are the answer with tokens.
type tokens struct {
	Access  string `json:"access_token"`
	Type    string `json:"token_type"`
	Expires int    `json:"expires_in"` // seconds
	Refresh string `json:"refresh_token,omitempty"`
	ID      string `json:"id_token,omitempty"`
	Scope   string `json:"scope,omitempty"`
}

// machineScope is in front of the grants of a machine in its scopes, as of a resource server of
// Cognito.
const machineScope = Audience + "/"

// forPerson makes the tokens of a grant, and keeps it if the client is to have a refresh token.
func (i *Issuer) forPerson(g *grant, nonce string) (out tokens, err error) {
	now := i.settings.Now()
	about := map[string]any{"name": g.user.Name, access.DefaultClaim: g.user.Groups}
	api := map[string]any{"client_id": g.client, "token_use": "access",
		"scope": strings.Join(g.scopes, " ")}
	out, err = i.signed(jose.ES256, g.user.Subject, about, api)
	if err != nil {
		return tokens{}, err
	}

	out.Scope = strings.Join(g.scopes, " ")
	if slices.Contains(g.scopes, "openid") {
		id := map[string]any{"auth_time": g.signedIn.Unix(), "token_use": "id"}
		if nonce != "" {
			id["nonce"] = nonce
		}
		out.ID, err = i.keys.sign(jose.RS256, i.usual(g.user.Subject, g.client), about, id)
		if err != nil {
			return tokens{}, err
		}
	}
	if slices.Contains(g.scopes, "offline_access") {
		out.Refresh = g.refreshToken()
		i.grants.put(g.id, g, now, refreshLife)
	}
	return out, nil
}

// forMachine makes the token of a machine. It has all of its scopes, or those that it asks for.
func (i *Issuer) forMachine(m *Machine, scopes []string) (out tokens, err error) {
	var all []string
	for _, g := range m.Groups {
		all = append(all, machineScope+g)
	}
	if len(scopes) == 0 {
		scopes = all
	}
	if slices.ContainsFunc(scopes, func(s string) bool { return !slices.Contains(all, s) }) {
		return out, no("invalid_scope", "the client does not have all of these scopes")
	}
	scope := strings.Join(scopes, " ")
	out, err = i.signed(jose.RS256, m.ID,
		map[string]any{"client_id": m.ID, "token_use": "access", "scope": scope})
	out.Scope = scope
	return out, err
}

// signed is an answer with a token for the API.
func (i *Issuer) signed(alg jose.SignatureAlgorithm, subject string, more ...any) (tokens, error) {
	text, err := i.keys.sign(alg, append([]any{i.usual(subject, Audience)}, more...)...)
	return tokens{Access: text, Type: "Bearer", Expires: int(i.settings.Life / time.Second)}, err
}

// usual are the claims of each token.
func (i *Issuer) usual(subject, audience string) jwt.Claims {
	now := i.settings.Now()
	return jwt.Claims{Issuer: i.settings.URL, Subject: subject, Audience: jwt.Audience{audience},
		ID: rand.Text(), IssuedAt: jwt.NewNumericDate(now),
		Expiry: jwt.NewNumericDate(now.Add(i.settings.Life))}
}
