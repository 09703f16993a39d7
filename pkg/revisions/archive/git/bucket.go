package git

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"golang.org/x/sync/errgroup"

	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
)

// inBucket is a bare repository whose files are objects in a bucket, below a prefix. It is copied
// to the cache: the references each time, of the objects only what is new. An object never changes,
// so one of the same size is the same.
type inBucket struct {
	source *Source
	bucket bucket.Bucket
	prefix string
}

// Bounds of what is read of a repository in a bucket.
const (
	// Files below refs/heads.
	mostRefs = 10_000

	// Files with objects: a repository with more of them should be packed (git gc).
	mostObjects = 200_000
	atOnce      = 16 // requests
)

// objectFile matches the files of a repository that have objects.
var objectFile = regexp.MustCompile(`^objects/([0-9a-f]{2}/[0-9a-f]{38}|pack/pack-[0-9a-f]{40}\.(pack|idx))$`)

// tip copies the references, and then reads them. Those of before are removed first: a branch that
// is gone must not be found. Of HEAD, config and packed-refs what is missing is removed, too.
func (b inBucket) tip(ctx context.Context) (plumbing.Hash, error) {
	folder := b.source.folder.repository
	err := os.RemoveAll(filepath.Join(folder, "refs"))
	if err != nil {
		return plumbing.ZeroHash,
			fault.New(fault.Unavailable, "the cache of the repository: %w", err)
	}

	err = os.MkdirAll(filepath.Join(folder, "refs", "heads"), 0o700)
	if err != nil {
		return plumbing.ZeroHash,
			fault.New(fault.Unavailable, "the cache of the repository: %w", err)
	}

	names := []string{"HEAD", "config", "packed-refs"}
	err = b.list(ctx, "refs/heads/", mostRefs,
		func(name string, _ int64) { names = append(names, name) })
	if err != nil {
		return plumbing.ZeroHash, err
	}

	for i, name := range names {
		err := b.copy(ctx, name)
		if i < 3 && fault.Is(err, fault.NotFound) {
			err = os.RemoveAll(filepath.Join(folder, name))
		}
		if err != nil {
			return plumbing.ZeroHash, b.failed(err)
		}
	}
	return b.source.tipIn(folder)
}

// failed gives an error of the bucket its kind. A file that was listed and is gone is an
// Unavailable: the repository was packed in the meantime, and another try finds the pack.
func (b inBucket) failed(err error) error {
	if kind := fault.Of(err); kind != "" && kind != fault.NotFound {
		return err
	}
	return fault.New(fault.Unavailable, "%s: %w", b.source.location.URL, err)
}

// list calls each with the files below a folder of the repository, and their sizes in bytes. Keys
// that are no paths of files are left out. More than most are an Invalid.
func (b inBucket) list(ctx context.Context, folder string, most int,
	each func(name string, size int64)) error {
	n := 0
	err := b.bucket.List(ctx, b.prefix+folder, func(o bucket.Listed) error {
		n++
		if n > most {
			return b.source.invalid(
				"has more than %d files in %s; git gc makes them fewer", most, folder)
		}
		name := strings.TrimPrefix(o.Key, b.prefix)
		if filepath.IsLocal(name) && filepath.Clean(name) == name {
			each(name, o.Size)
		}
		return nil
	})
	if err != nil {
		return b.failed(err)
	}
	return nil
}

// fetch copies the objects that are not in the cache, and removes packs that the repository does
// not have any more. A repository that is too large, or has a part of its objects elsewhere, is an
// Invalid.
func (b inBucket) fetch(ctx context.Context, _ *store, _ plumbing.Hash, _ []plumbing.Hash) error {
	if _, err := b.bucket.Head(ctx, b.prefix+"objects/info/alternates"); err == nil {
		return b.source.invalid(
			"takes objects from another repository (objects/info/alternates); git repack -a -d " +
				"makes it complete")
	}

	var missing, packs []string
	var bytes int64
	err := b.list(ctx, "objects/", mostObjects, func(name string, size int64) {
		if !objectFile.MatchString(name) {
			return
		}
		bytes += size
		packs = append(packs, filepath.Base(name))
		info, err := os.Stat(filepath.Join(b.source.folder.repository, name))
		if err != nil || info.Size() != size {
			missing = append(missing, name)
		}
	})
	if err != nil {
		return err
	}

	if bytes > b.source.deps.Most {
		return b.source.invalid("has more than %d bytes, which is the limit", b.source.deps.Most)
	}

	if err := b.removeOthers(packs); err != nil {
		return err
	}

	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, name := range missing {
		group.Go(func() error { return b.copy(ctx, name) })
	}

	if err := group.Wait(); err != nil {
		return b.failed(err) // a file that is gone: the repository was packed in the meantime
	}
	return nil
}

// removeOthers removes packs of the cache that are not among the names: after the repository was
// packed anew, they would only take space.
func (b inBucket) removeOthers(packs []string) error {
	folder := filepath.Join(b.source.folder.repository, "objects", "pack")
	entries, err := os.ReadDir(folder)
	for _, e := range entries {
		if !slices.Contains(packs, e.Name()) {
			err = errors.Join(err, os.Remove(filepath.Join(folder, e.Name())))
		}
	}

	if err != nil {
		return fault.New(fault.Unavailable, "the cache of the repository: %w", err)
	}
	return nil
}

// copy copies a file of the repository into the cache. It is there completely, or not at all: it is
// written under another name, and renamed.
func (b inBucket) copy(ctx context.Context, name string) error {
	body, _, err := b.bucket.Open(ctx, b.prefix+name)
	if err != nil {
		return err
	}

	defer body.Close()
	path := filepath.Join(b.source.folder.repository, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}

	f, err := os.CreateTemp(b.source.folder.path, partPattern)
	if err != nil {
		return err
	}

	_, err = io.Copy(f, body)
	err = errors.Join(err, f.Close())
	if err != nil {
		_ = os.Remove(f.Name())
		return err
	}

	err = os.Rename(f.Name(), path)
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
