package checkm

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"archivist/pkg/source"
)

var objectColumns = []string{"fileurl", "hashalgorithm", "hashvalue", "filesize", "filelastmodified", "filename", "mimetype"}
var batchColumns = []string{"fileurl", "hashalgorithm", "hashvalue", "filesize", "filelastmodified", "filename", "primaryidentifier", "localidentifier", "creator", "title", "date"}

func (k Kind) columns() []string {
	if k == Object || k == "" {
		return objectColumns
	}
	return batchColumns
}

// reader is a manifest being read.
type reader struct {
	options  Options
	m        Manifest
	problems []Problem
	line     int
	declared []string // columns of #%fields, or nil
	version  bool     // there was #%checkm
	prefix   bool
	profile  bool
	eof      bool
	csv      bool
	seen     seen
}

// add notes a problem. Of several errors at one place the first is told.
func (r *reader) add(s Severity, column int, format string, args ...any) {
	same := func(p Problem) bool { return p.Severity == Error && p.Line == r.line && p.Column == column }
	if s == Error && column > 0 && slices.ContainsFunc(r.problems, same) {
		return
	}
	if len(r.problems) < MaxProblems {
		r.problems = append(r.problems, Problem{s, r.line, column, cut(fmt.Sprintf(format, args...), maxSaid)})
	}
}

// cut returns the beginning of a text, cut at a character.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// shown is what a message repeats of a cell: its beginning, without what is secret in a
// URL (credentials, queries), as cells may be in a wrong column.
func shown(text string) string {
	if i := strings.LastIndexByte(text, '@'); i >= 0 {
		text = "…" + text[i:]
	}
	if i := strings.IndexAny(text, "?#;"); i >= 0 {
		text = text[:i] + "…"
	}
	return cut(text, 200)
}

// take reads one line, which may be a row.
func (r *reader) take(line string) (row Row, is bool) {
	if r.line == 1 && strings.HasPrefix(line, "\ufeff") {
		line = strings.TrimPrefix(line, "\ufeff")
		r.add(Warning, 1, "a byte order mark begins the file; leave it out")
	}
	line = strings.TrimSuffix(line, "\r")
	switch {
	case !utf8.ValidString(line):
		r.add(Error, 0, "the line is not UTF-8; save the manifest as UTF-8")
	case strings.TrimSpace(line) == "":
	case r.eof:
		r.add(Warning, 0, "there is a line after #%%eof; it is ignored")
	case strings.HasPrefix(line, "#%"):
		r.directive(line)
	case strings.HasPrefix(line, "#"):
	default:
		return r.row(line)
	}
	return Row{}, false
}

func (r *reader) directive(line string) {
	word, rest, _ := strings.Cut(line[2:], "|")
	at := len(word) + 4
	rest = strings.TrimSpace(rest)
	switch w := strings.ToLower(strings.TrimSpace(word)); {
	case strings.HasPrefix(w, "checkm"):
		r.version = true
	case w == "profile":
		r.setProfile(rest, at)
	case w == "prefix":
		r.prefix = true
	case w == "fields" || w == "columns":
		r.fields(rest, at)
	case w == "eof":
		r.eof = true
	default:
		r.add(Warning, 1, "the directive #%%%s is not known; it is ignored", strings.TrimSpace(word))
	}
}

func (r *reader) setProfile(value string, at int) {
	r.profile = true
	if r.options.Stored && value == StoredProfile {
		r.m.Kind = Object
		return
	}
	kind, known := profiles[path.Base(value)]
	if !known || !strings.Contains(value, "/registry/ingest/manifest/") && !strings.Contains(value, "/registry/mrt/") {
		r.add(Error, at, "found the profile %q; expected http://uc3.cdlib.org/registry/ingest/manifest/ with mrt-ingest-manifest, mrt-object-manifest, mrt-batch-manifest, mrt-container-batch-manifest or mrt-single-file-batch-manifest", shown(value))
	}
	r.m.Kind = kind
}

