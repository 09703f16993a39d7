package browse_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"archivist/pkg/events/consumer"
	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/pkg/objects/inventory"
	"archivist/pkg/views/browse"
)

type world struct {
	testing.TB
	rows *tabletest.Fake
	ids  atomic.Int64
}

func newWorld(t testing.TB) *world { return &world{TB: t, rows: tabletest.New()} }

func (w *world) newID() string { return fmt.Sprint("id", w.ids.Add(1)) }

func (w *world) store() browse.Store {
	return browse.Store{Table: tabletest.Table(w.rows), NewID: w.newID}
}

// put writes an object's row; nil removes it.
func (w *world) put(name string, o *inventory.Object) {
	w.Helper()
	ark := "ark:/99999/" + name
	tb := tabletest.Table(w.rows)
	k := event.Subject{Type: event.Object, ID: ark}.Key()
	is := inventory.Object{Head: table.Head{PK: k.PK, SK: k.SK}}
	err := tb.Get(w.Context(), k, &is)
	if err != nil && !fault.Is(err, fault.NotFound) {
		w.Fatal(err)
	}
	tx := tb.Begin(w.newID())
	switch {
	case o == nil:
		tx.Remove(&is)
	case is.Rev == 0:
		o.Head, o.ARK = is.Head, ark
		tx.Insert(o)
	default:
		o.Head, o.ARK = is.Head, ark
		tx.Save(o)
	}
	if err := tx.Commit(w.Context()); err != nil {
		w.Fatal(err)
	}
}

func batch(names ...string) (b consumer.Batch) {
	for _, name := range names {
		e := envelope.Event{Subject: envelope.Ref{Type: "Object", ID: "ark:/99999/" + name}}
		b.Events = append(b.Events, consumer.Item{Event: e})
	}
	return b
}

// handle handles events of objects, or fails the test.
func (w *world) handle(names ...string) {
	w.Helper()
	if failed, err := w.store().Handle(w.Context(), batch(names...)); err != nil || len(failed) > 0 {
		w.Fatal(failed, err)
	}
}

// list returns a whole list, as "name=value" in its order, read in pages of 3.
func (w *world) list(p browse.Page) (out []string) {
	w.Helper()
	for first := true; first || p.Cursor != ""; first = false {
		p.Limit = 3
		page, next, err := w.store().Read(w.Context(), p)
		if err != nil {
			w.Fatal(err)
		}
		for _, e := range page {
			out = append(out, strings.TrimPrefix(e.Owner, "ark:/99999/")+"="+e.Value)
		}
		p.Cursor = next
	}
	return out
}

func (w *world) want(p browse.Page, want ...string) {
	w.Helper()
	if found := w.list(p); !slices.Equal(found, want) {
		w.Errorf("%+v: found\n%q, want\n%q", p, found, want)
	}
}

