package upload_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/upload"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/bucket/buckettest"
	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
)

// faults end a process at one of its calls, and lose answers. A call that is lost after its effect, and one that had
// none, look the same.
type faults struct {
	r     *rand.Rand
	calls int // until the process ends; 0: it does not
	dead  bool
	lose  bool // single answers are lost
}

var errLost = errors.New("no answer")

// do makes a call, or not, and perhaps loses its answer.
func (f *faults) do(call func() error) error {
	if f.dead {
		return errLost
	}
	f.calls--
	f.dead = f.calls == 0
	lost := f.dead || f.lose && f.r.IntN(30) == 0
	if lost && f.r.IntN(2) == 0 {
		return errLost // before its effect
	}
	err := call()
	if lost {
		return errLost
	}
	return err
}

// lossy is the transport of the store's S3 client.
type lossy struct {
	*faults
	twin *buckettest.Twin
}

func (l lossy) RoundTrip(req *http.Request) (resp *http.Response, err error) {
	lost := l.do(func() error { resp, err = l.twin.RoundTrip(req); return err })
	if lost != nil {
		return nil, lost
	}
	return resp, err
}

// world is one history.
type world struct {
	*bed
	*faults
	uploads  []string
	contents map[string][]string // of an upload
	pending  []func()            // signed requests that are sent later
	batches  int
}

// TestHistories: random histories of uploads, in which processes end at any call and answers are lost. While a batch
// has an upload, none of its files is lost; none has two batches; the quota is what the rows say; and when all has
// come to rest, nothing is left of any.
func TestHistories(t *testing.T) {
	removed := 0
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			b := newBed(t)
			synctest.Test(t, func(t *testing.T) {
				b.T = t
				w := newWorld(b, seed)
				for range 60 {
					w.step()
					w.check()
				}
				removed += w.rest()
			})
		})
	}
	if removed == 0 {
		t.Error("no history has removed a submitted upload")
	}
}

func newWorld(b *bed, seed uint64) *world {
	f := &faults{r: rand.New(rand.NewPCG(seed, 1)), lose: true}
	tb := tabletest.Table(&tabletest.Client{DynamoDBAPI: tabletest.New(),
		Do: func(_ string, call func() error) error { return f.do(call) }})
	url := "http://s3.test"
	client := s3.New(s3.Options{BaseEndpoint: &url, Region: "us-east-1", UsePathStyle: true, RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""),
		HTTPClient:  &http.Client{Transport: lossy{f, b.S3}}})
	on := onTwins(b.T, tb, b.S3, bucket.Bucket{Client: client, Name: "work", Limits: bucket.DefaultLimits})
	on.NewID = seededIDs(f.r)
	return &world{bed: on, faults: f, contents: map[string][]string{}}
}

func seededIDs(r *rand.Rand) func() string {
	n := 0
	return func() string { n++; return fmt.Sprintf("ID%05d-%d", n, r.IntN(1000)) }
}

// as makes calls as a process that may end at any of them.
func (w *world) as(process func()) {
	w.calls, w.dead = 0, false
	if w.r.IntN(3) == 0 {
		w.calls = 1 + w.r.IntN(25)
	}
	process()
	w.calls, w.dead = 0, false
}

// quiet makes calls of which none fails.
func (w *world) quiet(f func()) {
	w.lose, w.calls = false, 0
	f()
	w.lose = true
}

// step is something that happens.
func (w *world) step() {
	ctx := w.Context()
	id, contents := "", []string(nil)
	if len(w.uploads) > 0 {
		id = w.uploads[w.r.IntN(len(w.uploads))]
		contents = w.contents[id]
	}
	switch n := w.r.IntN(12); {
	case id == "" || n == 0:
		w.as(w.opens)
	case n <= 3:
		w.as(func() { w.lists(id, contents) })
	case n <= 5:
		w.as(func() {
			var sums []string
			for _, c := range contents {
				sums = append(sums, listed(c).Sum)
			}
			_, _ = w.Stored(ctx, id, sums)
		})
	case n == 6:
		w.as(func() { w.claims(id, contents) })
	case n == 7:
		states := []ingest.BatchState{ingest.BatchProcessing, ingest.BatchFailed, ingest.BatchCompleted}
		for _, name := range w.open() {
			w.bed.batches[name] = states[w.r.IntN(3)]
			return
		}
	case n == 8 && w.r.IntN(3) == 0:
		w.as(func() { _, _ = w.Discard(ctx, id, "ann", "no") })
	case n == 9:
		time.Sleep(time.Duration(w.r.IntN(int(40 * time.Hour))))
	case n == 10 && len(w.pending) > 0:
		i := w.r.IntN(len(w.pending))
		w.pending[i]()
		w.pending = slices.Delete(w.pending, i, i+1)
	default:
		w.as(func() { _ = w.Sweep(ctx, w.Now().Add(time.Minute)) })
	}
}

// open are the batches that have not ended.
func (w *world) open() (names []string) {
	for n := range w.batches {
		name := fmt.Sprint("B", n)
		if s, is := w.bed.batches[name]; is && s != ingest.BatchCompleted {
			names = append(names, name)
		}
	}
	return names
}

