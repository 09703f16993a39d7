// Package premis writes preservation metadata as PREMIS 3 (Library of Congress,
// PREMIS Data Dictionary 3.0; its XML schema orders the elements).
package premis

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	namespace = "http://www.loc.gov/premis/v3"
	schema    = namespace + " http://www.loc.gov/standards/premis/premis.xsd"
	instance  = "http://www.w3.org/2001/XMLSchema-instance"
)

// Document is one PREMIS document: an intellectual entity's representation, what
// happened to it, and who did it.
type Document struct {
	Object Identifier
	// Alternatives are other identifiers of the object.
	Alternatives []Identifier
	Events       []Event
	Agents       []Agent
}

// Identifier names something: its type ("ARK") and its value.
type Identifier struct{ Type, Value string }

// Event is one event. Type is a term of the Library of Congress's eventType
// vocabulary; Outcome is "success", "warning" or "failure".
type Event struct {
	ID      Identifier
	Type    string
	Time    time.Time
	Detail  string
	Outcome string
	Note    string
	Agents  []Identifier
}

// Agent did something. Type is a term of the agentType vocabulary: "software",
// "person", "organization".
type Agent struct {
	ID      Identifier
	Name    string
	Type    string
	Version string
}

// Carries says why an XML document cannot carry a text, or "" if it can (XML 1.0,
// section 2.2, "Char"). A replacement character says that one was lost before.
func Carries(text string) string {
	for i, c := range text {
		switch {
		case c == utf8.RuneError && !strings.HasPrefix(text[i:], string(utf8.RuneError)):
			return "is not UTF-8"
		case c == utf8.RuneError:
			return "has the replacement character U+FFFD: a character was lost before"
		case c < 0x20 && c != '\t' && c != '\n' && c != '\r', c == 0xfffe, c == 0xffff:
			return fmt.Sprintf("has the character %U, which XML cannot hold", c)
		}
	}
	return ""
}

type identifierXML struct {
	kind string // of the element: "object", "event", "agent", "linkingAgent", "linkingObject"
	id   Identifier
	role string
}

// MarshalXML writes the three elements whose names begin with what is identified.
func (i identifierXML) MarshalXML(e *xml.Encoder, _ xml.StartElement) error {
	outer := xml.StartElement{Name: xml.Name{Local: i.kind + "Identifier"}}
	if err := e.EncodeToken(outer); err != nil {
		return err
	}
	parts := [][2]string{{"Type", i.id.Type}, {"Value", i.id.Value}}
	for _, part := range parts {
		if err := e.EncodeElement(part[1], xml.StartElement{Name: xml.Name{Local: i.kind + "Identifier" + part[0]}}); err != nil {
			return err
		}
	}
	if i.role != "" {
		if err := e.EncodeElement(i.role, xml.StartElement{Name: xml.Name{Local: i.kind + "Role"}}); err != nil {
			return err
		}
	}
	return e.EncodeToken(outer.End())
}

type eventXML struct {
	XMLName xml.Name `xml:"event"`
	ID      identifierXML
	Type    struct {
		Text         string `xml:",chardata"`
		Authority    string `xml:"authority,attr"`
		AuthorityURI string `xml:"authorityURI,attr"`
	} `xml:"eventType"`
	Time    string `xml:"eventDateTime"`
	Detail  string `xml:"eventDetailInformation>eventDetail"`
	Outcome struct {
		Outcome string   `xml:"eventOutcome"`
		Detail  *noteXML `xml:"eventOutcomeDetail"`
	} `xml:"eventOutcomeInformation"`
	Agents []identifierXML
	Object identifierXML
}

type noteXML struct {
	Note string `xml:"eventOutcomeDetailNote"`
}

type agentXML struct {
	XMLName xml.Name `xml:"agent"`
	ID      identifierXML
	Name    string `xml:"agentName"`
	Type    string `xml:"agentType"`
	Version string `xml:"agentVersion,omitempty"`
}

type objectXML struct {
	XMLName xml.Name `xml:"object"`
	Type    string   `xml:"xsi:type,attr"`
	IDs     []identifierXML
}

type documentXML struct {
	XMLName  xml.Name `xml:"premis"`
	NS       string   `xml:"xmlns,attr"`
	XSI      string   `xml:"xmlns:xsi,attr"`
	Location string   `xml:"xsi:schemaLocation,attr"`
	Version  string   `xml:"version,attr"`
	Object   objectXML
	Events   []eventXML
	Agents   []agentXML
}

// Write writes a document. The same document always gives the same bytes.
func (d Document) Write(w io.Writer) error {
	doc := documentXML{NS: namespace, XSI: instance, Location: schema, Version: "3.0", Object: objectXML{Type: "representation", IDs: []identifierXML{{kind: "object", id: d.Object}}}}
	for _, id := range d.Alternatives {
		doc.Object.IDs = append(doc.Object.IDs, identifierXML{kind: "object", id: id})
	}
	for _, e := range d.Events {
		x := eventXML{ID: identifierXML{kind: "event", id: e.ID}, Time: e.Time.UTC().Format(time.RFC3339), Detail: e.Detail, Object: identifierXML{kind: "linkingObject", id: d.Object}}
		x.Type.Text, x.Type.Authority, x.Type.AuthorityURI = e.Type, "eventType", "http://id.loc.gov/vocabulary/preservation/eventType"
		x.Outcome.Outcome = e.Outcome
		if e.Note != "" {
			x.Outcome.Detail = &noteXML{e.Note}
		}
		for i, id := range e.Agents {
			role := "implementer"
			if i > 0 {
				role = "authorizer"
			}
			x.Agents = append(x.Agents, identifierXML{kind: "linkingAgent", id: id, role: role})
		}
		doc.Events = append(doc.Events, x)
	}
	for _, a := range d.Agents {
		doc.Agents = append(doc.Agents, agentXML{ID: identifierXML{kind: "agent", id: a.ID}, Name: a.Name, Type: a.Type, Version: a.Version})
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(doc); err != nil {
		return fmt.Errorf("premis: %w", err)
	}
	_, err := io.WriteString(w, "\n")
	return err
}
