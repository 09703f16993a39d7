package derivatives

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"archivist/pkg/events/consumer"
	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/pkg/objects/aip/aiptest"
	"archivist/pkg/objects/inventory"
	"archivist/pkg/objects/ocfl"
)

const ark = "ark:/99999/fk4x"

// world has one stored object: images of two formats, one of them twice; one that is damaged,
// one that is too large, and other files.
type world struct {
	*testing.T
	root *aiptest.Root
	rows *tabletest.Fake
	ids  int
}

func newWorld(t *testing.T) *world {
	w := &world{T: t, root: aiptest.New(t), rows: tabletest.New()}
	images := encoded(t, picture(30, 20))
	stored := w.root.Store(ark, map[string]string{
		"a.png": string(images["png"]), "b/A.JPG": string(images["jpeg"]),
		"b/again.png": string(images["png"]), "damaged.gif": "GIF89a",
		"large.tif": strings.Repeat("x", 100_000), "readme.txt": "text", "vector.svg": "<svg/>",
	}, aiptest.System("maps", "a local id", "", ""))
	w.record(stored)
	return w
}

// record records the object's newest version.
func (w *world) record(stored *ocfl.Stored) {
	w.Helper()
	tb := w.table(through)
	put, err := inventory.Store{Table: tb}.Prepare(w.Context(), inventory.Record{Actor: "ada", Job: "J-1",
		Object: inventory.Object{ARK: ark, Collection: "maps", LocalIDs: []string{"a local id"}, HeadOf: stored.Head,
			Digest: stored.Digest}}, 1000)
	if err != nil {
		w.Fatal(err)
	}
	tx := tb.Begin(w.id())
	if err := put(tx); err != nil {
		w.Fatal(err)
	}
	if err := tx.Commit(w.Context()); err != nil {
		w.Fatal(err)
	}
}

func (w *world) id() string { w.ids++; return fmt.Sprint("tx", w.ids) }

func through(_ string, call func() error) error { return call() }

// table is one whose calls pass through do.
func (w *world) table(do func(op string, call func() error) error) *table.Table {
	return tabletest.Through(w.rows, do)
}

// maker makes derivatives with a table; each look at the clock takes a second.
func (w *world) maker(tb *table.Table, budget time.Duration) *Maker {
	now := time.UnixMilli(5_000_000)
	limits := DefaultLimits
	limits.Bytes = 90_000
	return &Maker{Table: tb, NewID: w.id, Now: func() time.Time { now = now.Add(time.Second); return now },
		Inventory: inventory.Store{Table: tb}, Root: w.root.Root, Derived: w.root.Derived, Limits: limits,
		Budget: budget}
}

// created is the event of a version.
func created(n int) consumer.Item {
	return consumer.Item{Event: envelope.Event{ID: fmt.Sprint("e", n), Type: "version.create",
		Subject: envelope.Ref{Type: "Version", ID: fmt.Sprintf("%s/v%d", ark, n)}}}
}

func (w *world) handle(m *Maker, b consumer.Batch) {
	w.Helper()
	if failures, err := m.Handle(w.Context(), b); err != nil || len(failures) > 0 {
		w.Fatal(failures, err)
	}
}

// events are the results in the events of the object.
func (w *world) events() (results []Result) {
	w.Helper()
	rows, _, err := event.Page(w.Context(), w.table(through), event.Subject{Type: event.Object, ID: ark}, "")
	if err != nil {
		w.Fatal(err)
	}
	for i, r := range rows {
		if r.Version != int64(i+1) {
			w.Errorf("event %d has the version %d", i+1, r.Version)
		}
		var result Result
		if r.Type != "derivative.create" {
			continue
		}
		if err := json.Unmarshal([]byte(r.Detail), &result); err != nil {
			w.Fatal(err)
		}
		if r.Component != Name || r.Outcome != event.Success || len(r.Parents) == 0 || r.Parents[0].ID != "maps" {
			w.Errorf("the event is %+v", r)
		}
		results = append(results, result)
	}
	return results
}

// check compares what was made, and the events, with what is wanted.
func (w *world) check(want ...Result) {
	w.Helper()
	made, refused := w.kept(".jpg"), w.kept(".json")
	if made != 2 || refused != 2 {
		w.Errorf("there are %d thumbnails and %d reasons, want 2 and 2: %q", made, refused,
			w.root.Twin.Names("thumbnails/"))
	}
	if got := w.events(); !reflect.DeepEqual(got, want) {
		w.Errorf("events %+v, want %+v", got, want)
	}
}

func (w *world) kept(ending string) (n int) {
	for _, name := range w.root.Twin.Names("") {
		if strings.Contains(name, "thumbnails/") && strings.HasSuffix(name, ending) {
			n++
		}
	}
	return n
}

