package access

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"archivist/pkg/kernel/fault"
)

// at is the time of the tests.
var at = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

const (
	theIssuer = "https://login.example.org/pool"
	other     = "https://login.example.org/other"
)

// The keys of the tests. Making them takes time, so they are made once.
var (
	rsaKey   = sync.OnceValue(func() *rsa.PrivateKey { return newRSA(2048) })
	rsaOther = sync.OnceValue(func() *rsa.PrivateKey { return newRSA(2048) })
	rsaSmall = sync.OnceValue(func() *rsa.PrivateKey { return newRSA(1024) })
	ecKey    = sync.OnceValue(func() *ecdsa.PrivateKey { return newEC(elliptic.P256()) })
	ecLarge  = sync.OnceValue(func() *ecdsa.PrivateKey { return newEC(elliptic.P384()) })
)

func newRSA(bits int) *rsa.PrivateKey {
	k, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		panic(err)
	}
	return k
}

func newEC(c elliptic.Curve) *ecdsa.PrivateKey {
	k, err := ecdsa.GenerateKey(c, rand.Reader)
	if err != nil {
		panic(err)
	}
	return k
}

// issuer answers with its documents, and counts the requests of keys.
type issuer struct {
	name string // in its document
	at   string // where it says its keys are
	keys []jose.JSONWebKey
	more string // of the set of keys, in JSON
	away bool
	asks int
}

// RoundTrip answers a request.
func (i *issuer) RoundTrip(r *http.Request) (*http.Response, error) {
	if i.away {
		return nil, errors.New("connection refused")
	}
	var body []byte
	switch r.URL.Path {
	case "/pool/.well-known/openid-configuration":
		body, _ = json.Marshal(map[string]string{"issuer": i.name, "jwks_uri": i.at})
	case "/pool/keys":
		i.asks++
		body, _ = json.Marshal(jose.JSONWebKeySet{Keys: i.keys})
		body = bytes.Replace(body, []byte(`[`), []byte(`[`+i.more), 1)
	default:
		return &http.Response{StatusCode: http.StatusFound, Status: "302 Found", Body: http.NoBody},
			nil
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(body))}, nil
}

// public is a key as its issuer publishes it.
func public(id string, key crypto.Signer) jose.JSONWebKey {
	return jose.JSONWebKey{Key: key.Public(), KeyID: id}
}

// begin is a verifier whose issuer has keys, and its clock.
func begin(keys ...jose.JSONWebKey) (*Verifier, *issuer, *time.Time) {
	now := at
	clock := func() time.Time { return now }
	i := &issuer{name: theIssuer, at: theIssuer + "/keys", keys: keys}
	return &Verifier{Issuer: theIssuer, Audiences: []string{"archivist", "second"}, Now: clock,
		Keys: &Keys{Issuer: theIssuer, HTTP: i, Now: clock}}, i, &now
}

// with are the claims of a good token, with some changed. A nil takes one away.
func with(changes map[string]any) map[string]any {
	c := map[string]any{"iss": theIssuer, "aud": "archivist", "sub": "4711",
		"exp": at.Add(time.Hour).Unix(),
		"iat": at.Unix(), "name": "Ada Lovelace", "cognito:groups": []string{"viewer", "staff",
			"depositor:maps"}}
	maps.Copy(c, changes)
	maps.DeleteFunc(c, func(_ string, v any) bool { return v == nil })
	return c
}

// signed is a token. The key id is left out if it is "".
func signed(t *testing.T, alg jose.SignatureAlgorithm, key any, id string, claims any) string {
	t.Helper()
	options := &jose.SignerOptions{}
	if id != "" {
		options.WithHeader("kid", id)
	}
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, options)
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	out, err := s.Sign(body)
	if err != nil {
		t.Fatal(err)
	}
	text, err := out.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// raw is a token with a header and a signature as they are given.
func raw(head string, claims any, signature []byte) string {
	body, _ := json.Marshal(claims)
	e := base64.RawURLEncoding.EncodeToString
	return e([]byte(head)) + "." + e(body) + "." + e(signature)
}

