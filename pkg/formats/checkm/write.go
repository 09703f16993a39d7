package checkm

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// StoredProfile is the profile of the manifests that are stored with a version.
const StoredProfile = "http://uc3.cdlib.org/registry/store/manifest/mrt-add-manifest"

const fileFields = "#%%fields | nfo:fileUrl | nfo:hashAlgorithm | nfo:hashValue | nfo:fileSize |" +
	" nfo:fileLastModified | nfo:fileName"

const objectHeader = "#%%prefix | nfo: | http://www.semanticdesktop.org/ontologies/2007/03/22/nfo#\n" +
	"#%%prefix | nie: | http://www.semanticdesktop.org/ontologies/2007/01/19/nie#\n" +
	fileFields + " | nie:mimeType\n"

const batchHeader = "#%%prefix | mrt: | http://merritt.cdlib.org/terms#\n" +
	"#%%prefix | nfo: | http://www.semanticdesktop.org/ontologies/2007/03/22/nfo#\n" +
	fileFields + " | mrt:primaryIdentifier | mrt:localIdentifier | mrt:creator | mrt:title | mrt:date\n"

// Writer writes a manifest row by row. Read returns the same rows; a value that a row cannot
// hold is an error. It writes through a buffer: errors of the writer below come at the latest
// from Close.
type Writer struct {
	b      *bufio.Writer
	batch  bool
	encode func(string) (string, error)
}

// NewWriter begins an object manifest of a profile for a depositor to submit. The caller
// closes it, or the manifest has no end and is refused when it is read.
func NewWriter(w io.Writer, profile string) *Writer {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "#%%checkm_0.7\n#%%profile | %s\n"+objectHeader, profile)
	return &Writer{b: b, encode: submitted}
}

// NewStored begins the manifest that is stored with a version, with a comment of one
// line. It can hold every value, and is read with Options.Stored.
func NewStored(w io.Writer, comment string) *Writer {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "#%%checkm_0.7\n# %s\n#%%profile | %s\n"+objectHeader, comment, StoredProfile)
	return &Writer{b: b, encode: func(v string) (string, error) { return stored(v), nil }}
}

// Row writes one row. A row of an object manifest leaves out what only batches have, and the
// other way round.
func (w *Writer) Row(r Row) error {
	cells := []string{inURL(r.URL), r.Algorithm, r.Digest, "", r.Modified, r.Name}
	if r.Size >= 0 {
		cells[3] = strconv.FormatInt(r.Size, 10)
	}

	if w.batch {
		cells = append(cells, r.Primary, strings.Join(r.Local, "; "), r.Creator, r.Title, r.Date)
	} else {
		cells = append(cells, r.MediaType)
	}

	for i, cell := range cells[1:] {
		text, err := w.encode(cell)
		if err != nil {
			return fmt.Errorf("checkm: row of %q, column %d: %w", r.Name, i+2, err)
		}
		cells[i+1] = text
	}

	_, err := fmt.Fprintln(w.b, strings.Join(cells, " | "))
	return err
}

// Close ends the manifest with #%eof. It does not close the writer below.
func (w *Writer) Close() error {
	fmt.Fprintf(w.b, "#%%eof\n")
	return w.b.Flush()
}

// all writes the rows and the end.
func (w *Writer) all(rows []Row) error {
	for _, r := range rows {
		if err := w.Row(r); err != nil {
			return err
		}
	}
	return w.Close()
}

// Write writes rows as an object manifest of a profile, with #%eof.
func Write(w io.Writer, profile string, rows []Row) error {
	return NewWriter(w, profile).all(rows)
}

// WriteBatch writes rows as a batch manifest of a profile, with #%eof.
func WriteBatch(w io.Writer, profile string, rows []Row) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "#%%checkm_0.7\n#%%profile | %s\n"+batchHeader, profile)
	return (&Writer{b: b, batch: true, encode: submitted}).all(rows)
}

// inURL encodes characters that a URL in a row cannot have. The URL keeps its meaning.
func inURL(u string) string {
	return encode(u, func(_ int, c rune) bool {
		return c == '|' || unicode.IsSpace(c) || c < 0x20 ||
			c == 0x7f
	})
}

// submitted encodes a value as depositors do: only blanks and bars have a code.
func submitted(v string) (string, error) {
	switch {
	case decode(v) != v:
		return "", fmt.Errorf("%q has %%20 or %%7c, which stand for other characters in a manifest", v)
	case !utf8.ValidString(v):
		return "", fmt.Errorf("%q is not UTF-8", v)
	case strings.ContainsFunc(v, unstorable):
		return "", fmt.Errorf("%q has a control character or a line break", v)
	}

	out := edges(v, func(c rune) bool { return c == ' ' || c == '|' })
	if strings.TrimSpace(out) != out {
		return "", fmt.Errorf("%q begins or ends with a blank that has no code", v)
	}
	return out, nil
}

// triplet matches text that looks like an encoded byte (RFC 3986, section 2.1).
var triplet = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)

// stored encodes a value so that every value is read back unchanged. A percent sign is
// encoded only where it would be taken for a code.
func stored(v string) string {
	v = triplet.ReplaceAllStringFunc(v, func(s string) string { return "%25" + s[1:] })
	return edges(v, func(c rune) bool {
		return c == '|' || unicode.IsSpace(c) || c < 0x20 ||
			c == 0x7f
	})
}

// edges encodes bars and control characters anywhere, and all characters that code
// accepts at the ends of a value.
func edges(v string, code func(rune) bool) string {
	begin := len(v) - len(strings.TrimLeftFunc(v, code))
	end := len(strings.TrimRightFunc(v, code))
	return encode(v, func(i int, c rune) bool {
		return code(c) && (i < begin || i >= end || c == '|' || c < 0x20 || c == 0x7f)
	})
}

// encode writes the bytes of some characters as %xx.
func encode(v string, which func(at int, c rune) bool) string {
	var b strings.Builder
	for i, c := range v {
		size := utf8.RuneLen(c)
		if c == utf8.RuneError && !strings.HasPrefix(v[i:], string(c)) {
			size = 1 // a byte that is not UTF-8
		}

		if !which(i, c) {
			b.WriteString(v[i : i+size])
			continue
		}

		for j := range size {
			fmt.Fprintf(&b, "%%%02x", v[i+j])
		}
	}
	return b.String()
}

// decodeStored is the reverse of stored.
func decodeStored(v string) string {
	return triplet.ReplaceAllStringFunc(v, func(s string) string {
		n, _ := strconv.ParseUint(s[1:], 16, 8) // two hexadecimal digits
		return string([]byte{byte(n)})
	})
}
