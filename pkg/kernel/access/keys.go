package access

import (
	"context"
	"crypto/ecdsa"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"

	"archivist/pkg/kernel/fault"
)

// When keys are fetched, and what is taken.
const (
	freshFor  = time.Hour        // keys are used without asking
	usedFor   = 24 * time.Hour   // keys are used while the issuer does not answer
	notBefore = 30 * time.Second // the time between two requests, whatever tokens come
	patience  = 5 * time.Second  // with each request
	maxBody   = 256 << 10        // bytes of a document
	maxKeys   = 50
)

// discovery is the path of the document of an issuer (OpenID Connect Discovery 1.0, section 4).
const discovery = "/.well-known/openid-configuration"

// Keys are the public keys of an issuer, fetched when they are needed, and kept. The fields are set before and not
// changed; the methods can be called concurrently.
type Keys struct {
	Issuer string // its URL
	HTTP   http.RoundTripper
	Now    func() time.Time

	fetching sync.Mutex // one request at a time
	mu       sync.Mutex // guards what follows
	last     keySet
}

// keySet is what is known of the keys of an issuer.
type keySet struct {
	keys    []jose.JSONWebKey
	fetched time.Time // zero: never
	tried   time.Time
	err     error // of the last try, nil if it succeeded
}

// find returns the keys that a token may be signed with: those with its key id. A token without one is accepted only
// if there is one key. An id that is not known may be that of a new key: so keys are fetched again, at most once in
// notBefore, so that tokens of any kind cost no requests. No key is an error as of Verify.
func (k *Keys) find(ctx context.Context, id string, alg jose.SignatureAlgorithm) ([]jose.JSONWebKey,
	error) {
	s := k.known()
	found := s.with(id, alg)
	if len(found) == 0 || k.Now().Sub(s.fetched) >= freshFor {
		s = k.refreshed(ctx)
		found = s.with(id, alg)
	}

	switch {
	case s.fetched.IsZero() || k.Now().Sub(s.fetched) >= usedFor, len(found) == 0 && s.err != nil:
		return nil, fault.New(fault.Unavailable,
			"the keys of the issuer of tokens are not known: %w", s.err)
	case len(found) == 0 && id == "":
		return nil, Refused("the token does not name its key (kid)")
	case len(found) == 0:
		return nil, Refused("the token is signed with a key that the issuer does not have (any more)")
	}
	return found, nil
}

// known is what is known now.
func (k *Keys) known() keySet {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.last
}

// refreshed is what is known after a fetch, or without one if there was one just now.
func (k *Keys) refreshed(ctx context.Context) keySet {
	k.fetching.Lock()
	defer k.fetching.Unlock()
	s := k.known()
	now := k.Now()
	if !s.tried.IsZero() && now.Sub(s.tried) < notBefore {
		return s
	}

	s.tried = now
	keys, err := k.fetch(ctx)
	s.err = err
	if err == nil {
		s.keys, s.fetched = keys, now
	}

	k.mu.Lock()
	defer k.mu.Unlock()
	k.last = s
	return s
}

// with are the keys with an id that are for an algorithm.
func (s keySet) with(id string, alg jose.SignatureAlgorithm) (out []jose.JSONWebKey) {
	for _, one := range s.keys {
		if (one.KeyID == id || id == "" && len(s.keys) == 1) && algorithm(one.Key) == alg {
			out = append(out, one)
		}
	}
	return out
}