// TestLists: each list has its order, beginnings and parts.
func TestLists(t *testing.T) {
	w := newWorld(t)
	w.put("a", &inventory.Object{Collection: "maps", Title: "Élan", Who: "Blunt, John; Admiralty", When: "1851"})
	w.put("b", &inventory.Object{Collection: "maps-2", Title: "elbow", Who: "admiralty", When: "circa 1851-05"})
	w.put("c", &inventory.Object{Collection: "art", Title: "Box 10", When: "undated"})
	w.put("d", &inventory.Object{Collection: "maps", Title: "box 9", Who: "Ørsted", When: "[1799?]"})
	w.put("e", &inventory.Object{Collection: "maps"})
	w.handle("a", "b", "c", "d", "e", "a", "never")

	w.want(browse.Page{By: "title"}, "d=box 9", "c=Box 10", "a=Élan", "b=elbow", "e=")
	w.want(browse.Page{By: "title", From: "el"}, "a=Élan", "b=elbow", "e=")
	w.want(browse.Page{By: "title", From: "box 10"}, "c=Box 10", "a=Élan", "b=elbow", "e=")
	w.want(browse.Page{By: "date"}, "d=[1799?]", "a=1851", "b=circa 1851-05", "e=", "c=undated")
	w.want(browse.Page{By: "date", From: "1851-02"}, "b=circa 1851-05", "e=", "c=undated")
	w.want(browse.Page{By: "creator"}, "a=Admiralty", "b=admiralty", "a=Blunt, John", "d=Ørsted", "c=", "e=")
	w.want(browse.Page{By: "collection"}, "c=art", "d=maps", "a=maps", "e=maps", "b=maps-2")
	w.want(browse.Page{By: "collection", From: "m"}, "d=maps", "a=maps", "e=maps", "b=maps-2")
	w.want(browse.Page{By: "collection", In: "maps"}, "d=maps", "a=maps", "e=maps")

	w.want(browse.Page{By: "title", Begins: "EL"}, "a=Élan", "b=elbow")
	w.want(browse.Page{By: "title", Begins: "box"}, "d=box 9", "c=Box 10")
	w.want(browse.Page{By: "title", Begins: "box 1"})
	w.want(browse.Page{By: "title", Begins: "elbow room"})
	w.want(browse.Page{By: "collection", In: "maps", Begins: "b"}, "d=maps")
	w.want(browse.Page{By: "date", Day: "1851"}, "a=1851", "b=circa 1851-05")
	w.want(browse.Page{By: "date", Day: "1851-05"}, "b=circa 1851-05")

	for _, bad := range []browse.Page{{By: "date", Begins: "x"}, {By: "title", Begins: "x", From: "x"},
		{By: "title", Day: "1851"}, {By: "size"}, {By: "title", In: "maps"}, {By: "title", Cursor: "x"},
		{By: "collection", In: "maps", From: "a"}} {
		if _, _, err := w.store().Read(t.Context(), bad); !fault.Is(err, fault.Invalid) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// TestMoves: an object that changes has its new place only, and one that is deleted none.
func TestMoves(t *testing.T) {
	w := newWorld(t)
	w.put("a", &inventory.Object{Collection: "maps", Title: "Alpha", Who: "X; Y"})
	w.put("b", &inventory.Object{Collection: "maps", Title: "Beta"})
	w.handle("a", "b")
	w.put("a", &inventory.Object{Collection: "art", Title: "Gamma", Who: "Y; Z"})
	w.want(browse.Page{By: "title"}, "a=Alpha", "b=Beta")
	w.handle("a")
	w.want(browse.Page{By: "title"}, "b=Beta", "a=Gamma")
	w.want(browse.Page{By: "creator"}, "a=Y", "a=Z", "b=")
	w.want(browse.Page{By: "collection"}, "a=art", "b=maps")
	w.put("a", &inventory.Object{Collection: "art", Title: "GAMMA", Who: "Y; Z"})
	w.handle("a")
	w.want(browse.Page{By: "title"}, "b=Beta", "a=GAMMA")

	before := w.rows.All()
	w.handle("a", "a", "b")
	if !reflect.DeepEqual(w.rows.All(), before) || len(w.entries()) != 2+9 {
		t.Errorf("events without a change wrote, or there are %d rows", len(w.entries()))
	}
	w.put("a", nil)
	w.put("b", nil)
	w.handle("a", "b")
	if left := w.entries(); len(left) > 0 {
		t.Errorf("after all objects are deleted there are %q", left)
	}
}

// entries are the keys of all entries.
func (w *world) entries() (keys []string) {
	all, _, err := tabletest.Table(w.rows).Scan(w.Context(), "", 1000, "")
	if err != nil {
		w.Fatal(err)
	}
	for _, r := range all {
		if strings.HasPrefix(r.PK, "BROWSE#") || r.SK == "BROWSE" {
			keys = append(keys, r.String())
		}
	}
	return keys
}

var errDead = errors.New("dead")

// TestDeath: a run dies at each of its requests, before or after the effect. The next one
// leaves exactly the entries that the objects should have.
func TestDeath(t *testing.T) {
	w := newWorld(t)
	for death, done := int64(1), false; !done; death++ {
		w.put("a", &inventory.Object{Collection: "maps", Title: fmt.Sprint("Title ", death), Who: fmt.Sprint(death)})
		w.put("b", &inventory.Object{Collection: "maps", Title: fmt.Sprint("Other ", death)})
		var n atomic.Int64
		client := &tabletest.Client{DynamoDBAPI: w.rows, Do: func(_ string, call func() error) error {
			at := n.Add(1)
			if at > death || at == death && death%2 == 0 {
				return tabletest.Throttled()
			}
			err := call()
			if at == death {
				return errDead
			}
			return err
		}}
		dying := browse.Store{Table: tabletest.Table(client), NewID: w.newID}
		dying.Table.Wait = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
		_, err := dying.Handle(t.Context(), batch("a", "b"))
		done = err == nil && n.Load() < death
		w.handle("a", "b")
		w.want(browse.Page{By: "title"}, fmt.Sprint("b=Other ", death), fmt.Sprint("a=Title ", death))
		if all := w.entries(); len(all) != 2*5 {
			t.Fatalf("died at request %d: there are %q", death, all)
		}
		if death > 50 {
			t.Fatal("it never ends")
		}
	}
}

// TestRuns: runs at the same time, whose reads and writes interleave, leave the entries of the
// last state.
func TestRuns(t *testing.T) {
	w := newWorld(t)
	for n := range 20 {
		w.put("a", &inventory.Object{Collection: "maps", Title: fmt.Sprint("Title ", n)})
		var runs sync.WaitGroup
		for range 4 {
			runs.Go(func() {
				for {
					_, err := w.store().Handle(t.Context(), batch("a"))
					if err == nil || t.Context().Err() != nil {
						return
					}
				}
			})
		}
		runs.Wait()
		w.want(browse.Page{By: "title"}, fmt.Sprint("a=Title ", n))
	}
}

// TestLongest: the entries of the longest texts fit into sort keys, and into a transaction.
func TestLongest(t *testing.T) {
	w := newWorld(t)
	for name, text := range map[string]string{"latin": strings.Repeat("Å", 999), "han": strings.Repeat("龘", 600),
		"emoji": strings.Repeat("🗺", 500), "thai": strings.Repeat("แก้", 200),
		"expanding": strings.Repeat("\ufdfa", 300), "squared": strings.Repeat("\u3300", 300)} {
		var who []string
		for n := range 30 {
			who = append(who, fmt.Sprint(n, text[:60]))
		}
		long := name + strings.Repeat("x", 190)
		for _, end := range []string{"", "!"} {
			w.put(long, &inventory.Object{Collection: strings.Repeat("c", 60), Title: text + end, When: text,
				Who: strings.Join(who, "; ") + end})
			w.handle(long)
		}
	}
	for _, k := range w.entries() {
		if _, sk, _ := strings.Cut(k, "/"); len(sk) > 1024 {
			t.Errorf("a sort key has %d bytes", len(sk))
		}
	}
	if found := len(w.list(browse.Page{By: "creator"})); found != 6*browse.MaxCreators {
		t.Errorf("there are %d entries by creator", found)
	}
}
