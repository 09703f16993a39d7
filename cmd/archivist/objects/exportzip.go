package objects

import (
	"archive/zip"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"archivist/cmd/archivist/command"
)

// zip writes the bag of one object as a zip file, with the bag's folder in it (RFC 8493, section 4.2). The file gets
// its name when it was read again and found valid; then the folder is removed.
func (c *objectExportCmd) zip(a *command.App, ark string) (out exported, err error) {
	out, err = c.export(a, ark)
	if err != nil {
		return out, err
	}

	folder, part := out.Folder, out.Folder+".zip.part"
	out.Folder += ".zip"
	if err := zipFolder(folder, part); err != nil {
		return out, errors.Join(err, os.Remove(part))
	}
	if err := checkZip(a, part, filepath.Base(folder)); err != nil {
		return out, errors.Join(err, os.Remove(part))
	}
	if err := os.Rename(part, out.Folder); err != nil {
		return out, err
	}
	return out, os.RemoveAll(folder)
}

// zipFolder packs a folder, with its name, into a zip file.
func zipFolder(folder, to string) error {
	file, err := os.Create(to)
	if err != nil {
		return err
	}
	w := zip.NewWriter(file)
	err = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return zipFile(w, filepath.Dir(folder), path)
	})
	return errors.Join(err, w.Close(), file.Sync(), file.Close())
}

// zipFile packs one file under its path below a folder.
func zipFile(w *zip.Writer, root, path string) error {
	rel, err := filepath.Rel(root, path)
	if err != nil {
		return err
	}
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()

	info, err := in.Stat()
	if err != nil {
		return err
	}
	to, err := w.CreateHeader(&zip.FileHeader{Name: filepath.ToSlash(rel), Method: zip.Deflate,
		Modified: info.ModTime()})
	if err != nil {
		return err
	}
	_, err = in.WriteTo(to)
	return err
}

// checkZip reads the bag in a zip file as others do.
func checkZip(a *command.App, name, folder string) error {
	r, err := zip.OpenReader(name)
	if err != nil {
		return err
	}
	defer r.Close()

	bag, err := fs.Sub(r, folder)
	if err != nil {
		return err
	}
	return checkBag(a, name, bag)
}
