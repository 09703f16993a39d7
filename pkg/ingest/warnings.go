package ingest

import (
	"fmt"
	"slices"
)

// MaxWarnings is how many warnings of a manifest, or of a job's files, are kept on a row.
// The manifest check and the receipt have all of them.
const MaxWarnings = 10

// maxWarning bounds one warning, in bytes.
const maxWarning = 300

// Warnings are what a depositor should look at, although the content is preserved: the
// first of them, and how many there are.
type Warnings struct {
	first []string
	count int
}

// Add notes a warning.
func (w *Warnings) Add(text string) {
	w.count++
	if w.count <= MaxWarnings {
		w.first = append(w.first, Cut(text, maxWarning))
	}
}

// List returns the first warnings, and a line that counts the others and says where
// they are.
func (w *Warnings) List(others string) []string {
	if left := w.count - len(w.first); left > 0 {
		return append(slices.Clip(w.first), fmt.Sprintf("%d more warnings: %s", left, others))
	}
	return w.first
}

// Warnings are those of the job's manifest, and of its files.
func (j *Job) Warnings() []string { return slices.Concat(j.ManifestWarnings, j.FileWarnings) }
