package e2e

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"archivist/pkg/components/component"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/fault"
	"archivist/test/e2e/users"
)

var delivered = flag.Int("delivered", 6, "ordinary items that TestAssemblyLine works on")

// components are those of the system under test, changed from outside of it as its API does.
func components() *component.Store {
	return &component.Store{Table: rows(), Now: time.Now, NewID: func() string { return ulid.Make().String() },
		Allowed: strings.Split(stack.Context["consumerTargets"], ",")}
}

var forTest = component.By{Actor: "e2e", Reason: "a test"}

// stationCalls is the file in which the station notes its calls.
var stationCalls = sync.OnceValues(func() (string, error) {
	file := filepath.Join(filepath.Dir(crashes), "station.jsonl")
	return file, ofUser(stationLambda, "station", file, users.Station(file))
})

// line is an assembly line, in small.
type line struct {
	t *testing.T
	s *component.Store
}

// newLine makes the components of a line: a delivery is received, its structure and its metadata are
// checked, it is ingested, and counted. Another one tells of deliveries with bad metadata.
func newLine(t *testing.T) line {
	t.Helper()
	if _, err := stationCalls(); err != nil {
		t.Fatal(err)
	}
	l := line{t, components()}
	chain := []string{"Received", "Structure_checked", "Metadata_checked", "Ingested", "Counted"}
	names := []string{"line-structure", "line-metadata", "line-ingest", "line-statistics"}
	for i, name := range names {
		d := component.Definition{Name: name, Event: chain[i+1], PastSuccess: chain[i : i+1], Future: chain[i+1 : i+2],
			Types: []string{"line"}, Wake: true, Concurrency: 5}
		if i == 0 {
			d.Instances = 2
		}
		l.define(d)
	}
	l.define(component.Definition{Name: "line-alert", Event: "Told", PastFailure: chain[2:3], Future: []string{"Told"},
		Types: []string{"line"}, Wake: true})
	return l
}

// define makes a component, which is deleted at the end of the test.
func (l line) define(d component.Definition) {
	l.t.Helper()
	d.Runnable.Lambda = functionARN(stationLambda)
	if _, err := l.s.Apply(l.t.Context(), d, forTest); err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() {
		if err := l.s.Delete(context.WithoutCancel(l.t.Context()), d.Name, forTest); err != nil {
			l.t.Error(err)
		}
	})
}

// create makes an item of the line. It is not received yet.
func (l line) create(name string, types ...string) (id string) {
	l.t.Helper()
	id = "item:line/" + name
	_, err := l.s.Create(l.t.Context(), id, component.CustomItem{Types: append(types, "line")}, forTest)
	l.must(err)
	return id
}

func (l line) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// register records an event of an item by hand.
func (l line) register(id, name string) {
	l.t.Helper()
	_, err := l.s.Register(l.t.Context(), id, name, event.Success, forTest)
	l.must(err)
}

// history is what happened to an item by components and by people, as names with outcomes.
func (l line) history(id string) string {
	l.t.Helper()
	page, next, err := l.s.History(l.t.Context(), id, "")
	if err != nil || next != "" {
		l.t.Fatalf("%v, next %q", err, next)
	}
	var all []string
	for _, h := range page {
		name := h.Name
		if h.Outcome == event.Failure {
			name += " failed"
		}
		if h.Revoked {
			name = "(" + name + ")"
		}
		all = append(all, name)
	}
	return strings.Join(all, ", ")
}

// comes waits until the history of an item is as it should be.
func (l line) comes(id, want string) {
	l.t.Helper()
	got := ""
	until(l.t, "the history of "+id+" is "+want, soon, func() bool {
		got = l.history(id)
		if len(got) > len(want) {
			l.t.Fatalf("the history of %s is %s; expected %s", id, got, want)
		}
		return got == want
	})
}

// worked are the items with which a component called the station, in the order of the calls.
func (l line) worked(name string) (items []string) {
	l.t.Helper()
	file, err := stationCalls()
	l.must(err)
	data, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		l.t.Fatal(err)
	}
	for text := range strings.Lines(string(data)) {
		if !strings.HasSuffix(text, "\n") {
			break // it is being written
		}
		var w component.Work
		l.must(json.Unmarshal([]byte(text), &w))
		if w.Component == name {
			items = append(items, w.Item)
		}
	}
	return items
}

