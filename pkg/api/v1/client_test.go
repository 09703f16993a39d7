package v1

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"archivist/pkg/kernel/fault"
)

// TestTokenStaysWithTheAPI: after a redirect to another scheme, host or port, neither that
// server nor any later one gets the token, another header of ours, or the URL.
func TestTokenStaysWithTheAPI(t *testing.T) {
	seen := map[string]http.Header{}
	var api *httptest.Server
	content := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen[r.URL.Path] = r.Header
		if r.URL.Path == "/back" {
			http.Redirect(w, r, api.URL+"/chosen", http.StatusFound)
			return
		}
		fmt.Fprint(w, "content")
	}))
	defer content.Close()
	api = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen[r.URL.Path] = r.Header
		switch r.URL.Path {
		case "/v1/batches/moved/report":
			http.Redirect(w, r, "/v1/batches/here/report", http.StatusFound)
		case "/v1/batches/back/report":
			http.Redirect(w, r, content.URL+"/back", http.StatusFound)
		case "/v1/batches/here/report", "/v1/objects/99999/fk4/versions/1/content":
			http.Redirect(w, r, content.URL+"/content?X-Amz-Signature=secret", http.StatusFound)
		}
	}))
	defer api.Close()
	c := &Client{URL: api.URL, User: "ann", HTTP: http.DefaultClient,
		Bearer: func(context.Context) (string, error) { return "the-token", nil }}
	read := func(body io.ReadCloser, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		defer body.Close()
		if _, err := io.ReadAll(body); err != nil {
			t.Error(err)
		}
	}
	ours := func(path string) bool {
		h := seen[path]
		return h.Get("Authorization") == "Bearer the-token" &&
			h.Get(UserHeader) == ""
	}
	none := func(path string) {
		t.Helper()
		for name := range seen[path] {
			if name != "User-Agent" && name != "Accept-Encoding" {
				t.Errorf("%s got the header %s: %s", path, name, seen[path][name])
			}
		}
	}
	read(c.Content(t.Context(), "ark:/99999/fk4", 1, "producer/a"))
	none("/content")
	read(c.Report(t.Context(), "moved", 0))
	if !ours("/v1/batches/moved/report") || !ours("/v1/batches/here/report") {
		t.Error("the API did not get the token after a redirect to itself")
	}
	none("/content")
	read(c.Report(t.Context(), "back", 0))
	none("/back")
	none("/chosen")
	if err := c.Call(t.Context(), http.MethodPost, "/v1/batches/here/report", map[string]string{}, nil,
		"Idempotency-Key", "k"); err != nil {
		t.Error(err)
	}
	none("/content")
}

func TestOrigin(t *testing.T) {
	for other, same := range map[string]bool{"https://API.example.org:443/b?c": true, "https://api.example.org/": true,
		"http://api.example.org/": false, "https://api.example.org:8443/": false, "https://sub.api.example.org/": false,
		"https://example.org/": false, "https://api.example.org./": false} {
		a, _ := url.Parse("https://api.example.org/prod")
		b, err := url.Parse(other)
		if err != nil || (origin(a) == origin(b)) != same {
			t.Errorf("%s: same origin is %v", other, !same)
		}
	}
	if u, _ := url.Parse("http://[::1]:80/"); !strings.HasSuffix(origin(u), "::1:80") {
		t.Error(origin(u))
	}
}

// TestStorageRefuses: an error of the storage to which the API redirects is told in words, without XML that names
// buckets and keys. It is not the caller's token that is refused: the storage does not get it.
func TestStorageRefuses(t *testing.T) {
	const text = "<?xml version='1.0'?><Error><Code>%s</Code><Key>0a1/ark</Key><BucketName>b</BucketName></Error>"
	for _, c := range []struct {
		status int
		body   string
		kind   fault.Kind
		says   string
	}{
		{404, fmt.Sprintf(text, "NoSuchKey"), fault.NotFound, "does not have the content any more (NoSuchKey)"},
		{403, fmt.Sprintf(text, "AccessDenied"), fault.Unavailable, "for this download (AccessDenied). Try again"},
		{503, "<html>busy 0a1", fault.Unavailable, "answers 503 Service Unavailable; try again in a minute"},
	} {
		storage := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(c.status)
			fmt.Fprint(w, c.body)
		}))
		api := httptest.NewServer(http.RedirectHandler(storage.URL+"/b/0a1?X-Amz-Signature=s", http.StatusFound))
		client := &Client{URL: api.URL, HTTP: http.DefaultClient}
		_, err := client.Content(t.Context(), "ark:/99999/fk4", 1, "producer/a")
		if !fault.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "0a1") ||
			strings.Contains(err.Error(), "token") {
			t.Errorf("%d: %v; expected %q", c.status, err, c.says)
		}
		storage.Close()
		api.Close()
	}
}
