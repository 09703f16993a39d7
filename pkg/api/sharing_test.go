package api_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"archivist/pkg/api"
)

// site is the origin of pages that may call the API, strange one of others.
const site, strange = "https://repository.example.org", "https://evil.example.org"

// sharing serves the API for pages of site, and returns its URL. change is made to the API before.
func sharing(t *testing.T, do func(string, func() error) error, change func(*api.API)) (url string) {
	t.Helper()
	a, _ := service(do)
	a.Origins = []string{"http://localhost:3000", site}
	change(a)
	srv := httptest.NewServer(a.Handler())
	t.Cleanup(srv.Close)
	return srv.URL
}

// TestPreflights: each operation of the document can be called by a script of the site, with all headers that the
// document names; the preflight needs no token. A script of another site gets the answer of before.
func TestPreflights(t *testing.T) {
	url := sharing(t, through, func(a *api.API) { a.Open, a.Authenticator = false, programs })
	bare := func() string { // without origins
		a, _ := service(through)
		srv := httptest.NewServer(a.Handler())
		t.Cleanup(srv.Close)
		return srv.URL
	}()
	operationsOf(document(t), func(name string, op object) {
		method, path, _ := strings.Cut(name, " ")
		asks := []string{"Access-Control-Request-Method", method, "Origin"}
		resp, text := ask(t, "OPTIONS", url+pathOf.Replace(path), "", append(asks, site)...)
		h := resp.Header
		if resp.StatusCode != http.StatusNoContent || text != "" || h.Get("Access-Control-Allow-Origin") != site ||
			!slices.Contains(strings.Split(h.Get("Access-Control-Allow-Methods"), ", "), method) ||
			h.Get("Access-Control-Max-Age") != "7200" || h.Get("Access-Control-Allow-Credentials") != "" ||
			!slices.Contains(h.Values("Vary"), "Origin") {
			t.Errorf("%s: %d %v %s", name, resp.StatusCode, h, text)
		}
		allowed := strings.Split(h.Get("Access-Control-Allow-Headers"), ", ")
		needs := []string{"Authorization"}
		if op["requestBody"] != nil {
			needs = append(needs, "Content-Type")
		}
		parameters, _ := op["parameters"].([]any)
		for _, p := range parameters {
			if p := p.(object); p["in"] == "header" {
				needs = append(needs, fmt.Sprint(p["name"]))
			}
		}
		for _, header := range needs {
			if !slices.Contains(allowed, header) {
				t.Errorf("%s: the header %s is not allowed: %v", name, header, allowed)
			}
		}

		resp, text = ask(t, "OPTIONS", url+pathOf.Replace(path), "", append(asks, strange)...)
		before, said := ask(t, "OPTIONS", bare+pathOf.Replace(path), "", append(asks, strange)...)
		if resp.StatusCode != before.StatusCode || text != said || shared(resp.Header) || shared(before.Header) {
			t.Errorf("%s from a strange page: %d %v %s; before: %d", name, resp.StatusCode, resp.Header, text,
				before.StatusCode)
		}
	})
}

// shared reports whether an answer has a header of CORS.
func shared(h http.Header) bool {
	for name := range h {
		if strings.HasPrefix(name, "Access-Control-") {
			return true
		}
	}
	return false
}

