package container_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"

	"archivist/pkg/formats/container"
)

// packing packs what write writes.
func packing(t *testing.T, write func(w io.Writer) error) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err == nil {
		err = errors.Join(write(w), w.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestBombsWithoutContent: what is no content of a file is limited, too.
func TestBombsWithoutContent(t *testing.T) {
	end := func(w io.Writer) error { _, err := w.Write(make([]byte, 1024)); return err }
	file := func(w io.Writer) error {
		_, err := w.Write(tarOf(tar.Header{Name: "a", Uname: "a"})[:1024])
		return err
	}
	for says, write := range map[string]func(w io.Writer) error{
		"folders and other entries": func(w io.Writer) error {
			header := tarOf(tar.Header{Name: "a/", Typeflag: tar.TypeDir})[:512]
			all := bytes.Repeat(header, 1<<12)
			for range 1<<6 + 1 {
				if _, err := w.Write(all); err != nil {
					return err
				}
			}
			return end(w)
		},
		"behind its end mark are more": func(w io.Writer) error {
			zeros := make([]byte, 1<<20)
			err := errors.Join(file(w), end(w))
			for range 64 + 1 {
				if _, err := w.Write(zeros); err != nil {
					return err
				}
			}
			return err
		},
	} {
		_, err := read(t, packing(t, write), container.DefaultLimits, nil)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v; expected %q", err, says)
		}
	}
}

// TestHugeDirectory: a zip file of a million entries is refused before they are all in memory.
func TestHugeDirectory(t *testing.T) {
	entries := make([]entry, 400_000)
	for i := range entries {
		entries[i] = entry{name: "a/", stored: true}
	}
	data := zipOf(entries...)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	limits := container.Limits{Files: 1000, Bytes: 1 << 30, Ratio: 200}
	_, err := container.Open(container.Zip, bytes.NewReader(data), int64(len(data)), limits, nil)
	runtime.ReadMemStats(&after)
	if err == nil || !strings.Contains(err.Error(), "these are too many files") {
		t.Errorf("%v", err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 128<<20 {
		t.Errorf("%d MiB of memory", took>>20)
	}
}
