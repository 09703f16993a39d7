package container

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"path"
	"slices"
	"strings"

	"archivist/pkg/formats/checkm"
)

// Limits are what a container may become. A container beyond them is refused: it would fill the storage.
type Limits struct {
	Files int   // at most
	Bytes int64 // of all files together
	// Ratio is how many times the container's size the files may have together. It counts above 64 MiB.
	Ratio int64
}

// freeOfRatio is how many bytes a container may become whatever its size: text can be packed a thousand times.
const freeOfRatio = 64 << 20

// DefaultLimits are those without a setting.
var DefaultLimits = Limits{Files: 200_000, Bytes: 5 << 40, Ratio: 200}

// File is a file of a container.
type File struct {
	Name string `json:"name"`           // its path, in UTF-8
	Raw  string `json:"raw,omitempty"`  // the bytes of its name in the container, percent-encoded, if they are others
	Size int64  `json:"size,omitempty"` // bytes
	// Modified is in RFC 3339; without an offset if the time zone is not known, "" if there is no time.
	Modified string `json:"modified,omitempty"`
	Warning  string `json:"warning,omitempty"` // about its name
}

// RefusedError says why a container is not accepted. Another try gives the same.
type RefusedError struct {
	Name string // of the entry; "" = the container as a whole
	Why  string
}

// Error has the name of the entry.
func (e *RefusedError) Error() string {
	if e.Name == "" {
		return "the container: " + e.Why
	}
	return fmt.Sprintf("the entry %q of the container: %s", cut(e.Name), e.Why)
}

// cut shortens a name for a message.
func cut(name string) string {
	const most = 200
	if len(name) > most {
		return strings.ToValidUTF8(name[:most], "") + "…"
	}
	return name
}

func refuse(name, format string, args ...any) error {
	return &RefusedError{name, fmt.Sprintf(format, args...)}
}

// State is where a reader is. It is saved as JSON.
type State struct {
	Files  int             `json:"files"`           // that have begun
	Bytes  int64           `json:"bytes"`           // of them that were read
	File   *File           `json:"file,omitempty"`  // that is not read to its end
	Read   int64           `json:"read,omitempty"`  // bytes of it
	CRC    uint32          `json:"crc,omitempty"`   // of these bytes
	At     json.RawMessage `json:"at"`              // of the container's own format
	Stream json.RawMessage `json:"stream,omitzero"` // of the data of the file, or of the whole

	Folders []string `json:"folders,omitempty"` // entries that are folders, see Empty
	Ended   bool     `json:"ended,omitempty"`   // all files were read
}

// entries are the entries of a container of one format. Errors are a *RefusedError, a *corruptError, or those of the
// container's source.
type entries interface {
	// next goes to the next file. io.EOF: there is none.
	next() (*File, error)
	// read reads from it; io.EOF is its end.
	read(p []byte) (int, error)
	// ended checks the CRC-32 of a file that was read to its end.
	ended(crc uint32) error
	save(s *State) error
	resume(s State) error
}

// Reader reads the files of a container. It belongs to one goroutine.
type Reader struct {
	entries
	limits Limits
	size   int64 // of the container
	source *source
	state  State
	names  *checkm.Names
	beside struct {
		files int
		bytes int64
	}

	// Warning is about the container itself, "" for none. Its files are all there.
	Warning string
}

// Seen notes a file that was read before the state of the reader was saved: no other may have its name.
func (r *Reader) Seen(name string) { r.names.Add(name) }

// Taken reports whether a file of the container, or one of its folders, has a name.
func (r *Reader) Taken(name string) bool {
	c := r.names.Add(name)
	return c.Same > 0 || c.Folder > 0 || c.File > 0
}

// mostFolders is how many entries that are folders are remembered.
const mostFolders = 1000

// folder notes an entry that is a folder, unless it has a file already.
func (r *Reader) folder(name string) {
	name = clean(name)
	if name != "" && name != "." && !r.names.Folder(name) && len(r.state.Folders) < mostFolders {
		r.state.Folders = append(r.state.Folders, name)
	}
}

// Empty are folders of the container without a file, when all files were read: they are not kept. Of very many, it
// names some.
func (r *Reader) Empty() []string {
	return slices.DeleteFunc(slices.Clone(r.state.Folders), r.names.Folder)
}

// Bytes is how much was read of all files.
func (r *Reader) Bytes() int64 { return r.state.Bytes }

// Current is the file of the reader, nil if it is between two, and how much of it was read.
func (r *Reader) Current() (file *File, read int64) { return r.state.File, r.state.Read }

// Next goes to the next file. io.EOF: all were read. The one before must be read to its end.
func (r *Reader) Next() (*File, error) {
	switch {
	case r.state.File != nil:
		return nil, errors.New("container: a file was not read to its end")
	case r.state.Ended: // the end mark of a tar file is not found twice
		return nil, io.EOF
	}

	f, err := r.next()
	if err == io.EOF && r.state.Files == 0 {
		err = refuse("", "it has no files")
	}
	r.state.Ended = err == io.EOF
	if _, _, known := r.Total(); err == nil && !known {
		err = r.admit(f)
	}

	if err != nil {
		return nil, r.told(err)
	}

	r.state.Files++
	r.state.File, r.state.Read, r.state.CRC = f, 0, 0
	return f, nil
}

