// Package object reads preserved objects as archives: revision n is the stored version n, its transaction the
// digest of that version's inventory, its files those of the producer. Versions never change, so what was read of
// one stays true.
package object

import (
	"bytes"
	"context"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"iter"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"archivist/pkg/aip"
	"archivist/pkg/archive"
	"archivist/pkg/fault"
	"archivist/pkg/ocfl"
	"archivist/pkg/workflow"
)

// Source is an object.
type Source struct {
	location archive.Location
	root     ocfl.Root
	limits   archive.Limits

	mu    sync.Mutex
	known *ocfl.Stored
}

// Open is the object at a location, which has been checked. It asks nothing of the storage root.
func Open(l archive.Location, root ocfl.Root, limits archive.Limits) *Source {
	return &Source{location: l, root: root, limits: limits.Or(archive.DefaultLimits)}
}

// producer begins the paths of the files that are the archive's.
const producer = "producer/"

// Head is the number of the newest version, 0 if there is no such object yet.
func (s *Source) Head(ctx context.Context) (int64, error) {
	stored, err := s.read(ctx)
	if fault.Is(err, fault.NotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return int64(stored.Head), nil
}

// read reads the object as it is now.
func (s *Source) read(ctx context.Context) (*ocfl.Stored, error) {
	stored, err := s.root.Head(ctx, s.location.ARK)
	if err != nil {
		return nil, s.kind(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = stored
	return stored, nil
}

// kind gives an error of the storage root its kind.
func (s *Source) kind(err error) error {
	if err == nil || fault.Of(err) != "" {
		return err
	}
	return fault.New(fault.Unavailable, "%s: %w", s.location, err)
}

// damaged is the error of an object that lacks something.
func (s *Source) damaged(n int64, err error) error {
	if fault.Is(err, fault.NotFound) {
		return fault.New(fault.Invalid, "version %d of %s is damaged: %w", n, s.location, err)
	}
	return s.kind(err)
}

// at is the object with version n.
func (s *Source) at(ctx context.Context, n int64) (*ocfl.Stored, error) {
	s.mu.Lock()
	stored := s.known
	s.mu.Unlock()
	if stored == nil || n > int64(stored.Head) {
		var err error
		stored, err = s.read(ctx)
		if fault.Is(err, fault.NotFound) {
			return nil, fault.New(fault.NotFound, "version %d cannot be read: %s is not in the storage root", n,
				s.location)
		}
		if err != nil {
			return nil, err
		}
	}
	if n < 1 || n > int64(stored.Head) {
		return nil, archive.Missing(s.location, n, int64(stored.Head))
	}
	return stored, nil
}

// Revision describes a version.
func (s *Source) Revision(ctx context.Context, n int64) (r archive.Revision, err error) {
	stored, err := s.at(ctx, n)
	if err != nil {
		return r, err
	}
	digest, err := s.root.VersionDigest(ctx, stored, int(n))
	if err != nil {
		return r, s.damaged(n, err)
	}
	v := stored.Versions[int(n)]
	r = archive.Revision{Number: n, Transaction: digest, Time: v.Created.UTC(),
		Message: archive.Cut(v.Message, archive.MaxMessage), Token: archive.Token(v.Message)}
	if v.User != nil {
		author := v.User.Name
		if v.User.Address != "" {
			author += " <" + strings.TrimPrefix(v.User.Address, "mailto:") + ">"
		}
		r.Author = archive.Cut(author, archive.MaxAuthor)
	}
	return r, nil
}

// file is a file of a version. The zero value is behind the last one.
type file struct {
	path, sha512 string
}

// files lists the files of a version by path. It ends after an error.
func (s *Source) files(ctx context.Context, stored *ocfl.Stored, n int64) iter.Seq2[file, error] {
	return func(yield func(file, error) bool) {
		list, err := s.root.Open(ctx, stored, int(n), aip.ListName, 0)
		if err != nil {
			yield(file{}, s.damaged(n, err))
			return
		}
		defer list.Close()
		count := 0
		for e, err := range aip.ReadList(list) {
			count++
			if err == nil && count > s.limits.Files {
				err = fault.New(fault.Invalid, "version %d of %s has more than %d files", n, s.location, s.limits.Files)
			}
			if err != nil {
				yield(file{}, s.kind(err))
				return
			}
			if !yield(file{strings.TrimPrefix(e.Path, producer), e.Digests["sha512"]}, nil) {
				return
			}
		}
	}
}

// Workflows reads the files of definitions of a version.
func (s *Source) Workflows(ctx context.Context, n int64) ([]workflow.File, error) {
	stored, err := s.at(ctx, n)
	if err != nil {
		return nil, err
	}
	var found archive.Workflows
	for f, err := range s.files(ctx, stored, n) {
		if err != nil {
			return nil, err
		}
		err = found.Add(f.path, func(most int64) ([]byte, error) {
			key, err := s.root.Content(ctx, stored, f.sha512)
			if err != nil {
				return nil, s.damaged(n, err)
			}
			var b bytes.Buffer
			err = s.open(ctx, n, key, func(r io.Reader) error {
				_, err := io.Copy(&b, io.LimitReader(r, most))
				return err
			})
			return b.Bytes(), err
		})
		if err != nil {
			return nil, err
		}
	}
	return found.Sorted(), nil
}

// open calls use with the content at a key.
func (s *Source) open(ctx context.Context, n int64, key string, use func(io.Reader) error) error {
	body, _, err := s.root.Bucket.Open(ctx, key)
	if err != nil {
		return s.damaged(n, err)
	}
	defer body.Close()
	return s.kind(use(body))
}

// Changed compares the digests of the files of two versions.
func (s *Source) Changed(ctx context.Context, base, n int64) (paths []string, err error) {
	stored, err := s.at(ctx, max(base, n))
	if err != nil {
		return nil, err
	}
	if base < 0 || n < 1 {
		return nil, archive.Missing(s.location, min(base, n), int64(stored.Head))
	}
	none := func(func(file, error) bool) {}
	before := iter.Seq2[file, error](none)
	if base > 0 {
		before = s.files(ctx, stored, base)
	}
	a, stopA := iter.Pull2(before)
	defer stopA()
	b, stopB := iter.Pull2(s.files(ctx, stored, n))
	defer stopB()
	return differences(a, b)
}

// differences compares two lists that are sorted by path.
func differences(a, b func() (file, error, bool)) (paths []string, err error) {
	was, errA, _ := a()
	is, errB, _ := b()
	for errA == nil && errB == nil && was.path+is.path != "" {
		next := first(was.path, is.path)
		if was.path != is.path || was.sha512 != is.sha512 {
			paths = append(paths, next)
		}
		if was.path == next {
			was, errA, _ = a()
		}
		if is.path == next {
			is, errB, _ = b()
		}
	}
	return paths, errors.Join(errA, errB)
}

// first is the first of two paths; "" is that of no file.
func first(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return min(a, b)
}

// Bounds of a checkout.
const (
	page   = 10_000 // entries of a manifest that are read at once
	atOnce = 8      // files that are brought at the same time
)

// Checkout brings the files of a version, and compares them with their digests.
func (s *Source) Checkout(ctx context.Context, n int64, folder string) error {
	stored, err := s.at(ctx, n)
	if err != nil {
		return err
	}
	paths := map[string][]string{} // by digest
	for f, err := range s.files(ctx, stored, n) {
		if err != nil {
			return err
		}
		paths[f.sha512] = append(paths[f.sha512], f.path)
	}
	w, err := archive.NewWriter(folder, s.limits)
	if err != nil {
		return err
	}
	if err := s.bring(ctx, n, paths, w); err != nil {
		w.Abort()
		return err
	}
	return w.Close()
}

// bring writes the files whose paths are given by digest. Where their content is, is in the manifest of the object.
func (s *Source) bring(ctx context.Context, n int64, paths map[string][]string, w *archive.Writer) error {
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	left := len(paths)
	err := error(nil)
	for from, more := (ocfl.Place{}), true; more && err == nil && within.Err() == nil; {
		var entries []ocfl.Entry
		entries, err = s.root.Manifest(ctx, s.location.ARK, from, page)
		more = len(entries) == page
		for _, e := range entries {
			from = e.Next
			for _, path := range paths[e.Digest] {
				group.Go(func() error { return s.write(within, n, w, path, e) })
			}
			if paths[e.Digest] != nil {
				left--
			}
		}
	}
	if failed := group.Wait(); failed != nil {
		return failed
	}
	if err != nil {
		return s.damaged(n, err)
	}
	if left > 0 {
		return fault.New(fault.Invalid, "version %d of %s is damaged: %d of its files have no content", n, s.location,
			left)
	}
	return nil
}

func (s *Source) write(ctx context.Context, n int64, w *archive.Writer, path string, e ocfl.Entry) error {
	if len(e.Paths) == 0 {
		return fault.New(fault.Invalid, "version %d of %s is damaged: %s has no content", n, s.location, path)
	}
	sum := sha512.New()
	err := s.open(ctx, n, ocfl.Prefix(s.location.ARK)+e.Paths[0], func(r io.Reader) error {
		return w.File(path, false, io.TeeReader(r, sum))
	})
	if err != nil {
		return err
	}
	return s.compare(n, path, sum, e.Digest)
}

func (s *Source) compare(n int64, path string, sum hash.Hash, digest string) error {
	if got := hex.EncodeToString(sum.Sum(nil)); got != digest {
		return fault.New(fault.Invalid, "version %d of %s is damaged: %s has the sha512 %s instead of %s", n,
			s.location, path, got, digest)
	}
	return nil
}
