package issuer

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"archivist/pkg/kernel/access"
)

// signatures are those of the tokens.
var signatures = []jose.SignatureAlgorithm{jose.ES256, jose.RS256}

// home is the URL of the issuer of the tests, and callback where their client listens.
const (
	home     = "http://127.0.0.1:4581"
	callback = "http://127.0.0.1:50123/callback"
)

// world is an issuer with a clock, what verifies its tokens, and the last answer.
type world struct {
	t        *testing.T
	i        *Issuer
	now      time.Time
	verifier *access.Verifier
	asked    int // for keys
}

// RoundTrip answers the requests of the verifier.
func (w *world) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path == "/keys" {
		w.asked++
	}
	return w.do(r).Result(), nil
}

func begin(t *testing.T) *world {
	w := &world{t: t, now: time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)}
	clock := func() time.Time { return w.now }
	i, err := New(Settings{URL: home, Accounts: Default(), Now: clock})
	if err != nil {
		t.Fatal(err)
	}
	w.i = i
	w.verifier = &access.Verifier{Issuer: home, Audiences: []string{Audience}, Claims: Claims(), Now: clock,
		Keys: &access.Keys{Issuer: home, HTTP: w, Now: clock}}
	return w
}

// do answers a request, which is to the host of the issuer unless it says another.
func (w *world) do(r *http.Request) *httptest.ResponseRecorder {
	out := httptest.NewRecorder()
	w.i.ServeHTTP(out, r)
	return out
}

func (w *world) get(path string, v url.Values) *httptest.ResponseRecorder {
	return w.do(httptest.NewRequest(http.MethodGet, home+path+"?"+v.Encode(), nil))
}

func (w *world) post(path string, v url.Values) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, home+path, strings.NewReader(v.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return w.do(r)
}

// token asks for tokens, and returns them, or the code of the error.
func (w *world) token(v url.Values) (out tokens, refused string) {
	w.t.Helper()
	return w.read(w.post("/token", v))
}

func (w *world) read(got *httptest.ResponseRecorder) (out tokens, refused string) {
	w.t.Helper()
	var body struct {
		tokens
		Error string `json:"error"`
	}
	if err := json.Unmarshal(got.Body.Bytes(), &body); err != nil || (body.Error == "") != (got.Code == http.StatusOK) {
		w.t.Fatalf("%d %s: %v", got.Code, got.Body, err)
	}
	if got.Header().Get("Cache-Control") != "no-store" {
		w.t.Error("tokens can be cached")
	}
	return body.tokens, body.Error
}

// request is a good request for authorization, with some parameters changed; "" takes one away.
func request(changes ...string) url.Values {
	v := url.Values{"client_id": {ClientID}, "redirect_uri": {callback}, "response_type": {"code"},
		"code_challenge_method": {"S256"}, "code_challenge": {"E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"},
		"scope": {"openid offline_access"}, "state": {"xyz"}, "nonce": {"n-0S6"}}
	for i := 0; i < len(changes); i += 2 {
		v.Set(changes[i], changes[i+1])
		if changes[i+1] == "" {
			v.Del(changes[i])
		}
	}
	return v
}

// verifier is that of the challenge of request (RFC 7636, appendix B).
const verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"

// code signs a user in, and returns the code.
func (w *world) code(user string) string {
	w.t.Helper()
	got := w.post("/authorize", request("user", user, "answer", "yes"))
	to, err := url.Parse(got.Header().Get("Location"))
	if err != nil || got.Code != http.StatusSeeOther || !strings.HasPrefix(to.String(), callback+"?") ||
		to.Query().Get("state") != "xyz" || to.Query().Get("iss") != home || to.Query().Get("code") == "" {
		w.t.Fatalf("%d %s %v", got.Code, to, err)
	}
	return to.Query().Get("code")
}

