package embedded

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/blevesearch/bleve/v2"
	"golang.org/x/sync/errgroup"

	"archivist/pkg/kernel/fault"
)

// leave ends one use. Index.mu must be held. The folder goes with the last user; the files themselves
// are links, and stay in Dir/files until clean removes them.
func (o *opened) leave() error {
	o.users--
	if o.users > 0 {
		return nil
	}
	return errors.Join(o.index.Close(), os.RemoveAll(o.dir))
}

// Close closes the snapshot that is open. The index can still be used. A process that ends need not call it.
func (x *Index) Close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	o := x.open
	x.open = nil
	if o == nil {
		return nil
	}
	return o.leave()
}

// current returns the newest snapshot, opened, and the function that ends its use. It is nil if nothing
// was indexed yet. done must be called once, also after an error. The row is read at each search, so a
// search sees every commit before it.
func (x *Index) current(ctx context.Context) (index bleve.Index, done func(), err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	o, err := x.follow(ctx)
	if err != nil || o == nil {
		return nil, func() {}, err
	}

	o.users++
	return o.index, func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		_ = o.leave() // the answer is known already
	}, nil
}

// tries of following the row: a file that is gone belongs to a snapshot that was replaced
// long ago.
const tries = 3

// follow opens the snapshot that the row points to, if it is not the one that is open. A file that is
// gone means that the row was read long before: it is read again. If files of the newest snapshot are
// gone, lost says so. Index.mu must be held.
func (x *Index) follow(ctx context.Context) (*opened, error) {
	for try := 1; ; try++ {
		r, err := x.row(ctx)
		switch {
		case err != nil:
			return nil, err
		case r.Rev == 0:
			return nil, nil
		case x.open != nil && x.open.row.Rev == r.Rev:
			return x.open, nil
		}

		dir, err := x.checkout(ctx, r)
		if fault.Is(err, fault.NotFound) && try < tries {
			continue
		}

		if err != nil {
			return nil, lost(err)
		}
		return x.replace(r, dir)
	}
}

// lost says what to do if files of the newest snapshot are gone.
func lost(err error) error {
	if fault.Is(err, fault.NotFound) {
		return fault.New(fault.Unavailable,
			"files of the search index are gone, as after a restore of the table; "+
				advice+": %v", err)
	}
	return err
}

// replace opens the index in a folder instead of the one that is open. The one before is closed now, or
// by the last search that still uses it. A folder that cannot be opened is removed.
func (x *Index) replace(r *row, dir string) (*opened, error) {
	index, err := bleve.OpenUsing(filepath.Join(dir, "index"), map[string]any{"read_only": true})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("search: open the index: %w", err), os.RemoveAll(dir))
	}
	before := x.open
	x.open = &opened{index: index, row: r, dir: dir, users: 1}
	if before != nil {
		err = before.leave()
	}
	return x.open, err
}

// local is the path of a downloaded file. It is named by the digest of the content: files of different
// snapshots that are the same are there once.
func (x *Index) local(f file) string { return filepath.Join(x.Dir, "files", f.SHA256) }

// checkout downloads the files of a snapshot that are not here yet, and makes a folder whose "index" is
// that snapshot. The caller owns the folder and removes it. Index.mu must be held. A file that is not
// in the bucket is a NotFound.
func (x *Index) checkout(ctx context.Context, r *row) (dir string, err error) {
	if err := x.fits(r.size()); err != nil {
		return "", err
	}

	if err := x.clean(r); err != nil {
		return "", err
	}

	g, down := errgroup.WithContext(ctx)
	g.SetLimit(readers)
	for _, f := range r.Files {
		g.Go(func() error { return x.download(down, f) })
	}

	if err := g.Wait(); err != nil {
		return "", err
	}

	dir, err = os.MkdirTemp(x.Dir, "snapshot-")
	if err != nil {
		return "", err
	}

	for _, f := range r.Files {
		to := filepath.Join(dir, "index", f.Name)
		err = errors.Join(err, os.MkdirAll(filepath.Dir(to), 0o700), place(x.local(f), to))
	}
	return dir, err
}

// clean removes what is not needed from the folder: files that are in neither the snapshot nor the open
// one, and, at the beginning, what a process before has left. It makes room before a snapshot is
// downloaded. Index.mu must be held: no download is under way, so nothing that is needed is removed.
func (x *Index) clean(r *row) error {
	keep := map[string]bool{}
	for _, f := range r.Files {
		keep[f.SHA256] = true
	}

	if x.open != nil {
		for _, f := range x.open.row.Files {
			keep[f.SHA256] = true
		}
	}

	files := filepath.Join(x.Dir, "files")
	if err := os.MkdirAll(files, 0o700); err != nil {
		return err
	}

	if err := removeBut(files, keep); err != nil || x.open != nil || x.begun {
		return err
	}

	x.begun = true
	return removeBut(x.Dir, map[string]bool{"files": true})
}

// removeBut removes what is in a folder, except some names. It ends at the first error.
func removeBut(dir string, keep map[string]bool) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}

	for _, e := range entries {
		if keep[e.Name()] {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// place makes a file of a snapshot: a link, or, of the file that bleve may write, a copy. A link costs
// no space; the list of segments is small.
func place(from, to string) error {
	if filepath.Base(to) != listName {
		return os.Link(from, to)
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o600)
}

// download downloads a file and verifies it, unless it is here. It has its name only when it is
// complete. One byte more than its size is read at most, so that a file that is too long has another
// digest and is refused. A size that fits is enough for a file that is here: its name is its digest,
// and it was verified before it got that name.
func (x *Index) download(ctx context.Context, f file) error {
	to := x.local(f)
	if info, err := os.Stat(to); err == nil && info.Size() == f.Size {
		return nil
	}

	body, _, err := x.Bucket.Open(ctx, f.Key)
	if err != nil {
		return err
	}

	defer body.Close()
	part, err := os.CreateTemp(filepath.Dir(to), "part-")
	if err != nil {
		return err
	}

	defer os.Remove(part.Name())
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(part, sum), io.LimitReader(body, f.Size+1))
	if err := errors.Join(err, part.Close()); err != nil {
		return fmt.Errorf("search: download %s: %w", f.Key, err)
	}

	if found := hex.EncodeToString(sum.Sum(nil)); found != f.SHA256 {
		return fmt.Errorf("search: %s has the sha256 %s, not %s: it is damaged; "+advice, f.Key,
			found, f.SHA256)
	}
	return os.Rename(part.Name(), to)
}
