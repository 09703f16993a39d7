package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"archivist/cmd/archivist/command"
	"archivist/cmd/archivist/command/commandtest"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/terminal"
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

func watching(t *testing.T, s *watched) *commandtest.Console {
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
	c.Want(t, "batch show B C --watch", 0, "")
	looks := []int{len(s.requests), s.requests["/v1/batches/B"], s.requests["/v1/batches/C"], len(c.Waits)}
	if !slices.Equal(looks, []int{2, 4, 4, 3}) {
		t.Errorf("%v, %v", s.requests, c.Waits)
	}
	const want = "  0 %  0 of 60000 jobs done: 60000 processing\n100 %  60000 of 60000 jobs done: 60000 completed\n"
	if c.Out.String() != want {
		t.Errorf("%s", &c.Out)
	}

	c = watching(t, &watched{last: v1.Completed})
	c.OnWait = func() { c.Now = c.Now.Add(terminal.Pace) }
	c.Want(t, "batch show B --watch", 0, "")
	if strings.Count(c.Out.String(), "\n") != 4 {
		t.Errorf("%s", &c.Out)
	}
}

// TestWatchOnATerminal: one line is written again and again, and fits; it says what is
// left at the rate that was seen, and the last one stays.
func TestWatchOnATerminal(t *testing.T) {
	for _, width := range []int{60, 100} {
		c := watching(t, &watched{last: v1.Completed})
		c.Width = width
		c.OnWait = func() { c.Now = c.Now.Add(10*time.Second - c.Waits[len(c.Waits)-1]) } // 1,000 jobs a second
		c.Want(t, "batch show B --watch", 0, "")
		if c.Out.String() != "100 %  30000 of 30000 jobs done: 30000 completed\n" || c.Seen() != c.Out.String() {
			t.Errorf("%q", c.Seen())
		}

		shown := strings.Split(c.Err.String(), "\r\x1b[K")
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
	c.Want(t, "batch show B --watch", fault.Edges[fault.Conflict].Exit, "archivist batch report B shows why")

	c = watching(t, &watched{last: v1.Completed, failing: command.MostMissed})
	c.Want(t, "batch show B --watch", 0, "100 %")

	c = watching(t, &watched{last: v1.Completed, failing: 1000})
	c.Want(t, "batch show B --watch", fault.Edges[fault.Unavailable].Exit, "")
	if len(c.Waits) != command.MostMissed {
		t.Errorf("%d looks", len(c.Waits))
	}
}

// TestWatchJSON: each line is a batch that changed, with the fields that were named.
func TestWatchJSON(t *testing.T) {
	c := watching(t, &watched{last: v1.Completed})
	if code := c.Run("batch show B --watch --json counts,note"); code != 0 {
		t.Fatal(code)
	}
	var done []string
	for line := range strings.Lines(c.Out.String()) {
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
	c.Ctx, c.OnWait = ctx, cancel
	if code := c.Run("batch show B --watch"); code != command.ExitInterrupted || c.Err.Len() > 0 {
		t.Errorf("%d %s", code, &c.Err)
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
	if code := c.Run("job show B-00001 --watch"); code != 4 || c.Out.String() != want ||
		!strings.Contains(c.Err.String(), "archivist job requeue B-00001") {
		t.Errorf("%d %s%s", code, &c.Out, &c.Err)
	}
}
