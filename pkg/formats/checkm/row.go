package checkm

import (
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"archivist/pkg/kernel/source"
)

// row reads a line as a row. Cells of the profile that are not declared are empty.
func (r *reader) row(line string) (Row, bool) {
	if r.isCSV(line) {
		return Row{}, false
	}

	r.m.Rows++
	cells, at := r.cells(line)
	decode := decode
	if r.options.Stored {
		decode = decodeStored
	} else {
		r.characters(cells, at)
	}

	row := Row{
		Line:      r.line,
		URL:       cells["fileurl"],
		Digest:    strings.ToLower(decode(cells["hashvalue"])),
		Size:      -1,
		Modified:  decode(cells["filelastmodified"]),
		Name:      decode(cells["filename"]),
		MediaType: decode(cells["mimetype"]),
		Creator:   decode(cells["creator"]),
		Title:     decode(cells["title"]),
		Date:      decode(cells["date"]),
	}

	// A row without a URL column has its problem at the beginning of the line.
	if err := source.CheckPayload(row.URL); err != nil && !r.options.Inside {
		r.add(Error, max(1, at["fileurl"]), "found %q; %v", shown(row.URL), err)
	}

	r.digest(&row, cells["hashalgorithm"], at)
	r.size(&row, decode(cells["filesize"]), at["filesize"])
	r.modified(row.Modified, at["filelastmodified"])
	r.name(&row, at["filename"])
	r.identifiers(&row, decode(cells["primaryidentifier"]), decode(cells["localidentifier"]), at)
	if r.options.Check != nil {
		r.options.Check(row,
			func(column, why string) { r.add(Error, at[strings.ToLower(column)], "%s", why) })
	}
	return row, true
}

// isCSV reports whether the file is a CSV: its first row has commas and no bar. It says so
// once instead of some problems for each row.
func (r *reader) isCSV(line string) bool {
	first := !r.profile && r.m.Rows == 0
	if !r.csv && first && strings.Contains(line, ",") && !strings.Contains(line, "|") {
		r.csv = true
		r.add(Error, 0, "this looks like CSV; a manifest begins with #%%checkm_0.7 and separates columns with |")
	}
	return r.csv
}

// cells splits a line into its columns by name, with where each begins. Columns count from 1,
// in bytes; a column that is missing has 0.
func (r *reader) cells(line string) (cells map[string]string, at map[string]int) {
	values := strings.Split(line, "|")
	order := r.declared
	if order == nil {
		order = r.m.Kind.columns()
	}

	// The row is read as its writer meant it, with a warning.
	if misdeclared(order, values) {
		order = r.m.Kind.columns()
		r.add(Warning, 1,
			"the URL is in the first column, not in that of #%%fields; the profile's columns are used")
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
			r.add(Warning, column, "there is one empty column more than the %d declared",
				len(order))
		default:
			r.add(Error, begins,
				"found %q in a column that is not declared; expected %d columns at most",
				shown(text), len(order))
		}

		column += len(cell) + 1
	}
	return cells, at
}

// misdeclared reports whether a row has the profile's order although another order is
// declared. Some writers make this error; the position of the URL shows it.
func misdeclared(order, values []string) bool {
	isURL := func(i int) bool {
		return i < len(values) &&
			source.CheckPayload(strings.TrimSpace(values[i])) == nil
	}
	i := slices.Index(order, "fileurl")
	return i > 0 && !isURL(i) && isURL(0)
}

// most is the maximum length of cells, in bytes by column.
var most = map[string]int{"fileurl": MaxURL, "filelastmodified": maxCell, "mimetype": maxCell}

// characters reports cells that are too long, or that have a character that cannot be
// stored.
func (r *reader) characters(cells map[string]string, at map[string]int) {
	for _, column := range slices.Sorted(maps.Keys(cells)) {
		text := cells[column]
		// A name has rules of its own.
		if i := strings.IndexFunc(text, unstorable); i >= 0 && column != "filename" {
			r.add(Error, at[column]+i,
				"the column %s has the character %U; control characters are not allowed",
				column, []rune(text[i:])[0])
		}
		if bound := most[column]; bound > 0 && len(text) > bound {
			r.add(Error, at[column], "the column %s has %d bytes; at most %d are allowed", column,
				len(text), bound)
		}
	}
}

