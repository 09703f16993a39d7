package bench

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"archivist/pkg/formats/checkm"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/queue/queuetest"
	"archivist/pkg/ingest/stage/stagetest"
	"archivist/pkg/kernel/bucket/buckettest"
)

// storage are requests to S3 by their price ("Amazon S3 pricing", Requests and data
// retrievals): writes (PUT, COPY, POST and LIST; DeleteObjects is a POST) and reads (GET,
// HEAD and all others). DELETE requests are free.
type storage struct{ writes, reads int }

func (n storage) sum() int { return n.writes + n.reads }

func (n *storage) add(op string) {
	switch op {
	case "GET object", "HEAD object":
		n.reads++
	case "DELETE object", "Abort":
	default:
		n.writes++
	}
}

// storageBench counts the requests of the stages on twins.
type storageBench struct {
	*testing.T
	m      *queuetest.Machine
	source *httptest.Server

	mu     sync.Mutex
	stage  string
	counts map[string]*storage // by stage
}

// newStorageBench serves /NAME.txt, and /N/manifest.checkm that lists N files.
func newStorageBench(t *testing.T) *storageBench {
	b := &storageBench{T: t}
	twin := buckettest.New(t.TempDir())
	twin.Before = func(op, _ string) int {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.counts[b.stage] == nil {
			b.counts[b.stage] = &storage{}
		}
		b.counts[b.stage].add(op)
		return 0
	}
	server := httptest.NewServer(twin)
	mux := http.NewServeMux()
	mux.HandleFunc("/{n}/manifest.checkm", func(w http.ResponseWriter, r *http.Request) {
		var n int
		_, _ = fmt.Sscan(r.PathValue("n"), &n)
		m := checkm.NewWriter(w, "http://uc3.cdlib.org/registry/ingest/manifest/mrt-ingest-manifest")
		for i := range n {
			_ = m.Row(checkm.Row{URL: fmt.Sprintf("http://%s/%d.txt", r.Host, i), Size: -1,
				Name: fmt.Sprintf("%d.txt", i)})
		}
		_ = m.Close()
	})
	mux.HandleFunc("/{name}", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "content of ", r.PathValue("name"))
	})
	b.source = httptest.NewServer(mux)
	t.Cleanup(server.Close)
	t.Cleanup(b.source.Close)
	b.m, _ = newMachine(50)
	s := stagetest.New(b.m, server.URL)
	steps := s.Steps()
	b.m.Step = func(st ingest.Stage) queue.Step {
		b.stage = st.Name
		return steps[st.Name]
	}
	return b
}

// ingest takes one submission through every stage and returns its requests by stage.
func (b *storageBench) ingest(what, localID, path, kind string, version int, noChange bool) map[string]*storage {
	b.Helper()
	b.counts, b.stage = map[string]*storage{}, "submit"
	in := ingest.Batch{Collection: "bench", Mode: "add", LocalIDs: []string{localID},
		Payload: ingest.Payload{URL: b.source.URL + path, Type: kind, Filename: "a.txt"}}
	batch, err := b.m.Queue.Submit(b.Context(), in, "", nil, "me")
	if err == nil {
		err = b.m.Run(b.Context(), 8)
	}
	if err != nil {
		b.Fatal(err)
	}
	j, err := b.m.Queue.Job(b.Context(), ingest.JobID(batch.ID, 1))
	if err != nil || j.State != ingest.Completed || j.ObjectVersion != version || j.NoChange != noChange {
		b.Fatalf("%s: %s, v%d: %s, %v", what, j.State, j.ObjectVersion, j.Message, err)
	}
	return b.counts
}

// Requests of a job of one file, and of the report of its batch, which reads two
// objects for each job of few files.
const (
	fileWrites, fileReads     = 21, 5
	reportWrites, reportReads = 1, 2
)

// TestStorageRequests: a job of one file takes as many requests to S3 as
// bench/RESULTS.md says. A rise needs a reason there.
func TestStorageRequests(t *testing.T) {
	b := newStorageBench(t)
	for _, c := range []struct {
		what, id, path, kind string
		version              int
		noChange             bool
		writes, reads        int // at most; the report is its batch's
	}{
		{"first of the process", "zero", "/zero.txt", ingest.TypeFile, 1, false, 24, 6},
		{"one file", "one", "/one.txt", ingest.TypeFile, 1, false, fileWrites, fileReads},
		{"manifest of one file", "two", "/1/manifest.checkm", ingest.TypeObjectManifest, 1, false, 23, 7},
		{"second version", "one", "/two.txt", ingest.TypeFile, 2, false, 15, 19},
		{"no change", "one", "/two.txt", ingest.TypeFile, 2, true, 6, 27},
		{"manifest of 100 files", "many", "/100/manifest.checkm", ingest.TypeObjectManifest, 1, false, 223, 7},
	} {
		by := b.ingest(c.what, c.id, c.path, c.kind, c.version, c.noChange)
		var all storage
		line := ""
		for _, st := range slices.Sorted(maps.Keys(by)) {
			n := by[st]
			line += fmt.Sprintf("  %s %d+%d", st, n.writes, n.reads)
			if st == "report" && (n.writes > reportWrites || n.reads > reportReads) {
				t.Errorf("%s: the report takes %d and %d requests", c.what, n.writes, n.reads)
			}
			if s, _ := ingest.StageNamed(st); s.Job != "" {
				all.writes, all.reads = all.writes+n.writes, all.reads+n.reads
			}
		}
		t.Logf("%-22s %3d = %3d PUT, COPY, POST, LIST + %2d GET, HEAD:%s", c.what, all.sum(), all.writes,
			all.reads, line)
		if all.writes > c.writes || all.reads > c.reads {
			t.Errorf("%s: %d and %d requests, at most %d and %d are said in bench/RESULTS.md",
				c.what, all.writes, all.reads, c.writes, c.reads)
		}
	}
}
