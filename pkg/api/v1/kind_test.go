package v1_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
)

func TestKindOf(t *testing.T) {
	for id, want := range map[string]v1.Kind{
		"01M7ZBMEYHBB62YP6RY21T1GQ6":                    v1.KindBatch,
		"01M7ZBMEYHBB62YP6RY21T1GQ6-00001":              v1.KindJob,
		ingest.JobID("01M7ZBMEYHBB62YP6RY21T1GQ6", 1e6): v1.KindJob,
		"ark:/99999/fk4tq65d6k":                         v1.KindObject,
		"ark:99999/fk4-tq65-d6k":                        v1.KindObject,
		"":                                              v1.KindUnknown,
		"-00001":                                        v1.KindUnknown,
		"map-of-ghent":                                  v1.KindUnknown,
		"a/b":                                           v1.KindUnknown,
	} {
		if got := v1.KindOf(id); got != want {
			t.Errorf("%q is %q, want %q", id, got, want)
		}
	}
}

// TestStates: the wire types have every state of the rules, and no other.
func TestStates(t *testing.T) {
	for _, s := range append(slices.Clone(ingest.Order), ingest.Held, ingest.Failed, ingest.Deleted) {
		if !slices.Contains(v1.JobStates, string(s)) {
			t.Errorf("the job state %s is missing", s)
		}
	}
	for _, s := range []ingest.BatchState{ingest.BatchPending, ingest.BatchHeld, ingest.BatchProcessing,
		ingest.BatchReporting, ingest.BatchUpdateReporting, ingest.BatchCompleted, ingest.BatchFailed,
		ingest.BatchDeleted} {
		if !slices.Contains(v1.BatchStates, string(s)) {
			t.Errorf("the batch state %s is missing", s)
		}
	}
	if len(v1.JobStates) != len(ingest.Order)+3 || len(v1.BatchStates) != 8 {
		t.Errorf("states that the rules do not have: %v, %v", v1.JobStates, v1.BatchStates)
	}
}

// problem returns the error of a call only.
func problem[T any](_ T, err error) error { return err }