// all is the result of the first version.
func all() Result {
	return Result{Version: 1, Made: 3, Failed: 2, Reasons: []Reason{
		{"producer/damaged.gif", "the file is no image that can be read: gif: reading header: unexpected EOF"},
		{"producer/large.tif", "the file has 100000 bytes; at most 90000 are read"}}}
}

// TestDerivatives: images have thumbnails, others a reason; the object has one event. Again, nothing
// more happens.
func TestDerivatives(t *testing.T) {
	w := newWorld(t)
	m := w.maker(w.table(through), time.Hour)
	w.handle(m, consumer.Batch{Events: []consumer.Item{created(1), created(1)}})
	w.check(all())
	puts := w.root.Twin.Calls["PUT object"]
	w.handle(m, consumer.Batch{Events: []consumer.Item{created(1)}})
	w.check(all())
	if again := w.root.Twin.Calls["PUT object"]; again != puts {
		t.Errorf("the same event again wrote %d objects", again-puts)
	}
	w.handle(m, consumer.Batch{Events: []consumer.Item{created(1)}, Replay: true})
	w.check(all())

	// The bound was raised: a replay makes what is missing, and says so.
	m.Limits.Bytes = 200_000
	w.handle(m, consumer.Batch{Events: []consumer.Item{created(1)}, Replay: true})
	second := all()
	second.Reasons = []Reason{second.Reasons[0], {"producer/large.tif",
		"the file is no image that can be read: image: unknown format"}}
	w.check(all(), second)
}

// TestFailure: an event of something that is not stored is a failure of its own, with its reason.
func TestFailure(t *testing.T) {
	w := newWorld(t)
	other := created(1)
	other.ID, other.Subject.ID = "other", "ark:/99999/none/v1"
	odd := created(1)
	odd.ID, odd.Subject.ID = "odd", "no version"
	failures, err := w.maker(w.table(through), time.Hour).Handle(t.Context(),
		consumer.Batch{Events: []consumer.Item{other, odd, created(1), other}})
	if err != nil || len(failures) != 2 || failures[0].ID != "other" || failures[1].ID != "odd" {
		t.Errorf("failures %v, %v", failures, err)
	}
	w.check(all())
}

// TestNoImages: a version without images has no event and no row.
func TestNoImages(t *testing.T) {
	w := newWorld(t)
	w.record(w.root.Store(ark, map[string]string{"readme.txt": "text"}, aiptest.System("maps", "", "", "")))
	before := len(w.rows.All())
	w.handle(w.maker(w.table(through), time.Hour), consumer.Batch{Events: []consumer.Item{created(2)}})
	if after := len(w.rows.All()); after != before || len(w.events()) != 0 {
		t.Errorf("%d rows more, events %v", after-before, w.events())
	}
}

// TestTime: a call that has too little time for all images returns an Unavailable; the next ones
// continue, and the result is the same.
func TestTime(t *testing.T) {
	w := newWorld(t)
	tb := w.table(through)
	for calls := 1; ; calls++ {
		_, err := w.maker(tb, time.Duration(calls)*time.Second).Handle(t.Context(),
			consumer.Batch{Events: []consumer.Item{created(1)}})
		if err == nil {
			if calls < 3 {
				t.Errorf("all was done in %d calls", calls)
			}
			break
		}
		if !fault.Is(err, fault.Unavailable) || calls > 20 {
			t.Fatalf("call %d: %v", calls, err)
		}
	}
	w.check(all())
}

// TestCrash: a call that dies before or after any request is repeated, and the object has one event.
func TestCrash(t *testing.T) {
	tabletest.Crashes(t, 10, func(t *testing.T, m *tabletest.Mortal) {
		w, version := newWorld(t), consumer.Batch{Events: []consumer.Item{created(1)}}
		w.root.Twin.Before = m.Status
		_, err := w.maker(w.table(m.Do), time.Hour).Handle(t.Context(), version)
		w.root.Twin.Before = nil
		if m.Dead() != (err != nil) {
			t.Fatalf("died %v, %v", m.Dead(), err)
		}
		w.handle(w.maker(w.table(through), time.Hour), version)
		w.check(all())
	})
}

// TestMeanwhile: the object is changed by another writer between reading and writing.
func TestMeanwhile(t *testing.T) {
	w := newWorld(t)
	changed := false
	tb := w.table(func(op string, call func() error) error {
		if op == "TransactWriteItems" && !changed {
			changed = true
			w.record(w.root.Store(ark, map[string]string{"readme.txt": "2"}, aiptest.System("maps", "", "", "")))
		}
		return call()
	})
	w.handle(w.maker(tb, time.Hour), consumer.Batch{Events: []consumer.Item{created(1)}})
	w.check(all())
}
