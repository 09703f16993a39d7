package ingest

import (
	"slices"
	"strings"
)

// MaxWarnings is the number of warnings of a manifest, or of a job's files, that a row
// keeps. The manifest check and the receipt have all of them.
const MaxWarnings = 10

// maxWarning limits one warning, in bytes.
const maxWarning = 300

// Warnings are problems that a depositor should check although the content is preserved:
// the first of them, and their number.
type Warnings struct {
	first []string
	count int
}

// Add adds a warning.
func (w *Warnings) Add(text string) {
	w.count++
	if w.count <= MaxWarnings {
		w.first = append(w.first, Cut(text, maxWarning))
	}
}

// List returns the first warnings, and a line with the number of the others and where to
// find them. others says where that is.
func (w *Warnings) List(others string) []string {
	if left := w.count - len(w.first); left > 0 {
		return append(slices.Clip(w.first), Counted(left, "more warning")+": "+others)
	}
	return w.first
}

// Warnings are those of the stored object and of callbacks, which come first since a mail shows only some, of the
// job's manifest, and of its files.
func (j *Job) Warnings() []string {
	all := j.Healed.warnings()
	if j.Uncalled != "" {
		all = append(all, j.Uncalled)
	}
	return slices.Concat(all, j.ManifestWarnings, j.FileWarnings)
}

// Unused says that a collection was never used, and which names are near. Without near it is how the text begins.
func Unused(collection string, near []string) string {
	text := "the collection " + collection + " has never been used"
	if len(near) > 0 {
		text += "; there is " + strings.Join(near, ", ")
	}
	return text
}
