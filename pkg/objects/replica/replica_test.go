package replica

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/pkg/objects/aip/aiptest"
	"archivist/pkg/objects/inventory"
	"archivist/pkg/objects/ocfl"
)

const ark = "ark:/99999/fk4x"

// world has one stored and recorded object of two versions.
type world struct {
	testing.TB
	root *aiptest.Root
	to   bucket.Bucket
	rows *tabletest.Fake
	ids  int
	now  time.Time
	tick time.Duration // of each look at the clock
}

func newWorld(t testing.TB) *world {
	w := &world{TB: t, root: aiptest.New(t), rows: tabletest.New(), now: time.UnixMilli(5_000_000)}
	w.to = w.root.Bucket
	w.to.Name = "copy"
	w.store(map[string]string{"a.txt": "one", "b.txt": strings.Repeat("large", 30), "empty": ""})
	w.store(map[string]string{"a.txt": "two", "c/d ä.txt": "three"})
	return w
}

// store stores and records a version.
func (w *world) store(files map[string]string) {
	w.Helper()
	stored := w.root.Store(ark, files, nil)
	tb := w.table(through)
	digest, err := w.root.VersionDigest(w.Context(), stored, stored.Head)
	if err != nil {
		w.Fatal(err)
	}
	put, err := inventory.Store{Table: tb}.Prepare(w.Context(), inventory.Record{Actor: "ada", Job: "J-1",
		Object:   inventory.Object{ARK: ark, Collection: "maps", HeadOf: stored.Head, Digest: stored.Digest},
		Versions: []inventory.Version{{Number: stored.Head, Job: "J-1", Digest: digest}}}, 1000)
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

func (w *world) table(do func(op string, call func() error) error) *table.Table {
	return tabletest.Through(w.rows, do)
}

func (w *world) replica(tb *table.Table) *Replica {
	root := w.root.Root
	root.Recorded = inventory.Store{Table: tb}.Recorded
	return &Replica{Table: tb, NewID: w.id, Now: func() time.Time { w.now = w.now.Add(w.tick); return w.now },
		Inventory: inventory.Store{Table: tb}, Root: root, To: w.to}
}

func (w *world) until() time.Time { return w.now.Add(time.Minute) }

// copy copies the object, however many calls it takes.
func (w *world) copy() Result {
	w.Helper()
	for range 100 {
		r, err := w.replica(w.table(through)).Copy(w.Context(), ark, w.until())
		if err == nil {
			return r
		}
		if !fault.Is(err, fault.Unavailable) {
			w.Fatal(err)
		}
	}
	w.Fatal("the copy does not end")
	return Result{}
}

// files are the contents of an object's files in a bucket.
func (w *world) files(name string) map[string]string {
	all := map[string]string{}
	for _, key := range w.root.Twin.Names(name + "/" + ocfl.Prefix(ark)) {
		data, _ := w.root.Twin.Object(key)
		all[strings.TrimPrefix(key, name+"/"+ocfl.Prefix(ark))] = string(data)
	}
	return all
}

// same compares the object with its copy.
func (w *world) same() {
	w.Helper()
	first, second := w.files("storage"), w.files("copy")
	for key, text := range first {
		if second[key] != text {
			w.Errorf("%s: the copy has %q, the storage root %q", key, second[key], text)
		}
	}
	if len(first) != len(second) || len(first) < 8 {
		w.Errorf("the copy has %d files, the storage root %d", len(second), len(first))
	}
	if _, there := w.root.Twin.Object("copy/0=ocfl_1.1"); !there {
		w.Error("the copy is no storage root")
	}
	all, next, err := w.replica(w.table(through)).Compare(w.Context(), ark, "")
	if len(all) > 0 || next != "" || err != nil {
		w.Errorf("differences: %v, %q, %v", all, next, err)
	}
	if left := w.root.Twin.Names("work/replication/"); len(left) > 0 {
		w.Errorf("left behind: %q", left)
	}
}

// key is that of a file whose key has an ending.
func (w *world) key(ending string) string {
	w.Helper()
	for key := range w.files("storage") {
		if strings.HasSuffix(key, ending) {
			return ocfl.Prefix(ark) + key
		}
	}
	w.Fatalf("there is no %s", ending)
	return ""
}

func (w *world) put(b bucket.Bucket, key, text string) {
	w.Helper()
	if err := b.Put(w.Context(), key, []byte(text), bucket.Condition{}); err != nil {
		w.Fatal(err)
	}
}

// TestCopy: all files are copied and read back once; again, nothing is copied; of a new version only
// what is new is.
func TestCopy(t *testing.T) {
	w := newWorld(t)
	first := w.copy()
	w.same()
	if first.Version != 2 || first.Files < 8 || first.At != w.now.UnixMilli() {
		t.Errorf("got %+v", first)
	}
	copies := w.root.Twin.Calls["Copy"]
	if again := w.copy(); again != first || w.root.Twin.Calls["Copy"] != copies {
		t.Errorf("again: %+v", again)
	}
	w.store(map[string]string{"a.txt": "two", "new.txt": "new"})
	third := w.copy()
	w.same()
	if third.Version != 3 || third.Files >= first.Files || w.root.Twin.Calls["Copy"] != copies+third.Files {
		t.Errorf("a new version: %+v with %d copies", third, w.root.Twin.Calls["Copy"]-copies)
	}
	last, err := w.replica(w.table(through)).Last(t.Context(), ark)
	if err != nil || last != third {
		t.Errorf("the last copy is %+v, %v", last, err)
	}
}

// TestTime: calls that have little time continue each other; until the last one the copy is no object.
func TestTime(t *testing.T) {
	w := newWorld(t)
	w.tick = time.Second
	for calls := 1; ; calls++ {
		_, err := w.replica(w.table(through)).Copy(t.Context(), ark, w.now.Add(4*time.Second))
		if err == nil {
			if calls < 3 {
				t.Errorf("all was copied in %d calls", calls)
			}
			break
		}
		if !fault.Is(err, fault.Unavailable) || calls > 50 {
			t.Fatalf("call %d: %v", calls, err)
		}
		if _, there := w.root.Twin.Object("copy/" + ocfl.Inventory(ark, 0).Key); there {
			t.Error("a part of a copy has an inventory")
		}
	}
	w.same()
}

// TestLarge: a large file is copied in parts, whose state another call continues; and through this
// process if S3 refuses to copy.
func TestLarge(t *testing.T) {
	for _, refused := range []string{"", "Copy", "Copy UploadPartCopy"} {
		for _, limit := range []int64{300, 1 << 30} {
			w := newWorld(t)
			w.tick = time.Second
			w.to.Limits = bucket.Limits{Part: 300, Copy: limit, CopyPart: 300}
			w.root.Twin.Before = func(op, _ string) int {
				if strings.Contains(refused+" ", op+" ") && op != "" {
					return http.StatusForbidden
				}
				return 0
			}
			var err error
			for range 200 {
				_, err = w.replica(w.table(through)).Copy(t.Context(), ark, w.now.Add(6*time.Second))
				if !fault.Is(err, fault.Unavailable) {
					break
				}
			}
			if err != nil {
				t.Fatalf("%q, %d: %v", refused, limit, err)
			}
			w.same()
		}
	}
}

// TestRefusedLater: a copy whose first parts S3 has made, and that it refuses to go on with, begins again through this
// process. A file that is replaced between two parts is no mixture.
func TestRefusedLater(t *testing.T) {
	w := newWorld(t)
	w.tick = time.Second
	w.to.Limits = bucket.Limits{Part: 300, Copy: 300, CopyPart: 300}
	limit := 4
	w.root.Twin.Before = func(op, _ string) int {
		if op == "UploadPartCopy" {
			limit--
			if limit < 0 {
				return http.StatusForbidden
			}
		}
		return 0
	}
	var err error
	for range 200 {
		_, err = w.replica(w.table(through)).Copy(t.Context(), ark, w.now.Add(6*time.Second))
		if !fault.Is(err, fault.Unavailable) {
			break
		}
	}
	if err != nil || limit >= 0 {
		t.Fatalf("%v, %d parts were not asked of S3", err, limit)
	}
	w.same()
}

// TestReplacedBetweenParts: a file that is replaced while S3 copies its parts is not copied as a mixture.
func TestReplacedBetweenParts(t *testing.T) {
	w := newWorld(t)
	from := bucket.Bucket{Client: w.root.Bucket.Client, Name: w.root.Bucket.Name,
		Limits: bucket.Limits{Part: 300, Copy: 300, CopyPart: 300}}
	w.put(from, "large", strings.Repeat("a", 900))
	info, err := from.Head(t.Context(), "large")
	if err != nil {
		t.Fatal(err)
	}
	w.put(from, "large", strings.Repeat("b", 900))
	u, err := w.to.Begin(t.Context(), "large")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := from.CopyParts(t.Context(), from, "large", info.ETag, u, 900); !fault.Is(err, fault.Stale) {
		t.Errorf("the parts of other content were copied: %v", err)
	}
}

// TestForbidden: a second bucket that cannot be written is Unavailable, and nothing is recorded.
func TestForbidden(t *testing.T) {
	w := newWorld(t)
	w.root.Twin.Before = func(_, name string) int {
		if strings.HasPrefix(name, "copy") {
			return http.StatusForbidden
		}
		return 0
	}
	_, err := w.replica(w.table(through)).Copy(t.Context(), ark, w.until())
	if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "AccessDenied") {
		t.Errorf("got %v", err)
	}
}

