package premis

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

func id(value string) Identifier { return Identifier{"archivist", value} }

// write writes an entity, a representation and n files of it, with one event.
func write(t *testing.T, w io.Writer, n int) {
	d := New(w)
	entity := Identifier{"ARK", "ark:/99999/fk4tq65d6k"}
	includes := func(yield func(Identifier, error) bool) {
		for i := range n {
			if !yield(id(fmt.Sprint("file ", i)), nil) {
				return
			}
		}
	}
	objects := []Object{
		{Category: Entity, IDs: []Identifier{entity, {"local", "a<b"}}},
		{Category: Representation, IDs: []Identifier{id("v1")},
			Relations: []Relation{{Represents, To(entity)}, {Includes, includes}}},
	}
	for _, o := range objects {
		if err := d.Object(o); err != nil {
			t.Fatal(err)
		}
	}
	for i := range n {
		err := d.Object(Object{Category: File, IDs: []Identifier{id(fmt.Sprint("file ", i))}, Size: 7,
			Format: "text/plain", FormatNote: "n", OriginalName: "a & b", Fixity: []Fixity{
				{"sha512", strings.Repeat("a", 128), "archivist"},
				{"md5", strings.Repeat("b", 32), "depositor"},
			}})
		if err != nil {
			t.Fatal(err)
		}
	}
	d.Event(Event{ID: id("1"), Type: "fixity check", Time: time.UnixMilli(1000), Detail: "d", Outcome: Warning,
		Note: "n", Agents: []Link{{id("software"), ExecutingProgram}}, Objects: []Identifier{id("v1")}})
	d.Event(Event{ID: id("2"), Type: "our own", Time: time.UnixMilli(2000), Outcome: Success})
	d.Agent(Agent{ID: id("software"), Name: "Archivist", Type: Software, Version: "1"})
	d.Agent(Agent{ID: id("somebody"), Name: "Me & you", Note: "who it is, is not known"})
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}

// The end-to-end tests validate stored documents against the published schema.
func TestWrite(t *testing.T) {
	var b bytes.Buffer
	write(t, &b, 2)
	text := strings.ReplaceAll(b.String(), "\n", "")
	const terms = "http://id.loc.gov/vocabulary/preservation/"
	for _, want := range []string{
		"<objectIdentifierValue>a&lt;b</objectIdentifierValue>",
		"<eventDateTime>1970-01-01T00:00:01Z</eventDateTime>",
		"<originalName>a &amp; b</originalName>",
		`<messageDigestAlgorithm valueURI="` + terms + `cryptographicHashFunctions/sha512">SHA-512<`,
		`<linkingAgentRole authority="eventRelatedAgentRole" authorityURI="` + terms + `eventRelatedAgentRole" ` +
			`valueURI="` + terms + `eventRelatedAgentRole/exe">executing program<`,
		"<eventType>our own</eventType>",
		"<agentVersion>1</agentVersion></agent>",
		"</agentName><agentNote>who it is, is not known</agentNote></agent></premis>",
		"<eventOutcomeDetail><eventOutcomeDetailNote>n</eventOutcomeDetailNote></eventOutcomeDetail>",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in\n%s", want, text)
		}
	}
	var again struct {
		XMLName xml.Name `xml:"http://www.loc.gov/premis/v3 premis"`
		Objects []struct {
			Type     string   `xml:"http://www.w3.org/2001/XMLSchema-instance type,attr"`
			Includes []string `xml:"relationship>relatedObjectIdentifier>relatedObjectIdentifierValue"`
		} `xml:"object"`
		Events []struct{} `xml:"event"`
		Agents []struct{} `xml:"agent"`
	}
	if err := xml.Unmarshal(b.Bytes(), &again); err != nil {
		t.Fatal(err)
	}
	o := again.Objects
	if len(o) != 4 || o[1].Type != "representation" || len(o[1].Includes) != 3 || o[3].Type != "file" {
		t.Errorf("the objects are read again as %+v", o)
	}
	if len(again.Events) != 2 || len(again.Agents) != 2 {
		t.Errorf("%d events and %d agents are read again, expected 2 and 2", len(again.Events), len(again.Agents))
	}
}

// counter counts what is written.
type counter int

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// TestStream: the document is not kept in memory until the end: it can
// have very many files.
func TestStream(t *testing.T) {
	var out counter
	d, name := New(&out), strings.Repeat("x", 1000)
	for range 1000 {
		if err := d.Object(Object{Category: File, IDs: []Identifier{id(name)}}); err != nil {
			t.Fatal(err)
		}
	}
	if out < 900_000 {
		t.Errorf("%d bytes were written of over 1,000,000", out)
	}
}

func TestCarries(t *testing.T) {
	for text, want := range map[string]string{
		"plain\r\n\té\U0010ffff\u0085": "",
		"\x00":                         "U+0000", "a\ufffe": "U+FFFE", "\ufffd": "lost before", "\xff": "is not UTF-8",
	} {
		if got := Carries(text); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
