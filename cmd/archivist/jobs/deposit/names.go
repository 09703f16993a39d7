package deposit

import (
	"errors"
	"io"

	"archivist/pkg/formats/checkm"
	"archivist/pkg/ingest"
	"archivist/pkg/kernel/source"
)

// checkNames checks the names of all files, and the local ids, by the rules of the archive.
func (d *Deposit) checkNames() {
	ids := map[string]bool{}
	row := checkm.NewWriter(io.Discard, objectProfile)
	for _, o := range d.Objects {
		if d.Each {
			d.checkID(o.ID, ids)
		}
		if d.Each && !o.IsFile { // the batch manifest names the manifest of the folder
			d.checkRow(row, &File{Path: o.ID, Name: o.ID + ".checkm"})
		}

		names := checkm.NewNames()
		for _, f := range o.Files {
			switch bad := checkm.BadName(f.Name); {
			case bad != "":
				d.wrong("%q: the name %s", f.Path, bad)
			case d.Listed || d.Each:
				d.checkRow(row, f)
			}
			d.checkClash(names.Add(f.Name), f)
		}
	}
}

// checkID checks the local id that follows from the name of a file or folder.
func (d *Deposit) checkID(id string, ids map[string]bool) {
	err := ingest.CheckLocalID(id)
	switch {
	case err != nil:
		d.wrong("%v; its object needs another name, or a submission of its own", err)
	case ids[id]:
		d.wrong("two objects would have the local id %q", id)
	}
	ids[id] = true
}

// checkRow checks that a manifest can have the name of a file. That is a little less than what can be preserved.
func (d *Deposit) checkRow(w *checkm.Writer, f *File) {
	err := w.Row(checkm.Row{URL: source.UploadURL(NoUpload, f.SHA256.String()), Size: f.Size,
		Name: f.Name})
	if err == nil {
		return
	}
	if cause := errors.Unwrap(err); cause != nil {
		err = cause
	}
	d.wrong("%q: a manifest cannot have the name: %v", f.Path, err)
}

// checkClash notes a name that conflicts with an earlier one of its object. Only files of several folders can: in a
// folder each name is there once.
func (d *Deposit) checkClash(c checkm.Clash, f *File) {
	switch {
	case c.Same > 0:
		d.wrong("%q: another file is named %q, too; in one object each name is there once", f.Path,
			f.Name)
	case c.Alike > 0:
		d.alike = append(d.alike, f.Name)
	}
}
