package research

import (
	"strings"
	"testing"
	"time"

	"archivist/pkg/kernel/explain"
	"archivist/pkg/kernel/fault"
)

// TestExplainResearch: what projects, episodes, clips, leases and researchers wait for, while a recording is
// researched, and fails.
func TestExplainResearch(t *testing.T) {
	b := newBench(t)
	e, c := b.curate(Episode, "e", 0, 0), b.curate(Clip, "c", 0, 0)
	says := func(x explain.Explanation, err error, waits explain.Wait, says, todo string) {
		t.Helper()
		if err != nil || x.Waits != waits || !strings.Contains(x.Why, says) ||
			todo != "" && !strings.HasPrefix(x.Do[0].Command, todo) {
			t.Errorf("%+v, %v; want one that waits for %s: %s, %s", x, err, waits, says, todo)
		}
	}
	ctx := t.Context()
	project := func(waits explain.Wait, text, todo string) {
		t.Helper()
		x, err := b.ExplainProject(ctx, songs)
		says(x, err, waits, text, todo)
	}
	media := func(kind Kind, key string, waits explain.Wait, text, todo string) {
		t.Helper()
		x, err := b.ExplainMedia(ctx, kind, songs, key)
		says(x, err, waits, text, todo)
	}

	project(explain.Researcher, "no researcher is present", "")
	media(Episode, e, explain.Turn, "1 of its 1 pairs are open", "")
	media(Clip, c, explain.Nothing, "in all episodes", "")
	b.must(b.Heartbeat(ctx, songs, Researcher{Name: "r", Capacity: 1, Host: "studio"}))
	project(explain.Turn, "1 pairs are due", "")
	b.must(b.Pause(ctx, songs, by))
	project(explain.Hold, "it is paused: ", "archivist research resume "+songs)
	b.must(b.Resume(ctx, songs, by))
	x, err := b.ExplainResearcher(ctx, songs, "r")
	says(x, err, explain.Nothing, "takes 1 work items", "")

	b.pass()
	lease := b.sent[0].Lease
	x, err = b.ExplainLease(ctx, lease)
	says(x, err, explain.Researcher, "No researcher has accepted it", "archivist research revoke "+songs+" "+lease)
	w := b.accept("r")
	x, err = b.ExplainLease(ctx, lease)
	says(x, err, explain.Worker, "r works on it: 0 of 1", "archivist research revoke")
	media(Episode, e, explain.Worker, "under leases", "")
	b.problem(w, 1, Episode, Failed)
	media(Episode, e, explain.Retry, "deferred until", "archivist research episodes retry "+songs+" "+e)
	x, err = b.ExplainLease(ctx, lease)
	if x.State != "ended" || x.Until != 0 {
		t.Errorf("an ended lease: %+v, %v", x, err)
	}

	b.clock = b.clock.Add(time.Hour)
	if _, err := b.ExplainResearcher(ctx, songs, "r"); !fault.Is(err, fault.NotFound) {
		t.Errorf("a researcher that has gone: %v", err)
	}
	if _, err := b.ExplainMedia(ctx, Episode, songs, c); !fault.Is(err, fault.NotFound) {
		t.Errorf("a clip is no episode: %v", err)
	}
}
