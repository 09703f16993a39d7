package api_test

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"archivist/pkg/api"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/events/event"
	"archivist/pkg/ingest"
	"archivist/pkg/kernel/explain"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/objects/inventory"
)

// everything is an API with one thing of each kind; what is made in it is named by its id.
func everything(t *testing.T) (c *v1.Client, a *api.API, ids map[string]string) {
	t.Helper()
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	a, waits := service(through)
	srv := httptest.NewServer(a.Handler())
	t.Cleanup(srv.Close)
	inboxes[srv.URL] = waits
	c = &v1.Client{URL: srv.URL, HTTP: srv.Client()}

	row, err := a.Queue.Submit(ctx, ingest.Batch{Collection: "maps"}, "", nil, "me")
	must(err)
	batch := row.Batch.ID
	must(c.Call(ctx, "POST", "/v1/collections/maps/actions", v1.CollectionAction{Action: "hold",
		ActionOptions: v1.ActionOptions{Reason: "rights are unclear"}}, nil))
	var op v1.Operation
	must(c.Call(ctx, "POST", "/v1/operations", v1.OperationRequest{Action: "doctor",
		ActionOptions: v1.ActionOptions{Reason: "a look"}}, &op))

	const ark = "ark:/99999/fk4x"
	k := event.Subject{Type: event.Object, ID: ark}.Key()
	o := &inventory.Object{Head: table.Head{PK: k.PK, SK: k.SK}, ARK: ark, Collection: "maps", HeadOf: 3}
	tx := a.Queue.Table.Begin(a.Queue.NewID())
	tx.Insert(o)
	inventory.PutLocalIDs(tx, o, []string{"map-1851"})
	must(tx.Commit(ctx))

	_, err = c.CreateItem(ctx, v1.ItemRequest{ID: roll, Reason: "it came"}, "")
	must(err)
	_, err = c.ApplyComponent(ctx, counting, "new", "")
	must(err)
	received := v1.ItemAction{Action: "event", Event: "Received", Reason: "it is here"}
	_, err = c.ActOnItem(ctx, roll, received, "")
	must(err)
	run, err := c.StartRun(ctx, "count-words", v1.ComponentRunRequest{Reason: "now"}, "")
	must(err)
	_, err = c.ApplyConsumer(ctx, searching, "new")
	must(err)
	_, err = c.PutArchive(ctx, "maps", mapsArchive)
	must(err)
	_, err = c.NotifyRevision(ctx, "maps", v1.RevisionNotice{Revision: 2, Transaction: commitHash}, "")
	must(err)

	fill(t, c)
	_, err = c.Hello(ctx, "jingles", v1.ResearchHello{Researcher: "bench-3", Capacity: 1})
	must(err)
	_, err = a.Research.Pass(ctx, "jingles", time.Now().Add(time.Minute))
	must(err)
	work, err := c.NextWork(ctx, "jingles", v1.ResearchNext{Researcher: "bench-3", Token: "one"})
	must(err)
	return c, a, map[string]string{"BATCH": batch, "OPERATION": op.ID, "ARK": ark, "RUN": run.ID,
		"LEASE": work.Lease.ID, "EPISODE": work.Episode.Key, "CLIP": work.Clips[0].Key}
}

