package container

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
)

// tarBlock is the size of a header, and of what content is filled up to.
const tarBlock = 512

// What is no content has limits, too: a small compressed file could become so much of it that no end comes.
const (
	mostHeader  = 4 << 20  // bytes of the headers of one file: the map of a sparse file is among them
	mostOthers  = 1 << 18  // folders, and headers that describe the archive
	mostPadding = 64 << 20 // bytes behind the end mark
)

// tarFiles are the files of a tar file. Each header has a reader of archive/tar of its own, which knows nothing of the
// files before: so another process can go on from here.
type tarFiles struct {
	data *counted
	// cur has the content of a sparse file, whose holes only archive/tar knows; nil: the content is read from data.
	cur  *tar.Reader
	left int64 // bytes of the content in data

	header []byte // of a sparse file
	begin  int64  // of its content in data
	others int    // entries that were passed over

	folder func(name string) // notes an entry that is a folder
}

// tarState is where a tar file is read. A sparse file goes on with its headers, and zeros in place of the content that
// was read.
type tarState struct {
	At     int64  `json:"at"`
	Others int    `json:"others,omitempty"`
	Header []byte `json:"header,omitempty"`
	Begin  int64  `json:"begin,omitempty"`
}

func (r *Reader) newTar(data stream) *tarFiles {
	return &tarFiles{data: &counted{stream: data}, folder: r.folder}
}

// counted counts the bytes that were read, and keeps those of headers.
type counted struct {
	stream
	at     int64
	err    error // of the data: archive/tar has errors of its own
	header []byte
	keep   bool
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.stream.Read(p)
	c.at += int64(n)
	if err != nil && err != io.EOF {
		c.err = err
	}

	if c.keep {
		c.header = append(c.header, p[:n]...)
		if len(c.header) > mostHeader {
			c.err = corrupt("the headers of a file have more than %d bytes", mostHeader)
			return 0, c.err
		}
	}
	return n, err
}

// next goes to the next file. Folders are passed over, and headers that describe the archive.
func (t *tarFiles) next() (*File, error) {
	for {
		h, err := t.entry()
		if err != nil {
			return nil, err
		}

		switch h.Typeflag {
		case tar.TypeReg, tar.TypeCont, tar.TypeGNUSparse:
			return t.open(h), nil
		}

		if h.Typeflag == tar.TypeDir {
			t.folder(h.Name)
		}
		if why := notFile(h); why != "" {
			return nil, refuse(clean(h.Name), "%s", why)
		}
		t.others++
		if t.others > mostOthers {
			return nil, corrupt("it has more than %d folders and other entries that are no files", mostOthers)
		}
		if h.Size > 0 && h.Typeflag != tar.TypeXGlobalHeader { // archive/tar has read the content of that one
			return nil, refuse(clean(h.Name), "it is not a file, but has content")
		}
	}
}

// entry reads the next header.
func (t *tarFiles) entry() (*tar.Header, error) {
	// The content of the file before is filled up.
	if rest := t.data.at % tarBlock; rest > 0 {
		if _, err := io.CopyN(io.Discard, t.data, tarBlock-rest); err == io.EOF {
			return nil, errCut
		} else if err != nil {
			return nil, err
		}
	}

	begin := t.data.at
	t.data.header, t.data.keep = t.data.header[:0], true
	t.cur = tar.NewReader(t.data)
	h, err := t.cur.Next()
	t.data.keep = false
	switch {
	case t.data.err != nil:
		return nil, t.data.err
	case err == io.EOF && t.data.at == begin:
		return nil, corrupt("it ends without an end mark: it was cut")
	case err == io.EOF:
		return nil, t.end()
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, cutAt(begin)
	case err != nil && !errors.Is(err, tar.ErrInsecurePath): // names are judged by us
		return nil, corrupt("the header at byte %d is not one of a tar file, or is damaged: %v", begin, err)
	}
	return h, nil
}

// cutAt is the error of a header that ends too early.
func cutAt(begin int64) error {
	if begin == 0 {
		return corrupt("it is no tar file, or was cut in its first header")
	}
	return errCut
}

// end reads the rest behind the end mark, which can only fill up the last block of a tape.
func (t *tarFiles) end() error {
	buf, begin := make([]byte, inputBlock), t.data.at
	for {
		n, err := t.data.Read(buf)
		if t.data.at-begin > mostPadding {
			return corrupt("behind its end mark are more than %d bytes", mostPadding)
		}
		if len(bytes.Trim(buf[:n], "\x00")) > 0 {
			return corrupt("behind its end mark is something else, which programs do not unpack. If some tar files " +
				"were joined, submit each of them")
		}
		if err != nil {
			return err
		}
	}
}

