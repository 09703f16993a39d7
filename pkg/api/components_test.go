package api_test

import (
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/components/component"
	"archivist/pkg/kernel/fault"
)

var counting = v1.ComponentDefinition{Name: "count-words", Event: "Words_counted", PastSuccess: []string{"Received"},
	Future: []string{"Words_counted"}, Runnable: v1.ComponentRunnable{Function: "count-words"}}

const roll = "item:roll/17:a"

// TestComponents: a component is tried, applied, shown, paused, run and deleted; each change is an event.
func TestComponents(t *testing.T) {
	c, _ := serve(t, through)
	ctx := t.Context()
	create := v1.ItemRequest{ID: roll, ItemShape: v1.ItemShape{Types: []string{"roll"}}, Reason: "it came"}
	if _, err := c.CreateItem(ctx, create, ""); err != nil {
		t.Fatal(err)
	}
	received := v1.ItemAction{Action: "event", Event: "Received", Reason: "it is here"}
	if _, err := c.ActOnItem(ctx, roll, received, ""); err != nil {
		t.Fatal(err)
	}
	tried, err := c.TryComponent(ctx, counting, "")
	if err != nil || !tried.DryRun || tried.Component != nil || strings.Join(tried.Ready, " ") != roll {
		t.Errorf("%+v, %v", tried, err)
	}
	if list, err := c.Components(ctx); err != nil || len(list) != 0 {
		t.Errorf("a dry run made one: %+v, %v", list, err)
	}
	made, err := c.ApplyComponent(ctx, counting, "new", "")
	if err != nil || made.Version != 1 || made.MaxItems != 1000 || made.Timeout.Item != 60 {
		t.Fatalf("%+v, %v", made, err)
	}
	if again, err := c.ApplyComponent(ctx, counting, "twice", ""); err != nil || again.Version != 1 {
		t.Errorf("the same again: %+v, %v", again, err)
	}
	out, err := c.ActOnComponent(ctx, "count-words", v1.ComponentAction{Action: "pause", Reason: "wait"}, "one")
	if err != nil || !out.Component.Paused {
		t.Errorf("%+v, %v", out, err)
	}
	x, err := c.ExplainWith(ctx, roll, v1.ExplainOf{Component: "count-words"})
	if err != nil || x.WaitsFor != "hold" || x.ID != roll ||
		x.Do[0].Command != "archivist component resume count-words --reason TEXT" {
		t.Errorf("%+v, %v", x, err)
	}
	graph, err := c.ComponentGraph(ctx)
	if err != nil || !strings.Contains(graph.DOT, "count-words") || !strings.Contains(graph.Mermaid, "count-words") {
		t.Errorf("%+v, %v", graph, err)
	}
	_, err = c.ActOnComponent(ctx, "count-words", v1.ComponentAction{Action: "delete", Reason: "old"}, "")
	if err != nil {
		t.Error(err)
	}
	if _, err := c.Component(ctx, "count-words"); !fault.Is(err, fault.NotFound) {
		t.Errorf("after its deletion: %v", err)
	}
	var types []string
	changes, err := c.ComponentEvents(ctx, "count-words")
	for _, e := range changes {
		types = append(types, e.Type)
	}
	if got := strings.Join(types, " "); got != "component.created component.paused component.deleted" || err != nil {
		t.Errorf("the events are %s, %v", got, err)
	}
}

