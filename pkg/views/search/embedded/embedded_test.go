package embedded_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/views/search"
	"archivist/pkg/views/search/searchtest"
)

func TestConform(t *testing.T) {
	searchtest.Conform(t, func(t *testing.T) search.Index { return newWorld(t).process(&calls{}) })
}

// TestChanges: a reader that has a snapshot open sees the next one: changed, removed and new
// objects. It downloads only what it does not have.
func TestChanges(t *testing.T) {
	w := newWorld(t)
	writer, reader := w.process(&calls{}), w.process(&calls{})
	w.update(writer, w.Library()...)
	if found := w.find(reader, "harbour", ""); found != "harbour cafe" {
		t.Fatalf("found %q", found)
	}
	w.update(writer, w.Put("cafe", nil),
		w.Put("untitled", &search.Document{Collection: "photos", Titles: []string{"The harbour at night"}}))
	if found := w.find(reader, "harbour", search.ByTitle); found != "harbour untitled" {
		t.Errorf("after the changes: found %q", found)
	}
	w.update(writer, w.Put("cafe", nil), search.Change{ARK: "ark:/99999/unknown"}) // again, and one that never was
	before := w.twin.Calls["GET object"]
	for range 3 {
		w.find(reader, "harbour", "")
	}
	if n := w.twin.Calls["GET object"] - before; n > 2 {
		t.Errorf("the searches after a small change downloaded %d files", n)
	}
}

// TestWriters: writers at the same time, whose leases may end while they work, lose no
// document. (A writer whose commit is refused is called again, as a consumer is.)
func TestWriters(t *testing.T) {
	w := newWorld(t)
	w.began = time.Now()
	const writers, each = 4, 6
	var running sync.WaitGroup
	for n := range writers {
		x := w.process(&calls{})
		running.Go(func() {
			for m := range each {
				changed := w.Put(fmt.Sprint(n, "-", m), &search.Document{Titles: []string{"map"}})
				for x.Update(t.Context(), []search.Change{changed}, w.Read) != nil {
					if t.Context().Err() != nil {
						return
					}
				}
			}
		})
	}
	running.Wait()
	if found := w.total(w.process(&calls{}), "map"); found != writers*each {
		t.Errorf("%d of %d documents are found", found, writers*each)
	}
}

// TestOlder: a writer that has read an object before it changed does not overwrite the newer
// document of another writer, which waits until the first is done.
func TestOlder(t *testing.T) {
	w := newWorld(t)
	slow, quick := w.process(&calls{}), w.process(&calls{})
	changed := w.Put("a", &search.Document{Titles: []string{"old"}})
	newer := func() error {
		return quick.Update(t.Context(), []search.Change{w.Put("a", &search.Document{Titles: []string{"new"}})}, w.Read)
	}
	done := false
	read := func(ctx context.Context, ark string) (*search.Document, error) {
		d, err := w.Read(ctx, ark)
		if !done {
			done = newer() == nil
		}
		return d, err
	}
	if err := slow.Update(t.Context(), []search.Change{changed}, read); err != nil {
		t.Fatal(err)
	}
	if !done {
		if err := newer(); err != nil {
			t.Fatal(err)
		}
	}
	if found := w.find(slow, "new", ""); found != "a" {
		t.Errorf("the newer document is lost: found %q", found)
	}
}

