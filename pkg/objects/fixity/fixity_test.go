package fixity

import (
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/pkg/objects/aip/aiptest"
	"archivist/pkg/objects/ocfl"
)

const ark = "ark:/99999/fk4x"

// world has one stored object of two versions.
type world struct {
	*testing.T
	root  *aiptest.Root
	rows  *tabletest.Fake
	ids   int
	now   time.Time
	bytes int64 // of all that a check reads
	files int
}

func newWorld(t *testing.T) *world {
	w := &world{T: t, root: aiptest.New(t), rows: tabletest.New(), now: time.Date(2030, 1, 2, 3, 0, 0, 0, time.UTC)}
	w.root.Store(ark, map[string]string{"a.txt": "one", "b.txt": strings.Repeat("large", 1000), "empty": ""},
		aiptest.System("maps", "", "", ""))
	w.root.Store(ark, map[string]string{"a.txt": "two", "c/d.txt": "three"}, aiptest.System("maps", "", "", ""))
	w.count()
	return w
}

// count counts what a check reads: all but the sidecars.
func (w *world) count() {
	w.bytes, w.files = 0, 0
	for _, name := range w.root.Twin.Names("storage/" + ocfl.Prefix(ark)) {
		if data, _ := w.root.Twin.Object(name); !strings.HasSuffix(name, ".sha512") {
			w.bytes, w.files = w.bytes+int64(len(data)), w.files+1
		}
	}
}

func (w *world) id() string { w.ids++; return fmt.Sprint("tx", w.ids) }

func through(_ string, call func() error) error { return call() }

func (w *world) table(do func(op string, call func() error) error) *table.Table {
	return tabletest.Through(w.rows, do)
}

func (w *world) checker(tb *table.Table) *Checker {
	return &Checker{Table: tb, NewID: w.id, Now: func() time.Time { return w.now }, At: InStorage, Root: w.root.Root,
		Limits: DefaultLimits}
}

func (w *world) until() time.Time { return w.now.Add(time.Minute) }

// check checks the object in one call.
func (w *world) check() Result {
	w.Helper()
	r, err := w.checker(w.table(through)).Check(w.Context(), ark, w.until())
	if err != nil {
		w.Fatal(err)
	}
	return r
}

// key is that of some content of the object, and its digest.
func (w *world) key(ending string) (key, digest string) {
	w.Helper()
	for _, name := range w.root.Twin.Names("storage/" + ocfl.Prefix(ark)) {
		if strings.HasSuffix(name, ending) {
			data, _ := w.root.Twin.Object(name)
			return strings.TrimPrefix(name, "storage/"), sum(string(data))
		}
	}
	w.Fatalf("there is no %s", ending)
	return "", ""
}

func sum(text string) string {
	s := sha512.Sum512([]byte(text))
	return hex.EncodeToString(s[:])
}

// put replaces a stored file by hand.
func (w *world) put(key, text string) {
	w.Helper()
	if err := w.root.Bucket.Put(w.Context(), key, []byte(text), bucket.Condition{}); err != nil {
		w.Fatal(err)
	}
}

func (w *world) remove(key string) {
	w.Helper()
	if err := w.root.Bucket.Delete(w.Context(), key); err != nil {
		w.Fatal(err)
	}
}

func (w *world) good() Result {
	return Result{Outcome: OK, Checked: w.now.UnixMilli(), Version: 2, Files: w.files, Bytes: w.bytes}
}

// same compares results, and the bytes of the day with those that were read.
func (w *world) same(got, want Result) {
	w.Helper()
	if !reflect.DeepEqual(got, want) {
		w.Errorf("got %+v, want %+v", got, want)
	}
	last, err := InStorage.Last(w.Context(), w.table(through), "ark:/99999/none", ark)
	if err != nil || len(last) != 1 || !reflect.DeepEqual(last[ark], want) {
		w.Errorf("the last check is %+v, %v", last, err)
	}
}

// read are the bytes that are counted for today.
func (w *world) read() int64 {
	w.Helper()
	var row day
	k := table.Key{PK: "FIXITY", SK: "DAY#" + w.now.Format(time.DateOnly)}
	if err := w.table(through).Get(w.Context(), k, &row); err != nil {
		w.Fatal(err)
	}
	if row.ExpiresAt == 0 {
		w.Error("the row of the day stays for ever")
	}
	return row.Bytes
}

