package workflow

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"archivist/pkg/definition"
)

// kind is what a node is.
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

// node is a value of a file with its place. YAML and JSON become the same nodes.
type node struct {
	kind   kind
	text   string  // of what is not a mapping or a sequence; numbers as they are written
	line   int     // from 1
	column int     // from 1, in characters
	keys   []*node // of a mapping
	values []*node // of a mapping, in the order of its keys, or of a sequence
}

// nesting is how deep the values of a file are at most; a definition needs six.
const nesting = 10

// maxProblems is how many problems of a file are reported; people correct a file step by step.
const maxProblems = 50

// maxTokens is how many names, values and marks such as colons the files in YAML have together: the time that the
// library takes for a file grows with the square of them, to some seconds for so many.
const maxTokens = 50_000

// source is a file that is read, with what is wrong with it.
type source struct {
	path     string
	tokens   int // that it may have
	problems []Problem
	left     int // problems that are not reported
}

// refuse adds a problem at a node; nil is the file as a whole.
func (s *source) refuse(n *node, format string, args ...any) {
	p := Problem{File: s.path, Message: fmt.Sprintf(format, args...)}
	if n != nil {
		p.Line, p.Column = n.line, n.column
	}
	if len(s.problems) >= maxProblems {
		s.left++
		return
	}
	s.problems = append(s.problems, p)
}

// text is the value of a node that is text, else "".
func (s *source) text(key string, n *node, most int) string {
	switch {
	case n.kind != text && n.scalar() && n.kind != empty:
		s.refuse(n, "%s: expected text, not %s; write it in quotes", key, n.kind)
	case n.kind != text:
		s.refuse(n, "%s: expected text, not %s", key, n.kind)
	case n.text == "":
		s.refuse(n, "%s is empty", key)
	default:
		return s.fits(key, n, most)
	}
	return ""
}

// fits is a text that is not too long for its key, and can be given to a process; else "".
func (s *source) fits(key string, n *node, most int) string {
	if len(n.text) > most {
		s.refuse(n, "%s has %d bytes; at most %d are accepted", key, len(n.text), most)
		return ""
	}
	for _, r := range n.text {
		if r == 0 {
			s.refuse(n, "%s has a character NUL, which no program can be given", key)
			return ""
		}
	}
	return n.text
}

// truth is the value of a node that is true or false.
func (s *source) truth(key string, n *node) bool {
	if n.kind != truth {
		s.refuse(n, "%s: expected true or false, not %s", key, n.said())
	}
	return n.kind == truth && strings.EqualFold(n.text, "true") // YAML also has True and TRUE
}

// entries are the values of a list; one value is a list of one.
func (s *source) entries(key string, n *node, most int) []*node {
	switch {
	case n.kind != sequence:
		return []*node{n}
	case len(n.values) == 0:
		s.refuse(n, "%s: the list is empty; leave the key out", key)
	case len(n.values) > most:
		s.refuse(n, "%s: %d entries; at most %d are accepted", key, len(n.values), most)
		return nil
	}
	return n.values
}

// fields reads the values of a mapping by their keys. Keys that there are not, and those that are there twice,
// are problems. It reports whether the node is a mapping.
func (s *source) fields(what string, n *node, known map[string]func(*node)) bool {
	if n.kind != mapping {
		s.refuse(n, "%s: expected %s, not %s", what, mapping, n.said())
		return false
	}
	seen := map[string]*node{}
	for i, key := range n.keys {
		read, ok := known[key.text]
		first, twice := seen[key.text]
		seen[key.text] = key
		switch {
		case twice:
			s.refuse(key, "the key %s is already in line %d", clip(key.text), first.line)
		case !ok:
			s.refuse(key, "unknown key %q%s", clip(key.text), suggestKey(key.text, known))
		case n.values[i].kind == empty:
			s.refuse(key, "%s has no value; leave the key out", key.text)
		default:
			read(n.values[i])
		}
	}
	return true
}

// scalar reports whether the node has a text.
func (n *node) scalar() bool { return n.kind != mapping && n.kind != sequence }

// said is what the node is, as messages show it.
func (n *node) said() string {
	if n.kind == text || n.kind == integer || n.kind == number || n.kind == truth {
		return fmt.Sprintf("%q", clip(n.text))
	}
	return string(n.kind)
}

// place is a place of a file as editors understand it.
func (s *source) place(n *node) string { return fmt.Sprintf("%s:%d:%d", s.path, n.line, n.column) }

func clip(s string) string { return definition.Clip(s, 60) }

// positions finds lines and columns of bytes of a text, from its beginning on.
type positions struct {
	data         []byte
	at           int
	line, column int // of at, from 0
}

// to moves on to a byte.
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
