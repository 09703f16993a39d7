package stage_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/collection"
	"archivist/pkg/ingest/queue"
)

// entry is a file of a zip that is written as a test wants it, byte by byte.
type entry struct {
	name, local string // local is the name in the local header, "" for the same
	data        string
	flags       uint16
	method      uint16
	mode        fs.FileMode
	size        int64 // that is said, if it is not 0: uncompressed
	packed      int64 // and compressed
	sum         uint32
	offset      int64 // of the local header, if it is not 0
	extra       string
}

// hostile is a container. says is why it is refused, "" if its files are stored.
type hostile struct {
	name string
	data []byte
	says string
}

// rawZip writes a zip file of entries, which may lie.
func rawZip(entries ...entry) []byte {
	var b, dir bytes.Buffer
	le := func(w *bytes.Buffer, values ...any) {
		for _, v := range values {
			_ = binary.Write(w, binary.LittleEndian, v)
		}
	}
	for _, e := range entries {
		at := int64(b.Len())
		sum, size, packed, local := crc32.ChecksumIEEE([]byte(e.data)), int64(len(e.data)), int64(len(e.data)), e.name
		if e.sum != 0 {
			sum = e.sum
		}
		if e.size != 0 {
			size = e.size
		}
		if e.packed != 0 {
			packed = e.packed
		}
		if e.local != "" {
			local = e.local
		}
		if e.offset != 0 {
			at = e.offset
		}
		le(&b, uint32(0x04034b50), uint16(20), e.flags, e.method, uint16(0), uint16(0x21), sum, uint32(packed),
			uint32(size), uint16(len(local)), uint16(0))
		b.WriteString(local + e.data)
		mode := e.mode
		if mode == 0 {
			mode = 0o644
		}
		h := zip.FileHeader{}
		h.SetMode(mode)
		le(&dir, uint32(0x02014b50), uint16(3<<8|20), uint16(20), e.flags, e.method, uint16(0), uint16(0x21), sum,
			uint32(packed), uint32(size), uint16(len(e.name)), uint16(len(e.extra)), uint16(0), uint16(0), uint16(0),
			h.ExternalAttrs, uint32(at))
		dir.WriteString(e.name + e.extra)
	}
	start := b.Len()
	b.Write(dir.Bytes())
	le(&b, uint32(0x06054b50), uint16(0), uint16(0), uint16(len(entries)), uint16(len(entries)), uint32(dir.Len()),
		uint32(start), uint16(0))
	return b.Bytes()
}

// rawTar writes a tar file of headers with content as long as their size says, at most.
func rawTar(headers ...tar.Header) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		h.Mode = 0o644
		if h.Typeflag == 0 {
			h.Typeflag = tar.TypeReg
		}
		if err := w.WriteHeader(&h); err != nil {
			panic(err)
		}
		_, _ = w.Write(bytes.Repeat([]byte("x"), int(h.Size)))
	}
	_ = w.Close()
	return b.Bytes()
}

func gzipped(data []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(data)
	_ = w.Close()
	return b.Bytes()
}

// changed is data with some bytes replaced.
func changed(data []byte, at int, by string) []byte {
	data = bytes.Clone(data)
	if at < 0 {
		at += len(data)
	}
	copy(data[at:], by)
	return data
}

