package doctor_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/lease"
	"archivist/pkg/kernel/table"
	"archivist/pkg/revisions/archive"
	"archivist/pkg/revisions/revision"
	"archivist/pkg/revisions/runner"
	"archivist/pkg/revisions/workflow"
)

// shelves is an archive in memory whose revisions all have one definition.
type shelves struct{ revisions int64 }

const tasksOfShelves = `
- {name: index, command: x, depends: [PREV]}
- {name: pdf, was: print, command: x, depends: [index], cancels: [PREV]}
- {name: copy, command: x, lock: disk}
`

func (s shelves) Head(context.Context) (int64, error) { return s.revisions, nil }

func (s shelves) Revision(_ context.Context, n int64) (archive.Revision, error) {
	if n > s.revisions {
		return archive.Revision{}, fault.New(fault.NotFound, "there is no revision %d", n)
	}
	return archive.Revision{Number: n, Transaction: fmt.Sprintf("t%d", n)}, nil
}

func (s shelves) Workflows(context.Context, int64) ([]workflow.File, error) {
	return []workflow.File{{Path: workflow.Folder + "/all.yaml", Data: []byte(tasksOfShelves)}}, nil
}

func (s shelves) Changed(context.Context, int64, int64) ([]string, error)         { return nil, nil }
func (s shelves) Checkout(context.Context, int64, string) error                   { return nil }
func (s shelves) opens(context.Context, archive.Location) (archive.Source, error) { return s, nil }

// queued is a world with an archive of four revisions. Revision 1 has ended. In revision 2, index and copy run; in
// revision 3, all but COMMIT wait. Revision 5 was notified, revision 4 was not.
func queued(t *testing.T) *world {
	w := newWorld(t)
	q := w.doctor().Queue
	begun := map[string]revision.Execution{}
	s := &revision.Store{Table: q.Table, Now: q.Now, NewID: q.NewID, Secret: func() string { return "secret" },
		Leases: &lease.Store{Table: q.Table, Now: q.Now, NewID: q.NewID}, Times: revision.Default,
		Open:  shelves{5}.opens,
		Start: func(_ context.Context, e revision.Execution) error { begun[e.Instance] = e; return nil }}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	pass := func() { _, err := s.Pass(t.Context(), "maps", s.Now().Add(time.Minute)); must(err) }
	by := revision.By{Actor: "ann", Reason: "a test"}
	_, err := s.Add(t.Context(), "maps", revision.Settings{Baseline: 1, Reconcile: -1,
		Location: archive.Location{Kind: archive.Git, URL: "x"}}, by)
	must(err)
	notify := func(n int64) { _, err := s.Notify(t.Context(), "maps", revision.Notice{Revision: n}, by); must(err) }
	notify(1)
	for range 4 {
		pass()
		for _, id := range slices.Sorted(maps.Keys(begun)) {
			_, _, _, err := s.Begin(t.Context(), begun[id])
			must(err)
			_, _, err = s.End(t.Context(), begun[id], runner.Result{End: runner.Succeeded})
			must(err)
			delete(begun, id)
		}
	}
	notify(2)
	notify(3)
	notify(5)
	pass()
	for _, id := range []string{"maps/2/index", "maps/2/copy"} {
		_, _, _, err := s.Begin(t.Context(), begun[id])
		must(err)
	}
	_, err = s.StartRun(t.Context(), "maps", revision.Run{Task: "index", Revision: 1, Key: "again"}, by)
	must(err)
	pass()
	w.sweep()
	return w
}

// Rows of the revision queue.

func taskKey(id string) table.Key { return key("TASK#maps/"+id, "TASK") }
func revisionKey(n int) table.Key { return key(fmt.Sprintf("REVISION#maps/%d", n), "REVISION") }
func waiterRow(on, id string) table.Key {
	return key("TASK#maps/"+on, "WAITER#maps/"+id)
}
func task(id string) func(*world) string { return func(*world) string { return "task:maps/" + id } }
func rev(n int) func(*world) string {
	return func(*world) string { return fmt.Sprintf("revision:maps/%d", n) }
}
func maps1(*world) string { return "archive:maps" }