func (r *reader) fields(rest string, at int) {
	r.declared = []string{}
	for f := range strings.SplitSeq(rest, "|") {
		f = strings.TrimSpace(f)
		name := strings.ToLower(f[strings.LastIndex(f, ":")+1:])
		if !slices.Contains(objectColumns, name) && !slices.Contains(batchColumns, name) {
			r.add(Warning, at, "the column %q is not known; it is ignored", shown(f))
		}
		r.declared = append(r.declared, name)
	}
	if want := r.m.Kind.columns(); r.profile && !slices.Equal(r.declared, want[:min(len(want), len(r.declared))]) {
		r.add(Warning, at, "the columns are in another order than the profile's; the declared order is taken")
	}
}

// cells splits a line into its columns by name, with where each begins.
func (r *reader) cells(line string) (cells map[string]string, at map[string]int) {
	values := strings.Split(line, "|")
	order := r.declared
	if order == nil {
		order = r.m.Kind.columns()
	}
	// Some writers declare one order and write the profile's: the URL tells.
	if i := slices.Index(order, "fileurl"); i > 0 && (i >= len(values) || !isURL(strings.TrimSpace(values[i]))) && isURL(strings.TrimSpace(values[0])) {
		order = r.m.Kind.columns()
		r.add(Warning, 1, "the URL is in the first column, not where #%%fields says; the profile's columns are taken")
	}
	cells, at = map[string]string{}, map[string]int{}
	column := 1
	for i, cell := range values {
		text := strings.TrimSpace(cell)
		begins := column + len(cell) - len(strings.TrimLeft(cell, " \t"))
		switch {
		case i < len(order):
			cells[order[i]], at[order[i]] = text, begins
		case text == "":
			r.add(Warning, column, "there is an empty column more than the %d that are declared", len(order))
		default:
			r.add(Error, begins, "found %q in a column that is not declared; expected %d columns at most", shown(text), len(order))
		}
		column += len(cell) + 1
	}
	return cells, at
}

func isURL(s string) bool {
	return source.Check(s) == nil
}

func (r *reader) row(line string) (Row, bool) {
	if r.csv {
		return Row{}, false
	}
	if !r.profile && r.m.Rows == 0 && strings.Contains(line, ",") && !strings.Contains(line, "|") {
		r.csv = true
		r.add(Error, 0, "this looks like CSV; a manifest begins with #%%checkm_0.7 and separates columns with |")
		return Row{}, false
	}
	r.m.Rows++
	cells, at := r.cells(line)
	decode := decode
	if r.options.Stored {
		decode = decodeStored
	}
	row := Row{Line: r.line, URL: cells["fileurl"], Digest: strings.ToLower(decode(cells["hashvalue"])), Size: -1, Modified: decode(cells["filelastmodified"]),
		Name: decode(cells["filename"]), MediaType: decode(cells["mimetype"]), Creator: decode(cells["creator"]), Title: decode(cells["title"]), Date: decode(cells["date"])}
	if !r.options.Stored {
		r.characters(cells, at)
	}
	if err := source.Check(row.URL); err != nil {
		r.add(Error, max(1, at["fileurl"]), "found %q; %v", shown(row.URL), err)
	}
	r.digest(&row, cells["hashalgorithm"], at)
	r.numbers(&row, decode(cells["filesize"]), at)
	r.name(&row, at["filename"])
	r.identifiers(&row, decode(cells["primaryidentifier"]), decode(cells["localidentifier"]), at)
	if r.options.Check != nil {
		r.options.Check(row, func(column, why string) { r.add(Error, at[strings.ToLower(column)], "%s", why) })
	}
	return row, true
}

