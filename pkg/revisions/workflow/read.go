package workflow

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// errRefused says that a file has no nodes, and that its problem is noted.
var errRefused = errors.New("refused")

// read is the content of a file as nodes; nil if there is none, or if it cannot be read: then its
// problem is noted. The name decides whether it is JSON. A byte order mark is left out; any other
// encoding than UTF-8 is refused, with the place of the first wrong byte.
func (s *source) read(data []byte) *node {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	switch {
	case len(data) > MaxFile:
		s.refuse(nil, "the file has %d bytes; at most %d are accepted", len(data), MaxFile)
		return nil
	case !utf8.Valid(data):
		p := positions{data: data}
		line, column := p.to(validPrefix(data))
		s.refuse(&node{line: line, column: column}, "the file is not UTF-8")
		return nil
	case bytes.HasPrefix(data, pointer):
		s.refuse(nil, "the file is a pointer of Git LFS, whose content is not read; keep files with tasks out of LFS")
		return nil
	}

	read := s.readYAML
	if strings.HasSuffix(s.path, ".json") {
		read = s.readJSON
	}

	n, err := read(data)
	if err != nil {
		return nil
	}
	return n
}

// pointer begins a file that Git LFS keeps elsewhere (source: its specification, "The Pointer").
var pointer = []byte("version https://git-lfs.github.com/spec/")

// validPrefix is the number of bytes before the first that is not UTF-8.
func validPrefix(data []byte) int {
	at := 0
	for at < len(data) {
		r, size := utf8.DecodeRune(data[at:])
		if r == utf8.RuneError && size <= 1 {
			break
		}
		at += size
	}
	return at
}

// readYAML reads YAML (1.2). Its library is not trusted with what people write: an error of it, or
// a panic, is a problem of the file, and what makes it work long is refused before, on its tokens.
// nil without an error is a file that has no content.
func (s *source) readYAML(data []byte) (n *node, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			s.refuse(nil, "the file cannot be read as YAML")
			n, err = nil, errRefused
		}
	}()

	if s.tokens < 0 {
		return nil, errRefused // a file before has said so
	}

	// They are equal (source: YAML 1.2, section 5.4).
	data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	if line := tooBlank(data); line > 0 {
		s.refuse(&node{line: line, column: 1}, "more than %d blank lines follow each other", maxBlank)
		return nil, errRefused
	}

	tokens := lexer.Tokenize(string(data))
	s.tokens -= len(tokens)
	if s.tokens < 0 {
		s.refuse(nil, "the files have more than %d names, values and marks together", maxTokens)
		return nil, errRefused
	}

	if !s.plain(tokens) || !s.one(tokens) {
		return nil, errRefused
	}

	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		s.syntax(err)
		return nil, errRefused
	}

	for _, doc := range file.Docs {
		if doc.Body != nil {
			return s.fromYAML(doc.Body, 0)
		}
	}
	return nil, nil
}

// maxBlank is how many blank lines may follow each other in YAML: the time that the lexer takes for them grows with
// their square, to minutes for a file of them. Before it no token is known that could be counted.
const maxBlank = 100

// tooBlank is the first of more blank lines than may follow each other, 0 if there are none.
func tooBlank(data []byte) int {
	line, first := 1, 1 // of blank lines
	for _, b := range data {
		switch b {
		case ' ', '\t':
			continue
		case '\n', '\r': // each ends a line (source: YAML 1.2, section 5.4)
			line++
			if line-first > maxBlank {
				return first
			}
			continue
		}
		first = line + 1
	}
	return 0
}

// syntax adds an error of the library as a problem, at its place if the library knows it.
func (s *source) syntax(err error) {
	var at yaml.Error
	if errors.As(err, &at) && at.GetToken() != nil {
		s.refuse(place(at.GetToken()), "not YAML: %s", at.GetMessage())
		return
	}
	line, _, _ := strings.Cut(err.Error(), "\n")
	s.refuse(nil, "not YAML: %s", line)
}

// refusedTokens are parts of YAML that a definition does not need. Aliases make a small file large,
// tags change what a value is, and keys that are not text have no meaning here.
var refusedTokens = map[token.Type]string{
	token.AnchorType:     "anchors are not accepted; write the value itself",
	token.AliasType:      "aliases are not accepted; write the value itself",
	token.MergeKeyType:   "merged keys are not accepted; write the keys themselves",
	token.TagType:        "tags are not accepted; write the value itself",
	token.DirectiveType:  "directives are not accepted",
	token.MappingKeyType: "keys with ? are not accepted; write KEY: VALUE",
}

