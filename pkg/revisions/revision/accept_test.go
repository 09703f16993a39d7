package revision_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"archivist/pkg/events/event"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/pkg/revisions/revision"
	"archivist/pkg/revisions/runner"
	"archivist/pkg/revisions/workflow"
)

// TestDuplicatesAtOnce: a notice that comes ten times at once, while two passes are at work, gives one revision and
// one plan.
func TestDuplicatesAtOnce(t *testing.T) {
	w := newWorld(t)
	w.archive("maps", (&repository{}).add(1, theText), 0)
	var ids atomic.Int64
	id := func() string { return fmt.Sprintf("y%06d", ids.Add(1)) }
	w.store.NewID, w.store.Leases.NewID = id, id
	w.store.Secret = func() string { return "secret" + id() }
	var started sync.Map
	w.store.Start = func(_ context.Context, e revision.Execution) error { started.Store(e.Name(), e); return nil }
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			_, err := w.store.Notify(t.Context(), "maps", revision.Notice{Revision: 1}, anna)
			if err != nil {
				t.Error(err)
			}
		})
	}
	for range 2 {
		all.Go(func() {
			_, err := w.store.Pass(t.Context(), "maps", w.now.Add(time.Minute))
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	started.Range(func(_, e any) bool { w.begun[e.(revision.Execution).Name()] = e.(revision.Execution); return true })
	w.store.Start = func(_ context.Context, e revision.Execution) error { w.begun[e.Name()] = e; return nil }
	w.quiet("maps", runner.Succeeded)
	rows, _, err := event.Page(t.Context(), w.store.Table, event.Subject{Type: event.Revision, ID: "maps/1"}, "")
	w.must(err)
	var types []string
	for _, r := range rows {
		types = append(types, r.Type)
	}
	slices.Sort(types)
	w.want(types, "revision.committed", "revision.notified")
	if got := len(w.history("maps/1/indexing")); got != 5 {
		t.Errorf("found %d events of maps/1/indexing", got)
	}
}

// TestDefinitionOnly: a commit that changes only a definition is planned by it, and those before stay as they are.
func TestDefinitionOnly(t *testing.T) {
	w := newWorld(t)
	r := (&repository{}).add(2, filtered)
	r.commits[0].changed = []string{"maps/a"}
	r.commits[1].changed = []string{"_workflows/all.yaml"}
	r.commits[1].files = map[string]string{"all.yaml": `
- {name: a, command: x, paths: ["maps/**"]}
- {name: b, command: x}
`}
	w.archive("maps", r, 1)
	w.notify("maps", 1, 2)
	w.quiet("maps", runner.Succeeded)
	for id, want := range map[string]workflow.State{"maps/1/a": workflow.Success, "maps/2/a": workflow.Skipped,
		"maps/2/b": workflow.Success} {
		if got := w.state(id); got != want {
			t.Errorf("%s is %s, want %s", id, got, want)
		}
	}
	p, err := w.store.Plan(t.Context(), "maps", 1)
	w.must(err)
	if len(p.Tasks) != 2 {
		t.Errorf("revision 1 has %d instances", len(p.Tasks))
	}
}

// attribute is a text of a stored row.
func attribute(row tabletest.Item, name string) string {
	v, _ := row[name].(*types.AttributeValueMemberS)
	if v == nil {
		return ""
	}
	return v.Value
}

// TestVisibleAtOnce: a plan of 200 tasks takes several transactions. Until the last of them, which writes COMMIT and
// the revision, no instance is anything but blocked; with it, all are there.
func TestVisibleAtOnce(t *testing.T) {
	var text strings.Builder
	for i := range workflow.MaxTasks {
		fmt.Fprintf(&text, "- {name: t%03d, command: x, depends: [PREV]}\n", i)
	}
	w := newWorld(t)
	w.archive("maps", (&repository{}).add(1, text.String()), 1)
	w.notify("maps", 1)
	instances, writes, planned := map[string]bool{}, 0, false
	w.fake.Watch = func(changes []tabletest.Change) {
		before := len(instances)
		commit := false
		for _, ch := range changes {
			sk, state := attribute(ch.After, "sk"), attribute(ch.After, "instance_json")
			commit = commit || sk == "REVISION" && strings.Contains(attribute(ch.After, "revision_json"), `"planned":`)
			if sk != "TASK" || planned {
				continue
			}
			instances[attribute(ch.After, "pk")] = true
			if !strings.Contains(state, `"state":"blocked"`) && !strings.Contains(state, `"task":"COMMIT"`) {
				t.Errorf("before the plan is complete: %s", state)
			}
		}
		if !planned && len(instances) > before {
			writes++
		}
		if !planned && commit && (len(instances) != workflow.MaxTasks+1 || !instances["TASK#maps/1/COMMIT"]) {
			t.Errorf("the revision is visible with %d instances", len(instances))
		}
		planned = planned || commit
	}
	w.pass("maps")
	w.fake.Watch = nil
	if workflow.MaxTasks < 200 || !planned || writes < 3 {
		t.Errorf("a plan of %d tasks was written in %d transactions", workflow.MaxTasks, writes)
	}
}

// TestLockOrder: under random durations, those with one lock start strictly by revision, one at a time, and those
// without overlap.
func TestLockOrder(t *testing.T) {
	overlaps := 0
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 3))
		w := newWorld(t)
		w.archive("maps", (&repository{}).add(6, "[{name: copy, command: x, lock: disk}, {name: free, command: x}]"), 1)
		order := []int64{1, 2, 3, 4, 5, 6}
		rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		var locked []string
		for step := 0; ; step++ {
			if len(order) > 0 && (rng.IntN(2) == 0 || len(w.running()) == 0) {
				w.notify("maps", order[0])
				order = order[1:]
			}
			w.pass("maps")
			ids := w.running()
			if len(ids) == 0 && len(order) == 0 {
				break
			}
			free := 0
			for _, id := range ids {
				if strings.HasSuffix(id, "/free") {
					free++
				} else if !slices.Contains(locked, id) {
					locked = append(locked, id)
				}
			}
			if len(ids)-free > 1 {
				t.Fatalf("seed %d: %v run at once", seed, ids)
			}
			overlaps += max(0, free-1)
			if len(ids) > 0 && rng.IntN(3) > 0 {
				w.end(ids[rng.IntN(len(ids))], []string{runner.Succeeded, runner.Failed}[rng.IntN(2)])
			}
		}
		w.want(locked, "maps/1/copy", "maps/2/copy", "maps/3/copy", "maps/4/copy", "maps/5/copy", "maps/6/copy")
	}
	if overlaps == 0 {
		t.Error("those without a lock never overlapped")
	}
}

