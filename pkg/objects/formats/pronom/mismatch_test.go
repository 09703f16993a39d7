package pronom

import (
	"archive/zip"
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"archivist/pkg/objects/formats"
)

const (
	sentence = "Access denied. Some text.\n"
	markup   = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<a>b</a>\n"
	page     = "<!DOCTYPE html>\n<html><head><title>t</title></head><body>x</body></html>"
)

// TestMismatch: what a depositor is told of a file whose content is not what its name announces, and of which files
// nothing is said.
func TestMismatch(t *testing.T) {
	d := identifier(t)
	tiff := "II*\x00\x08\x00\x00\x00\x00\x00" + strings.Repeat("\x00", 100)
	word := string(zipped(t, zip.Deflate, "[Content_Types].xml", wordTypes, "word/document.xml", "<document/>"))
	other := string(zipped(t, zip.Deflate, "a.txt", sentence))
	pdf := "%PDF-1.4\n1 0 obj\nendobj\n%%EOF\n"
	for _, c := range []struct{ name, content, says string }{
		{"photo.pdf", tiff, `its content is Tagged Image File Format (fmt/353), although its name ends in ".pdf"`},
		{"scan.TIF", pdf, "fmt/18"},
		{"image.tif", sentence, `no signature of a known format, although all files whose name ends in ".tif" have one`},
		{"image.jpg", page, "fmt/471"},
		{"image.png", markup, "fmt/101"},
		{"text.docx", other, "x-fmt/263"},
		{"text.txt", pdf, "fmt/18"},

		{"photo.tif", tiff, ""},
		{"photo", tiff, ""},
		{"report.pdf", pdf, ""},
		{"text.docx", word, ""},
		{"maps.kfz", other, ""},
		{"book.fb2", markup, ""},
		{"text.txt", page, ""},
		{"text.txt", sentence, ""},
		{"film.srt", sentence, ""},
		{"readme", sentence, ""},
		{"empty.tif", "", ""},
		{"table.csv", sentence, ""},
	} {
		m, _ := identify(t, d, "a.folder/"+c.name, []byte(c.content))
		said := formats.Mismatch("a.folder/"+c.name, []formats.Match{m})
		if (said == "") != (c.says == "") || !strings.Contains(said, c.says) {
			t.Errorf("%s, which is %s with %q: %q, expected %q", c.name, m.ID, m.Warning, said, c.says)
		}
	}
	part := formats.Match{ID: "fmt/353", Name: "TIFF", MediaType: "image/tiff",
		Warning: "extension mismatch; at most 5 of 10 bytes were examined"}
	for name, told := range map[string]bool{"a.pdf": true, "raw.dng": false} {
		if said := formats.Mismatch(name, []formats.Match{part}); (said != "") != told {
			t.Errorf("of a TIFF that was examined in part, with the name %s: %q", name, said)
		}
	}
	cut := formats.Match{ID: formats.Unknown, Warning: "no match; possibilities based on extension are fmt/353; " +
		"at most 5 of 10 bytes were examined"}
	if said := formats.Mismatch("a.tif", []formats.Match{cut}); said != "" {
		t.Errorf("of a file that was examined in part: %q", said)
	}
}

// TestNoFalseMismatch: of the real files that are here, nothing is said, unless the library speaks against their name.
func TestNoFalseMismatch(t *testing.T) {
	d, seen := identifier(t), 0
	for _, folder := range []string{"testdata", "../../../../localstack/sample"} {
		err := filepath.WalkDir(folder, func(name string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			content, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			seen++
			m, _ := identify(t, d, name, content)
			if said := formats.Mismatch(name, []formats.Match{m}); said != "" {
				t.Errorf("%s: %s", name, said)
			}
			// Under the name of another kind it is told.
			ext := ".flac"
			if said := formats.Mismatch("a"+ext, identified(t, d, "a"+ext, content)); said == "" {
				t.Errorf("nothing is said of %s with the name of a sound", name)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if seen < 20 {
		t.Errorf("%d files were there", seen)
	}
}

func identified(t *testing.T, d *Identifier, name string, content []byte) []formats.Match {
	t.Helper()
	matches, err := d.Identify(t.Context(), name, bytes.NewReader(content), int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	return matches
}

// BenchmarkIdentify is the time for one file of 16 MiB whose content makes the library search long.
func BenchmarkIdentify(b *testing.B) {
	d, err := made()
	if err != nil {
		b.Fatal(err)
	}
	for name, unit := range map[string]string{"zeros": "\x00", "begins of PDF": "%PDF-1.4 obj", "markup": "<html><svg>",
		"RIFF": "RIFF\x00\x00\x00\x00WAVEfmt "} {
		content := []byte(strings.Repeat(unit, 16<<20/len(unit)))
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_, err := d.Identify(b.Context(), "a.tif", bytes.NewReader(content), int64(len(content)))
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
