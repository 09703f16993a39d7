package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"unicode"

	"github.com/alecthomas/kong"

	v1 "archivist/pkg/api/v1"
)

// evil begins lines, moves the cursor, colours, rings, and turns the text around.
const evil = "x\nFORGED a\r\nFORGED\u2028FORGED\u2029FORGED\x1b[2J\x1b]0;t\x07\x08\u009b31m\u0085FORGED\u202e\u2066\x7f\x00y"

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

func page[T any]() v1.List[T] { return v1.List[T]{Items: []T{evilOf[T]()}} }

// evilAPI answers every route with texts that a terminal must not obey.
func evilAPI(t *testing.T) *v1.Client {
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
		{"/report", json.RawMessage(report)}, {"/explain", evilOf[v1.Explanation]()}, {"/receipt", receipt},
		{"/events", page[v1.Event]()}, {"/versions", page[v1.Version]()}, {"/files", page[v1.File]()},
		{"/jobs/", job}, {"/jobs", page[v1.Job]()}, {"/batches/", batch}, {"/batches", page[v1.Batch]()},
		{"/objects/", evilOf[v1.Object]()}, {"/objects", page[v1.Object]()},
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
	return &v1.Client{URL: srv.URL, HTTP: srv.Client()}
}

// TestTerminalObeysNothing: whatever the archive answers, no command prints a character
// that a terminal obeys, or a line that a depositor's text began. JSON is as it came.
func TestTerminalObeysNothing(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir()) // a reindex keeps its progress there
	client := evilAPI(t)
	for _, args := range []string{"batch list -c maps", "batch show x", "batch report x", "batch watch x",
		"job list -c maps", "job show x-1", "job watch x-1", "job receipt x-1", "job requeue x-1 --reason r",
		"object list -c maps", "object show ark:/99999/fk4x", "object files ark:/99999/fk4x", "object reindex --all", "object get ark:/99999/fk4x",
		"collection show maps", "queue", "explain x", "submit https://example.org/a -c maps"} {
		for _, json := range []bool{false, true} {
			var c cli
			parser, err := kong.New(&c)
			if err != nil {
				t.Fatal(err)
			}
			k, err := parser.Parse(strings.Fields(args))
			if err != nil {
				t.Fatalf("%s: %v", args, err)
			}
			var out, errs bytes.Buffer
			a := &app{ctx: t.Context(), client: client, json: json, out: &screen{to: &out}, err: &screen{to: &errs}, wait: wait}
			if json {
				a.out = &out
			}
			if err := k.Run(a); err != nil {
				_, _ = io.WriteString(a.err, err.Error())
			}
			if json {
				continue
			}
			for line := range strings.Lines(out.String()) {
				if strings.HasPrefix(strings.TrimLeft(line, " │"), "FORGED") {
					t.Errorf("%s: a line was begun: %q", args, line)
				}
			}
			for _, r := range out.String() + errs.String() {
				if unicode.IsControl(r) && r != '\n' || r == '\u2028' || r == '\u2029' || unicode.Is(unicode.Bidi_Control, r) {
					t.Errorf("%s: it prints %U", args, r)
					break
				}
			}
			if out.Len()+errs.Len() == 0 {
				t.Errorf("%s: nothing was printed", args)
			}
		}
	}
}

// FuzzScreen: what is written in pieces is what is written at once.
func FuzzScreen(f *testing.F) {
	f.Add("aé\u202e\x1b[2J\u009b", 2)
	f.Fuzz(func(t *testing.T, text string, at int) {
		var whole, pieces bytes.Buffer
		_, _ = io.WriteString(&screen{to: &whole}, text)
		s := &screen{to: &pieces}
		at = max(0, min(at, len(text)))
		_, _ = io.WriteString(s, text[:at])
		_, _ = io.WriteString(s, text[at:])
		if whole.String() != pieces.String() {
			t.Errorf("%q and %q", whole.String(), pieces.String())
		}
		for _, r := range whole.String() {
			if obeyed(r) {
				t.Errorf("%U is printed", r)
			}
		}
	})
}
