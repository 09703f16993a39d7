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
