// Package container reads the files of a container: a zip file, or a tar file, also one that is compressed by gzip or
// bzip2.
//
// A container comes from a stranger, and can have hundreds of gigabytes. So it is read in order, in constant memory
// (but for the directory of a zip file), and at any byte the reader can be saved and continued by another process.
// What a file system could not hold, or what would not be the depositor's file, is refused with the name of the entry:
// paths that lead elsewhere, links, devices, encrypted content, names that clash, content that its own checksum or size
// contradicts, and more content than the limits allow.
//
//	r, err := container.Open(container.Zip, object, size, limits, nil)
//	for err == nil {
//		file, err := r.Next() // io.EOF: all were read
//		io.Copy(to, r)
//	}
//
// archive/zip and archive/tar find the entries. They are not used for what they cannot do: compress/flate, gzip and
// bzip2 cannot be continued in the middle of a file; archive/zip decodes no legacy names, and does not limit what an
// entry can become; archive/tar takes a file that ends before its end mark for complete.
package container

import (
	"fmt"
	"io"
	"strings"

	"archivist/pkg/formats/checkm"
)

// Kind is how a container is packed.
type Kind string

// The kinds, by their usual extensions.
const (
	Zip      Kind = "zip"
	Tar      Kind = "tar"
	TarGzip  Kind = "tar.gz"
	TarBzip2 Kind = "tar.bz2"
)

// Beginning is how many of the first bytes of a container Detect needs.
const Beginning = 512

// Detect tells a container's kind from its first bytes, at least Beginning of them if there are as many. It is "" for
// anything else. What a compressed file has inside is seen when it is read.
func Detect(start []byte) Kind {
	has := func(at int, text string) bool {
		return len(start) >= at+len(text) && string(start[at:at+len(text)]) == text
	}

	switch {
	case has(0, "PK\x03\x04"), has(0, "PK\x05\x06"), has(0, "PK\x07\x08"):
		return Zip
	case has(0, "\x1f\x8b\x08"):
		return TarGzip
	case has(0, "BZh") && (has(4, "1AY&SY") || has(4, "\x17rE8P\x90")):
		return TarBzip2
	case has(257, "ustar") || oldTar(start):
		return Tar
	}
	return ""
}

// Named tells a container's kind from the name of its file, "" if the name is not that of one.
func Named(name string) Kind {
	name = strings.ToLower(name)
	for _, by := range []struct {
		kind Kind
		ends []string
	}{
		{Zip, []string{".zip"}},
		{Tar, []string{".tar"}},
		{TarGzip, []string{".tar.gz", ".tgz"}},
		{TarBzip2, []string{".tar.bz2", ".tbz2", ".tbz"}},
	} {
		for _, end := range by.ends {
			if strings.HasSuffix(name, end) {
				return by.kind
			}
		}
	}
	return ""
}

// Open opens a container of a size, in bytes. With a state, it goes on where that was saved.
func Open(kind Kind, from io.ReaderAt, size int64, limits Limits, saved *State) (*Reader, error) {
	src := &source{from: cached(from, size)}
	r := &Reader{limits: limits, size: size, source: src, names: checkm.NewNames()}
	var err error
	switch kind {
	case Zip:
		r.entries, err = r.openZip()
	case Tar:
		r.entries = r.newTar(&plain{newInput(src, 0, size)})
	case TarGzip:
		r.entries = r.newTar(&gunzip{in: newInput(src, 0, size)})
	case TarBzip2:
		r.entries = r.newTar(newBunzip(newInput(src, 0, size)))
	default:
		return nil, fmt.Errorf("container: no kind %q", kind)
	}

	if err == nil && saved != nil {
		r.state = *saved
		err = r.resume(*saved)
	}
	if err == io.EOF { // archive/zip
		err = errCut
	}
	return r, r.told(err)
}

// Total is how many files a container has, and how many bytes they have together. Only a zip file says so before it is
// read: its names were all checked when it was opened.
func (r *Reader) Total() (files int, size int64, known bool) {
	z, known := r.entries.(*zipFiles)
	if known {
		files, size = len(z.files), z.bytes
	}
	return files, size, known
}

// Names are the names of all files, if they are known before the container is read.
func (r *Reader) Names() (names []string) {
	if z, ok := r.entries.(*zipFiles); ok {
		for _, f := range z.files {
			names = append(names, f.file.Name)
		}
	}
	return names
}
