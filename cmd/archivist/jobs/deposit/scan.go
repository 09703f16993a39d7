package deposit

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"archivist/pkg/api/v1/plan"
	"archivist/pkg/kernel/terminal"
)

// Scan lists the files of a deposit, without reading them, and checks all that can be known then. Links and special
// files are problems: leaving them out silently would preserve less than what is there. The error is a pattern that
// cannot be used.
func Scan(o Options) (*Deposit, error) {
	d := &Deposit{Files: plan.Files{Each: o.Each}, exclude: map[string]bool{}}
	for _, pattern := range o.Exclude {
		if _, err := path.Match(pattern, ""); err != nil || strings.Trim(pattern, "/") == "" {
			return nil, fmt.Errorf("%q is not a pattern of names", pattern)
		}
		d.exclude[strings.TrimSuffix(pattern, "/")] = false
	}

	if o.Each {
		d.scanEach(o.Sources)
	} else {
		d.scanOne(o)
	}

	d.Check(d.wrong, func(name string) { d.alike = append(d.alike, name) })
	d.warn()
	return d, nil
}

// scanOne makes one object of all sources.
func (d *Deposit) scanOne(o Options) {
	sources, object := o.Sources, plan.Object{IsFile: len(o.Sources) == 1}
	for _, source := range sources {
		// A link that is named is followed: nothing is left out by that.
		info, err := os.Stat(source)
		switch {
		case err != nil:
			d.wrong("%v", unreadable(source, err))
		case info.IsDir() && len(sources) > 1:
			d.wrong("%q is a folder; give one folder alone, or files, or make each an object of "+
				"its own with --each",
				source)
		case info.IsDir():
			object.IsFile = false
			d.walk(&object, source, "")
		default:
			d.file(&object, source, cmp.Or(o.Name, filepath.Base(source)), info)
		}
	}

	d.Listed = !object.IsFile
	d.add(object)
}

// scanEach makes an object of each file, and of what is directly below each folder.
func (d *Deposit) scanEach(sources []string) {
	for _, source := range sources {
		info, err := os.Stat(source)
		if err != nil {
			d.wrong("%v", unreadable(source, err))
			continue
		}

		if !info.IsDir() {
			object := plan.Object{ID: filepath.Base(source), IsFile: true}
			d.file(&object, source, object.ID, info)
			d.add(object)
			continue
		}

		for _, entry := range d.entries(source, "") {
			object := plan.Object{ID: entry.Name(), IsFile: !entry.IsDir()}
			d.entry(&object, entry, source, "")
			// In an object that is a folder, names begin below it.
			for _, f := range object.Files {
				f.Name = strings.TrimPrefix(f.Name, object.ID+"/")
			}
			d.add(object)
		}
	}
}

// add adds an object, unless it has no files: why is told elsewhere.
func (d *Deposit) add(o plan.Object) {
	if len(o.Files) == 0 {
		return
	}
	slices.SortFunc(o.Files, func(a, b *plan.File) int { return strings.Compare(a.Name, b.Name) })
	d.Objects = append(d.Objects, o)
}

// walk adds the files of a folder, whose path in the object is prefix.
func (d *Deposit) walk(o *plan.Object, folder, prefix string) {
	before := len(o.Files)
	for _, entry := range d.entries(folder, prefix) {
		d.entry(o, entry, folder, prefix)
	}
	if len(o.Files) == before {
		d.empty++
	}
}

// entries are what is in a folder, and not left out.
func (d *Deposit) entries(folder, prefix string) (out []fs.DirEntry) {
	all, err := os.ReadDir(folder)
	if err != nil {
		d.wrong("%v", unreadable(folder, err))
	}
	for _, entry := range all {
		if !d.excluded(path.Join(prefix, entry.Name())) {
			out = append(out, entry)
		}
	}
	return out
}

// entry adds a file, or the files of a folder.
func (d *Deposit) entry(o *plan.Object, entry fs.DirEntry, folder, prefix string) {
	local, name := filepath.Join(folder, entry.Name()), path.Join(prefix, entry.Name())
	if entry.IsDir() {
		d.walk(o, local, name)
		return
	}
	info, err := entry.Info()
	if err != nil {
		d.wrong("%v", unreadable(local, err))
		return
	}
	d.file(o, local, name, info)
}

// file adds a file.
func (d *Deposit) file(o *plan.Object, local, name string, info fs.FileInfo) {
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		d.wrong("%q is a symbolic link; replace it by what it leads to, or leave it out with "+
			"--exclude", local)
	case !info.Mode().IsRegular():
		d.wrong("%q is not a regular file; leave it out with --exclude", local)
	case info.Size() > maxSize:
		d.wrong("%q has %s; a file has at most %s", local, terminal.Size(info.Size()),
			terminal.Size(maxSize))
	default:
		o.Files = append(o.Files, &plan.File{Path: local, Name: name, Size: info.Size(),
			Modified: info.ModTime()})
		if slices.Contains(madeBySystems, path.Base(name)) {
			d.made = append(d.made, local)
		}
	}
}

// The most that an upload takes.
const (
	maxSize  = 5 << 40
	maxFiles = 100_000
)

// madeBySystems are files that file managers make, and few people mean to preserve.
var madeBySystems = []string{".DS_Store", "Thumbs.db", "desktop.ini"}

// excluded reports whether a pattern leaves a path out.
func (d *Deposit) excluded(name string) bool {
	is := false
	for pattern := range d.exclude {
		of := name
		if !strings.Contains(pattern, "/") {
			of = path.Base(name)
		}
		if match, _ := path.Match(pattern, of); match {
			d.exclude[pattern], is = true, true
		}
	}
	return is
}

// warn makes the warnings of what was found, and the problem of a deposit that has nothing, or too much.
func (d *Deposit) warn() {
	files := 0
	for _, o := range d.Objects {
		files += len(o.Files)
	}

	switch {
	case files == 0 && d.Wrong == 0:
		d.wrong("there are no files")
	case files > maxFiles:
		d.wrong("there are %d files; a submission has at most %d; divide them", files, maxFiles)
	}

	if d.empty > 0 {
		d.Warnings = append(d.Warnings, terminal.Count(d.empty, "folder")+
			" without files cannot be preserved, and will be missing")
	}

	if n := len(d.made); n > 0 {
		d.Warnings = append(d.Warnings, fmt.Sprintf("%s made by a file manager, e.g. %s; "+
			"--exclude %s leaves such out",
			isAre(n, "file"), d.made[0], path.Base(d.made[0])))
	}

	if n := len(d.alike); n > 0 {
		d.Warnings = append(d.Warnings, fmt.Sprintf("%s of the name of another one in all but "+
			"case or Unicode normalization, e.g. %q; some file systems treat both as one", isAre(n,
			"file"),
			d.alike[0]))
	}

	for _, pattern := range slices.Sorted(maps.Keys(d.exclude)) {
		if !d.exclude[pattern] {
			d.Warnings = append(d.Warnings, fmt.Sprintf("nothing matches --exclude %s", pattern))
		}
	}
}

// isAre is a number with its noun and verb: "1 file is", "2 files are".
func isAre(n int, noun string) string {
	if n == 1 {
		return terminal.Count(n, noun) + " is"
	}
	return terminal.Count(n, noun) + " are"
}
