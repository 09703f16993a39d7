package stage_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/collection"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/stage"
	"archivist/pkg/ingest/workspace"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/bucket/buckettest"
	"archivist/pkg/kernel/fetch"
	"archivist/pkg/kernel/table/tabletest"
)

// alone is the stage Download with only what its fields name: no rows, no storage root.
func alone(t *testing.T) stage.Download {
	server := httptest.NewServer(buckettest.New(t.TempDir()))
	t.Cleanup(server.Close)
	allow := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	return stage.Download{Now: time.Now, Parallel: 4,
		Sources: stage.Sources{Fetch: fetch.New(fetch.Guard{Allow: allow}, func() float64 { return 0 }),
			Collections: collection.Store{Table: tabletest.Open(t)}},
		Work: workspace.Store{Bucket: bucket.Bucket{Client: buckettest.Client(server.URL), Name: "work",
			Limits: bucket.DefaultLimits}}}
}

// TestDownloadAlone: files are downloaded in tries of any length; each file is asked for
// once, and the ledger has all of them in order.
func TestDownloadAlone(t *testing.T) {
	d, asked := alone(t), make(chan string, 10*workspace.SegmentFiles)
	source := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.Path
		_, _ = w.Write([]byte("content of " + r.URL.Path))
	}))
	t.Cleanup(source.Close)
	var rows []string
	for i := range workspace.SegmentFiles + 10 {
		rows = append(rows, fmt.Sprintf("%s/%d | | | | | file%d |", source.URL, i, i))
	}
	j := &ingest.Job{ID: "B-00001", Files: len(rows), Payload: ingest.Payload{Type: ingest.TypeObjectManifest}}
	list := manifest("mrt-ingest-manifest", fileFields, rows...)
	if err := d.Work.Put(t.Context(), workspace.ManifestKey(j), []byte(list), bucket.Condition{}); err != nil {
		t.Fatal(err)
	}
	most := 0 // requests, until the time of a try is up
	began := time.Now()
	d.Now = func() time.Time {
		if len(asked) >= most {
			return began.Add(time.Hour)
		}
		return began
	}
	d.Parallel = 1
	var res ingest.Result
	tries := 0
	for ; res.Outcome != ingest.StepNext && tries < 20; tries++ {
		most = len(asked) + workspace.SegmentFiles/4
		var err error
		res, err = d.Run(t.Context(), &queue.Claim{Job: j, Until: began.Add(time.Minute)})
		if err != nil || res.Outcome == ingest.StepFail {
			t.Fatal(res, err)
		}
		j.Tries++
	}
	if tries < 3 || len(asked) != len(rows) || j.Bytes < int64(len(rows)*len("content of /0")) {
		t.Errorf("%d tries, %d requests, %d bytes: %+v", tries, len(asked), j.Bytes, res)
	}
	n := 0
	for e, err := range d.Work.Entries(t.Context(), j) {
		if want := fmt.Sprintf("producer/file%d", n); err != nil || e.Path != want {
			t.Errorf("entry %d is %s, %v", n, e.Path, err)
		}
		n++
	}
}

// TestDownloadThatChanged: if two tries download at once and the source changes between
// them, the files do not match the ledger, and the job fails.
func TestDownloadThatChanged(t *testing.T) {
	d := alone(t)
	content := "before"
	source := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(content))
	}))
	t.Cleanup(source.Close)
	run := func() (ingest.Result, error) {
		j := ingest.Job{ID: "B-00001", Files: 1,
			Payload: ingest.Payload{URL: source.URL, Type: ingest.TypeFile, Filename: "a.txt"}}
		return d.Run(t.Context(), &queue.Claim{Job: &j, Until: time.Now().Add(time.Minute)})
	}
	if res, err := run(); err != nil || res.Outcome != ingest.StepNext {
		t.Fatal(res, err)
	}
	if res, err := run(); err != nil || res.Outcome != ingest.StepNext {
		t.Errorf("the same content is %+v, %v", res, err)
	}
	content = "behind"
	res, err := run()
	if err != nil || res.Outcome != ingest.StepFail || !res.Recoverable || !strings.Contains(res.Reason, "changed") {
		t.Errorf("%+v, %v", res, err)
	}
	var none []string
	err = d.Work.List(t.Context(), workspace.Prefix("B-00001"), func(o bucket.Listed) error {
		none = append(none, o.Key)
		return errors.New("left")
	})
	if err != nil {
		t.Errorf("%v is left: %v", none, err)
	}
}
