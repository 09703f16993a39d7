package revision_test

import (
	"slices"
	"strings"
	"testing"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/graph"
	"archivist/pkg/revisions/revision"
	"archivist/pkg/revisions/runner"
)

// TestGraph: a revision is drawn with the states of its instances, and with those of other revisions that it waits
// for, supersedes or is superseded by.
func TestGraph(t *testing.T) {
	w := newWorld(t)
	w.archive("maps", (&repository{}).add(4, theText), 1)
	w.notify("maps", 1, 2, 3)
	w.pass("maps")
	w.end("maps/1/indexing", runner.Failed)
	w.pass("maps")
	w.end("maps/2/indexing", runner.Succeeded)
	w.pass("maps")
	w.begin("maps/2/build-PDF")
	w.draws(2, "", "maps/1/COMMIT succeeded", "maps/1/build-PDF skipped", "maps/1/indexing failed",
		"maps/2/COMMIT succeeded", "maps/2/indexing succeeded", "maps/2/build-PDF running",
		"maps/1/COMMIT -> maps/2/COMMIT", "maps/2/COMMIT -> maps/2/indexing", "maps/1/indexing -> maps/2/indexing",
		"maps/2/indexing -> maps/2/build-PDF", "maps/2/build-PDF cancels maps/1/build-PDF")
	w.end("maps/3/indexing", runner.Succeeded)
	w.pass("maps")
	w.stopped("maps/2/build-PDF")
	w.pass("maps")
	w.draws(2, "it is superseded", "maps/2/build-PDF superseded", "maps/3/build-PDF dispatched",
		"maps/3/build-PDF cancels maps/2/build-PDF")
	w.draws(3, "", "maps/2/build-PDF superseded", "maps/3/build-PDF dispatched",
		"maps/3/build-PDF cancels maps/2/build-PDF")
	run, err := w.store.StartRun(t.Context(), "maps", revision.Run{Task: "indexing", Revision: 3}, anna)
	w.must(err)
	w.draws(3, "a run", run.ID+" ready", "indexing (run 1)")
	_, err = w.store.Graph(t.Context(), "maps", 4)
	if !fault.Is(err, fault.NotFound) {
		t.Errorf("a revision that nobody has notified: %v", err)
	}
	_, err = w.store.Pause(t.Context(), "maps", anna)
	w.must(err)
	w.notify("maps", 4)
	_, err = w.store.Graph(t.Context(), "maps", 4)
	if !fault.Is(err, fault.Conflict) {
		t.Errorf("a revision that is not planned: %v", err)
	}
}

// draws compares the drawing of a revision with lines that it must have: nodes with their states, labels, and links.
func (w *world) draws(n int64, when string, want ...string) {
	w.t.Helper()
	g, err := w.store.Graph(w.t.Context(), "maps", n)
	w.must(err)
	var have []string
	for _, x := range g.Nodes {
		have = append(have, x.ID+" "+x.State, x.Label)
	}
	for _, l := range g.Links {
		have = append(have, l.From+map[graph.Kind]string{graph.Then: " -> ", graph.Cancels: " cancels "}[l.Kind]+l.To)
	}
	for _, line := range want {
		if !slices.Contains(have, line) {
			w.t.Errorf("revision %d, %s: there is no %q in %s", n, when, line, strings.Join(have, "; "))
		}
	}
	if first := g.Nodes[0].Group; n > 1 && first == g.Nodes[len(g.Nodes)-1].Group {
		w.t.Errorf("revision %d, %s: the first nodes are of the group %q", n, when, first)
	}
}
