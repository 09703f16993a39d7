package issuer

import (
	"crypto/rand"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// The types of grants.
const (
	byCode    = "authorization_code"
	byRefresh = "refresh_token"
	byDevice  = "urn:ietf:params:oauth:grant-type:device_code"
	byClient  = "client_credentials"
)

// token answers a request for tokens.
func (i *Issuer) token(w http.ResponseWriter, r *http.Request) {
	f, err := form(r)
	if err != nil {
		refuse(w, "invalid_request", err.Error())
		return
	}

	out, err := i.exchange(r, f)
	var says *refusal
	switch {
	case errors.As(err, &says):
		refuse(w, says.code, says.text)
	case err != nil:
		refuse(w, "server_error", "the token cannot be signed")
	default:
		answer(w, http.StatusOK, out)
	}
}

// exchange gives tokens for what a client has. What is looked up and what is changed is under one
// lock, so that a code or a refresh token is used once.
func (i *Issuer) exchange(r *http.Request, f url.Values) (out tokens, err error) {
	machine, err := i.client(r, f)
	if err != nil {
		return out, err
	}

	i.mu.Lock()
	defer i.mu.Unlock()
	kind := f.Get("grant_type")
	switch {
	case machine != nil && kind == byClient:
		return i.forMachine(machine, strings.Fields(f.Get("scope")))
	case machine != nil, kind == byClient:
		return out, no("unauthorized_client", "the client may not use this type of grant")
	case kind == byCode:
		return i.forCode(f)
	case kind == byDevice:
		return i.forDevice(f)
	case kind == byRefresh:
		return i.forRefresh(f)
	}
	return out, no("unsupported_grant_type", "expected a type of grant that the discovery lists")
}

// client says which client asks: a machine with its secret, or nil for the command line, which has
// none.
func (i *Issuer) client(r *http.Request, f url.Values) (*Machine, error) {
	id, secret, basic := r.BasicAuth()
	if basic { // both are encoded as in a form (RFC 6749, section 2.3.1)
		var err1, err2 error
		id, err1 = url.QueryUnescape(id)
		secret, err2 = url.QueryUnescape(secret)
		if err := errors.Join(err1, err2); err != nil || f.Has("client_secret") {
			return nil, no("invalid_client", "the client must say once who it is")
		}
	} else {
		id, secret = f.Get("client_id"), f.Get("client_secret")
	}

	if id == ClientID && secret == "" {
		return nil, nil
	}
	m := i.settings.Accounts.machine(id)
	if m == nil || !same(m.Secret, secret) {
		return nil, no("invalid_client", "the client is not known here, or its secret is wrong")
	}
	return m, nil
}

// forCode gives tokens for an authorization code. One that comes again was stolen, from the client
// or from here: the tokens that were made of it are revoked (RFC 6749, section 4.1.2).
func (i *Issuer) forCode(f url.Values) (out tokens, err error) {
	now := i.settings.Now()
	c, ok := i.codes.get(f.Get("code"), now)
	switch {
	case !ok:
		return out, no("invalid_grant", "the code is not known, or has expired")
	case c.grant != "":
		delete(i.grants, c.grant)
		return out, no("invalid_grant", "the code was used before")
	case c.redirect != f.Get("redirect_uri"):
		return out, no("invalid_grant", "the redirect_uri is not that of the code")
	case !c.fits(f.Get("code_verifier")):
		return out, no("invalid_grant", "the code_verifier is not that of the code")
	}

	g := &grant{id: rand.Text(), client: c.client, user: c.user, scopes: c.scopes, signedIn: c.signedIn}
	c.grant = g.id
	return i.forPerson(g, c.nonce)
}

// forDevice gives tokens to a device once a person has agreed.
func (i *Issuer) forDevice(f url.Values) (out tokens, err error) {
	now, name := i.settings.Now(), f.Get("device_code")
	k, there := i.devices[name]
	d := k.value
	switch {
	case !there:
		return out, no("invalid_grant", "the device_code is not known")
	case !now.Before(k.ends):
		return out, no("expired_token", "nobody has agreed in time; begin again")
	case now.Sub(d.asked) < d.each:
		d.each += pollEach
		d.asked = now
		return out, no("slow_down", "ask less often")
	}

	d.asked = now
	switch {
	case d.denied:
		return out, no("access_denied", "the device was refused")
	case d.user == nil:
		return out, no("authorization_pending", "nobody has agreed yet")
	}
	delete(i.devices, name)
	return i.forPerson(&grant{id: rand.Text(), client: d.client, user: d.user, scopes: d.scopes,
		signedIn: d.signedIn}, "")
}

// forRefresh gives new tokens, also a new refresh token. One that was replaced comes from a thief,
// or from who was robbed: nobody knows which, so neither goes on (RFC 9700, section 4.14.2).
func (i *Issuer) forRefresh(f url.Values) (out tokens, err error) {
	g, last := i.grantOf(f.Get("refresh_token"), ClientID)
	scopes := strings.Fields(f.Get("scope"))
	switch {
	case g == nil:
		return out, no("invalid_grant", "the refresh token is not valid any more")
	case !last:
		delete(i.grants, g.id)
		return out, no("invalid_grant", "the refresh token was used before; sign in again")
	case slices.ContainsFunc(scopes, func(s string) bool { return !slices.Contains(g.scopes, s) }):
		return out, no("invalid_scope", "more scopes than those of the refresh token")
	}
	return i.forPerson(g, "")
}

// grantOf finds the grant of a refresh token of a client, and whether it is the last one.
func (i *Issuer) grantOf(token, client string) (g *grant, last bool) {
	id, secret, _ := strings.Cut(token, ".")
	g, ok := i.grants.get(id, i.settings.Now())
	if !ok || g.client != client {
		return nil, false
	}
	return g, same(secret, g.secret)
}