// admit checks a file against the limits and the files before.
func (r *Reader) admit(f *File) error {
	size := r.state.Bytes + f.Size
	err := r.allow(f, r.state.Files, size)
	if err == nil && size > freeOfRatio && size/r.limits.Ratio > r.size {
		err = refuse("", "its files have more than %d times its size of %d bytes. Submit the files themselves, or "+
			"raise the limit in the profile of the collection", r.limits.Ratio, r.size)
	}
	return err
}

// Beside checks a file that will be kept beside those of the container, once all of these were read: it counts as they
// do, and may not have the name of another.
func (r *Reader) Beside(f *File) error {
	err := r.allow(f, r.state.Files+r.beside.files, r.state.Bytes+r.beside.bytes+f.Size)
	r.beside.files, r.beside.bytes = r.beside.files+1, r.beside.bytes+f.Size
	return err
}

// allow checks a file's name, and that it is allowed after so many others. size is that of all, with it.
func (r *Reader) allow(f *File, before int, size int64) error {
	if why := checkm.BadName(f.Name); why != "" {
		if f.Name == "" {
			return refuse("", "an entry has no name")
		}
		return refuse(f.Name, "its name %s", why)
	}

	switch {
	case before >= r.limits.Files:
		return refuse("", "it has more than %d files. Split it, or raise the limit in the collection's profile",
			r.limits.Files)
	case size < 0 || size > r.limits.Bytes:
		return refuse("", "its files have more than %d bytes together. Split it, or raise the limit in the profile of "+
			"the collection", r.limits.Bytes)
	}

	c := r.names.Add(f.Name)
	switch {
	case c.Same > 0:
		return refuse(f.Name, "another entry has the same name")
	case c.Folder > 0:
		return refuse(f.Name, "its name is also that of a folder")
	case c.File > 0:
		return refuse(f.Name, "its folder %q is also the name of a file", cut(c.Inside))
	case c.Alike > 0:
		f.Warning = join(f.Warning, "its name differs from another one in case or in Unicode normalization only; "+
			"some file systems treat both as one")
	}
	return nil
}

// join puts two warnings together.
func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}

// Read reads from the current file. io.EOF is its end: its size and its checksum were compared.
func (r *Reader) Read(p []byte) (n int, err error) {
	f := r.state.File
	if f == nil {
		return 0, io.EOF
	}

	left := f.Size - r.state.Read
	if int64(len(p)) > left+1 {
		p = p[:left+1] // one more: its content must not be longer than it says
	}

	n, err = r.read(p)
	if int64(n) > left {
		return 0, refuse(f.Name, "its content is longer than the %d bytes that the container says", f.Size)
	}

	r.state.CRC = crc32.Update(r.state.CRC, crc32.IEEETable, p[:n])
	r.state.Read, r.state.Bytes = r.state.Read+int64(n), r.state.Bytes+int64(n)
	if err != io.EOF {
		return n, r.told(err)
	}

	if r.state.Read < f.Size {
		return n, refuse(f.Name, "its content ends after %d of %d bytes: the container was cut, or is damaged",
			r.state.Read, f.Size)
	}

	if err := r.ended(r.state.CRC); err != nil {
		return n, r.told(err)
	}
	r.state.File, r.state.Read, r.state.CRC = nil, 0, 0
	return n, io.EOF
}

// told is an error as a *RefusedError if it is the container's fault, with the name of the entry; that of the source
// comes first.
func (r *Reader) told(err error) error {
	refused := new(RefusedError)
	switch {
	case err == nil || err == io.EOF || errors.As(err, &refused):
		return err
	case r.source.err != nil:
		return r.source.err
	}

	name := ""
	if r.state.File != nil {
		name = r.state.File.Name
	}
	return refuse(name, "%v", err)
}

// State is where the reader is: Open goes on there. After an error there is none.
func (r *Reader) State() (State, error) {
	s := r.state
	err := r.save(&s)
	return s, err
}

// source notes the failure of a source, which is not the container's fault.
type source struct {
	from io.ReaderAt
	err  error
	// most, if it is set, is how many bytes are read at most; read is how many were.
	most, read int64
}

func (s *source) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 { // archive/zip reads wherever a directory says
		return 0, corrupt("it refers to something before its beginning")
	}
	n, err := s.from.ReadAt(p, off)
	s.read += int64(n)
	switch {
	case err != nil && err != io.EOF:
		s.err = err
	case s.most > 0 && s.read > s.most:
		return 0, corrupt("its directory has more than %d bytes: these are too many files. Split it, or raise the "+
			"limit in the profile of the collection", s.most)
	}
	return n, err
}

// clean is the path of an entry as programs unpack it: "./a" is "a". A path that leads elsewhere stays as it is, to be
// refused.
func clean(name string) string {
	for strings.HasPrefix(name, "./") {
		name = strings.TrimLeft(name[2:], "/")
	}
	if strings.HasPrefix(name, "/") || strings.Contains("/"+name+"/", "/../") {
		return name
	}
	if c := path.Clean(name); name != "" {
		return c
	}
	return name
}
