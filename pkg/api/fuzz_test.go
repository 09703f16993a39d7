package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/bucket/buckettest"
	"archivist/pkg/objects/ocfl"
	"archivist/pkg/views/browse"
	"archivist/pkg/views/history"
	"archivist/pkg/views/search"
)

// fuzzed is a whole API whose requests are calls, for what fuzzers send.
type fuzzed struct {
	handler http.Handler
	queue   *queue.Queue
	routes  []string // "POST /v1/batches", in order
	doc     object
}

// noIndex finds nothing.
type noIndex struct{ search.Index }

func (noIndex) Search(context.Context, search.Request) (search.Result, error) {
	return search.Result{}, nil
}

// fuzzAPI makes an empty API, and reads its document.
func fuzzAPI(t testing.TB) *fuzzed {
	a, _ := service(through)
	_, buckets := buckettest.Open(t, "storage", "work", "derived")
	a.Identity.Root, a.Root, a.Derived = ocfl.Root{Bucket: buckets[0]}, ocfl.Root{Bucket: buckets[0]}, buckets[2]
	a.Uploads.Work, a.Work, a.Preview, a.Index = buckets[1], buckets[1], a.Revisions.Preview, noIndex{}
	a.Browse = browse.Store{Table: a.Queue.Table, NewID: a.Queue.NewID}
	a.History = history.Store{Table: a.Queue.Table}
	out := &fuzzed{handler: a.Handler(), queue: a.Queue, doc: object{}}
	_, text := out.ask("GET", "/openapi.json", "", nil)
	if err := json.Unmarshal([]byte(text), &out.doc); err != nil {
		t.Fatal(err)
	}
	operationsOf(out.doc, func(name string, _ object) { out.routes = append(out.routes, name) })
	slices.Sort(out.routes)
	return out
}

// operation is an operation by any number, with its method and a path without parameters.
func (f *fuzzed) operation(n uint8) (method, path string, op object) {
	method, route, _ := strings.Cut(f.routes[int(n)%len(f.routes)], " ")
	op = f.doc["paths"].(object)[route].(object)[strings.ToLower(method)].(object)
	named := strings.NewReplacer("{scheme}", "ark:", "{naan}/{name}", strings.TrimPrefix(arkOf, "ark:/"))
	return method, pathOf.Replace(named.Replace(route)), op
}

// ask sends a request, and returns the answer.
func (f *fuzzed) ask(method, path, media string, body []byte) (int, string) {
	r := httptest.NewRequest(method, "https://example.org/", bytes.NewReader(body))
	at, err := url.ParseRequestURI(path)
	if err != nil {
		return 0, "" // no client can send it
	}
	r.URL.Path, r.URL.RawPath, r.URL.RawQuery = at.Path, at.RawPath, at.RawQuery
	r.Header.Set("Content-Type", media)
	w := httptest.NewRecorder()
	f.handler.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

// check fails for the answers that no request may get, whatever it has: a defect, and a refusal that stored something
// or does not say what is wrong. A service that a test has not is no defect.
func (f *fuzzed) check(t *testing.T, method, path, media string, body []byte) {
	t.Helper()
	before := rowsOf(t, f.queue)
	status, text := f.ask(method, path, media, body)
	if status < 400 {
		return
	}
	var p v1.Problem
	says := json.Unmarshal([]byte(text), &p) == nil && p.Status == status && p.Detail != "" && p.Title != ""
	if strings.HasPrefix(text, xml.Header) || strings.HasPrefix(text, `{"exc:`) {
		says = strings.Contains(text, "exc:error") && strings.Contains(text, "exc:statusName")
	}
	if status >= 500 || !says {
		t.Fatalf("%s %s with %q: %d %s", method, path, body, status, text)
	}
	if after := rowsOf(t, f.queue); after != before {
		t.Fatalf("%s %s with %q is refused, and stored something: %d %s", method, path, body, status, text)
	}
}

// FuzzBodies: whatever JSON an operation gets, it does what it says, or refuses it with a reason and stores nothing.
func FuzzBodies(f *testing.F) {
	seeds := fuzzAPI(f)
	for n := range seeds.routes {
		_, _, op := seeds.operation(uint8(n))
		media, example, has := exampleOf(op)
		if !has || media != "application/json" {
			continue
		}
		data, err := json.Marshal(example)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(n), data)
		f.Add(uint8(n), bytes.ReplaceAll(data, []byte(`"`), []byte(`"x`)))
	}
	f.Add(uint8(0), []byte("null"))
	a := fuzzAPI(f)
	f.Fuzz(func(t *testing.T, n uint8, body []byte) {
		method, path, op := a.operation(n)
		if _, _, has := exampleOf(op); !has {
			return
		}
		a.check(t, method, path, "application/json", body)
	})
}

// FuzzQueries: whatever a query says, it is answered, or refused with a reason.
func FuzzQueries(f *testing.F) {
	a := fuzzAPI(f)
	for n := range a.routes {
		_, _, op := a.operation(uint8(n))
		list, _ := op["parameters"].([]any)
		query := url.Values{}
		for _, p := range list {
			if of := p.(object); of["in"] == "query" {
				query.Set(of["name"].(string), "1")
			}
		}
		f.Add(uint8(n), query.Encode())
		for _, name := range slices.Sorted(maps.Keys(query)) {
			f.Add(uint8(n), name+"=%00&"+name+"=2026-11-22")
			f.Add(uint8(n), name+"=ark:/99999/fk4")
		}
	}
	f.Fuzz(func(t *testing.T, n uint8, query string) {
		method, path, _ := a.operation(n)
		if method == http.MethodGet {
			a.check(t, method, path+"?"+query, "", nil)
		}
	})
}

// FuzzForms: whatever a body of Merritt's routes is, it becomes the batch of its file, or is refused with Merritt's
// fields, and nothing is stored.
func FuzzForms(f *testing.F) {
	for _, d := range documented {
		t := &testing.T{}
		_, body := form(t, d.filename, d.content, d.fields...)
		boundary, _, _ := strings.Cut(strings.TrimPrefix(string(body), "--"), "\r\n")
		f.Add(strings.Contains(d.path, "update"), []byte(strings.ReplaceAll(string(body), boundary, "b")))
	}
	a := fuzzAPI(f)
	f.Fuzz(func(t *testing.T, update bool, body []byte) {
		path := map[bool]string{false: "/poster/submit", true: "/poster/update"}[update]
		a.check(t, "POST", path, "multipart/form-data; boundary=b", body)
	})
}
