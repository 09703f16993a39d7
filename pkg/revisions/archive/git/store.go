package git

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/revisions/archive"
)

// store has the objects of a repository, and the commits of its revisions. It is used by one call,
// which has locked the folder.
type store struct {
	source  *Source
	objects *filesystem.Storage

	// The file with the hashes of the revisions, one after the other, that of revision 1 first.
	list   string
	hashes []byte // its content

	// Entries of trees that this call has looked at: see count1.
	walked   int
	location archive.Location
}

// largeObject is from how many bytes on an object is read as a stream instead of into memory.
const largeObject = 1 << 20

// cachedObjects is how many bytes of objects are kept in memory.
const cachedObjects = 16 << 20

// errDamaged is the cause of each error of a repository that has something else than it should. Of
// a cache, it is the reason to make it anew.
var errDamaged = errors.New("damaged")

// damaged is an error of a repository that is damaged: an Invalid whose cause is errDamaged.
func (s *store) damaged(format string, args ...any) error {
	err := fault.New(fault.Invalid, "%s is damaged: "+format,
		append([]any{s.location.URL}, args...)...)
	return &fault.Error{Kind: fault.Invalid, Msg: err.Error(), Err: errDamaged}
}

// reopen makes the objects that a fetch has brought visible: the library lists packs only once.
func (s *store) reopen() {
	s.objects = filesystem.NewStorageWithOptions(osfs.New(s.source.folder.repository,
		osfs.WithBoundOS()),
		cache.NewObjectLRU(cachedObjects), filesystem.Options{LargeObjectThreshold: largeObject})
}

// hashSize is how many bytes a hash has.
const hashSize = len(plumbing.Hash{})

// count is how many revisions are known, which is the number of the newest of them.
func (s *store) count() int64 { return int64(len(s.hashes) / hashSize) }

// revision is the commit of revision n, which is known (from 1 to count).
func (s *store) revision(n int64) (h plumbing.Hash, err error) {
	copy(h[:], s.hashes[(n-1)*int64(hashSize):])
	return h, nil
}

// last is the commit of the newest revision that is known, zero if there is none.
func (s *store) last() (h plumbing.Hash) {
	if s.count() > 0 {
		h, _ = s.revision(s.count())
	}
	return h
}

// some are commits of the known revisions, closer to each other towards the newest (1, 2, 4, 8 …
// back): if the history was rewritten, the repository still has one of them, and sends only what is
// newer. There are few of them, however long the history is.
func (s *store) some() (out []plumbing.Hash) {
	for back := int64(1); back <= s.count(); back *= 2 {
		h, _ := s.revision(s.count() - back + 1)
		out = append(out, h)
	}
	return out
}

// extend adds the revisions up to tip, whose objects are all there. It walks back by first parents
// until it meets the last known commit; if it comes to the root instead, the history was rewritten,
// and all of it is new. A crash while the file is extended leaves known hashes, perhaps a part of
// one, which open leaves out.
func (s *store) extend(ctx context.Context, tip plumbing.Hash) error {
	s.reopen()
	var added []plumbing.Hash // from the newest
	last := s.last()
	for at := tip; at != last; {
		added = append(added, at)
		c, err := s.commit(at)
		if err != nil {
			return err
		}

		if ctx.Err() != nil {
			return ctx.Err()
		}

		// No known commit is among the first parents of tip.
		if len(c.ParentHashes) == 0 {
			return s.rewrite(added) // to the root: all of it is new
		}

		at = c.ParentHashes[0]
	}

	slices.Reverse(added)
	var more []byte
	for _, h := range added {
		more = append(more, h[:]...)
	}

	err := s.writeAt(more, int64(len(s.hashes)))
	if err != nil {
		return fault.New(fault.Unavailable, "the cache of the repository: %w", err)
	}

	s.hashes = append(s.hashes, more...)
	return nil
}

// writeAt writes hashes at a place of the list, in bytes: over what a crash has left there.
func (s *store) writeAt(hashes []byte, at int64) error {
	f, err := os.OpenFile(s.list, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(hashes, at)
	return errors.Join(err, f.Close())
}

// rewrite replaces the revisions by others, which are given from the newest on. The list is
// replaced in one step: after a crash it is the old or the new one.
func (s *store) rewrite(all []plumbing.Hash) error {
	s.hashes = nil
	for _, h := range slices.Backward(all) {
		s.hashes = append(s.hashes, h[:]...)
	}

	err := os.WriteFile(s.list+".new", s.hashes, 0o600)
	if err != nil {
		return fault.New(fault.Unavailable, "the cache of the repository: %w", err)
	}

	err = os.Rename(s.list+".new", s.list)
	if err != nil {
		return fault.New(fault.Unavailable, "the cache of the repository: %w", err)
	}
	return nil
}

// commit reads a commit. One that is missing is damage: it was fetched with what names it.
func (s *store) commit(h plumbing.Hash) (*object.Commit, error) {
	c, err := object.GetCommit(s.objects, h)
	if err != nil {
		return nil, s.damaged("commit %s: %w", h, err)
	}
	return c, nil
}

// tree reads a tree; the zero hash is an empty one.
func (s *store) tree(h plumbing.Hash) (*object.Tree, error) {
	if h.IsZero() {
		return &object.Tree{}, nil
	}
	t, err := object.GetTree(s.objects, h)
	if err != nil {
		return nil, s.damaged("tree %s: %w", h, err)
	}
	return t, nil
}

// root is the tree of a commit; that of the zero commit is empty.
func (s *store) root(commit plumbing.Hash) (*object.Tree, error) {
	if commit.IsZero() {
		return s.tree(commit)
	}
	c, err := s.commit(commit)
	if err != nil {
		return nil, err
	}
	return s.tree(c.TreeHash)
}

// blob opens the content of a file, and says how many bytes it has. What cannot be read later is
// damage, too.
func (s *store) blob(h plumbing.Hash) (io.ReadCloser, int64, error) {
	b, err := object.GetBlob(s.objects, h)
	if err != nil {
		return nil, 0, s.damaged("file %s: %w", h, err)
	}
	r, err := b.Reader()
	if err != nil {
		return nil, 0, s.damaged("file %s: %w", h, err)
	}
	return &content{r, s, h, b.Size}, b.Size, nil
}

// content is that of a file. What cannot be read is damaged, also what ends too early: else a cut
// file would be taken for the file.
type content struct {
	io.ReadCloser
	store *store
	hash  plumbing.Hash
	left  int64
}

// Read reads the next bytes.
func (c *content) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.left -= int64(n)
	switch {
	case err == io.EOF && c.left == 0, err == nil:
		return n, err
	case err == io.EOF:
		return n, c.store.damaged("file %s: %d bytes are missing", c.hash, c.left)
	}
	return n, c.store.damaged("file %s: %w", c.hash, err)
}