// hostileNames have names that lead elsewhere, or that some system cannot hold.
func hostileNames() []hostile {
	f := func(name string) entry { return entry{name: name, data: "x"} }
	return []hostile{
		{"parent.zip", rawZip(f("../a")), "its name has the path segment"},
		{"parent inside.zip", rawZip(f("a/../../b")), "its name has the path segment"},
		{"parent at the end.zip", rawZip(f("a/..")), "its name has the path segment"},
		{"absolute.zip", rawZip(f("/etc/passwd")), "its name begins or ends with a slash"},
		{"drive.zip", rawZip(f(`C:\windows\a`)), ""},
		{"backslash parent.zip", rawZip(f(`..\evil`)), ""},
		{"backslash.zip", rawZip(f(`a\b`)), ""},
		{"unc.zip", rawZip(f(`\\server\share`)), ""},
		{"no name.zip", rawZip(f("")), "an entry has no name"},
		{"NUL.zip", rawZip(f("a\x00.txt")), "its name has the character U+0000; control characters are not allowed"},
		{"dot.zip", rawZip(f("./a")), ""},
		{"dot inside.zip", rawZip(f("a/./b")), ""},
		{"two slashes.zip", rawZip(f("a//b")), ""},
		{"newline.zip", rawZip(f("a\nb")), "its name has the character U+000A; control characters are not allowed"},
		{"escape.zip", rawZip(f("a\x1b[2Jb")), "its name has the character U+001B; control characters are not allowed"},
		{"right to left.zip", rawZip(entry{name: "a\u202egpj.exe", data: "x", flags: 0x800}), ""},
		{"invalid UTF-8.zip", rawZip(entry{name: "a\xff\xfe", data: "x", flags: 0x800}), ""},
		{"overlong UTF-8.zip", rawZip(entry{name: "a\xc0\xae\xc0\xae/b", data: "x", flags: 0x800}), ""},
		{"long name.zip", rawZip(f(strings.Repeat("n", 1100))), ""},
		{"very long name.zip", rawZip(f(strings.Repeat("n/", 20000) + "n")), "its name has 40001 bytes; at most 4096"},
		{"deep.zip", rawZip(f(strings.Repeat("d/", 400) + "f")), ""},
		{"dots.zip", rawZip(f("..."), f("a..b"), f(" "), f("trailing ")), ""},
		{"device name.zip", rawZip(f("CON"), f("aux.txt")), ""},
		{"stream.zip", rawZip(f("a:stream")), ""},
		{"twice.zip", rawZip(f("a"), f("a")), "another entry has the same name"},
		{"file and folder.zip", rawZip(f("a"), f("a/b")), "its folder"},
		{"folder and file.zip", rawZip(f("a/b"), f("a")), "its name is also that of a folder"},
		{"case.zip", rawZip(f("a"), f("A")), ""},
		{"forms.zip", rawZip(entry{name: "\u00e9", data: "x", flags: 0x800}, entry{name: "e\u0301", data: "x",
			flags: 0x800}), ""},
	}
}

// hostileEntries have entries that are no files, or that cannot be read.
func hostileEntries() []hostile {
	return []hostile{
		{"symlink.zip", rawZip(entry{name: "a", data: "/etc/passwd", mode: fs.ModeSymlink | 0o777}),
			"it is a symbolic link"},
		{"device.zip", rawZip(entry{name: "a", mode: fs.ModeDevice | 0o644}), "it is not a file, but a device"},
		{"pipe.zip", rawZip(entry{name: "a", mode: fs.ModeNamedPipe | 0o644}), "it is not a file, but a pipe"},
		{"socket.zip", rawZip(entry{name: "a", mode: fs.ModeSocket | 0o644}), "it is not a file, but a socket"},
		{"setuid.zip", rawZip(entry{name: "a", data: "x", mode: fs.ModeSetuid | 0o4755}), ""},
		{"encrypted.zip", rawZip(entry{name: "a", data: "x", flags: 1}), "it is encrypted"},
		{"strongly encrypted.zip", rawZip(entry{name: "a", data: "x", flags: 0x41}), "it is encrypted"},
		{"AES.zip", rawZip(entry{name: "a", data: "x", method: 99}), "it is compressed by AES encryption"},
		{"LZMA.zip", rawZip(entry{name: "a", data: "x", method: 14}), "it is compressed by LZMA"},
		{"zstd.zip", rawZip(entry{name: "a", data: "x", method: 93}), "it is compressed by Zstandard"},
		{"no DEFLATE.zip", rawZip(entry{name: "a", data: "\xff\xff\xff", method: 8, size: 9}),
			"a block has a type that DEFLATE does not have"},
	}
}

