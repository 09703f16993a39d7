package revision_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/bucket/buckettest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/revisions/revision"
	"archivist/pkg/revisions/runner"
	"archivist/pkg/revisions/workflow"
)

// runningWorld is a queue with a runner.
type runningWorld struct {
	*world
	control revision.Control
	runner  *runner.Runner
}

func newRunning(t *testing.T, revisions int, text string) *runningWorld {
	t.Helper()
	w := newWorld(t)
	w.archive("maps", (&repository{}).add(revisions, text), 1)
	_, buckets := buckettest.Open(t, "work")
	return &runningWorld{w, revision.Control{Store: w.store, Work: buckets[0]},
		&runner.Runner{Bucket: buckets[0], Name: "work", Dir: t.TempDir(), Now: time.Now, NewID: w.store.NewID,
			Log: slog.New(slog.DiscardHandler)}}
}

// execute does what the state machine does with the execution of an instance.
func (w *runningWorld) execute(id string) (b runner.Begun) {
	w.t.Helper()
	for name, e := range w.begun {
		if e.Instance != id {
			continue
		}
		b, err := w.control.Begin(w.t.Context(), e.Input().Attempt, e.Exec)
		w.must(err)
		end := runner.Control{Attempt: e.Input().Attempt, Exec: e.Exec, Result: b.Result}
		if b.Next == runner.NextRun {
			b.Job.Deadline = time.Time{} // of the clock of the test
			res, err := w.runner.Run(w.t.Context(), *b.Job)
			w.must(err)
			end.Result = &res
		}
		_, err = w.control.End(w.t.Context(), end)
		w.must(err)
		delete(w.begun, name)
		w.pass("maps")
		return b
	}
	w.t.Fatalf("%s was not started; running: %v", id, w.running())
	return b
}

// TestInputsHanded: what a task leaves is found by those that name it as an input, in its revision and in the next one;
// a run by hand gets what the planned one did, and is refused while there is nothing yet.
func TestInputsHanded(t *testing.T) {
	w := newRunning(t, 2, `
[{name: index, depends: PREV, inputs: PREV,
  command: 'cd $ARCHIVIST_OUTPUTS; cat $ARCHIVIST_INPUTS/PREV/index/n >n; echo $ARCHIVIST_REVISION >>n'},
 {name: site, command: 'cp $ARCHIVIST_INPUTS/index/n $ARCHIVIST_OUTPUTS/site', depends: index, inputs: index},
 {name: print, command: 'test -e $ARCHIVIST_INPUTS/site/site', depends: site, inputs: site, triggers: manual}]`)
	w.notify("maps", 1, 2)
	w.pass("maps")
	_, err := w.store.StartRun(t.Context(), "maps", revision.Run{Task: "print", Revision: 1}, anna)
	if !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(),
		"the task needs the outputs of maps/1/site, which must be succeeded, and is blocked") {
		t.Errorf("a run without its inputs: %v", err)
	}
	for _, id := range []string{"maps/1/index", "maps/1/site", "maps/2/index", "maps/2/site"} {
		w.execute(id)
	}
	key := func(id, file string) string {
		in, err := w.store.Instance(t.Context(), id)
		w.must(err)
		return in.Prefix() + runner.OutputFolder + file
	}
	data, _, err := w.control.Work.Read(t.Context(), key("maps/2/site", "site"))
	w.must(err)
	if string(data) != "1\n2\n" {
		t.Errorf("the site of revision 2 has %q", data)
	}
	_, err = w.store.StartRun(t.Context(), "maps", revision.Run{Task: "print", Revision: 2}, anna)
	w.must(err)
	w.pass("maps")
	w.execute("maps/2/print/1")
	if got := w.state("maps/2/print/1"); got != workflow.Success {
		t.Errorf("the run by hand is %s", got)
	}

	// What was changed since is not handed on.
	w.must(w.control.Work.Put(t.Context(), key("maps/1/index", "n"), []byte("9\n"), bucket.Condition{}))
	_, err = w.store.StartRun(t.Context(), "maps", revision.Run{Task: "site", Revision: 1}, anna)
	w.must(err)
	w.pass("maps")
	w.execute("maps/1/site/1")
	in, err := w.store.Instance(t.Context(), "maps/1/site/1")
	w.must(err)
	const changed = `the output "n" of maps/1/index is not what was kept`
	if in.State != workflow.Failure || !strings.Contains(in.Reason, changed) {
		t.Errorf("with a changed input it is %s: %s", in.State, in.Reason)
	}
}
