package objects

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"unicode/utf8"

	"archivist/cmd/archivist/command"
	"archivist/pkg/kernel/terminal"
)

// namesFile lists the files that were written under other names, as JSON lines with path and local, in the
// folder to which they were written.
const namesFile = "archivist-other-names.jsonl"

// otherNames records the files that were written under other names, and returns an error with the exit code for
// that, which lists them; nil if there are none. The list replaces that of an earlier download to the folder.
func (c *objectGetCmd) otherNames(got []fetched) error {
	var lines, says strings.Builder
	n := 0
	for _, f := range got {
		if !f.Other {
			continue
		}

		n++
		local, err := filepath.Rel(c.Dir, f.Local)
		if err != nil {
			return err
		}

		line, err := json.Marshal(map[string]string{"path": f.Path,
			"local": filepath.ToSlash(local)})
		if err != nil {
			return err
		}

		lines.Write(append(line, '\n'))
		fmt.Fprintf(&says, "\n  %s\n    is %q", local, f.Path)
	}

	if n == 0 {
		return nil
	}

	to := filepath.Join(c.Dir, namesFile)
	if err := os.WriteFile(to, []byte(lines.String()), 0o644); err != nil {
		return err
	}
	return command.UnderOtherNames("%s with names that this file system cannot hold: "+
		"written under other names, which are listed in %s:%s", terminal.Count(n, "file"), to,
		says.String())
}

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
