package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"archivist/pkg/api"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/fault"
	"archivist/pkg/ingest"
	"archivist/pkg/inventory"
	"archivist/pkg/queue"
	"archivist/pkg/table/tabletest"
)

// none are executions that are only counted.
type none struct{ started int }

func (n *none) Start(context.Context, string, string, queue.Message) error { n.started++; return nil }
func (n *none) Stop(context.Context, string, string, string) error         { return nil }
func (n *none) StoppedByHand(context.Context, string, string) (string, bool, error) {
	return "", false, nil
}

// serve serves the API on an empty table, whose calls go through do.
func serve(t *testing.T, do func(op string, call func() error) error) (*v1.Client, *queue.Queue) {
	n := 0
	tb := tabletest.Table(&tabletest.Client{DynamoDBAPI: tabletest.New(), Do: do})
	tb.Wait = func(context.Context, time.Duration) error { return nil }
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	q := &queue.Queue{Table: tb, Now: time.Now, NewID: func() string { n++; return fmt.Sprintf("ID%04d", n) }, Executions: &none{}, Poke: func(context.Context) error { return nil },
		Metric: func(string, float64) {}, Rules: ingest.Rules{Timing: ingest.Timings["production"]}, Settings: queue.Settings{MaxInFlight: 100, Space: 10 << 40, SweepPage: 200}, Log: log}
	srv := httptest.NewServer((&api.API{Queue: q, Inventory: inventory.Store{Table: tb}, Log: log, Base: "/prod"}).Handler())
	t.Cleanup(srv.Close)
	return &v1.Client{URL: srv.URL, HTTP: srv.Client()}, q
}

func through(_ string, call func() error) error { return call() }

var good = v1.BatchRequest{Collection: "maps", Payload: v1.Payload{URL: "https://example.org/a.txt"}, Identifiers: &v1.Identifiers{Local: []string{"one"}}}

func TestSubmit(t *testing.T) {
	c, q := serve(t, through)
	out, err := c.Submit(t.Context(), good, "key")
	if err != nil || out.State != "Pending" {
		t.Fatalf("%+v, %v", out, err)
	}
	row, err := q.Batch(t.Context(), out.ID)
	if err != nil || row.Payload.Filename != "a.txt" || row.LocalIDs[0] != "one" || row.Mode != "add" {
		t.Errorf("%+v, %v", row, err)
	}
	if again, err := c.Submit(t.Context(), good, "key"); err != nil || again.ID != out.ID {
		t.Errorf("again: %+v, %v", again, err)
	}
	b, err := v1.Get[v1.Batch](t.Context(), c, "/v1/batches/"+out.ID)
	if err != nil || b.Collection != "maps" || b.State != "Pending" {
		t.Errorf("%+v, %v", b, err)
	}
	x, err := v1.Get[v1.Explanation](t.Context(), c, "/v1/batches/"+out.ID+"/explain")
	if err != nil || x.WaitsFor != "execution" {
		t.Errorf("%+v, %v", x, err)
	}
	events, err := v1.All[v1.Event](t.Context(), c, "/v1/batches/"+out.ID+"/events")
	if err != nil || len(events) != 1 || events[0].Version != 1 {
		t.Errorf("%+v, %v", events, err)
	}
}

