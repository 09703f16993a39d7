package bench

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"archivist/pkg/api"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/formats/checkm"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/queue/queuetest"
	"archivist/pkg/ingest/stage"
	"archivist/pkg/ingest/stage/stagetest"
	"archivist/pkg/kernel/bucket/buckettest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/pkg/objects/aip"
)

var largeFiles = flag.Int("files", 1200, "files of the large object")

// twinVariable makes this test program the twins' process: their memory is not
// to be measured.
const twinVariable = "ARCHIVIST_BENCH_TWINS"

func TestMain(m *testing.M) {
	if dir := os.Getenv(twinVariable); dir != "" {
		serveTwins(dir)
		return
	}
	os.Exit(m.Run())
}

// serveTwins serves an S3 and a depositor's server until its input ends. It says
// where as its first line.
func serveTwins(dir string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/source/{version}/manifest.checkm", func(w http.ResponseWriter, r *http.Request) {
		version, _ := strconv.Atoi(r.PathValue("version"))
		files, _ := strconv.Atoi(r.URL.Query().Get("files"))
		m := checkm.NewWriter(w, "http://uc3.cdlib.org/registry/ingest/manifest/mrt-ingest-manifest")
		for i := range files {
			text := content(version, i)
			sum := sha256.Sum256([]byte(text))
			_ = m.Row(checkm.Row{URL: fmt.Sprintf("http://%s/source/%d/files/%d", r.Host, version, i),
				Algorithm: "sha256", Digest: hex.EncodeToString(sum[:]), Size: int64(len(text)),
				Name: fileName(i)})
		}
		_ = m.Close()
	})
	mux.HandleFunc("/source/{version}/files/{n}", func(w http.ResponseWriter, r *http.Request) {
		version, _ := strconv.Atoi(r.PathValue("version"))
		n, _ := strconv.Atoi(r.PathValue("n"))
		text := content(version, n)
		w.Header().Set("Content-Length", strconv.Itoa(len(text)))
		_, _ = w.Write([]byte(text))
	})
	mux.Handle("/", buckettest.New(dir))
	fmt.Println("http://" + l.Addr().String())
	go func() { _ = http.Serve(l, mux) }()
	_, _ = os.Stdin.Read(make([]byte, 1))
}

// content of a file: each version changes one file of a hundred.
func content(version, n int) string {
	for ; version > 1 && n%100 != version; version-- {
	}
	return fmt.Sprintf("file %d as of version %d\n", n, version)
}

func startTwins(t *testing.T) string {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), twinVariable+"="+t.TempDir())
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = c.Wait()
	})
	line := make([]byte, 100)
	n, err := out.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(line[:n]))
}

// usage is what a stage took of one version.
type usage struct {
	time time.Duration
	runs int
	heap atomic.Uint64 // most bytes in use, seen every few milliseconds
}

// mostMemory is what a stage may take, whatever the number of files, as docs/features.md says.
const mostMemory = 128 << 20

// measured runs a step and watches its heap.
func (u *usage) measured(s queue.Step) queue.Step {
	return func(ctx context.Context, h *queue.Claim) (ingest.Result, error) {
		runtime.GC()
		started, done, watched := time.Now(), make(chan struct{}), make(chan struct{})
		go func() {
			defer close(watched)
			var m runtime.MemStats
			for tick := time.NewTicker(5 * time.Millisecond); ; {
				select {
				case <-done:
					return
				case <-tick.C:
					runtime.ReadMemStats(&m)
					u.heap.Store(max(u.heap.Load(), m.HeapInuse+m.StackInuse))
				}
			}
		}()
		defer func() {
			u.time += time.Since(started)
			u.runs++
			close(done)
			<-watched
		}()
		return s(ctx, h)
	}
}

func fileName(i int) string {
	return fmt.Sprintf("a folder/of usual length %03d/and a file %06d.txt", (i*7919)%997, i)
}

