package objects

import (
	"archive/zip"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"archivist/cmd/archivist/command"
	"archivist/pkg/formats/bagit"
)

// zip writes the bag of one object as a zip file, with the bag's folder in it (RFC 8493, section 4.2). The file gets
// its name when it was read again and found valid; then the folder is removed. A valid one of this version is kept.
func (c *objectExportCmd) zip(a *command.App, ark string) (out exported, err error) {
	out, kept, err := c.zipped(a, ark)
	if kept || err != nil {
		return out, err
	}

	out, err = c.export(a, ark)
	if err != nil {
		return out, err
	}

	folder, part := out.Folder, out.Folder+".zip.part"
	out.Folder += ".zip"
	err = zipFolder(folder, part)
	if err == nil {
		_, err = checkZip(a, part, filepath.Base(folder))
	}
	if err != nil {
		_ = os.Remove(part) // it may not be there
		return out, err
	}
	if err := os.Rename(part, out.Folder); err != nil {
		return out, err
	}
	return out, os.RemoveAll(folder)
}

// zipped is an earlier export of the same version, if there is one, and whether it is valid.
func (c *objectExportCmd) zipped(a *command.App, ark string) (out exported, valid bool, err error) {
	v := version{named: named{Name: ark}, Number: c.Number}
	object, err := v.find(a)
	out = exported{ARK: ark, Version: v.Number}
	if err != nil {
		return out, false, err
	}

	name := folderOf(object.ARK)
	at := filepath.Join(c.Dir, name+".zip")
	if _, err := os.Stat(at); err != nil {
		return out, false, nil
	}

	report, err := checkZip(a, at, name)
	if err != nil || !slices.Contains(report.Info, bagit.Field{Name: versionField, Value: fmt.Sprint(v.Number)}) {
		return out, false, a.Ctx.Err() // it is written again
	}
	return exported{ARK: object.ARK, Version: v.Number, Folder: at, Files: report.Files, Bytes: report.Bytes}, true, nil
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
func checkZip(a *command.App, name, folder string) (*bagit.Report, error) {
	r, err := zip.OpenReader(name)
	if err != nil {
		return nil, err
	}
	defer r.Close()

	bag, err := fs.Sub(r, folder)
	if err != nil {
		return nil, err
	}
	return checkBag(a, name, bag)
}
