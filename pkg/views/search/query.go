package search

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"archivist/pkg/kernel/fault"
)

// Fields that a query can name.
const (
	FieldAny        = "" // all words of the document
	FieldTitle      = "title"
	FieldCreator    = "creator"
	FieldCollection = "collection" // its name, exactly
	FieldDate       = "date"       // words, or a range of days
	FieldID         = "id"         // a local id, exactly
	FieldARK        = "ark"        // exactly
	FieldFile       = "file"       // words of paths
	FieldFormat     = "format"     // a media type or an id of PRONOM, exactly, in any case
)

// Fields lists those with a name.
var Fields = []string{FieldTitle, FieldCreator, FieldCollection, FieldDate, FieldID, FieldARK,
	FieldFile, FieldFormat}

// Limits of a query. They bound what one search costs.
const (
	MaxQuery   = 1000 // bytes
	MaxClauses = 20
	MinPrefix  = 2 // letters and digits before a *
)

// Query is what a document must be like: all clauses hold. ParseQuery makes it: at least one clause is
// without Not, and there are MaxClauses at most. The zero value selects all documents.
type Query struct{ Clauses []Clause }

// Clause is one condition. Exactly one of Words, Prefix, Exact and From or To is set.
type Clause struct {
	Not    bool
	Field  string
	Words  string // normal; they follow each other
	Prefix string // normal; of a word
	Exact  string // the whole value of a field
	From   string // ISO 8601, e.g. "1851" or "1851-05"; "" = no bound
	To     string // inclusive: "1851" includes all of its days
}

// QueryError is a query that cannot be read. At counts characters from 1. Characters are code points,
// not bytes, so that a position fits what a person sees.
type QueryError struct {
	At     int
	Reason string
}

// Error names the position.
func (e *QueryError) Error() string { return e.Reason }

// ParseQuery reads a query:
//
//	harbour map          both words, in any field
//	"map of the harbour" these words, one after the other
//	harb*                words that begin so
//	title:harbour        in one of Fields
//	-creator:blunt       not
//	date:1800..1899      a range; one of its bounds may be left out
//
// An error is an Invalid with the position and a *QueryError inside.
func ParseQuery(text string) (Query, error) {
	p := parser{rest: text, at: 1}
	q, err := p.query()
	if err != nil {
		return Query{}, &fault.Error{
			Kind: fault.Invalid,
			Err:  err,
			Msg:  fault.New(fault.Invalid, "query: character %d: %s", err.At, err.Reason).Error(),
		}
	}
	return q, nil
}

// parser reads a query from the left. It does not go back.
type parser struct {
	rest string
	at   int // of rest, in characters from 1
}

// next removes n bytes of the rest and returns them.
func (p *parser) next(n int) string {
	taken := p.rest[:n]
	p.rest = p.rest[n:]
	p.at += utf8.RuneCountInString(taken)
	return taken
}

// blanks passes white space, as Unicode defines it.
func (p *parser) blanks() {
	p.next(len(p.rest) - len(strings.TrimLeftFunc(p.rest, unicode.IsSpace)))
}

// query reads all clauses. A query of conditions with a - only is refused: it would select nearly all
// objects.
func (p *parser) query() (q Query, err *QueryError) {
	switch {
	case len(p.rest) > MaxQuery:
		return q, &QueryError{1, "the query is longer than 1,000 bytes; shorten it"}
	case !utf8.ValidString(p.rest):
		return q, &QueryError{1, "the query is not UTF-8"}
	}

	for p.blanks(); p.rest != ""; p.blanks() {
		if len(q.Clauses) == MaxClauses {
			return q, &QueryError{p.at, "the query has more than 20 conditions; leave some out"}
		}
		c, err := p.clause()
		if err != nil {
			return q, err
		}
		q.Clauses = append(q.Clauses, c)
	}

	if !slices.ContainsFunc(q.Clauses, func(c Clause) bool { return !c.Not }) {
		return q, &QueryError{1,
			"there is nothing to search for; give a word, or a condition without a -"}
	}
	return q, nil
}

// names matches what could be the name of a field. So "ark:/99999/x" names the field ark; a word with a
// colon that names no field is refused, not taken for a text.
var names = regexp.MustCompile(`^[\pL\pN_]+:`)

// clause reads one condition: a -, a field and a colon, and a value, of which the first two may be
// missing.
func (p *parser) clause() (c Clause, err *QueryError) {
	if strings.HasPrefix(p.rest, "-") {
		p.next(1)
		c.Not = true
	}

	if name := names.FindString(p.rest); name != "" {
		at := p.at
		c.Field = strings.ToLower(strings.TrimSuffix(p.next(len(name)), ":"))
		if !slices.Contains(Fields, c.Field) {
			return c, &QueryError{at, "there is no field \"" + c.Field + "\"; the fields are " +
				strings.Join(Fields, ", ") +
				"; to search for text with a colon, put it in quotation marks"}
		}
	}

	at := p.at
	value, quoted, err := p.value()
	if err != nil {
		return c, err
	}
	return c, c.set(value, quoted, at)
}

