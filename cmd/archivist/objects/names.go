package objects

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"path"
	"strings"
	"syscall"
	"unicode/utf8"
)

// isNoName reports whether an error means that the file system cannot hold a name: it is too long (255 bytes on
// most), or has characters or an encoding that it refuses.
func isNoName(err error) bool {
	return errors.Is(err, syscall.ENAMETOOLONG) || errors.Is(err, syscall.EINVAL) ||
		errors.Is(err, syscall.EILSEQ)
}

// otherName is a replacement for a path that a file system cannot hold: the beginning of its name without
// special characters, and a digest of the path (128 bits of its SHA-256) that makes it unique. It is the same
// each time, so a repeated download finds it.
func otherName(name string) string {
	sum := sha256.Sum256([]byte(name))
	ext := path.Ext(name)
	if len(ext) > 20 || !isPlain(ext) {
		ext = ""
	}

	base := strings.Map(func(r rune) rune {
		if isPlain(string(r)) {
			return r
		}
		return '_'
	}, strings.TrimSuffix(path.Base(name), ext))
	if len(base) > 100 {
		base = base[:100]
	}
	return "other-names/" + base + "~" + hex.EncodeToString(sum[:16]) + ext
}

// isPlain reports whether a text has only characters that every file system can hold: letters, digits and ._- of
// ASCII.
func isPlain(s string) bool {
	return utf8.ValidString(s) && strings.IndexFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			strings.ContainsRune("._-", r))
	}) < 0
}
