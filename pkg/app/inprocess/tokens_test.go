package inprocess

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"archivist/localstack/issuer"
	v1 "archivist/pkg/api/v1"
)

// issuerURL is where the issuer of a test is, and its host.
const (
	issuerHost = "127.0.0.1:4581"
	issuerURL  = "http://" + issuerHost
)

// demanding lets the API demand tokens of an issuer in this process, and returns the token of each caller, by the
// caller's name. grants are theirs.
func demanding(t *testing.T, settings *Settings, grants map[string]string) (tokens map[string]string) {
	t.Helper()
	var all issuer.Accounts
	for name, grant := range grants {
		all.Machines = append(all.Machines, issuer.Machine{ID: name, Secret: "a secret of the test",
			Groups: strings.Fields(grant)})
	}
	i, err := issuer.New(issuer.Settings{URL: issuerURL, Accounts: all, Life: 365 * 24 * time.Hour, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	settings.Issuer = Issuer{URL: issuerURL, Audience: issuer.Audience, Claims: issuer.Claims()}
	settings.Web = &Web{Hosts: map[string]http.Handler{issuerHost: i}}

	tokens = map[string]string{}
	for name := range grants {
		if tokens[name], err = i.Machine(name); err != nil {
			t.Fatal(err)
		}
	}
	return tokens
}

// with is the client of the API with a token.
func (w *world) with(token string) *v1.Client {
	c := *w.api
	c.Bearer = func(context.Context) (string, error) { return token, nil }
	return &c
}

// TestGatewayAsksForTokens: who has no token that is accepted does not reach the API, and learns how to call; while the
// issuer is away, nobody learns that a token is wrong. What needs no token is there for everybody.
func TestGatewayAsksForTokens(t *testing.T) {
	settings := quick()
	settings.Index = &NoIndex{}
	tokens := demanding(t, &settings, map[string]string{"reader": "viewer"})
	away := &Web{Hosts: map[string]http.Handler{}}
	for _, c := range []struct {
		header, path string
		away         bool
		status       int
		says         string
	}{
		{"Bearer " + tokens["reader"], "/v1/queue", false, 200, ""},
		{"", "/v1/queue", false, 401, "the call has no token that is accepted"},
		{"Bearer nonsense", "/v1/queue", false, 401, "the call has no token that is accepted"},
		{"Digest x", "/v1/queue", false, 401, "the call has no token that is accepted"},
		{"Bearer " + tokens["reader"], "/v1/queue", true, 503, "try again in a minute"},
		{"", "/openapi.json", true, 200, ""},
		{"", "/v1/sign-in", true, 404, "nobody signs in here"},
		{"", "/ark:/99999/fk4x", true, 404, ""},
	} {
		own := settings
		if c.away {
			own.Web = away
		}
		w := begin(t, own)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, APIURL+c.path, nil)
		w.must(err)
		if c.header != "" {
			r.Header.Set("Authorization", c.header)
		}
		resp, err := w.HTTP().Do(r)
		w.must(err)
		data, err := io.ReadAll(resp.Body)
		w.must(errors.Join(err, resp.Body.Close()))
		text := string(data)
		if resp.StatusCode != c.status || !strings.Contains(text, c.says) ||
			(resp.Header.Get("WWW-Authenticate") != "") != (c.status == 401) {
			t.Errorf("%+v: %d %s", c, resp.StatusCode, text)
		}
	}
}
