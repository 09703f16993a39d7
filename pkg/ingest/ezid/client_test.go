package ezid_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"archivist/pkg/ingest/ezid"
	"archivist/pkg/ingest/ezid/ezidtest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/fetch"
)

const one = "ark:/99999/fk4tq65d6k"

func client(t *testing.T, at string, secret func() (string, error)) *ezid.Client {
	t.Helper()
	local := fetch.Guard{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	f := fetch.New(local, func() float64 { return 0 })
	f.Wait = func(context.Context, time.Duration) error { return nil }
	authorize := func(_ context.Context, u *url.URL) (string, error) {
		text, err := secret()
		if err != nil {
			return "", err
		}
		return fetch.Authorization(text, u)
	}
	return &ezid.Client{URL: at, HTTP: f.With(fetch.Access{Authorize: authorize})}
}

// TestClient: what is sent comes back as it was sent, whatever characters it has.
func TestClient(t *testing.T) {
	s := ezidtest.New(t)
	c := client(t, s.URL, func() (string, error) { return s.Secret(), nil })
	ctx := t.Context()
	want := ezid.Record{Status: ezid.Reserved, Target: "https://example.org/" + one + "?a=%20b",
		ERC: "who: Größe, 100%\nwhat: a: b\r\nwhen: # 1999", Job: "B-1"}
	if created, err := c.Create(ctx, one, want); !created || err != nil {
		t.Fatalf("%v, %v", created, err)
	}
	if got, err := c.Get(ctx, one); got != want || err != nil {
		t.Errorf("%+v, %v\nwant %+v", got, err, want)
	}
	if created, err := c.Create(ctx, one, want); created || err != nil {
		t.Errorf("again: %v, %v", created, err)
	}
	want.Status = ezid.Public
	if err := c.Set(ctx, one, ezid.Record{Status: ezid.Public}); err != nil {
		t.Error(err)
	}
	if got, err := c.Get(ctx, one); got != want || err != nil {
		t.Errorf("%+v, %v\nwant %+v", got, err, want)
	}
	if err := c.Delete(ctx, one); !fault.Is(err, fault.Invalid) ||
		!strings.Contains(err.Error(), "does not support deletion") {
		t.Errorf("a public one was deleted: %v", err)
	}
	if err := c.Delete(ctx, "ark:/99999/fk4none"); err != nil {
		t.Errorf("one that is not there: %v", err)
	}
	if _, err := c.Get(ctx, "ark:/99999/fk4none"); !fault.Is(err, fault.NotFound) {
		t.Errorf("one that is not there: %v", err)
	}
	if _, err := c.Create(ctx, "ark:/12345/x1", want); !fault.Is(err, fault.Denied) ||
		!strings.Contains(err.Error(), "ark:/12345/x1: EZID answered \"forbidden\"") {
		t.Errorf("on a foreign shoulder: %v", err)
	}
}

// TestAnswers: each answer that is no success is told as what it is; only what another try can cure is tried again.
func TestAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		kind   fault.Kind
		says   string
		tries  int
	}{
		"busy":         {503, "error: concurrency limit exceeded", fault.Unavailable, "503", 4},
		"broken":       {500, "error: internal server error", fault.Unavailable, "500", 4},
		"unauthorized": {401, "error: unauthorized", fault.Denied, "unauthorized", 1},
		"bad":          {400, "error: bad request - element 'erc': no", fault.Invalid, "element 'erc': no", 1},
		"another":      {200, "success: ark:/99999/fk43f4wd4v", fault.Invalid, `answered for "ark:/99999/fk43f4wd4v"`, 1},
		"a page":       {200, "<html>", fault.Invalid, "is not EZID", 1},
		"moved":        {302, "", fault.Invalid, "is not EZID", 1},
		"other form":   {200, "success: ark:99999/fk4tq65d6k", "", "", 1},
	} {
		tries := 0
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			tries++
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(c.status)
			_, _ = w.Write([]byte(c.body))
		}))
		t.Cleanup(s.Close)
		secret := `{"host": "127.0.0.1", "token": "HIDDEN"}`
		err := client(t, s.URL, func() (string, error) { return secret, nil }).Set(t.Context(), one, ezid.Record{})
		if fault.Of(err) != c.kind || tries != c.tries || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v (%s) after %d tries", name, err, fault.Of(err), tries)
		}
	}

	denied := fault.New(fault.Denied, "the secret cannot be used")
	for _, c := range []struct {
		err  error
		kind fault.Kind
	}{{denied, fault.Denied}, {errors.New("throttled"), fault.Unavailable}} {
		err := client(t, "http://127.0.0.1:1", func() (string, error) { return "", c.err }).Delete(t.Context(), one)
		if !fault.Is(err, c.kind) || !strings.Contains(err.Error(), c.err.Error()) {
			t.Errorf("%v: %v", c.err, err)
		}
	}
}
