package fetch

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"archivist/pkg/kernel/fault"
)

// TestRequestsSayWhoAsks: each request has the software's name, version and contact, and
// asks for the content as it is, also after a redirect.
func TestRequestsSayWhoAsks(t *testing.T) {
	seen := map[string]http.Header{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen[r.Method+r.URL.Path] = r.Header
		if r.URL.Path == "/moved" {
			http.Redirect(w, r, "/a", http.StatusFound)
		}
	}))
	defer srv.Close()

	c := local("127.0.0.0/8")
	c.UserAgent = UserAgent("v1.2.3", "https://archive.example.org")
	if err := c.Get(t.Context(), srv.URL+"/moved", nil, func(Stream) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Size(t.Context(), srv.URL+"/a"); err != nil {
		t.Fatal(err)
	}
	for _, request := range []string{"GET/moved", "GET/a", "HEAD/a"} {
		agent, encoding := seen[request].Get("User-Agent"), seen[request].Get("Accept-Encoding")
		if agent != "archivist/1.2.3 (+https://archive.example.org)" || encoding != "identity" {
			t.Errorf("%s: User-Agent %q, Accept-Encoding %q", request, agent, encoding)
		}
	}
}

func TestUserAgent(t *testing.T) {
	for _, c := range []struct{ version, contact, want string }{
		{"v1.2.3", "https://example.org", "archivist/1.2.3 (+https://example.org)"},
		{"v0.0.0-20261122054442-1705ad1b2c3d+dirty", "", "archivist/0.0.0-20261122054442-1705ad1b2c3d+dirty"},
		{"(devel)", "mailto:ops@example.org", "archivist/devel (+mailto:ops@example.org)"},
		{"v1 ; x\r\n", "https://example.org/)\r\nX: y", "archivist/1x (+https://example.org/X:y)"},
	} {
		if got := UserAgent(c.version, c.contact); got != c.want {
			t.Errorf("%q, %q: got %q, want %q", c.version, c.contact, got, c.want)
		}
	}
}

// TestContentEncoding: a server that encodes the content although it was asked not to is
// taken at its word: Encoding says so, and the bytes are those that came.
func TestContentEncoding(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", strings.TrimPrefix(r.URL.Path, "/"))
		_, _ = io.WriteString(w, "\x1f\x8b as it came")
	}))
	defer srv.Close()

	for path, want := range map[string]string{"gzip": "gzip", "identity": "", "": "", "GZIP, br": "gzip, br"} {
		err := local("127.0.0.0/8").Get(t.Context(), srv.URL+"/"+path, nil, func(s Stream) error {
			b, err := io.ReadAll(s)
			if s.Encoding != want || string(b) != "\x1f\x8b as it came" {
				t.Errorf("%q: encoding %q of %q", path, s.Encoding, b)
			}
			return err
		})
		if err != nil {
			t.Errorf("%q: %v", path, err)
		}
	}
}

// TestRefusedRedirects: a redirect to where nothing may be fetched from is not tried
// again, and the message names both hosts and the reason, but no secret.
func TestRefusedRedirects(t *testing.T) {
	for target, says := range map[string]string{
		"http://169.254.169.254/latest?sig=SECRET": "redirects to 169.254.169.254, which is not a public address",
		"https://10.1.2.3:8443/;token=SECRET":      "redirects to 10.1.2.3:8443, which is not a public address",
		"s3://bucket/SECRET":                       `redirects to a URL of the scheme "s3"; only http and https URLs are fetched`,
		"file:///etc/SECRET":                       `redirects to a URL of the scheme "file"; only http and https URLs are fetched`,
	} {
		asked := 0
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked++
			http.Redirect(w, r, target, http.StatusFound)
		}))
		err := local("127.0.0.1/32").Get(t.Context(), srv.URL+"/a?sig=SECRET", nil, func(Stream) error { return nil })
		var refused *RefusedError
		if !fault.Is(err, fault.Invalid) || !errors.As(err, &refused) || asked != 1 {
			t.Errorf("%s: %v after %d requests", target, err, asked)
		}
		if want := srv.URL + "/a?redacted: " + says; err == nil || err.Error() != want {
			t.Errorf("%s: got  %v\nwant %s", target, err, want)
		}
		srv.Close()
	}
}

