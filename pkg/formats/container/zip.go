package container

import (
	"archive/zip"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"math"
)

// zipFiles are the files of a zip file, in the order of its directory.
type zipFiles struct {
	size  int64
	files []zipFile
	bytes int64 // of all files

	i     int // of the current file
	src   *source
	cur   stream    // its content
	flate *inflater // it is used again: there can be many small files
}

// What the directory of a zip file may have, in bytes: in all, and for each file that the limits allow.
const (
	leastDirectory = 16 << 20
	perEntry       = 200
)

// zipFile is a file of the directory. The names were checked when it was opened.
type zipFile struct {
	*zip.File
	file *File
}

// openZip reads the directory of a zip file, and checks all that it says.
func (r *Reader) openZip() (*zipFiles, error) {
	// archive/zip reads all of it into memory, before anything can be counted.
	r.source.most = max(leastDirectory, perEntry*int64(r.limits.Files))
	dir, err := zip.NewReader(r.source, r.size)
	r.source.most = 0
	switch {
	case errors.Is(err, zip.ErrFormat), errors.Is(err, io.ErrUnexpectedEOF) && r.source.err == nil:
		return nil, corrupt("it is not a complete zip file: its directory, which is at its end, is missing or damaged")
	case err != nil && !errors.Is(err, zip.ErrInsecurePath): // names are judged below
		return nil, err
	}

	if err := r.trailing(int64(len(dir.Comment))); err != nil {
		return nil, err
	}

	z := &zipFiles{size: r.size, src: r.source, i: -1}
	packed, folders := uint64(0), []string{}
	for _, f := range dir.File {
		if f.Mode().IsDir() && f.UncompressedSize64 == 0 {
			folders = append(folders, zipName(f).Name)
			continue
		}

		file := zipName(f)
		if why := unreadable(f); why != "" {
			return nil, refuse(file.Name, "%s", why)
		}

		file.Size = int64(f.UncompressedSize64)
		packed += min(f.CompressedSize64, math.MaxInt64/uint64(len(dir.File)))
		if packed > uint64(r.size) {
			return nil, refuse(file.Name, "the entries have more compressed bytes than the container: they overlap")
		}
		f.Extra, f.Comment = nil, "" // there can be many of them
		z.files = append(z.files, zipFile{f, file})
	}
	err = r.check(z)
	for _, name := range folders {
		r.folder(name)
	}
	return z, err
}

// trailing warns of what is behind the end of a zip file: its last part, of 22 bytes and a comment (APPNOTE 6.3.10,
// section 4.3.16).
func (r *Reader) trailing(comment int64) error {
	var end [4]byte
	if _, err := r.source.ReadAt(end[:], r.size-22-comment); err != nil {
		return err
	}
	if string(end[:]) != "PK\x05\x06" {
		r.Warning = "it goes on behind its end; what is there was not unpacked"
	}
	return nil
}

// check checks the whole directory before the first file is read.
func (r *Reader) check(z *zipFiles) error {
	for i := range z.files {
		f := z.files[i].file
		if err := r.admit(f); err != nil {
			return err
		}
		r.state.Files, r.state.Bytes = r.state.Files+1, r.state.Bytes+f.Size
	}
	z.bytes, r.state = r.state.Bytes, State{}
	return nil
}

// unreadable returns why an entry is not a file that can be unpacked, or "".
func unreadable(f *zip.File) string {
	const (
		encrypted = 1 << 0
		patch     = 1 << 5
		strong    = 1 << 6
		masked    = 1 << 13
	)

	switch mode := f.Mode(); {
	case f.Flags&(encrypted|strong|masked) != 0:
		return "it is encrypted. Submit it without encryption"
	case f.Flags&patch != 0:
		return "it is a patch of another file"
	case mode&fs.ModeSymlink != 0:
		return "it is a symbolic link. Submit the file that it points to"
	case mode.Type() != 0:
		return "it is not a file, but " + kindOf(mode)
	case f.Method != zip.Store && f.Method != zip.Deflate:
		return "it is compressed by " + methodOf(f.Method) + ". Pack it with Deflate, which every program has"
	case f.UncompressedSize64 > math.MaxInt64 || f.CompressedSize64 > math.MaxInt64:
		return "it says that it has more than 2^63 bytes"
	case f.Method == zip.Store && f.CompressedSize64 != f.UncompressedSize64:
		return "it is not compressed, but says that it has two sizes"
	}
	return ""
}

// kindOf names what is no file.
func kindOf(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeDir != 0:
		return "a folder with content"
	case mode&fs.ModeDevice != 0:
		return "a device"
	case mode&fs.ModeNamedPipe != 0:
		return "a pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	}
	return "something special"
}

// methods are the names of those that APPNOTE 6.3.10, section 4.4.5, lists and programs use.
var methods = map[uint16]string{1: "Shrink", 6: "Implode", 9: "Deflate64", 12: "bzip2", 14: "LZMA", 93: "Zstandard",
	95: "XZ", 98: "PPMd", 99: "AES encryption"}

func methodOf(n uint16) string {
	if name, ok := methods[n]; ok {
		return name
	}
	return "a method that is not known"
}

func (z *zipFiles) next() (*File, error) {
	z.i++
	if z.i == len(z.files) {
		return nil, io.EOF
	}
	return z.files[z.i].file, z.open()
}

// open opens the content of the current file.
func (z *zipFiles) open() error {
	f := z.files[z.i]
	at, err := f.DataOffset()
	if err != nil {
		return corrupt("its local header is missing or damaged: %v", err)
	}

	end := at + int64(f.CompressedSize64)
	if end < at || end > z.size {
		return corrupt("its content would be behind the end of the container: it was cut")
	}

	in := newInput(z.src, at, end)
	if f.Method != zip.Deflate {
		z.cur = &plain{in}
		return nil
	}
	if z.flate == nil {
		z.flate = newInflater(in)
	} else {
		z.flate.reset(in)
	}
	z.cur = deflated{z.flate}
	return nil
}

func (z *zipFiles) read(p []byte) (int, error) { return z.cur.Read(p) }

func (z *zipFiles) ended(crc uint32) error {
	if said := z.files[z.i].CRC32; said != crc {
		return corrupt("the CRC-32 of its content is %08x; the container says %08x", crc, said)
	}
	return nil
}

func (z *zipFiles) save(s *State) (err error) {
	s.At, err = json.Marshal(z.i)
	s.Stream = nil
	if err == nil && s.File != nil {
		s.Stream, err = z.cur.save()
	}
	return err
}

func (z *zipFiles) resume(s State) error {
	if err := json.Unmarshal(s.At, &z.i); err != nil || s.File == nil {
		return err
	}
	if err := z.open(); err != nil {
		return err
	}
	return z.cur.resume(s.Stream)
}
