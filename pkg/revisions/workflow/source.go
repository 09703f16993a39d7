package workflow

import (
	"fmt"
	"strings"
)

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

// place is a place of a file as editors understand it.
func (s *source) place(n *node) string { return fmt.Sprintf("%s:%d:%d", s.path, n.line, n.column) }
