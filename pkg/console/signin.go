package console

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"net/http"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/signin"
)

// signInTime is how long a sign-in may take, from its begin until the browser comes back.
const signInTime = 10 * time.Minute

// revokeTime bounds the wait for the issuer when somebody signs out.
const revokeTime = 3 * time.Second

// issuer is where people sign in, as the API says it.
func (c *Console) issuer(ctx context.Context) (*signin.Issuer, error) {
	where, err := c.client(&inside{to: c.API}, "").SignIn(ctx)
	if err != nil {
		return nil, err
	}
	return &signin.Issuer{URL: where.Issuer, ClientID: cmp.Or(c.Client, where.ClientID),
		Scopes: where.Scopes, HTTP: &http.Client{Transport: c.Web}, Now: c.Now}, nil
}

// based is the key of a context for the path of the gateway's stage.
type based struct{}

// WithBase says under which path a gateway serves a request, e.g. "/prod"; "" = none. It is needed only for addresses
// that cannot be relative: to which an issuer sends browsers back, and of the console itself. What the request itself
// says must not get here.
func WithBase(ctx context.Context, base string) context.Context {
	return context.WithValue(ctx, based{}, base)
}

// base is what WithBase has said of a request.
func base(r *http.Request) string {
	text, _ := r.Context().Value(based{}).(string)
	return text
}

// back is an address below /console/ as the issuer has to know it, to which it sends the browser back.
func (c *Console) back(r *http.Request, to string) string {
	scheme := "https://"
	if c.Local {
		scheme = "http://"
	}
	return scheme + r.Host + base(r) + "/console/" + to
}

// signIn begins a sign-in: the browser keeps what it has to show when it comes back, and goes to the issuer.
func (c *Console) signIn(v *visit) error {
	i, err := c.issuer(v.Context())
	if err != nil {
		return err
	}
	s := signin.Started{State: rand.Text(), Verifier: oauth2.GenerateVerifier(),
		Redirect: c.back(v.Request, "callback")}
	at, err := i.Authorize(v.Context(), s)
	if err != nil {
		return err
	}
	to := base64.RawURLEncoding.EncodeToString([]byte(within(v.URL.Query().Get("to"))))
	v.set(startCookie, s.State+"."+s.Verifier+"."+to, signInTime)
	v.w.Header().Set("Location", at)
	v.w.WriteHeader(http.StatusSeeOther)
	return nil
}

// comeBack ends a sign-in: the code becomes a token, which the API has to accept, and which the browser keeps. Whatever
// session it had before is gone.
func (c *Console) comeBack(v *visit) error {
	parts := strings.Split(v.get(startCookie), ".")
	v.clear(startCookie) // it is used once
	if len(parts) != 3 {
		return fault.New(fault.Invalid, "this browser has begun no sign-in, or not within %d minutes; sign in again",
			int(signInTime.Minutes()))
	}
	i, err := c.issuer(v.Context())
	if err != nil {
		return err
	}
	tokens, err := i.Finish(v.Context(), signin.Started{State: parts[0], Verifier: parts[1],
		Redirect: c.back(v.Request, "callback")}, v.URL.Query())
	if err != nil {
		return err
	}
	if n := len(tokens.Access); n > largestToken {
		return fault.New(fault.Unavailable, "the token of the issuer %s has %d bytes, and a browser keeps at most %d; "+
			"it has to name fewer groups", i.URL, n, largestToken)
	}
	if _, err := c.client(v.via, tokens.Access).WhoAmI(v.Context()); err != nil {
		return err
	}

	life := longestSession
	if !tokens.Expires.IsZero() {
		life = min(life, tokens.Expires.Sub(c.Now()))
	}
	v.set(sessionCookie, tokens.Access, life)
	to, _ := base64.RawURLEncoding.DecodeString(parts[2]) // else the first page
	redirect(v, within(string(to)))
	return nil
}

// signOut ends the session of this browser. The issuer is asked to revoke its token; one that cannot, or is away, does
// not keep anybody signed in here.
func (c *Console) signOut(v *visit) {
	if token := v.get(sessionCookie); token != "" {
		ctx, cancel := context.WithTimeout(v.Context(), revokeTime)
		defer cancel()
		i, err := c.issuer(ctx)
		if err == nil {
			err = i.Revoke(ctx, token)
		}
		if err != nil {
			c.Log.Warn("a token was not revoked at a sign-out; it ends by itself", "error", err)
		}
	}
	v.clear(sessionCookie)
	redirect(v, "signed-out")
}

// signedOut says that nobody is signed in any more.
type signedOut struct {
	Issuer string
	End    string // the address that ends the session there; "" = there is none
}

// showSignedOut shows that the session has ended.
func (c *Console) showSignedOut(v *visit) {
	var s signedOut
	if i, err := c.issuer(v.Context()); err == nil {
		s.Issuer = i.URL
		if s.End, err = i.SignOut(v.Context(), c.back(v.Request, "signed-out")); err != nil {
			c.Log.Warn("it is not known how a session at the issuer is ended", "error", err)
		}
	}
	c.show(v, http.StatusOK, "signedout", view{Title: "You are signed out", Body: s, Still: true})
}
