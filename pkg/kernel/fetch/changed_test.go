package fetch

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"archivist/pkg/kernel/fault"
)

// zip is a text in gzip.
func zip(text string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	return b.Bytes()
}

// changing is a server of content that may have changed, and that redirects to it.
func changing(t *testing.T) (url string, asked *[]http.Header) {
	t.Helper()
	asked = &[]http.Header{}
	mux := http.NewServeMux()
	mux.HandleFunc("/feed", func(w http.ResponseWriter, r *http.Request) {
		*asked = append(*asked, r.Header)
		w.Header().Set("ETag", `"v2"`)
		w.Header().Set("Last-Modified", "Sun, 22 Nov 2026 10:00:00 GMT")
		if r.Header.Get("If-None-Match") == `"v2"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(zip("the content"))
	})
	for path, status := range map[string]int{"/moved": 301, "/moved8": 308, "/found": 302} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.Query().Get("to"), status)
		})
	}
	mux.HandleFunc("/bomb", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(zip(strings.Repeat("a", 100_000)))
	})
	mux.HandleFunc("/large", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat("a", 100_000))
	})
	mux.HandleFunc("/br", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Encoding", "br") })
	mux.HandleFunc("/same", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotModified) })
	mux.HandleFunc("/gone", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) })
	mux.HandleFunc("/busy", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	return srv.URL, asked
}

func ifChanged(t *testing.T, url string, known Validators) (Document, string, error) {
	t.Helper()
	got := ""
	d, err := local("127.0.0.0/8").IfChanged(t.Context(), url, known, 10_000, func(_ Document, r io.Reader) error {
		data, err := io.ReadAll(r)
		got = string(data)
		return err
	})
	return d, got, err
}

// TestIfChanged: the content comes once, decoded; then only that it is unchanged.
func TestIfChanged(t *testing.T) {
	url, asked := changing(t)
	d, got, err := ifChanged(t, url+"/feed", Validators{})
	want := Validators{`"v2"`, "Sun, 22 Nov 2026 10:00:00 GMT"}
	if err != nil || got != "the content" || d != (Document{Validators: want, URL: url + "/feed"}) {
		t.Fatalf("%q, %+v, %v", got, d, err)
	}
	d, got, err = ifChanged(t, url+"/feed", d.Validators)
	if err != nil || got != "" || !d.Unchanged || d.Validators != want {
		t.Errorf("%q, %+v, %v", got, d, err)
	}
	if h := (*asked)[1]; h.Get("If-None-Match") != want.ETag || h.Get("If-Modified-Since") != want.Modified {
		t.Errorf("the second request had %v", h)
	}
	d, got, err = ifChanged(t, url+"/feed", Validators{ETag: `"v1"`})
	if err != nil || got != "the content" || d.Unchanged {
		t.Errorf("of another version: %q, %+v, %v", got, d, err)
	}
	d, _, err = ifChanged(t, url+"/same", Validators{ETag: `"v1"`})
	if err != nil || d.ETag != `"v1"` {
		t.Errorf("an answer without validators: %+v, %v", d, err)
	}
}

// TestMoved: only redirects that are permanent from the first on say where the content is now.
func TestMoved(t *testing.T) {
	url, _ := changing(t)
	for path, want := range map[string]string{
		"/moved?to=/feed":                            "/feed",
		"/found?to=/feed":                            "",
		"/moved?to=/moved8%3Fto=/feed":               "/feed",
		"/moved?to=/found%3Fto=/feed":                "/found?to=/feed",
		"/found?to=/moved%3Fto=/feed":                "",
		"/moved?to=/found%3Fto=/moved8%253Fto=/feed": "/found?to=/moved8%3Fto=/feed",
	} {
		d, got, err := ifChanged(t, url+path, Validators{})
		if want != "" {
			want = url + want
		}
		if err != nil || got != "the content" || d.Moved != want || d.URL != url+"/feed" {
			t.Errorf("%s: %q, %+v, %v; want %s", path, got, d, err, want)
		}
	}
}

// TestRefusedContent: what cannot be used is refused with the reason, and is not asked for again.
func TestRefusedContent(t *testing.T) {
	url, _ := changing(t)
	for path, want := range map[string]string{
		"/bomb":  "the content has more than 10,000 bytes",
		"/large": "the content has more than 10,000 bytes",
		"/br":    `the content is encoded as "br", which was not asked for`,
		"/gone":  "410 Gone",
		"/none":  "404 Not Found",
	} {
		_, _, err := ifChanged(t, url+path, Validators{})
		named := err != nil && strings.Contains(err.Error(), want) && strings.Contains(err.Error(), path)
		if !fault.Is(err, fault.Invalid) || !named {
			t.Errorf("%s: %v", path, err)
		}
	}
	_, _, err := ifChanged(t, url+"/busy", Validators{})
	if AskedToWait(err) != time.Hour {
		t.Errorf("a server that asks to wait: %v", err)
	}
	_, _, err = ifChanged(t, url+"/same", Validators{})
	var status *StatusError
	if !errors.As(err, &status) || status.Status != http.StatusNotModified {
		t.Errorf("unchanged since nothing: %v", err)
	}
	_, err = local().IfChanged(t.Context(), url+"/feed", Validators{}, 10, nil)
	var refused *RefusedError
	if !errors.As(err, &refused) {
		t.Errorf("an address that is not allowed: %v", err)
	}
}