// decoder decodes the two codes of depositors' manifests.
var decoder = strings.NewReplacer("%20", " ", "%7c", "|", "%7C", "|")

// All other percent signs stay as they are.
func decode(s string) string { return decoder.Replace(s) }

// digest reads a row's digest with its algorithm. The digest is in lower case by now.
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
		r.add(Error, at["hashvalue"], "there is a digest but no algorithm; "+
			"expected e.g. sha256 in the column hashAlgorithm")
	case row.Digest == "":
		r.add(Error, at["hashalgorithm"],
			"there is an algorithm but no digest; expected it in the column hashValue")
	case !known:
		r.add(Error, at["hashalgorithm"], "found the algorithm %q; expected one of %s",
			shown(algorithm), strings.Join(slices.Sorted(maps.Keys(Lengths)), ", "))
	case len(row.Digest) != length || strings.Trim(row.Digest, "0123456789abcdef") != "":
		r.add(Error, at["hashvalue"],
			"found a digest of %d characters; expected %d hexadecimal characters for %s",
			len(row.Digest), length, row.Algorithm)
	}
}

// iso8601 is the form of a date or a date with time (ISO 8601). Whether there is such a day
// is not checked.
var iso8601 = regexp.MustCompile(`^\d{4}(-\d\d(-\d\d([T ]\d\d:\d\d(:\d\d([.,]\d+)?)?(Z|[+-]\d\d:?\d\d)?)?)?)?$`)

// size reads a row's size, if it has one.
func (r *reader) size(row *Row, text string, at int) {
	if text == "" {
		return
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		r.add(Error, at, "found the size %q; expected a number of bytes", shown(text))
		return
	}
	row.Size = n
}

// modified warns of a date in another form.
func (r *reader) modified(date string, at int) {
	if date != "" && !iso8601.MatchString(date) {
		r.add(Warning, at,
			"found the date %q; expected ISO 8601, e.g. 2026-11-21T15:30:00Z; it is kept as text",
			shown(date))
	}
}

// name checks a row's file name, or takes it from the URL. In a batch manifest, names of
// different objects may be equal.
func (r *reader) name(row *Row, at int) {
	if row.Name == "" {
		row.Name = r.nameIn(row.URL)
		r.add(Warning, at, "there is no fileName; %q is taken from the URL", cut(row.Name, 100))
	}

	if reason := BadName(row.Name); reason != "" {
		r.add(Error, at, "the fileName %q %s", cut(row.Name, 100), reason)
		return
	}

	if r.m.Kind == Object || r.m.Kind == "" { // else each row is an object of its own
		r.clashes(row.Name, at)
	}
}

// nameIn derives a name from a URL: in an object manifest the whole path, else the last part.
func (r *reader) nameIn(raw string) string {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return ""
	case r.m.Kind == Object:
		return strings.TrimPrefix(u.Path, "/")
	}
	return path.Base(u.Path)
}

// arkForm is the form of an ARK that is required in a manifest.
var arkForm = regexp.MustCompile(`(?i)ark:/?[0-9bcdfghjkmnpqrstvwxz]{5,9}/[^\s|]+$`)

// identifiers reads a row's identifiers. The primary identifier must be an ARK. Local
// identifiers are separated by semicolons; one that a row has twice is kept once.
func (r *reader) identifiers(row *Row, primary, local string, at map[string]int) {
	switch {
	case primary == "":
	case !arkForm.MatchString(primary):
		r.add(Error, at["primaryidentifier"],
			"found the primaryIdentifier %q; expected an ARK, e.g. "+
				"ark:/99999/fk4tq65d6k",
			shown(primary))
	default:
		row.Primary = primary
		r.repeats("primaryIdentifier", strings.Replace(primary, "ark:/", "ark:", 1),
			at["primaryidentifier"])
	}

	for id := range strings.SplitSeq(local, ";") {
		id = strings.TrimSpace(id)
		if id != "" && !slices.Contains(row.Local, id) {
			row.Local = append(row.Local, id)
			r.repeats("localIdentifier", id, at["localidentifier"])
		}
	}
}
