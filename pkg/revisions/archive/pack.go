package archive

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"archivist/pkg/kernel/fault"
)

// A pack that is much smaller than its content is refused: from atLeast bytes of content on, the
// content has at most maxRatio times the bytes of the pack. Pack and Unpack keep to the same rule,
// so that what was packed can be unpacked.
const (
	maxRatio = 500
	atLeast  = 256 << 20
)

// Pack writes the files of a revision as a tar.gz: sorted by path, with the revision's time, so
// that the same revision always has the same bytes: two that pack at once write the same object.
// Files of more than most bytes in all are an Invalid. The files are brought to a temporary folder
// first, which is removed at the end. Other errors are those of the Source, or an Unavailable. It
// does not close w.
func Pack(ctx context.Context, s Source, n int64, most int64, w io.Writer) error {
	r, err := s.Revision(ctx, n)
	if err != nil {
		return err
	}

	folder, err := os.MkdirTemp("", "checkout-*")
	if err != nil {
		return fault.New(fault.Unavailable, "a folder for a checkout: %w", err)
	}

	defer os.RemoveAll(folder)
	if err := s.Checkout(ctx, n, folder); err != nil {
		return err
	}

	p := packer{
		ctx:    ctx,
		folder: folder,
		time:   r.Time.UTC().Truncate(time.Second),
		most:   most,
		out:    &counter{to: w},
	}

	zipped := gzip.NewWriter(p.out)
	p.tar = tar.NewWriter(zipped)
	err = filepath.WalkDir(folder, p.add) // in lexical order
	if err != nil {
		return err
	}

	if err := errors.Join(p.tar.Close(), zipped.Close()); err != nil {
		return fault.New(fault.Unavailable, "pack revision %d: %w", n, err)
	}
	return checkRatio(p.bytes, p.out.n)
}

// packer is a pack that is being written. bytes are those of the files so far, out counts those of
// the pack.
type packer struct {
	ctx         context.Context
	folder      string
	time        time.Time
	bytes, most int64
	out         *counter
	tar         *tar.Writer
}

// counter counts the bytes that are written.
type counter struct {
	to io.Writer
	n  int64
}

// Write counts.
func (c *counter) Write(p []byte) (int, error) {
	n, err := c.to.Write(p)
	c.n += int64(n)
	return n, err
}

// checkRatio refuses a pack that is much smaller than its content, in bytes: one that is made to
// fill a disk.
func checkRatio(content, packed int64) error {
	if content >= atLeast && content > packed*maxRatio {
		return fault.New(fault.Invalid,
			"the content has more than %d times the bytes of its pack", maxRatio)
	}
	return nil
}

// add adds a file, link or folder. Each pack has folders, so that empty ones are there, too. Of the
// mode only whether a file is executable is kept, as archives do; owners are not.
func (p *packer) add(file string, d fs.DirEntry, err error) error {
	if err = errors.Join(err, p.ctx.Err()); err != nil {
		return fault.New(fault.Unavailable, "pack: %w", err)
	}

	// The folder itself is no entry.
	name, err := filepath.Rel(p.folder, file)
	if err != nil || name == "." {
		return err
	}

	h := &tar.Header{
		Name:    filepath.ToSlash(name),
		ModTime: p.time,
		Mode:    0o755,
		Format:  tar.FormatPAX,
	}

	info, err := d.Info()
	if err != nil {
		return fault.New(fault.Unavailable, "pack: %w", err)
	}

	switch {
	case d.IsDir():
		h.Typeflag, h.Name = tar.TypeDir, h.Name+"/"
	case d.Type() == fs.ModeSymlink:
		h.Typeflag = tar.TypeSymlink
		h.Linkname, err = os.Readlink(file)
	default:
		h.Typeflag, h.Size = tar.TypeReg, info.Size()
		if info.Mode()&0o100 == 0 {
			h.Mode = 0o644
		}
	}

	p.bytes += h.Size
	if p.bytes > p.most {
		return fault.New(fault.Invalid, "the files of the revision have more than %d bytes", p.most)
	}

	err = errors.Join(err, p.tar.WriteHeader(h))
	if err != nil {
		return fault.New(fault.Unavailable, "pack %s: %w", h.Name, err)
	}

	if h.Typeflag != tar.TypeReg {
		return nil
	}

	err = p.content(file)
	if err != nil {
		return fault.New(fault.Unavailable, "pack %s: %w", h.Name, err)
	}
	return nil
}

// content copies the content of a file into the pack.
func (p *packer) content(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(p.tar, f)
	return err
}

// Unpack writes the files of a tar.gz below a folder, which exists and is empty. What Pack does not
// write is an Invalid: other kinds of entries, paths and links that lead out, more than most bytes,
// or a checksum that is wrong. An error of r keeps its kind.
func Unpack(r io.Reader, folder string, most int64) error {
	packed := &reading{from: r}
	zipped, err := gzip.NewReader(packed)
	if err != nil {
		return damaged(err)
	}

	w, err := NewWriter(folder, Limits{Bytes: most})
	if err != nil {
		return err
	}

	err = w.entries(tar.NewReader(zipped), packed)
	if err != nil {
		w.Abort()
		return damaged(err)
	}

	err = rest(zipped)
	if err != nil {
		w.Abort()
		return damaged(err)
	}
	return w.Close()
}

// entries writes all entries of a pack. After each, its size is compared with what was read of the
// pack so far.
func (w *Writer) entries(from *tar.Reader, packed *reading) error {
	for {
		h, err := from.Next()
		if err == io.EOF {
			return nil
		}

		if err != nil {
			return err
		}

		err = w.entry(h, from)
		if err != nil {
			return err
		}

		err = checkRatio(w.bytes.Load(), packed.n)
		if err != nil {
			return err
		}
	}
}

// mostRest is how many bytes may be behind the end of a tar: it is filled up to a record (tar:
// 10,240 bytes).
const mostRest = 1 << 20

// rest reads what is behind the end of the tar: with it the checksum of gzip is compared, which is
// at the very end (RFC 1952, section 2.3.1).
func rest(r io.Reader) error {
	n, err := io.Copy(io.Discard, io.LimitReader(r, mostRest))
	if err != nil {
		return err
	}

	if n == mostRest {
		return errors.New("there is more behind its end")
	}
	return nil
}

// reading counts what is read.
type reading struct {
	from io.Reader
	n    int64
}

// Read counts.
func (c *reading) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	c.n += int64(n)
	return n, err
}

// damaged gives an error of a pack its kind, if it has none: an Invalid.
func damaged(err error) error {
	if fault.Of(err) != "" {
		return err
	}
	return fault.New(fault.Invalid, "the pack is damaged: %w", err)
}

// entry writes one entry of a pack. Kinds that Pack does not write, such as hard links and devices,
// are an Invalid.
func (w *Writer) entry(h *tar.Header, content io.Reader) error {
	switch h.Typeflag {
	case tar.TypeDir:
		return w.Folder(filepath.Clean(h.Name))
	case tar.TypeSymlink:
		return w.Link(h.Name, h.Linkname)
	case tar.TypeReg:
		return w.File(h.Name, h.Mode&0o100 != 0, content)
	}
	return fault.New(fault.Invalid,
		"the entry %q of the pack is of the kind %q, which a checkout does not have",
		h.Name, string(h.Typeflag))
}