// TestExplain: every kind of thing is explained, by its id alone where that is enough.
func TestExplain(t *testing.T) {
	c, _, ids := everything(t)
	for _, k := range []struct {
		id         string
		of         v1.ExplainOf
		kind       string
		waits      explain.Wait
		says, todo string
	}{
		{id: "BATCH", kind: "Batch", waits: explain.Start, says: "Reading the submission"},
		{id: "batch:BATCH", kind: "Batch", waits: explain.Start},
		{id: "OPERATION", kind: "Operation", waits: explain.Worker, todo: "archivist operation interrupt OPERATION"},
		{id: "Collection:maps", kind: "Collection", waits: explain.Hold, says: "rights are unclear",
			todo: "archivist collection release maps"},
		{id: "ARK", kind: "Object", waits: explain.Nothing, says: "Version 3 is preserved; no job works on it."},
		{id: "map-1851", of: v1.ExplainOf{Collection: "maps"}, kind: "Object", waits: explain.Nothing},
		{id: roll, kind: "ComponentItem", waits: explain.Turn, says: "count-words", todo: "archivist component run"},
		{id: roll, of: v1.ExplainOf{Component: "count-words"}, kind: "ComponentItem", waits: explain.Turn},
		{id: "count-words", kind: "Component", waits: explain.Worker, says: "1 more are ready"},
		{id: "RUN", kind: "ComponentRun", waits: explain.Worker, todo: "archivist component interrupt count-words"},
		{id: "mine", kind: "Consumer", waits: explain.Nothing, says: "all events"},
		{id: "Archive:maps", kind: "Archive", waits: explain.Gap, todo: "archivist archive revision notify maps/1"},
		{id: "maps/2", kind: "Revision", waits: explain.Gap, todo: "archivist archive skip maps 1"},
		{id: "jingles", kind: "ResearchProject", waits: explain.Worker, says: "under leases"},
		{id: "jingles/EPISODE", kind: "Episode"},
		{id: "jingles/EPISODE", of: v1.ExplainOf{Clip: "CLIP"}, kind: "Episode", waits: explain.Worker,
			says: "accepted by bench-3", todo: "archivist research revoke jingles LEASE"},
		{id: "jingles/CLIP", kind: "Clip", waits: explain.Nothing, says: "in all episodes"},
		{id: "LEASE", kind: "ResearchLease", waits: explain.Worker, says: "bench-3 works on it: 0 of 2"},
		{id: "jingles/bench-3", kind: "Researcher", waits: explain.Nothing, says: "takes 1 work items"},
		{id: "BATCH", of: v1.ExplainOf{Consumer: "mine", Event: 1}, kind: "Event", waits: explain.Turn,
			says: "no place in the log yet"},
	} {
		fill := strings.NewReplacer("BATCH", ids["BATCH"], "OPERATION", ids["OPERATION"], "ARK", ids["ARK"], "RUN",
			ids["RUN"], "LEASE", ids["LEASE"], "EPISODE", ids["EPISODE"], "CLIP", ids["CLIP"])
		k.of.Clip = fill.Replace(k.of.Clip)
		x, err := c.ExplainWith(t.Context(), fill.Replace(k.id), k.of)
		if err != nil || x.Kind != k.kind || k.waits != "" && x.WaitsFor != string(k.waits) ||
			!strings.Contains(x.Why, k.says) || x.Why == "" || x.Chain[0] != x.ExplainedLink {
			t.Errorf("%s: %+v, %v; want one that waits for %s", k.id, x, err, k.waits)
			continue
		}
		if todo := fill.Replace(k.todo); todo != "" && (len(x.Do) == 0 || !says(x.Do, todo)) {
			t.Errorf("%s: to do is %+v; want %s", k.id, x.Do, todo)
		}
	}
}

// says reports whether one of the steps has a command that begins so.
func says(do []v1.ExplainedStep, command string) bool {
	for _, s := range do {
		if strings.HasPrefix(s.Command, command) {
			return true
		}
	}
	return false
}

// TestExplainRefuses: what names nothing, or several things, is refused, and the reason says what to ask for.
func TestExplainRefuses(t *testing.T) {
	c, _, _ := everything(t)
	maps := searching
	maps.Name = "maps"
	if _, err := c.ApplyConsumer(t.Context(), maps, "the name of an archive"); err != nil {
		t.Fatal(err)
	}
	for _, k := range []struct {
		id   string
		of   v1.ExplainOf
		kind fault.Kind
		says string
	}{
		{id: "maps", kind: fault.Conflict, says: "Archive:maps, Consumer:maps"},
		{id: "none", kind: fault.NotFound, says: `"none" names nothing`},
		{id: "none/none", kind: fault.NotFound, says: "PROJECT/RESEARCHER"},
		{id: "User:ada", kind: fault.Invalid, says: "what a User waits for"},
		{id: "Nothing:ada", kind: fault.Invalid, says: "the types are"},
		{id: "ark:/99999/fk4none", kind: fault.NotFound, says: "fk4none"},
		{id: "ark:99", kind: fault.Invalid, says: "id: "},
		{id: "none", of: v1.ExplainOf{Collection: "maps"}, kind: fault.NotFound, says: `the local id "none"`},
		{id: "Batch:none", of: v1.ExplainOf{Consumer: "mine"}, kind: fault.Invalid, says: "its number"},
		{id: "letters", of: v1.ExplainOf{Collection: "maps", Event: 7}, kind: fault.Invalid, says: "a consumer"},
		{id: "Batch:none", of: v1.ExplainOf{Consumer: "mine", Event: 7}, kind: fault.NotFound, says: "no event 7"},
		{id: roll, of: v1.ExplainOf{Component: "none", Clip: "c"}, kind: fault.Invalid, says: "clip, component: give"},
		{id: roll, of: v1.ExplainOf{Component: "none"}, kind: fault.NotFound, says: "none"},
	} {
		_, err := c.ExplainWith(t.Context(), k.id, k.of)
		if !fault.Is(err, k.kind) || !strings.Contains(err.Error(), k.says) {
			t.Errorf("%s: %v; want %s", k.id, err, k.says)
		}
	}
}

