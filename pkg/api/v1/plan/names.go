package plan

import (
	"errors"
	"io"

	"archivist/pkg/formats/checkm"
	"archivist/pkg/ingest"
	"archivist/pkg/kernel/source"
)

// Check checks the names of all files, and the local ids, by the rules of the archive. It calls wrong with each reason
// for which they cannot be stored, and alike with each name that some file systems confuse with an earlier one.
func (f *Files) Check(wrong func(format string, args ...any), alike func(name string)) {
	ids := map[string]bool{}
	row := checkm.NewWriter(io.Discard, objectProfile)
	for _, o := range f.Objects {
		if f.Each {
			checkID(o.ID, ids, wrong)
		}
		if f.Each && !o.IsFile { // the batch manifest names the manifest of the folder
			checkRow(row, &File{Path: o.ID, Name: o.ID + ".checkm"}, wrong)
		}

		names := checkm.NewNames()
		for _, file := range o.Files {
			switch bad := checkm.BadName(file.Name); {
			case bad != "":
				wrong("%q: the name %s", file.Path, bad)
			case f.Listed || f.Each:
				checkRow(row, file, wrong)
			}

			// Only files of several folders can be named alike: in a folder each name is there once.
			switch clash := names.Add(file.Name); {
			case clash.Same > 0:
				wrong("%q: another file is named %q, too; in one object each name is there once", file.Path, file.Name)
			case clash.Alike > 0:
				alike(file.Name)
			}
		}
	}
}

// checkID checks the local id that follows from the name of a file or folder.
func checkID(id string, ids map[string]bool, wrong func(format string, args ...any)) {
	err := ingest.CheckLocalID(id)
	switch {
	case err != nil:
		wrong("%v; its object needs another name, or a submission of its own", err)
	case ids[id]:
		wrong("two objects would have the local id %q", id)
	}
	ids[id] = true
}

// checkRow checks that a manifest can have the name of a file. That is a little less than what can be preserved.
func checkRow(w *checkm.Writer, f *File, wrong func(format string, args ...any)) {
	err := w.Row(checkm.Row{URL: source.UploadURL(source.NoUpload, f.SHA256), Size: f.Size, Name: f.Name})
	if err == nil {
		return
	}
	if cause := errors.Unwrap(err); cause != nil {
		err = cause
	}
	wrong("%q: a manifest cannot have the name: %v", f.Path, err)
}
