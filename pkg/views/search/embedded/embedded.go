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
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/blevesearch/bleve/v2"

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

// opened is a snapshot that searches read. The last of them that uses it after it was replaced closes
// it. index is opened read-only. dir is the folder of this snapshot. Index.mu guards users.
type opened struct {
	index bleve.Index
	row   *row
	dir   string
	users int // and 1 as long as it is the newest
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
