package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/fault"
)

// watched is an archive with batches of 30,000 jobs, of which each look sees 10,000 more
// done; status makes an answer an error.
type watched struct {
	requests map[string]int
	failing  int // answers that fail before the others
	last     string
}

func (s *watched) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.requests[r.URL.Path]++
	n := s.requests[r.URL.Path]
	if s.failing > 0 {
		s.failing--
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	b := v1.Batch{ID: "B", State: "Processing", Counts: v1.Counts{Expected: 30_000, Completed: int64(min(n-1, 3) * 10_000)}}
	if b.Counts.Processing = 30_000 - b.Counts.Completed; b.Counts.Processing == 0 {
		b.State = s.last
	}
	_ = json.NewEncoder(w).Encode(b)
}

func watching(t *testing.T, s *watched) (*app, *bytes.Buffer, *[]time.Duration) {
	s.requests = map[string]int{}
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	var out bytes.Buffer
	var waits []time.Duration
	a := &app{ctx: t.Context(), client: &v1.Client{URL: srv.URL, HTTP: srv.Client()}, out: &out, err: &out,
		wait: func(_ context.Context, d time.Duration) error { waits = append(waits, d); return nil }}
	return a, &out, &waits
}

// TestWatchReadsCounts: a look at a batch of any size is one request.
func TestWatchReadsCounts(t *testing.T) {
	s := &watched{last: "Completed"}
	a, out, waits := watching(t, s)
	if err := a.watchBatches([]string{"B", "C"}); err != nil {
		t.Fatal(err)
	}
	if len(s.requests) != 2 || s.requests["/v1/batches/B"] != 4 || s.requests["/v1/batches/C"] != 4 || len(*waits) != 3 {
		t.Errorf("%v, %v", s.requests, *waits)
	}
	const want = "0 of 60000 jobs done, 60000 processing\n20000 of 60000 jobs done, 40000 processing, 20000 completed\n" +
		"40000 of 60000 jobs done, 20000 processing, 40000 completed\n60000 of 60000 jobs done, 60000 completed\n"
	if out.String() != want {
		t.Errorf("%s", out)
	}
}

func TestWatchFails(t *testing.T) {
	a, _, _ := watching(t, &watched{last: "Failed"})
	if err := a.watchBatches([]string{"B"}); !fault.Is(err, fault.Conflict) {
		t.Errorf("%v", err)
	}
	a, _, waits := watching(t, &watched{last: "Completed", failing: mostMissed})
	if err := a.watchBatches([]string{"B"}); err != nil || len(*waits) < mostMissed {
		t.Errorf("%d looks, %v", len(*waits), err)
	}
	a, _, waits = watching(t, &watched{last: "Completed", failing: 1000})
	if err := a.watchBatches([]string{"B"}); !fault.Is(err, fault.Unavailable) || len(*waits) != mostMissed {
		t.Errorf("%d looks, %v", len(*waits), err)
	}
}

// TestWatchJSON: each line is a batch that changed.
func TestWatchJSON(t *testing.T) {
	a, out, _ := watching(t, &watched{last: "Completed"})
	a.json = true
	if err := a.watchBatches([]string{"B"}); err != nil {
		t.Fatal(err)
	}
	var done []string
	for line := range strings.Lines(out.String()) {
		var b v1.Batch
		if err := json.Unmarshal([]byte(line), &b); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		done = append(done, fmt.Sprint(b.Counts.Completed))
	}
	if got := strings.Join(done, " "); got != "0 10000 20000 30000" {
		t.Error(got)
	}
}

// TestWatchIsInterrupted: an interrupt ends it with nothing said, wherever it comes.
func TestWatchIsInterrupted(t *testing.T) {
	for _, where := range []string{"request", "pause"} {
		a, out, _ := watching(t, &watched{last: "Completed"})
		ctx, cancel := context.WithCancel(t.Context())
		a.ctx, a.wait = ctx, func(ctx context.Context, _ time.Duration) error { cancel(); return wait(ctx, time.Hour) }
		if where == "request" {
			cancel()
		}
		if err := a.watchBatches([]string{"B"}); !errors.Is(err, context.Canceled) || strings.Contains(out.String(), "cancel") {
			t.Errorf("%s: %v, %s", where, err, out)
		}
	}
}

func TestPause(t *testing.T) {
	total := time.Duration(0)
	for n := range 100 {
		if pause(n) < 500*time.Millisecond || pause(n) > 10*time.Second || n > 0 && pause(n) < pause(n-1) {
			t.Errorf("%d: %s", n, pause(n))
		}
		total += pause(n)
	}
	if total < 10*time.Minute {
		t.Errorf("100 looks in %s", total)
	}
}
