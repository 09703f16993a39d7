package signin

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/oauth2"

	"archivist/pkg/kernel/fault"
)

// mostMinutes bounds the time in which a person has to sign in with the browser.
const mostMinutes = 5

// Browser signs a person in with the browser of this machine: the authorization code with PKCE,
// which comes back to a listener on loopback (RFC 8252). open shows the person a URL; an error of
// it ends the sign-in.
func (i *Issuer) Browser(ctx context.Context, open func(url string) error) (Tokens, error) {
	c, at, err := i.config(ctx)
	if err != nil {
		return Tokens{}, err
	}
	if at.Authorize == "" {
		return Tokens{}, fault.New(fault.Invalid, "the issuer %s has no sign-in by browser", i.URL)
	}

	l, err := listen(ctx)
	if err != nil {
		return Tokens{}, err
	}
	b := &back{issuer: i.URL, state: rand.Text(), came: make(chan url.Values, 1)}
	server := &http.Server{Handler: b, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(l) }() // until it is closed
	defer server.Close()

	c.RedirectURL = redirect(l.Addr().String())
	verifier := oauth2.GenerateVerifier()
	if err := open(c.AuthCodeURL(b.state, oauth2.S256ChallengeOption(verifier))); err != nil {
		return Tokens{}, err
	}

	waits, cancel := context.WithTimeout(ctx, mostMinutes*time.Minute)
	defer cancel()
	select {
	case <-waits.Done():
		if err := ctx.Err(); err != nil {
			return Tokens{}, err
		}
		return Tokens{}, fault.New(fault.Denied,
			"nobody has signed in within %d minutes", mostMinutes)
	case v := <-b.came:
		// The page that says so is sent before the listener is closed.
		_ = server.Shutdown(waits)
		if code := v.Get("error"); code != "" {
			return Tokens{}, i.refused(&oauth2.RetrieveError{ErrorCode: code})
		}
		return i.tokens(c.Exchange(i.context(ctx), v.Get("code"), oauth2.VerifierOption(verifier)))
	}
}

// ports are where the browser comes back to, the first that is free. Some issuers, as Amazon Cognito, know a client by
// its redirect URIs with their ports. If none is free it is any port, which all others accept (RFC 8252, section 7.3).
var ports = []string{"48731", "48732", "48733", "0"}

// Redirects are the URIs that an issuer has to know that compares ports.
func Redirects() (all []string) {
	for _, port := range ports[:len(ports)-1] {
		all = append(all, redirect("127.0.0.1:"+port))
	}
	return all
}

// redirect is the URI of a listener.
func redirect(at string) string { return "http://" + at + "/callback" }

// listen listens on loopback.
func listen(ctx context.Context) (l net.Listener, err error) {
	for _, port := range ports {
		l, err = new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", port))
		if err == nil {
			return l, nil
		}
	}
	return nil, err
}

// back is where the browser comes back to. It takes one answer: the first with the right state. All
// else is from somebody else.
type back struct {
	issuer string
	state  string
	came   chan url.Values // of one
}

// ServeHTTP takes the answer of the issuer.
func (b *back) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Connection", "close")
	v := r.URL.Query()
	iss := v.Get("iss") // RFC 9207: the answer of another issuer must not get the code of this one
	if r.Method != http.MethodGet || r.URL.Path != "/callback" || iss != "" && iss != b.issuer ||
		subtle.ConstantTimeCompare([]byte(v.Get("state")), []byte(b.state)) != 1 ||
		v.Get("code") == "" && v.Get("error") == "" {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, "This is not the answer to the sign-in that runs.\n")
		return
	}

	text := "You can close this page, and go on in the terminal.\n"
	select {
	case b.came <- v:
	default:
		text = "The sign-in has ended already.\n"
	}
	_, _ = io.WriteString(w, text)
}