// hostileZips are zip files that lie, or are damaged.
func hostileZips() []hostile {
	f := func(name string) entry { return entry{name: name, data: "x"} }
	good := rawZip(f("a"), f("b"))
	many := make([]entry, 1001)
	for i := range many {
		many[i] = f(fmt.Sprint("f", i))
	}
	return []hostile{
		{"wrong CRC.zip", rawZip(entry{name: "a", data: "x", sum: 5}), "the CRC-32 of its content is 8cdc1683; the"},
		{"says less.zip", rawZip(entry{name: "a", data: "xxxxx", size: 2, packed: 5}), "it is not compressed, but"},
		{"says more.zip", rawZip(entry{name: "a", data: "x", size: 2000, packed: 1}), "it is not compressed, but"},
		{"says 4 GiB.zip", rawZip(entry{name: "a", data: "x", size: 0xfffffffe, packed: 1}), "it is not compressed,"},
		{"packed beyond the end.zip", rawZip(entry{name: "a", data: "x", size: 5000, packed: 5000}),
			"the entries have more compressed bytes than the container"},
		{"overlap.zip", rawZip(entry{name: "a", data: strings.Repeat("x", 100)}, entry{name: "b", data: "x",
			offset: 10}),
			"its local header is missing or damaged"},
		{"same place.zip", rawZip(entry{name: "a", data: "x"}, entry{name: "b", data: "x", offset: -1}),
			"it is not a complete zip file"},
		{"beyond the end.zip", rawZip(entry{name: "a", data: "x", offset: 1 << 20}), "its local header is missing or"},
		{"other local name.zip", rawZip(entry{name: "a.txt", local: "b.exe", data: "x"}), ""},
		{"no local header.zip", changed(good, 0, "XX"), "no container"},
		{"count too small.zip", changed(good, -14, "\x01\x00\x01\x00"), "it is not a complete zip file"},
		{"count too large.zip", changed(good, -14, "\x09\x00\x09\x00"), "it is not a complete zip file"},
		{"second disk.zip", changed(good, -18, "\x01\x00"), ""},
		{"directory elsewhere.zip", changed(good, -6, "\xff\xff\x00\x00"), "its local header is missing or damaged"},
		{"comment too long.zip", changed(good, -2, "\xff\x00"), "it is not a complete zip file"},
		{"cut.zip", good[:len(good)-5], "it is not a complete zip file"},
		{"begins late.zip", append([]byte("#!/bin/sh\n"), good...), "no container"},
		{"goes on.zip", append(bytes.Clone(good), "more"...), ""},
		{"empty.zip", rawZip(), "it has no files"},
		{"only folders.zip", rawZip(entry{name: "a/", mode: fs.ModeDir | 0o755}), "it has no files"},
		{"folder with content.zip", rawZip(entry{name: "a/", data: "x"}), "it is not a file, but a folder with"},
		{"too many.zip", rawZip(many...), "it has more than 1000 files"},
		{"too large.zip", zipped(map[string]string{"a": strings.Repeat("\x00", 2<<20)}), "its files have more than"},
		{"zip in a zip.zip", zipped(map[string]string{"b.zip": string(good)}), ""},
		{"broken extra.zip", rawZip(entry{name: "a", data: "x", extra: "\x75\x70\xff\x00\x01"}), ""},
		{"other name in extra.zip", rawZip(entry{name: "a", data: "x",
			extra: "\x75\x70\x0d\x00\x01\x00\x00\x00\x00../../e"}),
			""},
	}
}

// hostileTars are tar files of all kinds.
func hostileTars() []hostile {
	goodTar := rawTar(tar.Header{Name: "a", Size: 5}, tar.Header{Name: "b", Size: 700})
	return []hostile{
		{"parent.tar", rawTar(tar.Header{Name: "../a", Size: 1}), "its name has the path segment"},
		{"absolute.tar", rawTar(tar.Header{Name: "/etc/passwd", Size: 1}), "its name begins or ends with a slash"},
		{"symlink.tar", rawTar(tar.Header{Name: "a", Linkname: "/etc", Typeflag: tar.TypeSymlink}),
			"it is a symbolic link"},
		{"hard link.tar", rawTar(tar.Header{Name: "a", Size: 1}, tar.Header{Name: "b", Linkname: "a",
			Typeflag: tar.TypeLink}),
			"it is a link to another file"},
		{"device.tar", rawTar(tar.Header{Name: "a", Typeflag: tar.TypeChar}), "it is a device, not a file"},
		{"pipe.tar", rawTar(tar.Header{Name: "a", Typeflag: tar.TypeFifo}), "it is a pipe, not a file"},
		{"twice.tar", rawTar(tar.Header{Name: "a", Size: 1}, tar.Header{Name: "a", Size: 2}), "another entry has the"},
		{"file and folder.tar", rawTar(tar.Header{Name: "a", Size: 1}, tar.Header{Name: "a/b", Size: 1}), "its folder"},
		{"wrong checksum.tar", changed(goodTar, 148, "0000000"), "the header at byte 0 is not one of a tar file, or"},
		{"wrong second checksum.tar", changed(goodTar, 1024+148, "0000000"), "the header at byte 1024 is not one of"},
		{"negative size.tar", changed(goodTar, 124, "-0000000001"), "the header at byte 0 is not one of a tar file,"},
		{"cut in a file.tar", goodTar[:1600], "it ends in the middle"},
		{"cut between files.tar", goodTar[:1024], "it ends without an end mark"},
		{"goes on.tar", append(bytes.Clone(goodTar), strings.Repeat("more", 300)...), "behind its end mark is"},
		{"pax parent.tar", rawTar(tar.Header{Name: strings.Repeat("d/", 120) + "../../" + strings.Repeat("e", 100),
			Size:   1,
			Format: tar.FormatPAX}), "its name has the path segment"},
		{"pax name.tar", rawTar(tar.Header{Name: "a\nb", Size: 1, Format: tar.FormatPAX}), "its name has the"},
		{"too large.tar", rawTar(tar.Header{Name: "a", Size: 2 << 20}), "its files have more than 1048576 bytes"},
		{"empty.tar", rawTar(), "no container"},
		{"cut.tgz", gzipped(goodTar)[:50], "it ends in the middle"},
		{"wrong CRC.tgz", changed(gzipped(goodTar), -8, "\x00\x00\x00\x00"), "the CRC-32 of its gzip data is"},
		{"wrong length.tgz", changed(gzipped(goodTar), -4, "\x01\x00\x00\x00"), "its gzip data has another size than"},
		{"goes on.tgz", append(gzipped(goodTar), "more"...), "behind the end of its gzip data is something else, or"},
		{"two members.tgz", append(gzipped(goodTar[:1000]), gzipped(goodTar[1000:])...), ""},
		{"no tar.tgz", gzipped([]byte("a text")), "it is no tar file, or was cut in its first header"},
		{"bomb.tgz", gzipped(rawTar(tar.Header{Name: "a", Size: 1 << 20}, tar.Header{Name: "b", Size: 1 << 20})),
			"its files have more than 1048576 bytes together"},
	}
}

