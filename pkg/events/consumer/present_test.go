package consumer_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"archivist/pkg/events/consumer"
	"archivist/pkg/events/envelope"
	"archivist/pkg/kernel/fault"
)

// lists are lists of files whose places are ten times the number of the file.
type lists struct {
	files, opened, read int
	err                 error
}

func (l *lists) list(_ context.Context, e envelope.Event, from int64,
	each func(envelope.File, int64) error) error {
	l.opened++
	for i := from / 10; i < int64(l.files); i++ {
		if l.err != nil {
			return l.err
		}
		l.read++
		if err := each(envelope.File{Path: fmt.Sprintf("f%03d.tif", i+1), Size: i}, 10*(i+1)); err != nil {
			return err
		}
	}
	return nil
}

// withFiles is a system with an object, and a version of it that has files.
func withFiles(t *testing.T, files int) (*bench, *lists) {
	b, l := newBench(t), &lists{files: files}
	b.store.Files = l.list
	b.add("maps", "o", object)
	b.add("maps", "v", version)
	return b, l
}

func object(e *envelope.Event) {
	e.Subject.Type, e.Type, e.Action = "Object", "object.create", envelope.Create
	e.Objects = []envelope.Ref{{Role: "collection", Type: "Collection", ID: "maps"}}
}

func version(e *envelope.Event) {
	e.Subject.Type, e.Type, e.Action = "Version", "version.create", envelope.Create
}

// TestPresent: a filter that names collections gets the addition of an object to one, and a filter
// that names files gets each file of a version once, in calls of the size of others. Lists of files
// are not read for other filters. A dry run shows the same events, and explain the same fate.
func TestPresent(t *testing.T) {
	const files = 250
	b, l := withFiles(t, files)
	i := 0
	for text, want := range map[string]int{"Collection+add": 1, "*+*": 3, "File+create": files, "Version+create": 1,
		"File+*{id=v/f007.tif}": 1, "File+delete|disseminate": 0, "*+*:File+create": files + 3,
		"File+*{id=w/f007.tif}": 0, "File+create{parent=maps}:Object+create": files + 1} {
		i++
		name := fmt.Sprintf("c%d", i)
		b.apply(define(name, func(d *consumer.Definition) { d.Filter, d.Batch = text, 40 }))
		b.got, b.calls, l.opened = nil, nil, 0
		b.run(name, "maps")
		ids := map[string]bool{}
		for _, c := range b.calls {
			for _, it := range c.Events {
				ids[it.ID] = true
			}
			if len(c.Events) > 40 {
				t.Errorf("%s: a call of %d items", text, len(c.Events))
			}
		}
		opens := strings.Contains(text, "File") && want > 0
		if len(ids) != want || len(b.got) != want || (l.opened > 0) != opens {
			t.Errorf("%s: %d of %d items, lists opened %d times", text, len(ids), len(b.got), l.opened)
		}
		b.want(text, b.stateOf(name, "maps"), "2 of 2, 0 parked [], 0 wait, 0 redrives, running false")
		trial, err := b.store.DryRun(t.Context(), text, "", consumer.StartHorizon, "")
		if err != nil || trial.Selected != want || trial.Cursor != "" {
			t.Errorf("%s: the dry run has %d, %v", text, trial.Selected, err)
		}
		for j, e := range trial.Events {
			if e.ID != b.got[j].ID {
				t.Errorf("%s: event %d of the dry run is %s, and %s was handled", text, j, e.ID, b.got[j].ID)
				break
			}
		}
		x, err := b.store.Explain(t.Context(), name, b.log.events["maps"][1])
		if got := x.State == consumer.EventHandled; err != nil || got != (strings.Contains(text, "*+*") ||
			strings.HasPrefix(text, "Version") || opens) {
			t.Errorf("%s: explained as %+v, %v", text, x, err)
		}
	}
}

