package container_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"archivist/pkg/formats/container"
)

// tarOf is a tar file of headers, each with its content.
func tarOf(headers ...tar.Header) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		text := h.Uname // where the tests have the content
		h.Uname = ""
		if h.Typeflag == 0 {
			h.Typeflag = tar.TypeReg
		}
		if h.Typeflag == tar.TypeReg {
			h.Size = int64(len(text))
		}
		if err := w.WriteHeader(&h); err != nil {
			panic(err)
		}
		if h.Typeflag == tar.TypeReg {
			_, _ = w.Write([]byte(text))
		}
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func gzipped(data []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(data)
	_ = w.Close()
	return b.Bytes()
}

func TestTar(t *testing.T) {
	at := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	long := strings.Repeat("folder/", 50) + "a.txt"
	data := tarOf(tar.Header{Name: "./", Typeflag: tar.TypeDir},
		tar.Header{Name: "./a.txt", Uname: "Dear Anna", ModTime: at},
		tar.Header{Name: long, Uname: strings.Repeat("long ", 1000)},
		tar.Header{Name: "Zürich.txt", Uname: "", Format: tar.FormatPAX},
		tar.Header{Name: "Z\xfcrich-2.txt", Uname: "x", Format: tar.FormatGNU},
		tar.Header{Typeflag: tar.TypeXGlobalHeader, Name: "pax_global_header",
			PAXRecords: map[string]string{"comment": "c"}})

	for what, packed := range map[string][]byte{"tar": data, "tar.gz": gzipped(data)} {
		got, err := unpack(t, packed, container.DefaultLimits)
		if err != nil || len(got.files) != 4 {
			t.Fatalf("%s: %v, %v", what, got.files, err)
		}
		if f := got.files[0]; f.Name != "a.txt" || f.Raw != "./a.txt" || f.Modified != "2001-02-03T04:05:06Z" ||
			got.bytes["a.txt"] != "Dear Anna" {
			t.Errorf("%s: %+v: %q", what, f, got.bytes["a.txt"])
		}
		if len(got.bytes[long]) != 5000 {
			t.Errorf("%s: %d bytes", what, len(got.bytes[long]))
		}
		if f := got.files[3]; f.Name != "Zürich-2.txt" || f.Raw != "Z%FCrich-2.txt" || f.Warning == "" {
			t.Errorf("%s: %+v", what, f)
		}
	}
}