// TestVerify: what a good token says is what the identity has.
func TestVerify(t *testing.T) {
	v, _, _ := begin(public("r", rsaKey()), public("e", ecKey()))
	v.Claims = []string{DefaultClaim, "scope"}
	all := []Grant{{Role: Viewer}, {Depositor, "maps"}}
	for name, c := range map[string]struct {
		token  string
		grants []Grant
		name   string
	}{
		"RS256": {signed(t, jose.RS256, rsaKey(), "r", with(nil)), all, "Ada Lovelace"},
		"ES256": {signed(t, jose.ES256, ecKey(), "e", with(nil)), all, "Ada Lovelace"},
		"aud is a list": {signed(t, jose.ES256, ecKey(), "e",
			with(map[string]any{"aud": []string{"x", "second"}})),
			all, "Ada Lovelace"},
		"no groups": {signed(t, jose.ES256, ecKey(), "e", with(map[string]any{"cognito:groups": nil,
			"name": nil})),
			nil, ""},
		"scopes of a machine": {signed(t, jose.ES256, ecKey(), "e", with(map[string]any{"aud": nil,
			"name":      nil,
			"client_id": "archivist", "token_use": "access", "cognito:groups": nil,
			"username": "a\nb",
			"scope":    "openid archivist/operator archivist/depositor:maps operator"})),
			[]Grant{{Role: Operator}, {Depositor, "maps"}}, ""},
		"client that only its scopes let in": {signed(t, jose.RS256, rsaKey(), "r", with(map[string]any{
			"aud": nil, "name": nil, "client_id": "4711", "token_use": "access", "cognito:groups": nil,
			"scope": "archivist/viewer"})), []Grant{{Role: Viewer}}, ""},
		"groups of another form": {signed(t, jose.ES256, ecKey(), "e",
			with(map[string]any{"cognito:groups": 7,
				"name": strings.Repeat("x", 101), "preferred_username": "ada"})), nil, "ada"},
	} {
		x, err := v.Verify(t.Context(), c.token)
		if err != nil || x.Subject != "4711" || x.Name != c.name || !slices.Equal(x.Grants,
			c.grants) ||
			!x.Expires.Equal(at.Add(time.Hour)) || !slices.Equal(x.Claims, v.Claims) {
			t.Errorf("%s: %+v, %v", name, x, err)
		}
	}
}

// refusedTokens are tokens that nobody may use, with what is said of them.
func refusedTokens(t *testing.T) map[string][2]string {
	der, err := x509.MarshalPKIXPublicKey(rsaKey().Public())
	if err != nil {
		t.Fatal(err)
	}
	asPEM := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	good := signed(t, jose.RS256, rsaKey(), "r", with(nil))
	parts := strings.Split(good, ".")
	claimed := func(changes map[string]any) string {
		return signed(t, jose.RS256, rsaKey(), "r",
			with(changes))
	}
	const unreadable = "cannot be read: expected a JWT that is signed with RS256 or ES256"
	const unknown = "a key that the issuer does not have"
	return map[string][2]string{
		"empty":  {"", unreadable},
		"no JWT": {"secret", unreadable},
		"huge": {claimed(map[string]any{"more": strings.Repeat("x", 8<<10)}),
			"too long"},
		"truncated":             {good[:len(good)-40], "signature"},
		"two parts":             {parts[0] + "." + parts[1], unreadable},
		"no signature":          {parts[0] + "." + parts[1] + ".", ""},
		"alg none":              {raw(`{"alg":"none","kid":"r"}`, with(nil), nil), unreadable},
		"alg None":              {raw(`{"alg":"None","kid":"r"}`, with(nil), nil), unreadable},
		"no alg":                {raw(`{"kid":"r"}`, with(nil), nil), unreadable},
		"HS256, the public key": {signed(t, jose.HS256, asPEM, "r", with(nil)), unreadable},
		"HS256, the key's DER":  {signed(t, jose.HS256, der, "r", with(nil)), unreadable},
		"RS512":                 {signed(t, jose.RS512, rsaKey(), "r", with(nil)), unreadable},
		"PS256":                 {signed(t, jose.PS256, rsaKey(), "r", with(nil)), unreadable},
		"ES384":                 {signed(t, jose.ES384, ecLarge(), "e", with(nil)), unreadable},
		"RS256 with the id of an EC key": {signed(t, jose.RS256, rsaKey(), "e", with(nil)),
			unknown},
		"ES256 with the id of an RSA key": {signed(t, jose.ES256, ecKey(), "r", with(nil)),
			unknown},
		"a small key":      {signed(t, jose.RS256, rsaSmall(), "small", with(nil)), unknown},
		"a key to encrypt": {signed(t, jose.RS256, rsaKey(), "enc", with(nil)), unknown},
		"another key":      {signed(t, jose.RS256, rsaOther(), "r", with(nil)), "signature"},
		"unknown kid":      {signed(t, jose.RS256, rsaKey(), "x", with(nil)), unknown},
		"no kid, two keys": {signed(t, jose.RS256, rsaKey(), "", with(nil)),
			"does not name its key"},
		"its own key": {raw(fmt.Sprintf(`{"alg":"RS256","kid":"r","jwk":{"kty":"oct","k":"%s"}}`,
			"AAAA"), with(nil),
			[]byte("x")), ""},
		"critical header": {raw(`{"alg":"RS256","kid":"r","crit":["exp"],"exp":1}`, with(nil),
			[]byte("x")), ""},
		"other claims": {parts[0] + "." + strings.Split(claimed(map[string]any{"sub": "1"}),
			".")[1] + "." + parts[2],
			"signature"},
	}
}

