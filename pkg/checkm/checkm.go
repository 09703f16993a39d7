// Package checkm reads and writes Checkm manifests, the lists of files with
// their digests that depositors hand in.
package checkm

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/url"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Kind is what a manifest describes, by its profile.
type Kind string

// Kinds of manifests, by the last part of their profile.
const (
	Object Kind = "mrt-ingest-manifest"
)

var objectProfiles = map[string]bool{"mrt-ingest-manifest": true, "mrt-object-manifest": true}

// Row is one file of an object manifest.
type Row struct {
	Line      int
	URL       string
	Algorithm string // canonical: "sha256"; "" when no digest is given
	Digest    string // lower case hex
	Size      int64  // bytes; -1 when not given
	Modified  string
	Name      string
	MediaType string
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

var columns = []string{"fileurl", "hashalgorithm", "hashvalue", "filesize", "filelastmodified", "filename", "mimetype"}

// Manifest is an object manifest that was read.
type Manifest struct {
	Kind Kind
	Rows []Row
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

// IsManifest reports whether the beginning of a file is that of a manifest.
func IsManifest(start []byte) bool {
	return bytes.HasPrefix(bytes.TrimPrefix(start, []byte("\xef\xbb\xbf")), []byte("#%"))
}

type reader struct {
	m        Manifest
	problems []Problem
	line     int
	order    []string
	eof      bool
	profile  string
	fields   bool
	names    map[string]int
	folded   map[string]string
}

func (r *reader) add(s Severity, column int, format string, args ...any) {
	if len(r.problems) < MaxProblems {
		r.problems = append(r.problems, Problem{s, r.line, column, fmt.Sprintf(format, args...)})
	}
}

// Read reads an object manifest and returns all of its problems at once, up to
// MaxProblems. The manifest is good if none of them is an Error. The error is
// one of reading itself.
func Read(in io.Reader) (Manifest, []Problem, error) {
	r := &reader{order: columns, names: map[string]int{}, folded: map[string]string{}}
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 64<<10), 1<<20)
	for lines.Scan() {
		r.line++
		r.take(lines.Text())
	}
	if err := lines.Err(); err != nil {
		return r.m, nil, fmt.Errorf("checkm: line %d: %w", r.line+1, err)
	}
	r.end()
	return r.m, r.problems, nil
}

func (r *reader) take(line string) {
	if r.line == 1 && strings.HasPrefix(line, "\ufeff") {
		line = strings.TrimPrefix(line, "\ufeff")
		r.add(Warning, 1, "a byte order mark begins the file; leave it out")
	}
	line = strings.TrimSuffix(line, "\r")
	switch {
	case !utf8.ValidString(line):
		r.add(Error, 0, "the line is not UTF-8")
	case strings.TrimSpace(line) == "":
	case r.eof:
		r.add(Warning, 0, "there is a line after #%%eof; it is ignored")
	case strings.HasPrefix(line, "#%"):
		r.directive(line)
	case strings.HasPrefix(line, "#"):
	default:
		r.row(line)
	}
}

func (r *reader) directive(line string) {
	word, rest, _ := strings.Cut(line[2:], "|")
	rest = strings.TrimSpace(rest)
	switch w := strings.ToLower(strings.TrimSpace(word)); {
	case strings.HasPrefix(w, "checkm"):
	case w == "profile":
		r.profile = path.Base(rest)
		if !objectProfiles[r.profile] {
			r.add(Error, 13, "the profile %q is not known here; expected http://uc3.cdlib.org/registry/ingest/manifest/%s", rest, Object)
		}
		r.m.Kind = Object
	case w == "prefix":
	case w == "fields" || w == "columns":
		r.fields = true
		r.order = nil
		for f := range strings.SplitSeq(rest, "|") {
			f = strings.TrimSpace(f)
			name := strings.ToLower(f[strings.LastIndex(f, ":")+1:])
			if !known(name) {
				r.add(Warning, 0, "the column %q is not known; it is ignored", f)
			}
			r.order = append(r.order, name)
		}
	case w == "eof":
		r.eof = true
	default:
		r.add(Warning, 0, "the directive %q is not known; it is ignored", word)
	}
}

func known(name string) bool {
	for _, c := range columns {
		if c == name {
			return true
		}
	}
	return false
}

func (r *reader) row(line string) {
	if r.line == 1 || r.profile == "" {
		if strings.Contains(line, ",") && !strings.Contains(line, "|") && len(r.m.Rows) == 0 {
			r.add(Error, 0, "this looks like CSV; a manifest begins with #%%checkm_0.7 and separates columns with |")
			return
		}
	}
	cells := map[string]string{}
	at := map[string]int{}
	column := 1
	for i, cell := range strings.Split(line, "|") {
		if i < len(r.order) {
			cells[r.order[i]], at[r.order[i]] = strings.TrimSpace(cell), column
		} else if strings.TrimSpace(cell) == "" {
			r.add(Warning, column, "there is an empty column more than the %d that are declared", len(r.order))
		} else {
			r.add(Error, column, "found %q in a column that is not declared; expected %d columns", strings.TrimSpace(cell), len(r.order))
		}
		column += len(cell) + 1
	}
	row := Row{Line: r.line, URL: cells["fileurl"], Digest: strings.ToLower(decode(cells["hashvalue"])), Size: -1,
		Modified: decode(cells["filelastmodified"]), Name: decode(cells["filename"]), MediaType: decode(cells["mimetype"])}
	r.url(&row, at["fileurl"])
	r.digest(&row, cells["hashalgorithm"], at)
	if s := decode(cells["filesize"]); s != "" {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil || n < 0 {
			r.add(Error, at["filesize"], "found the size %q; expected a number of bytes", s)
		} else {
			row.Size = n
		}
	}
	r.name(&row, at["filename"])
	r.m.Rows = append(r.m.Rows, row)
}