// TestHostileContainers: what attackers and broken tools make is refused with the reason, or stored as it is, and
// nothing of what is refused is kept.
func TestHostileContainers(t *testing.T) {
	d := newDeposits(t)
	p := collection.Profile{Containers: &collection.Containers{MaxBytes: 1 << 20, MaxFiles: 1000}}
	if err := d.Stages.Collections.Put(t.Context(), "bench", p,
		collection.By{Actor: "me"}, time.Now().UnixMilli()); err != nil {
		t.Fatal(err)
	}
	cases := slices.Concat(hostileNames(), hostileEntries(), hostileZips(), hostileTars())
	if len(cases) < 90 {
		t.Errorf("%d containers", len(cases))
	}
	for _, c := range cases {
		name := strings.ReplaceAll(c.name, " ", "-")
		j := d.send(name, c.data, func(b *ingest.Batch) { b.Payload.Type = ingest.TypeContainer })
		if c.says != "" {
			if j.State != ingest.Failed || !j.NotRecoverable || !strings.Contains(j.Message, c.says) {
				t.Errorf("%s: %s: %s; want %q", c.name, j.State, j.Message, c.says)
			}
			continue
		}
		d.same(j, name, c.data)
	}

	// Nothing of what was refused became an object.
	arks, _, err := d.Stages.Inventory.Collection(t.Context(), "bench", "")
	if stored := slices.DeleteFunc(cases, func(c hostile) bool { return c.says != "" }); err != nil ||
		len(arks) != len(stored) {
		t.Errorf("%d objects of %d containers that are stored, %v", len(arks), len(stored), err)
	}
}

// same fails unless an object has the files that a library of others finds in a container.
func (d *deposits) same(j *queue.Job, name string, data []byte) {
	d.Helper()
	want := map[string]string{}
	note := func(name string, in io.Reader) {
		text, err := io.ReadAll(in)
		if err != nil {
			d.Errorf("%s: %v", name, err)
		}
		want[path.Clean(name)] = string(text)
	}
	if strings.HasSuffix(name, ".zip") {
		r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
		if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
			d.Fatal(name, err)
		}
		for _, f := range r.File {
			in, err := f.Open()
			if err != nil {
				d.Fatal(name, err)
			}
			n := f.Name
			if !utf8.ValidString(n) {
				n, _ = charmap.CodePage437.NewDecoder().String(n)
			}
			note(n, in)
		}
	} else {
		z, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			d.Fatal(name, err)
		}
		for r := tar.NewReader(z); ; {
			h, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				d.Fatal(name, err)
			}
			note(h.Name, r)
		}
	}
	d.holds(j, want)
}
