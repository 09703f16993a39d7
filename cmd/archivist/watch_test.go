package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/fault"
	"archivist/pkg/terminal"
)

// watched is an archive with batches of 30,000 jobs, of which each look sees 10,000 more
// done; failing makes the first answers errors.
type watched struct {
	requests map[string]int
	failing  int
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
	b := v1.Batch{
		ID:     "B",
		State:  v1.Processing,
		Counts: v1.Counts{Expected: 30_000, Completed: int64(min(n-1, 3) * 10_000)},
	}
	b.Counts.Processing = 30_000 - b.Counts.Completed
	if b.Counts.Processing == 0 {
		b.State = s.last
	}
	_ = json.NewEncoder(w).Encode(b)
}

func watching(t *testing.T, s *watched) *console {
	s.requests = map[string]int{}
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	return with(t, srv.URL)
}

// TestWatchInAPipe: a look at a batch of any size is one request, a line comes at a
// modest pace, and the last one says 100 %.
func TestWatchInAPipe(t *testing.T) {
	s := &watched{last: v1.Completed}
	c := watching(t, s)
	c.want(t, "batch watch B C", 0, "")
	looks := []int{len(s.requests), s.requests["/v1/batches/B"], s.requests["/v1/batches/C"], len(c.waits)}
	if !slices.Equal(looks, []int{2, 4, 4, 3}) {
		t.Errorf("%v, %v", s.requests, c.waits)
	}
	const want = "  0 %  0 of 60000 jobs done: 60000 processing\n100 %  60000 of 60000 jobs done: 60000 completed\n"
	if c.out.String() != want {
		t.Errorf("%s", &c.out)
	}

	c = watching(t, &watched{last: v1.Completed})
	c.onWait = func() { c.now = c.now.Add(terminal.Pace) }
	c.want(t, "batch watch B", 0, "")
	if strings.Count(c.out.String(), "\n") != 4 {
		t.Errorf("%s", &c.out)
	}
}

// TestWatchOnATerminal: one line is written again and again, and fits; it says what is
// left at the rate that was seen, and the last one stays.
func TestWatchOnATerminal(t *testing.T) {
	for _, width := range []int{60, 100} {
		c := watching(t, &watched{last: v1.Completed})
		c.width = width
		c.onWait = func() { c.now = c.now.Add(10*time.Second - c.waits[len(c.waits)-1]) } // 1,000 jobs a second
		c.want(t, "batch watch B", 0, "")
		if c.out.String() != "100 %  30000 of 30000 jobs done: 30000 completed\n" || c.seen() != c.out.String() {
			t.Errorf("%q", c.seen())
		}

		shown := strings.Split(c.err.String(), "\r\x1b[K")
		for _, line := range shown {
			if len([]rune(line)) >= width || strings.Contains(line, "\n") {
				t.Errorf("it does not fit: %q", line)
			}
		}
		const third = " 33 %  10000 of 30000 jobs done: 20000 processing, 10000 completed, 20s left"
		if len(shown) != 5 || shown[2][:40] != third[:40] || width == 100 && shown[2] != third {
			t.Errorf("%q", shown)
		}
	}
}

// TestWatchFails: a batch that fails is an error that says what to run next; an API that
// does not answer is looked at again for a while.
func TestWatchFails(t *testing.T) {
	c := watching(t, &watched{last: v1.Failed})
	c.want(t, "batch watch B", fault.Edges[fault.Conflict].Exit, "archivist batch report B shows why")

	c = watching(t, &watched{last: v1.Completed, failing: mostMissed})
	c.want(t, "batch watch B", 0, "100 %")

	c = watching(t, &watched{last: v1.Completed, failing: 1000})
	c.want(t, "batch watch B", fault.Edges[fault.Unavailable].Exit, "")
	if len(c.waits) != mostMissed {
		t.Errorf("%d looks", len(c.waits))
	}
}

// TestWatchJSON: each line is a batch that changed, with the fields that were named.
func TestWatchJSON(t *testing.T) {
	c := watching(t, &watched{last: v1.Completed})
	if code := c.run("batch watch B --json counts,note"); code != 0 {
		t.Fatal(code)
	}
	var done []string
	for line := range strings.Lines(c.out.String()) {
		var b v1.Batch
		if err := json.Unmarshal([]byte(line), &b); err != nil || b.ID != "" ||
			!strings.Contains(line, `"note":""`) {
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
	c := watching(t, &watched{last: v1.Completed})
	ctx, cancel := context.WithCancel(t.Context())
	c.ctx, c.onWait = ctx, cancel
	if code := c.run("batch watch B"); code != exitInterrupted || c.err.Len() > 0 {
		t.Errorf("%d %s", code, &c.err)
	}
}

// TestProcessIsInterrupted: ^C ends the process with what shells expect of it.
func TestProcessIsInterrupted(t *testing.T) {
	asked := make(chan bool, 100)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(v1.Batch{ID: "B", State: v1.Processing})
		asked <- true
	}))
	defer srv.Close()

	var said bytes.Buffer
	cmd := exec.CommandContext(t.Context(), build(t), "batch", "watch", "B", "--api", srv.URL)
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-asked
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	err := cmd.Wait()
	if cmd.ProcessState.ExitCode() != exitInterrupted || said.Len() > 0 {
		t.Errorf("%v: %s", err, &said)
	}
}

// TestWatchJob: a job says where it is on its path, and what is wrong.
func TestWatchJob(t *testing.T) {
	jobs := []v1.Job{{State: v1.Pending}, {State: v1.Downloading, Progress: v1.Progress{Files: 2, Bytes: 2048}},
		{State: v1.Failed, Message: "404 Not Found"}}
	looks := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		j := jobs[looks]
		looks++
		j.ID = "B-00001"
		_ = json.NewEncoder(w).Encode(j)
	}))
	defer srv.Close()
	c := with(t, srv.URL)
	const want = "Pending (1 of 9)\nDownloading (4 of 9), 2 files, 2.0 KiB\nFailed, 404 Not Found\n"
	if code := c.run("job watch B-00001"); code != 4 || c.out.String() != want ||
		!strings.Contains(c.err.String(), "archivist job requeue B-00001") {
		t.Errorf("%d %s%s", code, &c.out, &c.err)
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
