package stage

import (
	"slices"
	"strings"

	"archivist/pkg/ingest"
)

// maxProblems is how many bad files are named. Then the download ends: a source that is
// down is not asked for every file.
const maxProblems = 20

// maxProblem limits the text about one of them, in bytes.
const maxProblem = 400

// joined puts warnings together; "" is none.
func joined(warnings []string) string {
	return strings.Join(slices.DeleteFunc(warnings, func(w string) bool { return w == "" }), "; ")
}

// warnOnce adds a warning to a job, unless an earlier try has.
func warnOnce(j *ingest.Job, text string) {
	if !slices.Contains(j.FileWarnings, text) && len(j.FileWarnings) < 2*ingest.MaxWarnings {
		j.FileWarnings = append(j.FileWarnings, text)
	}
}
