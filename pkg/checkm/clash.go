package checkm

import (
	"crypto/sha256"
	"path"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// place stands for a name: many are remembered, and they can be long.
type place [16]byte

func placeOf(s string) place {
	sum := sha256.Sum256([]byte(s))
	return place(sum[:16])
}

// places are the lines where names were.
type places map[place]int32

// names are those that were, as they are and as they are alike.
type names struct {
	exact, alike places
	form         func(string) string // of names that are alike: it is the same
}

func newNames(form func(string) string) names { return names{places{}, places{}, form} }

// add notes where a name is, and returns the lines of the last one before that was the
// same, and of the last that was alike; 0 is none.
func (n *names) add(name string, line int) (same, alike int32) {
	exact, form := placeOf(name), placeOf(n.form(name))
	same, alike = n.exact[exact], n.alike[form]
	n.exact[exact], n.alike[form] = int32(line), int32(line)
	return same, alike
}

// normal is a text in the normalization form NFC: letters with marks can be written in
// two ways that look the same (Unicode Standard Annex 15).
func normal(s string) string { return norm.NFC.String(s) }

// fold is the form in which some file systems take two names for one.
func fold(s string) string { return strings.ToLower(normal(s)) }

// clashes reports a name that cannot be beside those before it.
func (r *reader) clashes(file string, at int) {
	_, isFolder := r.folders[placeOf(file)]
	if isFolder {
		r.add(Error, at, "the fileName %q is also the folder of the file of line %d", file, r.folders[placeOf(file)])
	}

	r.inFolders(file, at)
	switch same, alike := r.files.add(file, r.line); {
	case same > 0:
		r.add(Error, at, "the fileName %q is that of line %d too; expected each name once", file, same)
	case alike > 0:
		r.add(Warning, at, "the fileName %q differs from that of line %d in case or in Unicode normalization only; "+
			"some file systems take both for one", file, alike)
	}
}

// inFolders notes the folders of a file, and reports one that is also a file.
func (r *reader) inFolders(file string, at int) {
	for dir := path.Dir(file); dir != "." && dir != "/"; dir = path.Dir(dir) {
		folder := placeOf(dir)
		if line, clash := r.files.exact[folder]; clash {
			r.add(Error, at, "the folder %q of this file is also the fileName of line %d", dir, line)
		}
		if _, known := r.folders[folder]; known {
			return // and with it those above
		}
		r.folders[folder] = int32(r.line)
	}
}

// repeats warns of an identifier that was in a row before: both are one object.
func (r *reader) repeats(column, id string, at int) {
	switch same, alike := r.ids.add(column+" "+id, r.line); {
	case same == int32(r.line):
	case same > 0:
		r.add(Warning, at, "the %s %q is that of line %d too; both rows become versions of one object",
			column, id, same)
	case alike > 0:
		r.add(Warning, at, "the %s %q is that of line %d in another Unicode normalization; "+
			"the rows become two objects", column, id, alike)
	}
}