// revise changes the JSON of an instance.
func (w *world) revise(id string, f func(doc map[string]any)) {
	w.Helper()
	var doc map[string]any
	err := json.Unmarshal([]byte(w.text(taskKey(id), "instance_json")), &doc)
	if err != nil {
		w.Fatal(err)
	}
	f(doc)
	data, err := json.Marshal(doc)
	if err != nil {
		w.Fatal(err)
	}
	w.set(taskKey(id), "instance_json", str(string(data)))
}

// verdict sets what became of an edge.
func (w *world) verdict(id string, edge int, verdict, end string) {
	w.revise(id, func(doc map[string]any) {
		e := doc["edges"].([]any)[edge].(map[string]any)
		e["verdict"], e["end"] = verdict, end
	})
}

var lockOfDisk = key("TASKLOCK#maps#disk", "LOCK")

// dueOf is the row of the line that says when an instance is looked at again.
func (w *world) dueOf(order string) table.Key {
	w.Helper()
	due := w.rowsIn("TASKLINE#maps", "due#")
	i := slices.IndexFunc(due, func(k table.Key) bool { return strings.Contains(k.SK, order) })
	if i < 0 {
		w.Fatalf("nothing is due of %s", order)
	}
	return due[i]
}

// inLine is the first row of the line of the archive that begins so.
func (w *world) inLine(prefix string) table.Key {
	w.Helper()
	return w.firstIn("TASKLINE#maps", prefix)
}

