// Package checkm reads and writes Checkm manifests, the lists of files with
// their digests that depositors hand in.
package checkm

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// Kind is what a manifest lists, by its profile.
type Kind string

// Kinds. An Object manifest lists the files of one object; the rows of the
// others are objects: each an object manifest, a container, or a file.
const (
	Object          Kind = "object"
	Batch           Kind = "batch"
	ContainerBatch  Kind = "container-batch"
	SingleFileBatch Kind = "single-file-batch"
)

// profiles by their last part; they are registered below /registry/ingest/manifest/
// and, in older manifests, below /registry/mrt/.
var profiles = map[string]Kind{
	"mrt-ingest-manifest": Object, "mrt-object-manifest": Object,
	"mrt-batch-manifest": Batch, "mrt-container-batch-manifest": ContainerBatch, "mrt-single-file-batch-manifest": SingleFileBatch,
}

// Row is one row. The identifiers and the description are of batch manifests.
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

// Problem is something wrong at a place: line and column count from 1, column
// 0 means the line as a whole.
type Problem struct {
	Severity Severity `json:"severity"`
	Line     int      `json:"line"`
	Column   int      `json:"column"`
	Message  string   `json:"message"`
}

// String returns the problem as a line for people.
func (p Problem) String() string {
	if p.Column == 0 {
		return fmt.Sprintf("line %d: %s", p.Line, p.Message)
	}
	return fmt.Sprintf("line %d, column %d: %s", p.Line, p.Column, p.Message)
}

// MaxProblems are reported at once.
const MaxProblems = 50

// Lengths of digests in hexadecimal characters, by canonical algorithm name.
var Lengths = map[string]int{"adler32": 8, "crc32": 8, "md5": 32, "sha1": 40, "sha256": 64, "sha384": 96, "sha512": 128}

// Canonical returns an algorithm's canonical name: case and hyphens don't count.
func Canonical(algorithm string) string {
	return strings.ToLower(strings.ReplaceAll(algorithm, "-", ""))
}

// Options of reading.
type Options struct {
	RequireDigest bool // a row without a digest is an Error
	Stored        bool // the manifest is one that a NewStored wrote
	// Check, if set, is asked about each row beyond the manifest's own rules. It
	// tells which column ("title") has what wrong with it.
	Check func(r Row, wrong func(column, why string))
}

// Bounds of a manifest, in bytes. Names are bounded by MaxName.
const (
	MaxLine = 64 << 10
	MaxURL  = 2048
	maxCell = 255 // of a media type or a date
	maxSaid = 500 // of a problem's message
)

// Manifest is what is known of a manifest that was read.
type Manifest struct {
	Kind Kind
	Rows int
}

// Rejected returns the errors among the problems.
func Rejected(problems []Problem) (out []Problem) {
	for _, p := range problems {
		if p.Severity == Error {
			out = append(out, p)
		}
	}
	return out
}

// directive is a line by which a manifest is known.
var directive = regexp.MustCompile(`(?i)^#%[ \t]*(checkm|profile|prefix|fields|columns|eof)`)

// IsManifest reports whether the beginning of a file is that of a manifest: its
// first line that is not blank or a comment is a directive. A manifest in UTF-16 is
// one, too: reading it says what is wrong with it.
func IsManifest(start []byte) bool {
	if bytes.HasPrefix(start, []byte("\xff\xfe")) || bytes.HasPrefix(start, []byte("\xfe\xff")) {
		start = bytes.ReplaceAll(start[2:], []byte{0}, nil)
	}
	for line := range bytes.Lines(bytes.TrimPrefix(start, []byte("\xef\xbb\xbf"))) {
		switch line = bytes.TrimSpace(line); {
		case directive.Match(line):
			return true
		case len(line) > 0 && line[0] != '#':
			return false
		}
	}
	return false
}

// Read reads a manifest, gives each row to each (which may be nil), and returns
// all of its problems at once, up to MaxProblems. The manifest is good if none of
// them is an Error; rows are given before that is known. The error is one of
// reading itself, or each's own.
func Read(in io.Reader, o Options, each func(Row) error) (Manifest, []Problem, error) {
	r := &reader{options: o, seen: seen{map[name]int32{}, map[name]int32{}, map[name]int32{}}}
	lines := bufio.NewReaderSize(in, MaxLine)
	for {
		line, long, err := readLine(lines)
		if err != nil && err != io.EOF {
			return r.m, nil, fmt.Errorf("checkm: line %d: %w", r.line+1, err)
		}
		if line == "" && err == io.EOF {
			break
		}
		r.line++
		if long {
			r.add(Error, 0, "the line has more than %d bytes", MaxLine)
			line = "#"
			r.m.Rows++ // so that it is not told to be empty
		}
		row, is := r.take(strings.TrimSuffix(line, "\n"))
		if is && each != nil {
			if err := each(row); err != nil {
				return r.m, nil, err
			}
		}
		if err == io.EOF {
			r.add(Warning, 0, "the last line has no line break at its end")
			break
		}
	}
	r.end()
	return r.m, r.problems, nil
}

// readLine reads a line with its line break. One that is longer than the buffer is
// passed over.
func readLine(in *bufio.Reader) (line string, long bool, err error) {
	text, err := in.ReadSlice('\n')
	for errors.Is(err, bufio.ErrBufferFull) {
		long = true
		text, err = in.ReadSlice('\n')
	}
	return string(text), long, err
}

// ReadAll reads a manifest whole.
func ReadAll(in io.Reader, o Options) (Manifest, []Row, []Problem, error) {
	var rows []Row
	m, problems, err := Read(in, o, func(r Row) error { rows = append(rows, r); return nil })
	return m, rows, problems, err
}