// TestFilesOfAVersion: what a target gets of a file.
func TestFilesOfAVersion(t *testing.T) {
	b, _ := withFiles(t, 2)
	b.apply(define("c", func(d *consumer.Definition) { d.Filter = "File+create:Collection+add" }))
	b.run("c", "maps")
	b.want("handled", b.handled(), "o.1#add v.1#1 v.1#2")
	f := b.got[2]
	b.want("file", fmt.Sprint(f.Subject, f.Type, f.Action, f.Version, f.Seq, f.Parents, string(f.After)),
		`{ File v/f002.tif}file.createcreate0 2 [{ Collection maps} { Version v}]{"path":"f002.tif","size":1}`)
}

// TestFilesFailAlone: a file that fails is parked alone: the others are handled, also after it. It
// is redriven alone, found again in the list, and one that was never handled can be discarded.
func TestFilesFailAlone(t *testing.T) {
	for _, order := range []string{consumer.OrderSubject, consumer.OrderNone} {
		b, l := withFiles(t, 250)
		b.apply(define("c", func(d *consumer.Definition) {
			d.Filter, d.Retries, d.Order = "File+create", consumer.NoRetries, order
		}))
		b.fails["v.1#25"], b.fails["v.1#200"] = "not an image", "no colour"
		b.run("c", "maps")
		if len(b.got) != 248 {
			t.Errorf("%d files were handled", len(b.got))
		}
		parked, _, err := b.store.Parked(t.Context(), "c", "maps", "")
		if err != nil || len(parked) != 2 {
			t.Fatalf("parked %+v, %v", parked, err)
		}
		for _, p := range parked {
			if p.Subject.Type != "File" || p.Type != "file.create" || p.Seq != 2 || p.Reason != b.fails[p.ID] {
				t.Errorf("parked %+v", p)
			}
		}
		x, err := b.store.Explain(t.Context(), "c", b.log.events["maps"][1])
		if err != nil || x.State != consumer.EventParked || !strings.Contains(x.Why, ".tif") {
			t.Errorf("explained as %+v, %v", x, err)
		}
		b.got, l.read = nil, 0
		delete(b.fails, "v.1#200")
		sel := consumer.Selection{Filter: "File+create{id=v/f200.tif}"}
		if _, err := b.store.Redrive(t.Context(), "c", sel, bob); err != nil {
			t.Fatal(err)
		}
		b.run("c", "maps")
		b.want("redriven", b.handled(), "v.1#200")
		if l.read > 4 {
			t.Errorf("%d files were read for two", l.read)
		}
		if _, err := b.store.Discard(t.Context(), "c", consumer.Selection{Event: "v.1#25"}, bob); err != nil {
			t.Fatal(err)
		}
		b.run("c", "maps")
		b.want("in the end", b.stateOf("c", "maps"), "2 of 2, 0 parked [], 0 wait, 0 redrives, running false")
	}
}

// TestFilesInOneOrder: with the collection as its key, what comes after a file that failed waits for it,
// in the order of the list, also files of the next version.
func TestFilesInOneOrder(t *testing.T) {
	b, _ := withFiles(t, 100)
	b.apply(define("c", func(d *consumer.Definition) {
		d.Filter, d.Retries, d.Order, d.Batch = "File+create", consumer.NoRetries, consumer.OrderCollection, 1
	}))
	b.fails["v.1#9"] = "not yet"
	b.add("maps", "w", version)
	b.run("c", "maps")
	b.want("before it fails", b.handled(), "v.1#1 v.1#2 v.1#3 v.1#4 v.1#5 v.1#6 v.1#7 v.1#8")
	b.fails, b.got = nil, nil
	if _, err := b.store.Redrive(t.Context(), "c", consumer.Selection{All: true}, bob); err != nil {
		t.Fatal(err)
	}
	b.run("c", "maps")
	if len(b.got) != 92+100 {
		t.Fatalf("%d files were handled", len(b.got))
	}
	for i, e := range b.got {
		if want := fmt.Sprintf("v.1#%d", i+9); i < 92 && e.ID != want {
			t.Fatalf("file %d is %s, expected %s", i, e.ID, want)
		}
	}
}

