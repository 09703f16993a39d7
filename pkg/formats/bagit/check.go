package bagit

import (
	"errors"
	"fmt"
	"io/fs"
)

// Known is a bag whose files were all read before. Each gives each of them, with the digests that were computed, by
// algorithm. Only tag files are opened.
type Known interface {
	fs.FS
	Each(func(name string, size int64, digests map[string]string) error) error
}

// Progress is called while a check reads files: how many it has read, of how many, and their bytes.
type Progress func(files, of int, bytes int64)

// Names of tag files.
const (
	declarationFile = "bagit.txt"
	infoFile        = "bag-info.txt"
	infoFileBefore  = "package-info.txt" // until version 0.95
	fetchFile       = "fetch.txt"
	payload         = "data"
)

// check is a check at work.
type check struct {
	fs.FS
	Report
	version version
	decode  decoder
	present map[string]int64 // all files, with their sizes

	// The digests that files should have, by path and algorithm; and those of the payload alone, by manifest.
	digests map[string]map[string]said
	listed  map[string]map[string]bool
	fetches []Fetch
	fetched map[string]int // the line of fetch.txt that says where a file is
}

// said is a digest that a manifest says.
type said struct {
	digest string
	at     Problem // where
}

// decoder makes UTF-8 of a tag file.
type decoder func(data []byte) ([]byte, error)

func (c *check) problem(file string, line int, reason string, args ...any) {
	c.Problems = append(c.Problems, Problem{file, line, fmt.Sprintf(reason, args...)})
}

func (c *check) warning(file string, line int, reason string, args ...any) {
	c.Warnings = append(c.Warnings, Problem{file, line, fmt.Sprintf(reason, args...)})
}

// missing reports whether an error means that there is no such file.
func missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
