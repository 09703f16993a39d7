package api_test

import (
	"bytes"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"testing"

	"archivist/pkg/api"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/components/component"
	"archivist/pkg/components/histories"
	"archivist/pkg/formats/premis"
	"archivist/pkg/ingest/provenance"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/inventory"
)

// withItems is an API with one custom item.
func withItems(t *testing.T) (*v1.Client, *component.Store) {
	t.Helper()
	_, q := serve(t, through)
	s := &component.Store{Table: q.Table, Now: q.Now, NewID: q.NewID}
	_, err := s.Create(t.Context(), "item:delivery-17", component.CustomItem{Identifiers: []string{"box 17"}},
		component.By{Actor: "ada", Reason: "it came"})
	if err != nil {
		t.Fatal(err)
	}
	a := &api.API{Open: true, Queue: q, Inventory: inventory.Store{Table: q.Table}, Components: s, Log: q.Log,
		Histories: histories.Writer{Archive: provenance.Archive{NAAN: "99999", Version: "v1"}}}
	srv := httptest.NewServer(a.Handler())
	t.Cleanup(srv.Close)
	return &v1.Client{URL: srv.URL, HTTP: srv.Client(), User: "ann"}, s
}

// TestItemPREMIS: a document is imported, and is in the export of the item. Again, nothing changes.
func TestItemPREMIS(t *testing.T) {
	client, s := withItems(t)
	doc, err := os.ReadFile("../formats/premis/testdata/newspaper.xml")
	if err != nil {
		t.Fatal(err)
	}
	in := v1.PREMISImport{Document: string(doc), Reason: "migration", DryRun: true}
	counts := func() string {
		t.Helper()
		r, err := client.ImportPREMIS(t.Context(), "item:delivery-17", in)
		if err != nil || r.Item != "item:delivery-17" {
			t.Fatal(r, err)
		}
		return strings.Repeat("i", len(r.Imported)) + strings.Repeat("p", len(r.Present)) +
			strings.Repeat("r", len(r.Refused))
	}
	first := counts()
	in.DryRun = false
	if got := first + " " + counts() + " " + counts(); got != "ii ii pp" {
		t.Errorf("got %s", got)
	}
	page, _, err := s.History(t.Context(), "item:delivery-17", "")
	if err != nil || len(page) != 3 || page[1].Context.Actor != `an operator (unverified: "ann")` {
		t.Errorf("%+v, %v", page, err)
	}

	var out bytes.Buffer
	if err := client.ItemPREMIS(t.Context(), "item:delivery-17", &out); err != nil {
		t.Fatal(err)
	}
	events := map[string]string{}
	for entry, err := range premis.Read(&out, nil) {
		if err != nil {
			t.Fatal(err)
		}
		if entry.Event != nil {
			events[entry.Event.Type] = entry.Event.Outcome
		}
	}
	want := map[string]string{"metadata modification": "success", "Data_Received": "success",
		"Structure_Checked": "fail"}
	if !reflect.DeepEqual(events, want) {
		t.Errorf("exported: %v", events)
	}
}

// TestItemPREMISPages: an export of more than a page is one document.
func TestItemPREMISPages(t *testing.T) {
	client, s := withItems(t)
	for n := range 120 {
		_, err := s.Prioritize(t.Context(), "item:delivery-17", 1+n%2, component.By{Actor: "ada", Reason: "so"})
		if err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	if err := client.ItemPREMIS(t.Context(), "item:delivery-17", &out); err != nil {
		t.Fatal(err)
	}
	for part, want := range map[string]int{"<event>": 121, "</premis>": 1, "<object ": 1, "<agent>": 3, ">box 17<": 1} {
		if got := strings.Count(out.String(), part); got != want {
			t.Errorf("%s is there %d times, want %d", part, got, want)
		}
	}
}

// TestItemPREMISRefused: what is refused as a whole, and which events are.
func TestItemPREMISRefused(t *testing.T) {
	client, _ := withItems(t)
	const begin = `<premis version="3.0" xmlns="http://www.loc.gov/premis/v3">`
	good := v1.PREMISImport{Reason: "migration", Document: begin +
		`<event><eventIdentifier><eventIdentifierType>T</eventIdentifierType>` +
		`<eventIdentifierValue>1</eventIdentifierValue></eventIdentifier><eventType>A</eventType>` +
		`<eventDateTime>2013-10-25T13:06:00</eventDateTime><eventOutcomeInformation>` +
		`<eventOutcome>success</eventOutcome></eventOutcomeInformation></event></premis>`}
	for _, c := range []struct {
		item string
		edit func(*v1.PREMISImport)
		kind fault.Kind
		want string
	}{
		{"item:none", func(*v1.PREMISImport) {}, fault.NotFound, "there is no item item:none"},
		{"thing:none", func(*v1.PREMISImport) {}, fault.Invalid, "expected object:ARK"},
		{"item:delivery-17", func(i *v1.PREMISImport) { i.Document = "<a>" }, fault.Invalid, "line 1"},
		{"item:delivery-17", func(i *v1.PREMISImport) { i.Reason = "" }, fault.Invalid, "reason"},
		{"item:delivery-17", func(i *v1.PREMISImport) { i.Zone = "Mars" }, fault.Invalid, "no time zone"},
		{"item:delivery-17", func(i *v1.PREMISImport) { i.Zone = "Local" }, fault.Invalid, "no time zone"},
	} {
		in := good
		c.edit(&in)
		_, err := client.ImportPREMIS(t.Context(), c.item, in)
		if !fault.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v", c.want, err)
		}
	}
	if err := client.ItemPREMIS(t.Context(), "item:none", &bytes.Buffer{}); !fault.Is(err, fault.NotFound) {
		t.Errorf("the export of an unknown item: %v", err)
	}
	_, err := client.ImportPREMIS(t.Context(), "item:delivery-17", good)
	if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "nothing is imported") ||
		!strings.Contains(err.Error(), "has no time zone") {
		t.Errorf("an import of which nothing comes: %v", err)
	}
	tried := good
	tried.DryRun = true
	r, err := client.ImportPREMIS(t.Context(), "item:delivery-17", tried)
	if err != nil || len(r.Refused) != 1 || !strings.Contains(r.Refused[0].Reason, "has no time zone") ||
		r.Refused[0].Identifier != "1" {
		t.Errorf("%+v, %v", r, err)
	}
	good.Zone = "Europe/Copenhagen"
	if r, err := client.ImportPREMIS(t.Context(), "item:delivery-17", good); err != nil || len(r.Imported) != 1 {
		t.Errorf("with the zone: %+v, %v", r, err)
	}

	// A document of 1 MiB is read, although JSON writes each < in six bytes.
	good.Document += strings.Repeat("<!---->\n", (1<<20-len(good.Document))/8)
	if r, err := client.ImportPREMIS(t.Context(), "item:delivery-17", good); err != nil || len(r.Present) != 1 {
		t.Errorf("a document of %d bytes: %+v, %v", len(good.Document), r, err)
	}
	good.Document += strings.Repeat(" ", 8)
	if _, err := client.ImportPREMIS(t.Context(), "item:delivery-17", good); !fault.Is(err, fault.Invalid) {
		t.Errorf("a document of %d bytes: %v", len(good.Document), err)
	}
}
