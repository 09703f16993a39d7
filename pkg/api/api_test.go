package api_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"archivist/pkg/api"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/components/component"
	"archivist/pkg/events/consumer"
	"archivist/pkg/events/eventlog"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/collection"
	"archivist/pkg/ingest/identity"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/token"
	"archivist/pkg/ingest/upload"
	"archivist/pkg/kernel/bucket/buckettest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/lease"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/pkg/objects/inventory"
	"archivist/pkg/objects/ocfl"
	"archivist/pkg/research"
	"archivist/pkg/research/feed"
	"archivist/pkg/revisions/revision"
	"archivist/pkg/views/acts"
	"archivist/pkg/views/formatcounts"
	"archivist/pkg/views/statistics"
)

// none is a starter that only counts executions.
type none struct{ started int }

func (n *none) Start(context.Context, string, string, queue.Message) error { n.started++; return nil }
func (n *none) Stop(context.Context, string, string, string) error         { return nil }
func (n *none) StoppedByHand(context.Context, string, string) (string, bool, error) {
	return "", false, nil
}
func (n *none) Problem(context.Context, string, string) (string, error) { return "", nil }

// idle are executions that do nothing.
type idle struct{}

func (idle) Start(context.Context, string, component.RunInput) error { return nil }
func (idle) Stop(context.Context, string, string) error              { return nil }

// serve serves the API on an empty table, whose calls go through do.
func serve(t *testing.T, do func(op string, call func() error) error) (*v1.Client, *queue.Queue) {
	t.Helper()
	a, waits := service(do)
	_, buckets := buckettest.Open(t, "storage", "work")
	a.Identity.Root, a.Uploads.Work = ocfl.Root{Bucket: buckets[0]}, buckets[1]
	srv := httptest.NewServer(a.Handler())
	t.Cleanup(srv.Close)
	inboxes[srv.URL] = waits
	return &v1.Client{URL: srv.URL, HTTP: srv.Client()}, a.Queue
}

// service is the API on an empty table, whose calls go through do, and the queue of pending work.
func service(do func(op string, call func() error) error) (*api.API, *waiting) {
	var n atomic.Int64
	tb := tabletest.Table(&tabletest.Client{DynamoDBAPI: tabletest.New(), Do: do})
	tb.Wait = func(context.Context, time.Duration) error { return nil }
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	q := &queue.Queue{Table: tb, Now: time.Now, NewID: func() string { return fmt.Sprintf("ID%04d", n.Add(1)) },
		Executions: &none{}, Wake: func(context.Context) error { return nil },
		Metric: func(string, float64) {}, Rules: ingest.Rules{Timing: ingest.Timings["production"]},
		Settings: queue.Settings{MaxInFlight: 100, Space: 10 << 40, SweepPage: 200}, Log: log}
	profiles := collection.Store{Table: tb, NewID: q.NewID}
	objects := inventory.Store{Table: tb}
	ids := identity.Resolver{Inventory: objects, Collections: profiles, NAAN: "99999", Shoulder: "fk4"}
	events := &eventlog.Log{Table: tb, Now: q.Now, NewID: q.NewID}
	consumers := &consumer.Store{Table: tb, Now: q.Now, NewID: q.NewID, Handlers: []string{"search"}, Log: events}
	components := &component.Store{Table: tb, Now: q.Now, NewID: q.NewID, Functions: []string{"count-words"}}
	runner := &component.Runner{Store: components, Executions: idle{}, Metric: q.Metric, Log: log}
	pairs := &research.Store{Table: tb, Leases: &lease.Store{Table: tb, Now: q.Now, NewID: q.NewID}, Now: q.Now,
		NewID: q.NewID, Times: research.Default, Projects: []string{"jingles"},
		Analyses: map[string]func([]byte) error{"correlation": func([]byte) error { return nil }}}
	archives := &revision.Store{Table: tb, Leases: pairs.Leases, Now: q.Now, NewID: q.NewID, Secret: q.NewID,
		Times: revision.Default}
	uploads := &upload.Store{Table: tb, Now: q.Now, NewID: q.NewID, Batch: q.Batch, Quota: 1 << 40, Keep: time.Hour,
		Part: upload.DefaultPart}
	waits := &waiting{}
	pairs.Send = waits.send
	tokens := &token.Store{Table: tb, Now: q.Now, NewID: q.NewID}
	return &api.API{Open: true, Queue: q, Uploads: uploads, Tokens: tokens, Inventory: objects,
		Collections: profiles, Identity: ids,
		Statistics: statistics.Store{Table: tb}, Acts: acts.Store{Table: tb},
		Formats:  formatcounts.Store{Table: tb},
		EventLog: events, Epochs: events, Consumers: consumers, Components: components, Runs: runner,
		Feeds: &feed.Looker{Table: tb, Research: pairs, Now: q.Now, NewID: q.NewID},
		Log:   log, Revisions: archives, Research: pairs, PendingWork: waits, CompletedWork: func(ctx context.Context,
			reports []research.Report) error {
			for _, r := range reports {
				_, err := pairs.Record(ctx, r)
				if err != nil {
					return err
				}
			}
			return nil
		}}, waits
}

