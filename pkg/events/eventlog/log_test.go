package eventlog_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/events/eventlog"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
)

// world is a table with a log, in which a test makes events happen.
type world struct {
	t        testing.TB
	fake     *tabletest.Fake
	log      *eventlog.Log
	now      time.Time
	ids      atomic.Int64
	versions map[event.Subject]int64
	calls    map[string]int
	do       func(op string, call func() error) error
}

func newWorld(t testing.TB) *world {
	w := &world{t: t, fake: tabletest.New(), now: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC),
		versions: map[event.Subject]int64{}, calls: map[string]int{}}
	w.log = w.relay(w.fake)
	return w
}

// relay is another process with the same table.
func (w *world) relay(client *tabletest.Fake) *eventlog.Log {
	through := &tabletest.Client{DynamoDBAPI: client, Do: func(op string, call func() error) error {
		w.calls[op]++
		if w.do != nil {
			return w.do(op, call)
		}
		return call()
	}}
	tb := tabletest.Table(through)
	tb.Wait = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	return &eventlog.Log{Table: tb, Now: func() time.Time { return w.now }, NewID: w.id, Readers: 1}
}

func (w *world) id() string { return fmt.Sprintf("tx-%06d", w.ids.Add(1)) }

func job(n int) event.Subject { return event.Subject{Type: event.Job, ID: fmt.Sprintf("B-%05d", n)} }

func (w *world) subjects(jobs ...int) (out []event.Subject) {
	for _, n := range jobs {
		out = append(out, job(n))
	}
	return out
}

