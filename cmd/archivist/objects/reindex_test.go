package objects

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"archivist/cmd/archivist/command"
	"archivist/cmd/archivist/command/commandtest"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/terminal"
)

// root is an API that reindexes some objects in each folder, so many a request.
type root struct {
	mu     sync.Mutex
	told   []v1.ReindexReport
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
	if r.Method == http.MethodPut {
		var in v1.ReindexReport
		_ = json.NewDecoder(r.Body).Decode(&in)
		s.told = append(s.told, in)
		_ = json.NewEncoder(w).Encode(v1.ReindexRun{ReindexReport: in})
		return
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

// TestReindexAll: every part is looked at once, an interrupted run goes on, what failed
// before and after is listed at the end, and the exit code tells.
func TestReindexAll(t *testing.T) {
	commandtest.EmptyHome(t)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	requests := 0
	s := &root{asked: map[string]int{}, before: func(*http.Request) int {
		requests++
		if requests == 10 {
			interrupt()
		}
		return 0
	}}
	srv := httptest.NewServer(s)
	defer srv.Close()
	c := with(t, srv.URL)
	c.Ctx = ctx
	if code := c.Run("object reindex --all --parallel 1"); code != command.ExitInterrupted {
		t.Fatalf("interrupted: %d %s", code, &c.Err)
	}
	c = with(t, srv.URL)
	code := c.Run("object reindex --all")
	if code != 4 || !strings.Contains(c.Err.String(), "1 of 64 objects") ||
		!strings.Contains(c.Out.String(), "080/o\tit is no inventory") ||
		!strings.Contains(c.Err.String(), "resuming an earlier run") {
		t.Errorf("exit code %d\n%s%s", code, &c.Out, &c.Err)
	}
	again := 0
	for _, n := range s.asked {
		again += n - 1
	}
	if len(s.asked) != 64 || again > 3 { // the answer to the interrupted request is lost
		t.Errorf("%d places were looked at, %d of them twice", len(s.asked), again)
	}
	last := s.told[len(s.told)-1]
	if len(s.told) < 3 || !last.Ended || last.Done != last.Total || last.Objects != 64 || last.Failed != 1 ||
		len(last.Failures) != 1 || s.told[0].Ended {
		t.Errorf("%d reports, the last %+v", len(s.told), last)
	}
	c.Want(t, "object reindex --all --parallel 16", 4, "objects\t64\n")
	c.Want(t, "object reindex --all ark:/99999/fk4x", command.ExitUsage, "either an ARK or --all")
}

// TestReindexIsPatient: a request that the gateway gives up on is sent again.
func TestReindexIsPatient(t *testing.T) {
	commandtest.EmptyHome(t)
	requests, down := 0, false
	srv := httptest.NewServer(&root{asked: map[string]int{}, before: func(*http.Request) int {
		requests++
		if down || requests%3 == 0 {
			return http.StatusGatewayTimeout
		}
		return 0
	}})
	defer srv.Close()
	c := with(t, srv.URL)
	c.Want(t, "object reindex --all --parallel 1", 4, "objects\t64\n")
	if len(c.Waits) == 0 {
		t.Error("no request was sent again")
	}
	down = true
	c.Want(t, "object reindex --all --parallel 1", 7, "the same command resumes")
}

// TestReindexProgress: what is shown while it runs.
func TestReindexProgress(t *testing.T) {
	commandtest.EmptyHome(t)
	now := time.Date(2026, 11, 22, 6, 0, 0, 0, time.UTC)
	open := func() *progress {
		t.Helper()
		p, err := openProgress("http://archive", false, &terminal.Status{Now: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	p := open()
	p.show()
	for i := range 8 {
		p.Parts[i].Cursor = ""
	}
	now = now.Add(20 * time.Second)
	if err := p.add(&p.Parts[8], v1.Reindexed{Objects: 1000, Changed: 10, Cursor: "880/0"}); err != nil {
		t.Fatal(err)
	}
	const want = " 53 %  1000 objects, 10 restored, 0 failed, 18s left"
	if got := p.text(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	p = open()
	if p.Sum.Objects != 1000 || p.Parts[8].Cursor != "880/0" {
		t.Errorf("read back: %+v", p)
	}
}
