package feed

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"io"
	"net/url"
	"strings"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"archivist/pkg/kernel/fault"
)

// parser reads entries one after the other. Of the whole document it keeps only the entry at hand.
type parser struct {
	xml   *xml.Decoder
	bases []*url.URL // of the document and each open element, for relative addresses
	root  string     // the local name of the root element; "" before it
}

// newParser parses a document that is at an address. An address that cannot be read leaves relative
// ones relative.
func newParser(r io.Reader, address string) *parser {
	d := xml.NewDecoder(&printable{utf8Of(bufio.NewReader(r))})
	d.Strict = false // many feeds have an ampersand that is not escaped
	d.Entity = xml.HTMLEntity
	d.CharsetReader = charsetReader
	base, err := url.Parse(address)
	if err != nil {
		base = &url.URL{}
	}
	return &parser{xml: d, bases: []*url.URL{base}}
}

// utf8Of decodes UTF-16, which shows in the first two bytes: a byte order mark, or half of the
// first "<" (source: XML 1.0, appendix F). Other encodings can be read as far as the declaration,
// which names them.
func utf8Of(r *bufio.Reader) io.Reader {
	order := unicode.LittleEndian
	start, _ := r.Peek(2) // what is wrong with the reader, it says again
	switch string(start) {
	case "\xfe\xff", "\x00<":
		order = unicode.BigEndian
	case "\xff\xfe", "<\x00":
	default:
		return r
	}
	return transform.NewReader(r, unicode.UTF16(order, unicode.UseBOM).NewDecoder())
}

// charsetReader decodes what is in the encoding that the declaration names. A declaration that
// could be read is not in UTF-16, or was decoded; some publishers write it so over UTF-8.
func charsetReader(name string, r io.Reader) (io.Reader, error) {
	if strings.HasPrefix(strings.ToLower(name), "utf-16") {
		return r, nil
	}
	return charset.NewReaderLabel(name, r)
}

// printable leaves out control characters, which XML does not have: some publishers copy them from
// elsewhere.
type printable struct{ r io.Reader }

// Read reads at least one byte, or returns an error.
func (p *printable) Read(b []byte) (int, error) {
	for {
		n, err := p.r.Read(b)
		kept := 0
		for _, c := range b[:n] {
			if c >= ' ' || c == '\t' || c == '\n' || c == '\r' {
				b[kept] = c
				kept++
			}
		}

		if kept > 0 || err != nil || len(b) == 0 {
			return kept, err
		}
	}
}

// next returns the next entry, or io.EOF. Entries are "item" of RSS and "entry" of Atom, at most
// three deep: below rss and channel, RDF, or feed.
func (p *parser) next() (rawEntry, error) {
	for {
		token, err := p.token()
		if err != nil {
			return rawEntry{}, p.ended(err)
		}

		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}

		if p.root == "" {
			err = p.begin(start.Name)
			if err != nil {
				return rawEntry{}, err
			}
		}

		if name := start.Name.Local; (name == "item" || name == "entry") && p.depth() <= 3 {
			return p.entry(start)
		}
	}
}

// begin checks the root element: rss of RSS 2.0, RDF of RSS 1.0, feed of Atom. Its namespace is not
// checked.
func (p *parser) begin(name xml.Name) error {
	switch p.root = name.Local; p.root {
	case "rss", "RDF", "feed":
		return nil
	}
	return fault.New(fault.Invalid, "this is no RSS or Atom feed: its root element is %q",
		clip(name.Local))
}

// ended refuses a document without elements.
func (p *parser) ended(err error) error {
	if err == io.EOF && p.root == "" {
		return fault.New(fault.Invalid, "this is no RSS or Atom feed: it has no XML element")
	}
	return err
}

// depth is the number of open elements.
func (p *parser) depth() int { return len(p.bases) - 1 }

// token is the next token. It keeps account of the open elements, and refuses what is nested too
// deep, and entities: a few of them can expand to gigabytes.
func (p *parser) token() (xml.Token, error) {
	token, err := p.xml.Token()
	switch t := token.(type) {
	case xml.StartElement:
		if p.depth() >= mostDepth {
			return nil, fault.New(fault.Invalid, "elements are nested more than %d deep", mostDepth)
		}
		// A base holds for the element, its attributes and what is in it (XML Base, section 4).
		base := p.bases[p.depth()]
		if relative := attribute(t, xmlSpace, "base"); relative != "" {
			base = cmp.Or(resolve(base, relative), base)
		}
		p.bases = append(p.bases, base)
	case xml.EndElement:
		p.bases = p.bases[:p.depth()]
	case xml.Directive:
		if bytes.Contains(bytes.ToUpper(t), []byte("<!ENTITY")) {
			return nil, fault.New(fault.Invalid,
				"the feed declares XML entities, which are not accepted")
		}
	}
	return token, err
}

// entry reads an entry to its end. The text of its direct children is read, but recordings wherever
// they are in it.
func (p *parser) entry(start xml.StartElement) (rawEntry, error) {
	line, _ := p.xml.InputPos()
	e := rawEntry{line: line, id: strings.TrimSpace(attribute(start, rdf, "about"))}
	for depth := p.depth(); ; {
		token, err := p.token()
		if err != nil {
			return e, err
		}

		if p.depth() < depth {
			return e, nil
		}

		child, ok := token.(xml.StartElement)
		if !ok {
			continue
		}

		e.addMedia(child, p.bases[p.depth()])
		into := e.text(child.Name, start.Name.Space)
		if into == nil || p.depth() > depth+1 { // it is not read, or is no direct child
			continue
		}

		*into, err = p.content()
		if err != nil {
			return e, err
		}
	}
}

// content is the text of the element that is open, to its end, with that of elements in it: one
// line, of at most mostText bytes.
func (p *parser) content() (string, error) {
	var text []byte
	for depth := p.depth(); p.depth() >= depth; {
		token, err := p.token()
		if err != nil {
			return "", err
		}
		if data, ok := token.(xml.CharData); ok && len(text) < mostText {
			text = append(text, data[:min(len(data), mostText-len(text))]...)
		}
	}
	return strings.Join(strings.Fields(strings.ToValidUTF8(string(text), "")), " "), nil
}

// failure is an error with the line where it is. What is wrong with the document is an Invalid; an
// error of the reader stays as it is.
func (p *parser) failure(err error) error {
	var syntax *xml.SyntaxError
	line, _ := p.xml.InputPos()
	switch {
	case errors.As(err, &syntax):
		return fault.New(fault.Invalid, "line %d: %s", syntax.Line, syntax.Msg)
	case fault.Of(err) != "":
		return fault.New(fault.Of(err), "line %d: %w", line, err)
	case strings.HasPrefix(err.Error(), "xml: "): // an encoding that is not known
		return fault.New(fault.Invalid, "line %d: %w", line, err)
	}
	return err
}