var decoder = strings.NewReplacer("%20", " ", "%7c", "|", "%7C", "|")

func decode(s string) string { return decoder.Replace(s) }

func (r *reader) url(row *Row, at int) {
	u, err := url.Parse(row.URL)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "s3") || u.Host == "" {
		r.add(Error, at, "found %q; expected an http, https or s3 URL", row.URL)
	}
}

func (r *reader) digest(row *Row, algorithm string, at map[string]int) {
	row.Algorithm = Canonical(decode(algorithm))
	length, known := Lengths[row.Algorithm]
	switch {
	case row.Algorithm == "" && row.Digest == "":
		r.add(Warning, 0, "the file has no digest; it cannot be checked after the transfer")
	case row.Algorithm == "":
		r.add(Error, at["hashalgorithm"], "there is a digest but no algorithm")
	case row.Digest == "":
		r.add(Error, at["hashvalue"], "there is an algorithm but no digest")
	case !known:
		r.add(Error, at["hashalgorithm"], "found the algorithm %q; expected one of adler32, crc32, md5, sha1, sha256, sha384, sha512", algorithm)
	case len(row.Digest) != length || strings.Trim(row.Digest, "0123456789abcdef") != "":
		r.add(Error, at["hashvalue"], "found a digest of %d characters; expected %d hexadecimal characters for %s", len(row.Digest), length, row.Algorithm)
	}
}

func (r *reader) name(row *Row, at int) {
	if row.Name == "" {
		if u, err := url.Parse(row.URL); err == nil {
			row.Name = strings.TrimPrefix(u.Path, "/")
		}
		r.add(Warning, at, "there is no fileName; %q is taken from the URL", row.Name)
	}
	if reason := BadName(row.Name); reason != "" {
		r.add(Error, at, "the fileName %q %s", row.Name, reason)
	}
	if before, again := r.names[row.Name]; again {
		r.add(Error, at, "the fileName %q is that of line %d too", row.Name, before)
	} else if other, clash := r.folded[strings.ToLower(row.Name)]; clash {
		r.add(Warning, at, "the fileName %q differs from %q in case only", row.Name, other)
	}
	r.names[row.Name], r.folded[strings.ToLower(row.Name)] = row.Line, row.Name
}

// BadName says why a file cannot be stored under this path, or "" if it can.
func BadName(name string) string {
	switch {
	case name == "":
		return "is empty"
	case !utf8.ValidString(name):
		return "is not UTF-8"
	case strings.HasPrefix(name, "/") || strings.HasSuffix(name, "/"):
		return "begins or ends with a slash"
	}
	for _, c := range name {
		if c < 0x20 || c == 0x7f {
			return "has a control character"
		}
	}
	for seg := range strings.SplitSeq(name, "/") {
		if seg == "" || seg == "." || seg == ".." {
			return fmt.Sprintf("has the path segment %q", seg)
		}
	}
	return ""
}

func (r *reader) end() {
	r.line++
	if r.profile == "" {
		r.add(Error, 0, "there is no #%%profile line; expected e.g. #%%profile | http://uc3.cdlib.org/registry/ingest/manifest/%s", Object)
	}
	if !r.fields {
		r.add(Warning, 0, "there is no #%%fields line; the profile's columns are taken")
	}
	if !r.eof {
		r.add(Error, 0, "there is no #%%eof line: the manifest may have been cut off; add #%%eof as its last line if it is whole")
	}
	if len(r.m.Rows) == 0 {
		r.add(Error, 0, "the manifest lists no file")
	}
	for name := range r.names {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if line, clash := r.names[dir]; clash {
				r.line = line
				r.add(Error, 0, "the fileName %q is also the folder of %q", dir, name)
			}
		}
	}
}

var encoder = strings.NewReplacer("|", "%7c", "\n", "%0a")

// Write writes rows as a manifest of a profile, with #%eof.
func Write(w io.Writer, profile string, rows []Row) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "#%%checkm_0.7\n#%%profile | %s\n#%%prefix | nfo: | http://www.semanticdesktop.org/ontologies/2007/03/22/nfo#\n", profile)
	fmt.Fprintf(b, "#%%fields | nfo:fileUrl | nfo:hashAlgorithm | nfo:hashValue | nfo:fileSize | nfo:fileLastModified | nfo:fileName | nie:mimeType\n")
	for _, r := range rows {
		size := ""
		if r.Size >= 0 {
			size = strconv.FormatInt(r.Size, 10)
		}
		fmt.Fprintf(b, "%s | %s | %s | %s | %s | %s | %s\n", r.URL, r.Algorithm, r.Digest, size, r.Modified, encoder.Replace(r.Name), r.MediaType)
	}
	fmt.Fprintf(b, "#%%eof\n")
	return b.Flush()
}