// TestRefuses: bad input is told with the field and what was expected, and
// leaves nothing behind.
func TestRefuses(t *testing.T) {
	c, q := serve(t, through)
	cases := map[string]struct {
		change func(*v1.BatchRequest)
		says   string
	}{
		"collection": {func(r *v1.BatchRequest) { r.Collection = "a b" }, "body.collection"},
		"no URL":     {func(r *v1.BatchRequest) { r.Payload.URL = "" }, "payload.url"},
		"ftp":        {func(r *v1.BatchRequest) { r.Payload.URL = "ftp://x/a" }, "expected an http or https URL"},
		"type":       {func(r *v1.BatchRequest) { r.Payload.Type = "zip" }, "body.payload.type"},
		"mode":       {func(r *v1.BatchRequest) { r.Mode = "replace" }, "body.mode"},
		"file name":  {func(r *v1.BatchRequest) { r.Payload.Filename = "../a" }, "payload.filename"},
		"no name":    {func(r *v1.BatchRequest) { r.Payload.URL = "https://example.org/" }, "payload.filename"},
		"algorithm":  {func(r *v1.BatchRequest) { r.Payload.Digest = &v1.Digest{Algorithm: "md2", Value: "00"} }, "payload.digest"},
		"digest":     {func(r *v1.BatchRequest) { r.Payload.Digest = &v1.Digest{Algorithm: "MD5", Value: "xyz"} }, "payload.digest"},
		"local id":   {func(r *v1.BatchRequest) { r.Identifiers = &v1.Identifiers{Local: []string{"a;b"}} }, "identifiers.local"},
	}
	for name, k := range cases {
		in := good
		k.change(&in)
		if _, err := c.Submit(t.Context(), in, ""); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), k.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if p, err := q.BatchesOf(t.Context(), "maps", ""); err != nil || len(p.Items) > 0 {
		t.Errorf("something was left behind: %+v, %v", p, err)
	}
	for _, path := range []string{"/v1/batches/none", "/v1/jobs/none", "/v1/jobs/none/explain", "/v1/batches/none/events", "/v1/objects/99999/none", "/v1/nothing"} {
		if _, err := v1.Get[json.RawMessage](t.Context(), c, path); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := v1.Get[json.RawMessage](t.Context(), c, "/v1/batches?collection=maps&cursor=rubbish"); !fault.Is(err, fault.Invalid) {
		t.Errorf("a bad cursor: %v", err)
	}
}

func TestListsHavePages(t *testing.T) {
	c, _ := serve(t, through)
	const n = 120
	for range n {
		if _, err := c.Submit(t.Context(), good, ""); err != nil {
			t.Fatal(err)
		}
	}
	all, err := v1.All[v1.Batch](t.Context(), c, "/v1/batches?collection=maps")
	if err != nil || len(all) != n {
		t.Fatalf("%d batches, %v", len(all), err)
	}
	seen := map[string]bool{}
	for _, b := range all {
		seen[b.ID] = true
	}
	if len(seen) != n {
		t.Errorf("%d of %d batches are there once", len(seen), n)
	}
}

// TestDefects: what goes wrong inside is not told outside.
func TestDefects(t *testing.T) {
	c, _ := serve(t, func(string, func() error) error { return errors.New("secret of the table") })
	resp, err := http.Get(c.URL + "/v1/queue")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusServiceUnavailable && resp.StatusCode != http.StatusInternalServerError {
		t.Errorf("%s, %v", resp.Status, err)
	}
	if strings.Contains(string(body), "secret") {
		t.Errorf("told outside: %s", body)
	}
}

func TestOpenAPI(t *testing.T) {
	c, _ := serve(t, through)
	doc, err := v1.Get[struct {
		OpenAPI string
		Paths   map[string]map[string]struct{ OperationID string }
	}](t.Context(), c, "/openapi.json")
	if err != nil || !strings.HasPrefix(doc.OpenAPI, "3.1") {
		t.Fatalf("%+v, %v", doc, err)
	}
	ids := map[string]string{}
	for path, methods := range doc.Paths {
		for method, op := range methods {
			if other, twice := ids[op.OperationID]; twice || op.OperationID == "" {
				t.Errorf("%s %s has the operation id %q, as %s", method, path, op.OperationID, other)
			}
			ids[op.OperationID] = method + " " + path
		}
	}
	resp, err := http.Get(c.URL + "/docs")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	if err != nil || !strings.Contains(string(page), "POST /v1/batches") || strings.Contains(string(page), "<script") || !strings.Contains(string(page), `href="openapi.json"`) {
		t.Errorf("the page is %s, %v", page, err)
	}
	if len(ids) < 15 {
		t.Errorf("only %d operations", len(ids))
	}
}
