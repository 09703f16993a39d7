package embedded

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/blevesearch/bleve/v2"
	"golang.org/x/sync/errgroup"

	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/lease"
)

// commit makes the snapshot that follows r, with the changes. The transaction has two conditions: the
// revision of the row, and the fence of the lease. If another writer has taken the lease meanwhile, it
// is Stale, and the uploaded files are found by a later sweep. Files are removed before the commit:
// those that are dropped long enough are in no snapshot since then, so a crash between loses nothing.
func (x *Index) commit(ctx context.Context, l lease.Lease, r *row, changes []change) error {
	if err := x.fits(r.size()); err != nil {
		return err
	}

	next, err := x.build(ctx, l, r, changes)
	if err != nil {
		return err
	}

	if err := x.fits(next.size()); err != nil {
		return err
	}

	if err := x.tidy(ctx, l, next); err != nil {
		return err
	}

	tx := x.Table.Begin(x.Leases.NewID())
	tx.InsertOrSave(next)
	l.Guard(tx)
	return tx.Commit(ctx)
}

// build applies the changes to a local copy of a snapshot, uploads its new files, and returns the row
// that points to them. Index.mu is held while it works: it uses the files in Dir. r is not changed.
func (x *Index) build(ctx context.Context, l lease.Lease, r *row, changes []change) (*row, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	dir, err := x.checkout(ctx, r)
	if err != nil {
		return nil, lost(err)
	}

	defer os.RemoveAll(dir)
	copied, documents, err := changed(ctx, dir, r, changes)
	if err != nil {
		return nil, err
	}

	next := *r
	next.Documents = int64(documents)
	if next.Files, err = x.upload(ctx, l, r, copied); err != nil {
		return nil, err
	}

	kept := map[string]bool{}
	for _, f := range next.Files {
		kept[f.Key] = true
	}

	next.Dropped = slices.Clone(r.Dropped)
	for _, f := range r.Files {
		if !kept[f.Key] {
			next.Dropped = append(next.Dropped, dropped{f.Key, x.Now().UnixMilli()})
		}
	}
	return &next, nil
}

// copied is a copy of an index: the names of its files, and the folder with the new ones. A name
// without a file there is one that the snapshot before has, too.
type copied struct {
	dir   string
	names []string // relative to the folder
}

// changed applies changes to the index in a folder. The copy that it returns is below that. documents
// is how many the index has then. The list of segments is always copied, because it changes.
func changed(ctx context.Context, dir string, r *row,
	changes []change) (c copied, documents uint64, err error) {
	at := filepath.Join(dir, "index")
	var index bleve.Index
	if len(r.Files) == 0 {
		index, err = create(at)
	} else {
		index, err = extended(at)
	}

	if err != nil {
		return c, 0, fmt.Errorf("search: open the index: %w", err)
	}

	defer index.Close()
	if err := apply(ctx, index, changes); err != nil {
		return c, 0, err
	}

	known := map[string]bool{}
	for _, f := range r.Files {
		if base := filepath.Base(f.Name); base != listName {
			known[base] = true
		}
	}

	target := folder{dir: filepath.Join(dir, "copy"), known: known, names: map[string]bool{}}
	if err := index.(bleve.IndexCopyable).CopyTo(target); err != nil {
		return c, 0, fmt.Errorf("search: copy the index: %w", err)
	}

	for name := range target.names {
		c.names = append(c.names, name)
	}

	slices.Sort(c.names)
	c.dir = target.dir
	documents, err = index.DocCount()
	return c, documents, err
}

// upload puts the new files of a copy under keys that begin with the fence of the lease, so that no
// other writer uses them. It returns all files of the copy. The order is that of c.names.
func (x *Index) upload(ctx context.Context, l lease.Lease, r *row, c copied) ([]file, error) {
	before := map[string]file{}
	for _, f := range r.Files {
		before[f.Name] = f
	}

	files := make([]file, len(c.names))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(readers)
	for i, name := range c.names {
		path := filepath.Join(c.dir, name)
		if _, err := os.Stat(path); os.IsNotExist(err) {
			files[i] = before[name]
			continue
		}
		g.Go(func() (err error) {
			files[i], err = x.put(ctx,
				fmt.Sprintf("%s%012d/%s", x.prefix(), l.Fence, filepath.Base(name)), name, path)
			return err
		})
	}
	return files, g.Wait()
}

// put uploads one file, and keeps it for the next snapshot. The write needs no condition: the key has
// the fence, which no other writer has. The file is moved to where the next snapshot looks for it.
func (x *Index) put(ctx context.Context, key, name, path string) (file, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return file{}, err
	}

	sum := sha256.Sum256(data)
	f := file{Name: name, Key: key, Size: int64(len(data)), SHA256: hex.EncodeToString(sum[:])}
	if err := x.Bucket.Put(ctx, key, data, bucket.Condition{}); err != nil {
		return file{}, err
	}

	if err := os.MkdirAll(filepath.Dir(x.local(f)), 0o700); err != nil {
		return file{}, err
	}

	err = os.Rename(path, x.local(f))
	return f, err
}

// tidy removes files that no reader can need, and takes them from the row. A file is kept for keepFor
// after it was dropped, which is longer than a call of a function can take. Once in sweepEach it also
// looks for files of writers that died.
func (x *Index) tidy(ctx context.Context, l lease.Lease, next *row) error {
	now := x.Now()
	kept := next.Dropped[:0:0]
	for _, d := range next.Dropped {
		if time.UnixMilli(d.Since).Add(keepFor).After(now) {
			kept = append(kept, d)
			continue
		}
		if err := x.Bucket.Delete(ctx, d.Key); err != nil {
			return err
		}
	}

	next.Dropped = kept
	if time.UnixMilli(next.Swept).Add(sweepEach).After(now) {
		return nil
	}

	next.Swept = now.UnixMilli()
	return x.sweep(ctx, l, next)
}

// sweep removes the files of earlier writers that are in no row: those writers died before they
// committed, or lost the lease, and cannot commit any more. Files of later writers stay, should this
// one have lost the lease. Behind the prefix, keys begin with the fence in 12 digits, so they sort by
// writer. It costs a listing of the index's files.
func (x *Index) sweep(ctx context.Context, l lease.Lease, next *row) error {
	listed := map[string]bool{}
	for _, f := range next.Files {
		listed[f.Key] = true
	}

	for _, d := range next.Dropped {
		listed[d.Key] = true
	}

	mine := fmt.Sprintf("%s%012d/", x.prefix(), l.Fence)
	return x.Bucket.List(ctx, x.prefix(), func(o bucket.Listed) error {
		if listed[o.Key] || o.Key >= mine {
			return nil
		}
		return x.Bucket.Delete(ctx, o.Key)
	})
}