// TestAssemblyLine: items go through a line of components, each by its own history: those that are
// stopped, forced, repaired and begun again, and first what is urgent.
func TestAssemblyLine(t *testing.T) {
	begin(t)
	l := newLine(t)
	const whole = "item.create, Received, Structure_checked, Metadata_checked, Ingested, Counted"

	var ordinary []string
	for i := range *delivered {
		ordinary = append(ordinary, l.create(fmt.Sprintf("%04d", i)))
	}
	began := time.Now()
	for _, id := range ordinary {
		l.register(id, "Received")
	}
	broken := l.create("broken", "broken-line-metadata")
	l.register(broken, "Received")
	stopped := l.create("stopped")
	_, err := l.s.Stop(t.Context(), stopped, forTest)
	l.must(err)
	l.register(stopped, "Received")
	forced := l.create("forced")
	l.register(forced, "Metadata_checked")

	within := soon + time.Duration(*delivered)*time.Second
	until(t, "the line is done with the ordinary items", within, func() bool {
		c, err := l.s.Counts(t.Context(), "line-statistics")
		return err == nil && c.Done >= int64(len(ordinary))+1
	})
	took := time.Since(began)
	t.Logf("%d items through 4 components in %s: %.1f items/s, %.1f events/s", len(ordinary), took.Round(time.Second),
		float64(len(ordinary))/took.Seconds(), float64(4*len(ordinary))/took.Seconds())
	for _, id := range ordinary {
		l.comes(id, whole)
	}
	l.comes(forced, "item.create, Metadata_checked, Ingested, Counted")
	const failed = "item.create, Received, Structure_checked, Metadata_checked failed, Told"
	l.comes(broken, failed)
	if got := l.history(stopped); got != "item.create, Manually_stopped, Received" {
		t.Errorf("the stopped item: %s", got)
	}

	// The stopped one goes on when the stop is revoked, and the broken one when it is repaired.
	_, err = l.s.Revoke(t.Context(), stopped, []string{component.Stopped}, forTest)
	l.must(err)
	_, err = l.s.Change(t.Context(), broken, component.CustomItem{Types: []string{"line"}}, forTest)
	l.must(err)
	_, err = l.s.Restart(t.Context(), broken, "", forTest)
	l.must(err)
	l.comes(stopped, "item.create, (Manually_stopped), Received, item.revoke, Structure_checked, Metadata_checked, "+
		"Ingested, Counted")
	l.comes(broken, "item.create, Received, Structure_checked, (Metadata_checked failed), (Told), item.change, "+
		"item.revoke, Metadata_checked, Ingested, Counted")
	l.urgentFirst()
	for _, name := range []string{"line-structure", "line-ingest", "line-statistics"} {
		items := l.worked(name)
		slices.Sort(items)
		if n := len(slices.Compact(slices.Clone(items))); n != len(items) {
			t.Errorf("%s worked %d times on %d items", name, len(items), n)
		}
	}
}

// urgentFirst: of what waits, the urgent is first.
func (l line) urgentFirst() {
	l.t.Helper()
	const name = "line-ingest"
	l.must(l.s.Pause(l.t.Context(), name, forTest))
	var ids []string
	for _, n := range []string{"a", "b", "urgent"} {
		ids = append(ids, l.create("wait-"+n))
		l.register(ids[len(ids)-1], "Metadata_checked")
	}
	urgent := ids[2]
	_, err := l.s.Prioritize(l.t.Context(), urgent, 9, forTest)
	l.must(err)
	d, err := l.s.Get(l.t.Context(), name)
	l.must(err)
	d.Concurrency = 1
	_, err = l.s.Apply(l.t.Context(), d.Definition, forTest)
	l.must(err)
	l.must(l.s.Resume(l.t.Context(), name, forTest))
	for _, id := range ids[:2] {
		l.comes(id, "item.create, Metadata_checked, Ingested, Counted")
	}
	l.comes(urgent, "item.create, Metadata_checked, item.prioritize, Ingested, Counted")
	calls := l.worked(name)
	if i := slices.Index(calls, urgent); i != len(calls)-3 {
		l.t.Errorf("the urgent item %s is not the first of three: %v", urgent, calls)
	}
	if _, err := l.s.ExplainItem(l.t.Context(), "item:line/none", name); !fault.Is(err, fault.NotFound) {
		l.t.Errorf("an item that is not there: %v", err)
	}
}
