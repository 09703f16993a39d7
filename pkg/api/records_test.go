package api_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/guregu/dynamo/v2/dynamodbiface"

	"archivist/pkg/api"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/components/histories"
	"archivist/pkg/events/consumer"
	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/ingest/collection"
	"archivist/pkg/ingest/provenance"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/pkg/objects/aip"
	"archivist/pkg/objects/aip/aiptest"
	"archivist/pkg/objects/inventory"
	"archivist/pkg/objects/ocfl"
	"archivist/pkg/views/derivatives"
	"archivist/pkg/views/history"
	"archivist/pkg/views/inventorycache"
	"archivist/pkg/views/manifest"
	"archivist/pkg/views/statistics"
)

// kept serves an object that is stored and recorded, and what consumers keep of it.
func kept(t *testing.T) (*api.API, *v1.Client, *aiptest.Root) {
	t.Helper()
	_, q := serve(t, through)
	root := aiptest.New(t)
	stored := root.Store("ark:/99999/fk4x", map[string]string{"a.png": "no image", "b.txt": "text", "c.jpg": "C"},
		aiptest.System("maps", "x", "", ""))
	store := inventory.Store{Table: q.Table}
	put, err := store.Prepare(t.Context(), inventory.Record{Job: "J-1", Object: inventory.Object{ARK: stored.ID,
		Collection: "maps", LocalIDs: []string{"x"}, HeadOf: 1, Digest: stored.Digest}}, 1000)
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
	a := &api.API{Open: true, Queue: q, Inventory: store, Root: root.Root, Derived: root.Derived,
		Log:         slog.New(slog.DiscardHandler),
		Collections: collection.Store{Table: q.Table, NewID: q.NewID},
		History:     history.Store{Table: q.Table},
		Statistics:  statistics.Store{Table: q.Table},
		Histories:   histories.Writer{Archive: provenance.Archive{NAAN: "99999", Version: "v1"}}}
	srv := httptest.NewServer(a.Handler())
	t.Cleanup(srv.Close)
	return a, &v1.Client{URL: srv.URL, HTTP: srv.Client()}, root
}

// location is where a route redirects to, or the reason why it does not.
func location(t *testing.T, url string) (status int, to string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	if resp.StatusCode == http.StatusFound {
		return resp.StatusCode, resp.Header.Get("Location")
	}
	return resp.StatusCode, string(body)
}

// events are all events of subjects, as the log hands them to consumers.
func eventsOf(t *testing.T, a *api.API, subjects ...event.Subject) (b consumer.Batch) {
	t.Helper()
	for _, s := range subjects {
		rows, _, err := event.Page(t.Context(), a.Queue.Table, s, "")
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			e, err := r.Envelope()
			if err != nil {
				t.Fatal(err)
			}
			e.Partition, e.Seq = e.Log(), int64(len(b.Events)+1)
			b.Events = append(b.Events, consumer.Item{Event: e})
		}
	}
	return b
}

