package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/fault"
)

// TestReindexAll: all pages are asked for, what failed is listed at the end, and the
// exit code tells.
func TestReindexAll(t *testing.T) {
	pages := map[string]v1.Reindexed{
		"":  {Objects: 3, Changed: 1, Cursor: "k", Failed: []v1.NotReindexed{{Stored: "a/b", Why: "it is no inventory"}}},
		"k": {Objects: 2, Changed: 2, Cursor: "l", Failed: []v1.NotReindexed{{ARK: "ark:/99999/fk4x", Stored: "c/d", Why: "taken"}}},
		"l": {Objects: 1},
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(pages[r.URL.Query().Get("cursor")])
	}))
	defer srv.Close()
	run := func(c reindexCmd) (string, error) {
		var out bytes.Buffer
		err := c.Run(&app{ctx: t.Context(), client: &v1.Client{URL: srv.URL, HTTP: srv.Client()}, out: &out, err: io.Discard})
		return out.String(), err
	}
	says, err := run(reindexCmd{All: true})
	if fault.At(err).Exit != 4 || !strings.Contains(err.Error(), "2 of 6 objects") {
		t.Errorf("it ends with %v", err)
	}
	for _, want := range []string{"6 objects looked at, 3 had rows missing", "a/b: it is no inventory", "ark:/99999/fk4x: taken"} {
		if !strings.Contains(says, want) {
			t.Errorf("%q is not in %s", want, says)
		}
	}
	if says, err := run(reindexCmd{All: true, Cursor: "l"}); err != nil || !strings.Contains(says, "1 objects looked at") {
		t.Errorf("from a cursor on: %q, %v", says, err)
	}
	if _, err := run(reindexCmd{ARK: "ark:/99999/fk4x", All: true}); !fault.Is(err, fault.Invalid) {
		t.Errorf("an ARK and --all gave %v", err)
	}
}