// TestDamagedSource: a file that is damaged in the storage root is never a good copy, and does not
// replace one.
func TestDamagedSource(t *testing.T) {
	w := newWorld(t)
	key := w.key("/b.txt")
	text, _ := w.root.Twin.Object("storage/" + key)
	w.put(w.root.Bucket, key, "damaged")
	_, err := w.replica(w.table(through)).Copy(t.Context(), ark, w.until())
	if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), key) {
		t.Errorf("got %v", err)
	}
	if _, there := w.root.Twin.Object("copy/" + key); there {
		t.Error("the damaged file is in the copy")
	}
	w.put(w.to, key, string(text))
	w.copy()
	if got, _ := w.root.Twin.Object("copy/" + key); string(got) != string(text) {
		t.Errorf("the good copy was replaced by %q", got)
	}
	w.put(w.root.Bucket, key, string(text))
	w.same()
}

// TestDamagedCopy: a file that is there, but wrong, is replaced.
func TestDamagedCopy(t *testing.T) {
	w := newWorld(t)
	w.put(w.to, w.key("/b.txt"), "damaged")
	w.copy()
	w.same()
}

// TestOther: a copy that is no earlier state of the object is not replaced.
func TestOther(t *testing.T) {
	w := newWorld(t)
	w.copy()
	other := newWorld(t)
	other.root.Store(ark, map[string]string{"other": "1"}, nil)
	for name, text := range other.files("storage") {
		w.put(w.to, ocfl.Prefix(ark)+name, text)
	}
	before := w.files("copy")
	_, err := w.replica(w.table(through)).Copy(t.Context(), ark, w.until())
	if !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "version 3") {
		t.Errorf("got %v", err)
	}
	for range 2 {
		w.store(map[string]string{fmt.Sprint("new", w.ids): "1"})
	}
	_, err = w.replica(w.table(through)).Copy(t.Context(), ark, w.until())
	if !fault.Is(err, fault.Conflict) {
		t.Errorf("got %v", err)
	}
	if after := w.files("copy"); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Error("the copy was changed")
	}
}