func TestRefusedTars(t *testing.T) {
	ok := tar.Header{Name: "ok.txt", Uname: "ok"}
	few := container.Limits{Files: 3, Bytes: 1 << 30, Ratio: 200}
	for _, row := range []struct {
		what, says string
		headers    []tar.Header
		change     func(data []byte) []byte
	}{
		{what: "absolute", says: "slash", headers: []tar.Header{ok, {Name: "/etc/passwd"}}},
		{what: "parent", says: `segment ".."`, headers: []tar.Header{{Name: "../evil"}}},
		{what: "symbolic link", says: "a symbolic link", headers: []tar.Header{{Name: "l", Linkname: "/",
			Typeflag: tar.TypeSymlink}}},
		{what: "hard link", says: "a link to another file", headers: []tar.Header{ok, {Name: "l", Linkname: "ok.txt",
			Typeflag: tar.TypeLink}}},
		{what: "device", says: "a device", headers: []tar.Header{{Name: "d", Typeflag: tar.TypeBlock}}},
		{what: "character device", says: "a device", headers: []tar.Header{{Name: "d", Typeflag: tar.TypeChar}}},
		{what: "pipe", says: "a pipe", headers: []tar.Header{{Name: "p", Typeflag: tar.TypeFifo}}},
		{what: "same name", says: "the same name", headers: []tar.Header{ok, ok}},
		{what: "same name after cleaning", says: "the same name", headers: []tar.Header{ok, {Name: "./ok.txt"}}},
		{what: "file and folder", says: "also that of a folder", headers: []tar.Header{{Name: "a/b"}, {Name: "a"}}},
		{what: "global header", says: "global header", headers: []tar.Header{{Typeflag: tar.TypeXGlobalHeader,
			PAXRecords: map[string]string{"path": "../evil"}}}},
		{what: "nothing", says: "no files", headers: []tar.Header{{Name: "a/", Typeflag: tar.TypeDir}}},
		{what: "too many", says: "more than 3 files", headers: []tar.Header{{Name: "1"}, {Name: "2"}, {Name: "3"},
			{Name: "4"}}},
		{what: "bomb", says: "times its size", change: gzipped,
			headers: []tar.Header{{Name: "a", Uname: strings.Repeat("\x00", 80<<20)}}},
		{what: "cut at a header", says: "without an end mark", headers: []tar.Header{ok, {Name: "b", Uname: "b"}},
			change: func(d []byte) []byte { return d[:1024] }},
		{what: "cut in a header", says: "was cut", headers: []tar.Header{ok, {Name: "b", Uname: "b"}},
			change: func(d []byte) []byte { return d[:1224] }},
		{what: "cut in content", says: "was cut", headers: []tar.Header{{Name: "b", Uname: strings.Repeat("b", 5000)}},
			change: func(d []byte) []byte { return d[:2048] }},
		{what: "cut in a filled block", says: "was cut", headers: []tar.Header{{Name: "b", Uname: "b"}},
			change: func(d []byte) []byte { return d[:700] }},
		{what: "cut gzip", says: "was cut", headers: []tar.Header{{Name: "b", Uname: "b"}},
			change: func(d []byte) []byte { d = gzipped(d); return d[:len(d)-5] }},
		{what: "damaged header", says: "is damaged", headers: []tar.Header{ok, {Name: "b", Uname: "b"}},
			change: func(d []byte) []byte { d[1024+5] ^= 1; return d }},
		{what: "damaged gzip", says: "the container",
			headers: []tar.Header{{Name: "b", Uname: strings.Repeat("abc", 3000)}},
			change:  func(d []byte) []byte { d = gzipped(d); d[len(d)-7] ^= 1; return d }},
		{what: "joined", says: "behind its end mark", headers: []tar.Header{ok},
			change: func(d []byte) []byte { return append(d, d...) }},
		{what: "gzip of something else", says: "not one of a tar file", headers: []tar.Header{ok},
			change: func([]byte) []byte { return gzipped(bytes.Repeat([]byte("text "), 500)) }},
	} {
		data := tarOf(row.headers...)
		if row.change != nil {
			data = row.change(data)
		}
		refused(t, row.what, data, few, row.says)
	}
}

// TestGNUTar has files by the reference program, in each of its formats, with holes.
func TestGNUTar(t *testing.T) {
	from := t.TempDir()
	name := strings.Repeat("long-folder/", 11) + "file.bin"
	for file, text := range map[string]string{"plain.txt": "Dear Anna", name: "long", "Zürich.txt": "",
		"big.bin": strings.Repeat("0123456789", 9000)} {
		path := filepath.Join(from, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}

	holes, err := os.Create(filepath.Join(from, "holes.bin"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range int64(30) {
		if _, err := holes.WriteAt([]byte(fmt.Sprintf("data %d", i)), i*40_000); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(holes.Truncate(1_400_000), holes.Close()); err != nil {
		t.Fatal(err)
	}

	for _, format := range []string{"--format=gnu --sparse", "--format=gnu", "--format=posix --sparse",
		"--format=posix --sparse --sparse-version=0.0", "--format=posix --sparse --sparse-version=0.1",
		"--format=posix",
		"--format=ustar --exclude=long*", "--format=v7 --exclude=long*", "--format=gnu --gzip",
		"--format=posix --sparse --gzip", "--format=gnu --label=volume"} {
		args := append(strings.Fields(format), "-C", from, "-cf", "-", ".")
		data, err := exec.Command("tar", args...).Output()
		if err != nil {
			t.Fatal(err)
		}

		got, err := unpack(t, data, container.DefaultLimits)
		if err != nil {
			t.Errorf("%s: %v", format, err)
			continue
		}
		for file, text := range got.bytes {
			want, err := os.ReadFile(filepath.Join(from, file))
			if err != nil || text != string(want) {
				t.Errorf("%s: %s: %d bytes, %v; expected %d", format, file, len(text), err, len(want))
			}
		}
		if n := 5 - strings.Count(format, "--exclude"); len(got.files) != n {
			t.Errorf("%s: %d files; expected %d", format, len(got.files), n)
		}
	}
}