// TestExplainFails: a table that does not answer is not a thing that does not exist.
func TestExplainFails(t *testing.T) {
	broken := errors.New("the table is broken")
	c, _ := serve(t, func(string, func() error) error { return broken })
	if _, err := c.Explain(t.Context(), "maps"); err == nil || fault.Is(err, fault.NotFound) {
		t.Errorf("explained with %v", err)
	}
}

// chained is the explanation whose parts are these; what the last one waits for is gone.
func chained(t *testing.T, parts []explain.Part) explain.Explanation {
	t.Helper()
	next := 0
	x, err := explain.Chain(parts[0], func(string) (explain.Part, error) {
		next++
		if next < len(parts) {
			return parts[next], nil
		}
		return explain.Part{}, fault.New(fault.NotFound, "gone")
	})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// TestWithinLimits: of a chain a depositor is told what is in the own collections, and not what is behind that, since
// when, or until when that waits, or how long a line is in which others stand. One of only the own is told whole.
func TestWithinLimits(t *testing.T) {
	a, _ := service(through)
	batches := map[string]string{}
	for _, name := range []string{"maps", "letters"} {
		b, err := a.Queue.Submit(t.Context(), ingest.Batch{Collection: name}, "", nil, "me")
		if err != nil {
			t.Fatal(err)
		}
		batches[name] = b.ID
	}
	part := func(collection string, waits explain.Wait, on string, since int64) explain.Part {
		p := explain.Part{On: on, Since: since, Until: since + 1,
			Do: []explain.Step{{What: collection}},
			Link: explain.Link{Kind: explain.Batch, ID: batches[collection], Waits: waits,
				Why: "secret of " + collection}}
		p.Add("secret", collection)
		return p
	}
	chain := func(parts ...explain.Part) explain.Explanation { return chained(t, parts) }
	line := part("maps", explain.Limit, "", 7)
	line.Ahead = &explain.Ahead{N: 4711, Line: explain.AtGate, Of: "pending", First: []explain.Before{
		{Kind: explain.Job, ID: "letters-1", State: "Pending", Collection: "letters", Since: 3},
		{Kind: explain.Job, ID: "own-2", State: "Pending", Collection: "maps"},
		{Kind: explain.Job, ID: "unknown", State: "Pending"}}}
	for name, x := range map[string]explain.Explanation{
		"of another": chain(part("maps", explain.Parts, "x", 7), part("letters", explain.Hold, "", 5)),
		"behind an own": chain(part("maps", explain.Parts, "x", 7), part("maps", explain.Lock, "y", 6),
			part("letters", explain.Hold, "", 5)),
		"gone":             chain(part("maps", explain.Lock, "x", 7)),
		"a line":           chain(line),
		"a line behind it": chain(part("maps", explain.Parts, "x", 7), line),
	} {
		got, err := a.WithinLimits(t.Context(), granted("depositor:maps"), x)
		text := fmt.Sprintf("%+v", got)
		if err != nil || strings.Contains(text, "letters") || strings.Contains(text, "4711") || got.Ahead != nil ||
			got.Since != 7 || got.Why == "" || got.Root().Why == "secret of maps" {
			t.Errorf("%s: %s, %v", name, text, err)
		}
		all, err := a.WithinLimits(t.Context(), granted("viewer"), x)
		if err != nil || fmt.Sprintf("%+v", all) != fmt.Sprintf("%+v", x) {
			t.Errorf("%s: a viewer is told %+v, %v", name, all, err)
		}
	}
	line.Ahead = &explain.Ahead{N: 1, Line: explain.AtGate, Of: "pending", First: []explain.Before{
		{Kind: explain.Job, ID: "own-2", State: "Pending", Collection: "maps"}}}
	if got, err := a.WithinLimits(t.Context(), granted("depositor:maps"), chain(line)); err != nil || got.Ahead == nil {
		t.Errorf("before it are %+v, %v", got.Ahead, err)
	}
	gone := part("maps", explain.Hold, "", 6)
	gone.Kind, gone.ID = explain.Batch, "GONE"
	gone.Why = "The report mail to it@example.org could not be delivered."
	got, err := a.WithinLimits(t.Context(), granted("depositor:maps"), chain(gone))
	if err != nil || strings.Contains(fmt.Sprintf("%+v", got), "it@example.org") {
		t.Errorf("of one that was removed meanwhile: %+v, %v", got, err)
	}
	own := chain(part("maps", explain.Parts, "x", 7), part("maps", explain.Hold, "", 6))
	if got, err := a.WithinLimits(t.Context(), granted("depositor:maps"), own); err != nil || got.Since != 6 ||
		got.Root().Why != "secret of maps" || len(got.Do) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}
