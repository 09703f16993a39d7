package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/guregu/dynamo/v2/dynamodbiface"

	"archivist/pkg/kernel/backoff"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/bucket/buckettest"
	"archivist/pkg/kernel/lease"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/pkg/views/search"
	"archivist/pkg/views/search/embedded"
	"archivist/pkg/views/search/searchtest"
)

const bucketName = "derived"

// world is a table, a bucket, a clock, and the state of the objects that are indexed.
type world struct {
	testing.TB
	searchtest.State
	rows *tabletest.Fake
	twin *buckettest.Twin

	mu    sync.Mutex
	now   time.Time
	began time.Time // if set, the clock runs, and fast
	ids   atomic.Int64
}

func newWorld(t testing.TB) *world {
	return &world{TB: t, rows: tabletest.New(), twin: buckettest.New(t.TempDir()),
		now: time.UnixMilli(1_800_000_000_000)}
}

// calls counts the requests of a process, and lets it die at one of them.
type calls struct {
	n     atomic.Int64
	death int64 // the first that fails, 0 = none; all that follow fail without effect
	made  bool  // whether the effect of that request is made
}

var errDead = errors.New("this process is dead")

// next reports whether the next request is made, and whether its answer arrives.
func (c *calls) next() (made, answered bool) {
	n := c.n.Add(1)
	if c.death == 0 || n < c.death {
		return true, true
	}
	return n == c.death && c.made, false
}

// process is an index with a folder and connections of its own.
func (w *world) process(c *calls) *embedded.Index {
	return w.over(w.rows, c)
}

func (w *world) over(rows dynamodbiface.DynamoDBAPI, c *calls) *embedded.Index {
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		made, answered := c.next()
		if made && answered {
			w.twin.ServeHTTP(out, r)
			return
		}
		if made {
			w.twin.ServeHTTP(httptest.NewRecorder(), r)
		}
		panic(http.ErrAbortHandler) // no response
	}))
	w.Cleanup(server.Close)
	tb := tabletest.Through(rows, func(_ string, call func() error) error {
		made, answered := c.next()
		if !made {
			return errDead
		}
		err := call()
		if !answered {
			return errDead
		}
		return err
	})
	newID := func() string { return fmt.Sprint("id", w.ids.Add(1)) }
	return &embedded.Index{Name: "objects", Table: tb, Dir: w.TempDir(), Now: w.clock, Wait: w.wait,
		Bucket: bucket.Bucket{Client: buckettest.Client(server.URL), Name: bucketName, Limits: bucket.DefaultLimits},
		Leases: &lease.Store{Table: tb, Now: w.clock, NewID: newID}}
}

// pace is how much faster a running clock is than the real one.
const pace = 100

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.began.IsZero() {
		return w.now.Add(pace * time.Since(w.began))
	}
	return w.now
}

func (w *world) wait(ctx context.Context, d time.Duration) error {
	if !w.began.IsZero() {
		return backoff.Sleep(ctx, d/pace)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
	return ctx.Err()
}

// update makes the index have the changes, or fails the test.
func (w *world) update(x search.Index, changed ...search.Change) {
	w.Helper()
	searchtest.Update(w, x, &w.State, changed...)
}

func (w *world) find(x search.Index, query, order string) string {
	w.Helper()
	return searchtest.Find(w, x, query, order)
}

func (w *world) total(x search.Index, query string) int {
	w.Helper()
	return searchtest.Search(w, x, query, "", 0, "").Total
}