// readBack reads the second version through the API: its list in pages, and some
// files.
func readBack(t *testing.T, s *stage.Stages, ark string) {
	t.Helper()
	a := &api.API{Open: true, Queue: s.Queue, Inventory: s.Inventory, Collections: s.Collections, Root: s.Root,
		Work:     s.Work.Bucket,
		Identity: s.Identity(), Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	server := httptest.NewServer(a.Handler())
	defer server.Close()
	client := &v1.Client{URL: server.URL, HTTP: http.DefaultClient}
	started := time.Now()
	files, err := client.Files(t.Context(), ark, 2)
	if err != nil || len(files) != *largeFiles+10 {
		t.Fatalf("%d files are listed, %v", len(files), err)
	}
	seen := map[string]bool{}
	for _, f := range files {
		seen[f.Path] = len(f.Digests["sha256"]) == 64 && len(f.Digests["sha512"]) == 128
	}
	if !seen["system/premis.xml"] || !seen[aip.ListName] {
		t.Error("the system files are not listed with their digests")
	}
	listed := time.Since(started)
	const some = 20
	for range some {
		n := rand.IntN(*largeFiles)
		body, err := client.Content(t.Context(), ark, 2, "producer/"+fileName(n))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(body)
		body.Close()
		if err != nil || string(text) != content(2, n) || !seen["producer/"+fileName(n)] {
			t.Errorf("file %d is %q, expected %q, %v", n, text, content(2, n), err)
		}
	}
	if _, err := client.Content(t.Context(), ark, 2, "producer/nothing"); !fault.Is(err, fault.NotFound) {
		t.Errorf("a file that is not there: %v", err)
	}
	t.Logf("listed in %.1f s; a file's content is found in %.0f ms", listed.Seconds(),
		float64((time.Since(started)-listed).Milliseconds())/(some+1))
}

// stepping is a clock that goes on by a step with each reading: how often long stages are continued does not depend on
// the machine.
func stepping(begin time.Time, step time.Duration) func() time.Time {
	var readings atomic.Int64
	return func() time.Time { return begin.Add(time.Duration(readings.Add(1)) * step) }
}

// TestLargeObject takes three versions of an object of very many files through
// every stage. With few files it proves that segments and continuing work; `make
// bench` gives it 360,000 and its table goes to RESULTS.md.
func TestLargeObject(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100)) // as in the function, whatever the tests are played with
	runtime.GC()                                      // of what other tests have left
	url, ctx := startTwins(t), t.Context()
	m := queuetest.New(tabletest.Open(t), time.Now, 50)
	timing := &m.Queue.Rules.Timing
	timing.Short *= 10 // the subject is memory, and that long stages are continued, not how fast this machine is
	if *largeFiles < 10_000 {
		m = queuetest.New(tabletest.Open(t), stepping(time.Now(), 50*time.Millisecond), 50)
		timing = &m.Queue.Rules.Timing
		timing.Short, timing.Long = time.Hour, time.Hour
		timing.Pause = timing.Long - 10*time.Second // 200 readings of the clock
	}
	s := stagetest.New(m, url)
	ark, continued := "", 0
	for version := 1; version <= 3; version++ {
		used := map[string]*usage{}
		m.Step = func(st ingest.Stage) queue.Step {
			if used[st.Name] == nil {
				used[st.Name] = &usage{}
			}
			return used[st.Name].measured(s.Steps()[st.Name])
		}
		b, err := m.Queue.Submit(ctx, ingest.Batch{Collection: "bench", Mode: "add", LocalIDs: []string{"large"},
			Payload: ingest.Payload{URL: fmt.Sprintf("%s/source/%d/manifest.checkm?files=%d", url, version,
				*largeFiles), Type: ingest.TypeObjectManifest}}, "", nil, "me")
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Run(ctx, 10); err != nil {
			t.Fatal(err)
		}
		j, err := m.Queue.Job(ctx, ingest.JobID(b.ID, 1))
		if err != nil || j.State != ingest.Completed || j.ObjectVersion != version || j.Files != *largeFiles {
			t.Fatalf("version %d: %s, v%d of %d files: %s, %v", version, j.State, j.ObjectVersion, j.Files,
				j.Message, err)
		}
		ark = j.Primary
		for _, st := range ingest.Stages {
			if u := used[st.Name]; u != nil && st.Job != "" {
				t.Logf("v%d %-9s %6.1f s in %d runs  %5.1f us a file  %5.1f MiB at most", version, st.Name,
					u.time.Seconds(), u.runs, float64(u.time.Microseconds())/float64(*largeFiles),
					float64(u.heap.Load())/(1<<20))
				continued += u.runs - 1
				if u.heap.Load() > mostMemory {
					t.Errorf("v%d: %s takes more than %d MiB", version, st.Name, mostMemory>>20)
				}
			}
		}
	}
	if *largeFiles < 10_000 && continued < 3 {
		t.Errorf("the stages were continued %d times only", continued)
	}
	readBack(t, s, ark)
	o, err := s.Inventory.Object(ctx, ark)
	if err != nil || o.HeadOf != 3 {
		t.Errorf("the object is recorded as %+v, %v", o, err)
	}
	rows, _, err := s.Inventory.Versions(ctx, ark, "")
	if err != nil || len(rows) != 3 || rows[2].Files != *largeFiles {
		t.Errorf("its versions are %+v, %v", rows, err)
	}
}
