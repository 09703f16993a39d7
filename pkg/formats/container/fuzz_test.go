package container_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"testing"

	"archivist/pkg/formats/checkm"
	"archivist/pkg/formats/container"
)

// small limits: a fuzzer must not fill the memory.
var small = container.Limits{Files: 100, Bytes: 1 << 20, Ratio: 50}

// judge reads a container that may be anything: it is refused with a reason, or its files have names that can be
// stored. It gives what was unpacked, nil if it was refused.
func judge(t *testing.T, data []byte) map[string]string {
	t.Helper()
	got, err := read(t, data, small, nil)
	if refused := new(container.RefusedError); errors.As(err, &refused) {
		return nil
	}
	if err != nil {
		t.Fatalf("%v is no reason", err)
	}
	total := 0
	for _, f := range got.files {
		total += len(got.bytes[f.Name])
		if why := checkm.BadName(f.Name); why != "" {
			t.Fatalf("the name %q %s", f.Name, why)
		}
		if int64(len(got.bytes[f.Name])) != f.Size {
			t.Fatalf("%q has %d bytes, not %d", f.Name, len(got.bytes[f.Name]), f.Size)
		}
	}
	if total > int(small.Bytes) || len(got.files) > small.Files || len(got.files) == 0 {
		t.Fatalf("%d files with %d bytes", len(got.files), total)
	}
	return got.bytes
}

// FuzzZip: what is accepted is what archive/zip unpacks.
func FuzzZip(f *testing.F) {
	f.Add(zipOf(entry{name: "a/b.txt", text: "text"}, entry{name: "Z\x81rich", text: "more", stored: true}))
	f.Add(zipOf(entry{name: "Z?rich.txt", extra: pathField("Z?rich.txt", "Zürich.txt")}))
	f.Fuzz(func(t *testing.T, data []byte) {
		if container.Detect(data) != container.Zip {
			return
		}
		ours := judge(t, data)
		if ours == nil {
			return
		}
		dir, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatalf("accepted, but archive/zip: %v", err)
		}
		n := 0
		for _, file := range dir.File {
			from, err := file.Open()
			if err != nil {
				t.Fatalf("accepted, but archive/zip: %q: %v", file.Name, err)
			}
			text, err := io.ReadAll(from)
			if err != nil {
				t.Fatalf("accepted, but archive/zip: %q: %v", file.Name, err)
			}
			if mine, ok := ours[file.Name]; ok && mine != string(text) {
				t.Fatalf("%q: %q; archive/zip: %q", file.Name, mine, text)
			}
			if !file.Mode().IsDir() || len(text) > 0 {
				n++
			}
		}
		if n != len(ours) {
			t.Fatalf("%d files; archive/zip: %d", len(ours), n)
		}
	})
}

// FuzzTar: what is accepted is what archive/tar unpacks.
func FuzzTar(f *testing.F) {
	f.Add(tarOf(tar.Header{Name: "a/b.txt", Uname: "text"}, tar.Header{Name: "c", Uname: "x"}))
	f.Add(tarOf(tar.Header{Name: "Zürich.txt", Uname: "text", Format: tar.FormatPAX}))
	f.Fuzz(func(t *testing.T, data []byte) {
		if container.Detect(data) != container.Tar {
			return
		}
		ours := judge(t, data)
		if ours == nil {
			return
		}
		r, n := tar.NewReader(bytes.NewReader(data)), 0
		for {
			h, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("accepted, but archive/tar: %v", err)
			}
			text, err := io.ReadAll(r)
			if err != nil {
				t.Fatalf("accepted, but archive/tar: %q: %v", h.Name, err)
			}
			if mine, ok := ours[h.Name]; ok && mine != string(text) {
				t.Fatalf("%q: %q; archive/tar: %q", h.Name, mine, text)
			}
			if h.Typeflag == tar.TypeReg || h.Typeflag == tar.TypeCont || h.Typeflag == tar.TypeGNUSparse {
				n++
			}
		}
		if n != len(ours) {
			t.Fatalf("%d files; archive/tar: %d", len(ours), n)
		}
	})
}
