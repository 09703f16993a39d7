package e2e

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"archivist/localstack/issuer"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/fault"
)

// tokenMaker is the issuer of the tokens of the deployment under test. It is in this process; functions reach it on
// loopback.
type tokenMaker struct {
	*issuer.Issuer
	url   string
	admin string       // the token of an administrator, for the whole run
	ago   atomic.Int64 // how long before now tokens are made, in nanoseconds
}

var tokens *tokenMaker

// tokenLife is longer than any run.
const tokenLife = 24 * time.Hour

// startTokens starts the issuer; the process ends it. Commands of the tests take the token from the environment.
func startTokens() (m *tokenMaker, err error) {
	m = &tokenMaker{}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	m.url = "http://" + l.Addr().String()
	all := issuer.Accounts{Users: []issuer.User{{Subject: "olga", Name: "Olga", Groups: []string{"operator"}}}}
	for id, groups := range map[string][]string{"admin": {"administrator"}, "reader": {"viewer"}, "nobody": nil,
		"hook": {"notifier:notified"}, "depositor": {"depositor:tokens"}} {
		all.Machines = append(all.Machines, issuer.Machine{ID: id, Secret: "a secret of the tests", Groups: groups})
	}
	clock := func() time.Time { return time.Now().Add(-time.Duration(m.ago.Load())) }
	m.Issuer, err = issuer.New(issuer.Settings{URL: m.url, Accounts: all, Life: tokenLife, Now: clock})
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: m.Issuer, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(l) }()
	if m.admin, err = m.Machine("admin"); err != nil {
		return nil, err
	}
	return m, os.Setenv("ARCHIVIST_TOKEN", m.admin)
}

// with is a client with a token.
func with(token string) *v1.Client {
	return &v1.Client{URL: out.APIURL, HTTP: http.DefaultClient,
		Bearer: func(context.Context) (string, error) { return token, nil }}
}

// as is a client with the token of an account. An account that is not there is a mistake of the test.
func as(id string) *v1.Client {
	token, err := tokens.Machine(id)
	if err != nil {
		panic(err)
	}
	return with(token)
}

// forged is a token whose header says another algorithm, signed by sign.
func forged(token, header string, sign func(text string) []byte) string {
	encode := base64.RawURLEncoding.EncodeToString
	text := encode([]byte(header)) + "." + strings.Split(token, ".")[1]
	return text + "." + encode(sign(text))
}

// publicKey is the RSA key of the issuer, as everybody reads it, in PEM.
func publicKey(t *testing.T) []byte {
	t.Helper()
	_, text, _ := fetched(t, http.MethodGet, tokens.url+"/keys")
	var set jose.JSONWebKeySet
	if err := json.Unmarshal([]byte(text), &set); err != nil {
		t.Fatal(err)
	}
	for _, k := range set.Keys {
		if k.Algorithm == string(jose.RS256) {
			der, err := x509.MarshalPKIXPublicKey(k.Key)
			if err != nil {
				t.Fatal(err)
			}
			return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
		}
	}
	t.Fatal("the issuer has no RSA key")
	return nil
}

// asked asks for the queue with a header Authorization, and returns the answer, which is of one form whoever gives it.
func asked(t *testing.T, authorization string) (status int, p v1.Problem) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, out.APIURL+"/v1/queue", nil)
	if err != nil {
		t.Fatal(err)
	}
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &p); err != nil {
		t.Fatalf("%d %s: %v", resp.StatusCode, data, err)
	}
	if resp.StatusCode == http.StatusUnauthorized &&
		(!strings.HasPrefix(resp.Header.Get("WWW-Authenticate"), "Bearer") ||
			!strings.HasPrefix(resp.Header.Get("Content-Type"), "application/problem+json") || p.Detail == "") {
		t.Errorf("%v %s", resp.Header, data)
	}
	return resp.StatusCode, p
}

