package signin

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/oauth2"

	"archivist/pkg/kernel/fault"
)

// TestWeb: a web application gets the token of a sign-in that it has begun, for its own redirect and verifier, and no
// refresh token.
func TestWeb(t *testing.T) {
	w, i := begin(t)
	for _, host := range []string{"127.0.0.1:4566", "localhost:4566"} {
		s := Started{State: "a state", Verifier: oauth2.GenerateVerifier(),
			Redirect: "http://" + host + "/console/callback"}
		at, err := i.Authorize(t.Context(), s)
		if err != nil || !strings.HasPrefix(at, home+"/authorize?") || strings.Contains(at, "offline_access") {
			t.Fatal(at, err)
		}
		u, err := url.Parse(at)
		if err != nil {
			t.Fatal(err)
		}
		form := u.Query()
		form.Set("user", "vera")
		form.Set("answer", "yes")
		back, err := url.Parse(w.press("/authorize", form))
		if err != nil || back.Host != host {
			t.Fatal(back, err)
		}

		for what, wrong := range map[string]Started{"another state": {"other", s.Verifier, s.Redirect},
			"no state": {"", s.Verifier, s.Redirect}} {
			if _, err := i.Finish(t.Context(), wrong, back.Query()); !fault.Is(err, fault.Invalid) {
				t.Errorf("%s: %v", what, err)
			}
		}
		other := back.Query()
		other.Set("iss", "https://evil.example")
		if _, err := i.Finish(t.Context(), s, other); !fault.Is(err, fault.Invalid) {
			t.Errorf("of another issuer: %v", err)
		}
		got, err := i.Finish(t.Context(), s, back.Query())
		if err != nil || got.Access == "" || got.Refresh != "" {
			t.Errorf("%v %q, %v", got, got.Refresh, err)
		}
		if _, err := i.Finish(t.Context(), s, back.Query()); err == nil {
			t.Error("a code is taken twice")
		}
	}
	s := Started{State: "a state"}
	if _, err := i.Finish(t.Context(), s, url.Values{"state": {"a state"}, "error": {"access_denied"}}); !fault.Is(err,
		fault.Denied) {
		t.Errorf("refused: %v", err)
	}
}

// says is an issuer that has nothing but its description.
type says string

// RoundTrip answers with the description.
func (s says) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Request: r, Body: io.NopCloser(strings.NewReader(string(s)))}, nil
}

// TestSignOut: the session of a browser at the issuer is ended where the issuer says, with what Amazon Cognito and
// other issuers ask for. One that ends none has no address for it, and an address that is no https URL is not used.
func TestSignOut(t *testing.T) {
	const described = `{"issuer": "https://login.example.org", "jwks_uri": "https://login.example.org/keys"`
	for end, want := range map[string]string{
		`}`: "",
		`, "end_session_endpoint": "https://login.example.org/logout?x=1"}`: "https://login.example.org/logout?" +
			"client_id=c&logout_uri=https%3A%2F%2Fa%2Fout&post_logout_redirect_uri=https%3A%2F%2Fa%2Fout&x=1",
		`, "end_session_endpoint": "javascript:alert(1)"}`: "error",
	} {
		i := Issuer{URL: "https://login.example.org", ClientID: "c",
			HTTP: &http.Client{Transport: says(described + end)}}
		at, err := i.SignOut(t.Context(), "https://a/out")
		if err != nil && want == "error" && fault.Is(err, fault.Unavailable) {
			continue
		}
		if at != want || err != nil {
			t.Errorf("%s: %q, %v", end, at, err)
		}
	}
}
