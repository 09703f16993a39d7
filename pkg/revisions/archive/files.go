package archive

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"archivist/pkg/kernel/fault"
)

// Limits bound what a revision may have, so that one does not fill the disk. Zero: DefaultLimits.
type Limits struct {
	Files int   // files, links and folders
	Bytes int64 // of the files
}

// DefaultLimits fit into the 10 GiB that a Lambda function can have in /tmp.
var DefaultLimits = Limits{Files: 500_000, Bytes: 4 << 30}

// Or is the limits, or those of d where there are none.
func (l Limits) Or(d Limits) Limits {
	if l.Files == 0 {
		l.Files = d.Files
	}
	if l.Bytes == 0 {
		l.Bytes = d.Bytes
	}
	return l
}

// Writer writes the files of a revision below a folder. No path leads out of it: neither one that
// is given, nor a link. Links are made by Close, when all files are there: so no file is written
// through one. Several files may be written at the same time; Close or Abort ends it.
//
// Its errors are an Invalid if the archive has what cannot be written, and an Unavailable if the
// disk does not let it.
type Writer struct {
	root  *os.Root
	most  Limits
	bytes atomic.Int64
	mu    sync.Mutex
	files int

	// Folders that are there: most files share one.
	made  map[string]bool
	links map[string]string // targets by path
	order []string          // paths of the links
}

// NewWriter writes below a folder that exists. The folder is opened once (os.Root), so that nobody
// can put a link in its place.
func NewWriter(folder string, most Limits) (*Writer, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, fault.New(fault.Unavailable, "the folder of a checkout: %w", err)
	}
	return &Writer{
		root:  root,
		most:  most.Or(DefaultLimits),
		made:  map[string]bool{},
		links: map[string]string{},
	}, nil
}

// File writes a file: all of r. An error of r is returned as it is, so that who reads can tell it
// from others. A file that is there already clashes with another path, and is an Invalid.
func (w *Writer) File(name string, executable bool, r io.Reader) error {
	if err := w.add(name); err != nil {
		return err
	}

	if err := w.parent(name); err != nil {
		return err
	}

	f, err := w.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return unwritable(name, err)
	}

	mode := fs.FileMode(0o644)
	if executable {
		mode = 0o755
	}

	readErr, err := copyAll(f, &summed{r, w})
	err = errors.Join(err, f.Chmod(mode), f.Close())
	switch {
	case readErr != nil:
		return readErr
	case err != nil:
		return unwritable(name, err)
	}
	return nil
}

// summed adds up the bytes of all files, and ends one with which there are too many. Files are
// written at the same time, so the sum is atomic.
type summed struct {
	from io.Reader
	w    *Writer
}

// Read reads the next bytes.
func (s *summed) Read(p []byte) (int, error) {
	n, err := s.from.Read(p)
	if s.w.bytes.Add(int64(n)) > s.w.most.Bytes {
		return 0, fault.New(fault.Invalid, "the files of the revision have more than %d bytes",
			s.w.most.Bytes)
	}
	return n, err
}

// copyAll copies; it returns errors of reading and of writing apart: one is of the archive, the
// other of the disk.
func copyAll(to io.Writer, from io.Reader) (readErr, writeErr error) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			_, writeErr = to.Write(buffer[:n])
		}
		if writeErr != nil || err == io.EOF {
			return nil, writeErr
		}
		if err != nil {
			return err, nil
		}
	}
}

// Folder makes a folder, which may be there already.
func (w *Writer) Folder(name string) error {
	if err := w.add(name); err != nil {
		return err
	}
	if err := w.root.MkdirAll(name, 0o755); err != nil {
		return unwritable(name, err)
	}
	return nil
}

// Link notes a symbolic link. Close refuses it if it leads out of the folder: that depends on the
// other links.
func (w *Writer) Link(name, target string) error {
	if err := w.add(name); err != nil {
		return err
	}

	if target == "" || len(target) > maxPath || strings.ContainsRune(target, 0) {
		return fault.New(fault.Invalid, "the link %q has no target that can be made", name)
	}

	w.mu.Lock()
	defer w.mu.Unlock()
	w.links[name] = target
	w.order = append(w.order, name)
	return nil
}

