package pronom

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
)

// Signatures of ZIP (PKWARE's APPNOTE 6.3.10, sections 4.3.6 and 4.3.14 to 4.3.16).
var (
	zipFile    = []byte("PK\x03\x04")
	zipEnd     = []byte("PK\x05\x06")
	zipLocator = []byte("PK\x06\x07")
)

// Lengths of the records at the end of a ZIP file, which a comment can follow.
const (
	endBytes     = 22
	locatorBytes = 20
	end64Bytes   = 56
	mostTail     = 64<<10 + endBytes + locatorBytes + end64Bytes
)

// closed says why a ZIP file must not be opened, "" if it may: a hostile one could make the readers use
// any amount of memory and disk. A damaged one is left to them.
func (d *Identifier) closed(w *window) (string, error) {
	head, _ := w.Slice(0, len(zipFile))
	if !bytes.Equal(head, zipFile) {
		return "", w.failed()
	}
	whole := w.left
	w.left = d.Limits.Listing // a reader takes all entries that there are, whatever their number is said to be
	reason := d.hostile(w)
	w.left, w.cut = whole, false
	return reason, w.failed()
}

// hostile says why a ZIP file must not be opened, "" if it may.
func (d *Identifier) hostile(w *window) string {
	if n := promised(w); n > d.Limits.Entries {
		return fmt.Sprintf("the container was not opened: its directory has %d entries", n)
	}

	files, err := zip.NewReader(slices{w}, w.size)
	if w.cut {
		return fmt.Sprintf("the container was not opened: its directory has more than %d bytes",
			d.Limits.Listing)
	}

	if err != nil {
		return ""
	}

	for _, f := range files.File {
		if f.UncompressedSize64 > d.Limits.Entry &&
			f.UncompressedSize64/max(f.CompressedSize64, 1) > d.Limits.Ratio {
			return fmt.Sprintf("the container was not opened: an entry has %d bytes, packed in %d",
				f.UncompressedSize64, f.CompressedSize64)
		}
	}
	return ""
}

// promised is the greatest number of entries that a record at the end of a ZIP file says: a reader
// makes room for them before it reads them, and readers differ in which record they believe.
func promised(w *window) (most uint64) {
	tail, _ := w.EofSlice(0, mostTail)
	little := binary.LittleEndian
	for rest := tail; ; rest = rest[len(zipEnd):] {
		at := bytes.Index(rest, zipEnd)
		if at < 0 || len(rest)-at < endBytes {
			break
		}
		rest = rest[at:]
		// The total number of entries is at byte 10 of the record.
		most = max(most, uint64(little.Uint16(rest[10:])))
	}

	for rest := tail; ; rest = rest[len(zipLocator):] {
		at := bytes.Index(rest, zipLocator)
		if at < 0 || len(rest)-at < locatorBytes {
			return most
		}
		rest = rest[at:]
		// The locator has at byte 8 where the ZIP64 record is, and that at byte 32 the number of
		// entries.
		record, _ := w.Slice(int64(little.Uint64(rest[8:])), end64Bytes)
		if len(record) == end64Bytes {
			most = max(most, little.Uint64(record[32:]))
		}
	}
}

// slices reads a window.
type slices struct{ *window }

// ReadAt reads from an offset.
func (s slices) ReadAt(p []byte, off int64) (int, error) {
	out, err := s.Slice(off, len(p))
	if n := copy(p, out); n < len(p) || err == nil {
		return n, err
	}
	return len(p), nil
}
