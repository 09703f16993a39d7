package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/fault"
)

// root is an API that reindexes some objects in each folder, so many a request.
type root struct {
	mu     sync.Mutex
	asked  map[string]int // places that were looked at
	before func(r *http.Request) int
}

func (s *root) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.before != nil {
		if status := s.before(r); status != 0 {
			w.WriteHeader(status)
			return
		}
	}
	q := r.URL.Query()
	var page v1.Reindexed
	for n := 0; n < 4096; n += 64 { // an object in each 64th folder
		place := fmt.Sprintf("%03x/o", n)
		if place <= q.Get("cursor") || q.Get("to") != "" && place >= q.Get("to") {
			continue
		}
		if page.Objects == 3 {
			break
		}
		s.asked[place]++
		page.Objects, page.Cursor = page.Objects+1, place
		if n == 128 {
			page.Failed = append(page.Failed, v1.NotReindexed{Stored: place, Why: "it is no inventory"})
		}
	}
	if page.Objects < 3 {
		page.Cursor = ""
	}
	_ = json.NewEncoder(w).Encode(page)
}

func runReindex(t *testing.T, ctx context.Context, url string, c reindexCmd) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := c.Run(&app{ctx: ctx, client: &v1.Client{URL: url, HTTP: http.DefaultClient}, out: &out, err: io.Discard})
	return out.String(), err
}

// TestReindexAll: every part is looked at once, an interrupted run goes on, what failed
// before and after is listed at the end, and the exit code tells.
func TestReindexAll(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	requests := 0
	s := &root{asked: map[string]int{}, before: func(*http.Request) int {
		if requests++; requests == 10 {
			interrupt()
		}
		return 0
	}}
	srv := httptest.NewServer(s)
	defer srv.Close()
	if _, err := runReindex(t, ctx, srv.URL, reindexCmd{All: true, Parallel: 1}); !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "the same command goes on") {
		t.Fatalf("interrupted: %v", err)
	}
	says, err := runReindex(t, t.Context(), srv.URL, reindexCmd{All: true, Parallel: 4})
	if fault.At(err).Exit != 4 || !strings.Contains(err.Error(), "1 of 64 objects") || !strings.Contains(says, "080/o: it is no inventory") {
		t.Errorf("it says %q and ends with %v", says, err)
	}
	again := 0
	for _, n := range s.asked {
		again += n - 1
	}
	if len(s.asked) != 64 || again > 3 { // the answer to the interrupted request is lost
		t.Errorf("%d places were looked at, %d of them twice", len(s.asked), again)
	}
	if says, _ := runReindex(t, t.Context(), srv.URL, reindexCmd{All: true, Parallel: 16}); !strings.Contains(says, "64 objects looked at") {
		t.Errorf("the next run says %q", says)
	}
	if _, err := runReindex(t, t.Context(), srv.URL, reindexCmd{ARK: "ark:/99999/fk4x", All: true, Parallel: 1}); !fault.Is(err, fault.Invalid) {
		t.Errorf("an ARK and --all gave %v", err)
	}
}

// TestReindexIsPatient: a request that the gateway gives up on is sent again.
func TestReindexIsPatient(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	retryAfter = time.Millisecond
	defer func() { retryAfter = time.Second }()
	requests, down := 0, false
	srv := httptest.NewServer(&root{asked: map[string]int{}, before: func(*http.Request) int {
		if requests++; down || requests%3 == 0 {
			return http.StatusGatewayTimeout
		}
		return 0
	}})
	defer srv.Close()
	if says, err := runReindex(t, t.Context(), srv.URL, reindexCmd{All: true, Parallel: 2}); !strings.Contains(says, "64 objects looked at") {
		t.Errorf("it says %q, %v", says, err)
	}
	down = true
	if _, err := runReindex(t, t.Context(), srv.URL, reindexCmd{All: true, Parallel: 2}); !fault.Is(err, fault.Unavailable) {
		t.Errorf("an API that is down gave %v", err)
	}
}

// TestReindexProgress: what is shown while it runs.
func TestReindexProgress(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	p, err := openProgress("http://archive", false, io.Discard, false)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 8 {
		p.Parts[i].Cursor = ""
	}
	if err := p.add(&p.Parts[8], v1.Reindexed{Objects: 1000, Changed: 10, Cursor: "880/0"}); err != nil {
		t.Fatal(err)
	}
	want := "1000 objects, 10 had rows missing, 0 not brought back; about 53 %, 50 a second, 18s left"
	if got := p.text(20 * time.Second); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if p, err = openProgress("http://archive", false, io.Discard, false); err != nil || p.Sum.Objects != 1000 || p.Parts[8].Cursor != "880/0" {
		t.Errorf("read back: %+v, %v", p, err)
	}
}
