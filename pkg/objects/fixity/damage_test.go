package fixity

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/inventory"
	"archivist/pkg/objects/ocfl"
)

// TestEmptySidecar: a sidecar without a digest is damage.
func TestEmptySidecar(t *testing.T) {
	for _, n := range []int{0, 1, 2} {
		for _, text := range []string{"", " ", "\n", "  inventory.json\n", "0123 inventory.json\n"} {
			w := newWorld(t)
			key := ocfl.Inventory(ark, n).Sidecar
			w.put(key, text)
			r := w.check()
			want := []Problem{{Key: key, Kind: BadSidecar, Reason: "the sidecar has no digest"}}
			if r.Outcome != Damaged || !reflect.DeepEqual(r.Problems, want) {
				t.Errorf("version %d, sidecar %q: %+v", n, text, r)
			}
		}
	}
}

// TestBrokenInventory: a check of an object whose inventory has lost its manifest ends, with damage.
func TestBrokenInventory(t *testing.T) {
	w := newWorld(t)
	key := ocfl.Inventory(ark, 0).Key
	text, _ := w.root.Twin.Object("storage/" + key)
	for at := strings.Index(string(text), `"manifest":`); text[at] != '{'; at++ {
		now := []byte(string(text))
		now[at] ^= 1
		w.put(key, string(now))
		r := w.check()
		if r.Outcome != Damaged || len(r.Problems) == 0 || r.Problems[0].Key != key || r.Problems[0].Kind != Mismatch {
			t.Errorf("byte %d: %+v", at, r)
		}
	}
	w.put(key, string(text))
	w.same(w.check(), w.good())
}

// TestLostInventory: the root inventory is lost, or breaks, between two calls of a check.
func TestLostInventory(t *testing.T) {
	key := ocfl.Inventory(ark, 0).Key
	for text, kind := range map[string]string{"": Missing, "broken": Mismatch} {
		w := newWorld(t)
		c := w.checker(w.table(through))
		c.Limits.Call = 1000
		for s := (&state{Run: &run{}}); s.Run.Part != partContent; {
			_, err := c.Check(t.Context(), ark, w.until())
			if !fault.Is(err, fault.Unavailable) {
				t.Fatal(err)
			}
			if s, err = c.load(t.Context(), ark); err != nil {
				t.Fatal(err)
			}
		}
		w.put(key, text)
		if text == "" {
			w.remove(key)
		}
		r := w.check()
		if r.Outcome != Damaged || len(r.Problems) != 1 || r.Problems[0].Key != key || r.Problems[0].Kind != kind {
			t.Errorf("%q: %+v", text, r)
		}
	}
}

// TestUnreadable: a file that S3 refuses is no damage. It is tried for a day, then the others are checked.
func TestUnreadable(t *testing.T) {
	w := newWorld(t)
	key, digest := w.key("/b.txt")
	w.root.Twin.Before = func(op, name string) int {
		if op == "GET object" && strings.HasSuffix(name, key) {
			return http.StatusForbidden
		}
		return 0
	}
	c := w.checker(w.table(through))
	for hour := range 24 {
		if _, err := c.Check(t.Context(), ark, w.until()); !fault.Is(err, fault.Unavailable) {
			t.Fatalf("hour %d: %v", hour, err)
		}
		w.now = w.now.Add(time.Hour)
	}
	r := w.check()
	if r.Outcome != Unreadable || r.Files != w.files || len(r.Problems) != 1 || r.Problems[0].Key != key ||
		r.Problems[0].Kind != Unread || r.Problems[0].Expected != digest {
		t.Errorf("got %+v", r)
	}
	w.root.Twin.Before = nil
	w.same(w.check(), w.good())
}