// fetch reads the keys of the issuer. A caller that goes away does not end it: others wait for the keys, too.
func (k *Keys) fetch(ctx context.Context) (keys []jose.JSONWebKey, err error) {
	found, err := Discover(ctx, k.HTTP, k.Issuer)
	if err != nil {
		return nil, err
	}

	var set struct{ Keys []json.RawMessage }
	if err := read(ctx, k.HTTP, found.Keys, &set); err != nil {
		return nil, err
	}
	if len(set.Keys) > maxKeys {
		return nil, fmt.Errorf("the issuer has %d keys; at most %d are read", len(set.Keys),
			maxKeys)
	}

	for _, text := range set.Keys { // one that is for something else, or of a kind that is not known, is passed over
		var one jose.JSONWebKey
		if json.Unmarshal(text, &one) == nil && usable(one) {
			keys = append(keys, one)
		}
	}
	if len(keys) == 0 {
		return nil, errors.New("the issuer has no key for RS256 or ES256")
	}
	return keys, nil
}

// usable reports whether a key is for signatures that we verify.
func usable(k jose.JSONWebKey) bool {
	alg := algorithm(k.Key)
	return alg != "" && (k.Use == "" || k.Use == "sig") && (k.Algorithm == "" ||
		k.Algorithm == string(alg))
}

// algorithm is what a key is for, by the type of the key alone: a token does not choose. "" for all other keys.
func algorithm(key any) jose.SignatureAlgorithm {
	switch k := key.(type) {
	case *rsa.PublicKey:
		if k.N.BitLen() >= 2048 {
			return jose.RS256
		}
	case *ecdsa.PublicKey:
		if k.Curve.Params().BitSize == 256 {
			return jose.ES256
		}
	}
	return ""
}

// Endpoints are where an issuer answers, as its document of OpenID Connect Discovery says. All are https, or http if
// the issuer is on this machine. Those that the issuer does not have are "", but for the keys.
type Endpoints struct {
	Issuer    string `json:"issuer"`
	Keys      string `json:"jwks_uri"`
	Authorize string `json:"authorization_endpoint"`
	Token     string `json:"token_endpoint"`
	Device    string `json:"device_authorization_endpoint"`
	Revoke    string `json:"revocation_endpoint"`
	End       string `json:"end_session_endpoint"`
}

// Discover reads where an issuer answers. Any error means that nothing is known of it now.
func Discover(ctx context.Context, by http.RoundTripper, issuer string) (e Endpoints, err error) {
	base, err := issuerURL(issuer)
	if err != nil {
		return e, err
	}
	if err := read(ctx, by, strings.TrimSuffix(issuer, "/")+discovery, &e); err != nil {
		return Endpoints{}, err
	}
	if e.Issuer != issuer {
		return Endpoints{}, fmt.Errorf("the document at %s is of the issuer %.200q", issuer, e.Issuer)
	}

	for name, at := range map[string]string{"keys": e.Keys, "authorization": e.Authorize,
		"tokens": e.Token, "devices": e.Device, "revocation": e.Revoke, "sign-outs": e.End} {
		u, err := url.Parse(at)
		if at == "" && name != "keys" {
			continue
		}
		if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != base.Scheme {
			return Endpoints{}, fmt.Errorf("the issuer says that its %s are at %.200q; expected an "+
				"https URL", name, at)
		}
	}
	return e, nil
}

// read gets a JSON document. It follows no redirects: the issuer says where its documents are.
func read(ctx context.Context, by http.RoundTripper, from string, into any) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return err
	}

	req.Header.Set("Accept", "application/json")
	resp, err := by.RoundTrip(req)
	if err != nil {
		return err
	}

	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", from, resp.Status)
	}

	data, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	if err != nil {
		return err
	}
	if len(data) > maxBody {
		return fmt.Errorf("%s has more than 256 KiB", from)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%s is not JSON as expected: %w", from, err)
	}
	return nil
}

// issuerURL reads the URL of an issuer: https, or http on this machine.
func issuerURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, err
	}
	local := u.Hostname() == "localhost"
	if ip := net.ParseIP(u.Hostname()); ip != nil {
		local = ip.IsLoopback()
	}
	if u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" ||
		u.Scheme != "https" && (u.Scheme != "http" || !local) {
		return nil, fmt.Errorf("%.200q is not the https URL of an issuer", text)
	}
	return u, nil
}
