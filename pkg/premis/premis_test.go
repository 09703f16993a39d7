package premis

import (
	"bytes"
	"encoding/xml"
	"strings"
	"testing"
	"time"
)

// The end-to-end tests hold stored documents against the published schema.
func TestWrite(t *testing.T) {
	software, person := Identifier{"local", "archivist"}, Identifier{"local", "me & you"}
	d := Document{Object: Identifier{"ARK", "ark:/99999/fk4tq65d6k"}, Alternatives: []Identifier{{"local", "a<b"}},
		Events: []Event{{ID: Identifier{"local", "1"}, Type: "transfer", Time: time.UnixMilli(0), Detail: "d", Outcome: "success", Agents: []Identifier{software, person}},
			{ID: Identifier{"local", "2"}, Type: "fixity check", Time: time.UnixMilli(1000), Detail: "d", Outcome: "warning", Note: "n", Agents: []Identifier{software}}},
		Agents: []Agent{{ID: software, Name: "Archivist", Type: "software", Version: "1"}, {ID: person, Name: "Me", Type: "person"}}}
	var b bytes.Buffer
	if err := d.Write(&b); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for _, want := range []string{
		"<objectIdentifierValue>a&lt;b</objectIdentifierValue>", "<eventDateTime>1970-01-01T00:00:01Z</eventDateTime>",
		"<linkingAgentIdentifierValue>me &amp; you</linkingAgentIdentifierValue>\n      <linkingAgentRole>authorizer</linkingAgentRole>",
		"<eventOutcomeDetailNote>n</eventOutcomeDetailNote>", "<agentVersion>1</agentVersion>",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in\n%s", want, text)
		}
	}
	if strings.Count(text, "eventOutcomeDetail>") != 2 {
		t.Error("an outcome without a note has a detail")
	}
	var again struct {
		XMLName xml.Name `xml:"http://www.loc.gov/premis/v3 premis"`
		Events  []struct {
			Type string `xml:"eventType"`
		} `xml:"event"`
	}
	if err := xml.Unmarshal(b.Bytes(), &again); err != nil || len(again.Events) != 2 || again.Events[1].Type != "fixity check" {
		t.Errorf("read again: %+v, %v", again, err)
	}
}