// open is the file of a header.
func (t *tarFiles) open(h *tar.Header) *File {
	t.left, t.begin, t.header = h.Size, t.data.at, nil
	if isSparse(h) {
		t.header = bytes.Clone(t.data.header)
	}

	f := &File{Name: h.Name, Size: h.Size}
	if !utf8.ValidString(h.Name) {
		f.Name, _ = charmap.ISO8859_1.NewDecoder().String(h.Name) // every byte is a character
		f.Warning = "the name is not UTF-8; it was read as ISO 8859-1, in which some letters may be others"
	}

	f.Name = clean(f.Name)
	if f.Name != h.Name {
		f.Raw = Escape(h.Name)
	}
	if h.ModTime.Unix() != 0 {
		f.Modified = h.ModTime.UTC().Format(time.RFC3339)
	}
	return f
}

// isSparse reports whether a file has holes.
func isSparse(h *tar.Header) bool {
	for key := range h.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return true
		}
	}
	return h.Typeflag == tar.TypeGNUSparse
}

// notFile returns why an entry that is no file is refused, "" if it is passed over.
func notFile(h *tar.Header) string {
	switch h.Typeflag {
	case tar.TypeDir, 'V': // a label of the volume
		return ""
	case tar.TypeXGlobalHeader:
		for key := range h.PAXRecords {
			if key != "comment" && key != "mtime" && !strings.Contains(key, ".") {
				return "a global header sets the " + key + " of all files, which is not supported"
			}
		}
		return ""
	case tar.TypeLink:
		return "it is a link to another file. Pack the file itself (tar --hard-dereference)"
	case tar.TypeSymlink:
		return "it is a symbolic link. Pack the file that it points to (tar --dereference)"
	case tar.TypeChar, tar.TypeBlock:
		return "it is a device, not a file"
	case tar.TypeFifo:
		return "it is a pipe, not a file"
	case 'M':
		return "it continues a file of another volume. Join the volumes first"
	}
	return "it is of the type " + strconv.QuoteRune(rune(h.Typeflag)) + ", which is not a file"
}

func (t *tarFiles) read(p []byte) (int, error) {
	if t.header != nil {
		n, err := t.cur.Read(p)
		switch {
		case t.data.err != nil:
			err = t.data.err
		case err == io.ErrUnexpectedEOF:
			err = errCut
		case err != nil && err != io.EOF:
			err = corrupt("its holes are not described correctly: %v", err)
		}
		return n, err
	}

	if t.left == 0 {
		return 0, io.EOF
	}
	n, err := t.data.Read(p[:min(int64(len(p)), t.left)])
	t.left -= int64(n)
	if err == io.EOF {
		err = errCut
	}
	return n, err
}

// ended has nothing to compare: content has no checksum in a tar file.
func (t *tarFiles) ended(uint32) error { return nil }

func (t *tarFiles) save(s *State) (err error) {
	at := tarState{At: t.data.at, Others: t.others}
	if s.File != nil {
		at.Header, at.Begin = t.header, t.begin
	}
	s.At, err = json.Marshal(at)
	if err == nil {
		s.Stream, err = t.data.save()
	}
	return err
}

func (t *tarFiles) resume(s State) error {
	var at tarState
	if err := json.Unmarshal(s.At, &at); err != nil {
		return err
	}

	t.data.at, t.others = at.At, at.Others
	if err := t.data.resume(s.Stream); err != nil || s.File == nil {
		return err
	}

	t.left, t.header, t.begin = s.File.Size-s.Read, at.Header, at.Begin
	if t.header == nil {
		return nil
	}

	was := io.LimitReader(zeros{}, at.At-at.Begin)
	t.cur = tar.NewReader(io.MultiReader(bytes.NewReader(t.header), was, t.data))
	if _, err := t.cur.Next(); err != nil {
		return err
	}
	_, err := io.CopyN(io.Discard, t.cur, s.Read)
	return err
}

// zeros are without end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// oldTar reports whether a header without the mark of later formats is one: its checksum tells.
func oldTar(start []byte) bool {
	if len(start) < tarBlock || start[0] == 0 {
		return false
	}
	const from, to = 148, 156 // of the checksum, for which blanks are counted
	sum := int64(8 * ' ')
	for i, c := range start[:tarBlock] {
		if i < from || i >= to {
			sum += int64(c)
		}
	}
	said, err := strconv.ParseInt(strings.Trim(string(start[from:to]), " \x00"), 8, 64)
	return err == nil && said == sum
}
