package upload_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"archivist/pkg/events/event"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/upload"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/bucket/buckettest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
)

// bed is a store of uploads on twins, with batches that are whatever a test says.
type bed struct {
	*testing.T
	*upload.Store
	S3      *buckettest.Twin
	batches map[string]ingest.BatchState
	failed  []error
}

// mib is the size of parts: less is no whole part.
const mib = 1 << 20

// newBed makes an empty store. It is made outside of a bubble: the twin listens.
func newBed(t *testing.T) *bed {
	t.Helper()
	twin, buckets := buckettest.Open(t, "work")
	return onTwins(t, tabletest.Open(t), twin, buckets[0])
}

func onTwins(t *testing.T, tb *table.Table, twin *buckettest.Twin, work bucket.Bucket) *bed {
	b := &bed{T: t, S3: twin, batches: map[string]ingest.BatchState{}}
	var n atomic.Int64
	b.Store = &upload.Store{Table: tb, Work: work, Now: time.Now, Quota: 10 * mib, Keep: 7 * 24 * time.Hour, Part: mib,
		NewID: func() string { return fmt.Sprintf("ID%06d", n.Add(1)) },
		Batch: func(_ context.Context, id string) (*queue.Batch, error) {
			state, known := b.batches[id]
			if !known {
				return nil, fault.New(fault.NotFound, "there is no batch %q", id)
			}
			return &queue.Batch{Batch: ingest.Batch{ID: id, State: state}}, nil
		},
		Failed: func(_ string, err error) { b.failed = append(b.failed, err) }}
	return b
}

// listed is a file of an upload.
func listed(content string) upload.Listed {
	sum := sha256.Sum256([]byte(content))
	return upload.Listed{Sum: hex.EncodeToString(sum[:]), Size: int64(len(content))}
}

// open opens an upload of the collection maps for contents.
func (b *bed) open(key string, contents ...string) *upload.Upload {
	b.Helper()
	bytes := int64(0)
	for _, c := range contents {
		bytes += int64(len(c))
	}
	row, err := b.Open(b.Context(), upload.Request{Collection: "maps", Files: len(contents), Bytes: bytes, By: "ann",
		Key: key, Meaning: []byte(strings.Join(contents, "/"))})
	if err != nil {
		b.Fatal(err)
	}
	return row
}

// list lists contents.
func (b *bed) list(id string, contents ...string) []upload.Send {
	b.Helper()
	var files []upload.Listed
	for _, c := range contents {
		files = append(files, listed(c))
	}
	out, err := b.List(b.Context(), id, files)
	if err != nil {
		b.Fatal(err)
	}
	return out
}

// send sends a content as it is asked for, and returns how many requests that took.
func (b *bed) send(how upload.Send, content string) (requests int) {
	b.Helper()
	if how.Put != nil {
		b.put(how.Put.URL, how.Put.Headers, content)
		return 1
	}
	if how.Parts == nil {
		return 0
	}
	for _, p := range how.Parts.Next {
		from := int64(p.Number-1) * how.Parts.Size
		b.put(p.URL, nil, content[from:min(from+how.Parts.Size, int64(len(content)))])
		requests++
	}
	return requests
}

// put sends a signed request, which must succeed.
func (b *bed) put(to string, headers map[string]string, content string) {
	b.Helper()
	if status := b.try(to, headers, content); status != http.StatusOK {
		b.Fatalf("a signed request is answered %d", status)
	}
}

// try sends a signed request, and returns the status of the answer.
func (b *bed) try(to string, headers map[string]string, content string) int {
	b.Helper()
	req, err := http.NewRequestWithContext(b.Context(), http.MethodPut, to, strings.NewReader(content))
	if err != nil {
		b.Fatal(err)
	}
	for name, value := range headers {
		req.Header.Set(name, value)
	}
	resp, err := b.S3.RoundTrip(req)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// stored has contents verified, and returns what is wrong with each, "" for nothing.
func (b *bed) stored(id string, contents ...string) (problems []string) {
	b.Helper()
	var sums []string
	for _, c := range contents {
		sums = append(sums, listed(c).Sum)
	}
	out, err := b.Stored(b.Context(), id, sums)
	if err != nil {
		b.Fatal(err)
	}
	for _, one := range out {
		if one.Stored == (one.Problem != "") {
			b.Fatalf("%+v", one)
		}
		problems = append(problems, one.Problem)
	}
	return problems
}

// filled opens an upload, and sends contents to it.
func (b *bed) filled(contents ...string) *upload.Upload {
	b.Helper()
	row := b.open("", contents...)
	for i, how := range b.list(row.ID, contents...) {
		b.send(how, contents[i])
	}
	for _, problem := range b.stored(row.ID, contents...) {
		if problem != "" {
			b.Fatal(problem)
		}
	}
	return b.row(row.ID)
}

// claim claims an upload for a batch, as a submission does.
func (b *bed) claim(id, file, batch string) error {
	c, err := b.Claim(b.Context(), "maps", id, file)
	if err != nil {
		return err
	}
	tx := b.Table.Begin(b.NewID())
	if err := c.Put(tx, batch, "ann"); err != nil {
		return err
	}
	return tx.Commit(b.Context())
}

// row reads an upload.
func (b *bed) row(id string) *upload.Upload {
	b.Helper()
	row, err := b.Upload(b.Context(), id)
	if err != nil {
		b.Fatal(err)
	}
	return row
}

// sweep sweeps, and fails the test if an upload cannot be handled.
func (b *bed) sweep() {
	b.Helper()
	if err := b.Sweep(b.Context(), b.Now().Add(time.Minute)); err != nil {
		b.Fatal(err)
	}
	for _, err := range b.failed {
		b.Error(err)
	}
}

// gone reports whether an upload has no row, no rows of files and no objects any more.
func (b *bed) gone(row *upload.Upload) bool {
	b.Helper()
	rows, _, err := event.Page(b.Context(), b.Table, event.Subject{Type: event.Upload, ID: row.ID}, "")
	if err != nil {
		b.Fatal(err)
	}
	var left []table.Head
	if _, err := b.Table.Page(b.Context(), table.Query{PK: row.PK}, &left); err != nil {
		b.Fatal(err)
	}
	return len(left) == len(rows) && len(b.S3.Names("work/uploads/maps/"+row.ID)) == 0
}

// refused fails the test unless an error is of a kind, and says something.
func (b *bed) refused(err error, kind fault.Kind, says string) {
	b.Helper()
	if !fault.Is(err, kind) || !strings.Contains(err.Error(), says) {
		b.Errorf("%v; expected %s that says %q", err, kind, says)
	}
}