// TestOK: all files of all versions are read once; the day has their bytes.
func TestOK(t *testing.T) {
	w := newWorld(t)
	w.same(w.check(), w.good())
	if got := w.read(); got != w.bytes {
		t.Errorf("%d bytes are counted, want %d", got, w.bytes)
	}
	w.now = w.now.Add(24 * time.Hour)
	w.same(w.check(), w.good())
}

// TestDamage: whatever file is changed or missing is found, with both digests, and nothing is changed.
func TestDamage(t *testing.T) {
	w := newWorld(t)
	for _, name := range w.root.Twin.Names("storage/" + ocfl.Prefix(ark)) {
		key := strings.TrimPrefix(name, "storage/")
		was, _ := w.root.Twin.Object(name)
		side := strings.HasSuffix(key, ".sha512")
		for _, now := range []string{"damaged", ""} {
			want := Problem{Key: key, Kind: Mismatch, Expected: sum(string(was)), Actual: sum(now)}
			w.put(key, now)
			if now == "" {
				w.remove(key)
				want.Kind, want.Actual = Missing, ""
			}
			if side {
				want = Problem{}
			}
			r := w.check()
			found := len(r.Problems) > 0 && (side || r.Problems[0] == want)
			if r.Outcome != Damaged || !found || len(r.Problems) > 1 && !strings.HasSuffix(key, "inventory.json") {
				t.Errorf("%s %q: %+v", key, now, r)
			}
			w.same(r, r)
			if data, there := w.root.Twin.Object(name); string(data) != now || there != (now != "") {
				t.Errorf("%s was changed to %q", key, data)
			}
		}
		w.put(key, string(was))
	}
	w.same(w.check(), w.good())
}

// TestInventory: an inventory that is damaged, but can be read, is found; content is checked with it.
func TestInventory(t *testing.T) {
	w := newWorld(t)
	key := ocfl.Inventory(ark, 0).Key
	text, _ := w.root.Twin.Object("storage/" + key)
	changed := strings.Replace(string(text), "1970", "1971", 1)
	w.put(key, changed)
	r := w.check()
	want := w.good()
	want.Outcome = Damaged
	want.Problems = []Problem{{Key: key, Kind: Mismatch, Expected: sum(string(text)), Actual: sum(changed)}}
	w.same(r, want)
}

// TestParts: calls that may read a few bytes each find the same as one call, also within a file.
func TestParts(t *testing.T) {
	for _, damaged := range []bool{false, true} {
		w := newWorld(t)
		want := w.good()
		if damaged {
			key, digest := w.key("/b.txt")
			text := strings.Repeat("large", 999) + "other"
			w.put(key, text)
			want.Outcome = Damaged
			want.Problems = []Problem{{Key: key, Kind: Mismatch, Expected: digest, Actual: sum(text)}}
		}
		c := w.checker(w.table(through))
		c.Limits.Call = 333
		for calls := int64(1); ; calls++ {
			r, err := c.Check(t.Context(), ark, w.until())
			if err == nil {
				w.same(r, want)
				if calls < w.bytes/333 {
					t.Errorf("%d calls", calls)
				}
				break
			}
			if !fault.Is(err, fault.Unavailable) || calls > 200 {
				t.Fatal(err)
			}
			if got := w.read(); got != min(calls*333, w.bytes) {
				t.Errorf("after %d calls %d bytes are counted", calls, got)
			}
		}
	}
}

// TestTime: a call whose time is over does nothing more.
func TestTime(t *testing.T) {
	w := newWorld(t)
	if _, err := w.checker(w.table(through)).Check(t.Context(), ark, w.now); !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v", err)
	}
	if got := w.read(); got != 0 {
		t.Errorf("%d bytes are counted", got)
	}
	if last, err := InStorage.Last(t.Context(), w.table(through), ark); len(last) != 0 || err != nil {
		t.Errorf("a check in progress is shown as %+v, %v", last, err)
	}
	w.same(w.check(), w.good())
}

