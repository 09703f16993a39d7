package container

import (
	"archive/zip"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
)

// Numbers of APPNOTE 6.3.10: section 4.4.4 (flags), 4.4.2 (systems), 4.5.2 and 4.6.9 (extra fields).
const (
	utf8Names = 1 << 11

	onFAT  = 0
	onNTFS = 10
	onVFAT = 14

	pathID = 0x7075 // Info-ZIP Unicode Path
)

// utcIDs are extra fields with a time in UTC: NTFS, Unix, extended timestamp, Info-ZIP Unix.
var utcIDs = []uint16{0x000a, 0x000d, 0x5455, 0x5855}

// zipName is a file with its name in UTF-8. The name is what its flag or its extra field says; else UTF-8 if the
// bytes are that, as macOS writes them, and else the code page 437 of the first programs, which can be wrong: then the
// file has a warning, and the bytes as they are.
func zipName(f *zip.File) *File {
	file := &File{Name: f.Name, Modified: zipTime(f)}
	switch marked, ok := unicodePath(f); {
	case ok:
		file.Name = marked
	case ascii(f.Name) || f.Flags&utf8Names != 0 && utf8.ValidString(f.Name):
	case utf8.ValidString(f.Name):
		file.Warning = "the container does not say how the name is encoded; it was read as UTF-8"
	default:
		file.Name, _ = charmap.CodePage437.NewDecoder().String(f.Name) // every byte is a character
		file.Warning = "the container does not say how the name is encoded; it was read in the code page 437, " +
			"in which some letters may be others"
	}

	if ofWindows(f) && !strings.Contains(file.Name, "/") && strings.Contains(file.Name, `\`) {
		file.Name = strings.ReplaceAll(file.Name, `\`, "/")
		file.Warning = join(file.Warning, "the container separates folders by backslashes")
	}

	file.Name = clean(file.Name)
	if file.Name != f.Name {
		file.Raw = Escape(f.Name)
	}
	return file
}

// ofWindows reports whether an entry was made on a system that separates folders by backslashes.
func ofWindows(f *zip.File) bool {
	by := f.CreatorVersion >> 8
	return by == onFAT || by == onNTFS || by == onVFAT
}

// unicodePath is the name in UTF-8 of the extra field of Info-ZIP, if it belongs to the name (section 4.6.9).
func unicodePath(f *zip.File) (string, bool) {
	data := extra(f.Extra, pathID)
	if len(data) < 5 || data[0] != 1 {
		return "", false
	}
	name := string(data[5:])
	belongs := binary.LittleEndian.Uint32(data[1:]) == crc32.ChecksumIEEE([]byte(f.Name))
	return name, belongs && utf8.ValidString(name)
}

// hasUTC reports whether an entry has a time in UTC.
func hasUTC(fields []byte) bool {
	return slices.ContainsFunc(utcIDs, func(id uint16) bool { return extra(fields, id) != nil })
}

// zipTime is when a file was modified. Without an extra field with a time in UTC, the zone is not known.
func zipTime(f *zip.File) string {
	switch {
	case hasUTC(f.Extra) && f.Modified.Unix() != 0:
		return f.Modified.UTC().Format(time.RFC3339)
	case f.ModifiedDate == 0:
		return ""
	}
	return f.Modified.Format("2006-01-02T15:04:05")
}

// extra is the data of an extra field, nil if there is none.
func extra(fields []byte, id uint16) []byte {
	for len(fields) >= 4 {
		n := int(binary.LittleEndian.Uint16(fields[2:]))
		if len(fields) < 4+n {
			return nil
		}
		if binary.LittleEndian.Uint16(fields) == id {
			return fields[4 : 4+n : 4+n]
		}
		fields = fields[4+n:]
	}
	return nil
}

// ascii reports whether all bytes are of ASCII.
func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// Escape writes the bytes of a name in ASCII, percent-encoded.
func Escape(raw string) string {
	var b strings.Builder
	for i := range len(raw) {
		if c := raw[i]; c > ' ' && c < 0x7f && c != '%' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
