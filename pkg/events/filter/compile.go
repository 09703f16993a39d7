package filter

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Limits on a filter: it is evaluated for every event.
const (
	MaxLength  = 4096 // characters
	MaxClauses = 100
)

// Error says what is wrong with the text of a filter. Column is the position of the
// character at which it is, from 1.
type Error struct {
	Column int
	Reason string
}

// Error names the position and the reason.
func (e *Error) Error() string { return fmt.Sprintf("filter: column %d: %s", e.Column, e.Reason) }

// Compile reads a filter. An error is an *Error: it has the position of what is wrong, and
// names what is possible there. Spaces around names, terms and values have no meaning.
func Compile(text string) (*Filter, error) {
	p := &parser{text: []rune(text)}
	if len(p.text) > MaxLength {
		return nil, p.errorf(MaxLength, "the filter has more than %d characters", MaxLength)
	}

	f := &Filter{}
	for more := true; more; {
		c, err := p.clause()
		if err != nil {
			return nil, err
		}

		f.clauses = append(f.clauses, c)
		if len(f.clauses) > MaxClauses {
			return nil, p.errorf(p.at, "the filter has more than %d clauses", MaxClauses)
		}

		if more, err = p.next(); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// parser reads a text from left to right.
type parser struct {
	text []rune
	at   int // of the character that is read next
}

// errorf is an error at the position at, from 0.
func (p *parser) errorf(at int, format string, args ...any) error {
	return &Error{Column: at + 1, Reason: fmt.Sprintf(format, args...)}
}

// unexpected is an error that names the next character.
func (p *parser) unexpected(want string) error {
	if p.at == len(p.text) {
		return p.errorf(p.at, "the filter ends here; expected %s", want)
	}
	return p.errorf(p.at, "unexpected %q; expected %s", p.text[p.at], want)
}

// skip reads the next character if it is one of set.
func (p *parser) skip(set string) bool {
	if p.at == len(p.text) || !strings.ContainsRune(set, p.text[p.at]) {
		return false
	}
	p.at++
	return true
}

func (p *parser) space() {
	for p.at < len(p.text) && unicode.IsSpace(p.text[p.at]) {
		p.at++
	}
}

// until reads up to the next character of set, or to the end. It returns what it read, without
// spaces around it, and where that begins, for the column of an error.
func (p *parser) until(set string) (string, int) {
	p.space()
	begin := p.at
	for p.at < len(p.text) && !strings.ContainsRune(set, p.text[p.at]) {
		p.at++
	}
	return strings.TrimSpace(string(p.text[begin:p.at])), begin
}

// next goes to the next clause, and reports whether there is one. Separators at the end of a
// list are ignored, here and below, because DSpace ignores them.
func (p *parser) next() (bool, error) {
	p.space()
	if p.at < len(p.text) && p.text[p.at] != ':' {
		return false, p.unexpected("a colon before the next clause, or the end")
	}
	rest := strings.TrimLeft(strings.TrimSpace(string(p.text[p.at:])), ":")
	if rest == "" {
		return false, nil
	}
	p.at++
	return true, nil
}

// clause reads types+actions{terms}.
func (p *parser) clause() (c clause, err error) {
	if c.subjects, err = p.names("subject type", subjects); err != nil {
		return c, err
	}

	if !p.skip("+") {
		return c, p.unexpected("a plus sign and actions, as in Item|Collection+Create|Modify")
	}

	if c.actions, err = p.names("action", actions); err != nil {
		return c, err
	}

	for p.skip("+") {
		p.space()
	}

	if p.at < len(p.text) && p.text[p.at] == '{' {
		c.terms, err = p.terms()
	}
	return c, err
}

// names reads names that are separated by |. nil stands for all of them. An empty name is accepted
// only after all others, where DSpace ignores it, too. A name is returned in its canonical form,
// once.
func (p *parser) names(what string, names []name) ([]string, error) {
	found, all, missing, first := []string{}, false, -1, p.at
	for more := true; more; more = p.skip("|") {
		text, at := p.until(":+|{}")
		is, ok := find(names, text)
		switch {
		case text == "" && missing < 0:
			missing = at
		case text == "":
		case missing >= 0:
			return nil, p.errorf(missing, "no %s is named here; known: %s", what, known(names))
		case text == "*" || strings.EqualFold(text, "all"):
			all = true
		case !ok:
			return nil, p.errorf(at, "%q is not a known %s; known: %s", text, what, known(names))
		case !slices.Contains(found, is):
			found = append(found, is)
		}
	}

	switch {
	case all:
		return nil, nil
	case len(found) == 0:
		return nil, p.errorf(first, "no %s is named here; known: %s", what, known(names))
	}
	return found, nil
}

// terms reads {term, term}; the next character is the brace.
func (p *parser) terms() ([]term, error) {
	var terms []term
	p.at++
	for more := true; more; more = p.skip(",") {
		t, err := p.term()
		if err != nil {
			return nil, err
		}
		terms = append(terms, t)
		p.space()
	}

	if !p.skip("}") {
		return nil, p.unexpected(`a comma before the next term, or the closing brace`)
	}
	return terms, nil
}

// term reads !name=value|value.
func (p *parser) term() (t term, err error) {
	p.space()
	t.not = p.skip("!")
	text, at := p.until("!=,|{}:")
	i := slices.IndexFunc(fields, func(f field) bool { return strings.EqualFold(f.name, text) })
	if i < 0 {
		return t, p.errorf(at, "%q is not a known term; known: %s", text, fieldNames())
	}

	t.field = fields[i]
	if !p.skip("=") {
		return t, p.unexpected("an equals sign and a value (an exclamation mark is written before the term)")
	}

	for more := true; more; more = p.skip("|") {
		v, err := p.value(t.field)
		if err != nil {
			return t, err
		}
		t.values = append(t.values, v)
	}
	return t, nil
}

// value reads a value of the field, in quotes or without, with or without an asterisk. Where a
// field has few possible values, another one is refused: it would never be found.
func (p *parser) value(f field) (v value, err error) {
	p.space()
	begin := p.at
	if p.skip(`"`) {
		v.text, err = p.quoted(begin)
	} else {
		v.text, _ = p.until(special)
	}

	if err != nil {
		return v, err
	}

	v.prefix = p.skip("*")
	p.space()
	switch {
	case v.text == "":
		return v, p.errorf(begin,
			"a value is missing; an asterisk comes after the beginning of a value")
	case p.at < len(p.text) && !strings.ContainsRune(",|}", p.text[p.at]):
		return v, p.unexpected("the end of the value; others are in double quotes, an asterisk is at the end")
	case f.only != nil && (v.prefix || !slices.Contains(f.only, v.text)):
		return v, p.errorf(begin, "%q is not a value of %s; known: %s", v, f.name,
			strings.Join(f.only, ", "))
	}
	return v, nil
}

// quoted reads up to the quotation mark that ends the value that begins at begin. A
// backslash stands before a quotation mark or a backslash in it.
func (p *parser) quoted(begin int) (string, error) {
	var b strings.Builder
	for p.at < len(p.text) {
		r := p.text[p.at]
		p.at++
		switch {
		case r == '"':
			return b.String(), nil
		case r == '\\' && p.at < len(p.text):
			r = p.text[p.at]
			p.at++
		}
		b.WriteRune(r)
	}
	return "", p.errorf(begin, "the quotation mark has no end")
}
