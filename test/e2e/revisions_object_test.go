package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/revisions/archive"
	"archivist/pkg/revisions/revision"
	"archivist/pkg/revisions/workflow"
)

// TestObjectIsArchive: an object whose files define a task is registered as an archive, and begins at its newest
// version. Nobody but the consumer of the log notifies the next one; its task runs with its files.
func TestObjectIsArchive(t *testing.T) {
	begin(t)
	until(t, "the consumer is there, which notifies the versions that come", soon, func() bool {
		_, err := client.Consumer(t.Context(), revision.VersionsName)
		return err == nil
	})
	src := newSource(t)
	first := storeMinutes(t, src, "minutes of May")
	set := v1.ArchiveDefinition{ReconcileSeconds: -1, Location: v1.ArchiveLocation{Kind: archive.Object,
		ARK: first.Identifiers.Primary}}
	_, err := client.PutArchive(t.Context(), "minutes", set)
	if err != nil {
		t.Fatal(err)
	}
	if text := read(t, int64(first.Version)); !strings.Contains(text, "minutes of May") {
		t.Errorf("the task of the first revision has written %q", text)
	}
	second := storeMinutes(t, src, "minutes of June")
	if second.Version != first.Version+1 || second.Identifiers.Primary != first.Identifiers.Primary {
		t.Fatalf("stored version %d of %s", second.Version, second.Identifiers.Primary)
	}
	if text := read(t, int64(second.Version)); !strings.Contains(text, "minutes of June") {
		t.Errorf("the task of the second revision has written %q", text)
	}
	a, err := client.Archive(t.Context(), "minutes")
	if err != nil || a.Trouble != nil || a.Mode != "active" || a.First != int64(first.Version) {
		t.Errorf("%+v, %v", a, err)
	}
	g, err := client.RevisionGraph(t.Context(), "minutes", int64(second.Version))
	if err != nil || len(g.Links) != 2 || !strings.Contains(g.SVG, "read") ||
		!strings.Contains(g.Mermaid, "succeeded") {
		t.Errorf("the graph is %+v, %v", g, err)
	}
	// The function of the revision queue reads the archive for the API; what it refuses, the API refuses.
	_, err = client.PreviewRevision(t.Context(), "minutes", int64(second.Version))
	if !fault.Is(err, fault.Conflict) {
		t.Errorf("the preview of a revision that is planned: %v", err)
	}
	_, err = client.ActOnArchive(t.Context(), "minutes", v1.ArchiveAction{Action: "delete", Reason: "the test is over"})
	if err != nil {
		t.Error(err)
	}
	until(t, "the archive is deleted", soon, func() bool {
		_, err := client.Archive(t.Context(), "minutes")
		return fault.Is(err, fault.NotFound)
	})
}

// storeMinutes stores a version of the object.
func storeMinutes(t *testing.T, src *source, text string) v1.Job {
	t.Helper()
	src.put("/_workflows/all.yaml", []byte(`[{name: read, command: 'cat "$ARCHIVIST_CHECKOUT/minutes.txt"'}]`))
	src.put("/minutes.txt", []byte(text))
	in := v1.BatchRequest{Collection: "minutes", Submitter: t.Name(),
		Payload: v1.Payload{Type: "object-manifest", URL: src.manifest(t, "/minutes.checkm",
			src.row("/_workflows/all.yaml"), src.row("/minutes.txt"))},
		Identifiers: &v1.Identifiers{Local: []string{"minutes"}}, Metadata: &v1.Metadata{What: t.Name()}}
	b, err := client.Submit(t.Context(), in, fmt.Sprint("minutes", time.Now().UnixNano()))
	if err != nil {
		t.Fatal(err)
	}
	return ends(t, ingest.JobID(b.ID, 1), "Completed", soon)
}

// read waits until the task of a revision has succeeded, and returns what it has written.
func read(t *testing.T, revision int64) (text string) {
	t.Helper()
	var plan v1.RevisionPlan
	var err error
	until(t, fmt.Sprintf("revision %d has ended", revision), 2*soon, func() bool {
		plan, err = client.RevisionPlan(t.Context(), "minutes", revision, "")
		return err == nil && plan.Planned != "" && plan.Ended == plan.Tasks
	})
	i := slices.IndexFunc(plan.Plan, func(task v1.Task) bool { return task.Name == "read" })
	if i < 0 || plan.Plan[i].State != string(workflow.Success) {
		t.Fatalf("revision %d: %+v", revision, plan)
	}
	log, err := client.TaskLog(t.Context(), plan.Plan[i].ID, 0, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range log.Parts {
		text += part.Text
	}
	return text
}
