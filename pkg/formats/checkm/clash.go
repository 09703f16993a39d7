package checkm

import (
	"crypto/sha256"
	"path"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// place stands for a name: names can be many and long, so only their digests are kept. Half
// of a SHA-256 is enough: two names with the same one do not occur by chance, and a depositor
// who makes them harms only the own manifest.
type place [16]byte

func placeOf(s string) place {
	sum := sha256.Sum256([]byte(s))
	return place(sum[:16])
}

// places maps names to their lines.
type places map[place]int32

// names are the names so far, in their own form and in a form in which similar names are
// equal. Both maps grow with the names.
type names struct {
	exact, alike places
	form         func(string) string // maps similar names to the same text
}

func newNames(form func(string) string) names { return names{places{}, places{}, form} }

// add records the line of a name. It returns the line of the last equal name and that of
// the last similar name, 0 for none.
func (n *names) add(name string, line int) (same, alike int32) {
	exact, form := placeOf(name), placeOf(n.form(name))
	same, alike = n.exact[exact], n.alike[form]
	n.exact[exact], n.alike[form] = int32(line), int32(line)
	return same, alike
}

// normal is a text in the normalization form NFC: letters with marks have two encodings
// that look the same (Unicode Standard Annex 15).
func normal(s string) string { return norm.NFC.String(s) }

// fold is the form in which some file systems treat two names as one.
func fold(s string) string { return strings.ToLower(normal(s)) }

// clashes reports a name that conflicts with an earlier one. An object with "a" and "a/b"
// could not be unpacked to a file system.
func (r *reader) clashes(file string, at int) {
	_, isFolder := r.folders[placeOf(file)]
	if isFolder {
		r.add(Error, at, "the fileName %q is also the folder of the file of line %d", file,
			r.folders[placeOf(file)])
	}

	r.inFolders(file, at)
	switch same, alike := r.files.add(file, r.line); {
	case same > 0:
		r.add(Error, at, "the fileName %q is that of line %d too; expected each name once", file, same)
	case alike > 0:
		r.add(Warning, at,
			"the fileName %q differs from that of line %d in case or in Unicode normalization only; "+
				"some file systems treat both as one", file, alike)
	}
}

// inFolders records the folders of a file, and reports a folder that is also a file.
func (r *reader) inFolders(file string, at int) {
	for dir := path.Dir(file); dir != "." && dir != "/"; dir = path.Dir(dir) {
		folder := placeOf(dir)
		if line, clash := r.files.exact[folder]; clash {
			r.add(Error, at, "the folder %q of this file is also the fileName of line %d", dir, line)
		}
		if _, known := r.folders[folder]; known {
			return // the folders above it are known, too
		}
		r.folders[folder] = int32(r.line)
	}
}

// repeats warns of an identifier that an earlier row has: both rows are one object. It is no
// error: that is how a depositor submits several versions at once.
func (r *reader) repeats(column, id string, at int) {
	switch same, alike := r.ids.add(column+" "+id, r.line); {
	case same == int32(r.line):
	case same > 0:
		r.add(Warning, at,
			"the %s %q is that of line %d too; both rows become versions of one object",
			column, id, same)
	case alike > 0:
		r.add(Warning, at, "the %s %q is that of line %d in another Unicode normalization; "+
			"the rows become two objects", column, id, alike)
	}
}