// TestAnswersAreShared: scripts of the site can read each answer, also a refusal or a defect, and its headers; others
// read none, and what they are answered stays the same.
func TestAnswersAreShared(t *testing.T) {
	open := func(a *api.API) {}
	tokened := func(a *api.API) { a.Open, a.Authenticator = false, programs }
	broken := func(string, func() error) error { panic("broken") }
	away := func(string, func() error) error { return fmt.Errorf("the table is away") }
	const exposed = "BID, Content-Disposition, Link, Location, Places-Waiting"
	for _, c := range []struct {
		does               string
		change             func(*api.API)
		do                 func(string, func() error) error
		method, path, body string
		status             int
		headers            []string
	}{
		{"a list", open, through, "GET", "/v1/queue", "", 200, nil},
		{"a submission", open, through, "POST", "/v1/batches",
			`{"collection":"maps","payload":{"url":"https://example.org/a"}}`, 202, nil},
		{"the document", open, through, "GET", "/openapi.json", "", 200, nil},
		{"a script of the page", open, through, "GET", "/docs/scalar-1.72.1.js", "", 200, nil},
		{"no JSON", open, through, "POST", "/v1/batches", "x", 400, nil},
		{"no token", tokened, through, "GET", "/v1/queue", "", 401, nil},
		{"a bad token", tokened, through, "GET", "/v1/queue", "", 401, []string{"Authorization", "Bearer bad"}},
		{"no role", tokened, through, "GET", "/v1/queue", "", 403, []string{"Authorization", "Bearer none"}},
		{"unknown", open, through, "GET", "/v1/batches/none", "", 404, nil},
		{"no route", open, through, "GET", "/v1/none", "", 404, nil},
		{"no method", open, through, "DELETE", "/v1/queue", "", 405, nil},
		{"no preflight", open, through, "OPTIONS", "/v1/queue", "", 405, nil},
		{"too large", open, through, "POST", "/v1/batches", `"` + strings.Repeat("x", 2<<20) + `"`, 413, nil},
		{"another type", open, through, "POST", "/v1/batches", "x", 415, []string{"Content-Type", "text/plain"}},
		{"a wrong field", open, through, "POST", "/v1/batches", `{"collection":"?"}`, 422, nil},
		{"a bad cause", open, through, "GET", "/v1/queue", "", 422, []string{"Archivist-Cause", "?"}},
		{"a form of Merritt", open, through, "POST", "/poster/submit", "", 400, nil},
		{"a panic", open, broken, "GET", "/v1/batches?collection=maps", "", 500, nil},
		{"no table", open, away, "GET", "/v1/batches?collection=maps", "", 503, nil},
	} {
		url := sharing(t, c.do, c.change)
		resp, text := ask(t, c.method, url+c.path, c.body, append(c.headers, "Origin", site)...)
		h := resp.Header
		if resp.StatusCode != c.status || h.Get("Access-Control-Allow-Origin") != site ||
			h.Get("Access-Control-Expose-Headers") != exposed || h.Get("Access-Control-Allow-Credentials") != "" ||
			!slices.Contains(h.Values("Vary"), "Origin") {
			t.Errorf("%s: %d %v %.200s", c.does, resp.StatusCode, h, text)
		}
		for _, origin := range []string{strange, "null", site + "/", "http://" + site[len("https://"):]} {
			resp, _ := ask(t, c.method, url+c.path, c.body, append(c.headers, "Origin", origin)...)
			if resp.StatusCode != c.status || shared(resp.Header) {
				t.Errorf("%s, for %s: %d %v", c.does, origin, resp.StatusCode, resp.Header)
			}
		}
		resp, _ = ask(t, c.method, url+c.path, c.body, c.headers...)
		if resp.StatusCode != c.status || shared(resp.Header) ||
			!slices.Contains(resp.Header.Values("Vary"), "Origin") {
			t.Errorf("%s, without an origin: %d %v", c.does, resp.StatusCode, resp.Header)
		}
	}
}

// TestVaryIsKept: that an answer depends on the origin replaces nothing else on which it depends, and the reverse.
func TestVaryIsKept(t *testing.T) {
	url := sharing(t, through, func(a *api.API) { a.Resolves = true })
	for path, also := range map[string]string{"/docs/scalar-1.72.1.js": "Accept-Encoding",
		"/v1/batches/none/report": "Accept"} {
		resp, _ := ask(t, "GET", url+path, "", "Origin", site)
		if v := resp.Header.Values("Vary"); !slices.Contains(v, also) || !slices.Contains(v, "Origin") {
			t.Errorf("%s: %v", path, v)
		}
	}
}
