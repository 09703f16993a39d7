package bench

import (
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"archivist/pkg/api"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest/queue/queuetest"
	"archivist/pkg/ingest/stage"
	"archivist/pkg/ingest/stage/stagetest"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/bucket/buckettest"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/pkg/objects/ocfl"
)

var objects = flag.Int("objects", 100, "how many objects TestReindex brings back")

// TestReindex brings back the rows of a storage root of many objects over the API, as
// the command line does with four requests at once. What it asks of S3 and the table is
// counted; RESULTS.md has what it came to.
func TestReindex(t *testing.T) {
	twin, fake := buckettest.New(t.TempDir()), tabletest.New()
	var s3Calls, rowCalls atomic.Int64
	client := &tabletest.Client{DynamoDBAPI: fake, Do: func(_ string, call func() error) error {
		rowCalls.Add(1)
		return call()
	}}
	m := queuetest.New(tabletest.Table(client), time.Now, 50)
	server := httptest.NewServer(twin)
	defer server.Close()
	s := stagetest.New(m, server.URL)
	fillRoot(t, s, *objects)
	twin.Before = func(string, string) int { s3Calls.Add(1); return 0 }
	handler := &api.API{Open: true, Queue: m.Queue, Inventory: s.Inventory, Collections: s.Collections,
		Root: s.Root, Work: s.Work.Bucket, Identity: s.Identity(), Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	gateway := httptest.NewServer(handler.Handler())
	defer gateway.Close()
	c := &v1.Client{URL: gateway.URL, HTTP: gateway.Client()}

	for _, run := range []string{"no rows", "all rows"} {
		s3Calls.Store(0)
		rowCalls.Store(0)
		began := time.Now()
		sum, requests := reindexAll(t, c)
		took := time.Since(began)
		wantChanged := *objects
		if run == "all rows" {
			wantChanged = 0
		}
		if sum.Objects != *objects || sum.Changed != wantChanged || len(sum.Failed) > 0 {
			t.Fatalf("%s: %d objects, %d changed, %+v", run, sum.Objects, sum.Changed, sum.Failed)
		}
		n := int64(*objects)
		var mem runtime.MemStats
		runtime.ReadMemStats(&mem)
		t.Logf("%s: %d objects in %s, %.0f a second; for each %.1f requests to S3, %.1f to the table; "+
			"%d requests to the API; heap %d MB", run, n, took.Round(time.Millisecond), float64(n)/took.Seconds(),
			float64(s3Calls.Load())/float64(n), float64(rowCalls.Load())/float64(n), requests, mem.HeapInuse>>20)
		if most := 10*n + 64; s3Calls.Load() > most || rowCalls.Load() > 9*n {
			t.Errorf("%s: %d requests to S3 and %d to the table for %d objects", run, s3Calls.Load(),
				rowCalls.Load(), n)
		}
	}
}

// reindexAll reindexes the sixteen parts of the root, four at once.
func reindexAll(t *testing.T, c *v1.Client) (sum v1.Reindexed, requests int) {
	t.Helper()
	var mu sync.Mutex
	var wg sync.WaitGroup
	gate := make(chan struct{}, 4)
	for i := range 16 {
		wg.Go(func() {
			gate <- struct{}{}
			defer func() { <-gate }()
			part := v1.ReindexRequest{Cursor: fmt.Sprintf("%x", i)}
			if i < 15 {
				part.To = fmt.Sprintf("%x", i+1)
			}
			for part.Cursor != "" {
				page, err := c.Reindex(t.Context(), part)
				if err != nil {
					t.Error(err)
					return
				}
				part.Cursor = page.Cursor
				mu.Lock()
				sum.Objects += page.Objects
				sum.Changed += page.Changed
				sum.Failed = append(sum.Failed, page.Failed...)
				requests++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return sum, requests
}

// fillRoot writes objects of one version with one file and one local id.
func fillRoot(t *testing.T, s *stage.Stages, n int) {
	t.Helper()
	if err := s.Root.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for part := range 8 {
		wg.Go(func() {
			for i := part; i < n; i += 8 {
				for key, text := range stored(i) {
					if err := s.Root.Bucket.Put(t.Context(), key, []byte(text), bucket.Condition{}); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
}

// stored is an object as the archive stores it, by key.
func stored(i int) map[string]string {
	id, job := fmt.Sprintf("ark:/99999/fk4%09d", i), fmt.Sprintf("01M7ZBMEYHBB62YP6R%08d-00001", i)
	content := "content of " + id
	listed := fmt.Sprintf(`{"path":"producer/a.txt","size":%d,"digests":{"sha512":%q}}`+"\n", len(content),
		digest(content))
	files := map[string]string{
		"producer/a.txt":                content,
		"system/archivist-files.jsonl":  listed,
		"system/mrt-erc.txt":            fmt.Sprintf("erc:\nwho: Anna\nwhat: title %d\nwhen: 1901\nwhere: %s\n", i, id),
		"system/mrt-membership.txt":     "collection: maps\n",
		"system/mrt-mom.txt":            fmt.Sprintf("primaryIdentifier: %s\nlocalIdentifier: id %d\n", id, i),
		"system/mrt-owner.txt":          "owner: maps\n",
		"system/premis.xml":             "<premis/>" + id,
		"system/mrt-object-map.ttl":     "# " + id,
		"system/mrt-submission-log.txt": "job: " + job + "\n",
	}
	manifest, state, out := map[string][]string{}, map[string][]string{}, map[string]string{}
	prefix := ocfl.Prefix(id)
	for path, text := range files {
		to := "v1/content/" + job + ".1/" + path
		manifest[digest(text)], state[digest(text)] = []string{to}, []string{path}
		out[prefix+to] = text
	}
	v1 := map[string]any{"created": "2026-11-22T00:00:00Z", "message": "ingest of job " + job, "state": state}
	inventory, _ := json.Marshal(map[string]any{"id": id, "type": "https://ocfl.io/1.1/spec/#inventory",
		"digestAlgorithm": "sha512", "head": "v1", "manifest": manifest, "versions": map[string]any{"v1": v1}})
	for _, folder := range []string{"", "v1/"} {
		out[prefix+folder+"inventory.json"] = string(inventory)
		out[prefix+folder+"inventory.json.sha512"] = digest(string(inventory)) + " inventory.json\n"
	}
	out[prefix+"0=ocfl_object_1.1"] = "ocfl_object_1.1\n"
	return out
}

func digest(text string) string {
	sum := sha512.Sum512([]byte(text))
	return hex.EncodeToString(sum[:])
}