// refusedClaims are tokens that are signed as they must be, and refused for what they say.
func refusedClaims(t *testing.T) map[string][2]string {
	claimed := func(changes map[string]any) string {
		return signed(t, jose.RS256, rsaKey(), "r", with(changes))
	}
	return map[string][2]string{
		"another issuer":   {claimed(map[string]any{"iss": other}), "another issuer"},
		"issuer with /":    {claimed(map[string]any{"iss": theIssuer + "/"}), "another issuer"},
		"no issuer":        {claimed(map[string]any{"iss": nil}), "another issuer"},
		"another audience": {claimed(map[string]any{"aud": "other"}), "another audience"},
		"other audiences": {claimed(map[string]any{"aud": []string{"other", "arch"}}),
			"another audience"},
		"no audience":    {claimed(map[string]any{"aud": nil}), "another audience"},
		"empty audience": {claimed(map[string]any{"aud": ""}), "another audience"},
		"client of an id token": {claimed(map[string]any{"aud": nil, "client_id": "archivist",
			"token_use": "id"}),
			"another audience"},
		"scope of another resource server": {claimed(map[string]any{"aud": nil, "client_id": "x",
			"token_use": "access", "scope": "openid third/archivist archivist"}), "another audience"},
		"scope of an id token": {claimed(map[string]any{"aud": nil, "client_id": "x", "token_use": "id",
			"scope": "archivist/viewer"}), "another audience"},
		"scope beside another audience": {claimed(map[string]any{"aud": "other", "client_id": "x",
			"token_use": "access", "scope": "archivist/viewer"}), "another audience"},
		"another client": {claimed(map[string]any{"aud": nil, "client_id": "other",
			"token_use": "access"}),
			"another audience"},
		"client beside another audience": {claimed(map[string]any{"aud": "other",
			"client_id": "archivist",
			"token_use": "access"}), "another audience"},
		"no end": {claimed(map[string]any{"exp": nil}), "no end"},
		"expired": {claimed(map[string]any{"exp": at.Add(-61 * time.Second).Unix()}),
			"has expired"},
		"not yet": {claimed(map[string]any{"nbf": at.Add(61 * time.Second).Unix()}),
			"not valid yet"},
		"issued in the future": {claimed(map[string]any{"iat": at.Add(61 * time.Second).Unix()}),
			"not valid yet"},
		"end is a text": {claimed(map[string]any{"exp": "tomorrow"}),
			"claims cannot be read"},
		"no subject": {claimed(map[string]any{"sub": nil}), "no subject"},
		"long subject": {claimed(map[string]any{"sub": strings.Repeat("x", 201)}),
			"no subject"},
		"subject of two lines": {claimed(map[string]any{"sub": "a\nb"}), "no subject"},
		"subject is a number":  {claimed(map[string]any{"sub": 7}), "claims cannot be read"},
		"claims are a list": {signed(t, jose.RS256, rsaKey(), "r", []string{"viewer"}),
			"claims cannot be read"},
	}
}

// TestRefused: a token that is not exactly as it must be is refused, and what is said has nothing of it.
func TestRefused(t *testing.T) {
	encrypts := public("enc", rsaKey())
	encrypts.Use = "enc"
	v, _, _ := begin(public("r", rsaKey()), public("e", ecKey()), public("small", rsaSmall()),
		encrypts)
	all := refusedTokens(t)
	maps.Copy(all, refusedClaims(t))
	for name, c := range all {
		x, err := v.Verify(t.Context(), c[0])
		if !errors.Is(err, ErrUnauthenticated) || !fault.Is(err, fault.Denied) ||
			!strings.Contains(err.Error(), c[1]) || x.Subject != "" || x.Grants != nil ||
			strings.Contains(err.Error(), "4711") {
			t.Errorf("%s: %+v, %v; want %q", name, x, err, c[1])
		}
	}
}