// TestManyFilesInManyRuns: a run whose time is over in the middle of a version is continued by the
// next, which repeats at most one step. Explain says how far it is; a person can skip the rest.
func TestManyFilesInManyRuns(t *testing.T) {
	b, l := withFiles(t, 2500)
	b.apply(define("c", func(d *consumer.Definition) { d.Filter, d.Batch = "File+create", 90 }))
	b.onCall = func() { b.now = b.now.Add(30 * time.Second) }
	runs := 0
	for more := true; more; runs++ {
		var err error
		if more, err = b.runtime.Run(t.Context(), "c", "maps", b.now.Add(5*time.Minute)); err != nil {
			t.Fatal(err)
		}
		if runs == 0 {
			x, err := b.store.Explain(t.Context(), "c", b.log.events["maps"][1])
			if err != nil || x.State != consumer.EventWaiting || !strings.Contains(x.Why, "has come to file 900") {
				t.Errorf("explained as %+v, %v", x, err)
			}
		}
	}
	if runs != 3 || len(b.got) != 2500 || l.read > 2500+28 {
		t.Errorf("%d runs handled %d files and read %d", runs, len(b.got), l.read)
	}
	if err := b.store.Reset(t.Context(), "c", "", consumer.StartHorizon, bob); err != nil {
		t.Fatal(err)
	}
	b.got = nil
	if more, err := b.runtime.Run(t.Context(), "c", "maps", b.now.Add(time.Minute)); !more || err != nil {
		t.Fatal(more, err)
	}
	b.want("after a reset it begins again", b.got[0].ID, "v.1#1")
	if err := b.store.Skip(t.Context(), "c", "maps", 2, bob); err != nil {
		t.Fatal(err)
	}
	handled := len(b.got)
	b.run("c", "maps")
	if len(b.got) != handled {
		t.Errorf("%d more files were handled after the skip", len(b.got)-handled)
	}
}

// TestFewOfManyFiles: of a list from which the filter selects few, one step reads many.
func TestFewOfManyFiles(t *testing.T) {
	b, l := withFiles(t, 5000)
	b.apply(define("c", func(d *consumer.Definition) { d.Filter = "File+create{id=v/f1000.tif|v/f4999.tif}" }))
	b.run("c", "maps")
	b.want("handled", b.handled(), "v.1#1000 v.1#4999")
	if l.opened > 6 {
		t.Errorf("the list was opened %d times", l.opened)
	}
	trial, err := b.store.DryRun(t.Context(), "File+create", "maps", consumer.StartHorizon, "")
	if err != nil || trial.Read != 5000 || trial.Selected != 4998 || trial.Cursor == "" {
		t.Errorf("the first page of a dry run: %d of %d, %q, %v", trial.Selected, trial.Read, trial.Cursor, err)
	}
	trial, err = b.store.DryRun(t.Context(), "File+create", "maps", consumer.StartHorizon, trial.Cursor)
	if err != nil || trial.Read != 2 || trial.Selected != 2 || trial.Events[1].ID != "v.1#5000" || trial.Cursor != "" {
		t.Errorf("the second: %+v, %v", trial, err)
	}
	for _, cursor := range []string{"1-2-x.maps", "1-2.maps", "1--2-20.maps", "x.maps", "1-2-20"} {
		if _, err := b.store.DryRun(t.Context(), "File+create", "", consumer.StartHorizon, cursor); !fault.Is(err,
			fault.Invalid) {
			t.Errorf("the cursor %q: %v", cursor, err)
		}
	}
	trial, err = b.store.DryRun(t.Context(), "File+create", "maps", "time:2100-01-01T00:00:00Z", "1-2-20.maps")
	if err != nil || trial.Selected != 0 || trial.Cursor != "" {
		t.Errorf("a cursor of another beginning: %+v, %v", trial, err)
	}
}

