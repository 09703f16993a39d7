package formatcounts_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"

	"archivist/pkg/events/consumer"
	"archivist/pkg/events/envelope"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/pkg/views/formatcounts"
)

// world has objects as they are now, and counts of them.
type world struct {
	testing.TB
	rows *tabletest.Fake
	mu   sync.Mutex
	is   map[string]formatcounts.Share
	ids  int
}

func newWorld(t testing.TB) *world {
	return &world{TB: t, rows: tabletest.New(), is: map[string]formatcounts.Share{}}
}

func through(_ string, call func() error) error { return call() }

// store counts in the table of the world, by calls that pass through do.
func (w *world) store(do func(op string, call func() error) error) formatcounts.Store {
	return formatcounts.Store{Table: tabletest.Through(w.rows, do),
		NewID: func() string { w.mu.Lock(); defer w.mu.Unlock(); w.ids++; return fmt.Sprint("tx", w.ids) },
		Read: func(_ context.Context, ark string) (formatcounts.Share, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.is[ark], nil
		}}
}

// put makes an object what it is now, with files of these formats, each of ten bytes.
func (w *world) put(name, collection string, version int, ids ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := formatcounts.Share{Collection: collection, Version: version, Counts: formatcounts.Counts{Objects: 1,
		Identified: 1}}
	for _, id := range ids {
		s.Files++
		s.Bytes += 10
		s.Formats = append(s.Formats, formatcounts.Format{ID: id, MediaType: "a/" + id, Files: 1, Bytes: 10})
	}
	w.is["ark:/1/"+name] = s
}

func batch(names ...string) (b consumer.Batch) {
	for i, name := range names {
		ref := envelope.Ref{Type: "Object", ID: "ark:/1/" + name}
		e := envelope.Event{ID: fmt.Sprint("e", i), Subject: ref}
		if i%2 == 1 { // the component that identifies formats has worked on a version
			e = envelope.Event{ID: e.ID, Subject: envelope.Ref{Type: "ComponentItem", ID: "i"},
				Parents: []envelope.Ref{ref}}
		}
		b.Events = append(b.Events, consumer.Item{Event: e})
	}
	return b
}

func (w *world) handle(names ...string) {
	w.Helper()
	if failed, err := w.store(through).Handle(w.Context(), batch(names...)); err != nil || failed != nil {
		w.Fatal(failed, err)
	}
}

// wants compares the counts of a collection with the objects that it has now.
func (w *world) wants(collection string) {
	w.Helper()
	want := formatcounts.Counts{}
	for _, s := range w.is {
		if s.Collection == collection && s.Version > 0 {
			want.Add(s.Counts)
		}
	}
	got, err := w.store(through).Total(w.Context(), collection)
	if err != nil {
		w.Fatal(err)
	}
	got.Formats, want.Formats = got.Sorted(), want.Sorted()
	if !reflect.DeepEqual(got.Counts, want) {
		w.Errorf("%s: counted are %+v\nwant %+v", collection, got.Counts, want)
	}
}

// TestCounts: an object counts as it is, once, however often it is told of: after another
// identification, a new version, another collection, and when it is gone.
func TestCounts(t *testing.T) {
	w := newWorld(t)
	step := func(names ...string) {
		t.Helper()
		for range 2 {
			w.handle(names...)
			w.wants("maps")
			w.wants("prints")
		}
	}
	w.put("a", "maps", 1, "tiff", "tiff", "text")
	w.put("b", "maps", 1, "tiff")
	step("a", "b", "a")
	w.put("a", "maps", 1, "tiff", "jp2", "text") // it was identified by other signatures
	step("a")
	w.put("a", "maps", 2, "tiff")
	step("b", "a")
	w.put("b", "prints", 2, "tiff", "pdf")
	step("b")
	delete(w.is, "ark:/1/a")
	step("a")
	if got, _ := w.store(through).Total(t.Context(), "maps"); got.Objects != 0 || len(got.Formats) != 0 {
		t.Errorf("of no objects %+v are counted", got.Counts)
	}
	before := len(w.rows.All())
	step("unknown")
	if len(w.rows.All()) != before {
		t.Error("an object that does not exist has a row")
	}
}

// TestNothingNew: a call for objects that are as they were counted writes nothing; a version
// with the same files writes the row of the object only.
func TestNothingNew(t *testing.T) {
	w := newWorld(t)
	w.put("a", "maps", 1, "tiff")
	w.handle("a")
	total := func() int64 {
		got, err := w.store(through).Total(t.Context(), "maps")
		if err != nil {
			t.Fatal(err)
		}
		return got.Rev
	}
	rev := total()
	w.handle("a")
	w.put("a", "maps", 2, "tiff")
	w.handle("a")
	if total() != rev {
		t.Errorf("the row of the collection was written at %d, is %d", rev, total())
	}
	w.put("a", "maps", 2, "jp2")
	w.handle("a")
	w.wants("maps")
}

// TestCrash: a call that dies before or after any call of the table is repeated, and each
// object counts once.
func TestCrash(t *testing.T) {
	tabletest.Crashes(t, 5, func(t *testing.T, m *tabletest.Mortal) {
		w := newWorld(t)
		w.put("a", "maps", 1, "tiff", "text")
		w.put("b", "prints", 1, "tiff")
		_, _ = w.store(m.Do).Handle(t.Context(), batch("a", "b"))
		w.put("a", "maps", 2, "jp2")
		_, _ = w.store(m.Do).Handle(t.Context(), batch("a"))
		w.handle("b", "a")
		w.wants("maps")
		w.wants("prints")
	})
}

