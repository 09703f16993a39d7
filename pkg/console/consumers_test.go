package console_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/console"
)

// answering opens pages of a console whose API gives these answers, by path, to somebody with a
// role; an empty list to all else.
func answering(role string, answers map[string]any) (open func(path string) string) {
	answers["/v1/whoami"] = map[string]any{"subject": "vera", "grants": []string{role}}
	c := &console.Console{Local: true, Now: time.Now, Log: slog.New(slog.DiscardHandler),
		API: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			answer, known := answers[r.URL.Path]
			if !known {
				answer = v1.List[int]{}
			}
			_ = json.NewEncoder(w).Encode(answer)
		})}
	return func(path string) string {
		w := httptest.NewRecorder()
		c.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/console/"+path, nil))
		return w.Body.String()
	}
}

// TestBrokenFilter: a consumer whose filter cannot be read is said to stand, and nothing is said of
// what it has to handle; one whose filter asks for something in vain runs.
func TestBrokenFilter(t *testing.T) {
	vain := v1.Consumer{Counted: "2026-11-22T09:30:00Z", Warnings: []string{"filter: in vain"}}
	vain.Name = "vain"
	broken := vain
	broken.Name, broken.Broken = "broken", true
	open := answering("viewer", map[string]any{
		"/v1/consumers":      v1.List[v1.Consumer]{Items: []v1.Consumer{vain, broken}},
		"/v1/consumers/vain": vain, "/v1/consumers/broken": broken})
	const stands, unknown = "stands: its filter cannot be read", "not known"
	first, second, _ := strings.Cut(open("consumers"), "consumers/broken")
	for page, is := range map[string]bool{first: false, second: true, open("consumers/vain"): false,
		open("consumers/broken"): true} {
		if strings.Contains(page, stands) != is || strings.Contains(page, unknown) != is ||
			strings.Contains(page, ">runs<") == is {
			t.Errorf("expected to stand: %v\n%s", is, page)
		}
	}
}

// TestRestoredStates: a table that is deleted is not said to be complete, nor one of which it is
// not known whether it lacks something to lack it.
func TestRestoredStates(t *testing.T) {
	gone := v1.RestoredTable{Name: "gone", Status: "DELETING", Lacks: []v1.TableLack{}}
	unknown := v1.RestoredTable{Name: "unknown", Status: "ACTIVE", Lacks: []v1.TableLack{
		{What: "recovery", Says: "not known: refused", Unknown: true}}}
	page := answering("operator", map[string]any{"/v1/restores": v1.Restores{Table: "archivist",
		Items: []v1.RestoredTable{unknown, gone}, Looked: 2, Unread: 1}})("rebuilds")
	first, second, _ := strings.Cut(page, ">gone</span>")
	if !strings.Contains(first, "but not ready") || strings.Contains(page, "lacks something") ||
		!strings.Contains(second, "cannot be used") || strings.Contains(second, "is complete") ||
		!strings.Contains(second, "1 table could not be looked at") {
		t.Error(page)
	}
}