// value reads a quoted text, or a word. A quotation mark in a quoted text cannot be escaped.
// quoted is whether it was in quotation marks, which makes "*" and ".." ordinary characters.
func (p *parser) value() (value string, quoted bool, err *QueryError) {
	if !strings.HasPrefix(p.rest, `"`) {
		end := strings.IndexFunc(p.rest, unicode.IsSpace)
		if end < 0 {
			end = len(p.rest)
		}
		return p.next(end), false, nil
	}

	at := p.at
	end := strings.Index(p.rest[1:], `"`)
	if end < 0 {
		return "", true, &QueryError{at, `there is no second quotation mark to this one`}
	}

	value = p.next(end + 2)
	return value[1 : len(value)-1], true, nil
}

// set makes the condition of the value at a position. ark, collection and id are compared exactly, so
// the text stays as it is. Others are made normal like the indexed texts.
func (c *Clause) set(value string, quoted bool, at int) *QueryError {
	prefix := !quoted && strings.HasSuffix(value, "*")
	if !quoted {
		err := c.unknown(value, at)
		if err != nil {
			return err
		}
	}

	switch {
	case strings.TrimSpace(value) == "":
		return &QueryError{at,
			"there is no text here; give a word after the field or between the quotation marks"}
	case c.Field == FieldARK:
		c.Exact = "ark:" + strings.TrimPrefix(value, "ark:")
	case c.Field == FieldCollection || c.Field == FieldID:
		c.Exact = value
	case c.Field == FieldFormat:
		c.Exact = strings.ToLower(value)
	case prefix:
		return c.prefix(strings.TrimSuffix(value, "*"), at)
	case c.Field == FieldDate && !quoted && strings.Contains(value, ".."):
		return c.days(value, at)
	default:
		c.Words = Normal(value)
		if c.Words == "" {
			return &QueryError{at, "there is no letter and no digit here"}
		}
	}
	return nil
}

// within matches a question mark between letters.
var within = regexp.MustCompile(`[\pL\pN]\?[\pL\pN]`)

// unknown refuses what other search engines know, in a text without quotation marks. It would find nothing here, and
// that would be taken for an answer.
func (c *Clause) unknown(value string, at int) *QueryError {
	exact := slices.Contains([]string{FieldARK, FieldCollection, FieldID, FieldFormat}, c.Field)
	star := strings.Index(value, "*")
	switch {
	case exact && star >= 0:
		return &QueryError{at, c.Field + " is compared as a whole; give all of it, in quotation marks if it has a *"}
	case exact:
	case c.Field == FieldAny && (value == "AND" || value == "OR"):
		return &QueryError{at, "all conditions of a query hold, and there is no " + value +
			"; to search for the word, put it in quotation marks"}
	case c.Field == FieldAny && value == "NOT":
		return &QueryError{at,
			"put a - before what is not to be found; to search for the word, put it in quotation marks"}
	case star >= 0 && star < len(value)-1:
		return &QueryError{at, "a * stands at the end of a word, for all that begin so"}
	case within.MatchString(value):
		return &QueryError{at, "a ? stands for itself; use a * at the end of a word"}
	}
	return nil
}

// prefix makes the condition on the beginning of a word. A short one would select a large part of all
// words, which an index has to go through one by one.
func (c *Clause) prefix(value string, at int) *QueryError {
	c.Prefix = Normal(value)
	switch {
	case utf8.RuneCountInString(c.Prefix) < MinPrefix:
		return &QueryError{at, "give at least two letters or digits before the *"}
	case strings.Contains(c.Prefix, " "):
		return &QueryError{at, "only letters and digits can stand before the *"}
	}
	return nil
}

// isoDay matches a year, a month or a day of ISO 8601.
var isoDay = regexp.MustCompile(`^[0-9]{4}(-(0[1-9]|1[0-2])(-(0[1-9]|[12][0-9]|3[01]))?)?$`)

// days makes the condition on a range. Bounds are compared as texts, which is right for ISO 8601:
// "1851" is before "1851-05".
func (c *Clause) days(value string, at int) *QueryError {
	c.From, c.To, _ = strings.Cut(value, "..")
	for _, bound := range []string{c.From, c.To} {
		if bound != "" && !isoDay.MatchString(bound) {
			return &QueryError{at,
				"a range of dates is FROM..TO, each a year, YYYY-MM or YYYY-MM-DD"}
		}
	}

	if c.From == "" && c.To == "" {
		return &QueryError{at, "give at least one bound of the range, e.g. 1800.. or ..1899"}
	}

	if c.To != "" && c.From > c.Until() {
		return &QueryError{at, "the range ends before it begins"}
	}
	return nil
}

// Until is a text that sorts after all days of To, and before the day that follows.
func (c Clause) Until() string { return c.To + "~" }

// String is the query in one form, whatever the blanks and cases it was written with. Two queries that
// mean the same clause by clause have the same text: cursors depend on that.
func (q Query) String() string {
	texts := make([]string, len(q.Clauses))
	for i, c := range q.Clauses {
		texts[i] = c.String()
	}
	return strings.Join(texts, " ")
}

// String is the clause as a query.
func (c Clause) String() string {
	text := ""
	if c.Not {
		text = "-"
	}

	if c.Field != FieldAny {
		text += c.Field + ":"
	}

	switch {
	case c.Prefix != "":
		return text + c.Prefix + "*"
	case c.From != "" || c.To != "":
		return text + c.From + ".." + c.To
	case c.Exact != "":
		return text + `"` + c.Exact + `"`
	}
	return text + `"` + c.Words + `"`
}
