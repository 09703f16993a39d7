package api_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"archivist/pkg/api"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue/queuetest"
	"archivist/pkg/ingest/stage/stagetest"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/bucket/buckettest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/pkg/objects/ocfl"
)

// TestIdentityRoutes: a reindex lists the objects that it cannot read, too. A job that a
// later submission has overtaken is requeued only with a confirmation.
func TestIdentityRoutes(t *testing.T) {
	s3 := httptest.NewServer(buckettest.New(t.TempDir()))
	defer s3.Close()
	source := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/missing" {
			http.NotFound(w, r)
		}
		_, _ = w.Write([]byte(r.URL.Path))
	}))
	defer source.Close()
	m := queuetest.New(tabletest.Table(tabletest.New()), time.Now, 50)
	s := stagetest.New(m, s3.URL)
	a := &api.API{Open: true, Queue: m.Queue, Inventory: s.Inventory, Collections: s.Collections,
		Root: s.Root, Work: s.Work.Bucket,
		Identity: s.Identity(), Log: m.Queue.Log}
	srv := httptest.NewServer(a.Handler())
	defer srv.Close()
	client := &v1.Client{URL: srv.URL, HTTP: srv.Client()}
	submit := func(name, id string) string {
		b, err := m.Queue.Submit(t.Context(), ingest.Batch{Collection: "maps", Mode: "add", LocalIDs: []string{id},
			Payload: ingest.Payload{URL: source.URL + name, Type: ingest.TypeFile, Filename: "a"}}, "", nil, "me")
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Run(t.Context(), 6); err != nil {
			t.Fatal(err)
		}
		return ingest.JobID(b.ID, 1)
	}
	primary := func(job string) string {
		j, err := m.Queue.Job(t.Context(), job)
		if err != nil || j.State != ingest.Completed {
			t.Fatalf("%+v, %v", j, err)
		}
		return j.Primary
	}
	old := submit("/missing", "one")
	good, bad := primary(submit("/a", "one")), primary(submit("/b", "two"))

	act := v1.Action{Action: "requeue", Reason: "it is there now"}
	_, err := client.ActOnJob(t.Context(), old, act, "")
	if !fault.Is(err, fault.Conflict) || !errors.Is(err, ingest.ErrUnconfirmed) ||
		!strings.Contains(err.Error(), "version 1 of "+good) {
		t.Errorf("the requeue gave %v", err)
	}
	act.Confirm = true
	if _, err := client.ActOnJob(t.Context(), old, act, ""); err != nil {
		t.Errorf("the confirmed requeue gave %v", err)
	}

	if err := s.Root.Bucket.Put(t.Context(), ocfl.Prefix(bad)+"inventory.json", []byte("{}"),
		bucket.Condition{}); err != nil {
		t.Fatal(err)
	}
	if err := s.Inventory.Table.Rows.Delete("pk", "OBJECT#"+good).Range("sk", "OBJECT").Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	did, err := client.Reindex(t.Context(), v1.ReindexRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if did.Objects != 2 || did.Changed != 1 || did.Cursor != "" || len(did.Failed) != 1 ||
		!strings.HasPrefix(did.Failed[0].Stored, ocfl.Prefix(bad)) || did.Failed[0].Why == "" {
		t.Errorf("it did %+v", did)
	}
	for ark, kind := range map[string]fault.Kind{"nonsense": fault.Invalid, "ark:/99999/fk4none": fault.NotFound} {
		if _, err := client.Reindex(t.Context(), v1.ReindexRequest{ARK: ark}); !fault.Is(err, kind) {
			t.Errorf("%s: %v", ark, err)
		}
	}
}
