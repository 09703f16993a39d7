package premis

import (
	"bufio"
	"encoding/xml"
	"fmt"
	"io"
	"strconv"
)

// vocabularies is where the Library of Congress publishes its terms.
const vocabularies = "http://id.loc.gov/vocabulary/preservation/"

// space is the namespace of PREMIS 3.
const space = "http://www.loc.gov/premis/v3"

// codes are the last parts of the terms' URIs, by vocabulary and term. A term that is not
// here is written without a URI.
var codes = map[string]map[string]string{
	"eventType": {
		"accession": "acc", "deaccession": "dea", "deletion": "del", "dissemination": "dis",
		"fixity check":          "fix",
		"format identification": "for", "information package creation": "ipc", "ingestion": "ing",
		"message digest calculation": "mes", "metadata modification": "mem",
		"policy assignment": "poa", "recovery": "rec",
		"replication": "rep", "transfer": "tra", "unpacking": "unp", "validation": "val",
		"virus check": "vir",
	},
	"eventOutcome":          {Success: "suc", Warning: "war", Failure: "fai"},
	"eventRelatedAgentRole": {Authorizer: "aut", Implementer: "imp", ExecutingProgram: "exe"},
	"agentType":             {Organization: "org", Person: "per", Software: "sof"},
	"relationshipType":      {"structural": "str"},
	"relationshipSubType":   {Represents: "rep", Includes: "inc"},
	"cryptographicHashFunctions": {
		"MD5": "md5", "SHA-1": "sha1", "SHA-256": "sha256", "SHA-384": "sha384",
		"SHA-512":  "sha512",
		"Adler-32": "adler", "CRC32": "crc32",
	},
}

// algorithms are the vocabulary's terms by canonical name.
var algorithms = map[string]string{
	"md5": "MD5", "sha1": "SHA-1", "sha256": "SHA-256", "sha384": "SHA-384", "sha512": "SHA-512",
	"adler32": "Adler-32", "crc32": "CRC32",
}

// Writer writes a document as a stream: first all objects, then the events, then the agents,
// as the schema orders them. The same calls always give the same bytes. Errors of the writer
// below come from Close.
type Writer struct {
	b    *bufio.Writer // keeps the first error
	open []string
}

// New begins a document.
func New(w io.Writer) *Writer {
	d := &Writer{b: bufio.NewWriterSize(w, 64<<10)}
	d.b.WriteString(xml.Header)
	d.begin("premis", "xmlns", space, "xmlns:xsi", "http://www.w3.org/2001/XMLSchema-instance",
		"xsi:schemaLocation", space+" http://www.loc.gov/standards/premis/premis.xsd", "version",
		"3.0")
	return d
}

// Close ends the document.
func (d *Writer) Close() error {
	d.end()
	if err := d.b.Flush(); err != nil {
		return fmt.Errorf("premis: %w", err)
	}
	return nil
}

// Object writes an object. The error is one of a relation; the document is then not complete.
func (d *Writer) Object(o Object) error {
	d.begin("object", "xsi:type", string(o.Category))
	for _, id := range o.IDs {
		d.identifier("object", id)
	}

	if o.Category == File {
		d.characteristics(o)
	}

	if o.OriginalName != "" {
		d.text("originalName", o.OriginalName)
	}

	for _, r := range o.Relations {
		if err := d.relation(r); err != nil {
			return err
		}
	}

	d.end()
	return nil
}

// characteristics writes fixity, size and format of a file.
func (d *Writer) characteristics(o Object) {
	d.begin("objectCharacteristics")

	for _, f := range o.Fixity {
		name := f.Algorithm
		if algorithms[name] != "" {
			name = algorithms[name]
		}
		d.begin("fixity")
		d.algorithm(name)
		d.text("messageDigest", f.Digest)
		d.text("messageDigestOriginator", f.Originator)
		d.end()
	}

	d.text("size", strconv.FormatInt(o.Size, 10))

	format := o.Format
	if format == "" {
		format = "unknown"
	}

	d.begin("format")
	d.begin("formatDesignation")
	d.text("formatName", format)
	d.end()
	if o.FormatNote != "" {
		d.text("formatNote", o.FormatNote)
	}

	d.end()
	d.end()
}

// algorithm writes the term of a digest algorithm with its URI alone: there may be very
// many of them.
func (d *Writer) algorithm(name string) {
	if code := codes["cryptographicHashFunctions"][name]; code != "" {
		d.text("messageDigestAlgorithm", name, "valueURI", vocabularies+
			"cryptographicHashFunctions/"+code)
		return
	}
	d.text("messageDigestAlgorithm", name)
}

