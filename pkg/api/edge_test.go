package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"archivist/pkg/api"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/table/tabletest"
)

// ask sends a request and returns the response and its body.
func ask(t *testing.T, method, url, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(text)
}

// TestErrorsAreBounded: whatever the request, an error is short and repeats no secret.
func TestErrorsAreBounded(t *testing.T) {
	c, _ := serve(t, through)
	large := strings.Repeat("SECRET", 150_000)
	var unknown []string
	for i := range 20_000 {
		unknown = append(unknown, fmt.Sprintf(`"unknown%d":1`, i))
	}
	submit := func(rest string) string {
		return `{"collection":"maps","payload":{"url":"https://example.org/a"}` + rest + `}`
	}
	for name, k := range map[string]struct {
		method, path, body string
		status             int
		headers            []string
	}{
		"no JSON":       {"POST", "/v1/batches", large, 400, nil},
		"a string":      {"POST", "/v1/batches", `"` + large + `"`, 422, nil},
		"unknown field": {"POST", "/v1/batches", submit(`,"` + large[:500_000] + `":1`), 422, nil},
		"many fields":   {"POST", "/v1/batches", submit("," + strings.Join(unknown, ",")), 422, nil},
		"wrong type":    {"POST", "/v1/batches", submit(`,"note":{"password":"` + large + `"}`), 422, nil},
		"no URL": {"POST", "/v1/batches",
			`{"collection":"maps","payload":{"url":"https://me:SECRET@exa mple.org/%zz?sig=SECRET"}}`, 422, nil},
		"other scheme": {"POST", "/v1/batches",
			`{"collection":"maps","payload":{"url":"ftp://me:SECRET@example.org/a?sig=SECRET"}}`, 422, nil},
		"too large":     {"POST", "/v1/batches", submit(`,"note":"` + large + large + `"`), 413, nil},
		"long key":      {"POST", "/v1/batches", submit(""), 422, []string{"Idempotency-Key", large[:100_000]}},
		"long id":       {"GET", "/v1/jobs/" + large[:100_000], "", 422, nil},
		"long cursor":   {"GET", "/v1/batches?collection=maps&cursor=" + large[:100_000], "", 422, nil},
		"long jobs":     {"GET", "/v1/batches/x/jobs?cursor=" + large[:100_000], "", 422, nil},
		"long ark":      {"GET", "/v1/objects?ark=" + large[:100_000], "", 422, nil},
		"control in id": {"GET", "/v1/jobs/a%00%0a%1b%5b31m", "", 404, nil},
		"long name":     {"PUT", "/v1/collections/" + large[:100_000], `{}`, 422, nil},
		"callback": {"PUT", "/v1/collections/maps",
			`{"callback":{"url":"ftp://me:SECRET@h/?sig=SECRET","secret":"archivist/x"}}`, 422, nil},
		"long callback": {"PUT", "/v1/collections/maps", `{"callback":{"url":"` + large + `","secret":"archivist/x"}}`,
			422, nil},
		"long secret": {"PUT", "/v1/collections/maps", `{"callback":{"url":"https://h/","secret":"` + large + `"}}`,
			422, nil},
		"long shoulder":  {"PUT", "/v1/collections/maps", `{"shoulder":"` + large + `"}`, 422, nil},
		"long mail":      {"PUT", "/v1/collections/maps", `{"notification":["` + large + `"]}`, 422, nil},
		"long reason":    {"POST", "/v1/jobs/x/actions", `{"action":"fail","reason":"` + large + `"}`, 422, nil},
		"unknown action": {"POST", "/v1/jobs/x/actions", `{"action":"` + large + `","reason":"x"}`, 422, nil},
	} {
		resp, text := ask(t, k.method, c.URL+k.path, k.body, k.headers...)
		if resp.StatusCode != k.status || len(text) > 8000 || !json.Valid([]byte(text)) ||
			resp.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %d, %d bytes: %.300s", name, resp.StatusCode, len(text), text)
		}
		if n := strings.Count(text, "SECRET"); strings.Contains(k.body, "SECRET@") && n > 0 || n > 700 {
			t.Errorf("%s: the secret is there %d times: %.600s", name, n, text)
		}
	}
}

