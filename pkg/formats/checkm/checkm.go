// Package checkm reads and writes Checkm manifests: the depositors' lists of files with
// their digests.
//
// A manifest is UTF-8 text. Directives begin with #%, other lines that begin with # are
// comments, and each other line is a row whose columns are separated by bars:
//
//	#%checkm_0.7
//	#%profile | http://uc3.cdlib.org/registry/ingest/manifest/mrt-ingest-manifest
//	#%prefix | nfo: | http://www.semanticdesktop.org/ontologies/2007/03/22/nfo#
//	#%fields | nfo:fileUrl | nfo:hashAlgorithm | nfo:hashValue | nfo:fileSize
//	https://example.org/a.tif | sha256 | 9f86…0a08 | 4
//	#%eof
//
// Read passes on each row as it is read, in constant memory except for some bytes per
// name. It returns all problems together, each with its line and column and what was
// expected. A problem that does no harm is a Warning. The same rules apply wherever a
// manifest is read: offline, at submission and at ingest.
//
// (Source: Checkm 0.7, and Merritt's profiles of it.)
//
// Errors are collected, not returned one by one, because the depositor corrects a manifest as
// a whole. A message never repeats secrets of URLs.
package checkm

import (
	"fmt"
	"strings"
)

// Kind is the kind of a manifest's rows, determined by its profile.
type Kind string

// The kinds. An Object manifest lists the files of one object. Each row of the other kinds
// is an object: an object manifest, a container, or a file.
const (
	Object          Kind = "object"
	Batch           Kind = "batch"
	ContainerBatch  Kind = "container-batch"
	SingleFileBatch Kind = "single-file-batch"
)

// profiles by their last part; they are registered below /registry/ingest/manifest/ and, in
// older manifests, below /registry/mrt/.
var profiles = map[string]Kind{
	"mrt-ingest-manifest": Object, "mrt-object-manifest": Object,
	"mrt-batch-manifest": Batch, "mrt-container-batch-manifest": ContainerBatch,
	"mrt-single-file-batch-manifest": SingleFileBatch,
}

// Row is one row. Only rows of batch manifests have identifiers and a description. Line
// counts from 1. Modified and Date are texts as they were given.
type Row struct {
	Line      int
	URL       string
	Algorithm string // canonical: "sha256"; "" when no digest is given
	Digest    string // lower case hex
	Size      int64  // bytes; -1 when not given
	Modified  string
	Name      string
	MediaType string

	Primary string // ARK
	Local   []string
	Creator string
	Title   string
	Date    string
}

// Severity of a problem.
type Severity string

// An Error rejects the manifest; a Warning does not.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
)

// Problem is an error or warning at a place: line and column count from 1; column 0 means
// the whole line.
type Problem struct {
	Severity Severity `json:"severity"`
	Line     int      `json:"line"`
	Column   int      `json:"column"`
	Message  string   `json:"message"`
}

// String returns the problem as one line of text.
func (p Problem) String() string {
	if p.Column == 0 {
		return fmt.Sprintf("line %d: %s", p.Line, p.Message)
	}
	return fmt.Sprintf("line %d, column %d: %s", p.Line, p.Column, p.Message)
}

// MaxProblems is the maximum number of problems that are reported. More do not help a person,
// and a manifest may have a million rows with the same mistake.
const MaxProblems = 50

// Lengths of digests in hexadecimal characters, by canonical algorithm name.
var Lengths = map[string]int{
	"adler32": 8, "crc32": 8, "md5": 32, "sha1": 40, "sha256": 64, "sha384": 96, "sha512": 128,
}

// Canonical returns an algorithm's canonical name: case and hyphens are ignored. It may be
// one that Lengths does not know.
func Canonical(algorithm string) string {
	return strings.ToLower(strings.ReplaceAll(algorithm, "-", ""))
}

// Options of reading.
type Options struct {
	// RequireDigest is the collection's rule.
	RequireDigest bool // a row without a digest is an Error
	Stored        bool // the manifest was written by NewStored
	Inside        bool // it is beside its files: their URLs do not count
	// InOrder: a declared order of columns that is not the profile's is an Error. Merritt reads columns by their
	// position, whatever is declared; so both readings are the same.
	InOrder bool
	// Check, if set, makes additional checks of each row. It returns the column ("title")
	// and the problem.
	Check func(r Row, wrong func(column, why string))
}

// Bounds of a manifest, in bytes. Names are bounded by MaxName.
const (
	// MaxLine has room for a URL and a name of the greatest length, and for long titles.
	MaxLine = 64 << 10
	MaxURL  = 2048
	maxCell = 255 // of a media type or a date
	maxSaid = 500 // of a problem's message
)

// Manifest is the summary of a manifest that was read. Rows counts also those with errors.
// Kind is "" if the profile is missing or not known.
type Manifest struct {
	Kind Kind
	Rows int
}

// Rejected returns the errors among the problems. It is nil if the manifest is accepted.
func Rejected(problems []Problem) (out []Problem) {
	for _, p := range problems {
		if p.Severity == Error {
			out = append(out, p)
		}
	}
	return out
}