// plain reports whether the tokens have no refused parts, and are not nested deeper than the
// library can read: it is recursive. Dashes of one line are nested lists, too. The rest of the
// nesting is found in fromYAML.
func (s *source) plain(tokens token.Tokens) bool {
	depth, dashes, line := 0, 0, 0
	for _, t := range tokens {
		if why := refusedTokens[t.Type]; why != "" {
			s.refuse(place(t), "%s", why)
			return false
		}

		// Dashes count within a line: "- - - x".
		if t.Position.Line != line {
			line, dashes = t.Position.Line, 0
		}

		switch t.Type {
		case token.MappingStartType, token.SequenceStartType:
			depth++
		case token.MappingEndType, token.SequenceEndType:
			depth--
		case token.SequenceEntryType:
			dashes++
		}

		if depth > nesting || dashes > nesting {
			s.refuse(place(t), "values are nested deeper than %d", nesting)
			return false
		}
	}
	return true
}

// one reports whether the tokens are those of one document: of more, the library would give the
// first, and the others would be ignored.
func (s *source) one(tokens token.Tokens) bool {
	content, ended := false, false
	for _, t := range tokens {
		switch {
		case t.Type == token.CommentType:
		case t.Type == token.DocumentEndType:
			ended = true
		case ended || content && t.Type == token.DocumentHeaderType:
			s.refuse(place(t), "more than one document; write one list")
			return false
		default:
			content = true
		}
	}
	return true
}

// place is a node that only says where it is.
func place(t *token.Token) *node {
	return &node{kind: empty, line: t.Position.Line, column: t.Position.Column}
}

// fromYAML is a node of the library as ours. An errRefused means that it has something that is not
// accepted, which is noted.
func (s *source) fromYAML(from ast.Node, depth int) (*node, error) {
	n := place(from.GetToken())
	if depth > nesting {
		s.refuse(n, "values are nested deeper than %d", nesting)
		return nil, errRefused
	}

	switch x := from.(type) {
	case *ast.MappingNode:
		// A text with a colon that the library takes for a mapping.
		if joined := adjacent(x); joined != "" {
			n = place(x.Values[0].Key.GetToken())
			n.kind, n.text = text, joined
			return n, nil
		}
		return s.mappingYAML(n, x.Values, depth)
	case *ast.MappingValueNode:
		return s.mappingYAML(n, []*ast.MappingValueNode{x}, depth)
	case *ast.SequenceNode:
		n.kind = sequence
		for _, v := range x.Values {
			value, err := s.fromYAML(v, depth+1)
			if err != nil {
				return nil, err
			}
			n.values = append(n.values, value)
		}
		return n, nil
	}
	return s.scalarYAML(n, from)
}

// adjacent is the text of what the library takes for a key with a value, but is a text with a colon
// in it: PREV:name in a list in square brackets in braces. "" if it is a mapping.
func adjacent(m *ast.MappingNode) string {
	if m.IsFlowStyle || len(m.Values) != 1 {
		return ""
	}

	pair := m.Values[0]
	if _, plain := pair.Value.(ast.ScalarNode); !plain {
		return ""
	}

	key, value := pair.Key.GetToken(), pair.Value.GetToken()
	quoted := key.Type != token.StringType || value.CharacterType == token.CharacterTypeIndicator
	colon := pair.Start.Position
	if quoted || value.Position.Line != colon.Line || value.Position.Column != colon.Column+1 {
		return ""
	}
	return key.Value + ":" + value.Value
}

// scalarYAML reads a value that has no parts. Numbers and truth values keep the text that is
// written.
func (s *source) scalarYAML(n *node, from ast.Node) (*node, error) {
	n.text = from.GetToken().Value
	switch x := from.(type) {
	case *ast.StringNode:
		n.kind, n.text = text, x.Value
	case *ast.LiteralNode:
		n.kind, n.text = text, x.Value.Value
	case *ast.IntegerNode:
		n.kind = integer
	case *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		n.kind = number
	case *ast.BoolNode:
		n.kind = truth
	case *ast.NullNode:
		n.kind = empty
	default:
		s.refuse(n, "not YAML that is accepted here: %s", from.Type())
		return nil, errRefused
	}
	return n, nil
}