// inboxes are the queues of pending work of the servers.
var inboxes = map[string]*waiting{}

func through(_ string, call func() error) error { return call() }

var good = v1.BatchRequest{Collection: "maps", Payload: v1.Payload{URL: "https://example.org/a.txt"},
	Identifiers: &v1.Identifiers{Local: []string{"one"}}}

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
	b, err := c.Batch(t.Context(), out.ID)
	if err != nil || b.Collection != "maps" || b.State != "Pending" {
		t.Errorf("%+v, %v", b, err)
	}
	x, err := c.Explain(t.Context(), out.ID)
	if err != nil || x.WaitsFor != "start" {
		t.Errorf("%+v, %v", x, err)
	}
	events, err := c.Events(t.Context(), out.ID)
	if err != nil || len(events) != 1 || events[0].Version != 1 {
		t.Errorf("%+v, %v", events, err)
	}
}

// refused are submissions with one error each, and what the error message must contain.
var refused = map[string]struct {
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
	"algorithm": {func(r *v1.BatchRequest) { r.Payload.Digest = &v1.Digest{Algorithm: "md2", Value: "00"} },
		"payload.digest"},
	"digest": {func(r *v1.BatchRequest) { r.Payload.Digest = &v1.Digest{Algorithm: "MD5", Value: "xyz"} },
		"payload.digest"},
	"local id": {func(r *v1.BatchRequest) { r.Identifiers = &v1.Identifiers{Local: []string{"a;b"}} },
		"identifiers.local"},
	"control": {func(r *v1.BatchRequest) { r.Identifiers = &v1.Identifiers{Local: []string{"a\x01b"}} },
		"identifiers.local"},
	"long id": {func(r *v1.BatchRequest) {
		r.Identifiers = &v1.Identifiers{Local: []string{strings.Repeat("é", 251)}}
	}, "502 bytes; at most 500"},
	"not XML": {func(r *v1.BatchRequest) { r.Identifiers = &v1.Identifiers{Local: []string{"a\uffff"}} },
		"identifiers.local"},
	"no ARK": {func(r *v1.BatchRequest) { r.Identifiers = &v1.Identifiers{Primary: "doi:10.5072/x"} },
		"identifiers.primary"},
	"mistyped": {func(r *v1.BatchRequest) { r.Identifiers = &v1.Identifiers{Primary: "ark:/99999/fk4tq65d6x"} },
		"identifiers.primary"},
	"shoulder": {func(r *v1.BatchRequest) { r.Identifiers = &v1.Identifiers{Primary: "ark:/99999/fk4"} },
		"identifiers.primary"},
	"elsewhere": {func(r *v1.BatchRequest) { r.Identifiers = &v1.Identifiers{Primary: "ark:/13030/xf93gt2q"} },
		"identifiers.primary: ark:/13030/xf93gt2q is not an object that this submission may " +
			"change, and a new one cannot have it, since it is not on the shoulder ark:/99999/fk4 of this collection"},
	"line break": {func(r *v1.BatchRequest) { r.Metadata = &v1.Metadata{What: "a\nb"} }, "metadata.what"},
	"long title": {func(r *v1.BatchRequest) { r.Metadata = &v1.Metadata{What: strings.Repeat("é", 2001)} },
		"metadata.what has 4002 bytes; at most 4000"},
	"long URL": {func(r *v1.BatchRequest) { r.Payload.URL = "https://x/" + strings.Repeat("a", 2048) },
		"body.payload.url"},
	"long name": {func(r *v1.BatchRequest) { r.Payload.Filename = strings.Repeat("é/", 1500) },
		"payload.filename"},
	"FFFE":      {func(r *v1.BatchRequest) { r.Payload.Filename = "a\ufffe" }, "payload.filename"},
	"submitter": {func(r *v1.BatchRequest) { r.Submitter = "a\x00b" }, "submitter"},
	"note":      {func(r *v1.BatchRequest) { r.Note = strings.Repeat("é", 1001) }, "note has 2002 bytes"},
	"mail":      {func(r *v1.BatchRequest) { r.Notification = []string{"Me <me@example.org>"} }, "notification"},
	"one object": {func(r *v1.BatchRequest) { r.Payload.Type = "batch-manifest" },
		"identifiers.local name one object"},
	"undigested": {func(r *v1.BatchRequest) { r.Collection, r.Payload.Type = "strict", "file" },
		"payload.digest: the collection strict"},
}

