package opensearch_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/views/search"
	"archivist/pkg/views/search/opensearch"
	"archivist/pkg/views/search/searchtest"
)

var who = credentials.NewStaticCredentialsProvider("AKIDEXAMPLE", "secret", "token")

func now() time.Time { return time.Date(2026, 11, 22, 9, 30, 0, 0, time.UTC) }

// open is an index on a domain.
func open(t *testing.T, d http.Handler) *opensearch.Index {
	server := httptest.NewServer(d)
	t.Cleanup(server.Close)
	return &opensearch.Index{URL: server.URL, Name: "objects", Region: "eu-west-1", Credentials: who,
		HTTP: server.Client(), Now: now}
}

func TestConform(t *testing.T) {
	searchtest.Conform(t, func(t *testing.T) search.Index { return open(t, &domain{TB: t}) })
}

// TestOlder: a writer that is late does not overwrite a newer state, nor bring back an object
// that was deleted.
func TestOlder(t *testing.T) {
	var s searchtest.State
	x := open(t, &domain{TB: t})
	late := s.Put("a", &search.Document{Titles: []string{"Old"}})
	old, _ := s.Read(t.Context(), late.ARK)
	gone := s.Put("b", &search.Document{Titles: []string{"Old"}})
	goneDocument, _ := s.Read(t.Context(), gone.ARK)
	searchtest.Update(t, x, &s, late, gone)
	searchtest.Update(t, x, &s, s.Put("a", &search.Document{Titles: []string{"New"}}), s.Put("b", nil))
	read := func(_ context.Context, ark string) (*search.Document, error) {
		if ark == late.ARK {
			return old, nil
		}
		return goneDocument, nil
	}
	err := x.Update(t.Context(), []search.Change{late, gone}, read)
	if err != nil {
		t.Fatal(err)
	}
	if found := searchtest.Find(t, x, "old", "") + "," + searchtest.Find(t, x, "new", ""); found != ",a" {
		t.Errorf("found %q", found)
	}
}

// TestRefusals: what the domain refuses is an Unavailable that has its words.
func TestRefusals(t *testing.T) {
	var s searchtest.State
	change := s.Put("a", &search.Document{Titles: []string{"A"}})
	for answer, want := range map[string]string{
		`{"error": {"type": "security_exception", "reason": "no permissions"}}`: "no permissions",
		`<html>`: "403",
	} {
		x := open(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(answer))
		}))
		err := x.Update(t.Context(), []search.Change{change}, s.Read)
		if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", answer, err)
		}
	}
	full := &domain{TB: t, refuse: `{"type": "cluster_block_exception", "reason": "index read-only"}`}
	err := open(t, full).Update(t.Context(), []search.Change{change}, s.Read)
	if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "index read-only") {
		t.Errorf("one document is refused: %v", err)
	}
}

// TestBulks: many large documents are sent in requests that every domain accepts, and the index
// is created once.
func TestBulks(t *testing.T) {
	var s searchtest.State
	var largest, puts atomic.Int64
	d := &domain{TB: t}
	x := open(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		largest.Store(max(largest.Load(), r.ContentLength))
		if r.Method == http.MethodPut {
			puts.Add(1)
		}
		d.ServeHTTP(w, r)
	}))
	var changed []search.Change
	for _, name := range strings.Split("abcdefghijklmnopqrstuvwxyz", "") {
		changed = append(changed, s.Put(name, &search.Document{More: []string{strings.Repeat("long ", 100_000)}}))
	}
	searchtest.Update(t, x, &s, changed...)
	searchtest.Update(t, x, &s, changed[0])
	if n := searchtest.Search(t, x, "long", "", 0, "").Total; n != len(changed) {
		t.Errorf("%d of %d documents are found", n, len(changed))
	}
	if largest.Load() > 10<<20 || puts.Load() != 1 {
		t.Errorf("the largest request has %d bytes, and the index was created %d times", largest.Load(), puts.Load())
	}
}

// TestExtended: the index of an earlier release gets the fields that it lacks before a document
// is written; a new one has them from the beginning.
func TestExtended(t *testing.T) {
	var s searchtest.State
	older := &domain{TB: t, created: true, docs: map[string]document{}, version: map[string]int64{}}
	for name, d := range map[string]*domain{"older": older, "new": {TB: t}} {
		searchtest.Update(t, open(t, d), &s, s.Put("a",
			&search.Document{Kinds: []string{"image/tiff"}}))
		if !slices.Contains(d.fields, "format") || !slices.Contains(d.fields, "kind") {
			t.Errorf("%s: the fields are %v", name, d.fields)
		}
	}
}

// TestRegionOf: requests are signed for the region of the domain, which may be another than that of
// the functions.
func TestRegionOf(t *testing.T) {
	for endpoint, want := range map[string]string{
		"https://search-archive-a1b2c3d4e5f6g7h8i9j0k1l2m3.eu-west-1.es.amazonaws.com":     "eu-west-1",
		"https://search-archive-a1b2c3d4e5f6g7h8i9j0k1l2m3.cn-north-1.es.amazonaws.com.cn": "cn-north-1",
		"http://127.0.0.1:9200": "", "": "",
	} {
		if got := opensearch.RegionOf(endpoint); got != want {
			t.Errorf("%s: the region is %q, want %q", endpoint, got, want)
		}
	}
}
