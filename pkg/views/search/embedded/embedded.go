// Package embedded is a search index whose files are in a bucket: no server runs.
//
// The index is one of bleve's: immutable files of segments, and a file that lists them. A
// row of the table points to the files of the newest snapshot:
//
//	SEARCH#{name} SNAPSHOT
//
// A writer takes the lease of the index, applies its changes to a local copy of the
// snapshot, uploads the new files under keys that no other writer uses, and commits the row.
// The commit depends on the lease's fence and on the row's revision. So writers never lose
// the changes of another, and a crash leaves the snapshot before or the one after, complete.
//
// A reader follows the row, and downloads only the files that it does not have.
//
// Files that a snapshot no longer has are removed a quarter of an hour later, when no reader
// can be about to download them. Files of writers that died are found by a listing, each hour.
package embedded

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"archivist/pkg/kernel/backoff"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/lease"
	"archivist/pkg/kernel/table"
	"archivist/pkg/views/search"
)

// Index is a search index in a bucket. It is safe for concurrent use. Dir is its own in this process: a
// folder on a local disk, which may be empty or have files of a process before. A writer and readers of
// one process share the files in Dir under mu; processes share nothing but the row, the bucket and the
// lease.
type Index struct {
	Name     string // of the index, e.g. "objects"
	Table    *table.Table
	Bucket   bucket.Bucket
	Leases   *lease.Store
	Now      func() time.Time
	Wait     func(ctx context.Context, d time.Duration) error
	Dir      string
	MaxBytes int64 // of a snapshot; MaxBytes if it is 0

	mu    sync.Mutex // for what follows, and for the files of Dir
	open  *opened
	begun bool // what a process before has left is removed
}

// Folder is where the indexes of a bucket are.
const Folder = "search/"

// Open makes the index of objects of a deployment. Its folder is on the disk of the function.
func Open(p search.Parts) search.Index {
	return &Index{
		Name:   "objects",
		Table:  p.Table,
		Bucket: p.Bucket,
		Leases: p.Leases,
		Now:    p.Now,
		Wait:   backoff.Sleep,
		Dir:    filepath.Join(os.TempDir(), "search"),
	}
}

// MaxBytes is how large a snapshot may be by default. A function has 512 MB of disk, which must hold a
// snapshot, its successor, and what a merge writes. If a snapshot is larger, updates and searches are
// Unavailable, with the advice to configure a domain.
const MaxBytes = 160 << 20

// Times of writers. A writer that dies keeps others waiting until the end of its lease.
const (
	leaseTime = 60 * time.Second
	workTime  = 50 * time.Second // in which a writer must have committed
	patience  = 20 * time.Second // with which a writer waits for the lease
)

// Times of files. A call of a function takes at most 15 minutes ("Lambda quotas").
const (
	keepFor   = 20 * time.Minute // files of earlier snapshots, for readers
	sweepEach = time.Hour
)

// readers is how many objects, or files, are read at once.
const readers = 8

// row points to the files of a snapshot. It is written only with the fence of the lease, in the
// transaction that commits a snapshot.
type row struct {
	table.Head
	Format    int    `dynamo:"index_format"`
	Documents int64  `dynamo:"documents"`
	Files     []file `dynamo:"files"`
	// Dropped are files that a reader of an earlier snapshot may still download; they are in the
	// bucket.
	Dropped []dropped `dynamo:"dropped,omitempty"`
	Swept   int64     `dynamo:"swept_ms"` // when files of dead writers were searched for
}

// file is an immutable file of the index. Its content never changes under its key, so a copy on the
// disk stays right.
type file struct {
	Name   string `dynamo:"file_name"` // in the index, e.g. "000000000001.zap"
	Key    string `dynamo:"object_key"`
	Size   int64  `dynamo:"file_size"`
	SHA256 string `dynamo:"sha256"`
}

// dropped is a file that is in no snapshot any more, since a time in milliseconds.
type dropped struct {
	Key   string `dynamo:"object_key"`
	Since int64  `dynamo:"since_ms"`
}

// key is that of the one row of the index.
func (x *Index) key() table.Key { return table.Key{PK: "SEARCH#" + x.Name, SK: "SNAPSHOT"} }

// prefix begins the keys of all files of the index.
func (x *Index) prefix() string { return Folder + x.Name + "/" }