// TestDeath: a writer dies at each of its requests, before or after the effect. A reader then
// finds all of the snapshot before or all of the one after, and the next writer completes it.
// In the end no file is left that no snapshot needs.
func TestDeath(t *testing.T) {
	for _, made := range []bool{false, true} {
		w := newWorld(t)
		w.update(w.process(&calls{}), w.Put("first", &search.Document{Titles: []string{"map"}}))
		total := 1
		for death, done := int64(1), false; !done; death++ {
			pair := []search.Change{w.Put(fmt.Sprint("a", death), &search.Document{Titles: []string{"map"}}),
				w.Put(fmt.Sprint("b", death), &search.Document{Titles: []string{"map"}})}
			c := &calls{death: death, made: made}
			done = w.process(c).Update(t.Context(), pair, w.Read) == nil && c.n.Load() < death
			found := w.total(w.process(&calls{}), "map")
			if found != total && found != total+2 || done && found != total+2 {
				t.Fatalf("died at request %d: %d documents are found; there were %d", death, found, total)
			}
			w.now = w.now.Add(2 * time.Minute) // the lease of the dead one has ended
			w.update(w.process(&calls{}), pair...)
			total += 2
			if death > 60 {
				t.Fatal("it never ends")
			}
		}
		w.now = w.now.Add(2 * time.Hour)
		x := w.process(&calls{})
		w.update(x, w.Put("last", &search.Document{Titles: []string{"map"}}))
		w.now = w.now.Add(2 * time.Hour)
		w.update(x, w.Put("last", nil))
		w.noneUnused(x)
	}
}

// noneUnused compares the files in the bucket with those that a new reader downloads.
func (w *world) noneUnused(_ search.Index) {
	w.Helper()
	before := w.twin.Calls["GET object"]
	w.total(w.process(&calls{}), "map")
	used, there := w.twin.Calls["GET object"]-before, w.twin.Names("")
	// the files that the last snapshot has replaced are kept for readers: one list of segments, and segments
	if len(there) > 2*used {
		w.Errorf("a snapshot has %d files, the bucket %d: %q", used, len(there), there)
	}
}

// TestReaders: a reader that has read the row can download that snapshot's files for a while
// after it was replaced; then they are removed.
func TestReaders(t *testing.T) {
	w := newWorld(t)
	x := w.process(&calls{})
	w.update(x, w.Library()...)
	first := w.twin.Names("")
	later := func(d time.Duration) {
		w.now = w.now.Add(d)
		w.update(x, w.Put("cafe", &search.Document{Titles: []string{fmt.Sprint("At ", w.now)}}))
	}
	later(0)
	later(15 * time.Minute)
	for _, name := range first {
		if !slices.Contains(w.twin.Names(""), name) {
			t.Errorf("after a quarter of an hour, %s is removed", name)
		}
	}
	later(6 * time.Minute)
	left := slices.DeleteFunc(first, func(name string) bool { return !slices.Contains(w.twin.Names(""), name) })
	if len(left) > 1 { // the description of the index never changes
		t.Errorf("after 21 minutes there are still %q", left)
	}
	if found := w.find(w.process(&calls{}), "harbour", ""); found != "harbour" {
		t.Errorf("found %q", found)
	}
}

// TestLimits: a snapshot that a disk cannot hold is refused with what to do, by readers and
// writers, and a damaged file is named.
func TestLimits(t *testing.T) {
	w := newWorld(t)
	w.update(w.process(&calls{}), w.Library()...)
	small := w.process(&calls{})
	small.MaxBytes = 100
	q, _ := search.ParseQuery("map")
	_, err := small.Search(t.Context(), search.Request{Query: q})
	if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "OpenSearch") {
		t.Errorf("a reader: %v", err)
	}
	err = small.Update(t.Context(), []search.Change{w.Put("cafe", nil)}, w.Read)
	if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "OpenSearch") {
		t.Errorf("a writer: %v", err)
	}
}

// TestLost: if the files of the newest snapshot are gone, as after a restore of the table, readers and
// writers say what to do.
func TestLost(t *testing.T) {
	w := newWorld(t)
	x := w.process(&calls{})
	w.update(x, w.Library()...)
	for _, name := range w.twin.Names(bucketName) {
		if err := x.Bucket.Delete(t.Context(), strings.TrimPrefix(name, bucketName+"/")); err != nil {
			t.Fatal(err)
		}
	}
	x = w.process(&calls{})
	q, _ := search.ParseQuery("map")
	_, err := x.Search(t.Context(), search.Request{Query: q})
	for _, err := range []error{err, x.Update(t.Context(), []search.Change{w.Put("cafe", nil)}, w.Read)} {
		if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "docs/restore.md") {
			t.Errorf("%v", err)
		}
	}
}
