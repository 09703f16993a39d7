// Package restore tests what happens when the table is restored to an earlier moment, but
// not the storage root, the work files and the executions, or when an earlier release left
// it: all work ends, and nothing that is stored is lost or stored twice.
package restore

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue/queuetest"
	"archivist/pkg/ingest/stage"
	"archivist/pkg/ingest/stage/stagetest"
	"archivist/pkg/kernel/bucket/buckettest"
	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/pkg/objects/ocfl"
	"archivist/test/adversary/seeds"
)

// world is one archive on twins: one storage, and a table that is restored.
type world struct {
	testing.TB
	rng  *rand.Rand
	now  time.Time
	twin *buckettest.Twin
	gone map[string]bool // paths that the source no longer has
	made int             // submissions
	// texts are the source's content at some paths, by their ends.
	texts map[string]string

	rows  *tabletest.Fake
	image map[table.Key]tabletest.Item // the rows as they are
	saved []tabletest.Item             // as they were at the moment that is restored
	until int                          // writes to that moment; negative: it is not set
	m     *queuetest.Machine
	s     *stage.Stages
}

func newWorld(t testing.TB, seed uint64) *world {
	w := &world{TB: t, rng: rand.New(rand.NewPCG(seed, 9)), now: time.UnixMilli(1795300000000),
		twin: buckettest.New(t.TempDir()), gone: map[string]bool{}, until: -1}
	w.deploy(nil)
	return w
}

// deploy starts the system on a table with some rows.
func (w *world) deploy(rows []tabletest.Item) {
	w.rows, w.image = tabletest.New(), map[table.Key]tabletest.Item{}
	for _, item := range rows {
		if _, err := w.rows.PutItem(w.Context(), &dynamodb.PutItemInput{TableName: aws.String("t"),
			Item: item}); err != nil {
			w.Fatal(err)
		}
		w.image[keyOf(item)] = item
	}
	w.rows.Watch = w.write
	tb := tabletest.Table(w.rows)
	tb.Wait = func(_ context.Context, d time.Duration) error { w.now = w.now.Add(d); return nil }
	prev := w.m
	w.m = queuetest.New(tb, func() time.Time { return w.now }, 50)
	if prev != nil { // ids are never used twice; names of executions stay used for 90 days
		w.m.Inherit(prev)
		w.m.Queue.NewID = prev.Queue.NewID
		w.m.Scheduler.Leases.NewID = prev.Queue.NewID
	}
	w.s = stagetest.New(w.m, "http://s3")
	w.s.Work.Client = s3.New(s3.Options{BaseEndpoint: aws.String("http://s3"), Region: "us-east-1", UsePathStyle: true,
		RetryMaxAttempts: 1,
		Credentials:      credentials.NewStaticCredentialsProvider("a", "b", ""),
		HTTPClient:       &http.Client{Transport: inProcess{w.twin}}})
	w.s.Root.Work.Client, w.s.Root.Bucket.Client = w.s.Work.Client, w.s.Work.Client
	w.s.Fetch.HTTP.Transport = inProcess{http.HandlerFunc(w.source)}
	w.s.SendMail = func(context.Context, []byte) error { return nil }
}

func keyOf(item tabletest.Item) table.Key {
	return table.Key{PK: text(item, "pk"), SK: text(item, "sk")}
}

// write sees each commit: at the moment that is restored, it saves the rows.
func (w *world) write(changes []tabletest.Change) {
	for _, c := range changes {
		if c.After == nil {
			delete(w.image, keyOf(c.Before))
		} else {
			w.image[keyOf(c.After)] = c.After
		}
	}
	w.until--
	if w.until == 0 {
		w.saved = slices.Collect(maps.Values(w.image))
	}
}

// inProcess carries requests to a handler without a network.
type inProcess struct{ handler http.Handler }