// TestHistoryRoute: the record of an object is read as JSON and as one PREMIS document of all pages.
func TestHistoryRoute(t *testing.T) {
	a, client, _ := kept(t)
	b := eventsOf(t, a, event.Subject{Type: event.Object, ID: "ark:/99999/fk4x"},
		event.Subject{Type: event.Version, ID: "ark:/99999/fk4x/v1"})
	for n := range 150 { // more than a page
		b.Events = append(b.Events, consumer.Item{Event: envelope.Event{ID: a.Queue.NewID(), Type: "object.modify",
			Time: int64(2000 + n), Subject: envelope.Ref{Type: "Object", ID: "ark:/99999/fk4x"},
			Context: envelope.Context{Actor: "ada"}, Detail: json.RawMessage(`{"version":1}`)}})
	}
	if _, err := (history.Recorder{Table: a.Queue.Table, NewID: a.Queue.NewID}).Handle(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	events, err := client.History(t.Context(), "ark:/99999/fk4x")
	if err != nil || len(events) != len(b.Events) || events[0].Type != "object.create" ||
		events[0].Detail["job"] != "J-1" {
		t.Fatalf("%d events of %d, %v", len(events), len(b.Events), err)
	}
	var doc strings.Builder
	if err := client.HistoryPREMIS(t.Context(), "ark:/99999/fk4x", &doc); err != nil {
		t.Fatal(err)
	}
	for part, want := range map[string]int{"<eventType ": 153, "</premis>": 1, `"intellectualEntity"`: 1,
		`"representation"`: 1, "<agent>": 3, ">accession<": 1} {
		if got := strings.Count(doc.String(), part); got != want {
			t.Errorf("%s is there %d times, want %d", part, got, want)
		}
	}
	if _, err := client.History(t.Context(), "ark:/99999/none"); !fault.Is(err, fault.NotFound) {
		t.Errorf("an unknown object gives %v", err)
	}
}

// TestStatisticsRoute: a download is an event, which is counted.
func TestStatisticsRoute(t *testing.T) {
	a, client, _ := kept(t)
	for range 2 {
		status, to := location(t, client.URL+"/v1/objects/99999/fk4x/versions/1/content?path=producer/b.txt")
		if status != http.StatusFound {
			t.Fatal(status, to)
		}
	}
	b := eventsOf(t, a, event.Subject{Type: event.File, ID: "ark:/99999/fk4x/v1/producer/b.txt"})
	counter := statistics.Counter{Table: a.Queue.Table, NewID: a.Queue.NewID}
	if _, err := counter.Handle(t.Context(), b); err != nil || len(b.Events) != 2 {
		t.Fatal(len(b.Events), err)
	}
	list, err := client.Statistics(t.Context(), "")
	if err != nil || len(list) != 1 || list[0].Collection != "maps" || list[0].Downloads != 2 {
		t.Errorf("%+v, %v", list, err)
	}
	day := time.UnixMilli(b.Events[0].Time).UTC().Format(time.DateOnly)
	one, err := client.StatisticsOf(t.Context(), "maps", day, day)
	if err != nil || len(one.Days) != 1 || one.Days[0].Date != day || one.Days[0].Downloads != 2 {
		t.Errorf("%+v, %v", one, err)
	}
	o, err := client.ObjectStatistics(t.Context(), "ark:/99999/fk4x")
	if err != nil || o.Downloads != 2 || o.LastDownload == "" {
		t.Errorf("%+v, %v", o, err)
	}
	if _, err := client.StatisticsOf(t.Context(), "", day, day); !fault.Is(err, fault.Invalid) {
		t.Errorf("days without a collection give %v", err)
	}
}

// hanging is a table that does not answer when something is written to it.
type hanging struct {
	dynamodbiface.DynamoDBAPI
	t    *testing.T
	hung int
}

func (h *hanging) TransactWriteItems(ctx context.Context, _ *dynamodb.TransactWriteItemsInput,
	_ ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	h.hung++
	ends, bounded := ctx.Deadline()
	if !bounded || time.Until(ends) > time.Second {
		h.t.Errorf("a write of a download can take until %v", ends)
	}
	return nil, context.DeadlineExceeded // as at the end of that time
}

// TestDownloadDoesNotWait: a file is given out although its event cannot be written, for which it waits
// a second at most.
func TestDownloadDoesNotWait(t *testing.T) {
	a, client, _ := kept(t)
	h := &hanging{DynamoDBAPI: a.Queue.Table.DB.Client(), t: t}
	a.Inventory.Table = tabletest.Table(h)
	status, to := location(t, client.URL+"/v1/objects/99999/fk4x/versions/1/content?path=producer/b.txt")
	if status != http.StatusFound || h.hung == 0 {
		t.Errorf("%d %s after %d writes", status, to, h.hung)
	}
}

// TestMissingFile: who asks for a file that the storage has lost, or that needs such a file, is told so in words, not
// by the XML of S3, nor by the message of its client.
func TestMissingFile(t *testing.T) {
	_, client, root := kept(t)
	stored, err := root.Root.Head(t.Context(), "ark:/99999/fk4x")
	if err != nil {
		t.Fatal(err)
	}
	file, err := aip.Of(root.Root, stored, 1).Content(t.Context(), "producer/b.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ gone, says string }{
		{file, `producer/b.txt\" of ark:/99999/fk4x v1 is missing in the storage`},
		{ocfl.Inventory(stored.ID, 0).Key, "a stored file that this needs is missing"},
	} {
		if err := root.Bucket.Delete(t.Context(), c.gone); err != nil {
			t.Fatal(err)
		}
		status, text := location(t, client.URL+"/v1/objects/99999/fk4x/versions/1/content?path=producer/b.txt")
		if status != http.StatusNotFound || !strings.Contains(text, c.says) || strings.Contains(text, "RequestID") ||
			strings.Contains(text, c.gone) {
			t.Errorf("%d %s; expected %q", status, text, c.says)
		}
	}
}

// TestContentFromSummary: a process that has just started reads the summary of an inventory instead of the
// inventory, if a consumer has made it.
func TestContentFromSummary(t *testing.T) {
	gets := func(summary bool) int {
		a, client, root := kept(t)
		if summary {
			cache := inventorycache.Cache{Root: root.Root, Derived: root.Derived}
			b := eventsOf(t, a, event.Subject{Type: event.Object, ID: "ark:/99999/fk4x"})
			if failed, err := cache.Handle(t.Context(), b); err != nil || failed != nil {
				t.Fatal(failed, err)
			}
		}
		before := root.Twin.Calls["GET object"]
		status, to := location(t, client.URL+"/v1/objects/99999/fk4x/versions/1/content?path=producer/b.txt")
		if status != http.StatusFound {
			t.Fatal(status, to)
		}
		return root.Twin.Calls["GET object"] - before
	}
	if without, with := gets(false), gets(true); with != without-1 {
		t.Errorf("%d requests with a summary, %d without", with, without)
	}
}

// TestDerivedRoutes: thumbnails and manifests are redirects; where there is none, the answer says why.
func TestDerivedRoutes(t *testing.T) {
	_, client, root := kept(t)
	const object = "/v1/objects/99999/fk4x"
	put := func(key, content string) {
		t.Helper()
		if err := root.Derived.Put(t.Context(), key, []byte(content), bucket.Condition{}); err != nil {
			t.Fatal(err)
		}
	}
	digest := func(content string) string { return aiptest.File("", content).Digests["sha512"] }
	put(derivatives.Key(digest("C")), "thumbnail")
	put(strings.TrimSuffix(derivatives.Key(digest("no image")), ".jpg")+".json", `{"path":"a.png","reason":"it is text"}`)
	for path, want := range map[string]string{
		"/versions/1/thumbnail?path=producer/c.jpg": "thumbnails/",
		"/versions/1/thumbnail?path=producer/a.png": "it is text",
		"/versions/1/thumbnail?path=producer/b.txt": "no image of a type",
		"/versions/1/thumbnail?path=producer/d.png": "has no file",
		"/manifest": "no packaging manifest yet",
	} {
		status, to := location(t, client.URL+object+path)
		if !strings.Contains(to, want) || (status == http.StatusFound) != (want == "thumbnails/") {
			t.Errorf("%s: %d %s; want %q", path, status, to, want)
		}
	}
	put(manifest.Key("ark:/99999/fk4x"), "#%checkm_0.7")
	if status, to := location(t, client.URL+object+"/manifest"); status != http.StatusFound {
		t.Error(status, to)
	}
}