// TestUnreadableFiles: a consumer stops before files that cannot be read, and says which; it tries
// again. Another consumer is not concerned.
func TestUnreadableFiles(t *testing.T) {
	b, l := withFiles(t, 3)
	b.apply(define("c", func(d *consumer.Definition) { d.Filter = "File+create:Version+create" }))
	l.err = fmt.Errorf("no such key")
	b.run("c", "maps")
	st, err := b.store.Show(t.Context(), "c")
	if err != nil || st.Places[0].Stop == nil || st.Places[0].Stop.Kind != consumer.Unreadable ||
		!strings.Contains(st.Places[0].Stop.Reason, "files of v cannot be read: no such key") {
		t.Errorf("it is %+v, %v", st.Places, err)
	}
	b.want("handled", b.handled(), "v.1")
	l.err = nil
	b.now = b.now.Add(2 * time.Minute)
	b.run("c", "maps")
	b.want("later", b.handled(), "v.1 v.1#1 v.1#2 v.1#3")
}

// TestFileBlocks: a file that fails stops a consumer that does not park, and its reason names the file.
func TestFileBlocks(t *testing.T) {
	b, _ := withFiles(t, 30)
	b.apply(define("c", func(d *consumer.Definition) {
		d.Filter, d.Retries, d.OnFailure = "File+create", consumer.NoRetries, consumer.Block
	}))
	b.fails["v.1#13"] = "no colour"
	b.run("c", "maps")
	st, err := b.store.Show(t.Context(), "c")
	if stop := st.Places[0].Stop; err != nil || stop == nil || stop.Kind != consumer.Blocked || stop.Seq != 2 ||
		stop.Reason != "File v/f013.tif: no colour" {
		t.Errorf("it is %+v, %v", st.Places[0], err)
	}
	b.fails = nil
	b.now = b.now.Add(time.Hour)
	b.run("c", "maps")
	seen := map[string]bool{}
	for _, e := range b.got {
		seen[e.ID] = true
	}
	if len(seen) != 30 {
		t.Errorf("%d files were handled", len(seen))
	}
}

// TestFilesWait: files of a consumer that waits until its keys are quiet are handled, too.
func TestFilesWait(t *testing.T) {
	b, _ := withFiles(t, 250)
	b.apply(define("c", func(d *consumer.Definition) {
		d.Filter, d.Order = "File+create", consumer.OrderCollection
		d.Coalesce = &consumer.Coalesce{Debounce: 60}
	}))
	b.run("c", "maps")
	b.now = b.now.Add(time.Minute)
	b.run("c", "maps")
	count := 0
	for _, c := range b.calls {
		for _, it := range c.Events {
			count += it.Count
		}
	}
	if count != 250 {
		t.Errorf("%d files were handled in %d calls", count, len(b.calls))
	}
	b.want("in the end", b.stateOf("c", "maps"), "2 of 2, 0 parked [], 0 wait, 0 redrives, running false")
}

// TestReplayFiles: a replay gives the files of a version again, those that its own filter selects.
func TestReplayFiles(t *testing.T) {
	b, _ := withFiles(t, 250)
	b.apply(define("c", func(d *consumer.Definition) { d.Filter, d.Batch = "File+create", 50 }))
	b.run("c", "maps")
	for filter, want := range map[string]int{"": 250, "*+*": 250, "File+create{id=v/f2*}": 51, "Version+create": 0} {
		b.got, b.calls = nil, nil
		b.replay("", consumer.Range{Filter: filter})
		b.settle()
		if len(b.got) != want {
			t.Errorf("%q: %d files were handled again", filter, len(b.got))
		}
		for _, c := range b.calls {
			if !c.Replay {
				t.Errorf("%q: a call is not marked as a replay", filter)
			}
		}
		b.want("the consumer itself", b.stateOf("c", "maps"), "2 of 2, 0 parked [], 0 wait, 0 redrives, running false")
	}
}