// mappingYAML reads pairs. A mapping is where its first key is.
func (s *source) mappingYAML(n *node, pairs []*ast.MappingValueNode, depth int) (*node, error) {
	n.kind = mapping
	for _, pair := range pairs {
		key, err := s.fromYAML(pair.Key, depth+1)
		if err != nil {
			return nil, err
		}

		if !key.scalar() {
			s.refuse(key, "expected a key, not %s", key.kind)
			return nil, errRefused
		}

		value, err := s.fromYAML(pair.Value, depth+1)
		if err != nil {
			return nil, err
		}

		n.keys, n.values = append(n.keys, key), append(n.values, value)
	}

	// The library's own place of it can be that of a colon.
	if len(n.keys) > 0 {
		n.line, n.column = n.keys[0].line, n.keys[0].column
	}
	return n, nil
}

// readJSON reads JSON, whose places the standard library knows only as numbers of bytes. Names that
// are there twice are kept, for the problem that they are: the library's decoder would take the
// last.
func (s *source) readJSON(data []byte) (*node, error) {
	r := jsonReader{
		source:    s,
		data:      data,
		positions: positions{data: data},
		decoder:   json.NewDecoder(bytes.NewReader(data)),
	}

	r.decoder.UseNumber()
	n, _, err := r.value(0)
	if err == errRefused {
		return nil, err
	}

	if err != nil {
		r.syntax(err)
		return nil, errRefused
	}

	_, next, end := r.next()
	if end != io.EOF {
		s.refuse(next, "not JSON: something follows after the value")
		return nil, errRefused
	}
	return n, nil
}

// syntax adds an error of the decoder as a problem, where the decoder has stopped.
func (r *jsonReader) syntax(err error) {
	offset := int(r.decoder.InputOffset())
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		// The offset of a syntax error is behind the wrong character.
		offset = max(offset, int(syntax.Offset)-1)
	}

	line, column := r.positions.to(offset)
	message := strings.TrimPrefix(err.Error(), "json: ")
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		message = "the end of the file was not expected"
	}

	r.source.refuse(&node{line: line, column: column}, "not JSON: %s", message)
}

// jsonReader reads a file token by token, and finds the place of each.
type jsonReader struct {
	source    *source
	data      []byte
	positions positions
	decoder   *json.Decoder
}

// next is the next token, and where it begins: the decoder's offset is behind the token before, so
// blanks, commas and colons are left out.
func (r *jsonReader) next() (json.Token, *node, error) {
	start := int(r.decoder.InputOffset())
	t, err := r.decoder.Token()
	if err != nil {
		return nil, &node{}, err
	}
	// The decoder has not skipped these yet.
	for start < len(r.data) && strings.IndexByte(" \t\r\n,:", r.data[start]) >= 0 {
		start++
	}
	line, column := r.positions.to(start)
	return t, &node{line: line, column: column}, nil
}

// value reads a value. It reports whether it was the end of a list or an object instead.
func (r *jsonReader) value(depth int) (n *node, end bool, err error) {
	t, n, err := r.next()
	if err != nil {
		return nil, false, err
	}

	if depth > nesting {
		r.source.refuse(n, "values are nested deeper than %d", nesting)
		return nil, false, errRefused
	}

	switch x := t.(type) {
	case json.Delim:
		if x == ']' || x == '}' {
			return n, true, nil
		}
		return n, false, r.parts(n, x, depth)
	case string:
		n.kind, n.text = text, x
	case json.Number:
		n.kind, n.text = number, x.String()
		if !strings.ContainsAny(n.text, ".eE") {
			n.kind = integer
		}
	case bool:
		n.kind, n.text = truth, "false"
		if x {
			n.text = "true"
		}
	case nil:
		n.kind = empty
	}
	return n, false, nil
}

// parts reads what is in a list or an object, up to its end. In an object, keys and values take
// turns.
func (r *jsonReader) parts(n *node, open json.Delim, depth int) error {
	n.kind = sequence
	if open == '{' {
		n.kind = mapping
	}

	for {
		part, end, err := r.value(depth + 1)
		if err != nil || end {
			return err
		}
		if n.kind == mapping && len(n.keys) == len(n.values) {
			n.keys = append(n.keys, part)
			continue
		}
		n.values = append(n.values, part)
	}
}
