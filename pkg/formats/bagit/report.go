package bagit

import (
	"cmp"
	"fmt"
	"slices"
)

// Problem is what is wrong with a bag, or, as a warning, what will be wrong elsewhere. File is a path in the bag. Line
// is that of a tag file, from 1; 0 for none.
type Problem struct {
	File   string
	Line   int
	Reason string
}

// String is the problem with its place: "manifest-md5.txt:3: …".
func (p Problem) String() string {
	switch {
	case p.File == "":
		return p.Reason
	case p.Line == 0:
		return p.File + ": " + p.Reason
	}
	return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Reason)
}

// Field is a field of bag-info.txt.
type Field struct{ Name, Value string }

// Report is what a check has found. A bag without problems is complete and valid. Files and Bytes are those of the
// payload that are there.
type Report struct {
	Version    string // of BagIt, e.g. "1.0"
	Encoding   string // of the tag files, by its name in the registry of IANA
	Algorithms []string
	Files      int
	Bytes      int64
	Info       []Field // in their order
	TagFiles   []string
	Problems   []Problem
	Warnings   []Problem
}

// Fetch is a file of the payload that is not in the bag, but elsewhere.
type Fetch struct {
	Path    string // in the bag
	URL     string
	Size    int64             // bytes; -1 if the bag does not say it
	Digests map[string]string // those that the bag says, by algorithm
	Line    int               // of fetch.txt
}

func sortProblems(all []Problem) {
	slices.SortStableFunc(all, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Reason, b.Reason))
	})
}
