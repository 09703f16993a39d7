package fetch

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"archivist/pkg/kernel/fault"
)

// TestAccess: what is refused, and by which entry of a profile.
func TestAccess(t *testing.T) {
	some := Access{Allow: []string{"files.example.org", "*.example.net", "Ports.example.com:8443"},
		Deny: []string{"old.example.net"}, Buckets: []string{"digitisation"}}
	for raw, want := range map[string]string{
		"https://files.example.org/a":         "",
		"https://FILES.example.org:8443/a":    "",
		"https://files.example.org./a":        "",
		"https://a.b.example.net/":            "",
		"https://example.net/":                "sources.allow",
		"https://files.example.org.evil.com/": "sources.allow",
		"https://evilfiles.example.org/":      "sources.allow",
		"https://files.example.org@evil.com/": "sources.allow",
		"https://old.example.net:444/":        "sources.deny",
		"https://ports.example.com:8443/":     "",
		"https://ports.example.com/":          "sources.allow",
		"s3://digitisation/a":                 "",
		"s3://Digitisation/a":                 "sources.buckets",
		"s3://files.example.org/a":            "sources.buckets",
	} {
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		if got := some.Refused(u); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", raw, got, want)
		}
		if got := (Access{}).Refused(u); (got != "") != (u.Scheme == "s3") {
			t.Errorf("%s, without a profile: %q", raw, got)
		}
	}
}

// authorised answers with the Authorization that it was sent, or redirects to where the query says.
func authorised(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if to := r.URL.Query().Get("to"); to != "" {
			http.Redirect(w, r, to, http.StatusFound)
			return
		}
		_, _ = io.WriteString(w, r.Header.Get("Authorization"))
	}))
	t.Cleanup(s.Close)
	return s
}

// TestAuthorizedHost: a request has the secret of its own host, and no other one, also behind a redirect; what is not
// allowed is not followed, and errors have no secret of a URL.
func TestAuthorizedHost(t *testing.T) {
	first, second := authorised(t), authorised(t)
	of := func(s *httptest.Server) string { return strings.TrimPrefix(s.URL, "http://") }
	var fails error
	tries := 0
	access := Access{Deny: []string{"127.0.0.2"}, Authorize: func(_ context.Context, u *url.URL) (string, error) {
		tries++
		if u.Host == of(first) {
			return "Bearer first", fails
		}
		return "", nil
	}}
	c := local("127.0.0.0/8").With(access)
	get := func(url string) (string, error) {
		var got []byte
		err := c.Get(t.Context(), url, nil, func(s Stream) (err error) {
			got, err = io.ReadAll(s)
			return err
		})
		return string(got), err
	}
	for url, want := range map[string]string{
		first.URL: "Bearer first", second.URL: "",
		first.URL + "?to=" + second.URL: "", second.URL + "?to=" + first.URL: "Bearer first",
		first.URL + "?to=/again":                                    "Bearer first",
		strings.Replace(first.URL, "http://", "http://me:word@", 1): "Basic bWU6d29yZA==",
	} {
		if got, err := get(url); err != nil || got != want {
			t.Errorf("%s had %q, %v; want %q", url, got, err, want)
		}
	}

	_, err := get(first.URL + "?sig=SECRET&to=http://127.0.0.2:1/")
	var refused *RefusedError
	if !errors.As(err, &refused) || !fault.Is(err, fault.Invalid) ||
		!strings.Contains(err.Error(), "redirects to 127.0.0.2:1: the host 127.0.0.2:1 is one from which") ||
		strings.Contains(err.Error(), "SECRET") {
		t.Errorf("a redirect to a refused host: %v", err)
	}

	fails, tries = fault.New(fault.Invalid, "the secret is gone"), 0
	if _, err := get(first.URL + "?sig=SECRET"); !fault.Is(err, fault.Invalid) || tries != 1 ||
		strings.Contains(err.Error(), "SECRET") || !strings.Contains(err.Error(), "the secret is gone") {
		t.Errorf("a secret that cannot be used: %v after %d tries", err, tries)
	}
	fails, tries = errors.New("throttled"), 0
	var access2 *AccessError
	if _, err := get(first.URL); !errors.As(err, &access2) || tries != c.Tries {
		t.Errorf("a secret that cannot be read now: %v after %d tries", err, tries)
	}
}

// TestAuthorization: what a secret is sent as, and which is refused; no error has a part of it.
func TestAuthorization(t *testing.T) {
	for secret, want := range map[string]string{
		`{"host": "files.example.org", "username": "me", "password": "HIDDEN"}`: "Basic bWU6SElEREVO",
		`{"host": "files.example.org:8443", "token": "HIDDEN"}`:                 "Bearer HIDDEN",
		`{"host": "FILES.example.org", "username": "me", "password": ""}`:       "Basic bWU6",
		`{"host": "other.example.org", "token": "HIDDEN"}`:                      "!another host than files.example.org:8443",
		`{"host": "*.example.org", "token": "HIDDEN"}`:                          "!another host",
		`{"token": "HIDDEN"}`:           `!expected a JSON object with "host"`,
		`{"host": "files.example.org"}`: "!expected a JSON object",
		`{"host": "files.example.org", "token": "HIDDEN", "username": "me"}`:     "!expected a JSON object",
		`{"host": "files.example.org", "token": "HIDDEN\n"}`:                     "!visible ASCII",
		`{"host": "files.example.org", "username": "m:e", "password": "HIDDEN"}`: "!has a colon",
		`{"host": "files.example.org", "tokens": "HIDDEN"}`:                      "!expected a JSON object",
		`HIDDEN`: "!expected a JSON object",
		`{"host": "files.example.org", "token": "HIDDEN"} HIDDEN`: "!expected a JSON object",
	} {
		got, err := Authorization(secret, &url.URL{Host: "files.example.org:8443"})
		says, refused := strings.CutPrefix(want, "!")
		switch {
		case !refused && (err != nil || got != want):
			t.Errorf("%s: %q, %v; want %q", secret, got, err, want)
		case refused && (!fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), says) ||
			strings.Contains(err.Error(), "HIDDEN") || got != ""):
			t.Errorf("%s: %q, %v; want %q", secret, got, err, says)
		}
	}
}
