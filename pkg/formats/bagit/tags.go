package bagit

import (
	"bytes"
	"fmt"
	"io/fs"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/ianaindex"
	"golang.org/x/text/encoding/unicode"
)

// The lines of bagit.txt. Earlier versions were read with more white space than version 1.0 allows (RFC 8493, section
// 2.1.1).
var (
	versionLine  = regexp.MustCompile(`^BagIt-Version\s*:\s*(\d+)\.(\d+)\s*$`)
	encodingLine = regexp.MustCompile(`^Tag-File-Character-Encoding\s*:\s*(\S+)\s*$`)
	strictLine   = regexp.MustCompile(`^[A-Za-z-]+: \S+$`)
)

// declaration reads bagit.txt: the version, and the encoding of the other tag files. It is itself in UTF-8.
func (c *check) declaration() error {
	data, err := fs.ReadFile(c.FS, declarationFile)
	switch {
	case missing(err):
		c.problem("", 0, "there is no %s: it is not a bag, or not its top folder", declarationFile)
		return nil
	case err != nil:
		return err
	case bytes.HasPrefix(data, []byte("\xef\xbb\xbf")):
		c.problem(declarationFile, 1, "it begins with a byte order mark")
		return nil
	}

	lines := splitLines(string(data))
	if len(lines) != 2 {
		c.problem(declarationFile, 0, "found %d lines; expected BagIt-Version and Tag-File-Character-Encoding",
			len(lines))
		return nil
	}

	v, e := versionLine.FindStringSubmatch(lines[0]), encodingLine.FindStringSubmatch(lines[1])
	if v == nil {
		c.problem(declarationFile, 1, "found %q; expected e.g. \"BagIt-Version: 1.0\"", lines[0])
		return nil
	}
	if e == nil {
		c.problem(declarationFile, 2, "found %q; expected e.g. \"Tag-File-Character-Encoding: UTF-8\"", lines[1])
		return nil
	}

	var is version
	for _, k := range known {
		if fmt.Sprint(k.major) == v[1] && fmt.Sprint(k.minor) == v[2] {
			is = k
		}
	}
	if is == (version{}) {
		c.problem(declarationFile, 1, "version %s.%s is not known; expected 0.93 to 0.97, or 1.0", v[1], v[2])
		return nil
	}

	for i, line := range lines {
		if is.atLeast(1, 0) && !strictLine.MatchString(line) {
			c.problem(declarationFile, i+1, "found %q; expected a name, a colon, one blank and a value", line)
		}
	}

	c.decode, err = decoding(e[1])
	if err != nil {
		c.problem(declarationFile, 2, "the encoding %q is not known; expected a name of IANA, e.g. UTF-8", e[1])
		return nil
	}
	c.version, c.Version, c.Encoding = is, v[1]+"."+v[2], e[1]
	return nil
}

// decoding is the decoder of an encoding.
func decoding(name string) (decoder, error) {
	var enc encoding.Encoding
	var err error
	switch strings.ToUpper(name) {
	case "UTF-8", "UTF8":
		return func(data []byte) ([]byte, error) {
			if !utf8.Valid(data) {
				return nil, fmt.Errorf("it is not UTF-8, which %s says that it is", declarationFile)
			}
			return bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), nil
		}, nil
	case "UTF-16":
		enc = unicode.UTF16(unicode.BigEndian, unicode.UseBOM)
	default:
		enc, err = ianaindex.IANA.Encoding(name)
	}
	if err != nil || enc == nil {
		return nil, fmt.Errorf("no encoding %s", name)
	}
	return func(data []byte) ([]byte, error) { return enc.NewDecoder().Bytes(data) }, nil
}

// text reads a tag file as lines. there is false for a file that does not exist, or cannot be decoded, which is a
// problem.
func (c *check) text(name string) (lines []string, there bool, err error) {
	data, err := fs.ReadFile(c.FS, name)
	if missing(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}

	decoded, err := c.decode(data)
	if err != nil {
		c.problem(name, 0, "%v", err)
		return nil, false, nil
	}
	return splitLines(string(decoded)), true, nil
}

// splitLines splits a text at its line ends: LF, CR LF or CR (RFC 8493, section 2.1.3). What is after the last one is a
// line if it is not empty.
func splitLines(text string) []string {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	lines := strings.Split(text, "\n")
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// info reads bag-info.txt (RFC 8493, section 2.2.2): fields, whose values may go on in lines that begin with white
// space. Fields may be repeated.
func (c *check) info() error {
	name := infoFile
	if _, there := c.present[name]; !there && !c.version.atLeast(0, 96) {
		name = infoFileBefore
	}

	lines, there, err := c.text(name)
	if err != nil || !there {
		return err
	}

	for n, line := range lines {
		label, value, is := strings.Cut(line, ":")
		switch {
		case strings.TrimSpace(line) == "":
		case strings.IndexAny(line, " \t") == 0 && len(c.Info) > 0:
			c.Info[len(c.Info)-1].Value += " " + strings.TrimSpace(line)
		case !is || strings.TrimSpace(label) == "":
			c.problem(name, n+1, "found %q; expected a name, a colon and a value", line)
		default:
			c.Info = append(c.Info, Field{strings.TrimSpace(label), strings.TrimSpace(value)})
		}
	}
	return nil
}

// oxum compares Payload-Oxum with the payload: OCTETS.FILES (RFC 8493, section 2.2.2).
func (c *check) oxum() {
	for _, f := range c.Info {
		if !strings.EqualFold(f.Name, "Payload-Oxum") {
			continue
		}
		octets, files, _ := strings.Cut(f.Value, ".")
		bytes, err := strconv.ParseInt(octets, 10, 64)
		count, also := strconv.Atoi(files)
		switch {
		case err != nil || also != nil:
			c.problem(infoFile, 0, "Payload-Oxum: found %q; expected BYTES.FILES", f.Value)
		case bytes != c.Bytes || count != c.Files:
			c.problem(infoFile, 0, "Payload-Oxum says %d bytes in %d files; there are %d bytes in %d", bytes, count,
				c.Bytes, c.Files)
		}
	}
}