// Close makes the links, if all of them stay inside; else it makes none. Abort ends without them.
func (w *Writer) Close() error {
	defer w.root.Close()
	for _, name := range w.order {
		if leadsOut(name, w.links) {
			return fault.New(fault.Invalid,
				"the link %q leads to %q, which is outside of the archive", name,
				w.links[name])
		}
	}

	for _, name := range w.order {
		if err := w.parent(name); err != nil {
			return err
		}
		if err := w.root.Symlink(w.links[name], name); err != nil {
			return unwritable(name, err)
		}
	}
	return nil
}

// Abort releases the folder after an error.
func (w *Writer) Abort() { _ = w.root.Close() }

// parent makes the folder of a path, if it was not made before.
func (w *Writer) parent(name string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	folder := path.Dir(name)
	if folder == "." || w.made[folder] {
		return nil
	}

	if err := w.root.MkdirAll(folder, 0o755); err != nil {
		return unwritable(name, err)
	}

	w.made[folder] = true
	return nil
}

// add counts a file, link or folder, and checks its path.
func (w *Writer) add(name string) error {
	w.mu.Lock()
	w.files++
	files := w.files
	w.mu.Unlock()
	if files > w.most.Files {
		return fault.New(fault.Invalid, "the revision has more than %d files", w.most.Files)
	}
	return CheckPath(name)
}

// maxPath and maxName bound paths and their parts in bytes, as Linux does.
const maxPath, maxName = 4095, 255

// CheckPath refuses a path that does not lead to a file below the root of an archive, or cannot be
// written: its error is an Invalid. Paths have slashes.
func CheckPath(name string) error {
	bad := ""
	switch {
	case !filepath.IsLocal(name) || name == "." || path.Clean(name) != name:
		bad = "it does not lead to a file in the archive"
	case strings.ContainsRune(name, 0):
		bad = "it has a character with the number 0"
	case len(name) > maxPath:
		bad = fmt.Sprintf("it has more than %d bytes", maxPath)
	}

	for part := range strings.SplitSeq(name, "/") {
		if len(part) > maxName {
			bad = fmt.Sprintf("a part of it has more than %d bytes", maxName)
		}
	}

	if bad != "" {
		return fault.New(fault.Invalid, "the path %q: %s", shortened(name), bad)
	}
	return nil
}

// shortened cuts a path for a message.
func shortened(name string) string {
	if len(name) > 200 {
		return name[:200] + "…"
	}
	return name
}

// unwritable is why a file could not be written: because of the archive (an Invalid: the path
// clashes with another, or the file system cannot have it), or of the disk (an Unavailable).
func unwritable(name string, err error) error {
	for _, clash := range []error{fs.ErrExist, syscall.ENOTDIR, syscall.EISDIR, syscall.EILSEQ,
		syscall.EINVAL} {
		if errors.Is(err, clash) {
			return fault.New(fault.Invalid,
				"the path %q clashes with another one of the archive: %w", name, err)
		}
	}
	return fault.New(fault.Unavailable, "the file %q could not be written: %w", name, err)
}

// mostFollowed is how many links are followed; Linux follows no more than 40.
const mostFollowed = 50

// leadsOut reports whether a link leads out of the folder, if all links were made: it goes the way
// that the system would go, part by part. A file that is not there counts as a folder: a later step
// may make it one. Links are by path; one that is absolute leads out. A cycle of links leads
// nowhere, and is harmless.
func leadsOut(name string, links map[string]string) bool {
	var at []string // where the walk is
	left := strings.Split(name, "/")
	for followed := 0; len(left) > 0; {
		part := left[0]
		left = left[1:]
		switch part {
		case "", ".":
			continue
		// Above the folder there is nothing of the archive.
		case "..":
			if len(at) == 0 {
				return true
			}
			at = at[:len(at)-1]
			continue
		}

		at = append(at, part)
		target, isLink := links[strings.Join(at, "/")]
		if !isLink {
			continue
		}

		if path.IsAbs(target) {
			return true
		}

		followed++
		if followed > mostFollowed {
			return false // a cycle
		}

		at = at[:len(at)-1]
		left = append(strings.Split(target, "/"), left...)
	}
	return false
}