// latencies measures, in a time that each call to the table takes a part of, how long it takes from a notice in the
// archive "quiet" until its task is started. noise is called before each.
func (w *world) latencies(from, to int64, noise func(n int64)) (all []time.Duration) {
	w.t.Helper()
	for n := from; n <= to; n++ {
		noise(n)
		began := w.now
		w.notify("quiet", n)
		due, err := w.store.Waiting(w.t.Context(), 200)
		w.must(err)
		if !slices.Contains(due, "quiet") {
			w.t.Fatalf("the schedule finds only %v", due)
		}
		w.pass("quiet")
		all = append(all, w.now.Sub(began))
		w.end(fmt.Sprintf("quiet/%d/index", n), runner.Succeeded)
	}
	slices.Sort(all)
	return all
}

// TestNoisyArchive: an archive with 10,000 revisions that are to be planned does not move the p95 of another: its
// passes touch no row of the other, end in time, and leave the other its place in the schedule.
func TestNoisyArchive(t *testing.T) {
	const pending, samples = 10_000, 40
	w := newWorld(t)
	index := "[{name: index, command: x, depends: [PREV]}]"
	w.archive("quiet", (&repository{}).add(3*samples, index), 1)
	in := "" // the archive in which a pass is made
	tab := tabletest.Table(&tabletest.Client{DynamoDBAPI: w.fake, Do: func(_ string, call func() error) error {
		w.now = w.now.Add(5 * time.Millisecond)
		return call()
	}, Refuse: func(partition string) error {
		if other := map[string]string{"quiet": "noisy", "noisy": "quiet"}[in]; in != "" &&
			strings.Contains(partition, other) {
			t.Errorf("a pass in %s touches %s", in, partition)
		}
		return nil
	}})
	w.store.Table.Rows, w.store.Table.DB = tab.Rows, tab.DB
	still := w.latencies(1, samples, func(int64) {})
	w.archive("noisy", (&repository{}).add(pending, index), 1)
	for n := range int64(pending) {
		w.notify("noisy", n+1)
	}
	planned := 0
	noisy := w.latencies(samples+1, 2*samples, func(n int64) {
		if n%10 != 0 {
			return
		}
		in = "noisy"
		p, err := w.store.Pass(t.Context(), "noisy", w.now.Add(10*time.Second))
		w.must(err)
		in, planned = "", planned+p.Planned
		if !p.More {
			t.Errorf("the pass in the noisy archive has nothing left: %+v", p)
		}
	})
	in = "quiet"
	w.notify("quiet", 2*samples+1)
	w.pass("quiet")
	if planned == 0 {
		t.Error("the noisy archive has planned nothing")
	}
	p95 := samples * 95 / 100
	t.Logf("p95: %s alone, %s beside %d pending revisions", still[p95], noisy[p95], pending-planned)
	if noisy[p95] > still[p95]*105/100 {
		t.Errorf("the p95 went from %s to %s", still[p95], noisy[p95])
	}
}