// exchange is a good request for the tokens of a code, with some parameters changed.
func exchange(code string, changes ...string) url.Values {
	v := url.Values{"grant_type": {byCode}, "code": {code}, "client_id": {ClientID}, "redirect_uri": {callback},
		"code_verifier": {verifier}}
	for i := 0; i < len(changes); i += 2 {
		v.Set(changes[i], changes[i+1])
	}
	return v
}

func refresh(token string, changes ...string) url.Values {
	v := url.Values{"grant_type": {byRefresh}, "refresh_token": {token}, "client_id": {ClientID}}
	for i := 0; i < len(changes); i += 2 {
		v.Set(changes[i], changes[i+1])
	}
	return v
}

// is reports who a token is for, as the API sees it.
func (w *world) is(token string) string {
	w.t.Helper()
	x, err := w.verifier.Verify(w.t.Context(), token)
	if err != nil {
		return err.Error()
	}
	var all []string
	for _, g := range x.Grants {
		all = append(all, g.String())
	}
	return x.Subject + " " + strings.Join(all, " ")
}

// want compares the code of a refusal; "" is none.
func (w *world) want(name, got, want string) {
	w.t.Helper()
	if got != want {
		w.t.Errorf("%s: %q; want %q", name, got, want)
	}
}

// TestCode: a person signs in with a browser; the API accepts the token, and not that which is for the client.
func TestCode(t *testing.T) {
	w := begin(t)
	form := w.get("/authorize", request())
	for _, has := range []string{`value="dora"`, "It asks for no password", `name="code_challenge"`} {
		if form.Code != http.StatusOK || !strings.Contains(form.Body.String(), has) ||
			strings.Contains(form.Body.String(), "<script") {
			t.Errorf("the page has no %s: %d %s", has, form.Code, form.Body)
		}
	}
	got, no := w.token(exchange(w.code("dora")))
	w.want("tokens", no, "")
	w.want("the API", w.is(got.Access), "dora depositor:sample")
	w.want("the token for the client", w.is(got.ID), "the token is for another audience")
	if got.Refresh == "" || got.Expires != 300 || got.Type != "Bearer" {
		t.Errorf("%+v", got)
	}
	id, err := jwt.ParseSigned(got.ID, signatures)
	if err != nil {
		t.Fatal(err)
	}
	var claims struct {
		Nonce string `json:"nonce"`
		Aud   string `json:"aud"`
		Name  string `json:"name"`
	}
	if err := id.UnsafeClaimsWithoutVerification(&claims); err != nil || claims.Nonce != "n-0S6" ||
		claims.Aud != ClientID || claims.Name == "" {
		t.Errorf("%+v, %v", claims, err)
	}
	w.now = w.now.Add(6*time.Minute + time.Second)
	w.want("after its end", w.is(got.Access), "the token has expired; get a new one")
}

