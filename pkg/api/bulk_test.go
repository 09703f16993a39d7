package api_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"archivist/pkg/api"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/queue/queuetest"
	"archivist/pkg/ingest/stage/stagetest"
	"archivist/pkg/kernel/bucket/buckettest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table/tabletest"
)

// archiveWithFailure is an archive with one job, which has failed because its source does not
// have the file.
func archiveWithFailure(t *testing.T) (c *v1.Client, q *queue.Queue, job string) {
	s3, source := httptest.NewServer(buckettest.New(t.TempDir())), httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(s3.Close)
	t.Cleanup(source.Close)
	m := queuetest.New(tabletest.Table(tabletest.New()), time.Now, 50)
	s := stagetest.New(m, s3.URL)
	srv := httptest.NewServer((&api.API{Open: true, Queue: m.Queue, Inventory: s.Inventory, Collections: s.Collections,
		Identity: s.Identity(), Log: m.Queue.Log}).Handler())
	t.Cleanup(srv.Close)
	c = &v1.Client{URL: srv.URL, HTTP: srv.Client()}
	b, err := c.Submit(t.Context(), v1.BatchRequest{Collection: "maps",
		Payload: v1.Payload{URL: source.URL + "/missing", Type: ingest.TypeFile}}, "")
	if err == nil {
		err = m.Run(t.Context(), 6)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c, m.Queue, ingest.JobID(b.ID, 1)
}

// runOperation does the pages of an operation, as its execution does, until it ends.
func runOperation(t *testing.T, c *v1.Client, q *queue.Queue, o v1.Operation, exec int64) v1.Operation {
	t.Helper()
	for n := 0; o.State == v1.OperationRunning && n < 10; n++ {
		_, err := queue.Admin{Queue: q}.RunPage(t.Context(), o.ID, exec, time.Now().Add(time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		o, err = c.Operation(t.Context(), o.ID)
		if err != nil {
			t.Fatal(err)
		}
	}
	return o
}

// TestOperation: a bulk operation is started, seen and ended through the API. The same key gives
// the same operation, and is refused with another request.
func TestOperation(t *testing.T) {
	c, q, job := archiveWithFailure(t)
	in := v1.OperationRequest{Action: "requeue", ActionOptions: v1.ActionOptions{Reason: "the source is back"},
		Filter: &v1.JobFilter{Batch: job[:26], State: "failed"}}
	o, err := c.Start(t.Context(), in, "key")
	if err != nil || o.State != v1.OperationRunning || o.Filter.State != v1.Failed || o.Action != "requeue" ||
		o.Reason != in.Reason || o.Actor != "an operator" || o.Execution == "" {
		t.Fatalf("it started as %+v, %v", o, err)
	}
	if again, err := c.Start(t.Context(), in, "key"); err != nil || again.ID != o.ID {
		t.Errorf("the same request gave %+v, %v", again, err)
	}
	in.Filter.Message = "404"
	if other, err := c.Start(t.Context(), in, "key"); !fault.Is(err, fault.Conflict) ||
		!strings.Contains(err.Error(), "use a new id") {
		t.Errorf("another request with the key gave %+v, %v", other, err)
	}

	o, err = c.ActOnOperation(t.Context(), o.ID, v1.OperationAction{Action: "interrupt", Reason: "wait"})
	if err != nil || o.State != v1.OperationInterrupted {
		t.Errorf("it was interrupted: %+v, %v", o, err)
	}
	o, err = c.ActOnOperation(t.Context(), o.ID, v1.OperationAction{Action: "continue", Reason: "on"})
	if err != nil || o.State != v1.OperationRunning {
		t.Errorf("it continues: %+v, %v", o, err)
	}
	o = runOperation(t, c, q, o, 2)
	if n := o.Counts; o.State != v1.OperationDone || n.Planned != 1 || n.Done != 1 || n.Left != 0 || o.Ended == "" {
		t.Errorf("it ended as %+v", o)
	}
	all, err := c.Operations(t.Context(), 10)
	if err != nil || len(all) != 1 || all[0].ID != o.ID {
		t.Errorf("the list has %+v, %v", all, err)
	}
	events, err := c.OperationEvents(t.Context(), o.ID)
	if err != nil || len(events) != 4 || events[3].Type != v1.EventOperationDone ||
		!strings.Contains(string(events[0].Detail), `"filter":{"batch":"`) {
		t.Errorf("the events are %+v, %v", events, err)
	}
	if list, err := c.Refusals(t.Context(), o.ID, 0); err != nil || len(list) != 0 {
		t.Errorf("refused are %+v, %v", list, err)
	}
}

// TestRefusedItems: the jobs on which an action is refused are listed with the reasons.
func TestRefusedItems(t *testing.T) {
	c, q, job := archiveWithFailure(t)
	row, err := q.Job(t.Context(), job)
	if err != nil {
		t.Fatal(err)
	}
	row.NotRecoverable = true
	tx := q.Table.Begin("X")
	tx.Save(row)
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	o, err := c.Start(t.Context(), v1.OperationRequest{Action: "requeue", ActionOptions: v1.ActionOptions{Reason: "x"},
		Filter: &v1.JobFilter{Collection: "maps"}}, "")
	if err != nil {
		t.Fatal(err)
	}
	o = runOperation(t, c, q, o, 1)
	list, err := c.Refusals(t.Context(), o.ID, 0)
	if err != nil || o.Counts.Refused != 1 || len(list) != 1 || list[0].Job != job || list[0].Reason == "" {
		t.Errorf("%+v; refused are %+v, %v", o, list, err)
	}
	items, err := c.Items(t.Context(), o.ID, 0)
	if err != nil || len(items) != 1 || items[0] != (v1.OperationItem{Job: job, Outcome: v1.ItemRefused,
		Message: list[0].Reason}) {
		t.Errorf("the items are %+v, %v", items, err)
	}
}

// TestOperationsAreChecked: what is wrong is named by its field, with what is expected.
func TestOperationsAreChecked(t *testing.T) {
	c, _ := serve(t, through)
	for name, k := range map[string]struct{ body, says string }{
		"action": {`{"action":"cancel","filter":{"batch":"b"},"reason":"x"}`, "body.action: expected value to be one of"},
		"state": {`{"action":"requeue","filter":{"state":"done"},"reason":"x"}`,
			`filter.state: found "done"; expected one of Pending`},
		"its state": {`{"action":"requeue","filter":{"state":"held"},"reason":"x"}`,
			`filter.state: found "Held"; requeue acts on jobs that are Failed`},
		"no filter": {`{"action":"fail","reason":"x"}`, "filter: expected a batch, a collection, or one of the states"},
		"before": {`{"action":"requeue","filter":{"state":"Failed","before":"now"},"reason":"x"}`,
			"body.filter.before"},
		"future": {`{"action":"requeue","filter":{"state":"Failed","before":"2999-01-01T00:00:00Z"},"reason":"x"}`,
			"filter.before"},
		"null batch": {`{"action":"delete","filter":{"batch":null,"state":"Failed"},"reason":"x"}`,
			"body.filter.batch: expected a value"},
		"null end": {`{"action":"hold","filter":{"batch":"b"},"until":null,"reason":"x"}`,
			"body.until: expected a value"},
		"no batch": {`{"action":"delete","filter":{"batch":"","state":"Failed"},"reason":"x"}`, "body.filter.batch"},
		"no text":  {`{"action":"delete","filter":{"state":"Failed","message":""},"reason":"x"}`, "body.filter.message"},
		"1970": {`{"action":"requeue","filter":{"state":"Failed","before":"1970-01-01T00:00:00Z"},"reason":"x"}`,
			"filter.before"},
		"filter": {`{"action":"requeue","filter":{"job":"x"},"reason":"x"}`, "body.filter.job: unexpected property"},
		"reason": {`{"action":"requeue","filter":{"state":"Failed"}}`, "property reason"},
		"repair": {`{"action":"requeue","filter":{"state":"Failed"},"reason":"x","repair":true}`,
			"repair: only the doctor"},
		"doctor":       {`{"action":"doctor","filter":{"state":"Failed"},"reason":"x"}`, "filter: the doctor has none"},
		"dry doctor":   {`{"action":"doctor","dryRun":true,"reason":"x"}`, "dryRun: the doctor has none"},
		"blank reason": {`{"action":"doctor","reason":" "}`, "reason: none is given"},
	} {
		resp, text := ask(t, "POST", c.URL+"/v1/operations", k.body)
		text = strings.ReplaceAll(text, `\"`, `"`)
		if resp.StatusCode != 422 || !strings.Contains(text, k.says) && !saysField(text, k.says) {
			t.Errorf("%s: %d %s", name, resp.StatusCode, text)
		}
	}
	for _, path := range []string{"", "/items", "/refusals", "/findings", "/events"} {
		if resp, text := ask(t, "GET", c.URL+"/v1/operations/none"+path, ""); resp.StatusCode != 404 {
			t.Errorf("%s: %d %s", path, resp.StatusCode, text)
		}
	}
}

// TestDoctorIsStarted: the doctor is an operation without jobs.
func TestDoctorIsStarted(t *testing.T) {
	c, _ := serve(t, through)
	o, err := c.Start(t.Context(), v1.OperationRequest{Action: v1.Doctor, Repair: true,
		ActionOptions: v1.ActionOptions{Reason: "check"}}, "")
	if err != nil || o.Action != v1.Doctor || !o.Repair || o.Filter != nil || o.State != v1.OperationRunning {
		t.Errorf("%+v, %v", o, err)
	}
	if list, err := c.Findings(t.Context(), o.ID, 0); err != nil || len(list) != 0 {
		t.Errorf("findings: %+v, %v", list, err)
	}
}

// TestHolds: holds are listed, and shown on the queue, the collection and the batch.
func TestHolds(t *testing.T) {
	c, _ := serve(t, through)
	out, err := c.Submit(t.Context(), good, "")
	if err != nil {
		t.Fatal(err)
	}
	until := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	for _, k := range []struct {
		on ingest.Target
		in v1.Action
	}{
		{ingest.Target{Kind: ingest.TargetCollection, ID: "maps"},
			v1.Action{Action: "hold", Reason: "scanner", Until: until}},
		{ingest.Target{Kind: ingest.TargetStorage}, v1.Action{Action: "pause", Reason: "disks"}},
	} {
		if r, err := c.Act(t.Context(), k.on, k.in, ""); err != nil || !r.Changed {
			t.Fatalf("%v: %+v, %v", k.on, r, err)
		}
	}
	holds, err := c.Holds(t.Context(), 0)
	if err != nil || len(holds) != 2 || holds[0].Target != "storage" || holds[0].Reason != "disks" ||
		holds[1].Target != "collection:maps" || holds[1].Until != until || holds[1].Actor != "an operator" {
		t.Fatalf("the holds are %+v, %v", holds, err)
	}
	queue, err := c.Queue(t.Context())
	if err != nil || len(queue.Holds) != 2 || queue.Holds[1] != holds[1] {
		t.Errorf("the queue shows %+v, %v", queue.Holds, err)
	}
	collection, err := c.Collection(t.Context(), "maps")
	if err != nil || collection.Hold == nil || *collection.Hold != holds[1] {
		t.Errorf("the collection shows %+v, %v", collection.Hold, err)
	}
	batch, err := c.Batch(t.Context(), out.ID)
	if err != nil || batch.Hold == nil || *batch.Hold != holds[1] {
		t.Errorf("the batch shows %+v, %v", batch.Hold, err)
	}
	for path, kind := range map[string]string{"queue": "", "storage": v1.EventStoragePaused} {
		p := page[v1.Event](t, c, "/v1/"+path+"/events")
		if kind == "" && len(p.Items) > 0 || kind != "" && (len(p.Items) != 1 || p.Items[0].Type != kind) {
			t.Errorf("the events of the %s are %+v", path, p.Items)
		}
	}
	resp, text := ask(t, "POST", c.URL+"/v1/collections/a%20b/actions", `{"action":"hold","reason":"x"}`)
	if resp.StatusCode != 422 || !strings.Contains(text, "path.name") {
		t.Errorf("a collection that cannot exist is held: %d %s", resp.StatusCode, text)
	}
}
