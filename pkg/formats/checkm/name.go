package checkm

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxName is the longest path of a file in bytes (the longest that Linux opens).
const MaxName = 4096

// BadName returns why a file cannot be stored under this path, or "" if it can. The name becomes
// a part of keys of S3, and of paths of file systems.
func BadName(name string) string {
	switch {
	case name == "":
		return "is empty"
	case !utf8.ValidString(name):
		return "is not UTF-8"
	case strings.HasPrefix(name, "/") || strings.HasSuffix(name, "/"):
		return "begins or ends with a slash"
	case len(name) > MaxName:
		return fmt.Sprintf("has %d bytes; at most %d are allowed", len(name), MaxName)
	}

	if i := strings.IndexFunc(name, unnameable); i >= 0 {
		return fmt.Sprintf("has the character %U; control characters are not allowed",
			[]rune(name[i:])[0])
	}

	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || part == ".." {
			return fmt.Sprintf("has the path segment %q", part)
		}
	}
	return ""
}

// unnameable reports whether a character is not allowed in a name: a control character of
// ASCII, or one that XML 1.0 excludes. Control characters beyond ASCII are allowed.
func unnameable(c rune) bool { return c < ' ' || c == 0x7f || c == 0xFFFE || c == 0xFFFF }

// unstorable reports whether a later step could not store a character: a control
// character, or one that XML 1.0 excludes.
func unstorable(c rune) bool { return unicode.IsControl(c) || c == 0xFFFE || c == 0xFFFF }