// RoundTrip answers one request.
func (p inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	in := r.Clone(r.Context())
	if in.Body == nil {
		in.Body = http.NoBody
	}
	defer in.Body.Close()
	rec := httptest.NewRecorder()
	p.handler.ServeHTTP(rec, in)
	resp := rec.Result()
	resp.Request = r
	return resp, nil
}

// source is the depositors' server: lists name two files each.
func (w *world) source(out http.ResponseWriter, r *http.Request) {
	if w.gone[r.URL.Path] {
		http.NotFound(out, r)
		return
	}
	text, special := w.texts[path.Base(r.URL.Path)]
	if !special {
		text = "content of " + r.URL.Path
	}
	if name, list := strings.CutSuffix(r.URL.Path, ".checkm"); list {
		text = fmt.Sprintf(manifest, name, name)
	}
	http.ServeContent(out, r, "", time.Time{}, strings.NewReader(text))
}

const manifest = `#%%checkm_0.7
#%%profile | http://uc3.cdlib.org/registry/ingest/manifest/mrt-ingest-manifest
#%%prefix | mrt: | http://merritt.cdlib.org/terms#
#%%prefix | nfo: | http://www.semanticdesktop.org/ontologies/2007/03/22/nfo#
#%%fields | nfo:fileUrl | nfo:hashAlgorithm | nfo:hashValue | nfo:fileSize | nfo:fileLastModified | nfo:fileName
http://127.0.0.1%s/a | | | | | a.txt
http://127.0.0.1%s/b | | | | | b.txt
#%%eof
`

// submit submits an object of one file or of a list; some are versions of an earlier one.
func (w *world) submit() {
	w.made++
	in := ingest.Batch{Collection: "maps", Mode: "add",
		Payload: ingest.Payload{URL: fmt.Sprintf("http://127.0.0.1/%d.txt", w.made), Type: ingest.TypeFile,
			Filename: "a.txt"}}
	if w.rng.IntN(3) == 0 {
		in.Payload = ingest.Payload{URL: fmt.Sprintf("http://127.0.0.1/%d.checkm", w.made),
			Type: ingest.TypeObjectManifest}
	}
	if n := w.rng.IntN(5); n < 3 {
		in.LocalIDs = []string{fmt.Sprintf("id %d", n)}
	}
	if _, err := w.m.Queue.Submit(w.Context(), in, "", nil, "me"); err != nil {
		w.Fatal(err)
	}
}

// some does n random steps, submissions only if there are any left.
func (w *world) some(n, submissions int) {
	for range n {
		var err error
		switch k := w.rng.IntN(8); {
		case k == 0 && submissions > 0:
			submissions--
			w.submit()
		case k < 3:
			w.now = w.now.Add(time.Minute)
			err = w.m.Scheduler.Tick(w.Context(), true)
		default:
			err = w.m.One(w.Context())
		}
		if err != nil {
			w.Fatal(err)
		}
	}
}

// restore starts the system on the saved rows.
func (w *world) restore() {
	for job := range w.stored() {
		j, err := w.m.Queue.Job(w.Context(), job)
		if err == nil && w.rng.IntN(2) == 0 { // the source may be gone for what is stored
			w.gone[strings.TrimPrefix(j.URL, "http://127.0.0.1")] = true
		}
	}
	w.now = w.now.Add(time.Hour) // the restore takes an hour
	w.deploy(w.saved)
}

// place is where a version is.
type place struct {
	ark     string
	version int
}

// stored are the jobs whose versions are committed. A job has at most one.
func (w *world) stored() map[string]place {
	out := map[string]place{}
	for _, key := range w.twin.Names("storage/") {
		key, is := strings.CutSuffix(strings.TrimPrefix(key, "storage/"), "0=ocfl_object_1.1")
		if !is {
			continue
		}
		id, err := w.s.Root.At(w.Context(), key)
		if err != nil {
			continue // declared, and not committed
		}
		if ocfl.Prefix(id) != key {
			w.Fatalf("%s is at %s", id, key)
		}
		object, err := w.s.Root.Head(w.Context(), id)
		if err != nil {
			w.Fatal(err)
		}
		for n := 1; n <= object.Head; n++ {
			job := object.Job(n)
			if other, twice := out[job]; twice {
				w.Errorf("job %s is stored as %s v%d and as %s v%d", job, other.ark, other.version, id, n)
			}
			out[job] = place{id, n}
		}
	}
	return out
}

