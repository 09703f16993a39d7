package eventlog_test

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/events/eventlog"
	"archivist/pkg/kernel/bucket/buckettest"
)

var keep = eventlog.Retention{Log: 10 * 24 * time.Hour, Expiring: 90 * 24 * time.Hour}

func batch(n int) event.Subject {
	return event.Subject{Type: event.Batch, ID: fmt.Sprintf("B-%d", n)}
}

// aged is a log of events of jobs and batches of three days, all of which are archived, long ago.
func aged(t *testing.T, jobs int) *world {
	w := newWorld(t)
	_, buckets := buckettest.Open(t, "events")
	w.log.Bucket = &buckets[0]
	for range 3 {
		for n := range jobs {
			w.happen("maps", job(n), batch(n%3))
			w.place(job(n), batch(n%3))
		}
		w.now = w.now.Add(24 * time.Hour)
	}
	w.archive(3)
	w.now = w.now.Add(20 * 24 * time.Hour)
	return w
}

func passedUpTo(seq int64) eventlog.Passed {
	return func(context.Context, []envelope.Partition) (map[string]int64, bool, error) {
		return map[string]int64{"maps": seq}, true, nil
	}
}

func none(context.Context, []envelope.Partition) (map[string]int64, bool, error) {
	return nil, false, nil
}

func (w *world) expire(passed eventlog.Passed) eventlog.Expired {
	w.t.Helper()
	done, err := w.log.Expire(w.t.Context(), keep, passed, w.now.Add(time.Hour))
	if err != nil {
		w.t.Fatal(err)
	}
	return done
}

// rows counts the rows with a prefix of their sort key, and those among them that DynamoDB will remove.
func (w *world) rows(pk, sk string) (n, ending int) {
	for _, it := range w.fake.All() {
		if k := keyOf(it); strings.HasPrefix(k.PK, pk) && strings.HasPrefix(k.SK, sk) {
			n++
			if it["gone"] != nil {
				ending++
			}
		}
	}
	return n, ending
}

// TestExpire: what is old goes as far as the archive and the required consumers have passed it,
// what holds it back is reported, and the whole log can be read all the time.
func TestExpire(t *testing.T) {
	w := aged(t, 45)
	want := w.read("maps")
	done := w.expire(passedUpTo(0))
	if blocked := fmt.Sprint(done.Blocked); done.References != 0 || done.Events != 0 || len(done.Blocked) != 1 ||
		done.Blocked[0].By != eventlog.ByConsumer || done.Blocked[0].Seq != 1 {
		t.Errorf("a consumer has passed nothing: %+v, %s", done, blocked)
	}
	done = w.expire(passedUpTo(150))
	if n, _ := w.rows("LOG#maps", "SEQ#"); done.References != 150 || n != 120 || done.Blocked[0].Seq != 151 {
		t.Errorf("a consumer has passed 150: %d references are left, %+v", n, done)
	}
	if !reflect.DeepEqual(w.read("maps"), want) {
		t.Error("the log is not what it was")
	}

	w.happen("maps", job(1), batch(1))
	w.place(job(1), batch(1))
	w.now = w.now.Add(keep.Log + time.Minute) // on a day that is not archived
	want = w.read("maps")
	done = w.expire(none)
	n, _ := w.rows("LOG#maps", "SEQ#")
	if n != 2 || done.Blocked[0].By != eventlog.ByArchive || done.Blocked[0].Seq != 271 {
		t.Errorf("the archive has not passed the last: %d references are left, %+v", n, done)
	}
	w.archive(1)
	if done := w.expire(none); done.References != 2 || len(done.Blocked) > 0 {
		t.Errorf("%+v", done)
	}
	if done := w.expire(none); done.References != 0 || done.Events != 0 || len(done.Blocked) > 0 {
		t.Errorf("a second time: %+v", done)
	}
	if !reflect.DeepEqual(w.read("maps"), want) {
		t.Error("the log is not what it was")
	}
	if n, ending := w.rows("JOB#", "EV#"); n != 136 || ending != 0 {
		t.Errorf("%d events of jobs are left of 136; %d will be removed", n, ending)
	}
	if n, ending := w.rows("BATCH#", "EV#"); n != 136 || ending != 133 {
		t.Errorf("%d events of batches are left; %d will be removed, the newest of each stays", n, ending)
	}
	w.happen("maps", batch(1), batch(2))
	if placed := w.place(batch(1), batch(2)); len(placed) != 2 {
		t.Errorf("placed %+v", placed)
	}
}

// TestExpireAtOnce: the rows of events that are older than their class keeps them are removed.
func TestExpireAtOnce(t *testing.T) {
	w := aged(t, 45)
	w.now = w.now.Add(keep.Expiring)
	want := w.read("maps")
	w.expire(none)
	if n, _ := w.rows("BATCH#", "EV#"); n != 3 {
		t.Errorf("%d events of batches are left", n)
	}
	whole, err := w.log.Events(t.Context(), want)
	if err != nil || len(whole) != len(want) || string(whole[1].Detail) == "" {
		t.Error("the payload is not in the archive:", err)
	}
	w.happen("maps", batch(0))
	if placed := w.place(batch(0)); len(placed) != 1 {
		t.Error("the next event of a batch was not placed")
	}
	w.log.Bucket = nil
	if done := w.expire(none); done.References+done.Events > 0 {
		t.Error("something expired without an archive")
	}
}

// TestExpireCrash: an expiry dies at each of its calls, before or after the effect. The log can be
// read, and the next call completes it.
func TestExpireCrash(t *testing.T) {
	for stop, done := 1, false; !done; stop += 2 {
		for _, after := range []bool{false, true} {
			w := aged(t, 3)
			want := w.read("maps")
			w.dies(stop, after)
			_, err := w.log.Expire(t.Context(), keep, none, w.now.Add(time.Hour))
			done = err == nil
			w.do = nil
			if !reflect.DeepEqual(w.read("maps"), want) {
				t.Fatalf("died at call %d: the log is not what it was", stop)
			}
			w.expire(none)
			n, _ := w.rows("LOG#maps", "SEQ#")
			_, ending := w.rows("BATCH#", "EV#")
			if n != 0 || ending != 6 || !reflect.DeepEqual(w.read("maps"), want) {
				t.Fatalf("died at call %d: %d references are left, %d events will be removed", stop, n, ending)
			}
		}
	}
}
