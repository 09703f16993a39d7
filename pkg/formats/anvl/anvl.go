// Package anvl writes and reads A Name-Value Language (ANVL), the line format of
// Merritt's system files and of ERC records:
//
//	# a comment
//	who: Lovelace, Ada
//	what: Notes upon the memoir
//	  by the Translator
//
// A line is a name and its value. A line that begins with a blank continues the value
// before it. [Read] returns exactly the values that [Write] wrote; values for which that is
// impossible are refused, see [Carries].
//
// The format is defined in draft-kunze-anvl.
//
// What other writers have put into a file is read more freely than it is written here: any
// line end, folded values, blanks around names. Names are not checked, and may repeat; the
// order is kept.
package anvl

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Element is one name with its value. Neither has blanks at its ends after Read.
type Element struct{ Name, Value string }

// Carries returns why a line cannot hold a value so that Read returns the same value, or ""
// if it can. A value can have any length. The reason is a part of a sentence: "has a line
// break".
func Carries(value string) string {
	switch {
	case !utf8.ValidString(value):
		return "is not UTF-8"
	case strings.ContainsAny(value, "\n\r"):
		return "has a line break"
	case strings.Trim(value, " \t") != value:
		return "begins or ends with a blank"
	}
	return ""
}

// Write writes elements as lines "name: value". Elements without a value are left out. A
// value that a line cannot hold is an error, so that Read returns what was written. After an
// error the lines before are written.
func Write(w io.Writer, elements ...Element) error {
	for _, e := range elements {
		if e.Value == "" {
			continue
		}
		if why := Carries(e.Value); why != "" {
			return fmt.Errorf("anvl: the value of %s %s", e.Name, why)
		}
		if _, err := fmt.Fprintf(w, "%s: %s\n", e.Name, e.Value); err != nil {
			return err
		}
	}
	return nil
}

// Read reads elements. A line ends with LF, CRLF or CR, and may have any length. A line that
// begins with a blank continues the value before it, joined by a blank (ANVL, section 2: a
// value may be folded). "#" lines are comments, empty lines are skipped, and so is a byte
// order mark. Text that is not UTF-8 is an error. An error of the reader is returned with the
// number of the line; nothing that was read is returned beside it.
func Read(r io.Reader) ([]Element, error) {
	var out []Element
	in := bufio.NewReader(r)
	for n := 1; ; {
		text, err := in.ReadString('\n')
		last := err == io.EOF
		if err != nil && !last {
			return nil, fmt.Errorf("anvl: line %d: %w", n, err)
		}

		if n == 1 {
			text = strings.TrimPrefix(text, "\ufeff")
		}

		// ReadString ends at LF; the text can have several lines that end with CR.
		for line := range strings.SplitSeq(strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r"),
			"\r") {
			out, err = add(out, line, n)
			if err != nil {
				return nil, err
			}
			n++
		}

		if last {
			return out, nil
		}
	}
}

// add adds line n, or the value that it continues. An element without a value is kept, since
// the next line may continue it.
func add(out []Element, line string, n int) ([]Element, error) {
	if !utf8.ValidString(line) {
		return nil, fmt.Errorf("anvl: line %d is not UTF-8; save the file as UTF-8", n)
	}

	value := strings.Trim(line, " \t")
	switch {
	case strings.HasPrefix(line, "#") || value == "":
		return out, nil
	case line[0] == ' ' || line[0] == '\t':
		if len(out) == 0 {
			return nil, fmt.Errorf("anvl: line %d continues a value, but there is none before it", n)
		}
		last := &out[len(out)-1]
		last.Value = strings.TrimPrefix(last.Value+" "+value, " ")
		return out, nil
	}

	name, value, ok := strings.Cut(line, ":")
	if !ok {
		return nil, fmt.Errorf("anvl: line %d has no colon: %.200q", n, line)
	}
	return append(out, Element{strings.Trim(name, " \t"), strings.Trim(value, " \t")}), nil
}
