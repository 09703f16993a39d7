package container_test

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"strings"
	"testing"
	"time"

	"archivist/pkg/formats/container"
)

// entry is an entry of a zip file as a test needs it.
type entry struct {
	name, text string
	stored     bool
	flags      uint16
	made       uint16 // by which system
	extra      []byte
	mode       fs.FileMode
	method     uint16
	lies       func(h *zip.FileHeader) // changes what the directory says
}

// zipOf is a zip file. The headers are written as they are given, so that they can be wrong.
func zipOf(entries ...entry) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range entries {
		packed := []byte(e.text)
		if !e.stored {
			packed = deflate(e.text)
		}
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Flags: e.flags, CreatorVersion: e.made << 8,
			Extra: e.extra, NonUTF8: e.flags&0x800 == 0, CRC32: crc32.ChecksumIEEE([]byte(e.text)),
			UncompressedSize64: uint64(len(e.text))}
		if e.mode != 0 {
			h.SetMode(e.mode)
		}
		if e.stored {
			h.Method = zip.Store
		}
		h.CompressedSize64 = uint64(len(packed))
		if e.method != 0 {
			h.Method = e.method
		}
		if e.lies != nil {
			e.lies(h)
		}
		to, err := w.CreateRaw(h)
		if err != nil {
			panic(err)
		}
		_, _ = to.Write(packed)
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// pathField is the extra field Info-ZIP Unicode Path.
func pathField(raw, name string) []byte {
	data := append([]byte{1}, binary.LittleEndian.AppendUint32(nil, crc32.ChecksumIEEE([]byte(raw)))...)
	data = append(data, name...)
	return append([]byte{0x75, 0x70, byte(len(data)), 0}, data...)
}

func TestZipNames(t *testing.T) {
	zurich := pathField("Z?rich.txt", "Zürich.txt")
	utc := []byte{0x55, 0x54, 5, 0, 1, 0x80, 0xe3, 0x8f, 0x5f}
	for _, row := range []struct {
		what               string
		e                  entry
		name, raw, warning string
	}{
		{"ASCII", entry{name: "a b%.txt"}, "a b%.txt", "", ""},
		{"UTF-8 by its flag", entry{name: "Zürich.txt", flags: 0x800}, "Zürich.txt", "", ""},
		{"UTF-8 without the flag, as macOS writes it", entry{name: "Zu\u0308rich.txt", made: 3}, "Zu\u0308rich.txt", "",
			"read as UTF-8"},
		{"code page 437", entry{name: "Z\x81rich 50%.txt"}, "Zürich 50%.txt", "Z%81rich%2050%25.txt", "code page 437"},
		{"flag for UTF-8 that is none", entry{name: "Z\x81rich.txt", flags: 0x800}, "Zürich.txt", "Z%81rich.txt",
			"code page 437"},
		{"name in an extra field", entry{name: "Z?rich.txt", extra: zurich}, "Zürich.txt", "Z?rich.txt", ""},
		{"extra field of another name", entry{name: "b.txt", extra: zurich}, "b.txt", "", ""},
		{"backslashes of Windows", entry{name: `letters\1.txt`}, "letters/1.txt", `letters\1.txt`, "backslashes"},
		{"a backslash on Unix", entry{name: `a\b.txt`, made: 3}, `a\b.txt`, "", ""},
		{"dot", entry{name: "./a/./b.txt", made: 3}, "a/b.txt", "./a/./b.txt", ""},
		{"time in UTC", entry{name: "a.txt", extra: utc}, "a.txt", "", ""},
		{"a top folder", entry{name: "top/a.txt"}, "top/a.txt", "", ""},
	} {
		row.e.text = "content of " + row.what
		got, err := unpack(t, zipOf(row.e), container.DefaultLimits)
		if err != nil || len(got.files) != 1 || got.bytes[row.name] != row.e.text {
			t.Errorf("%s: %v, %v", row.what, got, err)
			continue
		}
		f := got.files[0]
		if f.Raw != row.raw || (f.Warning == "") != (row.warning == "") || !strings.Contains(f.Warning, row.warning) {
			t.Errorf("%s: %+v", row.what, f)
		}
	}
}

