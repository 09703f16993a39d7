package bench

import (
	"archive/zip"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"testing"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/queue/queuetest"
	"archivist/pkg/ingest/stage/stagetest"
	"archivist/pkg/kernel/table/tabletest"
)

var (
	containerFiles = flag.Int("container-files", 3000, "files of the container")
	containerSize  = flag.Int("container-size", 4000, "bytes of each of its files")
)

// TestContainer downloads and unpacks a zip file with a limit of memory, and times what other programs take: unzip,
// and sha256sum of what it has unpacked.
func TestContainer(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100)) // as in the function, whatever the tests are played with
	dir := t.TempDir()
	path := filepath.Join(dir, "deposit.zip")
	writeZip(t, path)
	source := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.ServeFile(w, r, path)
	}))
	t.Cleanup(source.Close)

	url, ctx := startTwins(t), t.Context()
	m := queuetest.New(tabletest.Open(t), time.Now, 50)
	m.Queue.Rules.Timing.Short *= 10
	m.Queue.Rules.Timing.Long *= 10
	s, used := stagetest.New(m, url), map[string]*usage{}
	m.Step = func(st ingest.Stage) queue.Step {
		if used[st.Name] == nil {
			used[st.Name] = &usage{}
		}
		return used[st.Name].measured(s.Steps()[st.Name])
	}
	b, err := m.Queue.Submit(ctx, ingest.Batch{Collection: "bench", Mode: "add", Payload: ingest.Payload{
		URL: source.URL + "/deposit.zip", Type: ingest.TypeContainer, Filename: "deposit.zip"}}, "", nil, "me")
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Run(ctx, 10); err != nil {
		t.Fatal(err)
	}
	j, err := m.Queue.Job(ctx, ingest.JobID(b.ID, 1))
	if err != nil || j.State != ingest.Completed || j.Files != *containerFiles {
		t.Fatalf("%s with %d files: %s, %v", j.State, j.Files, j.Message, err)
	}
	u := used["download"]
	t.Logf("download and unpack: %.1f s, %.0f MB/s of files, %.1f MiB at most", u.time.Seconds(),
		float64(j.Bytes)/1e6/u.time.Seconds(), float64(u.heap.Load())/(1<<20))
	if u.heap.Load() > mostMemory {
		t.Errorf("more than %d MiB", mostMemory>>20)
	}

	for _, command := range []string{"unzip -qq deposit.zip -d out", "find out -type f -exec sha256sum {} + > sums"} {
		cmd := exec.Command("sh", "-c", command)
		cmd.Dir = dir
		began := time.Now()
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Logf("%s: %v: %s", command, err, out) // a program that is not installed
			break
		}
		t.Logf("%s: %.1f s", command, time.Since(began).Seconds())
	}
}

// writeZip writes a zip file whose files can be packed to about half their size.
func writeZip(t *testing.T, path string) {
	t.Helper()
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w, rnd, data := zip.NewWriter(out), rand.NewChaCha8([32]byte{28}), make([]byte, *containerSize)
	for i := range *containerFiles {
		_, _ = rnd.Read(data[:len(data)/2])
		to, err := w.Create(fmt.Sprintf("a folder of usual length %03d/file-%06d.bin", i%300, i))
		if err == nil {
			_, err = to.Write(data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}
