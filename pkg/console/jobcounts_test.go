package console

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	v1 "archivist/pkg/api/v1"
)

// TestCountsThatEnd: where only the first jobs of all collections are counted, none of which is
// here, the page does not say that there is none.
func TestCountsThatEnd(t *testing.T) {
	n := v1.JobCounts{All: []v1.PlaceJobs{{Place: "pending"}}}
	c := &Console{Local: true, Now: time.Now, Log: slog.New(slog.DiscardHandler),
		API: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if r.URL.Path == "/v1/whoami" {
				_, _ = w.Write([]byte(`{"subject":"vera","grants":["viewer"]}`))
				return
			}
			_ = json.NewEncoder(w).Encode(n)
		})}
	shows := func(want, never string) {
		t.Helper()
		w := httptest.NewRecorder()
		c.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/console/job-counts?collection=maps", nil))
		if page := w.Body.String(); !strings.Contains(page, want) || strings.Contains(page, never) {
			t.Errorf("%d, expected %q, and not %q:\n%s", w.Code, want, never, page)
		}
	}
	shows("No job waits", "1,000")
	n.Cut = []string{"pending"}
	shows("the first 1,000 of all collections", "No job waits")
}

// TestNotAllRead: what the status has not read of a section is said on the first page, and leads to
// the page that has all of it; numbers are then the least.
func TestNotAllRead(t *testing.T) {
	status := v1.Status{Sections: []v1.StatusSection{{Name: "failures", State: v1.SectionAttention,
		Command: "archivist job list --state failed", Cut: "more jobs failed",
		Lines: []v1.StatusLine{{Text: "the disk is full", Count: 100, Attention: true}}}}}
	c := &Console{Local: true, Now: time.Now, Log: slog.New(slog.DiscardHandler),
		API: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			var answer any = struct{}{}
			switch r.URL.Path {
			case "/v1/whoami":
				answer = map[string]any{"subject": "vera", "grants": []string{"viewer"}}
			case "/v1/status":
				answer = status
			}
			_ = json.NewEncoder(w).Encode(answer)
		})}
	w := httptest.NewRecorder()
	c.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/console/", nil))
	for _, want := range []string{`<a href="./jobs?state=Failed">failures: more jobs failed</a>`,
		`>at least 100 times: the disk is full<`} {
		if page := w.Body.String(); !strings.Contains(page, want) {
			t.Errorf("%d, expected %q:\n%s", w.Code, want, page)
		}
	}
}