// TestZipTimes: without a time in UTC, the time zone is not known.
func TestZipTimes(t *testing.T) {
	at := time.Date(1999, 12, 31, 23, 58, 2, 0, time.UTC)
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for name, h := range map[string]*zip.FileHeader{
		"utc":   {Name: "utc", Modified: at.In(time.FixedZone("", 3600))},
		"local": {Name: "local", ModifiedDate: 10143, ModifiedTime: 48961},
		"none":  {Name: "none"},
	} {
		if name == "local" {
			h.Method = zip.Store
		}
		if _, err := w.CreateHeader(h); err != nil {
			t.Fatal(err)
		}
	}
	_ = w.Close()

	got, err := unpack(t, b.Bytes(), container.DefaultLimits)
	want := map[string]string{"utc": "1999-12-31T23:58:02Z", "local": "1999-12-31T23:58:02", "none": ""}
	for _, f := range got.files {
		if f.Modified != want[f.Name] {
			t.Errorf("%s: %q; expected %q", f.Name, f.Modified, want[f.Name])
		}
	}
	if err != nil || len(got.files) != 3 {
		t.Fatalf("%v, %v", got.files, err)
	}
}

var ok = entry{name: "ok.txt", text: "ok"}

// hostileZips are zip files that are refused.
var hostileZips = []struct {
	what, says string
	entries    []entry
	change     func(data []byte) []byte
}{
	{what: "absolute", says: "begins or ends with a slash", entries: []entry{{name: "/etc/passwd"}}},
	{what: "parent", says: `segment ".."`, entries: []entry{ok, {name: "../../evil.sh"}}},
	{what: "parent in the middle", says: `segment ".."`, entries: []entry{{name: "a/../../evil.sh"}}},
	{what: "parent by backslashes", says: `segment ".."`, entries: []entry{{name: `..\..\evil.exe`}}},
	{what: "parent by an extra field", says: `segment ".."`,
		entries: []entry{{name: "ok", extra: pathField("ok", "../evil")}}},
	{what: "parent in another spelling", says: `segment ".."`, entries: []entry{{name: "./../evil"}}},
	{what: "NUL", says: "U+0000", entries: []entry{{name: "a.txt\x00.exe"}}},
	{what: "line break", says: "U+000A", entries: []entry{{name: "a\nb"}}},
	{what: "no name", says: "has no name", entries: []entry{{name: ""}}},
	{what: "long name", says: "at most 4096", entries: []entry{{name: strings.Repeat("a/", 2100) + "b"}}},
	{what: "double slash", says: "", entries: []entry{{name: "a//b"}, {name: "a/b"}}},
	{what: "same name", says: "the same name", entries: []entry{{name: "a"}, {name: "a"}}},
	{what: "same name after decoding", says: "the same name",
		entries: []entry{{name: "ü"}, {name: "\x81", flags: 0}}},
	{what: "file and folder", says: "also that of a folder", entries: []entry{{name: "a/b"}, {name: "a"}}},
	{what: "folder and file", says: `folder "a" is also`, entries: []entry{{name: "a"}, {name: "a/b"}}},
	{what: "symbolic link", says: "a symbolic link", entries: []entry{{name: "l", text: "/etc/passwd",
		mode: 0o777 | fs.ModeSymlink}}},
	{what: "device", says: "a device", entries: []entry{{name: "sda", mode: fs.ModeDevice}}},
	{what: "pipe", says: "a pipe", entries: []entry{{name: "p", mode: fs.ModeNamedPipe}}},
	{what: "folder with content", says: "a folder with content", entries: []entry{{name: "d/", text: "x"}}},
	{what: "encrypted", says: "is encrypted", entries: []entry{{name: "a", flags: 1}}},
	{what: "strong encryption", says: "is encrypted", entries: []entry{{name: "a", flags: 1 << 6}}},
	{what: "masked headers", says: "is encrypted", entries: []entry{{name: "a", flags: 1 << 13}}},
	{what: "patch", says: "a patch", entries: []entry{{name: "a", flags: 1 << 5}}},
	{what: "AES", says: "AES encryption", entries: []entry{{name: "a", method: 99}}},
	{what: "bzip2", says: "bzip2", entries: []entry{{name: "a", method: 12}}},
	{what: "Deflate64", says: "Deflate64", entries: []entry{{name: "a", method: 9}}},
	{what: "LZMA", says: "LZMA", entries: []entry{{name: "a", method: 14}}},
	{what: "Zstandard", says: "Zstandard", entries: []entry{{name: "a", method: 93}}},
	{what: "unknown method", says: "not known", entries: []entry{{name: "a", method: 77}}},
	{what: "wrong CRC", says: "CRC-32", entries: []entry{ok, {name: "a", text: "text",
		lies: func(h *zip.FileHeader) { h.CRC32++ }}}},
	{what: "said to be shorter", says: "longer than the 3 bytes", entries: []entry{{name: "a", text: "text",
		lies: func(h *zip.FileHeader) { h.UncompressedSize64 = 3 }}}},
	{what: "said to be longer", says: "ends after 4 of 9 bytes", entries: []entry{{name: "a", text: "text",
		lies: func(h *zip.FileHeader) { h.UncompressedSize64 = 9 }}}},
	{what: "stored with two sizes", says: "two sizes", entries: []entry{{name: "a", text: "text", stored: true,
		lies: func(h *zip.FileHeader) { h.UncompressedSize64 = 9 }}}},
	{what: "enormous", says: "2^63", entries: []entry{{name: "a", text: "text",
		lies: func(h *zip.FileHeader) { h.UncompressedSize64 = 1 << 63 }}}},
	{what: "too much", says: "more than 1073741824 bytes", entries: []entry{{name: "a", text: "text",
		lies: func(h *zip.FileHeader) { h.UncompressedSize64 = 1<<30 + 1 }}}},
	{what: "sum too much", says: "bytes together", entries: []entry{{name: "a",
		lies: func(h *zip.FileHeader) { h.UncompressedSize64 = 1<<63 - 1 }}, {name: "b",
		lies: func(h *zip.FileHeader) { h.UncompressedSize64 = 1<<63 - 1 }}}},
	{what: "bomb", says: "times its size", entries: []entry{{name: "a", text: strings.Repeat("\x00", 80<<20)}}},
	{what: "bomb that lies", says: "longer than the 100 bytes", entries: []entry{{name: "a",
		text: strings.Repeat("\x00", 80<<20), lies: func(h *zip.FileHeader) { h.UncompressedSize64 = 100 }}}},
	{what: "too many", says: "more than 3 files",
		entries: []entry{{name: "1"}, {name: "2"}, {name: "3"}, {name: "4"}}},
	{what: "nothing", says: "no files", entries: nil},
	{what: "only folders", says: "no files", entries: []entry{{name: "a/"}, {name: "a/b/"}}},
	{what: "no directory", says: "not a complete zip", entries: []entry{ok},
		change: func(d []byte) []byte { return d[:len(d)-30] }},
	{what: "damaged data", says: "the container", entries: []entry{{name: "a", text: strings.Repeat("text", 99)}},
		change: func(d []byte) []byte { d[40] ^= 0x55; return d }},
	{what: "damaged local header", says: "local header", entries: []entry{ok, {name: "b", text: "b"}},
		change: func(d []byte) []byte { d[bytes.LastIndex(d, []byte("PK\x03\x04"))] = 'X'; return d }},
	{what: "content behind the end", says: "behind the end", entries: []entry{{name: strings.Repeat("a", 1000)},
		{name: "a", text: "text", stored: true,
			lies: func(h *zip.FileHeader) { h.CompressedSize64, h.UncompressedSize64 = 1500, 1500 }}}},
	{what: "overlap", says: "overlap", entries: []entry{
		{name: "a", text: strings.Repeat("a", 9000), stored: true}, {name: "b", text: "b", stored: true,
			lies: func(h *zip.FileHeader) { h.CompressedSize64, h.UncompressedSize64 = 9000, 9000 }}}},
}

func TestRefusedZips(t *testing.T) {
	few := container.Limits{Files: 3, Bytes: 1 << 30, Ratio: 200}
	for _, row := range hostileZips {
		data := zipOf(row.entries...)
		if row.change != nil {
			data = row.change(data)
		}
		refused(t, row.what, data, few, row.says)
	}
}

// TestManyEntries has as many entries as a large deposit.
func TestManyEntries(t *testing.T) {
	entries := make([]entry, 100_000)
	for i := range entries {
		entries[i] = entry{name: fmt.Sprintf("folder-%d/file-%d.txt", i/1000, i), text: "text", stored: true}
	}
	got, err := read(t, zipOf(entries...), container.DefaultLimits, nil)
	if err != nil || len(got.files) != len(entries) {
		t.Fatalf("%d files, %v", len(got.files), err)
	}
}

// deflate packs a text.
func deflate(text string) []byte {
	var b bytes.Buffer
	w, _ := flate.NewWriter(&b, flate.BestCompression)
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	return b.Bytes()
}
