// Package anvl writes and reads A Name-Value Language, the line format of
// Merritt's system files and of ERC records.
package anvl

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// Element is one name with its value.
type Element struct{ Name, Value string }

// Write writes elements as lines "name: value". Line breaks inside a value
// become continuation lines; elements without a value are left out.
func Write(w io.Writer, elements ...Element) error {
	for _, e := range elements {
		if e.Value == "" {
			continue
		}
		value := strings.ReplaceAll(strings.ReplaceAll(e.Value, "\r\n", "\n"), "\n", "\n ")
		if _, err := fmt.Fprintf(w, "%s: %s\n", e.Name, value); err != nil {
			return err
		}
	}
	return nil
}

// Read reads elements. A line that begins with a blank continues the value
// before it, "#" lines are comments, empty lines are skipped.
func Read(r io.Reader) ([]Element, error) {
	var out []Element
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSuffix(lines.Text(), "\r")
		switch {
		case strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "":
		case line[0] == ' ' || line[0] == '\t':
			if len(out) == 0 {
				return nil, fmt.Errorf("anvl: line %d continues nothing", n)
			}
			out[len(out)-1].Value += "\n" + strings.TrimSpace(line)
		default:
			name, value, ok := strings.Cut(line, ":")
			if !ok {
				return nil, fmt.Errorf("anvl: line %d has no colon: %q", n, line)
			}
			out = append(out, Element{strings.TrimSpace(name), strings.TrimSpace(value)})
		}
	}
	return out, lines.Err()
}
