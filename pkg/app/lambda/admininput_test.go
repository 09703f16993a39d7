package lambda

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/fault"
	"archivist/statemachines"
)

// TestAdminInput: what a person may write in the console, and what the first wrong field of
// it is answered.
func TestAdminInput(t *testing.T) {
	const job = "01M7ZBMEYHBB62YP6RY21T1GQ6-00001"
	five := 5
	for _, c := range []struct {
		input string
		want  ingest.Action
		says  string
	}{
		{input: `{"action": "requeue", "target": "` + job + `", "reason": "again", "confirm": true, "dryRun": true}`,
			want: ingest.Action{Name: "requeue", Target: ingest.Target{Kind: "job", ID: job}, Reason: "again",
				Confirm: true, DryRun: true}},
		{input: `{"action": "prioritize", "target": "job:` + job + `", "reason": "now", "priority": 5}`,
			want: ingest.Action{Name: "prioritize", Target: ingest.Target{Kind: "job", ID: job}, Reason: "now",
				Priority: &five}},
		{input: `{"action": "hold", "target": "collection:maps", "reason": "r", "until": "2026-12-31T23:00:00+01:00"}`,
			want: ingest.Action{Name: "hold", Target: ingest.Target{Kind: "collection", ID: "maps"}, Reason: "r",
				Until: 1798754400000}},
		{input: `{"action": "pause", "target": "queue"}`,
			want: ingest.Action{Name: "pause", Target: ingest.Target{Kind: "queue"}}}, // the reason: by its own check
		{input: ``, says: "not a JSON object"},
		{input: `null`, says: "action: none is given"},
		{input: `[]`, says: "not a JSON object"},
		{input: `{}`, says: "action: none is given"},
		{input: `{"action": "requeue"}`, says: "target: none is given"},
		{input: `{"action": 5}`, says: "action: found 5; expected a string"},
		{input: `{"Action": "requeue"}`, says: "Action: unknown field; expected action, target"},
		{input: `{"action": "requeue", "target": "x", "jobs": []}`, says: "jobs: unknown field"},
		{input: `{"action": "requeue", "target": "x"}`, says: "target: found \"x\"; expected job:ID"},
		{input: `{"action": "requeue", "target": {"id": "x"}}`, says: `target: found {"id": "x"}; expected a string`},
		{input: `{"action": "requeue", "target": "queue", "confirm": "yes"}`,
			says: `confirm: found "yes"; expected true or false`},
		{input: `{"action": "pause", "target": "queue", "until": "tomorrow"}`,
			says: `until: found "tomorrow"; expected a time in ISO 8601, e.g. 2026-11-22T18:00:00Z`},
		{input: `{"action": "prioritize", "target": "queue", "priority": 1.5}`, says: "found 1.5; expected a whole number"},
		{input: `{"action": "requeue", "target": "queue", "repair": true}`, says: "repair: unknown field"},
		{input: `{"action": "requeue", "target": "queue", "filter": {}}`, says: "not both"},
		{input: `{"action": "pause", "target": "queue", "until": ""}`, says: `until: found ""; expected a string`},
		{input: `{"action": "doctor", "target": "queue"}`, says: "target: unknown field; expected action, reason"},
		{input: `{"operation": "x", "exec": 1, "action": "requeue"}`,
			says: "action: unknown field; expected operation, exec"},
		{input: `{"` + strings.Repeat("x", 500) + `": 1}`, says: "x…: unknown field"},
	} {
		in, err := readInput([]byte(c.input))
		got, said := ingest.Action{}, err
		if err == nil {
			got, said = in.action()
		}
		switch {
		case c.says == "":
			if said != nil || !same(got, c.want) {
				t.Errorf("%s: %+v, %v", c.input, got, said)
			}
		case !fault.Is(said, fault.Invalid) || !strings.Contains(said.Error(), c.says) || len(said.Error()) > 500:
			t.Errorf("%s is answered %v; expected %q", c.input, said, c.says)
		}
	}
}

// TestAdminFilter: a state is accepted in any case of letters, as by the API.
func TestAdminFilter(t *testing.T) {
	in, err := readInput([]byte(`{"action": "requeue", "filter": {"state": "FAILED"}, "reason": "again"}`))
	if err != nil {
		t.Fatal(err)
	}
	in.Filter = json.RawMessage(`{"batch": "", "state": "Failed"}`)
	if b, err := in.bulk(); err == nil || err.Error() != `filter.batch: found ""; expected a string` {
		t.Errorf("without the id of the batch: %+v, %v", b, err)
	}
	in.Filter = json.RawMessage(`{"state": "FAILED"}`)
	if b, err := in.bulk(); err != nil || b.Filter != (ingest.Filter{State: ingest.Failed}) {
		t.Errorf("%+v, %v", b, err)
	}
}

func same(a, b ingest.Action) bool {
	if a.Priority != nil && b.Priority != nil && *a.Priority == *b.Priority {
		a.Priority, b.Priority = nil, nil
	}
	return a == b
}

// TestAdminExamples: the inputs that the documents and the definition's comment show are
// accepted.
func TestAdminExamples(t *testing.T) {
	document, err := os.ReadFile("../../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	var definition struct{ Comment string }
	if err := json.Unmarshal([]byte(statemachines.Definitions[queue.MachineAdmin]), &definition); err != nil {
		t.Fatal(err)
	}
	_, comment, _ := strings.Cut(definition.Comment, ": ")
	for from, examples := range map[string][]string{"the document": strings.Split(string(document), "\n"),
		"the comment": strings.Split(comment, " | ")} {
		found := 0
		for _, example := range examples {
			if !strings.HasPrefix(example, `{"action"`) {
				continue
			}
			found++
			in, err := readInput([]byte(example))
			if err == nil && in.Filter != nil {
				_, err = in.bulk()
			} else if err == nil && in.Action != ingest.ActDoctor {
				_, err = in.action()
			}
			if err != nil || in.Reason == "" {
				t.Errorf("%s shows %s: %v", from, example, err)
			}
		}
		if found < 5 {
			t.Errorf("%s shows %d inputs", from, found)
		}
	}
}
