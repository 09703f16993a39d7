package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"unicode"

	"archivist/cmd/archivist/command/commandtest"
	v1 "archivist/pkg/api/v1"
)

// evil begins lines, moves the cursor, colours, rings, and turns the text around.
const evil = "x\nFORGED \ufdd3a\r\nFORGED\u2028FORGED\u2029FORGED" +
	"\x1b[2J\x1b]0;t\x07\x08\u009b31m\u0085FORGED\u202e\u2066\x7f\x00y"

// fill puts evil into every text of a value.
func fill(v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(evil)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), depth)
		}
	case reflect.Pointer:
		if depth > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem(), depth-1)
		}
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			data, _ := json.Marshal(evil)
			v.SetBytes(data)
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), depth)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		if v.Type().Elem().Kind() == reflect.String {
			v.SetMapIndex(reflect.ValueOf("sha256"), reflect.ValueOf(evil))
			v.SetMapIndex(reflect.ValueOf("sha512"), reflect.ValueOf(evil))
		}
	}
}

func evilOf[T any]() T {
	var v T
	fill(reflect.ValueOf(&v).Elem(), 3)
	return v
}

func listOf[T any]() v1.List[T] { return v1.List[T]{Items: []T{evilOf[T]()}} }

// evilAPI answers every route with texts that a terminal must not obey.
func evilAPI(t *testing.T) string {
	job1 := map[string]any{"job": evil, "title": evil, "message": evil, "state": evil, "localIds": []string{evil},
		"version": 1, "ark": evil, "next": evil}
	report, err := json.Marshal(map[string]any{"batch": evil, "message": evil, "failed": []any{job1}})
	if err != nil {
		t.Fatal(err)
	}
	batch, job := evilOf[v1.Batch](), evilOf[v1.Job]()
	receipt, reindexed := evilOf[v1.Receipt](), evilOf[v1.Reindexed]()
	batch.State, job.State, receipt.Cursor, reindexed.Cursor = "Completed", "Failed", "", ""
	answers := []struct {
		path string
		body any
	}{
		{"/report", json.RawMessage(report)}, {"/explain/", evilOf[v1.Explanation]()}, {"/receipt", receipt},
		{"/events", listOf[v1.Event]()}, {"/versions", listOf[v1.Version]()}, {"/files", listOf[v1.File]()},
		{"/jobs/", job}, {"/jobs", listOf[v1.Job]()}, {"/batches/", batch}, {"/batches", listOf[v1.Batch]()},
		{"/objects/", evilOf[v1.Object]()}, {"/objects", listOf[v1.Object]()},
		{"/collections/", evilOf[v1.Collection]()}, {"/queue", evilOf[v1.Queue]()}, {"/reindex", reindexed},
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, a := range answers {
			if strings.Contains(r.URL.Path, a.path) {
				_ = json.NewEncoder(w).Encode(a.body)
				return
			}
		}
		http.Error(w, evil, http.StatusInternalServerError)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// TestTerminalObeysNothing: whatever the archive answers, no command prints a character
// that a terminal obeys, or a line that a depositor's text began. JSON is as it came.
func TestTerminalObeysNothing(t *testing.T) {
	commandtest.EmptyHome(t)
	c := with(t, evilAPI(t))
	c.Env["NO_COLOR"] = "1"
	for _, line := range []string{"batch list -c maps", "batch show x", "batch report x", "batch show x --watch",
		"job list -c maps", "job show x-1", "job show x-1 --watch", "job receipt x-1", "job requeue x-1 --reason r",
		"object list -c maps", "object show ark:/99999/fk4x", "object files ark:/99999/fk4x",
		"object reindex --all", "object get ark:/99999/fk4x",
		"collection show maps", "queue", "explain x", "submit https://example.org/a -c maps"} {
		for _, width := range []int{0, 80} {
			c.Width = width
			c.Run(line)
			text := strings.ReplaceAll(c.Out.String()+c.Err.String(), "\r\x1b[K", "") // ours: the status line
			for printed := range strings.Lines(text) {
				if strings.HasPrefix(printed, "FORGED") {
					t.Errorf("%s: a line was begun: %q", line, printed)
				}
			}
			for _, r := range text {
				if unicode.IsControl(r) && r != '\n' && (r != '\t' || width > 0) || r == '\u2028' ||
					r == '\u2029' ||
					unicode.Is(unicode.Bidi_Control, r) ||
					r >= '\ufdd0' && r <= '\ufddf' {
					t.Errorf("%s: it prints %U", line, r)
					break
				}
			}
			if text == "" {
				t.Errorf("%s: nothing was printed", line)
			}
		}
		c.Run(line + " --json all")
		isOne := !strings.Contains(line, "watch") && c.Out.Len() > 0
		if isOne && !json.Valid(c.Out.Bytes()) {
			t.Errorf("%s: no JSON: %.300s", line, &c.Out)
		}
	}
}
