package researcher

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/fetch"
)

// Cache is a folder of recordings. Several processes can have the same: each recording is
// downloaded by one of them, and what one of them uses stays.
//
// A recording is a file named by its digest, or by its address and size if the digest is not known.
// It is written as NAME.part and renamed when it is complete; NAME.validator identifies the content
// of the part. Who writes or uses a file has a lock on it, which ends with its process.
//
// A lock belongs to an open file, not to a name: between opening a file and locking it, another
// process can remove or rename it. So after each lock it is asked whether the file is still the one
// at its path (at).
type Cache struct {
	Dir    string
	Limit  int64 // bytes; the least recently used recordings are removed. What is in use stays
	Client *fetch.Client
	Now    func() time.Time
}

// errLocal marks failures of this computer.
var errLocal = errors.New("a failure of this computer")

// local makes an error one of this computer: it says nothing of the recording, and another try
// would fail, too. nil stays nil.
func local(err error) error {
	if err == nil {
		return nil
	}
	return &fault.Error{
		Kind: fault.Unavailable,
		Msg:  "the cache cannot be used: " + err.Error(),
		Err:  errors.Join(errLocal, err),
	}
}

// freshFor is how long a recording without a digest counts as the one at its address.
const freshFor = 24 * time.Hour

// lockWait is how often a lock is asked for that another has: the wait of a download by another
// process is long, and a lock of this kind tells nobody when it is free.
const lockWait = 50 * time.Millisecond

// name is the name of the file of a recording. With a digest, recordings of different addresses are
// one file.
func (m Media) name() string {
	if m.SHA256 != "" {
		return m.SHA256
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s", m.Size, m.URL))
	return "url-" + hex.EncodeToString(sum[:])
}

// File is a recording in the cache. It stays until it is closed.
type File struct {
	Path string
	lock *flock.Flock // shared: others can read it, too, and nobody removes it
}

// Close allows the file to be removed.
func (f *File) Close() { _ = f.lock.Unlock() } // closing the file cannot lose anything

// mostTurns bounds how often a recording that was removed at once is downloaded again.
const mostTurns = 5

// Get returns a recording, which it downloads if it is not there. progress is told the bytes that
// there are, and all of them, or 0 if that is not known.
//
// An error with errLocal is one of this computer; ctx's error is returned as it is; any other is
// one of the recording or its server, Invalid if another try would fail in the same way. The caller
// closes the file.
func (c *Cache) Get(ctx context.Context, m Media, progress func(done, whole int64)) (*File, error) {
	err := os.MkdirAll(c.Dir, 0o700)
	if err != nil {
		return nil, local(err)
	}

	for range mostTurns {
		f, err := c.open(ctx, m)
		if f != nil || err != nil {
			return f, err
		}
		err = c.download(ctx, m, progress)
		if err != nil {
			return nil, err
		}
	}
	return nil, local(fmt.Errorf("the limit of %s is too small for what is in use", c.Dir))
}

// open returns a recording that is there, nil if it is not. One of another size than the curator
// says, or without a digest and too old, counts as not there, and is removed if nobody uses it. Its
// time is set to now, by which the least recently used are known.
func (c *Cache) open(ctx context.Context, m Media) (*File, error) {
	path := filepath.Join(c.Dir, m.name())
	lock := flock.New(path, flock.SetFlag(os.O_RDONLY))
	_, err := lock.TryRLockContext(ctx, lockWait)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}

	if err != nil {
		return nil, interrupted(ctx, err)
	}

	info := at(lock, path)
	usable := info != nil && (m.Size == 0 || info.Size() == m.Size)
	if !usable || m.SHA256 == "" && c.Now().Sub(born(path, info)) >= freshFor {
		_ = lock.Unlock()
		if info != nil {
			c.remove(path)
		}
		return nil, nil
	}

	now := c.Now()
	err = os.Chtimes(path, now, now)
	return &File{path, lock}, local(err)
}

// interrupted is the error of the context if that has ended.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return local(err)
}

// at describes a locked file, nil if it is no longer the one at its path.
func at(lock *flock.Flock, path string) fs.FileInfo {
	locked, err := lock.Stat()
	if err != nil {
		return nil
	}
	now, err := os.Stat(path)
	if err != nil || !os.SameFile(locked, now) {
		return nil
	}
	return now
}

// Endings of the names of files.
const (
	partOf      = ".part"
	validatorOf = ".validator"
)

// born is when a recording was downloaded: its use changes its own time, but not that of its
// validator.
func born(path string, info fs.FileInfo) time.Time {
	stamp, err := os.Stat(path + validatorOf)
	if err != nil {
		return info.ModTime()
	}
	return stamp.ModTime()
}

// remove removes a recording, or a part of one, that nobody uses, and reports whether it did. It
// does not wait for a lock: what is locked is in use.
func (c *Cache) remove(path string) bool {
	lock := flock.New(path, flock.SetFlag(os.O_RDONLY))
	free, err := lock.TryLock()
	if !free || err != nil {
		return false
	}

	defer func() { _ = lock.Unlock() }()
	if at(lock, path) == nil || os.Remove(path) != nil {
		return false
	}

	_ = os.Remove(strings.TrimSuffix(path, partOf) + validatorOf) // without its file it is not read
	return true
}

// room removes the least recently used recordings until need bytes are free. It succeeds also if
// there is not so much that can be removed: what is in use may exceed the limit for a while.
// Several processes may do it at once.
func (c *Cache) room(need int64) error {
	entries, err := os.ReadDir(c.Dir)
	if err != nil {
		return local(err)
	}

	var files []fs.FileInfo
	var total int64
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && info.Mode().IsRegular() && !strings.HasSuffix(e.Name(), validatorOf) {
			files = append(files, info)
			total += info.Size()
		}
	}

	// The time of a recording is that of its last use, that of a part the last write.
	slices.SortFunc(files, func(a, b fs.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	for _, f := range files {
		if total+need <= c.Limit {
			return nil
		}
		if c.remove(filepath.Join(c.Dir, f.Name())) {
			total -= f.Size()
		}
	}
	return nil // the rest is in use
}

// tooLarge refuses a recording for which there is never room: an Invalid, which is reported as a
// problem of it.
func (c *Cache) tooLarge(size int64) error {
	if size <= c.Limit {
		return nil
	}
	return fault.New(fault.Invalid,
		"the recording has %d bytes; this researcher takes at most %d (--cache-size)", size, c.Limit)
}