// TestOvertaken: a call that has read an object before it changed, and is overtaken by one that
// has counted it as it is now, does not bring back the earlier state.
func TestOvertaken(t *testing.T) {
	w := newWorld(t)
	w.put("a", "maps", 1, "tiff")
	w.handle("a")
	w.put("a", "maps", 2, "tiff", "jp2")
	done := false
	late := w.store(func(op string, call func() error) error {
		if op == "TransactWriteItems" && !done {
			done = true
			w.put("a", "maps", 3, "pdf")
			w.put("b", "maps", 1, "pdf")
			w.handle("a", "b")
		}
		return call()
	})
	if _, err := late.Handle(t.Context(), batch("a")); err != nil || !done {
		t.Fatal(err, done)
	}
	w.wants("maps")
}

// TestOldRead: a call that has read an object before it changed does not count it so after
// another has counted it as it is now.
func TestOldRead(t *testing.T) {
	w := newWorld(t)
	w.put("a", "maps", 1, "tiff")
	w.handle("a")
	w.put("a", "maps", 2, "tiff", "jp2")
	late, read := w.store(through), 0
	late.Read = func(ctx context.Context, ark string) (formatcounts.Share, error) {
		old, err := w.store(through).Read(ctx, ark)
		read++
		if read == 1 {
			w.put("a", "maps", 3, "pdf")
			w.handle("a")
		}
		return old, err
	}
	if _, err := late.Handle(t.Context(), batch("a")); err != nil || read != 2 {
		t.Fatal(err, read)
	}
	w.wants("maps")
}

// TestRandom: whatever happens to objects, and in whatever order and however often calls tell
// of it, and die, the counts are those of the objects at the end.
func TestRandom(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 1))
		w := newWorld(t)
		names := []string{"a", "b", "c", "d", "e"}
		for range 30 {
			name := names[rng.IntN(len(names))]
			if rng.IntN(8) == 0 {
				w.is["ark:/1/"+name] = formatcounts.Share{}
			} else {
				var ids []string
				for range rng.IntN(4) {
					ids = append(ids, fmt.Sprint("fmt/", rng.IntN(6)))
				}
				w.put(name, []string{"maps", "prints"}[rng.IntN(2)], 1+rng.IntN(3), ids...)
			}
			left := rng.IntN(8)
			_, _ = w.store(func(_ string, call func() error) error {
				left--
				switch {
				case left == 0:
					_ = call()
					return context.Canceled
				case left < 0:
					return context.Canceled
				}
				return call()
			}).Handle(t.Context(), batch(name, names[rng.IntN(len(names))]))
		}
		rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		w.handle(names...)
		w.wants("maps")
		w.wants("prints")
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// TestManyFormats: a collection names some hundred formats, and the others are one; what was
// counted so is taken away so.
func TestManyFormats(t *testing.T) {
	w := newWorld(t)
	const objects = formatcounts.MaxFormats/100 + 2
	for n := range objects {
		var ids []string
		for i := range 100 {
			ids = append(ids, fmt.Sprint("fmt/", n*100+i))
		}
		w.put(fmt.Sprint(n), "maps", 1, ids...)
		w.handle(fmt.Sprint(n))
	}
	got, err := w.store(through).Total(t.Context(), "maps")
	if err != nil || len(got.Formats) != formatcounts.MaxFormats+1 || got.Files != 100*objects {
		t.Fatalf("%d formats, %d files, %v", len(got.Formats), got.Files, err)
	}
	sum := int64(0)
	for _, f := range got.Formats {
		sum += f.Files
	}
	if sum != got.Files {
		t.Errorf("the formats have %d files of %d", sum, got.Files)
	}
	for n := range objects {
		w.is[fmt.Sprint("ark:/1/", n)] = formatcounts.Share{}
		w.handle(fmt.Sprint(n))
	}
	w.wants("maps")
}

// TestAll: the counts of all collections are added up.
func TestAll(t *testing.T) {
	w := newWorld(t)
	w.put("a", "maps", 1, "tiff")
	w.put("b", "prints", 1, "tiff", "pdf")
	w.handle("a", "b")
	sum, cut, err := w.store(through).All(t.Context())
	if err != nil || cut || sum.Objects != 2 || sum.Files != 3 ||
		sum.Sorted()[0].ID != "tiff" || sum.Sorted()[0].Bytes != 20 {
		t.Errorf("%+v, %v, %v", sum, cut, err)
	}
}

// TestUnread: what cannot be read now ends the call, and the same call counts it later.
func TestUnread(t *testing.T) {
	w := newWorld(t)
	w.put("a", "maps", 1, "tiff")
	s := w.store(through)
	s.Read = func(context.Context, string) (formatcounts.Share, error) {
		return formatcounts.Share{}, fmt.Errorf("slow down")
	}
	if _, err := s.Handle(t.Context(), batch("a")); !fault.Is(err, fault.Unavailable) {
		t.Errorf("%v", err)
	}
	w.handle("a")
	w.wants("maps")
}
