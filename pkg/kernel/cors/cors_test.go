package cors

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// TestOrigins: what a browser sends as an origin is accepted; anything else is refused with the reason.
func TestOrigins(t *testing.T) {
	good := "https://repository.example.org, https://a_b.example.org:8443,https://10.0.0.7," +
		"https://xn--bcher-kva.example,http://localhost:3000,http://127.0.0.1:8080,https://intranet"
	if all, err := Origins(good); err != nil || len(all) != 7 || all[1] != "https://a_b.example.org:8443" {
		t.Errorf("%v, %v", all, err)
	}
	if all, err := Origins(""); all != nil || err != nil {
		t.Errorf("%v, %v", all, err)
	}
	many := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf("https://h%d.example.org", i))
		}
		return strings.Join(all, ",")
	}
	if _, err := Origins(many(Most)); err != nil {
		t.Error(err)
	}
	for text, says := range map[string]string{
		"*":                                          "each origin is named",
		"https://*.example.org":                      "each origin is named",
		"null":                                       "names nobody",
		"example.org":                                "expected https://HOST",
		"https://":                                   "expected https://HOST",
		"ftp://example.org":                          "expected https://HOST",
		"https://example.org,":                       `found ""; expected https://HOST`,
		"https://exa mple.org":                       "expected https://HOST",
		"https://example.org/":                       "no slash at its end",
		"https://example.org/app":                    "no path",
		"https://example.org?a=b":                    "no query",
		"https://example.org?":                       "no query",
		"https://example.org#":                       "leave out",
		"https://me@example.org":                     "no user",
		"HTTPS://example.org":                        "lower case",
		"https://Example.org":                        "lower case",
		"https://bücher.example":                     "xn--",
		"https://example.org.":                       "as browsers send it",
		"https://[::1]":                              "IPv4",
		"https://-a.example.org":                     "as browsers send it",
		"https://example.org:443":                    "leave out :443",
		"https://example.org:":                       "from 1 to 65535",
		"https://example.org:0":                      "from 1 to 65535",
		"https://example.org:08":                     "without a zero",
		"https://example.org:65536":                  "from 1 to 65535",
		"http://example.org":                         "without TLS",
		"http://localhost":                           "http://localhost:PORT",
		"http://localhost.example.org:1":             "without TLS",
		"http://localhost:80":                        "leave out :80",
		"http://[::1]:3000":                          "without TLS",
		"https://a.example,https://a.example":        "twice",
		"https://" + strings.Repeat("a.", 130) + "b": "as browsers send it",
		many(Most + 1):                               "at most 20",
	} {
		if all, err := Origins(text); err == nil || !strings.Contains(err.Error(), says) || all != nil {
			t.Errorf("%s: %v, %v", text, all, err)
		}
	}
}

// policy is one with two origins.
var policy = Policy{Origins: []string{"https://a.example.org", "http://localhost:3000"},
	Methods: []string{"GET", "PUT"},
	Headers: []string{"Authorization", "X-Key"}, Exposed: []string{"Location", "Link"}}

// TestWrap: an origin of the policy can read any answer, whatever its status; for all others nothing changes but that
// the answer depends on the origin.
func TestWrap(t *testing.T) {
	const own, other = "https://a.example.org", "http://localhost:3000"
	for _, c := range []struct {
		name    string
		origin  []string
		method  string
		asks    string // Access-Control-Request-Method
		allowed string // the origin that is, "" if none
		preset  bool   // it is a preflight that is answered
	}{
		{"simple", []string{own}, "GET", "", own, false},
		{"the other", []string{other}, "POST", "", other, false},
		{"preflight", []string{own}, "OPTIONS", "PUT", own, true},
		{"preflight of what is not allowed", []string{own}, "OPTIONS", "DELETE", own, true},
		{"no preflight", []string{own}, "OPTIONS", "", own, false},
		{"not OPTIONS", []string{own}, "GET", "PUT", own, false},
		{"foreign", []string{"https://evil.example.org"}, "GET", "", "", false},
		{"foreign preflight", []string{"https://evil.example.org"}, "OPTIONS", "PUT", "", false},
		{"the end of one", []string{"https://b.a.example.org"}, "GET", "", "", false},
		{"longer than one", []string{own + ".evil.example"}, "GET", "", "", false},
		{"another case", []string{"https://A.example.org"}, "GET", "", "", false},
		{"another scheme", []string{"http://a.example.org"}, "GET", "", "", false},
		{"null", []string{"null"}, "OPTIONS", "PUT", "", false},
		{"star", []string{"*"}, "GET", "", "", false},
		{"two", []string{own, other}, "GET", "", "", false},
		{"empty", []string{""}, "GET", "", "", false},
		{"none", nil, "OPTIONS", "PUT", "", false},
	} {
		for _, status := range []int{200, 302, 401, 403, 413, 422, 500, 503} {
			called := false
			h := policy.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				called = true
				w.Header().Add("Vary", "Accept")
				w.WriteHeader(status)
			}))
			r := httptest.NewRequest(c.method, "/v1/queue", nil)
			for _, o := range c.origin {
				r.Header.Add("Origin", o)
			}
			if c.asks != "" {
				r.Header.Set("Access-Control-Request-Method", c.asks)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			is := w.Result().Header
			if is.Get("Access-Control-Allow-Origin") != c.allowed || !slices.Contains(is.Values("Vary"), "Origin") ||
				is.Get("Access-Control-Allow-Credentials") != "" {
				t.Errorf("%s: %v", c.name, is)
			}
			want := map[string]string{}
			switch {
			case c.preset:
				want = map[string]string{"Access-Control-Allow-Methods": "GET, PUT",
					"Access-Control-Allow-Headers": "Authorization, X-Key", "Access-Control-Max-Age": "7200"}
				status = 204
			case c.allowed != "":
				want = map[string]string{"Access-Control-Expose-Headers": "Location, Link"}
			}
			for _, name := range []string{"Access-Control-Allow-Methods", "Access-Control-Allow-Headers",
				"Access-Control-Max-Age", "Access-Control-Expose-Headers"} {
				if is.Get(name) != want[name] {
					t.Errorf("%s: %s: %q", c.name, name, is.Get(name))
				}
			}
			if called == c.preset || w.Code != status {
				t.Errorf("%s: the handler was called: %v; %d", c.name, called, w.Code)
			}
		}
	}
}

// TestNoOrigins: without origins nothing is added at all.
func TestNoOrigins(t *testing.T) {
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodOptions, "/", nil)
	r.Header.Set("Origin", "https://a.example.org")
	r.Header.Set("Access-Control-Request-Method", "GET")
	Policy{Methods: []string{"GET"}}.Wrap(http.NotFoundHandler()).ServeHTTP(w, r)
	for name := range w.Header() {
		if name == "Vary" || strings.HasPrefix(name, "Access-Control") {
			t.Errorf("%s: %s", name, w.Header().Get(name))
		}
	}
	if w.Code != http.StatusNotFound {
		t.Error(w.Code)
	}
}