// TestWhatIsCheckedIsUsed: a repeated name, also in another spelling, is refused: the
// checked value could differ from the used one.
func TestWhatIsCheckedIsUsed(t *testing.T) {
	c, q := serve(t, through)
	long := strings.Repeat("x", 3000)
	for name, body := range map[string]string{
		"twice":         `{"collection":"maps","payload":{"url":"https://e.org/a"},"note":"` + long + `","note":"a"}`,
		"spelled twice": `{"collection":"maps","payload":{"url":"https://e.org/a"},"note":"a","NOTE":"` + long + `"}`,
		"spelled so":    `{"collection":"maps","payload":{"url":"https://e.org/a"},"NOTE":"a"}`,
		"inside":        `{"collection":"maps","payload":{"url":"https://e.org/a","url":"ftp://e.org/a"}}`,
		"objects merged": `{"collection":"maps","payload":{"filename":"` + long +
			`"},"payload":{"url":"https://e.org/a"}}`,
		"escaped":   `{"collection":"maps","payload":{"url":"https://e.org/a"},"note":"a","n\u006fte":"b"}`,
		"not UTF-8": "{\"collection\":\"maps\",\"payload\":{\"url\":\"https://e.org/a\"},\"note\":\"\xff\"}",
		"deep": `{"collection":"maps","payload":{"url":"https://e.org/a"},"note":` +
			strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`,
		"two documents": `{"collection":"maps","payload":{"url":"https://e.org/a"}}{}`,
	} {
		if resp, text := ask(t, "POST", c.URL+"/v1/batches", body); resp.StatusCode != 400 && resp.StatusCode != 422 ||
			len(text) > 2000 {
			t.Errorf("%s: %d %.500s", name, resp.StatusCode, text)
		}
	}
	if p, err := q.FindBatches(t.Context(), queue.Find{Collections: []string{"maps"}}); err != nil || len(p.Items) > 0 {
		t.Errorf("something was stored: %+v, %v", p, err)
	}
}

// TestHeaders: no browser guesses the type of a response, runs it, frames it, or caches it.
func TestHeaders(t *testing.T) {
	c, _ := serve(t, through)
	for _, path := range []string{"/v1/queue", "/v1/jobs/none", "/v1/nothing", "/docs", "/openapi.json",
		"/v1/batches?collection=maps"} {
		resp, text := ask(t, "GET", c.URL+path, "")
		h := resp.Header
		csp := h.Get("Content-Security-Policy")
		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Cache-Control") != "no-store" ||
			h.Get("Referrer-Policy") != "no-referrer" || !strings.Contains(csp, "default-src 'none'") ||
			!strings.Contains(csp, "frame-ancestors 'none'") || strings.Contains(csp, "unsafe-eval") ||
			path != "/docs" && strings.Contains(csp, "script") {
			t.Errorf("%s: %v %.100s", path, h, text)
		}
	}
}

// TestPanicIsAnswered: a panic in a handler is answered as an internal error, and logged
// without the request.
func TestPanicIsAnswered(t *testing.T) {
	var log bytes.Buffer
	broken := func(string, func() error) error { panic(errors.New("out of range")) }
	tb := tabletest.Table(&tabletest.Client{DynamoDBAPI: tabletest.New(), Do: broken})
	tb.Wait = func(context.Context, time.Duration) error { return nil }
	q := &queue.Queue{Table: tb, Now: time.Now, NewID: func() string { return "ID" }}
	srv := httptest.NewServer((&api.API{Open: true, Queue: q, Log: slog.New(slog.NewJSONHandler(&log, nil))}).Handler())
	defer srv.Close()
	resp, text := ask(t, "GET", srv.URL+"/v1/batches?collection=SECRET", "SECRET", "Authorization", "SECRET",
		"X-Api-Key", "SECRET")
	said := log.String()
	if resp.StatusCode != 500 || !json.Valid([]byte(text)) || strings.Contains(said+text, "SECRET") ||
		!strings.Contains(said, "out of range") || !strings.Contains(said, "edge.go") {
		t.Errorf("%d %s; the log says %s", resp.StatusCode, text, said)
	}

	// A client of Merritt understands it.
	media, body := form(t, "a.txt", "SECRET", "profile", "maps")
	resp, text = ask(t, "POST", srv.URL+"/poster/submit", string(body), "Content-Type", media)
	out, is := ofMerritt(text)
	if resp.StatusCode != 500 || !is || out.StatusName != "GENERAL_EXCEPTION" || out.HTTP != 500 ||
		strings.Contains(log.String()+text, "SECRET") {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
}
