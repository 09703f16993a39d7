package issuer

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"time"
)

// expiring keeps values by their names until they end, and at most a number: then that which ends
// first makes room.
type expiring[T any] map[string]kept[T]

// kept is a value, and when it ends.
type kept[T any] struct {
	value T
	ends  time.Time
}

func newExpiring[T any]() expiring[T] { return expiring[T]{} }

// put keeps a value, in place of one of the same name.
func (s expiring[T]) put(name string, value T, now time.Time, life time.Duration) {
	if _, there := s[name]; !there && len(s) >= most {
		first := ""
		for other, k := range s {
			if first == "" || k.ends.Before(s[first].ends) {
				first = other
			}
		}
		delete(s, first)
	}
	s[name] = kept[T]{value, now.Add(life)}
}

// get returns a value that has not ended.
func (s expiring[T]) get(name string, now time.Time) (value T, ok bool) {
	k, ok := s[name]
	if !ok || !now.Before(k.ends) {
		return value, false
	}
	return k.value, true
}

// code is an authorization code that was given out, with what its token will be for.
type code struct {
	client    string
	redirect  string
	challenge string // of PKCE, S256
	scopes    []string
	nonce     string
	user      *User
	signedIn  time.Time
	grant     string // made of it; "" = it was not used yet
}

// fits reports whether a verifier is that of the challenge (RFC 7636, section 4.6).
func (c *code) fits(verifier string) bool {
	if len(verifier) < 43 || len(verifier) > 128 {
		return false
	}
	sum := sha256.Sum256([]byte(verifier))
	return same(base64.RawURLEncoding.EncodeToString(sum[:]), c.challenge)
}

// grant is what a person has allowed a client. Its refresh token is replaced with each use.
type grant struct {
	id       string
	client   string
	user     *User
	scopes   []string
	secret   string // of the last refresh token
	signedIn time.Time
}

// refreshToken makes the next refresh token of a grant; the one before is not valid any more.
func (g *grant) refreshToken() string {
	g.secret = rand.Text() + rand.Text()
	return g.id + "." + g.secret
}

// same compares secrets in a time that does not depend on what they have.
func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// device is a client that waits for a person who is elsewhere.
type device struct {
	userCode string
	client   string
	scopes   []string
	each     time.Duration
	asked    time.Time // the last time
	user     *User     // who has agreed; nil = nobody yet
	signedIn time.Time
	denied   bool
}

// pollEach is how long a device has to wait between two requests; each that comes sooner makes it
// longer by the same (RFC 8628, section 3.5).
const pollEach = 5 * time.Second

// How long things are valid, and how many there can be. The oldest of too many is forgotten.
const (
	codeLife    = time.Minute
	deviceLife  = 10 * time.Minute
	refreshLife = 30 * 24 * time.Hour // from the last use
	usualLife   = 5 * time.Minute     // of tokens
	most        = 1000
)