// TestSchema: the API has the JSON Schema of definitions.
func TestSchema(t *testing.T) {
	c, _ := serve(t, through)
	resp, text := ask(t, http.MethodGet, c.URL+"/docs/component.schema.json", "")
	if resp.StatusCode != 200 || text != string(component.Schema()) {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
}

// TestDefinitionOnTheWire: every field of a definition is in the API, under the same name.
func TestDefinitionOnTheWire(t *testing.T) {
	var names func(of reflect.Type) []string
	names = func(of reflect.Type) (all []string) {
		if of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		if of.Kind() != reflect.Struct {
			return nil
		}
		for i := range of.NumField() {
			name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
			all = append(all, name)
			for _, inner := range names(of.Field(i).Type) {
				all = append(all, name+"."+inner)
			}
		}
		slices.Sort(all)
		return all
	}
	got, want := names(reflect.TypeFor[v1.ComponentDefinition]()), names(reflect.TypeFor[component.Definition]())
	if !slices.Equal(got, want) {
		t.Errorf("the API has\n%v\na definition\n%v", got, want)
	}
}

// TestLine: what is ready is in the line and in the counts, and a run is started for it once.
func TestLine(t *testing.T) {
	c, _ := serve(t, through)
	ctx := t.Context()
	if _, err := c.ApplyComponent(ctx, counting, "new", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := c.StartRun(ctx, "count-words", v1.ComponentRunRequest{Reason: "now"}, ""); err == nil {
		t.Error("a run without work")
	}
	for _, id := range []string{"item:a", roll} {
		create := v1.ItemRequest{ID: id, Reason: "it came"}
		if _, err := c.CreateItem(ctx, create, ""); err != nil {
			t.Fatal(err)
		}
		received := v1.ItemAction{Action: "event", Event: "Received", Reason: "it is here"}
		if _, err := c.ActOnItem(ctx, id, received, ""); err != nil {
			t.Fatal(err)
		}
	}
	_, err := c.ActOnItem(ctx, roll, v1.ItemAction{Action: "prioritize", Priority: 9, Reason: "soon"}, "")
	if err != nil {
		t.Fatal(err)
	}
	line, err := c.Line(ctx, "count-words", "ready", 0)
	if err != nil || len(line) != 2 || line[0].Item != roll || line[0].Priority != 9 || line[1].Item != "item:a" {
		t.Errorf("%+v, %v", line, err)
	}
	list, err := c.Components(ctx)
	if err != nil || len(list) != 1 || list[0].Counts.Ready != 2 || list[0].OldestReady == "" {
		t.Errorf("%+v, %v", list, err)
	}
	run, err := c.StartRun(ctx, "count-words", v1.ComponentRunRequest{Reason: "now"}, "")
	if err != nil || run.State != v1.RunGoing || run.Reason != "now" {
		t.Fatalf("%+v, %v", run, err)
	}
	if got, err := c.Run(ctx, "count-words", run.ID); err != nil || got.ID != run.ID || len(got.Items) != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	if runs, err := c.Runs(ctx, "count-words", 0); err != nil || len(runs) != 1 || runs[0].ID != run.ID {
		t.Errorf("%+v, %v", runs, err)
	}
	out, err := c.ActOnComponent(ctx, "count-words", v1.ComponentAction{Action: "interrupt", Reason: "wrong"}, "")
	if err != nil || !strings.Contains(out.Summary, run.ID) {
		t.Errorf("%+v, %v", out, err)
	}
	if got, err := c.Run(ctx, "count-words", run.ID); err != nil || got.State != v1.RunInterrupted {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestItems: an item is created, listed, acted upon and shown, with its history.
func TestItems(t *testing.T) {
	c, _ := serve(t, through)
	ctx := t.Context()
	create := v1.ItemRequest{ID: roll, Reason: "it came", ItemShape: v1.ItemShape{Types: []string{"roll"},
		Parents: []v1.EventRef{{Type: "Collection", ID: "maps"}}, Identifiers: []string{"B17"}}}
	for range 2 {
		out, err := c.CreateItem(ctx, create, "key")
		if err != nil || !out.Changed || out.Item.Number != 1 || out.Item.Priority != 5 {
			t.Fatalf("%+v, %v", out, err)
		}
	}
	list, err := c.AllItems(ctx, v1.ItemFilter{Kind: "item", Type: "roll"})
	if err != nil || len(list) != 1 || list[0].ID != roll || list[0].Parents[0].ID != "maps" {
		t.Errorf("%+v, %v", list, err)
	}
	for _, f := range []v1.ItemFilter{{Kind: "batch"}, {Type: "book"}} {
		if list, err := c.AllItems(ctx, f); err != nil || len(list) != 0 {
			t.Errorf("%+v: %+v, %v", f, list, err)
		}
	}
	actions := []v1.ItemAction{
		{Action: "event", Event: "Checked", Outcome: "failure"},
		{Action: "stop"},
		{Action: "restart"},
		{Action: "event", Event: "Checked"},
		{Action: "prioritize", Priority: 9},
		{Action: "change", Shape: &v1.ItemShape{Types: []string{"book"}}},
		{Action: "revoke", Events: []string{"Checked"}},
		{Action: "forget"},
	}
	for i, in := range actions {
		in.Reason = "a test"
		out, err := c.ActOnItem(ctx, roll, in, "")
		if err != nil || !out.Changed || out.Item.Number != int64(i+2) || out.Action != in.Action {
			t.Fatalf("%s: %+v, %v", in.Action, out, err)
		}
	}
	history, err := c.ItemHistory(ctx, roll, 0)
	var got []string
	for _, e := range history {
		name := e.Name
		if e.Revoked {
			name += "-"
		}
		got = append(got, name)
	}
	const want = "item.create Checked- Manually_stopped- item.revoke Checked- item.prioritize item.change " +
		"item.revoke item.forget"
	if strings.Join(got, " ") != want || err != nil || history[0].Context.Actor != "an operator" {
		t.Errorf("%s, %v", strings.Join(got, " "), err)
	}
}

// TestItemRefusals: what cannot be done is refused with the field, and changes nothing.
func TestItemRefusals(t *testing.T) {
	c, _ := serve(t, through)
	if _, err := c.CreateItem(t.Context(), v1.ItemRequest{ID: roll, Reason: "it came"}, ""); err != nil {
		t.Fatal(err)
	}
	for want, in := range map[string]v1.ItemAction{
		"body.action":                        {Action: "burn", Reason: "x"},
		"body.reason":                        {Action: "stop"},
		"events: stop has no such field":     {Action: "stop", Reason: "x", Events: []string{"A"}},
		"event: \"\": expected":              {Action: "event", Reason: "x"},
		"body.priority":                      {Action: "prioritize", Reason: "x", Priority: 10},
		"priority: 0":                        {Action: "prioritize", Reason: "x"},
		"shape: it is missing":               {Action: "change", Reason: "x"},
		"no component \"none\"":              {Action: "release", Reason: "x", Component: "none"},
		"is an event of the system itself":   {Action: "revoke", Reason: "x", Events: []string{"object.create"}},
		"that counts is a failure; name the": {Action: "restart", Reason: "x"},
	} {
		if _, err := c.ActOnItem(t.Context(), roll, in, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if it, err := c.Item(t.Context(), roll); err != nil || it.Number != 1 {
		t.Errorf("%+v, %v", it, err)
	}
	for _, path := range []string{"/v1/item?id=item:none", "/v1/item/history?id=item:none",
		"/v1/components/none/line", "/v1/components/none/runs", "/v1/components/none/runs/x",
		"/v1/explain/item:none?component=none", "/v1/components/none/events"} {
		if resp, text := ask(t, http.MethodGet, c.URL+path, ""); resp.StatusCode != 404 {
			t.Errorf("%s: %d %s", path, resp.StatusCode, text)
		}
	}
	endless := counting
	endless.Future = nil
	_, err := c.ApplyComponent(t.Context(), endless, "x", "")
	if err == nil || !strings.Contains(err.Error(), "for ever") {
		t.Errorf("%v", err)
	}
}

// TestInVain: what a definition asks for in vain is said when it is applied, and whenever it is shown.
func TestInVain(t *testing.T) {
	c, _ := serve(t, through)
	vain := searching
	vain.Filter = "Object+Create|Install"
	made, err := c.ApplyConsumer(t.Context(), vain, "new")
	const install = "filter: Object+install: no event about it has that action"
	if err != nil || strings.Join(made.Warnings, "; ") != install {
		t.Errorf("%q, %v", made.Warnings, err)
	}
	shown, err := c.Consumer(t.Context(), vain.Name)
	if err != nil || strings.Join(shown.Warnings, "; ") != install {
		t.Errorf("%q, %v", shown.Warnings, err)
	}
	if _, err := c.ApplyComponent(t.Context(), counting, "new", ""); err != nil {
		t.Fatal(err)
	}
	behind := counting
	behind.Name, behind.Event, behind.Future = "sum", "Summed", []string{"Summed"}
	behind.PastSuccess = []string{"Word_counted"}
	got, err := c.ApplyComponent(t.Context(), behind, "new", "")
	want := "pastSuccess: no component records Word_counted; did you mean Words_counted?"
	if err != nil || strings.Join(got.Warnings, "; ") != want {
		t.Errorf("%q, %v", got.Warnings, err)
	}
}
