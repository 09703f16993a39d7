package eventlog_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
)

// forget makes the events like those of a release that knew no log.
func (w *world) forget() {
	w.t.Helper()
	tb := tabletest.Table(w.fake)
	for _, it := range w.fake.All() {
		k := keyOf(it)
		if strings.HasPrefix(k.SK, event.Prefix) {
			tx := tb.Begin(w.id())
			tx.Amend(k, "attribute_exists(pk)", nil, "place", "ranking")
			if err := tx.Commit(w.t.Context()); err != nil {
				w.t.Fatal(err)
			}
		}
	}
}

func keyOf(it tabletest.Item) table.Key {
	var h table.Head
	if err := (table.Raw{Item: it}).Decode(&h); err != nil {
		panic(err)
	}
	return h.Key()
}

// TestEarlierReleases: events that were written without a place in the index are placed: with
// the next one of their subject, and by the sweep's scan, which continues where it was stopped.
func TestEarlierReleases(t *testing.T) {
	w := newWorld(t)
	for n := range 700 {
		w.happen("maps", job(n))
	}
	w.happen("maps", job(0))
	w.forget()
	w.happen("maps", job(0))
	if placed := w.place(job(0)); len(placed) != 3 {
		t.Errorf("%d events of one subject were placed of 3", len(placed))
	}
	placed, sweeps := 0, 0
	for ; sweeps < 20 && placed < 699; sweeps++ {
		until := w.now.Add(time.Second)
		w.do = func(_ string, call func() error) error {
			w.now = w.now.Add(20 * time.Millisecond)
			return call()
		}
		got, err := w.relay(w.fake).Sweep(t.Context(), until)
		if err != nil {
			t.Fatal(err)
		}
		if placed == 0 && sweeps == 0 && len(got) > 0 {
			t.Error("the scan began before the deployment is complete")
		}
		placed += len(got)
		w.now = w.now.Add(time.Hour)
	}
	w.check()
	if sweeps < 3 || sweeps == 20 {
		t.Errorf("%d sweeps placed %d events", sweeps, placed)
	}
	clear(w.calls)
	for range 2 {
		if _, err := w.log.Sweep(t.Context(), w.now.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	if w.calls["Scan"] > 1 || w.calls["GetItem"] > 1 {
		t.Errorf("a sweep with nothing to do makes the calls %v", w.calls)
	}
}

// TestLargeEvents: events of the largest size that a row can have are placed, alone and with others.
func TestLargeEvents(t *testing.T) {
	w := newWorld(t)
	var subjects []event.Subject
	for n := range 45 {
		size := 380 << 10
		e := event.New{Type: "job.state", Time: w.now.UnixMilli(), Detail: strings.Repeat("x", 60<<10),
			Identifiers: []string{strings.Repeat("x", size-60<<10)}}
		if n%5 == 0 && n < 25 { // its facts, as JSON, are larger than a row
			e.Detail, e.Identifiers = nil, []string{strings.Repeat("\x01", size)}
		} else if n%5 == 1 || n >= 25 { // as large as the largest reference
			e.Detail, e.Identifiers = nil, []string{strings.Repeat("\x01", 390<<10/6)}
		}
		e.Parents = []envelope.Ref{{Type: "Collection", ID: "maps"}}
		tx := tabletest.Table(w.fake).Begin(w.id())
		if err := event.Append(tx, job(n), 1, e); err != nil {
			t.Fatal(err)
		}
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.versions[job(n)] = 1
		subjects = append(subjects, job(n))
	}
	w.place(subjects...)
	w.check()
	for i, e := range w.read("maps") {
		if len(e.Identifiers) != 1 || len(e.Identifiers[0]) < 60<<10 {
			t.Errorf("the facts of event %d have %d identifiers", i, len(e.Identifiers))
		}
	}
}

// TestCalls: a placement reads and writes no more than it must.
func TestCalls(t *testing.T) {
	w := newWorld(t)
	w.happen("maps", job(1))
	w.place(job(1))
	for _, c := range []struct {
		subjects, each int
		want           string
	}{
		{1, 1, "map[GetItem:1 Query:1 TransactWriteItems:1]"},
		{49, 1, "map[GetItem:1 Query:49 TransactWriteItems:1]"},
		{10, 3, "map[GetItem:1 Query:10 TransactWriteItems:1]"},
		{98, 1, "map[GetItem:1 Query:98 TransactWriteItems:2]"},
	} {
		var subjects []event.Subject
		for n := range c.subjects {
			subjects = append(subjects, job(n))
			for range c.each {
				w.happen("maps", job(n))
			}
		}
		clear(w.calls)
		w.place(subjects...)
		if got := fmt.Sprint(w.calls); got != c.want {
			t.Errorf("%d events each of %d subjects: %s, expected %s", c.each, c.subjects, got, c.want)
		}
	}
	w.check()
}