// TestSkew: clocks may differ by a minute.
func TestSkew(t *testing.T) {
	v, _, _ := begin(public("r", rsaKey()))
	for name, changes := range map[string]map[string]any{
		"expired 59 s ago":  {"exp": at.Add(-59 * time.Second).Unix()},
		"valid in 59 s":     {"nbf": at.Add(59 * time.Second).Unix()},
		"issued in 59 s":    {"iat": at.Add(59 * time.Second).Unix()},
		"no time of issue":  {"iat": nil},
		"longest subject":   {"sub": strings.Repeat("x", 200)},
		"subject with bars": {"sub": "auth0|47:11"},
	} {
		if _, err := v.Verify(t.Context(), signed(t, jose.RS256, rsaKey(), "r",
			with(changes))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestNoKid: a token that names no key is accepted if there is one key only.
func TestNoKid(t *testing.T) {
	v, _, _ := begin(public("r", rsaKey()))
	if _, err := v.Verify(t.Context(), signed(t, jose.RS256, rsaKey(), "", with(nil))); err != nil {
		t.Error(err)
	}
	_, err := v.Verify(t.Context(), signed(t, jose.RS256, rsaOther(), "", with(nil)))
	if !errors.Is(err, ErrUnauthenticated) {
		t.Error(err)
	}
}

// TestTwoKeysOfOneID: each key with the id is tried.
func TestTwoKeysOfOneID(t *testing.T) {
	v, _, _ := begin(public("r", rsaOther()), public("r", ecKey()), public("r", rsaKey()))
	for _, token := range []string{signed(t, jose.RS256, rsaKey(), "r", with(nil)),
		signed(t, jose.RS256, rsaOther(), "r", with(nil)), signed(t, jose.ES256, ecKey(), "r",
			with(nil))} {
		if _, err := v.Verify(t.Context(), token); err != nil {
			t.Error(err)
		}
	}
}

// TestRotation: a new key is accepted as soon as it signs, the replaced one until the issuer's keys are read without
// it.
func TestRotation(t *testing.T) {
	v, i, now := begin(public("a", rsaKey()))
	old, next := signed(t, jose.RS256, rsaKey(), "a",
		with(map[string]any{"exp": at.Add(9 * time.Hour).Unix()})),
		signed(t, jose.RS256, rsaOther(), "b",
			with(map[string]any{"exp": at.Add(9 * time.Hour).Unix()}))
	works := func(token string, want bool) {
		t.Helper()
		if _, err := v.Verify(t.Context(), token); (err == nil) != want ||
			err != nil && !errors.Is(err, ErrUnauthenticated) {
			t.Errorf("%v at %s", err, *now)
		}
	}
	works(old, true)
	*now = now.Add(time.Minute)
	i.keys = append(i.keys, public("b", rsaOther()))
	works(next, true)
	works(old, true)
	i.keys = i.keys[1:]
	*now = now.Add(59 * time.Minute)
	works(old, true)
	*now = now.Add(time.Minute)
	works(next, true)
	works(old, false)
	if i.asks != 3 {
		t.Errorf("%d requests; want one at first, one for the new key, and one after an hour",
			i.asks)
	}
}

// TestFlood: tokens with key ids that do not exist cost one request in half a minute.
func TestFlood(t *testing.T) {
	v, i, now := begin(public("a", rsaKey()))
	good := signed(t, jose.RS256, rsaKey(), "a", with(nil))
	for n := range 300 { // 5 minutes
		token := signed(t, jose.ES256, ecKey(), fmt.Sprint("x", n), with(nil))
		if _, err := v.Verify(t.Context(), token); !errors.Is(err, ErrUnauthenticated) {
			t.Fatal(err)
		}
		if _, err := v.Verify(t.Context(), good); err != nil {
			t.Fatal(err)
		}
		*now = now.Add(time.Second)
	}
	if i.asks != 10 {
		t.Errorf("%d requests in 5 minutes; want 10", i.asks)
	}
}

// TestIssuerAway: without the issuer the last keys are used for a day. Then, and for keys that are not known, nothing
// is known of a token: that is no refusal.
func TestIssuerAway(t *testing.T) {
	v, i, now := begin(public("a", rsaKey()))
	token := signed(t, jose.RS256, rsaKey(), "a",
		with(map[string]any{"exp": at.Add(99 * time.Hour).Unix()}))
	away := func(token string) {
		t.Helper()
		_, err := v.Verify(t.Context(), token)
		if !fault.Is(err, fault.Unavailable) || errors.Is(err, ErrUnauthenticated) {
			t.Errorf("%v at %s", err, *now)
		}
	}
	i.away = true
	away(token)
	i.away = false
	away(token) // it was asked just now
	*now = now.Add(notBefore)
	if _, err := v.Verify(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	known := *now
	i.away = true
	for *now = known.Add(time.Hour); now.Before(known.Add(24 * time.Hour)); *now = now.Add(time.Hour) {
		if _, err := v.Verify(t.Context(), token); err != nil {
			t.Errorf("%v at %s", err, *now)
		}
		away(signed(t, jose.RS256, rsaOther(), "b",
			with(map[string]any{"exp": at.Add(99 * time.Hour).Unix()})))
	}
	away(token)
	i.away = false
	*now = now.Add(notBefore)
	if _, err := v.Verify(t.Context(), token); err != nil {
		t.Error(err)
	}
}

// TestBadIssuer: documents that are not as they must be give no keys, and what is known stays.
func TestBadIssuer(t *testing.T) {
	rows := map[string]func(*issuer){
		"of another issuer": func(i *issuer) { i.name = other },
		"keys by http":      func(i *issuer) { i.at = "http://login.example.org/pool/keys" },
		"keys nowhere":      func(i *issuer) { i.at = "" },
		"a redirect":        func(i *issuer) { i.at = theIssuer + "/elsewhere" },
		"51 keys":           func(i *issuer) { i.keys = slices.Repeat(i.keys, 51) },
		"256 KiB":           func(i *issuer) { i.more = strings.Repeat(" ", 256<<10) },
		"no JSON":           func(i *issuer) { i.more = "]" },
		"no key for us":     func(i *issuer) { i.keys = []jose.JSONWebKey{public("a", ecLarge())} },
	}
	for name, change := range rows {
		v, i, now := begin(public("a", rsaKey()))
		token := signed(t, jose.RS256, rsaKey(), "a",
			with(map[string]any{"exp": at.Add(9 * time.Hour).Unix()}))
		good := *i
		change(i)
		if _, err := v.Verify(t.Context(), token); !fault.Is(err, fault.Unavailable) {
			t.Errorf("%s: %v", name, err)
		}
		*i, *now = good, now.Add(notBefore)
		if _, err := v.Verify(t.Context(), token); err != nil {
			t.Errorf("%s: then %v", name, err)
		}
		change(i)
		*now = now.Add(freshFor)
		if _, err := v.Verify(t.Context(), token); err != nil {
			t.Errorf("%s: later %v", name, err)
		}
	}
}

// TestOtherKinds: keys that are not for us do not disturb those that are, and a secret is no public key.
func TestOtherKinds(t *testing.T) {
	v, i, _ := begin(public("a", rsaKey()))
	i.more = `{"kty":"X","kid":"x"},{"kty":"oct","kid":"s","k":"c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3JldA"},7,`
	if _, err := v.Verify(t.Context(), signed(t, jose.RS256, rsaKey(), "a",
		with(nil))); err != nil {
		t.Error(err)
	}
	token := signed(t, jose.HS256, []byte("secret-secret-secret-secret-secret"), "s", with(nil))
	if _, err := v.Verify(t.Context(), token); !errors.Is(err, ErrUnauthenticated) {
		t.Error(err)
	}
}

// TestAtOnce: many requests at once fetch the keys once.
func TestAtOnce(t *testing.T) {
	v, i, _ := begin(public("a", rsaKey()))
	token := signed(t, jose.RS256, rsaKey(), "a", with(nil))
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if _, err := v.Verify(t.Context(), token); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if i.asks != 1 {
		t.Errorf("%d requests", i.asks)
	}
}

// TestCheckIssuer: an issuer has an https URL; one on this machine may have http.
func TestCheckIssuer(t *testing.T) {
	for text, ok := range map[string]bool{theIssuer: true, "http://127.0.0.1:4566/oidc": true,
		"http://localhost:1": true,
		"":                   false, "login.example.org": false, "http://login.example.org": false,
		"https://u:p@example.org": false, "https://example.org?x=1": false,
		"https://example.org#x": false,
		"ftp://example.org":     false, "https://": false} {
		if err := CheckIssuer(text); (err == nil) != ok || err != nil && !fault.Is(err,
			fault.Invalid) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
