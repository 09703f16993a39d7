package bench

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"archivist/pkg/bucket/buckettest"
	"archivist/pkg/checkm"
	"archivist/pkg/ingest"
	"archivist/pkg/queue"
	"archivist/pkg/queue/queuetest"
	"archivist/pkg/stage/stagetest"
)

// storage are requests to S3 by their price: writes (PUT, COPY, POST and LIST) and
// reads (GET, HEAD and all others); DELETE requests are free.
type storage struct{ writes, reads, free int }

func (n storage) sum() int { return n.writes + n.reads }

func (n *storage) add(op string) {
	switch op {
	case "GET object", "HEAD object":
		n.reads++
	case "DELETE object", "DeleteObjects", "Abort":
		n.free++
	default:
		n.writes++
	}
}

// storageBench counts the requests of the stages on twins.
type storageBench struct {
	*testing.T
	m      *queuetest.Machine
	source *httptest.Server
	stage  string
	counts map[string]map[string]int // by stage, then by operation and bucket
}

// newStorageBench serves /NAME.txt, and /N/manifest.checkm that lists N files.
func newStorageBench(t *testing.T) *storageBench {
	b := &storageBench{T: t}
	twin := buckettest.New(t.TempDir())
	twin.Before = func(op, name string) int {
		bucket, _, _ := strings.Cut(name, "/")
		if b.counts[b.stage] == nil {
			b.counts[b.stage] = map[string]int{}
		}
		b.counts[b.stage][op+" "+bucket]++
		return 0
	}
	server := httptest.NewServer(twin)
	mux := http.NewServeMux()
	mux.HandleFunc("/{n}/manifest.checkm", func(w http.ResponseWriter, r *http.Request) {
		var n int
		_, _ = fmt.Sscan(r.PathValue("n"), &n)
		m := checkm.NewWriter(w, "http://uc3.cdlib.org/registry/ingest/manifest/mrt-ingest-manifest")
		for i := range n {
			_ = m.Row(checkm.Row{URL: fmt.Sprintf("http://%s/%d.txt", r.Host, i), Size: -1, Name: fmt.Sprintf("%d.txt", i)})
		}
		_ = m.Close()
	})
	mux.HandleFunc("/{name}", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "content of ", r.PathValue("name")) })
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
func (b *storageBench) ingest(what, localID, path, kind string, version int, noChange bool) map[string]storage {
	b.Helper()
	b.counts, b.stage = map[string]map[string]int{}, "submit"
	in := ingest.Batch{Collection: "bench", Mode: "add", LocalIDs: []string{localID}, Payload: ingest.Payload{URL: b.source.URL + path, Type: kind, Filename: "a.txt"}}
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
	by := map[string]storage{}
	for _, st := range slices.Sorted(maps.Keys(b.counts)) {
		var n storage
		for _, op := range slices.Sorted(maps.Keys(b.counts[st])) {
			b.Logf("%-24s %-9s %-24s %d", what, st, op, b.counts[st][op])
			for range b.counts[st][op] {
				n.add(op[:strings.LastIndexByte(op, ' ')])
			}
		}
		by[st] = n
	}
	return by
}

// TestStorageRequests: a job of one file takes as many requests to S3 as
// bench/RESULTS.md says. A rise needs a reason there.
func TestStorageRequests(t *testing.T) {
	b := newStorageBench(t)
	for _, c := range []struct {
		what, id, path, kind string
		version              int
		noChange             bool
		most                 storage // of the job; the report is its batch's
	}{
		{"the first object", "zero", "/zero.txt", ingest.TypeFile, 1, false, storage{}},
		{"file", "one", "/one.txt", ingest.TypeFile, 1, false, storage{}},
		{"manifest of one file", "two", "/1/manifest.checkm", ingest.TypeObjectManifest, 1, false, storage{}},
		{"second version", "one", "/two.txt", ingest.TypeFile, 2, false, storage{}},
		{"no change", "one", "/two.txt", ingest.TypeFile, 2, true, storage{}},
		{"manifest of 100 files", "many", "/100/manifest.checkm", ingest.TypeObjectManifest, 1, false, storage{}},
	} {
		var all storage
		line := ""
		for st, n := range b.ingest(c.what, c.id, c.path, c.kind, c.version, c.noChange) {
			line += fmt.Sprintf(" %s %d+%d", st, n.writes, n.reads)
			if st != "report" && st != "unpack" {
				all.writes, all.reads, all.free = all.writes+n.writes, all.reads+n.reads, all.free+n.free
			}
		}
		t.Logf("%-24s %d = %d PUT, COPY, LIST + %d GET, HEAD (%d free):%s", c.what, all.sum(), all.writes, all.reads, all.free, line)
	}
}
