package workflow

import (
	"fmt"
	"strings"
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

// source is a file that is read, with what is wrong with it. Reading goes on after a problem, so
// that people see all of them at once; what could not be read is then a zero value, which is never
// used, since there is no Definition if there is any problem.
type source struct {
	path string

	// Tokens that it may have: what the files before it have left of maxTokens.
	tokens   int
	problems []Problem
	left     int // problems that are not reported
}

// refuse adds a problem at a node; nil is the file as a whole. Beyond maxProblems they are only
// counted.
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

// text is the value of a node that is text, else "" and a problem. Values that YAML does not take
// for text, such as 1.10 or yes, have to be in quotes: what they would be as text is not what is
// written in every case.
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

// fits is a text that is not too long for its key (most is in bytes), and can be given to a
// process; else "".
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

// entries are the values of a list; one value is a list of one. A list that is empty is a problem:
// it says nothing, and an unfinished one is more likely.
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

// fields reads the values of a mapping by their keys, in the order of the file. Keys that there are
// not, and those that are there twice, are problems: a misspelt key would be ignored, and a task
// would run without what it asks for. It reports whether the node is a mapping.
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
