package signin

import (
	"context"
	"crypto/subtle"
	"net/url"
	"slices"

	"golang.org/x/oauth2"

	"archivist/pkg/kernel/fault"
)

// Started is a sign-in that a web application has begun: the authorization code with PKCE (RFC 6749,
// RFC 7636). It belongs to one browser, which has to show State and Verifier again when it comes back.
type Started struct {
	State    string
	Verifier string
	Redirect string // where the browser comes back to: an absolute URL
}

// Authorize returns the URL at which a person signs in for a web application. No refresh token is asked for. An
// Invalid: the issuer has no sign-in by browser.
func (i *Issuer) Authorize(ctx context.Context, s Started) (string, error) {
	c, at, err := i.config(ctx)
	if err != nil {
		return "", err
	}
	if at.Authorize == "" {
		return "", fault.New(fault.Invalid, "the issuer %s has no sign-in by browser", i.URL)
	}
	c.RedirectURL = s.Redirect
	c.Scopes = slices.DeleteFunc(slices.Clone(c.Scopes), func(s string) bool { return s == "offline_access" })
	return c.AuthCodeURL(s.State, oauth2.S256ChallengeOption(s.Verifier)), nil
}

// Finish returns the tokens of a sign-in whose browser came back with a query. An Invalid: the query is not the answer
// to this sign-in. Other errors are those of the issuer.
func (i *Issuer) Finish(ctx context.Context, s Started, v url.Values) (Tokens, error) {
	iss := v.Get("iss") // RFC 9207: the answer of another issuer must not get the code of this one
	if s.State == "" || subtle.ConstantTimeCompare([]byte(v.Get("state")), []byte(s.State)) != 1 ||
		iss != "" && iss != i.URL || v.Get("code") == "" && v.Get("error") == "" {
		return Tokens{}, fault.New(fault.Invalid,
			"this is not the answer to the sign-in that this browser "+
				"has begun; sign in again")
	}
	if code := v.Get("error"); code != "" {
		return Tokens{}, i.refused(&oauth2.RetrieveError{ErrorCode: code})
	}
	c, _, err := i.config(ctx)
	if err != nil {
		return Tokens{}, err
	}
	c.RedirectURL = s.Redirect
	return i.tokens(c.Exchange(i.context(ctx), v.Get("code"), oauth2.VerifierOption(s.Verifier)))
}

// SignOut returns the URL at which a person ends the session that a browser has at the issuer (OpenID Connect
// RP-Initiated Logout); without that, the next sign-in asks for no password. It is "" if the issuer has none. back is
// where the browser comes back to: an absolute URL, which the issuer has to know of the client.
func (i *Issuer) SignOut(ctx context.Context, back string) (string, error) {
	at, err := i.endpoints(ctx)
	if err != nil || at.End == "" {
		return "", err
	}
	u, err := url.Parse(at.End)
	if err != nil {
		return "", i.away(err)
	}
	q := u.Query()
	q.Set("client_id", i.ClientID)
	q.Set("post_logout_redirect_uri", back)
	q.Set("logout_uri", back) // as Amazon Cognito has it
	u.RawQuery = q.Encode()
	return u.String(), nil
}