// characters reports cells that are too long for what they hold, or have a
// character that cannot be kept.
func (r *reader) characters(cells map[string]string, at map[string]int) {
	for _, column := range slices.Sorted(maps.Keys(cells)) {
		text := cells[column]
		if i := strings.IndexFunc(text, unstorable); i >= 0 && column != "filename" { // a name has its own rules
			r.add(Error, at[column]+i, "the column %s has the character %U; control characters cannot be kept",
				column, []rune(text[i:])[0])
		}
		most, bounded := map[string]int{"fileurl": MaxURL, "filelastmodified": maxCell, "mimetype": maxCell}[column]
		if bounded && len(text) > most {
			r.add(Error, at[column], "the column %s has %d bytes; at most %d are taken", column, len(text), most)
		}
	}
}

// unstorable reports whether a character cannot be kept by every later step: a
// control character, or one that XML 1.0 does not have.
func unstorable(c rune) bool { return unicode.IsControl(c) || c == 0xFFFE || c == 0xFFFF }

var decoder = strings.NewReplacer("%20", " ", "%7c", "|", "%7C", "|")

func decode(s string) string { return decoder.Replace(s) }

func (r *reader) digest(row *Row, algorithm string, at map[string]int) {
	row.Algorithm = Canonical(decode(algorithm))
	length, known := Lengths[row.Algorithm]
	switch {
	case row.Algorithm == "" && row.Digest == "":
		severity := Warning
		if r.options.RequireDigest {
			severity = Error
		}
		r.add(severity, 0, "the file has no digest; it cannot be checked after the transfer")
	case row.Algorithm == "":
		r.add(Error, at["hashvalue"], "there is a digest but no algorithm; expected e.g. sha256 in the column hashAlgorithm")
	case row.Digest == "":
		r.add(Error, at["hashalgorithm"], "there is an algorithm but no digest; expected it in the column hashValue")
	case !known:
		r.add(Error, at["hashalgorithm"], "found the algorithm %q; expected one of adler32, crc32, md5, sha1, sha256, sha384, sha512", shown(algorithm))
	case len(row.Digest) != length || strings.Trim(row.Digest, "0123456789abcdef") != "":
		r.add(Error, at["hashvalue"], "found a digest of %d characters; expected %d hexadecimal characters for %s", len(row.Digest), length, row.Algorithm)
	}
}

// iso8601 is the form of a date or a date with time (ISO 8601).
var iso8601 = regexp.MustCompile(`^\d{4}(-\d\d(-\d\d([T ]\d\d:\d\d(:\d\d([.,]\d+)?)?(Z|[+-]\d\d:?\d\d)?)?)?)?$`)

func (r *reader) numbers(row *Row, size string, at map[string]int) {
	if size != "" {
		n, err := strconv.ParseInt(size, 10, 64)
		if err != nil || n < 0 {
			r.add(Error, at["filesize"], "found the size %q; expected a number of bytes", shown(size))
		} else {
			row.Size = n
		}
	}
	if row.Modified != "" && !iso8601.MatchString(row.Modified) {
		r.add(Warning, at["filelastmodified"], "found the date %q; expected ISO 8601, e.g. 2026-11-21T15:30:00Z; it is kept as text", shown(row.Modified))
	}
}

func (r *reader) name(row *Row, at int) {
	if row.Name == "" {
		if u, err := url.Parse(row.URL); err == nil {
			row.Name = strings.TrimPrefix(u.Path, "/")
			if r.m.Kind != Object {
				row.Name = path.Base(u.Path)
			}
		}
		r.add(Warning, at, "there is no fileName; %q is taken from the URL", cut(row.Name, 100))
	}
	if reason := BadName(row.Name); reason != "" {
		r.add(Error, at, "the fileName %q %s", cut(row.Name, 100), reason)
		return
	}
	if r.m.Kind != Object && r.m.Kind != "" {
		return // each row is an object of its own
	}
	r.clashes(row.Name, at)
}

// name stands for a file name: many are remembered, and they can be long.
type name [16]byte

func nameOf(s string) name {
	sum := sha256.Sum256([]byte(s))
	return name(sum[:16])
}

