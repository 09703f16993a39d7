package histories_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"archivist/pkg/components/component"
	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/formats/premis"
	"archivist/pkg/kernel/table/tabletest"
)

// own are own events of an item, one of each type.
func own(t *testing.T, item string) (log []envelope.Event) {
	t.Helper()
	add := func(kind, outcome, actor string, detail any) {
		text, err := json.Marshal(detail)
		if err != nil {
			t.Fatal(err)
		}
		n := int64(len(log) + 1)
		log = append(log, envelope.Event{ID: fmt.Sprint("i", n), Version: n, Type: kind, Outcome: outcome, Detail: text,
			Time: 1_800_000_000_000 + n*1001, Subject: envelope.Ref{Type: event.Item.String(), ID: item},
			Context: envelope.Context{Actor: actor, Version: "v1.2.3"}})
	}
	add("item.create", "success", "eva", component.Shape{Types: []string{"delivery", "newspaper"}})
	add("item.event", "success", "eva", component.Registered{Event: "Received", Reason: "came by post"})
	add("component.ran", "failure", "", component.Ran{Component: "structure", Definition: 3,
		Event: "Structure_checked", Run: "r1", Started: 1_800_000_002_500, Duration: 503, Reason: "2 findings",
		Report: &component.Report{Total: 2,
			Entries: []component.Entry{{File: "a/b.tif", Type: "missing", Description: "listed, not there"}}}})
	add("item.revoke", "success", "eva",
		component.Revoked{Events: []string{"Structure_checked"}, Reason: "it was late"})
	add("item.prioritize", "success", "eva", component.Prioritized{Priority: 9})
	add("item.change", "success", "eva", component.Shape{Types: []string{"delivery"}})
	add("item.release", "success", "eva", component.Released{Component: "structure", Reason: "it hangs"})
	add("item.event", "success", "eva", component.Registered{Event: "Scanned", Reason: "migration",
		Imported: &component.Imported{IDType: "UUID", ID: "6a1b", Type: "Scanned again", At: 1_382_703_087_513,
			Time: "2013-10-25T14:11:27.513+02:00", Warned: true, Detail: "d <e>", Note: "n",
			Agents: []component.Agent{{IDType: "local", ID: "scanner-1", Role: "implementer", Name: "Scanner",
				Type: "software", Version: "1"}}}})
	add("component.ran", "success", "",
		component.Ran{Component: "structure", Definition: 4, Event: "Structure_checked"})
	add("item.forget", "success", "eva", component.Forgot{})
	log[8].Context.Version = "v1.1.0"
	return log
}

// TestItem: the whole history of a custom item, with one event of each type. The end-to-end tests
// validate the expected document against the published schema.
func TestItem(t *testing.T) {
	var doc bytes.Buffer
	const item = "item:delivery-17"
	if err := writer.Item(&doc, item, []string{item, "box 17"}, own(t, item)); err != nil {
		t.Fatal(err)
	}
	golden(t, "item.xml", doc.Bytes())
	agents := agentsIn(t, doc.Bytes())
	for event, links := range linksIn(t, doc.Bytes()) {
		for _, link := range links {
			if !agents[link] {
				t.Errorf("event %s names the agent %v, who is not in the document", event, link)
			}
		}
	}
}

// agentsIn are the identifiers of a document's agents, each of which must be there once.
func agentsIn(t *testing.T, doc []byte) map[premis.Identifier]bool {
	t.Helper()
	found := map[premis.Identifier]bool{}
	for entry, err := range premis.Read(bytes.NewReader(doc), nil) {
		if err != nil {
			t.Fatal(err)
		}
		if entry.Agent == nil {
			continue
		}
		if found[entry.Agent.ID] {
			t.Errorf("the agent %v is there twice", entry.Agent.ID)
		}
		found[entry.Agent.ID] = true
	}
	return found
}

// linksIn are the agents of each event of a document, by its identifier, which must be unique.
func linksIn(t *testing.T, doc []byte) map[string][]premis.Identifier {
	t.Helper()
	found := map[string][]premis.Identifier{}
	for entry, err := range premis.Read(bytes.NewReader(doc), nil) {
		if err != nil {
			t.Fatal(err)
		}
		if entry.Event == nil {
			continue
		}
		id := entry.Event.ID.Type + " " + entry.Event.ID.Value
		if _, twice := found[id]; twice {
			t.Errorf("the event %s is there twice", id)
		}
		found[id] = []premis.Identifier{}
		for _, link := range entry.Event.Agents {
			found[id] = append(found[id], link.Agent)
		}
	}
	return found
}

// TestItemKinds: what the events of each kind of items are about.
func TestItemKinds(t *testing.T) {
	for item, want := range map[string][]string{
		"object:" + ark: {">" + ark + "<", ">notes &amp; more<", "intellectualEntity"},
		"version:" + ark + "/v3": {">" + ark + "<", ">" + ark + "/v3<", `"representation"`,
			"<linkingObjectIdentifierValue>" + ark + "/v3<"},
		"batch:b1": {">batch:b1<", "<linkingObjectIdentifierValue>batch:b1<"},
	} {
		var doc bytes.Buffer
		if err := writer.Item(&doc, item, []string{item, ark, "notes & more"}, own(t, item)[1:2]); err != nil {
			t.Fatal(err)
		}
		for _, text := range want {
			if !strings.Contains(doc.String(), text) {
				t.Errorf("%s: %s is not in %s", item, text, doc.String())
			}
		}
	}
	if err := writer.Item(&bytes.Buffer{}, "thing:x", nil, nil); err == nil {
		t.Error("thing:x is the id of an item")
	}
	log := own(t, "item:a")[:1]
	log[0].Detail = []byte("{")
	err := writer.Item(&bytes.Buffer{}, "item:a", nil, log)
	if err == nil || !strings.Contains(err.Error(), "event 1 of item:a") {
		t.Errorf("an event that cannot be read gives %v", err)
	}
}

