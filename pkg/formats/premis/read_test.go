package premis

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// all are the entries of a document, its refusals, and the error at its end.
func all(in io.Reader, zone *time.Location) (entries []Entry, refused []*Refusal, err error) {
	for entry, e := range Read(in, zone) {
		var r *Refusal
		switch {
		case errors.As(e, &r):
			refused = append(refused, r)
		case e != nil:
			err = e
		default:
			entries = append(entries, entry)
		}
	}
	return entries, refused, err
}

func sample(t testing.TB, name string) []byte {
	t.Helper()
	doc, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// read reads a document without refusals.
func read(t *testing.T, doc []byte) []Entry {
	t.Helper()
	entries, refused, err := all(bytes.NewReader(doc), nil)
	if err != nil || refused != nil {
		t.Fatalf("%v, %v", refused, err)
	}
	return entries
}

// differ shows entries that differ from those expected, as JSON.
func differ(want, got []Entry) string {
	w, _ := json.Marshal(want)
	g, _ := json.Marshal(got)
	if bytes.Equal(w, g) {
		return ""
	}
	return "want " + string(w) + "\n got " + string(g)
}

func at(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return t
}

// TestReadNewspaper: a document of PREMIS 2.2 of the kind that the digitisation of newspapers kept
// for each batch.
func TestReadNewspaper(t *testing.T) {
	batch := []Identifier{{"local", "B400022028241-RT1"}}
	want := []Entry{
		{Event: &Event{ID: Identifier{"UUID", "6a1b8f0e-5b0c-4c59-8f0b-5a3f2d1c0001"}, Type: "Data_Received",
			Time: at("2013-10-25T13:06:00+02:00"), Written: "2013-10-25T13:06:00.000+02:00",
			Detail: "The batch was received by FTP.", Outcome: Success,
			Agents: []Link{{Agent: Identifier{"local", "BatchTrigger-1.4"}}}, Objects: batch}},
		{Event: &Event{ID: Identifier{"UUID", "6a1b8f0e-5b0c-4c59-8f0b-5a3f2d1c0002"}, Type: "Structure_Checked",
			Time: at("2013-10-25T14:11:27.513+02:00"), Written: "2013-10-25T14:11:27.513+02:00",
			Detail: "The structure was compared with the specification.", Outcome: Failure,
			Note: "<result>\n  <failure filereference=\"B400022028241-RT1/checksums.txt\" type=\"structure\"/>\n" +
				"</result>",
			Agents: []Link{{Identifier{"local", "BatchStructureChecker-1.4"}, ExecutingProgram}}, Objects: batch}},
		{Agent: &Agent{ID: Identifier{"local", "BatchTrigger-1.4"}, Name: "BatchTrigger", Type: Software}},
		{Agent: &Agent{ID: Identifier{"local", "BatchStructureChecker-1.4"}, Name: "BatchStructureChecker",
			Type: Software}},
	}
	doc := string(sample(t, "newspaper.xml"))
	for name, text := range map[string]string{
		"prefixed":  doc,
		"default":   strings.NewReplacer("premis:", "", "xmlns:premis", "xmlns").Replace(doc),
		"another":   strings.NewReplacer("premis:", "p:", "xmlns:premis", "xmlns:p").Replace(doc) + "<!-- end -->",
		"with mark": "\ufeff" + doc,
		"2.1":       strings.Replace(doc, `version="2.2"`, `version="2.1"`, 1),
	} {
		if diff := differ(want, read(t, []byte(text))); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestReadVersion3: terms are read by their URIs, texts that can be repeated are joined, extensions
// are left out, whatever they have inside.
func TestReadVersion3(t *testing.T) {
	checker := Identifier{"UUID", "a-1"}
	want := []Entry{
		{Event: &Event{ID: Identifier{"UUID", "e-1"}, Type: "fixity check", Time: at("2020-02-29T23:59:59.999Z"),
			Written: "2020-02-29T23:59:59.9999Z", Detail: "first\nsecond", Outcome: Failure, Note: "a\nb",
			Agents:  []Link{{checker, ExecutingProgram}, {checker, "validator"}},
			Objects: []Identifier{{"local", "B400022028241-RT1"}}}},
		{Event: &Event{ID: Identifier{"UUID", "e-2"}, Type: "Registered", Time: at("2020-03-01T00:00:00Z"),
			Written: "2020-03-01T00:00:00Z"}},
		{Agent: &Agent{ID: checker, Also: []Identifier{{"local", "checker"}}, Name: "Checker", Type: Software,
			Version: "2.1", Note: "n"}},
	}
	if diff := differ(want, read(t, sample(t, "version3.xml"))); diff != "" {
		t.Error(diff)
	}
}

// TestReadOwn: what this package writes is read again as it was.
func TestReadOwn(t *testing.T) {
	var doc bytes.Buffer
	write(t, &doc, 2)
	want := []Entry{
		{Event: &Event{ID: id("1"), Type: "fixity check", Time: time.UnixMilli(1000).UTC(),
			Written: "1970-01-01T00:00:01Z", Detail: "d", Outcome: Warning, Note: "n",
			Agents: []Link{{id("software"), ExecutingProgram}}, Objects: []Identifier{id("v1")}}},
		{Event: &Event{ID: id("2"), Type: "our own", Time: time.UnixMilli(2000).UTC(),
			Written: "1970-01-01T00:00:02Z", Outcome: Success}},
		{Agent: &Agent{ID: id("software"), Name: "Archivist", Type: Software, Version: "1"}},
		{Agent: &Agent{ID: id("somebody"), Name: "Me & you", Note: "who it is, is not known"}},
	}
	if diff := differ(want, read(t, doc.Bytes())); diff != "" {
		t.Error(diff)
	}
}

// eventIn is a document with one event, made of parts.
func eventIn(parts ...string) string {
	return `<event xmlns="http://www.loc.gov/premis/v3" xmlns:x="y">` + strings.Join(parts, "") + "</event>"
}

// Parts of an event.
const (
	eventID   = "<eventIdentifier><eventIdentifierType>T</eventIdentifierType>" + idValue + "</eventIdentifier>"
	idValue   = "<eventIdentifierValue>V</eventIdentifierValue>"
	eventType = "<eventType>a</eventType>"
	eventTime = "<eventDateTime>2013-10-25T13:06:00Z</eventDateTime>"
)

func outcomeOf(text string) string {
	return "<eventOutcomeInformation><eventOutcome>" + text + "</eventOutcome></eventOutcomeInformation>"
}

// TestRefusals: an event that cannot be read is refused with its identifier, its line and the reason,
// and what follows it is read.
func TestRefusals(t *testing.T) {
	const uri = `<eventOutcome valueURI="http://id.loc.gov/vocabulary/preservation/eventOutcome/`
	with := func(uri, text string) string {
		return "<eventOutcomeInformation>" + uri + `">` + text + "</eventOutcome></eventOutcomeInformation>"
	}
	for _, c := range []struct{ event, want string }{
		{eventIn(eventType, eventTime), "the event without identifier in line 2 has no eventIdentifier"},
		{eventIn(eventID, eventID, eventType, eventTime), "the event T V in line 2 has 2 eventIdentifiers"},
		{eventIn("<eventIdentifier>" + idValue + "</eventIdentifier>"), "has no eventIdentifierType"},
		{eventIn(eventID, eventTime), "the event T V in line 2 has no eventType"},
		{eventIn(eventID, eventType, eventType, eventTime), "has 2 elements eventType"},
		{eventIn(eventID, "<eventType> </eventType>", eventTime), "has a eventType without text"},
		{eventIn(eventID, eventType), "has no eventDateTime"},
		{eventIn(eventID, eventType, eventTime, "<eventDetail>d</eventDetail>"),
			"has the element eventDetail in event, where PREMIS 3 does not have it"},
		{eventIn(eventID, eventType, eventTime, "<x:eventDetailInformation/>"),
			"has the element eventDetailInformation in event"},
		{eventIn(eventID, eventType, eventTime, "text"), "has text between the elements of event"},
		{eventIn(eventID, "<eventType>a<b/></eventType>", eventTime), "has the element b in eventType"},
		{eventIn(eventID, eventType, eventTime, outcomeOf("maybe")), `has the eventOutcome "maybe"; known are fail,`},
		{eventIn(eventID, eventType, eventTime, outcomeOf("")), `has the eventOutcome ""`},
		{eventIn(eventID, eventType, eventTime, outcomeOf("fail"), outcomeOf("success")),
			"has different outcomes: fail and success"},
		{eventIn(eventID, eventType, eventTime, with(uri+"suc", "failed")), `has the eventOutcome "failed" with the URI`},
		{eventIn(eventID, eventType, eventTime, with(uri+"new", "success")), `eventOutcome/new`},
		{eventIn(eventID, eventType, eventTime,
			"<linkingAgentIdentifier><linkingAgentRole>r</linkingAgentRole></linkingAgentIdentifier>"),
			"has no linkingAgentIdentifierType"},
		{`<agent xmlns="http://www.loc.gov/premis/v3"><agentName>n</agentName></agent>`,
			"the agent without identifier in line 2 has no agentIdentifier"},
	} {
		doc := `<premis xmlns="http://www.loc.gov/premis/v3" version="3.0">` + "\n" + c.event +
			eventIn(eventID, eventType, eventTime) + "</premis>"
		entries, refused, err := all(strings.NewReader(doc), nil)
		if err != nil || len(refused) != 1 || len(entries) != 1 || !strings.Contains(refused[0].Error(), c.want) {
			t.Errorf("%s: got %v, %v, %v", c.want, entries, refused, err)
		}
	}
}

// TestOutcomes: the words of other archives, and terms of the vocabulary by URI.
func TestOutcomes(t *testing.T) {
	const uri = "id.loc.gov/vocabulary/preservation/eventOutcome/"
	for text, want := range map[string]string{
		"success": Success, " SUCCESS\n": Success, "Pass": Success, "succeeded": Success,
		"fail": Failure, "FAILURE": Failure, "failed": Failure, "Warning": Warning,
		"http://" + uri + "suc": Success, "https://" + uri + "fai": Failure, "http://" + uri + "war": Warning,
	} {
		got := read(t, []byte(eventIn(eventID, eventType, eventTime, outcomeOf(text))))
		if len(got) != 1 || got[0].Event.Outcome != want {
			t.Errorf("%q: got %+v, want %s", text, got, want)
		}
	}
	if got := read(t, []byte(eventIn(eventID, eventType, eventTime))); got[0].Event.Outcome != "" {
		t.Errorf("an event without outcome has %q", got[0].Event.Outcome)
	}
}

// TestMoments: which dates and times are read, and why others are not.
func TestMoments(t *testing.T) {
	zone := time.FixedZone("CET", 3600)
	for _, c := range []struct{ text, want, zoned string }{
		{"2013-10-25T13:06:00.000+02:00", "2013-10-25T11:06:00Z", ""},
		{"2013-10-25T13:06:00.1239Z", "2013-10-25T13:06:00.123Z", ""},
		{"2013-10-25T13:06:00-11:30", "2013-10-26T00:36:00Z", ""},
		{"2013-10-25Z", "2013-10-25T00:00:00Z", ""},
		{"2013-10-25+02:00", "2013-10-24T22:00:00Z", ""},
		{"2013-10-25T13:06:00", "has no time zone", "2013-10-25T12:06:00Z"},
		{"2013-10-25T13:06:00.5", "has no time zone", "2013-10-25T12:06:00.5Z"},
		{"20131025T130600", "has no time zone", "2013-10-25T12:06:00Z"},
		{"2013-10-25", "has no time zone", "2013-10-24T23:00:00Z"},
		{"20131025", "has no time zone", "2013-10-24T23:00:00Z"},
		{"2013", "names no day", "names no day"},
		{"2013-10", "names no day", "names no day"},
		{"201310", "names no day", "names no day"},
		{"20??", "is uncertain or approximate", "is uncertain or approximate"},
		{"2013-10-XX", "is uncertain or approximate", "is uncertain or approximate"},
		{"20131025~", "is uncertain or approximate", "is uncertain or approximate"},
		{"OPEN", "is open or unknown", "is open or unknown"},
		{"2013-10-25T13:06:00Z/2013-10-25T14:00:00Z", "2013-10-25T14:00:00Z", ""},
		{"2013-10-25T13:06:00Z/2013-10-25T12:00:00Z", "ends before it begins", ""},
		{"UNKNOWN/2013", "begins at a time that is open or unknown", ""},
		{"2013-10-25Z/OPEN", "ends at a time that is open or unknown", ""},
		{"2013-02-30T00:00:00Z", "is not a date and time", ""},
		{"25.10.2013", "is not a date and time", "is not a date and time"},
	} {
		for zone, want := range map[*time.Location]string{nil: c.want, zone: c.zoned} {
			if zone != nil && want == "" {
				continue
			}
			at, why := moment(c.text, zone)
			got := at.UTC().Format("2006-01-02T15:04:05.999Z07:00")
			if why != "" {
				got = why
			}
			if !strings.HasPrefix(got, want) {
				t.Errorf("%s in %v: got %q, want %q", c.text, zone, got, want)
			}
		}
	}
}

// TestBroken: a document that cannot be read ends with the reason and its line. What it had before
// that was given already.
func TestBroken(t *testing.T) {
	const begin = `<premis xmlns="http://www.loc.gov/premis/v3" version="3.0">`
	good := eventIn(eventID, eventType, eventTime)
	for _, c := range []struct {
		doc, want string
		entries   int
	}{
		{"", "line 1: it has no element", 0},
		{"no XML", "there is text outside", 0},
		{begin + "\n" + good, "line 2: XML syntax error on line 2: unexpected EOF", 1},
		{begin + good + "</p>", "element <premis> closed by </p>", 1},
		{begin + "</premis>" + begin + "</premis>", "there is a second root", 0},
		{begin + "text</premis>", "there is text outside of objects", 0},
		{begin + "<happening/></premis>", "PREMIS has no element happening", 0},
		{begin + `<event xmlns=""/></premis>`, "the element event is not of the namespace", 0},
		{`<premis version="3.0"></premis>`, `the root premis is of the namespace ""`, 0},
		{`<p:premis version="3.0"></p:premis>`, `the root premis is of the namespace "p"`, 0},
		{`<premis xmlns="http://www.loc.gov/standards/premis/v1"/>`, "PREMIS 2 is of info:lc/xmlns/premis-v2", 0},
		{`<premis xmlns="info:lc/xmlns/premis-v2" version="3.0"/>`, `the version is "3.0"; one of this`, 0},
		{`<premis xmlns="http://www.loc.gov/premis/v3"/>`, `the version is ""`, 0},
		{`<!DOCTYPE premis [<!ENTITY a "b">]>` + begin, "it has a document type declaration", 0},
		{begin + eventIn("&a;") + "</premis>", "invalid character entity &a;", 0},
		{`<?xml version="1.0" encoding="ISO-8859-1"?>` + begin, `the encoding is "ISO-8859-1"; save`, 0},
		{begin + "<object>\xff</object></premis>", "invalid UTF-8", 0},
		{begin + strings.Repeat("<object>", MaxDepth), "more than 64 elements are inside each other", 0},
		{begin + eventIn(strings.Repeat("<x:a>", MaxDepth)), "more than 64 elements are inside each other", 0},
		{begin + eventIn(strings.Repeat("<eventType>a</eventType>", MaxEntry/20)), "has more than 262144 bytes", 0},
		{begin + "<object a='" + strings.Repeat("a", MaxEntry+3*readAhead) + "'/>", "has more than 262144 bytes", 0},
		{begin + strings.Repeat(good, MaxEntries+1), "there are more than 10000 events", MaxEntries},
	} {
		entries, refused, err := all(strings.NewReader(c.doc), nil)
		if err == nil || !strings.Contains(err.Error(), c.want) || len(entries) != c.entries || refused != nil {
			t.Errorf("%s: got %d entries, %v, %v", c.want, len(entries), refused, err)
		}
	}
}

// repeated is a text n times, without keeping it.
type repeated struct {
	text string
	n    int
	rest string
}

func (r *repeated) Read(p []byte) (int, error) {
	if r.rest == "" {
		if r.n == 0 {
			return 0, io.EOF
		}
		r.n, r.rest = r.n-1, r.text
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// TestReadStream: a document of more than the limit is refused when that much was read, and needs
// little memory until then. One below the limit is read.
func TestReadStream(t *testing.T) {
	const begin = `<premis xmlns="http://www.loc.gov/premis/v3" version="3.0">`
	object := "<object><a>" + strings.Repeat("x", 1<<20-23) + "</a></object>"
	object = strings.ReplaceAll(object, strings.Repeat("x", 1000), strings.Repeat("x", 993)+"<b></b>")
	doc := func(n int) io.Reader {
		return io.MultiReader(strings.NewReader(begin), &repeated{text: object, n: n}, strings.NewReader("</premis>"))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, _, err := all(doc(10), nil); err != nil {
		t.Error(err)
	}
	runtime.ReadMemStats(&after)
	if got := int64(after.HeapSys) - int64(before.HeapSys); got > 16<<20 {
		t.Errorf("the heap grew by %d bytes", got)
	}
	if _, _, err := all(doc(70), nil); err == nil || !strings.Contains(err.Error(), "more than 67108864 bytes") {
		t.Errorf("a document above the limit: %v", err)
	}
}

// TestReadFails: what the source of a document says is kept.
func TestReadFails(t *testing.T) {
	broken := errors.New("the connection was lost")
	in := io.MultiReader(strings.NewReader(`<premis xmlns="http://www.loc.gov/premis/v3" version="3.0">`), fails{broken})
	if _, _, err := all(in, nil); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

type fails struct{ err error }

func (f fails) Read([]byte) (int, error) { return 0, f.err }

// FuzzRead: a document of any kind ends, with events that can be written and are read again as they
// were.
func FuzzRead(f *testing.F) {
	for _, name := range []string{"newspaper.xml", "version3.xml"} {
		f.Add(sample(f, name))
	}
	f.Add([]byte(eventIn(eventID, eventType, eventTime, outcomeOf("success"))))
	f.Fuzz(func(t *testing.T, doc []byte) {
		entries, refused, _ := all(bytes.NewReader(doc), time.UTC)
		for _, r := range refused {
			if r.Why == "" || r.Line < 1 {
				t.Errorf("a refusal says %v", r)
			}
		}
		var again bytes.Buffer
		w := New(&again)
		for _, e := range entries {
			if e.Event != nil {
				w.Event(*e.Event)
				e.Event.Time, e.Event.Written = e.Event.Time.UTC(), ""
			} else {
				w.Agent(*e.Agent)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		got, refused, err := all(&again, time.UTC)
		if err != nil || refused != nil {
			t.Fatalf("what was read and written cannot be read: %v, %v", refused, err)
		}
		for _, e := range got {
			if e.Event != nil {
				e.Event.Written = ""
			}
		}
		if diff := differ(entries, got); diff != "" {
			t.Error(diff)
		}
	})
}
