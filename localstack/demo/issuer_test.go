package demo

import (
	"bytes"
	"context"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/signin"
)

// choose is a browser: it opens the page of the issuer, chooses a user, agrees, and goes where it is sent.
func choose(t *testing.T, user string) func(string) error {
	return func(at string) error {
		resp, err := http.Get(at)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		page, err := io.ReadAll(resp.Body)
		if err != nil || !strings.Contains(string(page), "It asks for no password") {
			t.Errorf("%s, %v", page, err)
		}
		form := url.Values{"user": {user}, "answer": {"yes"}}
		for _, field := range regexp.MustCompile(`type="hidden" name="(.*?)" value="(.*?)"`).FindAllStringSubmatch(
			string(page), -1) {
			form.Set(field[1], html.UnescapeString(field[2]))
		}
		u, err := url.Parse(at)
		if err != nil {
			return err
		}
		u.RawQuery = ""
		end, err := http.PostForm(u.String(), form)
		if err != nil {
			return err
		}
		defer end.Body.Close()
		if text, err := io.ReadAll(end.Body); err != nil || !strings.Contains(string(text), "You can close this page") {
			t.Errorf("%s, %v", text, err)
		}
		return nil
	}
}

// static is a token that does not change.
func static(token string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return token, nil }
}

// TestIssuer: a demo with an issuer demands tokens, preserves its sample all the same, and says how to sign in. A
// person signs in with a browser, by what the API says, and works on while keys are replaced.
func TestIssuer(t *testing.T) {
	var out bytes.Buffer
	d, client := started(t, Options{Issuer: true, Out: &out})
	if _, err := client.Queue(t.Context()); !fault.Is(err, fault.Denied) || !answers(d.APIURL) {
		t.Errorf("without a token: %v", err)
	}
	d.Hint(time.Second)
	if !strings.Contains(out.String(), "dist/archivist login") {
		t.Errorf("%s", &out)
	}
	where, err := client.SignIn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	by := &signin.Issuer{URL: where.Issuer, ClientID: where.ClientID, Scopes: where.Scopes, HTTP: http.DefaultClient,
		Now: time.Now}
	tokens, err := by.Browser(t.Context(), choose(t, "dora"))
	if err != nil {
		t.Fatal(err)
	}
	works := func(token string) {
		t.Helper()
		who := &v1.Client{URL: d.APIURL, HTTP: http.DefaultClient, Bearer: static(token)}
		caller, err := who.WhoAmI(t.Context())
		if err != nil || caller.Subject != "dora" {
			t.Errorf("%+v, %v", caller, err)
		}
		if all, err := who.Objects(t.Context(), v1.Filter{Collection: "sample"}); err != nil || len(all) != 7 {
			t.Errorf("%d objects, %v", len(all), err)
		}
	}
	works(tokens.Access)
	if err := d.Issuer.Rotate(); err != nil {
		t.Fatal(err)
	}
	works(tokens.Access)
	next, err := by.Refresh(t.Context(), tokens.Refresh)
	if err != nil {
		t.Fatal(err)
	}
	works(next.Access)
}