// TestRefusedHost: an address that is refused is named with the host that it was for.
func TestRefusedHost(t *testing.T) {
	err := local().Get(t.Context(), "http://localhost:1/a", nil, func(Stream) error { return nil })
	if err == nil || !strings.HasPrefix(err.Error(), "http://localhost:1/a: the address of the host is ") ||
		!strings.HasSuffix(err.Error(), ", which is not a public address") {
		t.Error(err)
	}
}

// TestPartialContent: an error says how much of the content came before it, counted from
// the beginning of the file.
func TestPartialContent(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		left := "1400"
		if r.Header.Get("Range") != "" {
			left = "400"
			w.Header().Set("Content-Range", "bytes 1000-1399/1400")
			w.Header().Set("ETag", `"one"`)
		}
		if r.URL.Path == "/chunked" {
			left = ""
		} else {
			w.Header().Set("Content-Length", left)
		}
		if r.Header.Get("Range") != "" {
			w.WriteHeader(http.StatusPartialContent)
		}
		_, _ = io.WriteString(w, strings.Repeat("x", 80))
		_ = http.NewResponseController(w).Flush()
		if r.URL.Path == "/stalls" {
			<-r.Context().Done()
		}
		panic(http.ErrAbortHandler)
	}))
	defer srv.Close()

	for _, c := range []struct {
		path string
		have Partial
		says string
	}{
		{"/stalls", Partial{}, "received 80 of 1,400 bytes, then nothing for 0.05 s"},
		{"/stalls", Partial{1000, Content{Validator: `"one"`, Size: 1400}},
			"received 1,080 of 1,400 bytes, then nothing for 0.05 s"},
		{"/closes", Partial{}, "received 80 of 1,400 bytes, then the connection was closed"},
		{"/chunked", Partial{}, "received 80 bytes, then the connection was closed"},
	} {
		f := local("127.0.0.0/8")
		f.Tries, f.Limits.Data = 1, 50*time.Millisecond
		err := f.Get(t.Context(), srv.URL+c.path, func() Partial { return c.have }, func(s Stream) error {
			_, err := io.ReadAll(s)
			return err
		})
		var partial *PartialError
		if !fault.Is(err, fault.Unavailable) || !errors.As(err, &partial) || err.Error() != srv.URL+c.path+": "+c.says {
			t.Errorf("%s: got %v, want %s", c.path, err, c.says)
		}
	}
}

// TestRetryAfter: a short wait that a server asks for is kept. A longer one ends the
// tries: who asked decides whether to come back.
func TestRetryAfter(t *testing.T) {
	for asks, want := range map[string]struct {
		waited, later time.Duration
	}{
		"7":                             {7 * time.Second, 0},
		"3600":                          {0, time.Hour},
		"soon":                          {0, 0},
		"Sun, 06 Nov 1994 08:49:57 GMT": {20 * time.Second, 0},
	} {
		n := 0
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			n++
			if n > 1 {
				return
			}
			w.Header().Set("Date", "Sun, 06 Nov 1994 08:49:37 GMT")
			w.Header().Set("Retry-After", asks)
			w.WriteHeader(http.StatusServiceUnavailable)
		}))
		c := local("127.0.0.0/8")
		var waited time.Duration
		c.Wait = func(_ context.Context, d time.Duration) error { waited += d; return nil }
		err := c.Get(t.Context(), srv.URL, nil, func(Stream) error { return nil })
		if got := AskedToWait(err); got != want.later || (got > 0) != fault.Is(err, fault.Unavailable) ||
			waited != want.waited {
			t.Errorf("%s: waited %s, asked to wait %s, %v", asks, waited, got, err)
		}
		srv.Close()
	}
}