// TestAuthorizeRefuses: who is not the client is told nothing but a page; all else the client is told.
func TestAuthorizeRefuses(t *testing.T) {
	w := begin(t)
	for name, v := range map[string]url.Values{
		"another client": request("client_id", "other"), "no client": request("client_id", ""),
		"no redirect":            request("redirect_uri", ""),
		"another host":           request("redirect_uri", "https://evil.example/callback"),
		"a name of this machine": request("redirect_uri", "http://localhost:50123/callback"),
		"no port":                request("redirect_uri", "http://127.0.0.1/callback"),
		"another path":           request("redirect_uri", callback+"/more"),
		"a console elsewhere":    request("redirect_uri", "http://evil.example:4566/console/callback"),
		"a console by https":     request("redirect_uri", "https://127.0.0.1:4566/console/callback"),
		"below a console":        request("redirect_uri", "http://127.0.0.1:4566/console/callback/x"),
		"a console with a query": request("redirect_uri", "http://127.0.0.1:4566/prod/console/callback?x=1"),
		"a query":                request("redirect_uri", callback+"?x=y"),
		"a fragment":             request("redirect_uri", callback+"#x"),
		"a user":                 request("redirect_uri", "http://127.0.0.1:50123@evil.example/callback"),
		"two users":              request("redirect_uri", "http://u@127.0.0.1:50123/callback"),
		"another scheme":         request("redirect_uri", "https://127.0.0.1:50123/callback"),
		"another case":           request("redirect_uri", "HTTP://127.0.0.1:50123/callback"),
		"twice":                  {"client_id": {ClientID, ClientID}, "redirect_uri": {callback}},
	} {
		v.Set("user", "dora")
		v.Set("answer", "yes")
		for method, got := range map[string]*httptest.ResponseRecorder{"GET": w.get("/authorize", v),
			"POST": w.post("/authorize", v)} {
			if got.Code != http.StatusBadRequest || got.Header().Get("Location") != "" {
				t.Errorf("%s %s: %d %s", method, name, got.Code, got.Header())
			}
		}
	}
	for name, c := range map[string]struct {
		v    url.Values
		want string
	}{
		"no challenge":        {request("code_challenge", ""), "invalid_request"},
		"a short challenge":   {request("code_challenge", "x"), "invalid_request"},
		"no method":           {request("code_challenge_method", ""), "invalid_request"},
		"the method plain":    {request("code_challenge_method", "plain"), "invalid_request"},
		"the implicit flow":   {request("response_type", "token"), "unsupported_response_type"},
		"grants as scopes":    {request("scope", "openid archivist/administrator"), "invalid_scope"},
		"the person refuses":  {request("answer", "no"), "access_denied"},
		"nothing was pressed": {request("answer", ""), "access_denied"},
	} {
		c.v.Set("user", "dora")
		to, err := url.Parse(w.post("/authorize", c.v).Header().Get("Location"))
		if err != nil || to.Query().Get("error") != c.want || to.Query().Get("code") != "" ||
			to.Query().Get("state") != "xyz" {
			t.Errorf("%s: %s, %v", name, to, err)
		}
	}
	got := w.post("/authorize", request("user", "nobody", "answer", "yes"))
	if got.Code != http.StatusBadRequest {
		t.Errorf("a user that is not there: %d", got.Code)
	}
	// Other sites, and other names of this machine, do not get that far.
	r := httptest.NewRequest(http.MethodPost, home+"/authorize", strings.NewReader(request().Encode()))
	r.Header.Set("Origin", "https://evil.example")
	if got := w.do(r); got.Code != http.StatusForbidden {
		t.Errorf("a form of another site: %d", got.Code)
	}
	r = httptest.NewRequest(http.MethodGet, "http://evil.example:4581/authorize?"+request().Encode(), nil)
	if got := w.do(r); got.Code != http.StatusMisdirectedRequest {
		t.Errorf("another host: %d", got.Code)
	}
}

// TestCodeRefuses: a code is for one client, with its verifier, once, and for a minute.
func TestCodeRefuses(t *testing.T) {
	w := begin(t)
	for name, changes := range map[string][]string{
		"another verifier": {"code_verifier", strings.Repeat("x", 43)}, "no verifier": {"code_verifier", ""},
		"the challenge":    {"code_verifier", "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"},
		"another redirect": {"redirect_uri", "http://127.0.0.1:50124/callback"}, "another code": {"code", "other"},
	} {
		_, no := w.token(exchange(w.code("dora"), changes...))
		w.want(name, no, "invalid_grant")
	}
	for name, changes := range map[string][]string{"another client": {"client_id", "other"},
		"no client": {"client_id", ""}, "a secret": {"client_secret", "x"}} {
		_, no := w.token(exchange(w.code("dora"), changes...))
		w.want(name, no, "invalid_client")
	}
	_, no := w.token(exchange(w.code("dora"), "grant_type", "password"))
	w.want("a password", no, "unsupported_grant_type")
	twice := exchange(w.code("dora"))
	twice.Add("code", "other")
	_, no = w.token(twice)
	w.want("two codes", no, "invalid_request")

	late := w.code("dora")
	w.now = w.now.Add(time.Minute)
	_, no = w.token(exchange(late))
	w.want("after a minute", no, "invalid_grant")

	// A code that comes twice takes away what was made of it.
	code := w.code("dora")
	got, no := w.token(exchange(code))
	w.want("the first time", no, "")
	_, no = w.token(exchange(code))
	w.want("the second time", no, "invalid_grant")
	_, no = w.token(refresh(got.Refresh))
	w.want("what was made of it", no, "invalid_grant")
}