// TestDay: the bytes of a day bound all checks together; the next day continues.
func TestDay(t *testing.T) {
	w := newWorld(t)
	c := w.checker(w.table(through))
	c.Limits.Day, c.Limits.Call = w.bytes-100, 1000
	for n := 0; ; n++ {
		_, err := c.Check(t.Context(), ark, w.until())
		if !fault.Is(err, fault.Unavailable) || n > 100 {
			t.Fatalf("call %d: %v", n, err)
		}
		if strings.Contains(err.Error(), "tomorrow") {
			break
		}
	}
	if got := w.read(); got > c.Limits.Day || got < c.Limits.Day-1000 {
		t.Errorf("%d bytes are counted of %d", got, c.Limits.Day)
	}
	w.now = w.now.Add(24 * time.Hour)
	for {
		r, err := c.Check(t.Context(), ark, w.until())
		if err == nil {
			w.same(r, w.good())
			return
		}
		if !fault.Is(err, fault.Unavailable) {
			t.Fatal(err)
		}
	}
}

// TestReplaced: a file that is replaced between two calls is read from its beginning.
func TestReplaced(t *testing.T) {
	w := newWorld(t)
	key, digest := w.key("/b.txt")
	c := w.checker(w.table(through))
	c.Limits.Call = 100
	for {
		if _, err := c.Check(t.Context(), ark, w.until()); !fault.Is(err, fault.Unavailable) {
			t.Fatal(err)
		}
		s, err := c.load(t.Context(), ark)
		if err != nil {
			t.Fatal(err)
		}
		if s.Run.File != nil && s.Run.File.Key == key && s.Run.File.At > 1000 {
			break
		}
	}
	// The first bytes, which were read, are other ones now.
	text := "damaged" + strings.Repeat("large", 1000)[7:]
	w.put(key, text)
	r := w.check()
	want := Problem{Key: key, Kind: Mismatch, Expected: digest, Actual: sum(text)}
	if len(r.Problems) != 1 || r.Problems[0] != want {
		t.Errorf("got %+v", r)
	}
}

// TestNewVersion: a version that is stored between two calls does not begin the check again.
func TestNewVersion(t *testing.T) {
	w := newWorld(t)
	c := w.checker(w.table(through))
	c.Limits.Call = 1000
	s := &state{Run: &run{}}
	for s.Run.Place.Digest == "" {
		if _, err := c.Check(t.Context(), ark, w.until()); !fault.Is(err, fault.Unavailable) {
			t.Fatal(err)
		}
		var err error
		if s, err = c.load(t.Context(), ark); err != nil {
			t.Fatal(err)
		}
	}
	w.root.Store(ark, map[string]string{"new": "new"}, aiptest.System("maps", "", "", ""))
	r := w.check()
	if r.Outcome != OK || r.Files < w.files || r.Files > w.files+4 || r.Version != 2 {
		t.Errorf("got %+v; %d files before", r, w.files)
	}
	w.count()
	want := w.good()
	want.Version = 3
	w.same(w.check(), want)
}

// TestUnfinished: a version that is committed, but not finished, is no damage.
func TestUnfinished(t *testing.T) {
	w := newWorld(t)
	root, before := ocfl.Inventory(ark, 0), ocfl.Inventory(ark, 1)
	now, _ := w.root.Twin.Object("storage/" + root.Sidecar)
	stale, _ := w.root.Twin.Object("storage/" + before.Sidecar)
	w.put(root.Sidecar, string(stale))
	_, err := w.checker(w.table(through)).Check(t.Context(), ark, w.until())
	if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "not finished") {
		t.Errorf("got %v", err)
	}
	w.put(root.Sidecar, string(now))
	if r := w.check(); r.Outcome != OK || len(r.Problems) != 0 {
		t.Errorf("got %+v", r)
	}
}

// TestCrash: a call that dies before or after any request is repeated; the result is right.
func TestCrash(t *testing.T) {
	tabletest.Crashes(t, 20, func(t *testing.T, m *tabletest.Mortal) {
		w := newWorld(t)
		w.root.Twin.Before = m.Status
		_, err := w.checker(w.table(m.Do)).Check(t.Context(), ark, w.until())
		w.root.Twin.Before = nil
		if m.Dead() != (err != nil) {
			t.Fatalf("died %v, %v", m.Dead(), err)
		}
		w.same(w.check(), w.good())
	})
}

// TestTwo: of two calls at once, one saves its part; the other is tried again.
func TestTwo(t *testing.T) {
	w := newWorld(t)
	other := false
	tb := w.table(func(op string, call func() error) error {
		if op == "PutItem" && !other {
			other = true
			w.check()
		}
		return call()
	})
	_, err := w.checker(tb).Check(t.Context(), ark, w.until())
	if !fault.Is(err, fault.Unavailable) || !other {
		t.Errorf("got %v", err)
	}
	w.same(w.check(), w.good())
}
