package console_test

import (
	"slices"
	"strings"
	"testing"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/app/inprocess"
	"archivist/pkg/formats/checkm"
)

// revisionQueue is a deployment that has a revision queue.
func revisionQueue(s *inprocess.Settings) { s.Revisions = true }

// book registers an object as an archive with the given tasks, and waits until its revision has ended.
func (w *world) book(workflows string) v1.RevisionPlan {
	w.Helper()
	var rows []checkm.Row
	for name, text := range map[string]string{"_workflows/all.yaml": workflows,
		"text.txt": "a text"} {
		w.files["/"+name] = text
		rows = append(rows, checkm.Row{URL: "http://" + sourceHost + "/" + name, Name: name,
			Size: int64(len(text))})
	}
	var b strings.Builder
	w.must(checkm.Write(&b, "http://uc3.cdlib.org/registry/ingest/manifest/mrt-ingest-manifest",
		rows))
	w.files["/book.checkm"] = b.String()
	job := w.submit(v1.BatchRequest{Collection: "sample", Payload: v1.Payload{
		URL: "http://" + sourceHost + "/book.checkm", Type: "object-manifest"}}, v1.Completed)
	_, err := w.api.PutArchive(w.Context(), "book", v1.ArchiveDefinition{Title: evil,
		ReconcileSeconds: -1,
		Location:         v1.ArchiveLocation{Kind: "object", ARK: job.Identifiers.Primary}})
	w.must(err)
	var plan v1.RevisionPlan
	w.until("the revision has ended", func() bool {
		plan, err = w.api.RevisionPlan(w.Context(), "book", 1, "")
		return err == nil && plan.Planned != "" && plan.Ended == plan.Tasks
	})
	return plan
}

// hostileTasks are one that succeeds and writes what would be an element and an escape, and one that fails.
const hostileTasks = `[{name: write, command: 'printf "<evil-tag onload=evil()>\n\033[1m\342\200\256x"'}, ` +
	`{name: break, command: 'exit 3'}]`

// TestArchivePages: revisions and tasks are shown, what programs have written is text, and a task is run
// again with a reason.
func TestArchivePages(t *testing.T) {
	w := beginWith(t, true, revisionQueue)
	plan := w.book(hostileTasks)
	b := w.browser()
	b.plain("archives", "archives/book", "task?id=book/1/write")

	_, page := b.get("archives/book")
	if !strings.Contains(page, `href="./../archives/book/revisions/1"`) {
		t.Errorf("no revision:\n%s", page)
	}
	_, page = b.get("archives/book/revisions/1")
	harmless(t, "the revision", page)
	if !strings.Contains(page, "<svg") || strings.Contains(page, "<style") ||
		!strings.Contains(page, "task?id=book%2F1%2Fwrite") {
		t.Errorf("the picture of the revision:\n%s", page)
	}
	_, page = b.get("task?id=book/1/write")
	if !strings.Contains(page, "&lt;evil-tag onload=evil()&gt;") || !strings.Contains(page,
		"[U&#43;001B][1m") ||
		!strings.Contains(page, "[U&#43;202E]x") {
		t.Errorf("the output:\n%s", page)
	}
	i := slices.IndexFunc(plan.Plan, func(x v1.Task) bool { return x.Name == "break" })
	if i < 0 || plan.Plan[i].State != "failed" {
		t.Fatalf("%+v", plan.Plan)
	}

	_, page = b.get("task?id=book/1/break")
	at, page := b.doDeed(page, "rerun")
	if !strings.HasPrefix(at, "task?id=") ||
		!strings.Contains(page, "It runs again.") {
		t.Errorf("%s\n%s", at, page)
	}
	_, page = b.get("archives/book")
	at, _ = b.doDeed(b.rowDeed(page, "run"), "run", "parameters", "no equals sign")
	if at != "deed" {
		t.Errorf("a malformed parameter leads to %s", at)
	}
	at, _ = b.doDeed(page, "pause")
	if is, err := w.api.Archive(t.Context(), "book"); at != "archives/book" ||
		is.Mode != "paused" || err != nil {
		t.Errorf("%s, %s, %v", at, is.Mode, err)
	}
	w.light(map[string]int{"archives": 10, "archives/book": 20, "archives/book/revisions/1": 20})
}

// TestTaskFiles: a file that a task has left is read from the storage, not from here.
func TestTaskFiles(t *testing.T) {
	w := beginWith(t, true, revisionQueue)
	w.book(`[{name: make, command: 'echo x > left.txt', outputs: [left.txt]}]`)
	outputs, err := w.api.TaskOutputs(t.Context(), "book/1/make", 0)
	if err != nil || len(outputs) != 1 {
		t.Fatalf("%v, %v", outputs, err)
	}
	b := w.browser().still()
	_, page := b.get("task?id=book/1/make")
	if !strings.Contains(page, "task/output?") {
		t.Fatalf("no file:\n%s", page)
	}
	resp, _ := b.get("task/output?id=book/1/make&attempt=1&path=left.txt")
	if to := resp.Header.Get("Location"); resp.StatusCode != 302 || !strings.Contains(to, "Signature=") {
		t.Errorf("%d %s", resp.StatusCode, to)
	}
}

// TestArchiveRoles: each role sees the archives that the API gives it, and is offered what it may do.
func TestArchiveRoles(t *testing.T) {
	w := beginWith(t, false, revisionQueue)
	w.adminOf(w.as("alma"))
	w.book(hostileTasks)
	none := [5]string{}
	w.roles([]roleRow{
		{"archives", usual, none},
		{"archives/book", usual, [5]string{"backfill delete pause run skip",
			"backfill pause run skip"}},
		{"archives/none", [5]int{404, 404, 404, 403, 403}, none},
		{"archives/book/revisions/1", usual, [5]string{"rerun-failed", "rerun-failed"}},
		{"archives/book/revisions/x", [5]int{404, 404, 404, 404, 404}, none},
		{"task?id=book/1/break", usual, [5]string{"rerun", "rerun"}},
		{"task?id=book/1/COMMIT", usual, none},
		{"task", [5]int{422, 422, 422, 422, 422}, none},
		{"task/output?id=book/1/write&attempt=1&path=none", [5]int{404, 404, 404, 403, 403}, none},
	})
	w.denied("archive", "pause", []string{"book"}, []string{"vera", "dora", "nora"})
	w.denied("archive", "delete", []string{"book"}, []string{"otto", "vera", "dora", "nora"})
	w.denied("task", "rerun", []string{"book/1/break"}, []string{"vera", "dora", "nora"})
}

// TestNoArchives: a deployment without a revision queue says so.
func TestNoArchives(t *testing.T) {
	w := begin(t, true)
	resp, page := w.browser().get("archives")
	if resp.StatusCode != 200 || !strings.Contains(page, "has no revision queue") {
		t.Errorf("%d\n%s", resp.StatusCode, page)
	}
}
