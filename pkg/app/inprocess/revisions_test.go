package inprocess

import (
	"slices"
	"strings"
	"testing"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/revisions/archive"
)

// TestRevisions: an object whose files define a task is an archive: the task runs, as a process, with the files of the
// revision and a secret.
func TestRevisions(t *testing.T) {
	settings := quick()
	settings.Revisions = true
	w := begin(t, settings)
	w.Secret("archivist/tasks/minutes/word", "open-sesame")
	w.src.put("/_workflows/all.yaml", `[{name: read, secrets: {WORD: archivist/tasks/minutes/word},`+
		` command: 'cat "$ARCHIVIST_CHECKOUT/minutes.txt"; [ "$WORD" = open-sesame ]'}]`)
	w.src.put("/minutes.txt", "minutes of May")
	id := w.submit(w.src.batch(t, w.src.object(t, "minutes", "/_workflows/all.yaml", "/minutes.txt")))
	w.completed(id)
	_, err := w.api.PutArchive(t.Context(), "minutes", v1.ArchiveDefinition{ReconcileSeconds: -1,
		Location: v1.ArchiveLocation{Kind: archive.Object, ARK: w.job(id, 1).Identifiers.Primary}})
	w.must(err)
	var plan v1.RevisionPlan
	w.until("the revision has ended", func() bool {
		plan, err = w.api.RevisionPlan(t.Context(), "minutes", 1, "")
		return err == nil && plan.Planned != "" && plan.Ended == plan.Tasks
	})
	i := slices.IndexFunc(plan.Plan, func(task v1.Task) bool { return task.Name == "read" })
	if i < 0 || plan.Plan[i].State != "succeeded" {
		t.Fatalf("the plan is %+v", plan)
	}
	log, err := w.api.TaskLog(t.Context(), plan.Plan[i].ID, 0, "")
	w.must(err)
	if len(log.Parts) == 0 || !strings.Contains(log.Parts[0].Text, "minutes of May") {
		t.Errorf("the log is %+v", log)
	}
}