// TestRefresh: a refresh token is used once; with one that was replaced, all end.
func TestRefresh(t *testing.T) {
	w := begin(t)
	first, _ := w.token(exchange(w.code("otto")))
	w.now = w.now.Add(29 * 24 * time.Hour)
	second, no := w.token(refresh(first.Refresh))
	w.want("refreshed", no, "")
	w.want("the API", w.is(second.Access), "otto operator")
	w.now = w.now.Add(29 * 24 * time.Hour)
	_, no = w.token(refresh(second.Refresh, "scope", "openid profile"))
	w.want("more scopes", no, "invalid_scope")
	third, no := w.token(refresh(second.Refresh))
	w.want("refreshed again, later", no, "")
	for name, token := range map[string]string{"nothing": "", "nonsense": "x.y", "an access token": third.Access,
		"no secret": strings.Split(third.Refresh, ".")[0] + "."} {
		_, no := w.token(refresh(token))
		w.want(name, no, "invalid_grant")
	}

	one, _ := w.token(exchange(w.code("otto")))
	two, _ := w.token(refresh(one.Refresh))
	_, no = w.token(refresh(one.Refresh))
	w.want("used before", no, "invalid_grant")
	_, no = w.token(refresh(two.Refresh))
	w.want("of the same session", no, "invalid_grant")

	idle, _ := w.token(exchange(w.code("otto")))
	w.now = w.now.Add(30 * 24 * time.Hour)
	_, no = w.token(refresh(idle.Refresh))
	w.want("not used for 30 days", no, "invalid_grant")

	got := w.post("/authorize", request("user", "otto", "answer", "yes", "scope", "openid"))
	to, err := url.Parse(got.Header().Get("Location"))
	if err != nil {
		t.Fatal(err)
	}
	short, _ := w.token(exchange(to.Query().Get("code")))
	w.want("no offline_access", short.Refresh, "")
}

// TestRevoke: a revoked token, or one of the same session, is not valid any more; what is not known is no error.
func TestRevoke(t *testing.T) {
	w := begin(t)
	one, _ := w.token(exchange(w.code("otto")))
	two, _ := w.token(refresh(one.Refresh))
	revoke := func(token, client string) int {
		return w.post("/revoke", url.Values{"token": {token}, "client_id": {client}}).Code
	}
	if got := revoke(two.Refresh, "harvester"); got != http.StatusUnauthorized {
		t.Errorf("by another client: %d", got)
	}
	if got := []int{revoke("nonsense", ClientID), revoke(one.Refresh, ClientID)}; got[0] != 200 || got[1] != 200 {
		t.Error(got)
	}
	_, no := w.token(refresh(two.Refresh))
	w.want("revoked", no, "invalid_grant")
}

