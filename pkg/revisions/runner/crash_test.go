package runner

import (
	"archive/tar"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/bucket/buckettest"
)

// Variables of the process that dies.
const (
	envURL  = "RUNNER_TEST_URL"
	envDir  = "RUNNER_TEST_DIR"
	envMark = "RUNNER_TEST_MARK"
)

// lasting is how long the Job of a process that dies may take: it ends only what hangs.
const lasting = time.Minute

// marks is a Job that says how often it has run, and what it makes each time.
func marks(file string) Job {
	job := script("bash", `echo a; sleep .1; echo x >$ARCHIVIST_OUTPUTS/x; echo b; echo ran >>`+file)
	job.Checkout = job.Prefix + "checkout"
	job.Task.Timeout = lasting
	job.Deadline = time.Now().Add(lasting)
	return job
}

// TestRunnerThatDies is the process that dies, in TestCrash.
func TestRunnerThatDies(t *testing.T) {
	url := os.Getenv(envURL)
	if url == "" {
		t.Skip("a process of TestCrash") // which starts this test with the variables set
	}
	r := &Runner{Bucket: bucket.Bucket{Client: buckettest.Client(url), Name: "work", Limits: bucket.DefaultLimits},
		Name: "work", Dir: os.Getenv(envDir), Now: time.Now, NewID: func() string { return "dies" }, pace: quick,
		Log: slog.Default()}
	result, err := r.Run(context.Background(), marks(os.Getenv(envMark)))
	if err != nil || result.End != Succeeded {
		t.Fatalf("%+v, %v", result, err)
	}
}

// TestCrash kills the process of a runner at each of its requests, before it has an effect and after. The next
// call, in the same sandbox, has the true result: the task has run once, or it is said that nobody knows.
func TestCrash(t *testing.T) {
	t.Parallel() // its processes wait
	ends := map[string]int{}
	for at := 0; ; at++ {
		died := false
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprint(at, after), func(t *testing.T) {
				w := newWorld(t)
				died = w.dies(at, after)
				job := marks(filepath.Join(w.Dir, "..", "ran"))
				w.Now = func() time.Time { return time.Now().Add(lasting + Saving + quick.words + skew) }
				job.Deadline = time.Time{}
				r := w.run(job)
				data, _ := os.ReadFile(filepath.Join(w.Dir, "..", "ran"))
				ran := strings.Count(string(data), "ran")
				switch {
				case r.End == Succeeded && ran == 1 && len(r.Outputs) == 1 && w.output("stdout") == "a\nb\n":
				case r.End == Broken && r.Reason == "the runner died while it ran" && ran <= 1 && died:
				default:
					t.Errorf("%+v after %d runs, which said %q", r, ran, w.output(""))
				}
				ends[r.End]++
				if again := w.run(job); again.End != r.End || !again.Ended.Equal(r.Ended) {
					t.Errorf("%+v, and then %+v", r, again)
				}
			})
		}
		if !died {
			if at < 8 {
				t.Errorf("only %d crashes were tried", at)
			}
			break
		}
	}
	if ends[Succeeded] < 5 || ends[Broken] < 5 {
		t.Errorf("the runs ended %v", ends)
	}
}

// dies runs a Job in a process that is killed at a request. It reports whether there was such a request.
func (w *world) dies(at int, after bool) (died bool) {
	w.Helper()
	w.put("checkout", pack(w.T, tar.Header{Name: "a", Typeflag: tar.TypeReg}))
	cmd := exec.Command(os.Args[0], "-test.run=^TestRunnerThatDies$")
	cmd.Env = append(os.Environ(), envURL+"="+*w.work.Client.Options().BaseEndpoint, envDir+"="+w.Dir,
		envMark+"="+filepath.Join(w.Dir, "..", "ran"))
	n, one := 0, sync.Mutex{}
	w.S3.Before = func(string, string) int {
		one.Lock()
		defer one.Unlock()
		n++
		if died || n-1 != at {
			return 0
		}
		died = true
		if after {
			// The answer reaches the process first, or not: both are to be right.
			go func() { time.Sleep(5 * time.Millisecond); _ = cmd.Process.Kill() }()
			return 0
		}
		_ = cmd.Process.Kill()
		return 503
	}
	out, err := cmd.CombinedOutput()
	w.S3.Before = nil
	if died != (err != nil) && !after {
		w.Fatalf("killed %v: %v\n%s", died, err, out)
	}
	return died
}