// TestCalls: each method asks for its own route, with ids escaped.
func TestCalls(t *testing.T) {
	const batch, job, ark = "B1", "B1-00002", "ark:/99999/fk4x"
	var asked []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.RequestURI())
		_, _ = w.Write([]byte(`{}`))
	}))
	defer srv.Close()
	c, ctx := &v1.Client{URL: srv.URL, HTTP: srv.Client()}, t.Context()
	called := func(want string, err error) {
		t.Helper()
		if err != nil || len(asked) != 1 || asked[0] != want {
			t.Errorf("%s: asked %q, %v", want, asked, err)
		}
		asked = nil
	}

	failed := v1.Filter{Collection: "maps", State: v1.Failed}
	called("GET /v1/batches?collection=maps&state=Failed", problem(c.Batches(ctx, failed)))
	called("GET /v1/batches/a%2Fb", problem(c.Batch(ctx, "a/b")))
	called("GET /v1/batches/B1/jobs", problem(c.Jobs(ctx, v1.Filter{Batch: batch})))
	called("GET /v1/explain/B1", problem(c.Explain(ctx, batch)))
	called("GET /v1/explain/ark:/99999/fk4%20x", problem(c.Explain(ctx, "ark:/99999/fk4 x")))
	called("GET /v1/explain/Job:B1-00002?consumer=search&event=3",
		problem(c.ExplainWith(ctx, "Job:"+job, v1.ExplainOf{Consumer: "search", Event: 3})))

	called("GET /v1/jobs?collection=a+b", problem(c.Jobs(ctx, v1.Filter{Collection: "a b"})))
	called("GET /v1/jobs/B1-00002", problem(c.Job(ctx, job)))
	called("GET /v1/jobs/B1-00002/events", problem(c.Events(ctx, job)))
	called("GET /v1/jobs/B1-00002/receipt", problem(c.Receipt(ctx, job)))
	called("POST /v1/jobs/B1-00002/actions", problem(c.ActOnJob(ctx, job, v1.Action{Action: "requeue"}, "")))
	for target, path := range map[string]string{"job:B1-00002": "jobs/B1-00002", "batch:B1": "batches/B1",
		"collection:a b": "collections/a%20b", "queue": "queue", "storage": "storage"} {
		kind, id, _ := strings.Cut(target, ":")
		on := ingest.Target{Kind: ingest.TargetKind(kind), ID: id}
		called("POST /v1/"+path+"/actions", problem(c.Act(ctx, on, v1.Action{Action: "hold"}, "")))
	}

	called("POST /v1/operations", problem(c.Start(ctx, v1.OperationRequest{Action: v1.Doctor}, "")))
	called("GET /v1/operations", problem(c.Operations(ctx, 0)))
	called("GET /v1/operations/a%2Fb", problem(c.Operation(ctx, "a/b")))
	called("GET /v1/operations/OP/events", problem(c.OperationEvents(ctx, "OP")))
	called("GET /v1/operations/OP/refusals", problem(c.Refusals(ctx, "OP", 0)))
	called("GET /v1/operations/OP/findings", problem(c.Findings(ctx, "OP", 0)))
	called("POST /v1/operations/OP/actions", problem(c.ActOnOperation(ctx, "OP", v1.OperationAction{})))
	called("GET /v1/holds", problem(c.Holds(ctx, 0)))

	called("GET /v1/objects/99999/fk4x/events", problem(c.Events(ctx, ark)))
	called("GET /v1/objects/99999/fk4x/versions", problem(c.Versions(ctx, ark)))
	called("GET /v1/objects/99999/fk4x/versions/2/files", problem(c.Files(ctx, ark, 2)))
	called("PUT /v1/collections/maps", problem(c.PutCollection(ctx, "maps", v1.Profile{})))
	called("POST /v1/reindex?cursor=a&to=b", problem(c.Reindex(ctx, v1.ReindexRequest{Cursor: "a", To: "b"})))
}

// TestBlankHeadersAreNotSent: a key that is empty or blank is none, and the token of a run, too.
func TestBlankHeadersAreNotSent(t *testing.T) {
	var got http.Header
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header
		_, _ = w.Write([]byte(`{}`))
	}))
	defer srv.Close()
	c := &v1.Client{URL: srv.URL, HTTP: srv.Client()}
	for key, want := range map[string][]string{"": nil, " \t": nil, "k": {"k"}} {
		err := problem(c.Submit(t.Context(), v1.BatchRequest{}, key))
		if sent := got.Values("Idempotency-Key"); err != nil || !slices.Equal(sent, want) {
			t.Errorf("the key %q is sent as %q, %v", key, sent, err)
		}
		err = problem(c.RevisionPlan(t.Context(), "maps", 1, key))
		if sent := got.Values(v1.RunHeader); err != nil || !slices.Equal(sent, want) {
			t.Errorf("the token %q is sent as %q, %v", key, sent, err)
		}
	}
}

// TestPages: a list is read to its end, or to the filter's limit, and is never nil.
func TestPages(t *testing.T) {
	pages := map[string]string{
		"":  `{"items":[{"id":"1"},{"id":"2"}],"cursor":"a"}`,
		"a": `{"items":[],"cursor":"b"}`,
		"b": `{"items":[{"id":"3"}]}`,
	}
	requests := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		_, _ = w.Write([]byte(pages[r.URL.Query().Get("cursor")]))
	}))
	defer srv.Close()
	c := &v1.Client{URL: srv.URL, HTTP: srv.Client()}
	for limit, want := range map[int]int{0: 3, 1: 1, 2: 2, 3: 3, 9: 3} {
		if got, err := c.Jobs(t.Context(), v1.Filter{Collection: "maps", Limit: limit}); err != nil ||
			len(got) != want {
			t.Errorf("limit %d: %d items, %v", limit, len(got), err)
		}
	}
	requests = 0
	if _, err := c.Jobs(t.Context(), v1.Filter{Collection: "maps", Limit: 1}); err != nil || requests != 1 {
		t.Errorf("%d requests for one item, %v", requests, err)
	}
	pages[""] = `{"items":[]}`
	if got, err := c.Jobs(t.Context(), v1.Filter{Collection: "maps"}); err != nil || got == nil {
		t.Errorf("%v, %v", got, err)
	}
}

