// Package issuer is an OpenID Connect issuer for this machine: what signs people and programs in
// where there is no Cognito, so that the same code is used as on AWS. It asks for no password, so
// it listens on loopback only, and its pages say so.
//
//	i, err := issuer.New(issuer.Settings{URL: "http://127.0.0.1:4581", Now: time.Now})
//	http.Serve(listener, i)
//
// What it has: discovery and keys (OpenID Connect Discovery 1.0), the authorization code with PKCE
// (RFC 6749, RFC 7636, RFC 8252), the device flow (RFC 8628), client credentials, refresh tokens
// that are used once (RFC 9700, section 4.14), and revocation (RFC 7009). All state is in memory,
// and bounded.
//
// The parts: routes.go has the endpoints; authorize.go, device.go, token.go and revoke.go one each;
// signing.go makes tokens, refusal.go what is answered otherwise; pages.go has what people see,
// grants.go what is remembered between requests, keys.go the keys, accounts.go who can sign in.
package issuer

import (
	"net/http"
	"sync"
	"time"

	"archivist/pkg/kernel/access"
	"archivist/pkg/kernel/fault"
)

// Claims are the claims with grants: that of people, and that of programs, as Cognito has them.
func Claims() []string { return []string{access.DefaultClaim, "scope"} }

// Scopes are those that a person can ask for.
func Scopes() []string { return []string{"openid", "profile", "offline_access"} }

// redirect is where the command line listens; its port is any (RFC 8252, section 7.3).
const redirect = "http://127.0.0.1/callback"

// consolePath is the end of the path where a console on this machine is told the answer, on any port: a gateway can
// have a path of its own before it.
const consolePath = "/console/callback"

// Settings are those of an issuer.
type Settings struct {
	URL      string // as clients reach it, without a path: http://127.0.0.1:PORT
	Accounts Accounts
	Life     time.Duration // of access tokens; 0 = 5 minutes
	Now      func() time.Time
}

// Issuer answers the requests of browsers and clients. Its methods can be called concurrently.
type Issuer struct {
	settings Settings
	host     string
	mux      *http.ServeMux

	mu      sync.Mutex // guards what follows
	keys    keys
	codes   expiring[*code]
	devices expiring[*device] // by the code of the device
	grants  expiring[*grant]
}

// Machine is a token for a machine, without a request: for who has started the issuer, and for tests. A NotFound: it
// has no account.
func (i *Issuer) Machine(id string) (string, error) {
	m := i.settings.Accounts.machine(id)
	if m == nil {
		return "", fault.New(fault.NotFound, "issuer: there is no machine %q", id)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	out, err := i.forMachine(m, nil)
	return out.Access, err
}

// Rotate signs with other keys from now on. Those before are published until the last token that
// they have signed has expired, and clocks may differ by a minute.
func (i *Issuer) Rotate() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.keys.rotate(i.settings.Now().Add(i.settings.Life + time.Minute))
}
