package pronom

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"archivist/pkg/objects/formats"
)

// made is one Identifier for all tests: they use it at the same time.
var made = sync.OnceValues(New)

func identifier(t *testing.T) *Identifier {
	t.Helper()
	d, err := made()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// file is content in memory that counts what is read of it.
type file struct {
	*bytes.Reader
	mu   sync.Mutex
	read int64
}

func (f *file) ReadAt(p []byte, off int64) (int, error) {
	f.mu.Lock()
	f.read += int64(len(p))
	f.mu.Unlock()
	return f.Reader.ReadAt(p, off)
}

func identify(t *testing.T, d *Identifier, name string, content []byte) (formats.Match, int64) {
	t.Helper()
	f := &file{Reader: bytes.NewReader(content)}
	matches, err := d.Identify(t.Context(), name, f, int64(len(content)))
	if err != nil || len(matches) != 1 {
		t.Fatalf("%s: %+v, %v", name, matches, err)
	}
	return matches[0], f.read
}

// zipped is a ZIP file with these entries: name, content, name, content …
func zipped(t *testing.T, method uint16, entries ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for i := 0; i < len(entries); i += 2 {
		entry, err := w.CreateHeader(&zip.FileHeader{Name: entries[i], Method: method})
		if err == nil {
			_, err = io.WriteString(entry, entries[i+1])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

const wordTypes = `<?xml version="1.0" encoding="UTF-8" standalone="yes"?><Types><Override PartName="/word/document.xml" ` +
	`ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>`

// TestFormats: real files of containers, of plain formats, with a password, damaged and empty.
func TestFormats(t *testing.T) {
	epub := zipped(t, zip.Store, "mimetype", "application/epub+zip", "META-INF/container.xml", "<container/>")
	docx := zipped(t, zip.Deflate, "[Content_Types].xml", wordTypes, "word/document.xml", "<w:document/>")
	for _, c := range []struct {
		name     string
		content  []byte
		id, says string // in the match as text
	}{
		{"writer.odt", nil, "fmt/1756", "OpenDocument Text 1.3 application/vnd.oasis.opendocument.text"},
		{"text.doc", nil, "fmt/40", "container name CompObj"},
		{"password.pdf", nil, "fmt/276", "1.7"},
		{"pdfa.pdf", nil, "fmt/354", "Acrobat PDF/A - Portable Document Format 1b"},
		{"lorem.txt", nil, "x-fmt/111", "text match ASCII"},
		{"lorem.rtf", nil, formats.Unknown, "possibilities based on extension are fmt/45"},
		{"password.zip", nil, "x-fmt/263", "ZIP Format"},
		{"book.epub", epub, "fmt/483", "container name mimetype"},
		{"text.docx", docx, "fmt/412", "container name [Content_Types].xml"},
		{"no extension", docx, "fmt/412", ""},
		{"text.pdf", docx, "fmt/412", "extension mismatch"},
		{"broken.docx", docx[:len(docx)-30], formats.Unknown, "the container cannot be read"},
		{"empty.none", []byte{}, formats.Unknown, "the file is empty"},
		{"empty.pdf", []byte{}, formats.Unknown, "the file is empty"},
		{"noise", []byte("\x01\x02\x9c\x00\xfe"), formats.Unknown, "no match"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.content == nil {
				var err error
				if c.content, err = os.ReadFile(filepath.Join("testdata", c.name)); err != nil {
					t.Fatal(err)
				}
			}
			m, _ := identify(t, identifier(t), "a/folder/"+c.name, c.content)
			text := strings.Join([]string{m.Name, m.Version, m.MediaType, m.Basis, m.Warning}, " ")
			if m.ID != c.id || !strings.Contains(text, c.says) {
				t.Errorf("%s: got %+v, want %s and %q", c.name, m, c.id, c.says)
			}
		})
	}
}

// TestSignatures: the versions of the signatures are known, and named in results.
func TestSignatures(t *testing.T) {
	if got := identifier(t).Signatures; !strings.HasPrefix(got, "DROID_SignatureFile_V122.xml; container-signature-") {
		t.Errorf("the signatures are %q", got)
	}
}

// huge is a file of zeros with a beginning and an end. Reads are counted.
type huge struct {
	head, tail []byte
	size       int64
	mu         sync.Mutex
	read       int64
}

func (h *huge) ReadAt(p []byte, off int64) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.read += int64(len(p))
	clear(p)
	if off < int64(len(h.head)) {
		copy(p, h.head[off:])
	}
	if from := h.size - int64(len(h.tail)); off+int64(len(p)) > from {
		copy(p[max(0, from-off):], h.tail[max(0, off-from):])
	}
	return len(p), nil
}

// TestHuge: of 50 GiB little is read, from both ends, and the result says what was not.
func TestHuge(t *testing.T) {
	d := *identifier(t)
	d.Limits.Read = 4 << 20
	const size = 50 << 30
	known := &huge{head: []byte("ID3\x03\x00"), size: size}
	tiff := &huge{head: []byte("II\x2a\x00"), size: size}
	archive := &huge{head: []byte("PK\x03\x04"), tail: zipped(t, zip.Store, "a", "b"), size: size}
	for _, c := range []struct {
		name, id, says string
		content        *huge
	}{
		{"scan.tif", "fmt/353", "at most", tiff},
		{"sound", formats.Unknown, "at most 4194304 of 53687091200 bytes were examined", known},
		{"many.zip", "x-fmt/263", "", archive},
	} {
		matches, err := d.Identify(t.Context(), c.name, c.content, size)
		if err != nil || len(matches) != 1 || matches[0].ID != c.id || !strings.Contains(matches[0].Warning, c.says) {
			t.Errorf("%s: %+v, %v", c.name, matches, err)
		}
		if c.content.read > 10<<20 {
			t.Errorf("%s: %d bytes were read", c.name, c.content.read)
		}
	}
}

// TestHostile: containers that would use up memory or disk are not opened; their format is still found.
func TestHostile(t *testing.T) {
	d := *identifier(t)
	d.Limits.Entry, d.Limits.Ratio, d.Limits.Entries = 1<<20, 50, 1000
	d.Limits.Listing = 512 << 10

	bomb := zipped(t, zip.Deflate, "[Content_Types].xml", strings.Repeat(" ", 4<<20)+wordTypes)
	promises := zipped(t, zip.Store, "a", "b")
	binary.LittleEndian.PutUint16(promises[len(promises)-12:], 60_000)

	var many []string
	for n := range 900 {
		many = append(many, fmt.Sprintf("%04d-%s", n, strings.Repeat("x", 1000)), "")
	}
	for name, c := range map[string]struct {
		content []byte
		says    string
	}{
		"bomb.zip":     {bomb, "an entry has"},
		"promises.zip": {promises, "its directory has 60000 entries"},
		"many.zip":     {zipped(t, zip.Store, many...), "its directory has more than 524288 bytes"},
	} {
		m, read := identify(t, &d, name, c.content)
		if m.ID != "x-fmt/263" || !strings.Contains(m.Warning, "not opened") || !strings.Contains(m.Warning, c.says) {
			t.Errorf("%s: %+v", name, m)
		}
		if read > 4<<20 {
			t.Errorf("%s: %d bytes were read", name, read)
		}
	}
}

// failing fails from the nth read on.
type failing struct {
	io.ReaderAt
	mu   sync.Mutex
	left int
}

var errRead = errors.New("the bucket does not answer")

func (f *failing) ReadAt(p []byte, off int64) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left--
	if f.left < 0 {
		return 0, errRead
	}
	return f.ReaderAt.ReadAt(p, off)
}

// TestFailure: content that cannot be read is an error at whatever read it fails, and never a result.
func TestFailure(t *testing.T) {
	entries := []string{"[Content_Types].xml", wordTypes}
	for n := range 5 {
		entries = append(entries, fmt.Sprint(n), strings.Repeat("content", 100_000))
	}
	content := zipped(t, zip.Store, entries...)
	for at := 0; ; at++ {
		f := &failing{ReaderAt: bytes.NewReader(content), left: at}
		matches, err := identifier(t).Identify(t.Context(), "a.docx", f, int64(len(content)))
		if f.left >= 0 {
			if err != nil || at < 2 || matches[0].ID != "fmt/412" {
				t.Errorf("after %d reads: %+v, %v", at, matches, err)
			}
			return
		}
		if !errors.Is(err, errRead) || matches != nil {
			t.Errorf("read %d failed: %+v, %v", at, matches, err)
		}
	}
}

// TestCut: what a library says of a hostile file has a length.
func TestCut(t *testing.T) {
	m := match([][2]string{{"id", "fmt/1"}, {"basis", strings.Repeat("ä", 1000)}, {"warning", "w"}}, "more")
	if len(m.Basis) > 510 || m.Warning != "w; more" || m.ID != "fmt/1" {
		t.Errorf("%+v", m)
	}
}
