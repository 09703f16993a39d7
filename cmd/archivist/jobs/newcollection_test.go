package jobs

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	v1 "archivist/pkg/api/v1"
)

// TestNewCollection: about a collection that was never used a person is asked before anything is sent, and a script is
// refused unless it says that it is meant. Without the right to read the collection there is no question.
func TestNewCollection(t *testing.T) {
	const warning = "the collection dialy has never been used; there is daily. This submission begins it"
	sent, denied := 0, false
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/collections/dialy", func(w http.ResponseWriter, _ *http.Request) {
		if denied {
			w.WriteHeader(http.StatusForbidden)
			_ = json.NewEncoder(w).Encode(v1.Problem{Type: "urn:archivist:problem:forbidden", Status: 403,
				Detail: "no"})
			return
		}
		_ = json.NewEncoder(w).Encode(v1.Collection{Name: "dialy", New: true, Near: []string{"daily"}})
	})
	mux.HandleFunc("POST /v1/batches", func(w http.ResponseWriter, _ *http.Request) {
		sent++
		w.WriteHeader(http.StatusAccepted)
		_ = json.NewEncoder(w).Encode(v1.Accepted{ID: "b1", State: "Pending",
			Warnings: []string{warning}})
	})
	srv := httptest.NewServer(mux)
	defer srv.Close()

	const line = "submit https://example.org/a.txt -c dialy --type file"
	const asks = "the collection dialy has never been used; there is daily"
	for _, c := range []struct {
		flags, answers string
		width, code    int
		sent           int
		says           string
	}{
		{"", "y\n", 80, 0, 1, asks + ". Is it meant? [y/N] "},
		{"", "no\n", 80, 2, 0, "nothing was done"},
		{"", "", 80, 2, 0, "nothing was done"},
		{"", "y\n", 0, 2, 0, asks + "; --new-collection says that it is meant"},
		{" --new-collection", "", 0, 0, 1, ""},
	} {
		sent = 0
		console := with(t, srv.URL)
		console.Width, console.Stdin = c.width, c.answers
		console.Want(t, line+c.flags, c.code, c.says)
		if sent != c.sent || strings.Contains(console.Err.String(), warning) { // they have said that they mean it
			t.Errorf("%+v: %d submissions: %s", c, sent, console.Err.String())
		}
	}

	sent, denied = 0, true
	with(t, srv.URL).Want(t, line, 0, warning)
	if sent != 1 {
		t.Errorf("a depositor: %d submissions", sent)
	}
}