func (w *world) opens() {
	var contents []string
	bytes := int64(0)
	for range 1 + w.r.IntN(3) {
		c := fmt.Sprint("content ", w.r.IntN(1000))
		if w.r.IntN(3) == 0 {
			c = strings.Repeat("x", mib+w.r.IntN(mib))
		}
		if !slices.Contains(contents, c) {
			contents = append(contents, c)
			bytes += int64(len(c))
		}
	}
	row, err := w.Open(w.Context(), upload.Request{Collection: "maps", Files: len(contents), Bytes: bytes,
		Key: fmt.Sprint(w.r.IntN(20)), Meaning: []byte(strings.Join(contents, "/"))})
	if err == nil {
		w.uploads, w.contents[row.ID] = append(w.uploads, row.ID), contents
	}
}

// lists lists files; the requests for them are sent now, later, or never.
func (w *world) lists(id string, contents []string) {
	var files []upload.Listed
	for _, c := range contents {
		files = append(files, listed(c))
	}
	sends, err := w.List(w.Context(), id, files)
	if err != nil {
		return
	}
	for i, how := range sends {
		c := contents[i]
		if how.Put != nil {
			w.later(func() { w.try(how.Put.URL, how.Put.Headers, c) })
		}
		if how.Parts == nil {
			continue
		}
		for _, p := range how.Parts.Next {
			from := int64(p.Number-1) * how.Parts.Size
			w.later(func() { w.try(p.URL, nil, c[from:min(from+how.Parts.Size, int64(len(c)))]) })
		}
	}
}

func (w *world) later(send func()) {
	switch w.r.IntN(5) {
	case 0:
		w.pending = append(w.pending, send)
	case 1: // never
	default:
		send()
	}
}

// claims submits an upload. Whether that was done is asked afterwards, as a client does by its key.
func (w *world) claims(id string, contents []string) {
	name := fmt.Sprint("B", w.batches)
	w.batches++
	before := ""
	w.quiet(func() {
		if row, err := w.Upload(w.Context(), id); err == nil {
			before = row.Batch
		}
	})
	err := w.claim(id, listed(contents[0]).Sum, name)
	w.quiet(func() {
		w.dead = false
		row, read := w.Upload(w.Context(), id)
		if read == nil && row.Batch == name {
			w.bed.batches[name] = ingest.BatchProcessing
		}
		if err == nil && (before != "" || read != nil || row.Batch != name) {
			w.Errorf("batch %s has claimed the upload %s, which batch %q has", name, id, before)
		}
	})
}

// check checks what holds at any time.
func (w *world) check() {
	w.quiet(func() {
		used, n := int64(0), 0
		for _, id := range w.rows() {
			row := w.row(id)
			used, n = used+row.Bytes, n+1
			state, known := w.bed.batches[row.Batch]
			if !known || state == ingest.BatchCompleted || w.contents[id] == nil {
				continue
			}
			for _, c := range w.contents[id] {
				data, there := w.S3.Object("work/uploads/maps/" + id + "/" + listed(c).Sum)
				if !there || string(data) != c {
					w.Fatalf("batch %s is %s, and a file of its upload %s is lost", row.Batch, state, id)
				}
			}
		}
		var q struct {
			table.Head
			Uploads int   `dynamo:"n_uploads"`
			Bytes   int64 `dynamo:"n_bytes"`
		}
		_ = w.Table.Get(w.Context(), table.Key{PK: "UPLOADS#maps", SK: "QUOTA"}, &q)
		if q.Uploads != n || q.Bytes != used {
			w.Fatalf("counted are %d uploads with %d bytes, there are %d with %d", q.Uploads, q.Bytes, n, used)
		}
	})
}

// rows are the ids of all uploads, also of those whose opening had no answer.
func (w *world) rows() (ids []string) {
	page, err := w.Of(w.Context(), "maps", "")
	if err != nil {
		w.Fatal(err)
	}
	for _, row := range page.Items {
		ids = append(ids, row.ID)
	}
	return ids
}

// rest lets all end: batches complete, requests that are still out are sent, uploads expire. Then nothing is left. It
// returns how many batches had an upload.
func (w *world) rest() (claimed int) {
	w.lose, w.calls = false, 0
	for _, name := range w.open() {
		w.bed.batches[name] = ingest.BatchCompleted
	}
	for range 24 * 10 {
		for _, send := range w.pending {
			send()
		}
		time.Sleep(time.Hour)
		if err := w.Sweep(w.Context(), w.Now().Add(time.Minute)); err != nil {
			w.Fatal(err)
		}
	}
	w.check()
	w.lose = false
	if ids := w.rows(); len(ids) > 0 {
		w.Errorf("uploads are left: %q", ids)
	}
	if names := w.S3.Names("work/"); len(names) > 0 {
		w.Errorf("objects are left: %q", names)
	}
	none := func() bool { w.Error("a multipart upload is left"); return false }
	if _, err := w.Work.AbortAll(w.Context(), "", none); err != nil {
		w.Error(err)
	}
	return len(w.bed.batches)
}