// relation writes a relationship with all objects of its other side.
func (d *Writer) relation(r Relation) error {
	d.begin("relationship")
	d.term("relationshipType", "relationshipType", "structural")
	d.term("relationshipSubType", "relationshipSubType", r.Kind)
	for id, err := range r.To {
		if err != nil {
			return err
		}
		d.identifier("relatedObject", id)
	}

	d.end()
	return nil
}

// Event writes an event. Times are written in UTC, with milliseconds if there are any.
func (d *Writer) Event(e Event) {
	d.begin("event")
	d.identifier("event", e.ID)
	d.term("eventType", "eventType", e.Type)
	d.text("eventDateTime", e.Time.UTC().Format("2006-01-02T15:04:05.999Z07:00"))
	d.begin("eventDetailInformation")
	d.text("eventDetail", e.Detail)
	d.end()

	d.outcome(e)
	for _, a := range e.Agents {
		d.begin("linkingAgentIdentifier")
		d.text("linkingAgentIdentifierType", a.Agent.Type)
		d.text("linkingAgentIdentifierValue", a.Agent.Value)
		if a.Role != "" {
			d.term("linkingAgentRole", "eventRelatedAgentRole", a.Role)
		}
		d.end()
	}

	for _, id := range e.Objects {
		d.identifier("linkingObject", id)
	}

	d.end()
}

// outcome writes the outcome of an event, if there is one, with its note.
func (d *Writer) outcome(e Event) {
	if e.Outcome == "" && e.Note == "" {
		return
	}

	d.begin("eventOutcomeInformation")
	if e.Outcome != "" {
		d.term("eventOutcome", "eventOutcome", e.Outcome)
	}

	if e.Note != "" {
		d.begin("eventOutcomeDetail")
		d.text("eventOutcomeDetailNote", e.Note)
		d.end()
	}

	d.end()
}

// Agent writes an agent.
func (d *Writer) Agent(a Agent) {
	d.begin("agent")
	for _, id := range append([]Identifier{a.ID}, a.Also...) {
		d.identifier("agent", id)
	}

	if a.Name != "" {
		d.text("agentName", a.Name)
	}

	if a.Type != "" {
		d.term("agentType", "agentType", a.Type)
	}

	if a.Version != "" {
		d.text("agentVersion", a.Version)
	}

	if a.Note != "" {
		d.text("agentNote", a.Note)
	}

	d.end()
}

// identifier writes the three elements whose names begin with the kind of thing.
func (d *Writer) identifier(of string, id Identifier) {
	d.begin(of + "Identifier")
	d.text(of+"IdentifierType", id.Type)
	d.text(of+"IdentifierValue", id.Value)
	d.end()
}

// term writes a term with the URI that it has in its vocabulary.
func (d *Writer) term(element, vocabulary, term string) {
	code := codes[vocabulary][term]
	if code == "" {
		d.text(element, term)
		return
	}
	uri := vocabularies + vocabulary
	d.text(element, term, "authority", vocabulary, "authorityURI", uri, "valueURI", uri+"/"+code)
}

// text writes an element with its text. Attributes are names, each followed by its value.
// What XML cannot hold becomes U+FFFD: callers ask Carries before.
func (d *Writer) text(element, text string, attributes ...string) {
	d.tag(element, attributes)
	d.escape(text)
	d.b.WriteString("</" + element + ">\n")
}

// begin begins an element that has elements inside, end ends it.
func (d *Writer) begin(element string, attributes ...string) {
	d.tag(element, attributes)
	d.b.WriteByte('\n')
	d.open = append(d.open, element)
}

// end ends the element that was begun last.
func (d *Writer) end() {
	last := len(d.open) - 1
	d.b.WriteString("</" + d.open[last] + ">\n")
	d.open = d.open[:last]
}

// tag writes a start tag. Attributes are names, each followed by its value.
func (d *Writer) tag(element string, attributes []string) {
	d.b.WriteString("<" + element)
	for i := 0; i < len(attributes); i += 2 {
		d.b.WriteString(" " + attributes[i] + `="`)
		d.escape(attributes[i+1])
		d.b.WriteByte('"')
	}
	d.b.WriteByte('>')
}

// escape writes a text or the value of an attribute.
func (d *Writer) escape(text string) {
	_ = xml.EscapeText(d.b, []byte(text)) // d.b keeps the error
}
