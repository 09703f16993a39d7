package api_test

import (
	"encoding/xml"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"archivist/pkg/api"
	"archivist/pkg/components/histories"
	"archivist/pkg/ingest/provenance"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/inventory"
)

// record puts an object's row with an event into the table.
func record(t *testing.T, q *queue.Queue, version int, job string) {
	t.Helper()
	recordAs(t, q, version, job, "a & b")
}

// recordAs is record with the object's local id.
func recordAs(t *testing.T, q *queue.Queue, version int, job, localID string) {
	t.Helper()
	s := inventory.Store{Table: q.Table}
	put, err := s.Prepare(t.Context(), inventory.Record{Actor: "ada", Job: job,
		Object: inventory.Object{ARK: "ark:/99999/fk4x", Collection: "maps", LocalIDs: []string{localID},
			HeadOf: version, Digest: job}}, int64(version)*1000)
	if err != nil && !fault.Is(err, fault.NotFound) || put == nil {
		t.Fatal(put == nil, err)
	}
	tx := q.Table.Begin(q.NewID())
	if err := put(tx); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// recordVersion records a version of the same object.
func recordVersion(t *testing.T, q *queue.Queue, version int, job string) {
	t.Helper()
	s := inventory.Store{Table: q.Table}
	put, err := s.PrepareVersions(t.Context(), inventory.Record{Actor: "ada", Job: job,
		Object:   inventory.Object{ARK: "ark:/99999/fk4x", Collection: "maps", HeadOf: version},
		Versions: []inventory.Version{{Number: version, Job: job}}}, int64(version)*1000)
	if err != nil {
		t.Fatal(err)
	}
	tx := q.Table.Begin(q.NewID())
	if err := put(tx); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestHistory: an object's events are JSON, or PREMIS if the client prefers XML.
func TestHistory(t *testing.T) {
	_, q := serve(t, through)
	record(t, q, 1, "J-1")
	record(t, q, 2, "J-2")
	record(t, q, 3, "")
	a := &api.API{Open: true, Queue: q, Inventory: inventory.Store{Table: q.Table}, Log: q.Log,
		Histories: histories.Writer{Archive: provenance.Archive{NAAN: "99999", Version: "v1"}}}
	srv := httptest.NewServer(a.Handler())
	defer srv.Close()
	get := func(path, accept string) (int, string, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", accept)
		resp, err := srv.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, resp.Header.Get("Content-Type"), string(body)
	}
	const events = "/v1/objects/99999/fk4x/events"
	for _, accept := range []string{"", "*/*", "application/json", "application/xml;q=0.5, application/json"} {
		if status, kind, body := get(events, accept); status != 200 || kind != "application/json" ||
			strings.Count(body, `"object.modify"`) != 2 {
			t.Errorf("%q: %d %s %s", accept, status, kind, body)
		}
	}
	var doc struct {
		XMLName xml.Name `xml:"http://www.loc.gov/premis/v3 premis"`
		Objects []string `xml:"object>objectIdentifier>objectIdentifierValue"`
		Events  []struct {
			Type    string   `xml:"eventType"`
			Time    string   `xml:"eventDateTime"`
			Objects []string `xml:"linkingObjectIdentifier>linkingObjectIdentifierValue"`
		} `xml:"event"`
	}
	status, kind, body := get(events, "application/xml")
	err := xml.Unmarshal([]byte(body), &doc)
	if err != nil || status != 200 || kind != "application/xml; charset=utf-8" {
		t.Fatalf("%d %s, %v: %s", status, kind, err, body)
	}
	if got := strings.Join(doc.Objects, " "); got !=
		"ark:/99999/fk4x a & b ark:/99999/fk4x/v1 ark:/99999/fk4x/v2 ark:/99999/fk4x/v3" {
		t.Errorf("objects %v", doc.Objects)
	}
	var types []string
	for _, e := range doc.Events {
		types = append(types, e.Type)
	}
	if got := strings.Join(types, ", "); got !=
		"fixity check, ingestion, accession, fixity check, ingestion, metadata modification" {
		t.Errorf("events %v", types)
	} else if e := doc.Events[4]; e.Time != "1970-01-01T00:00:02Z" ||
		!slices.Contains(e.Objects, "ark:/99999/fk4x/v2") {
		t.Errorf("the second ingestion is %+v", e)
	}
	status, kind, body = get("/v1/objects/99999/none/events", "application/xml")
	if status != 404 || kind != "application/problem+json" {
		t.Errorf("an unknown object: %d %s %s", status, kind, body)
	}
	if _, _, api := get("/openapi.json", ""); !strings.Contains(api, `"application/xml"`) {
		t.Error("the OpenAPI document has no XML response")
	}
}