// ofRevisions are the damages of a world with the revision queue.
var ofRevisions = []damage{
	{"a running instance without its row in the line", func(w *world) {
		w.drop(w.inLine("run#000000000002#001#index"))
	}, one("revision-place", task("2/index")), true},
	{"a running instance at whose end nobody looks", func(w *world) {
		w.drop(w.dueOf("2#001#copy"))
	}, one("revision-place", task("2/copy")), true},
	{"a waiting instance that is not in the line of its lock", func(w *world) {
		w.drop(key("TASKLOCK#maps#disk", "000000000003#001#copy#000000"))
	}, one("revision-place", task("3/copy")), true},
	{"an instance that no superseder would find", func(w *world) {
		w.drop(key("TASKLIVE#maps#pdf", "000000000002#002#pdf#000000"))
	}, one("revision-place", task("2/pdf")), true},
	{"a row of a line of no instance", func(w *world) {
		w.insert(key("TASKLINE#maps", "start#x#maps"), "owned_by", str("maps/9/none"))
	}, one("revision-line", row("TASKLINE#maps", "start#x#maps")), true},
	{"a row of a line where its instance is not", func(w *world) {
		w.insert(key("TASKLIVE#maps#index", "000000000001#001#index#000000"), "owned_by", str("maps/1/index"))
	}, one("revision-line", row("TASKLIVE#maps#index", "000000000001#001#index#000000")), true},
	{"a row of a lock's line of an instance that has ended", func(w *world) {
		w.insert(key("TASKLOCK#maps#disk", "000000000001#001#copy#000000"), "owned_by", str("maps/1/copy"))
	}, one("revision-line", row("TASKLOCK#maps#disk", "000000000001#001#copy#000000")), true},
	{"a revision that is to be planned, and is not in the line", func(w *world) { w.drop(w.inLine("plan#")) },
		one("revision-place", rev(5)), true},
	{"a planned revision in the line of those to be planned", func(w *world) {
		w.insert(key("TASKLINE#maps", "plan#maps#000000000002"), "owned_by", str("maps/2"))
	}, one("revision-line", row("TASKLINE#maps", "plan#maps#000000000002")), true},
	{"a revision in the line that there is not", func(w *world) {
		w.insert(key("TASKLINE#maps", "plan#maps#000000000009"), "owned_by", str("maps/9"))
	}, one("revision-line", row("TASKLINE#maps", "plan#maps#000000000009")), true},
	{"an instance and a revision that are not listed", func(w *world) {
		w.set(taskKey("3/pdf"), "since", str("x"))
		w.set(revisionKey(5), "shelf", nil)
	}, func(w *world) []string {
		return []string{"revision-place " + task("3/pdf")(w), "revision-place " + rev(5)(w)}
	}, true},
	{"an instance that has ended, and does not say so", func(w *world) { w.set(taskKey("1/index"), "over_ms", nil) },
		one("revision-place", task("1/index")), true},
	{"an awaited instance that does not know who waits", func(w *world) { w.drop(waiterRow("2/index", "3/index")) },
		one("revision-edges", task("3/index")), true},
	{"a decided edge on an instance that has not ended", func(w *world) {
		w.verdict("3/index", 1, "satisfied", "succeeded")
	}, func(w *world) []string {
		return []string{"revision-edges " + task("3/index")(w), "revision-edges " + task("3/index")(w),
			"revision-waiter " + waiterRow("2/index", "3/index").String()}
	}, true},
	{"an edge that waits for what is settled", func(w *world) { w.verdict("3/index", 0, "", "") },
		one("revision-edges", task("3/index")), true},
	{"an edge that is decided as it did not end", func(w *world) { w.verdict("3/index", 0, "impossible", "failed") },
		func(w *world) []string {
			return []string{"revision-edges " + task("3/index")(w), "revision-edges " + task("3/index")(w)}
		}, true},
	{"a wrong edge of an instance that runs", func(w *world) { w.verdict("2/index", 1, "impossible", "failed") },
		one("revision-edges", task("2/index")), false},
	{"an edge on an instance that is gone", func(w *world) { w.drop(taskKey("1/index")) }, func(w *world) []string {
		return []string{"revision-row " + rev(1)(w), "revision-row " + task("2/index")(w),
			"revision-names " + key("TASKNAMES#maps", "index").String()}
	}, false},
	{"an instance that nothing lets start", func(w *world) {
		w.set(lockOfDisk, "holder_id", nil)
		w.revise("2/copy", func(doc map[string]any) { doc["lock"] = "" })
		w.drop(key("TASKLOCK#maps#disk", "000000000002#001#copy#000000"))
	}, one("revision-lock", task("3/copy")), true},
	{"a link to an object of no archive", func(w *world) {
		w.insert(key("ARCHIVEOF#ark:/99999/fk4", "maps"), "owned_by", str("maps"))
	}, one("revision-line", row("ARCHIVEOF#ark:/99999/fk4", "maps")), true},
	{"an object's archive without its link", func(w *world) {
		k := key("ARCHIVE#maps", "ARCHIVE")
		w.set(k, "archive_json", str(strings.Replace(w.text(k, "archive_json"), `"kind":"git"`,
			`"kind":"object","ark":"ark:/99999/fk4"`, 1)))
	}, one("revision-place", maps1), true},
	{"a waiter that does not wait", func(w *world) {
		w.insert(waiterRow("3/index", "2/pdf"), "owned_by", str("maps/2/pdf"))
	}, one("revision-waiter", row("TASK#maps/3/index", "WAITER#maps/2/pdf")), true},
	{"a waiter that there is not", func(w *world) {
		w.insert(waiterRow("3/index", "9/none"), "owned_by", str("maps/9/none"))
	}, one("revision-waiter", row("TASK#maps/3/index", "WAITER#maps/9/none")), true},
	{"a waiter that has ended, at one that is settled", func(w *world) {
		w.insert(waiterRow("1/index", "1/pdf"), "owned_by", str("maps/1/pdf"))
	}, one("revision-waiter", row("TASK#maps/1/index", "WAITER#maps/1/pdf")), true},
	{"a revision that counts its instances wrongly", func(w *world) { w.set(revisionKey(3), "all_n", num(7)) },
		one("revision-counts", rev(3)), true},
	{"a revision that counts those that have ended wrongly", func(w *world) {
		w.set(revisionKey(1), "over_n", num(1))
	}, one("revision-counts", rev(1)), true},
	{"a lock whose holder has ended", func(w *world) {
		w.set(lockOfDisk, "holder_id", str("maps/1/copy"))
	}, func(w *world) []string {
		return []string{"revision-lock " + lockOfDisk.String(), "revision-lock " + task("2/copy")(w)}
	}, true},
	{"a lock whose holder there is not", func(w *world) {
		w.set(lockOfDisk, "holder_id", str("maps/9/copy"))
	}, func(w *world) []string {
		return []string{"revision-lock " + lockOfDisk.String(), "revision-lock " + task("2/copy")(w)}
	}, true},
	{"an instance that runs without its lock", func(w *world) {
		w.set(lockOfDisk, "holder_id", nil)
	}, one("revision-lock", task("2/copy")), true},
	{"a lock of one that has not started", func(w *world) {
		w.set(lockOfDisk, "holder_id", str("maps/3/copy"))
	}, func(w *world) []string {
		return []string{"revision-lock " + task("2/copy")(w), "revision-lock " + lockOfDisk.String()}
	}, true},
	{"a run without an execution", func(w *world) {
		w.revise("2/index", func(doc map[string]any) { delete(doc, "exec") })
	}, func(w *world) []string {
		return []string{"revision-attempt " + task("2/index")(w),
			"revision-names " + key("TASKNAMES#maps", "index").String()}
	}, false},
	{"a run without an end", func(w *world) {
		w.revise("2/index", func(doc map[string]any) { delete(doc, "until") })
	}, func(w *world) []string {
		return []string{"revision-attempt " + task("2/index")(w), "revision-line " + w.dueOf("2#001#index").String()}
	}, true},
	{"an archive that is looked at too late", func(w *world) {
		w.set(key("ARCHIVE#maps", "WAKE"), "ranking", str("1900000000000#maps"))
	}, one("revision-wake", row("ARCHIVE#maps", "WAKE")), true},
	{"an archive that is never looked at", func(w *world) {
		w.set(key("ARCHIVE#maps", "WAKE"), "place", nil)
		w.set(key("ARCHIVE#maps", "WAKE"), "ranking", nil)
	}, one("revision-wake", row("ARCHIVE#maps", "WAKE")), true},
	{"an archive without the time at which it is looked at", func(w *world) { w.drop(key("ARCHIVE#maps", "WAKE")) },
		one("revision-wake", maps1), true},
	{"a time of no archive", func(w *world) { w.insert(key("ARCHIVE#none", "WAKE")) },
		one("revision-wake", row("ARCHIVE#none", "WAKE")), true},
	{"a task that is known to have been planned before", func(w *world) {
		w.set(key("TASKNAMES#maps", "index"), "latest_n", num(2))
		w.set(key("TASKNAMES#maps", "index"), "before_n", num(1))
	}, one("revision-names", task("3/index")), true},
	{"a success that is not known", func(w *world) { w.set(key("TASKNAMES#maps", "pdf"), "succeeded_n", nil) },
		one("revision-names", task("1/pdf")), true},
	{"a start that is not known", func(w *world) { w.set(key("TASKNAMES#maps", "pdf"), "started_n", nil) },
		one("revision-names", task("1/pdf")), true},
	{"a start that is not known of the former name", func(w *world) {
		w.set(key("TASKNAMES#maps", "print"), "started_n", nil)
	}, one("revision-names", task("1/pdf")), true},
	{"a start of which each is wanted, that is not known", func(w *world) {
		w.set(key("TASKNAMES#maps", "index"), "started_n", num(1))
		w.set(key("TASKNAMES#maps", "index"), "starter_id", str("maps/1/index"))
	}, one("revision-names", task("2/index")), true},
	{"a start that there is not", func(w *world) { w.set(key("TASKNAMES#maps", "pdf"), "started_n", num(3)) },
		one("revision-names", row("TASKNAMES#maps", "pdf")), false},
	{"a start of another task", func(w *world) {
		w.set(key("TASKNAMES#maps", "pdf"), "starter_id", str("maps/1/index"))
	}, one("revision-names", row("TASKNAMES#maps", "pdf")), false},
	{"a run by hand that is not known", func(w *world) { w.set(key("TASKNAMES#maps", "index"), "runs_n", nil) },
		one("revision-names", task("1/index/1")), true},
	{"a success that there is not", func(w *world) { w.set(key("TASKNAMES#maps", "pdf"), "succeeded_n", num(3)) },
		one("revision-names", row("TASKNAMES#maps", "pdf")), false},
	{"a revision that is not planned, below the watermark", func(w *world) {
		w.set(revisionKey(2), "revision_json", str(strings.Replace(w.text(revisionKey(2), "revision_json"),
			`"planned":`, `"forgotten":`, 1)))
	}, one("revision-plan", rev(2)), false},
	{"a revision that is planned, above the watermark", func(w *world) {
		w.set(key("ARCHIVE#maps", "ARCHIVE"), "archive_json", str(strings.Replace(w.text(key("ARCHIVE#maps", "ARCHIVE"),
			"archive_json"), `"watermark":3`, `"watermark":2`, 1)))
	}, one("revision-plan", rev(3)), false},
	{"a definition that is gone", func(w *world) { w.drop(w.definition()) }, func(w *world) []string {
		return []string{"revision-row " + rev(1)(w), "revision-row " + rev(2)(w), "revision-row " + rev(3)(w)}
	}, false},
	{"a definition that is another", func(w *world) {
		k := w.definition()
		w.set(k, "workflow_json", str(strings.Replace(w.text(k, "workflow_json"), `"x"`, `"y"`, 1)))
	}, one("revision-row", func(w *world) string { return w.definition().String() }), false},
	{"a COMMIT that is gone", func(w *world) { w.drop(taskKey("3/COMMIT")) }, func(w *world) []string {
		return []string{"revision-row " + rev(3)(w), "revision-row " + task("3/copy")(w),
			"revision-row " + task("3/pdf")(w), "revision-row " + task("3/index")(w)}
	}, false},
	{"a request whose run there is not", func(w *world) {
		w.set(key("TASKRUNS#maps", "again"), "instance_id", str("maps/1/index/7"))
	}, one("revision-row", row("TASKRUNS#maps", "again")), true},
	{"an instance in another state than its events say", func(w *world) {
		w.revise("1/pdf", func(doc map[string]any) { doc["state"] = "failed" })
	}, func(w *world) []string {
		return []string{"event-state " + task("1/pdf")(w), "revision-names " + key("TASKNAMES#maps", "pdf").String()}
	}, false},
	{"an instance without its newest event", func(w *world) { w.set(taskKey("1/index"), "version", num(9)) },
		one("event-last", task("1/index")), false},
	{"an instance that cannot be read", func(w *world) {
		w.set(taskKey("3/pdf"), "instance_json", str("{"))
	}, func(w *world) []string {
		return []string{"unreadable " + revisionKey(3).String(), "unreadable " + taskKey("3/pdf").String(),
			"unreadable TASKLIVE#maps#pdf/000000000003#002#pdf#000000",
			"unreadable " + waiterRow("3/index", "3/pdf").String(), "unreadable TASKNAMES#maps/pdf"}
	}, false},
	{"nothing does what is due", func(w *world) { w.now = w.now.Add(24 * time.Hour) }, func(w *world) []string {
		all := []string{"overdue " + key("ARCHIVE#maps", "WAKE").String()}
		for _, k := range w.rowsIn("TASKLINE#maps", "due#") {
			all = append(all, "overdue "+k.String())
		}
		return all
	}, false},
}

// definition is the row of the definition.
func (w *world) definition() table.Key { w.Helper(); return w.firstIn("WORKFLOW#maps", "") }

// TestRevisionsAreHealthy: a revision queue at work has no findings.
func TestRevisionsAreHealthy(t *testing.T) { queued(t).finds(false) }