// TestRefusesIDs: an id of no known form is refused before a request is made.
func TestRefusesIDs(t *testing.T) {
	c := &v1.Client{URL: "http://127.0.0.1:1", HTTP: http.DefaultClient}
	for _, id := range []string{"", "a/b", "map-of-ghent"} {
		if _, err := c.Events(t.Context(), id); !fault.Is(err, fault.Invalid) {
			t.Errorf("%q: %v", id, err)
		}
	}
	for _, id := range []string{"", "a//b", "/", "maps/../x"} {
		if _, err := c.Explain(t.Context(), id); !fault.Is(err, fault.Invalid) {
			t.Errorf("explain %q: %v", id, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Job(ctx, "B-1"); !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "answer") {
		t.Errorf("an interrupt is reported as %v", err)
	}
}

// TestRefusals: an error response becomes an error with a kind, in one line that states
// what to do. Gateways answer in forms of their own.
func TestRefusals(t *testing.T) {
	for _, k := range []struct {
		status int
		body   string
		kind   fault.Kind
		says   string
	}{
		{403, `{"message":"Forbidden"}`, fault.Denied, "a server before the API answers 403 Forbidden"},
		{403, `{"type":"urn:archivist:problem:forbidden","detail":"delete needs the role administrator"}`,
			fault.Denied, "role"},
		{401, ``, fault.Denied, "before the API answers 401 Unauthorized"},
		{404, `{"detail":"there is no job \"x\"","errors":null}`, fault.NotFound, `there is no job "x"`},
		{422, `{"detail":"validation failed","errors":[{"location":"body.url","message":"expected a URL"}]}`,
			fault.Invalid, "validation failed; body.url: expected a URL"},
		{502, "<!DOCTYPE html><title>Bad Gateway</title>", fault.Unavailable, "before the API answers 502"},
		{404, "<!DOCTYPE html><title>Not found</title>", fault.Unavailable, "no such API of Archivist at http"},
		{404, `{"type":"urn:archivist:problem:unknown-route","detail":"there is no route at this path"}`,
			fault.Unavailable, "not older than this program"},
		{405, "Method\nNot Allowed", fault.Invalid, "the API answers 405 Method Not Allowed: Method Not Allowed"},
		{413, ``, fault.Invalid, "413"},
		{423, `{"detail":"held"}`, fault.Held, "held"},
		{409, `{"detail":"no"}`, fault.Conflict, "no"},
		{429, `{"message":"Too Many Requests"}`, fault.Unavailable, "429"},
		{500, `{"detail":"defect"}`, fault.Unavailable, "defect"},
		{504, `{"message":"Endpoint request timed out"}`, fault.Unavailable, "504 Gateway Timeout"},
	} {
		agent := ""
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			agent = r.UserAgent()
			w.WriteHeader(k.status)
			_, _ = w.Write([]byte(k.body))
		}))
		_, err := (&v1.Client{URL: srv.URL, HTTP: srv.Client(), UserAgent: "archivist/1"}).Queue(t.Context())
		srv.Close()
		if !fault.Is(err, k.kind) || !strings.Contains(err.Error(), k.says) ||
			strings.Contains(err.Error(), "\n") ||
			agent != "archivist/1" {
			t.Errorf("%d %s: %v of %q asked by %s", k.status, k.body, err, fault.Of(err), agent)
		}
	}
}
