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

	"archivist/pkg/fault"
)

// A pack that is much smaller than its content is refused: from atLeast bytes of content on, the content has at
// most maxRatio times the bytes of the pack. Pack and Unpack keep to the same rule, so that what was packed can
// be unpacked.
const (
	maxRatio = 500
	atLeast  = 256 << 20
)

// Pack writes the files of a revision as a tar.gz: sorted by path, with the revision's time, so that the same
// revision always has the same bytes. Files of more than most bytes in all are an Invalid. The files are brought
// to a temporary folder first.
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
	p := packer{ctx: ctx, folder: folder, time: r.Time.UTC().Truncate(time.Second), most: most, out: &counter{to: w}}
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

type packer struct {
	ctx         context.Context
	folder      string
	time        time.Time
	bytes, most int64
	out         *counter
	tar         *tar.Writer
}

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

func checkRatio(content, packed int64) error {
	if content >= atLeast && content > packed*maxRatio {
		return fault.New(fault.Invalid, "the content has more than %d times the bytes of its pack", maxRatio)
	}
	return nil
}

// add adds a file, link or folder. Each pack has folders, so that empty ones are there, too.
func (p *packer) add(file string, d fs.DirEntry, err error) error {
	if err = errors.Join(err, p.ctx.Err()); err != nil {
		return fault.New(fault.Unavailable, "pack: %w", err)
	}
	name, err := filepath.Rel(p.folder, file)
	if err != nil || name == "." {
		return err
	}
	h := &tar.Header{Name: filepath.ToSlash(name), ModTime: p.time, Mode: 0o755, Format: tar.FormatPAX}
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
	if err = errors.Join(err, p.tar.WriteHeader(h)); err == nil && h.Typeflag == tar.TypeReg {
		err = p.content(file)
	}
	if err != nil {
		return fault.New(fault.Unavailable, "pack %s: %w", h.Name, err)
	}
	return nil
}

func (p *packer) content(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(p.tar, f)
	return err
}

// Unpack writes the files of a tar.gz below a folder, which exists and is empty. What Pack does not write is an
// Invalid: other kinds of entries, paths and links that lead out, more than most bytes.
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
	for entries := tar.NewReader(zipped); ; {
		h, err := entries.Next()
		if err == io.EOF {
			err = rest(zipped)
			if err == nil {
				return w.Close()
			}
		}
		if err == nil {
			err = w.entry(h, entries)
		}
		if err == nil {
			err = checkRatio(w.bytes.Load(), packed.n)
		}
		if err != nil {
			w.Abort()
			return damaged(err)
		}
	}
}

// mostRest is how many bytes may be behind the end of a tar: it is filled up to a record (tar: 10,240 bytes).
const mostRest = 1 << 20

// rest reads what is behind the end of the tar: with it the checksum is compared.
func rest(r io.Reader) error {
	n, err := io.Copy(io.Discard, io.LimitReader(r, mostRest))
	if err == nil && n == mostRest {
		err = errors.New("there is more behind its end")
	}
	return err
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

func damaged(err error) error {
	if fault.Of(err) != "" {
		return err
	}
	return fault.New(fault.Invalid, "the pack is damaged: %w", err)
}

func (w *Writer) entry(h *tar.Header, content io.Reader) error {
	switch h.Typeflag {
	case tar.TypeDir:
		return w.Folder(filepath.Clean(h.Name))
	case tar.TypeSymlink:
		return w.Link(h.Name, h.Linkname)
	case tar.TypeReg:
		return w.File(h.Name, h.Mode&0o100 != 0, content)
	}
	return fault.New(fault.Invalid, "the entry %q of the pack is of the kind %q, which a checkout does not have",
		h.Name, string(h.Typeflag))
}
