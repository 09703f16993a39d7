package api_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"archivist/pkg/api"
	"archivist/pkg/kernel/access"
)

// newToken asks for a token.
const newToken = `{"name":"hook","grants":["administrator"],"days":9,"reason":"a test"}`

// tokenBed serves the API to a person who administers it, and to tokens of the deployment.
type tokenBed struct {
	*testing.T
	at  string // its URL
	api *api.API
	log bytes.Buffer
}

func newTokenBed(t *testing.T) *tokenBed {
	b := &tokenBed{T: t}
	b.api, _ = service(through)
	b.api.Open = false
	b.api.Log = slog.New(slog.NewTextHandler(&b.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	people := tokens{"ada": {Subject: "1", Grants: granted("administrator").Grants}, "otto": ada}
	b.api.Authenticator = access.Authenticator{Issuer: people, Tokens: b.api.Tokens}
	srv := httptest.NewServer(b.api.Handler())
	t.Cleanup(srv.Close)
	b.at = srv.URL
	return b
}

// as asks as the owner of a token, and returns the status with the answer.
func (b *tokenBed) as(token, method, path, body string, headers ...string) (int, string) {
	b.Helper()
	resp, text := ask(b.T, method, b.at+path, body,
		append(headers, "Authorization", "Bearer "+token)...)
	if method == "POST" && path == "/v1/tokens" && resp.StatusCode == 201 {
		if resp.Header.Get("Cache-Control") != "no-store" ||
			!strings.HasPrefix(resp.Header.Get("Location"), "tokens/") {
			b.Errorf("%v", resp.Header)
		}
	}
	return resp.StatusCode, text
}

// make makes a token, and returns its id and its text.
func (b *tokenBed) make() (id, text string) {
	b.Helper()
	status, answer := b.as("ada", "POST", "/v1/tokens", newToken)
	text = regexp.MustCompile(`arc_[0-9A-Z]+_[0-9a-f]{64}`).FindString(answer)
	if status != 201 || text == "" {
		b.Fatalf("%d %s", status, answer)
	}
	return strings.Split(text, "_")[1], text
}

// TestTokens: a token works as what it allows until it is revoked. Only an administrator makes one, and no token does.
// Its text is in the answer that makes it, and in no other one, in no event and in no line of the log.
func TestTokens(t *testing.T) {
	b := newTokenBed(t)
	id, text := b.make()
	all := ""
	for _, c := range []struct {
		as, method, path, body string
		status                 int
		says                   string
	}{
		{text, "GET", "/v1/whoami", "", 200, `"subject":"token:` + id + `","name":"hook","grants":["administrator"]`},
		{text, "PUT", "/v1/collections/maps", `{}`, 200, "maps"},
		{"ada", "GET", "/v1/collections/maps/events", "", 200, `token:` + id + ` (\"hook\")`},
		{text, "POST", "/v1/tokens", newToken, 403, "cannot make another one"},
		{"otto", "POST", "/v1/tokens", newToken, 403, "needs the role administrator"},
		{"otto", "GET", "/v1/tokens/" + id, "", 403, "needs the role administrator"},
		{"ada", "POST", "/v1/tokens", newToken, 409, "archivist token revoke " + id},
		{"ada", "POST", "/v1/tokens", strings.Replace(newToken, `"administrator"`, `"king"`, 1), 422, "grants: found"},
		{"ada", "POST", "/v1/tokens", strings.Replace(newToken, "hook", "Hook", 1), 422, "body.name"},
		{"ada", "GET", "/v1/tokens/hook", "", 200, `"state":"active"`},
		{"ada", "GET", "/v1/tokens/nobody", "", 404, "no active token"},
		{"ada", "GET", "/v1/tokens?state=ACTIVE", "", 200, `"id":"` + id + `"`},
		{"ada", "GET", "/v1/tokens?state=revoked", "", 200, `"items":[]`},
		{"ada", "GET", "/v1/tokens?state=gone", "", 422, "active, expired, revoked"},
		{"ada", "POST", "/v1/tokens/NONE/actions", `{"action":"revoke","reason":"a test"}`, 404, "no token"},
		{"ada", "POST", "/v1/tokens/" + id + "/actions", `{"action":"revoke"}`, 422, "reason"},
		{text[:len(text)-1] + "x", "GET", "/v1/whoami", "", 401, "not one of this deployment"},
		{text + strings.Repeat("a", 9<<10), "GET", "/v1/whoami", "", 401, "not one of this deployment"},
		{"ada", "POST", "/v1/tokens/" + id + "/actions", `{"action":"revoke","reason":"a test"}`, 200, `"state":"revoked"`},
		{text, "GET", "/v1/whoami", "", 401, "was revoked on"},
		{"ada", "POST", "/v1/tokens/" + id + "/actions", `{"action":"revoke","reason":"again"}`, 200,
			`"revokedReason":"a test"`},
		{"ada", "GET", "/v1/tokens?state=revoked", "", 200, `"id":"` + id + `"`},
	} {
		status, answer := b.as(c.as, c.method, c.path, c.body)
		if status != c.status || !strings.Contains(answer, c.says) {
			t.Errorf("%s %s %s: %d %s; expected %d %q", c.method, c.path, c.body, status, answer, c.status, c.says)
		}
		all += answer
	}

	all += b.log.String()
	rows, _, err := b.api.Tokens.Table.Scan(t.Context(), "", 1000, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		data, err := json.Marshal(r.Item)
		if err != nil {
			t.Fatal(err)
		}
		all += string(data)
	}
	if secret := text[len(text)-64:]; strings.Contains(all, secret) {
		t.Errorf("the secret %s is told or kept", secret)
	}
	if !strings.Contains(all, "secret_sha256") || !strings.Contains(all, "token.revoked") {
		t.Error("the rows were not looked through")
	}
}

// TestTokenOnce: a request that is repeated does not make a second token, and does not tell the text again.
func TestTokenOnce(t *testing.T) {
	b := newTokenBed(t)
	status, first := b.as("ada", "POST", "/v1/tokens", newToken, "Idempotency-Key", "k-1")
	if status != 201 {
		t.Fatalf("%d %s", status, first)
	}
	status, again := b.as("ada", "POST", "/v1/tokens", newToken, "Idempotency-Key", "k-1")
	id := regexp.MustCompile(`"id":"([^"]+)"`).FindStringSubmatch(first)[1]
	if status != 409 || !strings.Contains(again, "archivist token revoke "+id) || strings.Contains(again, "arc_") {
		t.Errorf("%d %s", status, again)
	}
}

// TestTokenWhereAllIsOpen: where calls need no token, one that is there is verified nevertheless.
func TestTokenWhereAllIsOpen(t *testing.T) {
	b := newTokenBed(t)
	b.api.Open = true
	_, text := b.make()
	for token, want := range map[string]int{text: 200, text[:len(text)-1]: 401, "eyJ": 401, "ada": 200} {
		if status, answer := b.as(token, "GET", "/v1/whoami", ""); status != want {
			t.Errorf("%d %s", status, answer)
		}
	}
	if resp, answer := ask(t, "GET", b.at+"/v1/whoami", ""); resp.StatusCode != 200 ||
		!strings.Contains(answer, "administrator") {
		t.Errorf("%d %s", resp.StatusCode, answer)
	}
}

// TestTokenNames: what the description accepts as a name and a number of days is what the store accepts.
func TestTokenNames(t *testing.T) {
	b := newTokenBed(t)
	for body, want := range map[string]int{
		`{"name":"a","grants":["viewer"],"days":1,"reason":"x"}`:                                 201,
		`{"name":"` + strings.Repeat("b", 40) + `","grants":["viewer"],"days":366,"reason":"x"}`: 201,
		`{"name":"` + strings.Repeat("b", 41) + `","grants":["viewer"],"days":366,"reason":"x"}`: 422,
		`{"name":"c","grants":["viewer"],"days":367,"reason":"x"}`:                               422,
		`{"name":"c","grants":["viewer"],"days":0,"reason":"x"}`:                                 422,
		`{"name":"c","grants":[],"days":1,"reason":"x"}`:                                         422,
		`{"name":"c","grants":["viewer"],"days":1,"reason":" "}`:                                 422,
		`{"name":"c","grants":["viewer"],"days":1}`:                                              422,
		`{"name":null,"grants":["viewer"],"days":1,"reason":"x"}`:                                422,
	} {
		if status, answer := b.as("ada", "POST", "/v1/tokens", body); status != want {
			t.Errorf("%s: %d %s", body, status, answer)
		}
	}
}