// reindex restores the rows that the table lacks.
func (w *world) reindex() {
	for cursor, first := "", true; first || cursor != ""; first = false {
		page, err := w.s.Reindexer().All(w.Context(), cursor, "", "me", w.now.Add(time.Minute))
		if err != nil || len(page.Failed) > 0 {
			w.Fatalf("reindex: %+v, %v", page.Failed, err)
		}
		cursor = page.Cursor
	}
}

// TestEarlierTable: after any history, the table is restored to any earlier moment.
func TestEarlierTable(t *testing.T) {
	var mu sync.Mutex
	ends := map[string]int{}
	played := seeds.Each(t, func(t *seeds.T, seed uint64) {
		w := newWorld(t, seed)
		w.some(20+w.rng.IntN(60), 6)
		w.until = 1 + w.rng.IntN(8)
		w.some(30+w.rng.IntN(120), 3)
		if w.saved == nil {
			w.saved = slices.Collect(maps.Values(w.image))
		}
		before := w.stored()
		w.restore()
		if w.rng.IntN(2) == 0 {
			w.reindex()
		}
		w.rest()
		w.reindex()
		w.rest()
		mine := map[string]int{}
		w.check(before, mine)
		w.works()
		mu.Lock()
		defer mu.Unlock()
		for end, n := range mine {
			ends[end] += n
		}
	})
	t.Logf("%s: %v", played, ends)
}

// TestUsedNames: earlier executions have used the names that the restored rows would use
// next. No job waits for the sweep's backoff because of that.
func TestUsedNames(t *testing.T) {
	w := newWorld(t, 1)
	w.until = 40 // in the middle of the work
	for range 8 {
		w.submit()
	}
	w.rest()
	w.restore()
	began := w.now
	w.rest()
	if took := w.now.Sub(began); took > 5*time.Minute {
		t.Errorf("after the restore the work took %s", took)
	}
	w.reindex()
	w.check(w.stored(), map[string]int{})
}

// TestRepeatedSubmission: a request that is repeated after a restore returns the known
// batch, or a new one whose job stores nothing that is stored already.
func TestRepeatedSubmission(t *testing.T) {
	w := newWorld(t, 1)
	ask := func(id string) string {
		in := ingest.Batch{Collection: "maps", Mode: "add", LocalIDs: []string{id},
			Payload: ingest.Payload{URL: "http://127.0.0.1/" + id, Type: ingest.TypeFile, Filename: "a.txt"}}
		b, err := w.m.Queue.Submit(t.Context(), in, "key of "+id, []byte(id), "me")
		if err != nil {
			t.Fatal(err)
		}
		w.rest()
		return b.ID
	}
	known := ask("known")
	w.saved = slices.Collect(maps.Values(w.image))
	forgotten := ask("forgotten")
	before := w.stored()
	w.now = w.now.Add(time.Hour)
	w.deploy(w.saved)
	w.reindex()
	if again := ask("known"); again != known {
		t.Errorf("the batch %s was known, and is %s now", known, again)
	}
	again := ask("forgotten")
	j, err := w.m.Queue.Job(t.Context(), ingest.JobID(again, 1))
	if err != nil || again == forgotten || j.State != ingest.Completed || !j.NoChange || j.ObjectVersion != 1 {
		t.Errorf("the repeated submission is %+v, %v", j, err)
	}
	if after := w.stored(); !maps.Equal(after, before) {
		t.Errorf("stored was %v, is %v", before, after)
	}
}