// advice ends errors of a snapshot that cannot be used.
const advice = "remove its row and rebuild it (docs/restore.md)"

// row reads the newest snapshot's row; that of an index without one has no revision. An index of
// another format is Unavailable, because it cannot be read or written by this release. The row may be
// returned beside an error; it is not to be used then.
func (x *Index) row(ctx context.Context) (*row, error) {
	r := &row{Head: table.Head{PK: x.key().PK, SK: x.key().SK}}
	err := x.Table.Get(ctx, x.key(), r)
	if fault.Is(err, fault.NotFound) {
		r.Format = format
		return r, nil
	}

	if err != nil {
		return r, err
	}

	if r.Format != format {
		return r, fault.New(fault.Unavailable,
			"the search index has format %d, this release has format %d; "+
				advice, r.Format, format)
	}
	return r, nil
}

// size is the sum of the sizes of a snapshot's files, in bytes.
func (r *row) size() (sum int64) {
	for _, f := range r.Files {
		sum += f.Size
	}
	return sum
}

// fits refuses a snapshot that the disk may not hold. It is asked before files are downloaded, and
// again before a commit, so that no snapshot is committed that no reader can open.
func (x *Index) fits(size int64) error {
	most := x.MaxBytes
	if most == 0 {
		most = MaxBytes
	}
	if size > most {
		return fault.New(fault.Unavailable,
			"the search index has %d MB, and at most %d MB fit on the disk of a "+
				"function; configure an OpenSearch domain", size>>20, most>>20)
	}
	return nil
}

// Update implements search.Index. The objects are read under the lease, so that no writer overwrites a
// document with an older state. An error leaves the snapshot as it was, or, if only the answer to the
// commit was lost, with the changes; calling it again is right in both cases.
func (x *Index) Update(ctx context.Context, changed []search.Change, read search.Reader) error {
	return x.locked(ctx, func(ctx context.Context, l lease.Lease) error {
		documents, err := documents(ctx, changed, read)
		if err != nil {
			return err
		}
		r, err := x.row(ctx)
		if err != nil {
			return err
		}
		return x.commit(ctx, l, r, documents)
	})
}

// locked calls f under the lease of the index. f has workTime, which is less than the lease: it gives
// up before another writer can begin. If f fails, its error is returned, and the lease is given back.
func (x *Index) locked(ctx context.Context, f func(context.Context, lease.Lease) error) error {
	l, err := x.acquire(ctx)
	if err != nil {
		return err
	}

	work, cancel := context.WithTimeout(ctx, workTime)
	defer cancel()
	if err := f(work, l); err != nil {
		// The lease is given back all the same: what this writer may still do cannot be committed.
		_ = x.Leases.Release(ctx, l)
		return err
	}

	err = x.Leases.Release(ctx, l)
	if fault.Is(err, fault.Stale) {
		return nil // it took longer than its lease, but the commit was in time
	}
	return err
}

// waits between two looks at a lease that another writer holds.
var waits = backoff.Policy{First: 50 * time.Millisecond, Most: time.Second}

// acquire waits for the lease. The waits grow and are spread at random, so that waiting writers do not
// ask at the same moment. If patience is over, it is an Unavailable: the consumer tries again later.
func (x *Index) acquire(ctx context.Context) (l lease.Lease, err error) {
	until := x.Now().Add(patience)
	for try := 1; ; try++ {
		l, err = x.Leases.Acquire(ctx, "search-"+x.Name, leaseTime)
		if !fault.Is(err, fault.Held) {
			return l, err
		}

		if !x.Now().Before(until) {
			return l, fault.New(fault.Unavailable,
				"other runs are writing the search index: %w", err)
		}

		if err := x.Wait(ctx, waits.Delay(try, rand.Float64)); err != nil {
			return l, fault.New(fault.Unavailable,
				"the call ended while others were writing the search index: %w", err)
		}
	}
}

// change is an object's document, nil to remove it.
type change struct {
	ark      string
	document *search.Document
}

// documents reads the documents of objects, several at once. The result is in the order of changed. The
// first error ends the others.
func documents(ctx context.Context, changed []search.Change, read search.Reader) ([]change, error) {
	out := make([]change, len(changed))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(readers)
	for i, c := range changed {
		g.Go(func() (err error) {
			out[i].ark = c.ARK
			out[i].document, err = read(ctx, c.ARK)
			return err
		})
	}
	return out, g.Wait()
}
