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

// Names are the names of the files of an object so far. They grow with the names, by about a hundred bytes of memory
// for each.
type Names struct {
	files   names
	folders places
	n       int
}

// NewNames are none.
func NewNames() *Names { return &Names{files: newNames(fold), folders: places{}} }

// Clash is how a name conflicts with earlier ones. Each is the number of the earlier one, from 1; 0 is none.
type Clash struct {
	Same   int32
	Alike  int32 // in case or in Unicode normalization only
	Folder int32 // the name is a folder of that file: "a" beside "a/b" could not be unpacked
	File   int32 // a folder of the name is that file
	Inside string
}

// Folder reports whether a name has a folder.
func (n *Names) Folder(name string) bool { return n.folders[placeOf(name)] > 0 }

// Add notes the next name, and says with which it conflicts.
func (n *Names) Add(name string) Clash { n.n++; return n.add(name, n.n) }

func (n *Names) add(name string, number int) Clash {
	c := Clash{Folder: n.folders[placeOf(name)]}
	for dir := path.Dir(name); dir != "." && dir != "/"; dir = path.Dir(dir) {
		folder := placeOf(dir)
		if file := n.files.exact[folder]; file > 0 && c.File == 0 {
			c.File, c.Inside = file, dir
		}
		if _, known := n.folders[folder]; known {
			break // the folders above it are known, too
		}
		n.folders[folder] = int32(number)
	}

	c.Same, c.Alike = n.files.add(name, number)
	if c.Same > 0 {
		c.Alike = 0
	}
	return c
}

// clashes reports a name that conflicts with an earlier one.
func (r *reader) clashes(file string, at int) {
	c := r.names.add(file, r.line)
	if c.Folder > 0 {
		r.add(Error, at, "the fileName %q is also the folder of the file of line %d", file, c.Folder)
	}
	if c.File > 0 {
		r.add(Error, at, "the folder %q of this file is also the fileName of line %d", c.Inside, c.File)
	}
	if c.Same > 0 {
		r.add(Error, at, "the fileName %q is that of line %d too; expected each name once", file, c.Same)
	}
	if c.Alike > 0 {
		r.add(Warning, at,
			"the fileName %q differs from that of line %d in case or in Unicode normalization only; "+
				"some file systems treat both as one", file, c.Alike)
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
