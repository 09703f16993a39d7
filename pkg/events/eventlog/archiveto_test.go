package eventlog_test

import (
	"errors"
	"net/http"
	"reflect"
	"testing"
	"time"

	"archivist/pkg/kernel/bucket/buckettest"
)

// today makes 20 events of today.
func today(t *testing.T) (*world, *buckettest.Twin) {
	w := newWorld(t)
	twin, buckets := buckettest.Open(t, "events")
	w.log.Bucket = &buckets[0]
	for n := range 20 {
		w.happen("maps", job(n))
		w.place(job(n))
	}
	return w, twin
}

// TestArchiveTo: events of today are archived when they are asked for, once; what comes later
// follows in files of its own, and the chain is whole.
func TestArchiveTo(t *testing.T) {
	w, twin := today(t)
	to := func(seq int64, files int) {
		t.Helper()
		if err := w.log.ArchiveTo(t.Context(), "maps", seq); err != nil {
			t.Fatal(err)
		}
		if n := len(twin.Names("events")); n != files {
			t.Errorf("up to %d there are %d files, want %d", seq, n, files)
		}
	}
	to(7, 1)
	to(20, 1) // the first file has what there was
	w.happen("maps", job(1))
	w.place(job(1))
	to(20, 1)
	to(21, 2)
	before := w.read("maps")
	w.trim("maps", 21)
	if after := w.read("maps"); !reflect.DeepEqual(after, before) || len(after) != 21 {
		t.Errorf("read %d events of %d, or others", len(after), len(before))
	}
	w.happen("maps", job(2))
	w.place(job(2))
	w.now = w.now.Add(24 * time.Hour)
	w.archive(1)
	if found, files := w.verify(); len(found) > 0 || files != 3 {
		t.Errorf("%d files: %q", files, found)
	}
	if err := w.log.ArchiveTo(t.Context(), "maps", 23); err == nil {
		t.Error("an event that does not exist was archived")
	}
}

// TestArchiveToCrash: a call that dies at any request, or whose answer is lost, is repeated, and the
// archive is whole.
func TestArchiveToCrash(t *testing.T) {
	died := errors.New("died")
	for at := 0; ; at++ {
		for _, effect := range []bool{false, true} {
			w, twin := today(t)
			calls, dead := 0, false
			dies := func() bool {
				calls++
				first := !dead && calls > at
				dead = dead || first
				return first
			}
			w.do = func(_ string, call func() error) error {
				if dies() && effect {
					_ = call()
				}
				if dead {
					return died
				}
				return call()
			}
			twin.Before = func(string, string) int {
				dies()
				if dead {
					return http.StatusForbidden
				}
				return 0
			}
			err := w.log.ArchiveTo(t.Context(), "maps", 20)
			w.do, twin.Before = nil, nil
			if dead != (err != nil) {
				t.Fatalf("request %d: died %v, %v", at, dead, err)
			}
			if err := w.log.ArchiveTo(t.Context(), "maps", 20); err != nil {
				t.Fatal(err)
			}
			if found, files := w.verify(); len(found) > 0 || files != 1 {
				t.Errorf("request %d: %d files: %q", at, files, found)
			}
			if !dead {
				if at < 5 {
					t.Errorf("only %d crashes were tried", at)
				}
				return
			}
		}
	}
}