// seen is where names were, by line.
type seen struct{ names, folded, folders map[name]int32 }

// clashes reports a name that cannot be beside those before it.
func (r *reader) clashes(file string, at int) {
	line, is, folded := int32(r.line), nameOf(file), nameOf(strings.ToLower(file))
	if before, again := r.seen.names[is]; again {
		r.add(Error, at, "the fileName %q is that of line %d too; expected each name once", file, before)
	} else if other, clash := r.seen.folded[folded]; clash {
		r.add(Warning, at, "the fileName %q differs from that of line %d in case only", file, other)
	}
	if below, clash := r.seen.folders[is]; clash {
		r.add(Error, at, "the fileName %q is also the folder of the file of line %d", file, below)
	}
	for dir := path.Dir(file); dir != "." && dir != "/"; dir = path.Dir(dir) {
		folder := nameOf(dir)
		if is, clash := r.seen.names[folder]; clash {
			r.add(Error, at, "the folder %q of this file is also the fileName of line %d", dir, is)
		}
		if _, known := r.seen.folders[folder]; known {
			break // and with it those above
		}
		r.seen.folders[folder] = line
	}
	r.seen.names[is], r.seen.folded[folded] = line, line
}

// arkForm is as much of an ARK as a manifest can be held to.
var arkForm = regexp.MustCompile(`(?i)ark:/?[0-9bcdfghjkmnpqrstvwxz]{5,9}/[^\s|]+$`)

func (r *reader) identifiers(row *Row, primary, local string, at map[string]int) {
	row.Primary = primary
	if primary != "" && !arkForm.MatchString(primary) {
		r.add(Error, at["primaryidentifier"], "found the primaryIdentifier %q; expected an ARK, e.g. ark:/99999/fk4tq65d6k", shown(primary))
	}
	for id := range strings.SplitSeq(local, ";") {
		if id = strings.TrimSpace(id); id != "" && !slices.Contains(row.Local, id) {
			row.Local = append(row.Local, id)
		}
	}
}

// MaxName is the longest path of a file in bytes (the longest that Linux opens).
const MaxName = 4096

// BadName says why a file cannot be stored under this path, or "" if it can.
func BadName(name string) string {
	switch {
	case name == "":
		return "is empty"
	case !utf8.ValidString(name):
		return "is not UTF-8"
	case strings.HasPrefix(name, "/") || strings.HasSuffix(name, "/"):
		return "begins or ends with a slash"
	case len(name) > MaxName:
		return fmt.Sprintf("has %d bytes; at most %d are taken", len(name), MaxName)
	}
	for _, c := range name {
		if c < 0x20 || c == 0x7f {
			return "has a control character"
		}
		if c == 0xfffe || c == 0xffff {
			return fmt.Sprintf("has the character %U, which XML cannot hold", c)
		}
	}
	for seg := range strings.SplitSeq(name, "/") {
		if seg == "" || seg == "." || seg == ".." {
			return fmt.Sprintf("has the path segment %q", seg)
		}
	}
	return ""
}

// end reports what is missing of the whole.
func (r *reader) end() {
	r.line++
	if r.csv {
		return
	}
	if !r.version {
		r.add(Warning, 0, "there is no #%%checkm_0.7 line")
	}
	if !r.profile {
		r.add(Error, 0, "there is no #%%profile line; expected e.g. #%%profile | http://uc3.cdlib.org/registry/ingest/manifest/mrt-ingest-manifest")
	}
	if !r.prefix {
		r.add(Warning, 0, "there is no #%%prefix line")
	}
	if r.declared == nil {
		r.add(Warning, 0, "there is no #%%fields line; the profile's columns are taken")
	}
	if !r.eof {
		r.add(Error, 0, "there is no #%%eof line: the manifest may have been cut off; add #%%eof as its last line if it is whole")
	}
	if r.m.Rows == 0 {
		r.add(Error, 0, "the manifest lists nothing")
	}
}