// happen writes the next event of subjects of a collection ("" for none), all in one transaction.
func (w *world) happen(collection string, subjects ...event.Subject) {
	w.t.Helper()
	tx := tabletest.Table(w.fake).Begin(w.id())
	for _, s := range subjects {
		w.versions[s]++
		e := event.New{Type: strings.ToLower(s.Type.String()) + ".state", Time: w.now.UnixMilli(), Component: "test",
			Detail: map[string]int64{"n": w.versions[s]}}
		if collection != "" {
			e.Parents = []envelope.Ref{{Type: "Collection", ID: collection}}
		}
		if err := event.Append(tx, s, w.versions[s], e); err != nil {
			w.t.Fatal(err)
		}
	}
	if err := tx.Commit(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) place(subjects ...event.Subject) []envelope.Event {
	w.t.Helper()
	placed, err := w.log.Place(w.t.Context(), subjects)
	if err != nil {
		w.t.Fatal(err)
	}
	return placed
}

// read reads a whole partition, a few events at once.
func (w *world) read(partition string) (all []envelope.Event) {
	w.t.Helper()
	for after := int64(0); ; {
		page, err := w.log.Read(w.t.Context(), partition, after, 7)
		if err != nil {
			w.t.Fatal(err)
		}
		if len(page) == 0 {
			return all
		}
		all = append(all, page...)
		after = page[len(page)-1].Seq
	}
}

// check checks the log: every event that happened is placed once, those of a subject in order,
// and no event waits in the index.
func (w *world) check() {
	w.t.Helper()
	partitions, err := w.log.Partitions(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	next := map[string]int64{}
	generation := map[string]int{}
	for _, p := range partitions {
		events := w.read(p.Name)
		if int64(len(events)) != p.Head {
			w.t.Errorf("%s has %d events, its head is %d", p.Name, len(events), p.Head)
		}
		for i, e := range events {
			id := e.Subject.Type + e.Subject.ID
			inOrder := e.Version == next[id]+1 && p.Generation >= generation[id]
			if !inOrder || e.Seq != int64(i+1) || e.Partition != p.Name {
				w.t.Errorf("%s has %s version %d at %d, the one before was %d", p.Name, id, e.Version, e.Seq, next[id])
			}
			next[id], generation[id] = e.Version, p.Generation
		}
	}
	for s, n := range w.versions {
		if got := next[s.Type.String()+s.ID]; got != n {
			w.t.Errorf("%v has %d events, %d are placed", s, n, got)
		}
	}
	for _, it := range w.fake.All() {
		if raw := (table.Raw{Item: it}); raw.Item["place"] != nil {
			w.t.Errorf("%v waits in the index", raw.Item["pk"])
		}
	}
}

// TestPlace: events are placed in order, by logs; a repeated call places nothing.
func TestPlace(t *testing.T) {
	w := newWorld(t)
	w.happen("maps", job(1), job(2))
	w.happen("maps", job(1))
	w.happen("", job(3))
	subjects := []event.Subject{job(1), job(3), job(2), job(1)}
	if placed := w.place(subjects...); len(placed) != 4 {
		t.Errorf("%d events were placed of 4", len(placed))
	}
	if placed := w.place(subjects...); len(placed) != 0 {
		t.Errorf("a second call placed %v", placed)
	}
	w.check()
	if n := len(w.read("maps")); n != 3 {
		t.Errorf("maps has %d events", n)
	}
	whole, err := w.log.Events(t.Context(), w.read("maps"))
	if err != nil || len(whole) != 3 || string(whole[1].Detail) != `{"n":2}` || whole[1].Seq != 2 {
		t.Errorf("the events with payload: %+v, %v", whole, err)
	}
	if _, err := w.log.Partition(t.Context(), "nothing"); !fault.Is(err, fault.NotFound) {
		t.Errorf("a partition without events: %v", err)
	}
}

// TestManyOfOneSubject: a subject with more events than a transaction or a page holds is placed
// in order.
func TestManyOfOneSubject(t *testing.T) {
	w := newWorld(t)
	for range 345 {
		w.happen("maps", job(1))
	}
	w.happen("", job(1)) // the last one belongs to another log
	if n := len(w.place(job(1))); n != 346 {
		t.Errorf("%d events were placed of 346", n)
	}
	if n := len(w.read("maps")); n != 345 {
		t.Errorf("maps has %d events", n)
	}
}

// TestSweep: what nothing woke the relay for is placed by the sweep, once it is older than the
// grace.
func TestSweep(t *testing.T) {
	w := newWorld(t)
	for n := range 300 {
		w.happen("maps", job(n), job(n+1000))
	}
	ctx := t.Context()
	if placed, err := w.log.Sweep(ctx, w.now.Add(time.Minute)); err != nil || len(placed) != 0 {
		t.Errorf("before the grace: %d, %v", len(placed), err)
	}
	w.now = w.now.Add(eventlog.Grace)
	if placed, err := w.log.Sweep(ctx, w.now.Add(time.Minute)); err != nil || len(placed) != 600 {
		t.Errorf("%d were placed, %v", len(placed), err)
	}
	w.check()
}

// TestSplit: after a split the events of a subject follow in one part of the next generation.
func TestSplit(t *testing.T) {
	w := newWorld(t)
	other := w.relay(w.fake)
	for round, parts := range []int{8, 3, 1} {
		for n := range 40 {
			w.happen("maps", job(n))
			w.place(job(n))
		}
		if err := other.Split(t.Context(), "maps", parts); err != nil {
			t.Fatal(round, err)
		}
	}
	for n := range 40 {
		w.happen("maps", job(n))
		w.place(job(n))
	}
	w.check()
	partitions, err := w.log.Partitions(t.Context())
	open := 0
	for _, p := range partitions {
		if !p.Closed {
			open++
		}
	}
	if err != nil || len(partitions) != 1+8+3+1 || open != 1 {
		t.Errorf("%d partitions, %d open: %v", len(partitions), open, err)
	}
	if err := other.Split(t.Context(), "new", 2); err != nil {
		t.Error("a log without events:", err)
	}
	if err := other.Split(t.Context(), "maps", 0); !fault.Is(err, fault.Invalid) {
		t.Error("no parts:", err)
	}
}
