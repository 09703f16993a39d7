package workflow

import (
	"fmt"
	"unicode/utf8"

	"archivist/pkg/kernel/definition"
)

// kind is what a node is. YAML's numbers, truth values and nulls are kinds of their own, because a
// definition that means text must say so: "on" or 1.10 would be something else than what is
// written.
type kind string

// The kinds, as messages name them.
const (
	mapping  kind = "keys with values"
	sequence kind = "a list"
	text     kind = "text"
	integer  kind = "a whole number"
	number   kind = "a number"
	truth    kind = "true or false"
	empty    kind = "nothing"
)

// node is a value of a file with its place. YAML and JSON become the same nodes, so that the same
// content is the same definition.
type node struct {
	kind   kind
	text   string  // of what is not a mapping or a sequence; numbers as they are written
	line   int     // from 1
	column int     // from 1, in characters
	keys   []*node // of a mapping
	values []*node // of a mapping, in the order of its keys, or of a sequence
}

// nesting is how deep the values of a file are at most; a definition needs six. Whatever reads them
// is recursive.
const nesting = 10

// maxProblems is how many problems of a file are reported; people correct a file step by step.
const maxProblems = 50

// maxTokens is how many names, values and marks such as colons the files in YAML have together: the
// time that the library takes for a file grows with the square of them, to some seconds for so
// many. A pass has to end within its time, whatever somebody commits.
const maxTokens = 50_000

// scalar reports whether the node has a text.
func (n *node) scalar() bool { return n.kind != mapping && n.kind != sequence }

// said is what the node is, as messages show it.
func (n *node) said() string {
	if n.kind == text || n.kind == integer || n.kind == number || n.kind == truth {
		return fmt.Sprintf("%q", clip(n.text))
	}
	return string(n.kind)
}

// clip cuts a text of a file for a message, which must not be as long as the file.
func clip(s string) string { return definition.Clip(s, 60) }

// positions finds lines and columns of bytes of a text, from its beginning on: it only goes
// forward, so the time is linear in the file.
type positions struct {
	data         []byte
	at           int
	line, column int // of at, from 0
}

// to moves on to a byte, and returns its line and column, both from 1; the column is in characters.
func (p *positions) to(offset int) (line, column int) {
	for p.at < min(offset, len(p.data)) {
		_, size := utf8.DecodeRune(p.data[p.at:])
		p.column++
		if p.data[p.at] == '\n' {
			p.line, p.column = p.line+1, 0
		}
		p.at += size
	}
	return p.line + 1, p.column + 1
}
