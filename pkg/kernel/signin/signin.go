// Package signin signs people and programs in at an OpenID Connect issuer, and keeps what a person
// gets there in a file of their own.
//
//	i := signin.Issuer{URL: "https://login.example.org", ClientID: "archivist-cli", Scopes: scopes,
//		HTTP: http.DefaultClient, Now: time.Now}
//	tokens, err := i.Browser(ctx, open)
//	err = store.Save(signin.Session{API: api, Issuer: i.URL, ClientID: i.ClientID, Tokens: tokens})
//
// The parts: browser.go and device.go are the two ways in which a person signs in; store.go has
// the files of sessions, and live.go what refreshes a session while it is used;
// program.go is for programs that have a secret.
package signin

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"archivist/pkg/kernel/access"
	"archivist/pkg/kernel/fault"
)

// patience is the time for one request to an issuer.
const patience = 30 * time.Second

// ErrEnded is in the chain of the error of a grant that the issuer does not accept any more: one
// has to sign in again.
var ErrEnded = errors.New("the session has ended")

// Issuer gets tokens of an issuer. The fields are set before and not changed.
type Issuer struct {
	URL      string
	ClientID string // of a client without a secret
	Scopes   []string
	HTTP     *http.Client
	Now      func() time.Time
}

// Tokens are what an issuer gives. They are secrets: no format prints them.
type Tokens struct {
	Access  string    `json:"accessToken"`
	Refresh string    `json:"refreshToken,omitempty"`
	Expires time.Time `json:"expires,omitzero"` // of Access; zero if the issuer does not say
}

// Fresh reports whether the access token is valid still at a time.
func (t Tokens) Fresh(at time.Time) bool { return t.Expires.IsZero() || at.Before(t.Expires) }

// String says only that there are tokens.
func (Tokens) String() string { return "(tokens)" }

// GoString is String.
func (t Tokens) GoString() string { return t.String() }

// Machine returns the token of a program that has a secret (RFC 6749, section 4.4). It has all the
// scopes that the issuer knows for it.
func (i *Issuer) Machine(ctx context.Context, id, secret string) (Tokens, error) {
	at, err := i.endpoints(ctx)
	if err != nil {
		return Tokens{}, err
	}
	c := clientcredentials.Config{ClientID: id, ClientSecret: secret, TokenURL: at.Token,
		AuthStyle: oauth2.AuthStyleInHeader}
	t, err := c.Token(i.context(ctx))
	return i.tokens(t, err)
}

// Refresh returns new tokens for a refresh token, which may not be valid afterwards: what is
// returned has to be kept. So it goes on if ctx ends, for a limited time.
func (i *Issuer) Refresh(ctx context.Context, refresh string) (Tokens, error) {
	ctx = context.WithoutCancel(ctx)
	c, _, err := i.config(ctx)
	if err != nil {
		return Tokens{}, err
	}
	out, err := i.tokens(c.Exchange(i.context(ctx), "", oauth2.SetAuthURLParam("grant_type", "refresh_token"),
		oauth2.SetAuthURLParam("refresh_token", refresh)))
	if err == nil && out.Refresh == "" {
		out.Refresh = refresh // the issuer does not replace it
	}
	return out, err
}

// Revoke ends a refresh token, and what was made of it (RFC 7009). An issuer that has no such
// endpoint is an Invalid.
func (i *Issuer) Revoke(ctx context.Context, refresh string) error {
	at, err := i.endpoints(ctx)
	if err != nil {
		return err
	}
	if at.Revoke == "" {
		return fault.New(fault.Invalid, "the issuer %s cannot revoke tokens", i.URL)
	}

	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	form := url.Values{"token": {refresh}, "token_type_hint": {"refresh_token"}, "client_id": {i.ClientID}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at.Revoke, strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := i.client().Do(req)
	if err != nil {
		return i.away(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return i.away(errors.New("it answers " + resp.Status))
	}
	return nil
}

// client makes requests to the issuer. It follows no redirects: what it sends is secret.
func (i *Issuer) client() *http.Client {
	c := *i.HTTP
	c.Timeout = patience
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &c
}

// context lets oauth2 make its requests with the client.
func (i *Issuer) context(ctx context.Context) context.Context {
	return context.WithValue(ctx, oauth2.HTTPClient, i.client())
}

// endpoints are where the issuer answers.
func (i *Issuer) endpoints(ctx context.Context) (access.Endpoints, error) {
	by := i.HTTP.Transport
	if by == nil {
		by = http.DefaultTransport
	}
	at, err := access.Discover(ctx, by, i.URL)
	if err != nil {
		return at, i.away(err)
	}
	return at, nil
}

// config is what oauth2 needs, with where the issuer answers.
func (i *Issuer) config(ctx context.Context) (*oauth2.Config, access.Endpoints, error) {
	at, err := i.endpoints(ctx)
	return &oauth2.Config{ClientID: i.ClientID, Scopes: i.Scopes, Endpoint: oauth2.Endpoint{AuthURL: at.Authorize,
		TokenURL: at.Token, DeviceAuthURL: at.Device, AuthStyle: oauth2.AuthStyleInParams}}, at, err
}

// tokens are those of an answer.
func (i *Issuer) tokens(t *oauth2.Token, err error) (Tokens, error) {
	if err != nil {
		return Tokens{}, i.refused(err)
	}
	out := Tokens{Access: t.AccessToken, Refresh: t.RefreshToken}
	if t.ExpiresIn > 0 {
		out.Expires = i.Now().Add(time.Duration(t.ExpiresIn) * time.Second)
	}
	if !strings.EqualFold(t.Type(), "Bearer") {
		return Tokens{}, fault.New(fault.Unavailable,
			"the issuer %s gives tokens of the type %.50q; expected Bearer",
			i.URL, t.Type())
	}
	return out, nil
}

// refused makes an error of that of oauth2. What the issuer has sent is not in it but for its own
// words on the error: it could have a token.
func (i *Issuer) refused(err error) error {
	says, answered := errors.AsType[*oauth2.RetrieveError](err)
	if !answered {
		return i.away(err)
	}
	switch says.ErrorCode {
	case "invalid_grant", "expired_token":
		return &fault.Error{Kind: fault.Denied, Err: ErrEnded,
			Msg: "the issuer " + i.URL + " does not accept the session any more; sign in again"}
	case "access_denied":
		return fault.New(fault.Denied, "the sign-in was refused at %s", i.URL)
	case "invalid_client":
		return fault.New(fault.Denied,
			"the issuer %s does not know the client, or its secret is wrong", i.URL)
	case "":
		return i.away(errors.New("it answers " + says.Response.Status))
	}
	return fault.New(fault.Denied, "the issuer %s refuses: %.100q, %.300q", i.URL, says.ErrorCode,
		says.ErrorDescription)
}

// away is the error of an issuer that gives no answer that can be used.
func (i *Issuer) away(err error) error {
	return fault.New(fault.Unavailable,
		"the issuer of tokens at %s does not answer as it should: %w", i.URL, err)
}
