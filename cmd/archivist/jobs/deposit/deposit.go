package deposit

import (
	"fmt"

	"archivist/pkg/api/v1/plan"
)

// Options say which files are deposited, and how they become objects.
type Options struct {
	// Sources are paths of files and folders. One folder is an object of all files below it; one file, or several, are
	// an object, too.
	Sources []string
	// Name is the name of a single file, by default its own.
	Name string
	// Each makes an object of each file among the sources, and of each file and folder directly below a folder.
	Each bool
	// Exclude are patterns (path.Match) of files and folders that are left out: of their names or, with a slash, of
	// their paths below the source.
	Exclude []string
}

// Deposit is what is found of files, and what is wrong with it.
type Deposit struct {
	plan.Files
	// Problems are why nothing can be sent, at most MaxProblems of all Wrong ones. Warnings are what the depositor
	// should know.
	Problems []string
	Wrong    int
	Warnings []string

	exclude map[string]bool // the patterns, and whether something matched
	empty   int             // folders without files
	made    []string        // files that systems make
	alike   []string        // names that some file systems confuse
}

// MaxProblems is how many problems are listed. More do not help a person.
const MaxProblems = 50

// wrong notes a problem.
func (d *Deposit) wrong(format string, args ...any) {
	d.Wrong++
	if len(d.Problems) < MaxProblems {
		d.Problems = append(d.Problems, fmt.Sprintf(format, args...))
	}
}
