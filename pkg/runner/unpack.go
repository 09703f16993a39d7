package runner

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"

	"archivist/pkg/fault"
)

// unpack writes the files of a tar.gz below a folder. Whatever the names and links in it are, nothing is written
// outside of the folder. More than most bytes are a fault.Invalid.
func unpack(r io.Reader, folder string, most int64) error {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close()
	plain, err := gzip.NewReader(r)
	if err != nil {
		return fmt.Errorf("no tar.gz: %w", err)
	}
	files := tar.NewReader(plain)
	for {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		most -= h.Size
		if most < 0 {
			return fault.New(fault.Invalid, "the files of the revision are too large")
		}
		err = entry(root, h, files)
		if err != nil {
			return fmt.Errorf("%s: %w", h.Name, err)
		}
	}
}

// entry writes one file, folder or link.
func entry(root *os.Root, h *tar.Header, content io.Reader) error {
	name := path.Clean(h.Name)
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	switch h.Typeflag {
	case tar.TypeDir:
		return root.MkdirAll(name, 0o755)
	case tar.TypeSymlink:
		return root.Symlink(h.Linkname, name)
	case tar.TypeReg:
		f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, os.FileMode(h.Mode&0o111)|0o600)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, content)
		return errors.Join(err, f.Close())
	}
	return nil // devices and the like are no content
}