// TestEndedContext: a file that was not read because the call's own time ended is not one that S3 refuses.
func TestEndedContext(t *testing.T) {
	w := newWorld(t)
	key, _ := w.key("/b.txt")
	ctx, cancel := context.WithCancel(t.Context())
	w.root.Twin.Before = func(op, name string) int {
		if op == "GET object" && strings.HasSuffix(name, key) {
			cancel()
			return http.StatusForbidden
		}
		return 0
	}
	c := w.checker(w.table(through))
	if _, err := c.Check(ctx, ark, w.until()); !fault.Is(err, fault.Unavailable) {
		t.Fatal(err)
	}
	if s, err := c.load(t.Context(), ark); err != nil || s.Run == nil || s.Run.Failing != 0 {
		t.Errorf("the file is noted as one that fails: %+v, %v", s, err)
	}
}

// TestReserved: each call reserves a small part of the day, so that the first ones leave enough for others.
func TestReserved(t *testing.T) {
	w := newWorld(t)
	c := w.checker(w.table(through))
	for n := range atOnce {
		if g, err := c.grant(t.Context()); err != nil || g.bytes != c.Limits.Day/atOnce {
			t.Fatalf("call %d: %+v, %v", n, g, err)
		}
	}
	if _, err := c.grant(t.Context()); !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "reserved") {
		t.Errorf("one more: %v", err)
	}
}

// TestLostAnswer: the answer of a write of the day's bytes is lost; they are counted once nevertheless.
func TestLostAnswer(t *testing.T) {
	for lost := range 2 {
		w := newWorld(t)
		n := 0
		tb := w.table(func(op string, call func() error) error {
			err := call()
			if op != "UpdateItem" || err != nil {
				return err
			}
			n++
			if n == lost+1 {
				err = errors.New("the answer is lost")
			}
			return err
		})
		_, err := w.checker(tb).Check(w.Context(), ark, w.until())
		if got := w.read(); err != nil || n < 2 || got != w.bytes {
			t.Errorf("update %d of %d: %v; %d bytes are counted of %d", lost, n, err, got, w.bytes)
		}
	}
}

// TestVersionOnRecord: of a version's inventory and its sidecar, the one is named that is not as the version's row has
// it, so that a repair of what is named ends.
func TestVersionOnRecord(t *testing.T) {
	for name, c := range map[string]struct {
		inventory, sidecar string // in place of the stored ones; "": as stored
		want               string // the ending of the key that is named
	}{
		"the sidecar is another":     {"", sum("x") + " inventory.json\n", "v1/inventory.json.sha512"},
		"the inventory is another":   {"x", "", "v1/inventory.json"},
		"both agree, and are others": {"x", sum("x") + " inventory.json\n", "v1/inventory.json"},
		"the sidecar has no digest":  {"", "nonsense", "v1/inventory.json.sha512"},
		"neither is right":           {"x", "nonsense", "v1/inventory.json.sha512 v1/inventory.json"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			i := ocfl.Inventory(ark, 1)
			text, _ := w.root.Twin.Object("storage/" + i.Key)
			w.record(1, sum(string(text)))
			if r := w.check(); r.Outcome != OK || r.OnRecord != 1 {
				t.Fatalf("before: %+v", r)
			}
			for key, text := range map[string]string{i.Key: c.inventory, i.Sidecar: c.sidecar} {
				if text != "" {
					w.put(key, text)
				}
			}
			var named []string
			for _, p := range w.check().Problems {
				named = append(named, strings.TrimPrefix(p.Key, ocfl.Prefix(ark)))
			}
			slices.Sort(named)
			want := strings.Fields(c.want)
			slices.Sort(want)
			named = slices.Compact(named)
			if !slices.Equal(named, want) {
				t.Errorf("named are %q, expected %q", named, want)
			}
		})
	}
}

// record puts the row of a version.
func (w *world) record(n int, digest string) {
	w.Helper()
	tb := w.table(through)
	put, err := inventory.Store{Table: tb}.PrepareVersions(w.Context(), inventory.Record{
		Object:   inventory.Object{ARK: ark, Collection: "maps", HeadOf: n},
		Versions: []inventory.Version{{Number: n, Digest: digest}}}, 0)
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
