package component

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"archivist/pkg/events/event"
	"archivist/pkg/formats/premis"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table/tabletest"
)

const delivery = "item:B400022028241-RT1"

// line is a small assembly line: two components that look at what was imported.
var line = []Definition{
	{Name: "structure", Event: "Structure_Checked", PastSuccess: []string{"Data_Received"},
		Future: []string{"Structure_Checked"}, Runnable: Runnable{Function: "x"}},
	{Name: "early", Event: "Early", PastSuccess: []string{"Event_0"}, Future: []string{"Early"},
		Runnable: Runnable{Function: "x"}},
}

// withDelivery is a store with a line and a custom item.
func withDelivery(t *testing.T) *Store {
	s := newStore(t)
	define(t, s, line...)
	made(t, s, delivery)
	return s
}

func made(t *testing.T, s *Store, id string) {
	t.Helper()
	_, err := s.change(t.Context(), id, func(c *change) error {
		return c.append("item.create", "", "items", By{Actor: "eva"}, Shape{Types: []string{"delivery"}})
	})
	if err != nil {
		t.Fatal(err)
	}
}

func newspaper(t *testing.T) []byte {
	t.Helper()
	doc, err := os.ReadFile("../../formats/premis/testdata/newspaper.xml")
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// happened is an event of a document.
func happened(id, kind, outcome string, at int64) premis.Event {
	return premis.Event{ID: premis.Identifier{Type: "UUID", Value: id}, Type: kind, Time: time.UnixMilli(at),
		Outcome: outcome}
}

// documentOf is a document of events.
func documentOf(events ...premis.Event) []byte {
	var doc bytes.Buffer
	w := premis.New(&doc)
	for _, e := range events {
		w.Event(e)
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return doc.Bytes()
}

func imported(t *testing.T, s *Store, doc []byte, o ImportOptions) Import {
	t.Helper()
	out, err := s.Import(t.Context(), delivery, bytes.NewReader(doc), o, By{Actor: "eva", Reason: "migration"})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// counts are the lengths of a result's lists.
func counts(i Import) string {
	return fmt.Sprintf("imported %d, present %d, refused %d", len(i.Imported), len(i.Present), len(i.Refused))
}

// rowOf is the item's row.
func rowOf(t *testing.T, s *Store) *itemRow {
	t.Helper()
	row, err := s.row(t.Context(), delivery)
	if err != nil {
		t.Fatal(err)
	}
	return row
}

// history are the own events of the item: type, name, identifier if it was imported, outcome.
func history(t *testing.T, s *Store) (all []string) {
	t.Helper()
	err := s.events(t.Context(), itemSubject(delivery), 0, rowOf(t, s).it.Version, func(row *event.Row) error {
		var d Registered
		if row.Type == "item.event" {
			e, err := row.Envelope()
			if err == nil {
				d, err = detail[Registered](&Item{}, e)
			}
			if err != nil {
				t.Error(err)
			}
		}
		text := row.Type + " " + d.Event + " " + row.Outcome
		if d.Imported != nil {
			text += " " + d.Imported.ID
		}
		all = append(all, text)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestImportNewspaper: each event of the document is an event of the item, in one transaction, with
// what the document says of it. Components follow from them at once. Again, nothing changes.
func TestImportNewspaper(t *testing.T) {
	s := withDelivery(t)
	got := imported(t, s, newspaper(t), ImportOptions{})
	const uuid = "6a1b8f0e-5b0c-4c59-8f0b-5a3f2d1c000"
	want := []ImportedEvent{{premis.Identifier{Type: "UUID", Value: uuid + "1"}, "Data_Received"},
		{premis.Identifier{Type: "UUID", Value: uuid + "2"}, "Structure_Checked"}}
	if !reflect.DeepEqual(got, Import{Item: delivery, Imported: want}) {
		t.Errorf("got %+v", got)
	}
	row := rowOf(t, s)
	m := row.it.Marks
	if m["Data_Received"].Outcome != event.Success || m["Structure_Checked"].Outcome != event.Failure {
		t.Errorf("marks %+v", m)
	}
	if classOf(row.Places["structure"]) != Failed {
		t.Errorf("places %v", row.Places)
	}

	var e event.Row
	if err := s.Table.Get(t.Context(), event.Key(itemSubject(delivery), 3), &e); err != nil {
		t.Fatal(err)
	}
	var d Registered
	if err := json.Unmarshal([]byte(e.Detail), &d); err != nil {
		t.Fatal(err)
	}
	wantDetail := Registered{Event: "Structure_Checked", BasedOn: SeenVersions{Item: 2}, Reason: "migration",
		Imported: &Imported{IDType: "UUID", ID: uuid + "2", Type: "Structure_Checked",
			Time: "2013-10-25T14:11:27.513+02:00", At: 1382703087513,
			Detail: "The structure was compared with the specification.",
			Note: "<result>\n  <failure filereference=\"B400022028241-RT1/checksums.txt\" type=\"structure\"/>\n" +
				"</result>",
			Agents: []Agent{{IDType: "local", ID: "BatchStructureChecker-1.4", Role: "executing program",
				Name: "BatchStructureChecker", Type: "software"}}}}
	if !reflect.DeepEqual(d, wantDetail) || e.Actor != "eva" || e.Outcome != event.Failure || e.Component != importer {
		t.Errorf("got %+v %+v of %+v", d, d.Imported, e)
	}

	again := imported(t, s, newspaper(t), ImportOptions{})
	if !reflect.DeepEqual(again, Import{Item: delivery, Present: want}) {
		t.Errorf("again: %+v", again)
	}
	if after := rowOf(t, s); after.Rev != row.Rev || after.Text != row.Text {
		t.Errorf("the second import changed the item: rev %d, was %d", after.Rev, row.Rev)
	}
}

// TestImportRefusals: an event that cannot be imported refuses the whole document, with its identifier
// and the reason. With Skip the others are imported.
func TestImportRefusals(t *testing.T) {
	s := withDelivery(t)
	long := happened("long", "Long", "success", 5)
	long.Detail = strings.Repeat("ä", 31<<10)
	doc := documentOf(
		happened("good", "fixity  check.md5", "warning", 2),
		happened("slash", "a/b", "success", 1),
		happened("none", "Quiet", "", 1),
		happened("strange", "Odd", "maybe", 1),
		happened("old", "Old", "success", -1),
		happened("twice", "Twice", "success", 1), happened("twice", "Twice", "fail", 1),
		happened("same", "Same", "fail", 3), happened("same", "Same", "fail", 3),
		premis.Event{ID: premis.Identifier{Type: IDType, Value: "r"}, Type: RevokeType, Detail: "all"},
		long)
	before := rowOf(t, s)
	got := imported(t, s, doc, ImportOptions{})
	if counts(got) != "imported 0, present 0, refused 7" {
		t.Errorf("%s: %v", counts(got), got.Refused)
	}
	reasons := map[string]string{
		"slash": `its eventType "a/b" cannot be the name of an event here`, "none": "it states no outcome",
		"strange": `the event in line`, "old": "before 1970", "r": "does not say which",
		"twice": "another event of the document has the same identifier", "long": "at most 61440 are kept",
	}
	for _, r := range got.Refused {
		if want := reasons[r.ID.Value]; want == "" || !strings.Contains(r.Reason, want) {
			t.Errorf("%s: %s; want %q", r.ID.Value, r.Reason, want)
		}
	}
	if rowOf(t, s).Rev != before.Rev {
		t.Error("a document that was refused changed the item")
	}

	got = imported(t, s, doc, ImportOptions{Skip: true, Try: true})
	if counts(got) != "imported 3, present 0, refused 7" || rowOf(t, s).Rev != before.Rev {
		t.Errorf("tried: %s: %v", counts(got), got.Imported)
	}
	got = imported(t, s, doc, ImportOptions{Skip: true})
	if counts(got) != "imported 3, present 0, refused 7" {
		t.Errorf("%s: %v", counts(got), got.Imported)
	}
	want := []string{"item.create  success", "item.event Twice success twice",
		"item.event fixity_check_md5 success good", "item.event Same failure same"}
	if h := history(t, s); !reflect.DeepEqual(h, want) {
		t.Errorf("got %q", h)
	}

	// The same identifier with another content.
	got = imported(t, s, documentOf(happened("same", "Same", "success", 3)), ImportOptions{})
	if counts(got) != "imported 0, present 0, refused 1" ||
		!strings.Contains(got.Refused[0].Reason, "the item has another event with this identifier: Same, failure") {
		t.Errorf("%+v", got)
	}
}

// TestImportErrors: what is wrong with the whole.
func TestImportErrors(t *testing.T) {
	s := withDelivery(t)
	var many []premis.Event
	for i := range MaxEventNames + 1 {
		many = append(many, happened(fmt.Sprint(i), fmt.Sprint("Name_", i), "success", 1))
	}
	for _, c := range []struct {
		item, doc string
		kind      fault.Kind
		want      string
	}{
		{"item:none", string(newspaper(t)), fault.NotFound, "there is no item item:none"},
		{"thing:none", string(newspaper(t)), fault.Invalid, "expected object:ARK"},
		{delivery, "<a>", fault.Invalid, "premis: line 1: the root a is of the namespace"},
		{delivery, string(documentOf()), fault.Invalid, "the document has no events"},
		{delivery, string(documentOf(many...)), fault.Invalid, "would have 101 names; at most 100"},
	} {
		_, err := s.Import(t.Context(), c.item, strings.NewReader(c.doc), ImportOptions{}, By{Reason: "x"})
		if !fault.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v", c.want, err)
		}
	}
	_, err := s.change(t.Context(), delivery, func(c *change) error {
		return c.append("item.forget", "", "items", By{}, struct{}{})
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Import(t.Context(), delivery, bytes.NewReader(newspaper(t)), ImportOptions{}, By{Reason: "x"})
	if !fault.Is(err, fault.NotFound) || !strings.Contains(err.Error(), "was forgotten") {
		t.Errorf("a forgotten item: %v", err)
	}
	_, err = s.Import(t.Context(), delivery, bytes.NewReader(newspaper(t)), ImportOptions{}, By{})
	if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "reason") {
		t.Errorf("without a reason: %v", err)
	}
}

// manyEvents are more than one transaction holds, with one of an earlier name at the end.
func manyEvents() []byte {
	var all []premis.Event
	for i := range 2*maxAtOnce + 5 {
		all = append(all, happened(fmt.Sprint("id-", i), fmt.Sprint("Event_", i%7), "success", int64(1000+i)))
	}
	all = append(all, happened("last", "Event_0", "fail", 2000))
	return documentOf(all...)
}

// watched is a store whose every call goes through do.
func watched(t *testing.T, fake *tabletest.Fake, name string, do func(op string, call func() error) error) *Store {
	s := newStore(t)
	n := 0
	s.NewID = func() string { n++; return fmt.Sprintf("%s%04d", name, n) }
	s.Table = tabletest.Through(fake, do)
	return s
}

func through(_ string, call func() error) error { return call() }

// TestImportStopsWork: while a part of a long document is recorded, no component can work on the item;
// after the last event it can. A person's stop remains.
func TestImportStopsWork(t *testing.T) {
	for _, stopped := range []bool{false, true} {
		fake, writes := tabletest.New(), 0
		plain := watched(t, fake, "plain", through)
		s := watched(t, fake, "import", func(op string, call func() error) error {
			err := call()
			if op == "TransactWriteItems" {
				writes++
				if p := rowOf(t, plain).Places["early"]; classOf(p) == Ready || classOf(p) == Running {
					t.Errorf("after write %d the item is at %q", writes, p)
				}
			}
			return err
		})
		define(t, plain, line...)
		made(t, plain, delivery)
		if stopped {
			if _, err := plain.Stop(t.Context(), delivery, By{Actor: "eva", Reason: "x"}); err != nil {
				t.Fatal(err)
			}
		}
		if got := imported(t, s, manyEvents(), ImportOptions{}); counts(got) != "imported 86, present 0, refused 0" {
			t.Errorf("%s: %v", counts(got), got.Refused)
		}
		if writes != 3 {
			t.Errorf("%d transactions, expected 3", writes)
		}
		if _, is := rowOf(t, s).it.Marks[Stopped]; is != stopped {
			t.Errorf("stopped before: %t, after: %t", stopped, is)
		}
		if got := imported(t, s, manyEvents(), ImportOptions{}); counts(got) != "imported 0, present 86, refused 0" {
			t.Errorf("again: %s", counts(got))
		}
	}
}

// TestImportCrash: an import that dies before or after any call, and is repeated, gives the item each
// event once, in order, and lets the work go on.
func TestImportCrash(t *testing.T) {
	doc := manyEvents()
	tabletest.Crashes(t, 5, func(t *testing.T, m *tabletest.Mortal) {
		fake := tabletest.New()
		plain := watched(t, fake, "plain", through)
		define(t, plain, line...)
		made(t, plain, delivery)
		dying := watched(t, fake, "dying", m.Do)
		_, err := dying.Import(t.Context(), delivery, bytes.NewReader(doc), ImportOptions{}, By{Reason: "x"})
		if m.Dead() != (err != nil) {
			t.Errorf("died %v, %v", m.Dead(), err)
		}
		got := imported(t, plain, doc, ImportOptions{})
		if len(got.Imported)+len(got.Present) != 86 || got.Refused != nil {
			t.Error(counts(got))
		}
		seen := map[string]int{}
		for _, text := range history(t, plain) {
			seen[text]++
		}
		for i := range 2*maxAtOnce + 5 {
			if text := fmt.Sprintf("item.event Event_%d success id-%d", i%7, i); seen[text] != 1 {
				t.Errorf("%s: %d times", text, seen[text])
			}
		}
		it := rowOf(t, plain).it
		if _, is := it.Marks[Stopped]; is || it.Marks["Event_0"].Outcome != event.Failure {
			t.Errorf("marks %+v", it.Marks)
		}
	})
}

// TestImportTwiceAtOnce: two imports of one document at the same time record each event once.
func TestImportTwiceAtOnce(t *testing.T) {
	fake, first := tabletest.New(), true
	other := watched(t, fake, "other", through)
	define(t, other, line...)
	made(t, other, delivery)
	s := watched(t, fake, "import", func(op string, call func() error) error {
		if op == "TransactWriteItems" && first {
			first = false
			imported(t, other, newspaper(t), ImportOptions{})
		}
		return call()
	})
	if got := imported(t, s, newspaper(t), ImportOptions{}); counts(got) != "imported 0, present 2, refused 0" {
		t.Error(counts(got))
	}
	if h := history(t, s); len(h) != 3 {
		t.Errorf("got %q", h)
	}
}

// TestImportRevocation: an event that was revoked in the archive that wrote the document does not count
// here.
func TestImportRevocation(t *testing.T) {
	s := withDelivery(t)
	revoke := premis.Event{ID: premis.Identifier{Type: IDType, Value: "e3"}, Type: RevokeType, Time: time.UnixMilli(30),
		Detail: Revocation(Revoked{Events: []string{"A", "B_2"}, Reason: "wrong file. Again."}), Outcome: "success"}
	doc := documentOf(happened("a", "A", "fail", 10), happened("b", "B_2", "fail", 20), revoke,
		happened("c", "A", "success", 40))
	for _, want := range []string{"imported 4, present 0, refused 0", "imported 0, present 4, refused 0"} {
		if got := imported(t, s, doc, ImportOptions{}); counts(got) != want {
			t.Errorf("%s: %v", counts(got), got.Refused)
		}
	}
	m := rowOf(t, s).it.Marks
	if _, is := m["B_2"]; is || m["A"].Outcome != event.Success {
		t.Errorf("marks %+v", m)
	}
}

// TestImportFits: with as many components as there can be, all of which the first event moves to another
// place, a transaction has room for its events.
func TestImportFits(t *testing.T) {
	s := newStore(t)
	var all []Definition
	for i := range MaxComponents {
		all = append(all, line[0])
		all[i].Name, all[i].Event = fmt.Sprint("c", i), fmt.Sprint("Done_", i)
		all[i].PastSuccess, all[i].Future = []string{"Begun"}, []string{all[i].Event}
	}
	define(t, s, all...)
	made(t, s, delivery)
	imported(t, s, documentOf(happened("begun", "Begun", "success", 1)), ImportOptions{})
	if n := len(rowOf(t, s).Places); n != MaxComponents {
		t.Errorf("the item has %d places", n)
	}
	events := []premis.Event{happened("again", "Begun", "fail", 2)}
	for i := range 2 * maxAtOnce {
		events = append(events, happened(fmt.Sprint(i), "More", "success", int64(3+i)))
	}
	if got := imported(t, s, documentOf(events...), ImportOptions{}); len(got.Imported) != len(events) {
		t.Errorf("got %s", counts(got))
	}
	if p := rowOf(t, s).Places; len(p) > 0 {
		t.Errorf("places: %v", p)
	}
}

// TestImportClaimed: events of a component are not imported while it works on the item; its result would
// be recorded after them.
func TestImportClaimed(t *testing.T) {
	s := withDelivery(t)
	claim := func(until int64) {
		_, err := s.change(t.Context(), delivery, func(c *change) error {
			c.item().Claims = map[string]Claim{"structure": {Run: "r1", ID: "c1", Until: until}}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	now := millis(s.Now())
	claim(now + 1)
	_, err := s.Import(t.Context(), delivery, bytes.NewReader(newspaper(t)), ImportOptions{}, By{Reason: "x"})
	if !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "component structure is working on") {
		t.Errorf("got %v", err)
	}
	if got := imported(t, s, documentOf(happened("a", "A", "success", 1)), ImportOptions{}); len(got.Imported) != 1 {
		t.Errorf("an event of no component: %s", counts(got))
	}
	claim(now)
	if got := imported(t, s, newspaper(t), ImportOptions{}); len(got.Imported) != 2 {
		t.Errorf("after the lease: %s", counts(got))
	}
}

// TestImportZone: times without a zone need one.
func TestImportZone(t *testing.T) {
	s := withDelivery(t)
	doc := bytes.ReplaceAll(newspaper(t), []byte("+02:00"), nil)
	got := imported(t, s, doc, ImportOptions{})
	if counts(got) != "imported 0, present 0, refused 2" ||
		!strings.Contains(got.Refused[0].Reason, "has no time zone") {
		t.Errorf("%+v", got)
	}
	zone := time.FixedZone("CEST", 2*3600)
	if got := imported(t, s, doc, ImportOptions{Zone: zone}); counts(got) != "imported 2, present 0, refused 0" {
		t.Errorf("%+v", got)
	}
	if got := imported(t, s, newspaper(t), ImportOptions{}); counts(got) != "imported 0, present 2, refused 0" {
		t.Errorf("the same times with their zone: %s: %v", counts(got), got.Refused)
	}
}