// items is a store of items with the objects of these ARKs.
func items(t *testing.T, arks ...string) *component.Store {
	n := 0
	s := &component.Store{Table: tabletest.Open(t), Now: func() time.Time { return time.UnixMilli(1_800_000_000_000) },
		NewID: func() string { n++; return fmt.Sprintf("tx%04d", n) },
		Wake:  func(context.Context, string) error { return nil }}
	for _, ark := range arks {
		tx := s.Table.Begin(s.NewID())
		err := event.Append(tx, event.Subject{Type: event.Object, ID: ark}, 1, event.New{Type: "object.create",
			Time: 1_700_000_000_000, Detail: map[string]any{"version": 1, "job": "j1"}, Identifiers: []string{ark}})
		if err == nil {
			err = tx.Commit(t.Context())
		}
		if err == nil {
			_, err = s.Sync(t.Context(), "object:"+ark)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// exported is the history of an object's item as PREMIS.
func exported(t *testing.T, s *component.Store, ark string) []byte {
	t.Helper()
	var log []envelope.Event
	for _, of := range []event.Subject{{Type: event.Object, ID: ark}, {Type: event.Item, ID: "object:" + ark}} {
		for cursor, first := "", true; first || cursor != ""; first = false {
			rows, next, err := event.Page(t.Context(), s.Table, of, cursor)
			if err != nil {
				t.Fatal(err)
			}
			for _, row := range rows {
				e, err := row.Envelope()
				if err != nil {
					t.Fatal(err)
				}
				log = append(log, e)
			}
			cursor = next
		}
	}
	var doc bytes.Buffer
	if err := writer.Item(&doc, "object:"+ark, []string{ark}, log); err != nil {
		t.Fatal(err)
	}
	return doc.Bytes()
}

// said are the events of documents by their identifiers, without what an import may change: the form of
// the time, and the objects. Those whose identifier begins with but are left out.
func said(t *testing.T, but string, docs ...[]byte) map[premis.Identifier]premis.Event {
	t.Helper()
	all := map[premis.Identifier]premis.Event{}
	for _, doc := range docs {
		for entry, err := range premis.Read(bytes.NewReader(doc), nil) {
			if err != nil {
				t.Fatal(err)
			}
			if e := entry.Event; e != nil && !strings.HasPrefix(e.ID.Value, but) {
				e.Written, e.Objects, e.Time = "", nil, e.Time.UTC()
				all[e.ID] = *e
			}
		}
	}
	return all
}

func compare(t *testing.T, got, want map[premis.Identifier]premis.Event) {
	t.Helper()
	for id, w := range want {
		if g := got[id]; !reflect.DeepEqual(g, w) {
			t.Errorf("got  %+v\nwant %+v", g, w)
		}
	}
	if len(got) != len(want) {
		t.Errorf("got %d events, want %d", len(got), len(want))
	}
}

// TestRoundTrip: a document of another archive, and a document of this archive, are imported; exported
// again, the events are as they were. An import of what the item exports itself changes nothing.
func TestRoundTrip(t *testing.T) {
	const other = "ark:/99999/fk4other"
	s := items(t, ark, other)
	imported := func(ark string, doc []byte) component.Import {
		out, err := s.Import(t.Context(), "object:"+ark, bytes.NewReader(doc), component.ImportOptions{},
			component.By{Actor: "eva", Reason: "migration"})
		if err != nil || out.Refused != nil {
			t.Fatalf("%v, %v", out.Refused, err)
		}
		return out
	}
	newspaper, err := os.ReadFile("../../formats/premis/testdata/newspaper.xml")
	if err != nil {
		t.Fatal(err)
	}
	var free bytes.Buffer
	if err := writer.Item(&free, "item:delivery-17", nil, own(t, "item:delivery-17")[:9]); err != nil {
		t.Fatal(err)
	}
	if n := len(imported(ark, newspaper).Imported) + len(imported(ark, free.Bytes()).Imported); n != 11 {
		t.Errorf("%d events are imported, expected 2 and 9", n)
	}

	first := exported(t, s, ark)
	compare(t, said(t, "tx", first), said(t, "-", newspaper, free.Bytes()))
	if out := imported(ark, first); len(out.Imported) > 0 || len(out.Present) != 14 {
		t.Errorf("its own export: %d imported, %d present", len(out.Imported), len(out.Present))
	}

	if out := imported(other, first); len(out.Imported) != 14 {
		t.Errorf("the export into another item: %d imported", len(out.Imported))
	}
	second := exported(t, s, other)
	compare(t, said(t, "tx0003", second), said(t, "-", first)) // without the event of the other object
	if out := imported(other, second); len(out.Imported) > 0 {
		t.Errorf("again: %d imported", len(out.Imported))
	}
}
