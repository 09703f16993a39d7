package api_test

import (
	"slices"
	"strings"
	"testing"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// failedJob puts a job that failed into the table.
func failedJob(t *testing.T, q *queue.Queue) (id string) {
	t.Helper()
	const batch = "01M7ZBMEYHBB62YP6RY21T1GQ6"
	id = ingest.JobID(batch, 1)
	tx := q.Table.Begin("X")
	tx.Insert(&queue.Batch{Head: table.Head{PK: "BATCH#" + batch, SK: "BATCH"},
		Batch: ingest.Batch{ID: batch, Collection: "maps", State: ingest.BatchFailed, Expected: 1}})
	tx.Insert(&queue.Counts{Head: table.Head{PK: "BATCH#" + batch, SK: "COUNT"}, Counts: ingest.Counts{Failed: 1}})
	tx.Insert(&queue.Job{Head: table.Head{PK: "JOB#" + id, SK: "JOB"},
		Job: ingest.Job{
			ID:             id,
			Batch:          batch,
			Collection:     "maps",
			State:          ingest.Failed,
			LastSuccessful: ingest.Provisioning,
		}})
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	return id
}

// TestActOnJob: a dry run says what would be done and changes nothing. The action answers
// with its result and the job. Events show the name of the person as unverified.
func TestActOnJob(t *testing.T) {
	c, q := serve(t, through)
	id := failedJob(t, q)
	act := v1.Action{Action: "requeue", Reason: "the source is back", DryRun: true}
	plan, err := c.ActOnJob(t.Context(), id, act, "")
	if err != nil || plan.Changed || !plan.DryRun || plan.From != v1.Failed || plan.To != v1.Downloading ||
		plan.State != v1.Failed {
		t.Errorf("the dry run gave %+v, %v", plan, err)
	}
	act.DryRun = false
	c.User = `ann" (verified`
	done, err := c.ActOnJob(t.Context(), id, act, "key")
	if err != nil || !done.Changed || done.DryRun || done.Target != "job:"+id || done.To != v1.Downloading ||
		done.State != v1.Downloading || done.ID != id || !strings.Contains(done.Summary, id) {
		t.Errorf("the action gave %+v, %v", done, err)
	}
	again, err := c.ActOnJob(t.Context(), id, act, "key")
	if err != nil || again.Summary != done.Summary || !again.Changed {
		t.Errorf("the same request gave %+v, %v", again, err)
	}
	events, err := c.Events(t.Context(), id)
	if err != nil || len(events) != 1 || events[0].Actor != `an operator (unverified: "ann\" (verified")` {
		t.Errorf("the events are %+v, %v", events, err)
	}
	if _, err := c.ActOnJob(t.Context(), id, act, "other"); !fault.Is(err, fault.Conflict) ||
		!strings.Contains(err.Error(), "is Downloading") {
		t.Errorf("a job that is not Failed was requeued: %v", err)
	}
}

// TestActionsAreChecked: what is wrong is named by its field, with what is expected.
func TestActionsAreChecked(t *testing.T) {
	c, q := serve(t, through)
	job := "/v1/jobs/" + failedJob(t, q)
	for name, k := range map[string]struct{ path, body, says string }{
		"unknown": {job, `{"action":"retry","reason":"x"}`,
			"body.action: expected value to be one of \"hold, release, requeue, fail, delete, prioritize, clean-up\""},
		"of a batch": {job, `{"action":"cancel","reason":"x"}`, "body.action: expected value to be one of"},
		"of a job": {"/v1/batches/none", `{"action":"requeue","reason":"x"}`,
			"\"hold, release, cancel, delete, update-report, clean-up\""},
		"of the queue": {"/v1/collections/maps", `{"action":"pause","reason":"x"}`, "\"hold, release\""},
		"no action":    {job, `{"reason":"x"}`, "property action"},
		"no reason":    {job, `{"action":"requeue"}`, "property reason"},
		"blank reason": {job, `{"action":"requeue","reason":" "}`, "reason: none is given"},
		"two lines":    {job, `{"action":"requeue","reason":"a\nb"}`, "reason"},
		"no priority":  {job, `{"action":"prioritize","reason":"x"}`, "priority: none is given; expected 0 (first) to 999"},
		"priority":     {job, `{"action":"prioritize","reason":"x","priority":1000}`, "body.priority"},
		"its priority": {job, `{"action":"requeue","reason":"x","priority":1}`, "priority: only prioritize has one"},
		"a priority":   {"/v1/queue", `{"action":"pause","reason":"x","priority":1}`, "body.priority: unexpected property"},
		"until":        {job, `{"action":"hold","reason":"x","until":"tomorrow"}`, "body.until"},
		"past":         {job, `{"action":"hold","reason":"x","until":"2020-01-01T00:00:00Z"}`, "until: 2020-01-01T00:00:00Z"},
		"1970":         {job, `{"action":"hold","reason":"x","until":"1970-01-01T00:00:00Z"}`, "until: found \"1970"},
		"no end":       {job, `{"action":"requeue","reason":"x","until":"2999-01-01T00:00:00Z"}`, "until: only hold"},
		"a field":      {job, `{"action":"requeue","reason":"x","force":true}`, "body.force: unexpected property"},
	} {
		resp, text := ask(t, "POST", c.URL+k.path+"/actions", k.body)
		text = strings.ReplaceAll(text, `\"`, `"`)
		if resp.StatusCode != 422 || !strings.Contains(text, k.says) && !saysField(text, k.says) {
			t.Errorf("%s: %d %s", name, resp.StatusCode, text)
		}
	}
	for name, value := range map[string]string{v1.UserHeader: "a\tb", "Idempotency-Key": "a\tb"} {
		resp, text := ask(t, "POST", c.URL+job+"/actions", `{"action":"requeue","reason":"x"}`, name, value)
		if resp.StatusCode != 422 || !strings.Contains(text, name) {
			t.Errorf("%s: %d %s", name, resp.StatusCode, text)
		}
	}
}

// saysField reports whether a refusal has a message about a location: "body.a: message".
func saysField(text, says string) bool {
	location, message, found := strings.Cut(says, ": ")
	return found && strings.Contains(text, `"location":"`+location+`"`) && strings.Contains(text, message)
}

// TestActionsAgree: the routes have the actions of the rules, in their order.
func TestActionsAgree(t *testing.T) {
	schemas := document(t)["components"].(object)["schemas"].(object)
	for name, kind := range map[string]ingest.TargetKind{"JobAction": ingest.TargetJob,
		"BatchAction":      ingest.TargetBatch,
		"CollectionAction": ingest.TargetCollection, "PauseAction": ingest.TargetQueue} {
		action := schemas[name].(object)["properties"].(object)["action"].(object)
		var got []ingest.ActionName
		for _, v := range action["enum"].([]any) {
			got = append(got, ingest.ActionName(v.(string)))
		}
		if want := ingest.Actions[kind]; !slices.Equal(got, want) {
			t.Errorf("%s has %v, a %s has %v", name, got, kind, want)
		}
		for _, a := range got {
			if !strings.Contains(action["description"].(string), string(a)+": ") {
				t.Errorf("%s does not describe %s", name, a)
			}
		}
	}
	if !slices.Equal(ingest.Actions[ingest.TargetQueue], ingest.Actions[ingest.TargetStorage]) {
		t.Error("queue and storage have other actions")
	}
}
