// Package object reads preserved objects as archives: revision n is the stored version n (OCFL),
// its transaction the digest of that version's inventory, its files those of the producer. Versions
// never change, so what was read of one stays true.
//
// What belongs to the system (descriptions, lists) is not among the files. Objects have no links,
// and no file is executable.
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

	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/aip"
	"archivist/pkg/objects/ocfl"
	"archivist/pkg/revisions/archive"
	"archivist/pkg/revisions/workflow"
)

// Source is an object. known is its root inventory as it was read last, nil before that: versions
// that it has are read by it, and a newer one lets it be read again.
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

// producer begins the paths of the files that are the archive's, in an object.
const producer = "producer/"

// Head is the number of the newest version, 0 if there is no such object yet: an archive can be
// registered before its object is stored.
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

// read reads the object as it is now, and keeps that. One that is not there is a NotFound.
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

// kind gives an error of the storage root its kind: without one, it may pass (an Unavailable). nil
// stays nil.
func (s *Source) kind(err error) error {
	if err == nil || fault.Of(err) != "" {
		return err
	}
	return fault.New(fault.Unavailable, "%s: %w", s.location, err)
}

// damaged is the error of an object that lacks something: a version that its inventory names, or a
// file that the version has, is missing in the storage. Other errors keep their kind.
func (s *Source) damaged(n int64, err error) error {
	if fault.Is(err, fault.NotFound) {
		return fault.New(fault.Invalid, "version %d of %s is damaged: %w", n, s.location, err)
	}
	return s.kind(err)
}

// at is the object with version n. A version that is not there is a NotFound that says which is the
// newest.
func (s *Source) at(ctx context.Context, n int64) (*ocfl.Stored, error) {
	s.mu.Lock()
	stored := s.known
	s.mu.Unlock()
	if stored == nil || n > int64(stored.Head) {
		var err error
		stored, err = s.read(ctx)
		if fault.Is(err, fault.NotFound) {
			return nil, fault.New(fault.NotFound,
				"version %d cannot be read: %s is not in the storage root", n,
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

// Revision describes a version, by the object's inventory. Its transaction is the digest that
// events of the version have, too: so a notice and the object name it alike.
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
	r = archive.Revision{
		Number:      n,
		Transaction: digest,
		Time:        v.Created.UTC(),
		Message:     archive.Cut(v.Message, archive.MaxMessage),
		Token:       archive.Token(v.Message),
	}

	if v.User != nil {
		author := v.User.Name
		if v.User.Address != "" {
			author += " <" + strings.TrimPrefix(v.User.Address, "mailto:") + ">"
		}
		r.Author = archive.Cut(author, archive.MaxAuthor)
	}
	return r, nil
}

// file is a file of a version: its path without producer, and its digest in hexadecimal. The zero
// value is behind the last one.
type file struct {
	path, sha512 string
}

// files lists the files of a version by path, from the list that each version has. It is a stream:
// a version can have more files than fit into memory. It ends after an error.
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
			if err != nil {
				yield(file{}, s.kind(err))
				return
			}

			if count > s.limits.Files {
				yield(file{}, fault.New(fault.Invalid, "version %d of %s has more than %d files",
					n, s.location, s.limits.Files))
				return
			}

			if !yield(file{strings.TrimPrefix(e.Path, producer), e.Digests["sha512"]}, nil) {
				return
			}
		}
	}
}

// Workflows reads the files of definitions of a version: their content is found by its digest.
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

// open calls use with the content at a key of the bucket. An error of use keeps its kind.
func (s *Source) open(ctx context.Context, n int64, key string, use func(io.Reader) error) error {
	body, _, err := s.root.Bucket.Open(ctx, key)
	if err != nil {
		return s.damaged(n, err)
	}
	defer body.Close()
	return s.kind(use(body))
}

// Changed compares the digests of the files of two versions, as two sorted lists, without keeping
// them.
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

// differences compares two lists that are sorted by path. a and b give the next file, and the zero
// file behind the last. Paths that are in both with the same digest are left out.
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

// Checkout brings the files of a version, and compares them with their digests: what has changed in
// the storage is never given to a task.
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

// bring writes the files whose paths are given by digest. Where their content is, is in the
// manifest of the object (OCFL 1.1, "Manifest"), which is read in pages: it has the content of all
// versions. A digest that it does not have is damage.
func (s *Source) bring(ctx context.Context, n int64, paths map[string][]string,
	w *archive.Writer) error {
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
			// A manifest has each digest once (OCFL 1.1, "Manifest").
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
		return fault.New(fault.Invalid,
			"version %d of %s is damaged: %d of its files have no content", n, s.location, left)
	}
	return nil
}

// write brings one file. Of several paths of the same content in the manifest, any is as good as
// the first.
func (s *Source) write(ctx context.Context, n int64, w *archive.Writer, path string,
	e ocfl.Entry) error {
	if len(e.Paths) == 0 {
		return fault.New(fault.Invalid, "version %d of %s is damaged: %s has no content", n,
			s.location, path)
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

// compare compares the digest of what was read with the expected one, both in hexadecimal.
func (s *Source) compare(n int64, path string, sum hash.Hash, digest string) error {
	if got := hex.EncodeToString(sum.Sum(nil)); got != digest {
		return fault.New(fault.Invalid,
			"version %d of %s is damaged: %s has the sha512 %s instead of %s", n,
			s.location, path, got, digest)
	}
	return nil
}