// TestTokens: each role may do what it may, and a token that is not of this issuer, for this API, for now, or signed as
// it says, is refused in one form, by the gateway or the API. A key that is replaced is, without a pause.
func TestTokens(t *testing.T) {
	begin(t)
	for id, want := range map[string]bool{"admin": true, "reader": true, "depositor": false, "nobody": false} {
		if _, err := as(id).Queue(t.Context()); (err == nil) != want || err != nil && !fault.Is(err, fault.Denied) {
			t.Errorf("%s reads the queue: %v", id, err)
		}
	}

	// Another issuer has keys of its own, and says that it is ours.
	liar, err := issuer.New(issuer.Settings{URL: tokens.url, Now: time.Now, Accounts: issuer.Accounts{
		Machines: []issuer.Machine{{ID: "admin", Secret: "a secret of the tests", Groups: []string{"administrator"}}}}})
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := liar.Machine("admin")
	if err != nil {
		t.Fatal(err)
	}
	tokens.ago.Store(int64(tokenLife + 2*time.Minute))
	old, err := tokens.Machine("admin")
	tokens.ago.Store(0)
	if err != nil {
		t.Fatal(err)
	}
	good, key := tokens.admin, publicKey(t)
	hmacOf := func(text string) []byte {
		h := hmac.New(sha256.New, key)
		h.Write([]byte(text))
		return h.Sum(nil)
	}
	for what, header := range map[string]string{
		"nothing":              "",
		"another scheme":       "Digest " + good,
		"no token":             "Bearer",
		"nonsense":             "Bearer nonsense",
		"an expired token":     "Bearer " + old,
		"keys of another":      "Bearer " + foreign,
		"no signature":         "Bearer " + good[:strings.LastIndex(good, ".")+1],
		"another payload":      "Bearer " + strings.Replace(good, ".", ".e30", 1),
		"alg none":             "Bearer " + forged(good, `{"alg":"none"}`, func(string) []byte { return nil }),
		"HS256, by the RSA":    "Bearer " + forged(good, `{"alg":"HS256"}`, hmacOf),
		"a token of our form":  "Bearer arc_01M7ZBMEYHBB62YP6RY21T1GQ6_" + strings.Repeat("0", 64),
		"a name and no secret": "Basic " + base64.StdEncoding.EncodeToString([]byte("hook:")),
	} {
		status, p := asked(t, header)
		if status != http.StatusUnauthorized || p.Type != "urn:archivist:problem:unauthenticated" {
			t.Errorf("%s: %d %+v", what, status, p)
		}
	}

	ownToken(t)

	// Two tokens of the old keys and the new ones are good at the same time.
	if err := tokens.Rotate(); err != nil {
		t.Fatal(err)
	}
	until(t, "a token of the new key is accepted", time.Minute, func() bool { // keys are read at most twice a minute
		_, err := client.Queue(t.Context())
		_, failed := as("reader").Queue(t.Context())
		if err != nil {
			t.Fatalf("a token of the key before: %v", err)
		}
		return failed == nil
	})
}

// newToken makes a token of the deployment.
func newToken(t *testing.T, name, grant string) v1.NewToken {
	t.Helper()
	made, err := client.CreateToken(t.Context(), v1.TokenRequest{Name: name, Grants: []string{grant}, Days: 1,
		Reason: "a test"}, "")
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// ownToken makes a token of the deployment, calls with it, and is refused once it is revoked: the gateway keeps what it
// has answered for a token, and the API does not.
func ownToken(t *testing.T) {
	t.Helper()
	made := newToken(t, "own", "viewer")
	s, err := with(made.Text).Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, section := range s.Sections {
		if section.State == v1.SectionUnavailable {
			t.Errorf("%s: %s", section.Name, section.Summary)
		}
	}
	if _, err := client.RevokeToken(t.Context(), made.ID, "a test"); err != nil {
		t.Fatal(err)
	}
	if status, p := asked(t, "Bearer "+made.Text); status != http.StatusUnauthorized {
		t.Errorf("a token that was revoked: %d %+v", status, p)
	}
}

// TestNotifierToken: a token with the role of a notifier says that a revision of its archive was committed. It can do
// nothing else.
func TestNotifierToken(t *testing.T) {
	begin(t)
	a, other := newArchive(t, "notified"), newArchive(t, "unnotified")
	a.commits("[]")
	hooks := as("hook")
	notify := func(c *v1.Client, archive string, n int64) error {
		_, err := c.NotifyRevision(t.Context(), archive, v1.RevisionNotice{Revision: n}, "")
		return err
	}
	if err := notify(hooks, a.name, 1); err != nil {
		t.Errorf("the token cannot notify its archive: %v", err)
	}
	_, listed := hooks.Archives(t.Context())
	_, read := hooks.RevisionPlan(t.Context(), a.name, 1, "")
	_, paused := hooks.ActOnArchive(t.Context(), a.name, v1.ArchiveAction{Action: "pause", Reason: "a test"})
	_, ran := hooks.StartTask(t.Context(), a.name, "index", v1.TaskRun{}, "")
	for what, err := range map[string]error{"notifies another archive": notify(hooks, other.name, 1), "lists": listed,
		"reads": read, "pauses": paused, "runs": ran, "notifies without a token": notify(with(""), a.name, 1)} {
		if !fault.Is(err, fault.Denied) {
			t.Errorf("who only notifies %s: %v", what, err)
		}
	}
	if got, err := client.RevisionPlan(t.Context(), a.name, 1, ""); err != nil || got.Revision != 1 {
		t.Errorf("what was notified is %+v, %v", got, err)
	}
	if _, err := client.RevisionPlan(t.Context(), other.name, 1, ""); !fault.Is(err, fault.NotFound) {
		t.Errorf("what was not notified: %v", err)
	}
}
