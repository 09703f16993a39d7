package premis

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"time"
)

// namespaces are those of the schemas that are read, each with the versions that a document of it
// can state.
var namespaces = map[string][]string{
	"info:lc/xmlns/premis-v2":      {"2.0", "2.1", "2.2"},
	"http://www.loc.gov/premis/v3": {"3.0"},
}

// Entry is what a document has: an event or an agent. The other one is nil.
type Entry struct {
	Event *Event
	Agent *Agent
}

// Refusal says why one event or agent of a document cannot be read. The rest of the document
// can. A caller that collects them can name each to the depositor, and read the rest.
type Refusal struct {
	Kind string     // "event" or "agent"
	ID   Identifier // zero if that is what is missing
	Line int        // of the document, where it begins
	Why  string     // e.g. "has no eventType"
}

// Error names the event or agent.
func (r *Refusal) Error() string {
	name := r.ID.Type + " " + r.ID.Value
	if r.ID == (Identifier{}) {
		name = "without identifier"
	}
	return fmt.Sprintf("the %s %s in line %d %s", r.Kind, name, r.Line, r.Why)
}

// Read reads the events and agents of a document as a stream, in their order: PREMIS 2.0 to 2.2,
// and 3.0. Objects, rights and extensions are left out. A document of one event or agent alone is
// read too.
//
// zone is that of dates and times that state none; with nil they are refused.
//
// An event or agent that cannot be read is a *Refusal, and the next follows. Any other error is the
// last: the document is not XML, not PREMIS, or above a limit. A document with a document type
// declaration is refused, so it has no entities of its own.
//
// Read does not validate: the order of elements and what is inside objects are not checked. An
// element that the schema does not have in an event or agent is refused, so nothing is lost unseen.
func Read(in io.Reader, zone *time.Location) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		r := newReader(in, zone)
		for {
			entry, err := r.next()
			if err == io.EOF || !yield(entry, err) {
				return
			}
			if _, one := err.(*Refusal); err != nil && !one {
				return
			}
		}
	}
}

// next returns the next event or agent, a refusal, or the error that ends the document: io.EOF at
// its proper end.
func (r *reader) next() (Entry, error) {
	for {
		r.in.part = MaxEntry + readAhead
		token, err := r.token()
		if err == io.EOF && r.space != "" {
			return Entry{}, io.EOF
		}

		if err != nil {
			return Entry{}, r.broken(err)
		}

		switch t := token.(type) {
		case xml.CharData:
			if !blank(t) {
				return Entry{},
					r.broken(fmt.Errorf("there is text outside of objects, events and agents"))
			}
		case xml.StartElement:
			entry, err := r.element(t)
			if err != nil || entry != (Entry{}) {
				return entry, err
			}
		}
	}
}

// blank tells whether a text between elements is empty. A byte order mark can be at the beginning.
func blank(text []byte) bool {
	return len(bytes.TrimSpace(bytes.TrimPrefix(text, []byte("\ufeff")))) == 0
}

// element reads what begins with an element outside of all entries: the root, or one inside it.
func (r *reader) element(start xml.StartElement) (Entry, error) {
	if r.depth == 1 {
		if err := r.root(start); err != nil {
			return Entry{}, r.broken(err)
		}
		if start.Name.Local == "premis" {
			return Entry{}, nil
		}
	}

	if start.Name.Space != r.space {
		return Entry{}, r.broken(fmt.Errorf("the element %s is not of the namespace %s",
			start.Name.Local, r.space))
	}

	switch start.Name.Local {
	case "object", "rights":
		if err := r.skip(true); err != nil {
			return Entry{}, r.broken(err)
		}
		return Entry{}, nil
	case "event", "agent":
		return r.entry(start)
	}
	return Entry{}, r.broken(fmt.Errorf("PREMIS has no element %s beside objects, events, agents and rights",
		start.Name.Local))
}

// root checks the root of a document, and that there is one only.
func (r *reader) root(start xml.StartElement) error {
	if r.space != "" {
		return fmt.Errorf("there is a second root, %s", start.Name.Local)
	}

	versions, known := namespaces[start.Name.Space]
	if !known {
		return fmt.Errorf("the root %s is of the namespace %q; PREMIS 2 is of info:lc/xmlns/premis-v2, "+
			"PREMIS 3 of http://www.loc.gov/premis/v3", start.Name.Local, start.Name.Space)
	}

	r.space = start.Name.Space
	version := attribute(start, "version")
	if !slices.Contains(versions, version) && (start.Name.Local == "premis" || version != "") {
		return fmt.Errorf("the version is %q; one of this namespace is %s", version,
			strings.Join(versions, ", "))
	}
	return nil
}

// attribute is the value of an attribute without a namespace, "" if it is not there.
func attribute(start xml.StartElement, name string) string {
	for _, a := range start.Attr {
		if a.Name == (xml.Name{Local: name}) {
			return a.Value
		}
	}
	return ""
}

// entry reads an event or agent. It is read as a tree first, which the limits keep small, and
// judged then.
func (r *reader) entry(start xml.StartElement) (Entry, error) {
	r.entries++
	if r.entries > MaxEntries {
		return Entry{}, r.broken(fmt.Errorf("there are more than %d events and agents; split the document", MaxEntries))
	}

	r.line, _ = r.d.InputPos()
	r.problem = ""
	r.in.part = MaxEntry + readAhead
	tree, err := r.tree(start)
	if err != nil {
		return Entry{}, r.broken(err)
	}

	entry, id := Entry{}, r.identifier(tree, tree.name)
	if tree.name == "event" {
		entry.Event = r.event(tree, id)
	} else {
		entry.Agent = r.agent(tree, id)
	}

	if r.problem != "" {
		return Entry{}, &Refusal{Kind: tree.name, ID: id, Line: r.line, Why: r.problem}
	}
	return entry, nil
}

// tree reads an element with all that is inside it, but for extensions and links to what is
// not read. Limits of depth and size hold for it, so the recursion is bounded.
func (r *reader) tree(start xml.StartElement) (node, error) {
	n := node{name: start.Name.Local, uri: attribute(start, "valueURI")}
	inside, holds := parts[n.name]
	var text strings.Builder
	for {
		token, err := r.token()
		if err != nil {
			return n, err
		}

		switch t := token.(type) {
		case xml.EndElement:
			n.text = strings.TrimSpace(text.String())
			if holds && n.text != "" {
				r.refuse("has text between the elements of %s", n.name)
			}
			return n, nil
		case xml.CharData:
			text.Write(t)
		case xml.StartElement:
			kept, err := r.kid(n.name, inside, t)
			if err != nil {
				return n, err
			}
			n.kids = append(n.kids, kept...)
		}
	}
}

// kid reads an element inside another: none is kept of one that is left out or refused.
func (r *reader) kid(of string, allowed map[string]use, start xml.StartElement) ([]node, error) {
	use := allowed[start.Name.Local]
	if start.Name.Space != r.space || use&r.version() == 0 {
		r.refuse("has the element %s in %s, where %s does not have it", start.Name.Local, of,
			r.schema())
		use = left
	}

	if use&left != 0 {
		return nil, r.skip(false)
	}

	n, err := r.tree(start)
	return []node{n}, err
}

// version is the one of the document, for parts.
func (r *reader) version() use {
	if r.space == space {
		return in3
	}
	return in2
}

func (r *reader) schema() string {
	if r.version() == in3 {
		return "PREMIS 3"
	}
	return "PREMIS 2"
}