// TestMeanwhile: a version that is stored while the object is copied is copied too.
func TestMeanwhile(t *testing.T) {
	w := newWorld(t)
	stored := false
	w.root.Twin.Before = func(op, name string) int {
		if op == "Copy" && strings.Contains(name, "inventory.json") && !stored {
			stored = true
			w.store(map[string]string{"new": "new"})
		}
		return 0
	}
	if r := w.copy(); r.Version != 3 || !stored {
		t.Errorf("got %+v", r)
	}
	w.same()
}

// crashes calls crash with a process that dies, together with S3, at each of its calls in turn.
func crashes(t *testing.T, least int, crash func(w *world, m *tabletest.Mortal)) {
	tabletest.Crashes(t, least, func(t *testing.T, m *tabletest.Mortal) {
		w := newWorld(t)
		w.root.Bucket.Limits = bucket.Limits{Part: 900, Copy: 900, CopyPart: 900}
		w.to.Limits = w.root.Bucket.Limits
		crash(w, m)
	})
}

// TestCrash: a call that dies before or after any request is repeated, and the copy is right.
func TestCrash(t *testing.T) {
	crashes(t, 60, func(w *world, m *tabletest.Mortal) {
		w.root.Twin.Before = m.Status
		_, err := w.replica(w.table(m.Do)).Copy(w.Context(), ark, w.until())
		w.root.Twin.Before = nil
		if m.Dead() != (err != nil) {
			w.Fatalf("died %v, %v", m.Dead(), err)
		}
		_, inventory := w.root.Twin.Object("copy/" + ocfl.Inventory(ark, 0).Key)
		if files := w.files("copy"); inventory && len(files) < len(w.files("storage"))-2 {
			w.Errorf("a part of a copy has an inventory: %d files", len(files))
		}
		w.copy()
		w.same()
	})
}

// TestCompare: each difference is found, on pages of any size.
func TestCompare(t *testing.T) {
	w := newWorld(t)
	w.copy()
	a, b := w.key("/a.txt"), w.key("/b.txt")
	c, empty := w.key("/c/d ä.txt"), w.key("/empty")
	w.put(w.to, a, "o--")
	w.put(w.to, b, "short")
	for in, key := range map[*bucket.Bucket]string{&w.to: c, &w.root.Bucket: empty} {
		if err := in.Delete(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
	all, _, err := w.replica(w.table(through)).Compare(t.Context(), ark, "")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, d := range all {
		got[d.Key] = d.Kind
	}
	want := map[string]string{a: Content, b: Size, c: OnlyFirst, empty: OnlySecond}
	if fmt.Sprint(got) != fmt.Sprint(want) || len(all) != len(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestEarlierContentOfCopy: a version is not called copied while the copy lacks content of an earlier
// version, or has other bytes: they are copied again.
func TestEarlierContentOfCopy(t *testing.T) {
	for name, damage := range map[string]func(w *world, key string){
		"missing": func(w *world, key string) {
			if err := w.to.Delete(w.Context(), key); err != nil {
				w.Fatal(err)
			}
		},
		"another byte":   func(w *world, key string) { w.put(w.to, key, "ONE") },
		"another length": func(w *world, key string) { w.put(w.to, key, "o") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.copy()
			damage(w, w.key("producer/a.txt"))
			w.store(map[string]string{"later.txt": "later"})
			w.copy()
			w.same()
		})
	}
}
