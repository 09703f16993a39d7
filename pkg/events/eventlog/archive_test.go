package eventlog_test

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"archivist/pkg/events/envelope"
	"archivist/pkg/events/eventlog"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/bucket/buckettest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
)

// days makes events happen on some days, and archives them. The last day is not over.
func days(t *testing.T) (*world, *buckettest.Twin) {
	w := newWorld(t)
	twin, buckets := buckettest.Open(t, "events")
	w.log.Bucket = &buckets[0]
	for range 4 {
		for n := range 60 {
			w.happen("maps", job(n))
			w.happen("", job(n+1000))
			w.place(job(n), job(n+1000))
		}
		w.now = w.now.Add(24 * time.Hour)
	}
	w.now = w.now.Add(-24 * time.Hour)
	w.archive(6)
	return w, twin
}

// archive archives the days that are over.
func (w *world) archive(files int) {
	w.t.Helper()
	had, _ := w.rows("LOG#", "FILE#")
	partitions, err := w.log.Partitions(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	today := w.now.Truncate(24 * time.Hour).UnixMilli()
	for _, p := range partitions {
		last := int64(0)
		for _, e := range w.read(p.Name) {
			if e.Time < today {
				last = e.Seq
			}
		}
		if err := w.log.ArchiveTo(w.t.Context(), p.Name, last); err != nil {
			w.t.Fatal(err)
		}
	}
	if has, _ := w.rows("LOG#", "FILE#"); has-had != files {
		w.t.Fatalf("%d files were written, expected %d", has-had, files)
	}
}

// verify checks the archive a few files at once.
func (w *world) verify() (found []string, files int) {
	w.t.Helper()
	for cursor, first := "", true; first || cursor != ""; first = false {
		v, err := w.log.Verify(w.t.Context(), cursor, w.now)
		if err != nil || files > 100 {
			w.t.Fatal(err)
		}
		for _, f := range v.Findings {
			found = append(found, f.Partition+" "+f.File+": "+f.Problem)
		}
		files += v.Files
		cursor = v.Cursor
	}
	return found, files
}

// trim removes references from the table, as if they were expired.
func (w *world) trim(partition string, last int64) {
	w.t.Helper()
	tb := tabletest.Table(w.fake)
	tx := tb.Begin(w.id())
	tx.Amend(table.Key{PK: "LOGS", SK: "HEAD#" + partition}, "attribute_exists(pk)",
		map[string]any{"trimmed_seq": last})
	for seq := int64(1); seq <= last; seq++ {
		if err := tx.Commit(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
		tx = tb.Begin(w.id())
		row := table.Head{PK: "LOG#" + partition, SK: fmt.Sprintf("SEQ#%012d", seq), Rev: 1}
		tx.Remove(&row)
	}
	if err := tx.Commit(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// TestArchive: days that are over are archived once; the log is read from the archive and the
// table alike.
func TestArchive(t *testing.T) {
	w, twin := days(t)
	w.archive(0)
	before := w.read("maps")
	w.trim("maps", 170)
	if after := w.read("maps"); !reflect.DeepEqual(after, before) || len(after) != 240 {
		t.Errorf("read %d events of %d, or others", len(after), len(before))
	}
	if found, files := w.verify(); len(found) > 0 || files != 6 {
		t.Errorf("%d files: %q", files, found)
	}
	if names := twin.Names("events"); len(names) != 6 || !strings.HasSuffix(names[1],
		"epoch-1/maps/0.0/2026-11-23-000000000061.jsonl") {
		t.Errorf("the files are %q", names)
	}
}

// TestPayloadFromArchive: the payload of an event whose row has expired is in the archive.
func TestPayloadFromArchive(t *testing.T) {
	w, _ := days(t)
	facts := w.read("maps")[:70]
	want, err := w.log.Events(t.Context(), facts)
	if err != nil {
		t.Fatal(err)
	}
	tx := tabletest.Table(w.fake).Begin(w.id())
	for _, n := range []int{0, 3} {
		tx.Remove(&table.Head{PK: "JOB#" + job(n).ID, SK: fmt.Sprintf("EV#%012d", 1), Rev: 1})
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, err := w.log.Events(t.Context(), facts)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	facts[0].Version = 7
	if _, err := w.log.Events(t.Context(), facts); !fault.Is(err, fault.NotFound) {
		t.Error("an event that does not exist:", err)
	}
}

// TestLateOverMidnight: a placement that began on a day that is archived meanwhile gets its place
// on a later day.
func TestLateOverMidnight(t *testing.T) {
	w, _ := days(t)
	w.happen("maps", job(1))
	late := w.relay(w.fake)
	began := w.now
	late.Now = func() time.Time { return began }
	w.do = func(op string, call func() error) error {
		if op == "TransactWriteItems" {
			w.do = nil
			w.now = w.now.Add(24 * time.Hour)
			w.archive(2)
		}
		return call()
	}
	if placed, err := late.Place(t.Context(), w.subjects(1)); err != nil || len(placed) != 1 {
		t.Fatal(placed, err)
	}
	w.now = w.now.Add(24 * time.Hour)
	w.archive(1)
	w.check()
	if found, _ := w.verify(); len(found) > 0 {
		t.Error(found)
	}
}

// TestArchiveCrash: an archiver dies at each of its requests to the table, before or after the
// effect, or another one works at the same time. The archive is complete, each event in one file.
func TestArchiveCrash(t *testing.T) {
	for stop, done := 1, false; !done; stop++ {
		for _, how := range []string{"before", "after", "another"} {
			w := newWorld(t)
			_, buckets := buckettest.Open(t, "events")
			w.log.Bucket = &buckets[0]
			for n := range 5 {
				w.happen("maps", job(n))
				w.place(job(n))
				w.now = w.now.Add(10 * time.Hour)
			}
			w.now = w.now.Add(24 * time.Hour)
			calls := 0
			w.do = func(_ string, call func() error) error {
				calls++
				switch {
				case how == "another" && calls == stop:
					do := w.do
					w.do = nil
					defer func() { w.do = do }()
					other := w.relay(w.fake)
					other.Bucket = &buckets[0]
					if err := other.ArchiveTo(t.Context(), "maps", 5); err != nil {
						t.Error(err)
					}
				case how != "another" && calls > stop || how == "before" && calls == stop:
					return errKilled
				}
				err := call()
				if how == "after" && calls == stop {
					err = errKilled
				}
				return err
			}
			err := w.log.ArchiveTo(t.Context(), "maps", 5)
			done = err == nil && calls < stop
			w.do = nil
			if err := w.log.ArchiveTo(t.Context(), "maps", 5); err != nil {
				t.Fatal(err)
			}
			want := w.read("maps")
			w.trim("maps", 5)
			found, files := w.verify()
			if len(found) > 0 || files != 3 || !reflect.DeepEqual(w.read("maps"), want) {
				t.Fatalf("died at %d: %d files: %q", stop, files, found)
			}
		}
	}
}

// Files of days.
const (
	second = "epoch-1/maps/0.0/2026-11-23-000000000061.jsonl"
	third  = "epoch-1/maps/0.0/2026-11-24-000000000121.jsonl"
)

// TestVerify: each damage to the archive is found, and named with its place.
func TestVerify(t *testing.T) {
	w, _ := days(t)
	w.trim("maps", 180)
	b := *w.log.Bucket
	whole, _, err := b.Read(t.Context(), second)
	if err != nil {
		t.Fatal(err)
	}
	put := func(data []byte) {
		t.Helper()
		if err := b.Put(t.Context(), second, data, bucket.Condition{}); err != nil {
			t.Fatal(err)
		}
	}
	// Every byte of the first line and of two events, one after the other.
	lines := bytes.SplitAfter(whole, []byte("\n"))
	upTo := len(lines[0]) + len(lines[1]) + len(lines[2])
	for at := 0; at < upTo; at += 7 {
		changed := bytes.Clone(whole)
		changed[at] ^= 1
		put(changed)
		line := 1 + bytes.Count(whole[:at], []byte("\n"))
		found, _ := w.verify()
		if where := fmt.Sprintf("%s: line %d", second, line); len(found) != 1 || !strings.Contains(found[0], where) {
			t.Errorf("byte %d in line %d, %q: %q", at, line, whole[at], found)
		}
	}
	if _, err := w.relay(w.fake).Read(t.Context(), "maps", 60, 10); err == nil {
		t.Error("the damaged file was read")
	}

	cut := bytes.Join(lines[:10], nil)
	forged := bytes.Replace(whole, lines[4], lines[4], 1)
	copy(forged, bytes.Replace(whole, []byte(`2026-11-23`), []byte(`2026-11-29`), 1))
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"cut":       {cut, "line 1: it names the events 61 to 120; the file has 9"},
		"other day": {forged, `line 1: expected {"partition":"maps","epoch":1,"day":"2026-11-23"`},
		"swapped":   {bytes.Join([][]byte{lines[0], lines[2], lines[1], bytes.Join(lines[3:], nil)}, nil), "line 2"},
		"empty":     {nil, "line 1"},
	} {
		put(c.data)
		if found, _ := w.verify(); len(found) != 1 || !strings.Contains(found[0], c.want) {
			t.Errorf("%s: %q", name, found)
		}
	}

}

// TestVerifyMissing: a file that is missing is found, in the bucket or in the table.
func TestVerifyMissing(t *testing.T) {
	w, _ := days(t)
	w.trim("maps", 180)
	if err := w.log.Bucket.Delete(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	if found, _ := w.verify(); len(found) != 1 || !strings.Contains(found[0], "the file of 2026-11-23") {
		t.Errorf("a missing day: %q", found)
	}
	tx := tabletest.Table(w.fake).Begin(w.id())
	tx.Remove(&table.Head{PK: "LOG#maps", SK: "FILE#000000000061", Rev: 1})
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	found, _ := w.verify()
	if text := strings.Join(found, "\n"); len(found) != 2 || !strings.Contains(text, "events 61 to 120") ||
		!strings.Contains(text, third) {
		t.Errorf("a day that the table does not know: %q", found)
	}
	tx = tabletest.Table(w.fake).Begin(w.id())
	tx.Remove(&table.Head{PK: "LOG#maps", SK: "FILE#000000000121", Rev: 1})
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if found, _ := w.verify(); len(found) != 1 || !strings.Contains(found[0], "from 61 up to 181") {
		t.Errorf("the last days are missing: %q", found)
	}
}

var restoredBy = eventlog.By{Actor: "ann", Reason: "the table was restored"}

// TestEpoch: after a restore the archive has the files of a time that the table does not know.
// They are not taken for its own; the epoch is raised past all that there ever were.
func TestEpoch(t *testing.T) {
	w, _ := days(t)
	restored := newWorld(t)
	restored.log.Bucket = w.log.Bucket
	restored.happen("maps", job(77))
	restored.place(job(77))
	restored.now = restored.now.Add(24 * time.Hour)
	if err := restored.log.ArchiveTo(t.Context(), "maps", 1); !fault.Is(err, fault.Conflict) {
		t.Errorf("files of another time were taken over: %v", err)
	}
	for want := int64(2); want < 4; want++ {
		if n, err := restored.log.RaiseEpoch(t.Context(), restoredBy); err != nil || n != want {
			t.Errorf("the epoch is %d, %v", n, err)
		}
	}
	restored.archive(1)
	if found, files := restored.verify(); len(found) > 0 || files != 1 {
		t.Errorf("%d files: %q", files, found)
	}
	p, err := restored.log.Partition(t.Context(), "maps")
	all, listErr := restored.log.Partitions(t.Context())
	if err != nil || listErr != nil || p.Epoch != 3 || !reflect.DeepEqual(all, []envelope.Partition{p}) {
		t.Errorf("%+v, %+v, %v, %v", p, all, err, listErr)
	}
	if n, err := w.log.RaiseEpoch(t.Context(), restoredBy); err != nil || n != 4 {
		t.Errorf("the epoch of a table that did not know of the others is %d, %v", n, err)
	}
}