// machine asks for the token of a machine.
func (w *world) machine(id, secret string, v url.Values) (tokens, string) {
	r := httptest.NewRequest(http.MethodPost, home+"/token", strings.NewReader(v.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.SetBasicAuth(url.QueryEscape(id), url.QueryEscape(secret))
	return w.read(w.do(r))
}

// TestMachine: a machine gets its scopes, or fewer, and nothing else; nobody gets them without the secret.
func TestMachine(t *testing.T) {
	w := begin(t)
	w.i.settings.Accounts.Machines[0].Groups = []string{"viewer", "depositor:maps"}
	m := Default().Machines[0]
	by := func(changes ...string) url.Values {
		v := url.Values{"grant_type": {byClient}}
		for i := 0; i < len(changes); i += 2 {
			v.Set(changes[i], changes[i+1])
		}
		return v
	}
	got, no := w.machine(m.ID, m.Secret, by())
	w.want("a machine", no, "")
	w.want("the API", w.is(got.Access), "harvester viewer depositor:maps")
	w.want("a refresh token", got.Refresh+got.ID, "")
	got, _ = w.token(by("client_id", m.ID, "client_secret", m.Secret, "scope", "archivist/viewer"))
	w.want("fewer scopes, the secret in the body", w.is(got.Access), "harvester viewer")
	for name, c := range map[string]struct {
		id, secret string
		v          url.Values
		want       string
	}{
		"another secret":   {m.ID, m.Secret + "x", by(), "invalid_client"},
		"no secret":        {m.ID, "", by(), "invalid_client"},
		"another machine":  {"other", m.Secret, by(), "invalid_client"},
		"said twice":       {m.ID, m.Secret, by("client_secret", m.Secret), "invalid_client"},
		"more scopes":      {m.ID, m.Secret, by("scope", "archivist/administrator"), "invalid_scope"},
		"a person's grant": {m.ID, m.Secret, exchange(w.code("alma")), "unauthorized_client"},
	} {
		_, no := w.machine(c.id, c.secret, c.v)
		w.want(name, no, c.want)
	}
	_, no = w.token(by("client_id", ClientID))
	w.want("the command line", no, "unauthorized_client")
}

// TestRotate: who works on sees nothing of a rotation, even if the keys were read just before; a token is accepted
// until it expires, and then its key is not published any more.
func TestRotate(t *testing.T) {
	w := begin(t)
	old, _ := w.token(exchange(w.code("alma")))
	w.want("before", w.is(old.Access), "alma administrator")
	if err := w.i.Rotate(); err != nil {
		t.Fatal(err)
	}
	next, _ := w.token(refresh(old.Refresh))
	w.want("the new key", w.is(next.Access), "alma administrator")
	w.want("the old one", w.is(old.Access), "alma administrator")
	if w.asked != 1 {
		t.Errorf("keys were read %d times", w.asked)
	}
	a, errA := jwt.ParseSigned(old.Access, signatures)
	b, errB := jwt.ParseSigned(next.Access, signatures)
	if errA != nil || errB != nil || a.Headers[0].KeyID == b.Headers[0].KeyID {
		t.Errorf("it signs with the same key: %v %v", errA, errB)
	}
	w.now = w.now.Add(6*time.Minute - time.Second)
	published := func() string { return w.get("/keys", nil).Body.String() }
	if text := published(); !strings.Contains(text, a.Headers[0].KeyID) || strings.Contains(text, `"d":`) {
		t.Errorf("%s", text)
	}
	w.now = w.now.Add(time.Second)
	if text := published(); strings.Contains(text, a.Headers[0].KeyID) || !strings.Contains(text, b.Headers[0].KeyID) {
		t.Errorf("%s", text)
	}
}

// TestBounded: what is kept is bounded, and what has ended makes room first.
func TestBounded(t *testing.T) {
	w := begin(t)
	first, _ := w.device()
	w.now = w.now.Add(time.Second)
	second, _ := w.device()
	for range most - 1 {
		w.device()
	}
	_, no := w.poll(first, 0)
	w.want("the first", no, "invalid_grant")
	_, no = w.poll(second, 0)
	w.want("the second", no, "authorization_pending")
	if len(w.i.devices) != most {
		t.Errorf("%d devices", len(w.i.devices))
	}
	r := httptest.NewRequest(http.MethodPost, home+"/token", io.LimitReader(endless{}, 1<<20))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	_, no = w.read(w.do(r))
	w.want("a large body", no, "invalid_request")
}

// endless is a text without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// TestDiscovery: clients find everything by the document.
func TestDiscovery(t *testing.T) {
	w := begin(t)
	at, err := access.Discover(context.Background(), w, home)
	if err != nil || at.Token != home+"/token" || at.Device != home+"/device_authorization" ||
		at.Authorize != home+"/authorize" || at.Revoke != home+"/revoke" || at.Keys != home+"/keys" {
		t.Errorf("%+v, %v", at, err)
	}
}