// TestRefuses: invalid input is refused with the field and what was expected, and
// leaves nothing behind.
func TestRefuses(t *testing.T) {
	c, q := serve(t, through)
	profiles := collection.Store{Table: q.Table, NewID: q.NewID}
	if err := profiles.Put(t.Context(), "strict", collection.Profile{RequireDigest: true},
		collection.By{Actor: "me"}, 0); err != nil {
		t.Fatal(err)
	}
	for name, k := range refused {
		in := good
		k.change(&in)
		if _, err := c.Submit(t.Context(), in, ""); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(),
			k.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if p, err := q.FindBatches(t.Context(), queue.Find{Collections: []string{"maps"}}); err != nil || len(p.Items) > 0 {
		t.Errorf("something was left behind: %+v, %v", p, err)
	}
	for _, path := range []string{"/v1/batches/none", "/v1/jobs/none", "/v1/explain/none",
		"/v1/batches/none/events", "/v1/objects/99999/none"} {
		if err := c.Call(t.Context(), http.MethodGet, path, nil, nil); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if err := c.Call(t.Context(), http.MethodGet, "/v1/batches?collection=maps&cursor=rubbish", nil,
		nil); !fault.Is(err, fault.Invalid) {
		t.Errorf("a bad cursor: %v", err)
	}
}

// TestInputIsNormalized: blanks around values and repeated ids are removed, and an ARK is
// stored in its canonical form.
func TestInputIsNormalized(t *testing.T) {
	c, q := serve(t, through)
	in := good
	in.Identifiers = &v1.Identifiers{Primary: "ark:99999/fk4-tq65-d6k", Local: []string{" one ", "one", "two"}}
	in.Metadata, in.Notification = &v1.Metadata{What: " a title "}, []string{"me@example.org", "me@example.org"}
	out, err := c.Submit(t.Context(), in, "")
	if err != nil {
		t.Fatal(err)
	}
	row, err := q.Batch(t.Context(), out.ID)
	if err != nil || row.Primary != "ark:/99999/fk4tq65d6k" || strings.Join(row.LocalIDs, "|") != "one|two" ||
		row.What != "a title" || len(row.Mail) != 1 {
		t.Errorf("%+v, %v", row, err)
	}
}

// TestErrorsKeepSecrets: an error names the field and repeats nothing of the request.
func TestErrorsKeepSecrets(t *testing.T) {
	c, _ := serve(t, through)
	body := `{"collection": "a b", "payload": {"url": "https://me:secret@example.org/a"}, "secret": "` +
		strings.Repeat("secret", 1000) + `"}`
	resp, err := c.HTTP.Post(c.URL+"/v1/batches", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 422 || strings.Contains(strings.ReplaceAll(string(text), "body.secret", ""),
		"secret") || !strings.Contains(string(text), "body.collection") {
		t.Errorf("%d %.2000s, %v", resp.StatusCode, text, err)
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
	all, err := c.Batches(t.Context(), v1.Filter{Collection: "maps"})
	if err != nil || len(all) != n {
		t.Fatalf("%d batches, %v", len(all), err)
	}
	seen := map[string]bool{}
	for _, b := range all {
		seen[b.ID] = true
	}
	if len(seen) != n {
		t.Errorf("%d of %d batches are listed exactly once", len(seen), n)
	}
}

// TestDefects: the text of an internal error does not reach the client.
func TestDefects(t *testing.T) {
	c, _ := serve(t, func(string, func() error) error { return errors.New("secret of the table") })
	resp, err := http.Get(c.URL + "/v1/queue")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusServiceUnavailable &&
		resp.StatusCode != http.StatusInternalServerError {
		t.Errorf("%s, %v", resp.Status, err)
	}
	if strings.Contains(string(body), "secret") {
		t.Errorf("the client got %s", body)
	}
}
