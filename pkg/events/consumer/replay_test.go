package consumer_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"archivist/pkg/events/consumer"
	"archivist/pkg/events/envelope"
	"archivist/pkg/kernel/fault"
)

// replay begins a replay of the consumer "c".
func (b *bench) replay(into string, r consumer.Range) consumer.Replay {
	b.Helper()
	p, err := b.store.Replay(b.Context(), "c", into, r, bob)
	if err != nil {
		b.Fatal(err)
	}
	return p
}

// settle lets the clock look, and runs what it wakes, until nothing is woken.
func (b *bench) settle() {
	b.Helper()
	for range 100 {
		b.woken = nil
		if err := b.runtime.Tick(b.Context(), b.now.Add(time.Minute)); err != nil {
			b.Fatal(err)
		}
		if len(b.woken) == 0 {
			return
		}
		for len(b.woken) > 0 {
			name, partition, _ := strings.Cut(b.woken[0], " ")
			b.woken = b.woken[1:]
			b.run(name, partition)
		}
	}
	b.Fatal("it does not come to rest")
}

// show reads a replay that is done.
func (b *bench) show(id string) consumer.Replay {
	b.Helper()
	p, _, err := b.store.ShowReplay(b.Context(), id)
	if err != nil || p.State != consumer.ReplayDone {
		b.Fatalf("the replay is %+v, %v", p, err)
	}
	return p
}

// leftovers are the keys of rows of replays, other than the replays' own.
func (b *bench) leftovers() (keys []string) {
	for _, it := range b.fake.All() {
		if pk := text(it["pk"]); strings.Contains(pk, "~") {
			keys = append(keys, pk+" "+text(it["sk"]))
		}
	}
	return keys
}

// TestReplay: events are handled again, marked; the live cursor does not move, and goes on
// from where it was.
func TestReplay(t *testing.T) {
	b := newBench(t)
	b.apply(define("c"))
	for _, s := range []string{"a", "b", "a"} {
		b.add("maps", s)
	}
	b.add("books", "x")
	b.run("c", "maps")
	before, err := b.store.Show(t.Context(), "c")
	if err != nil {
		t.Fatal(err)
	}
	b.calls, b.got = nil, nil
	p := b.replay("", consumer.Range{})
	b.settle()
	b.want("handled", b.handled(), "x.1 x.1 a.1 b.1 a.2") // books was behind: once live, once again
	b.show(p.ID)
	replays := 0
	for _, c := range b.calls {
		if c.Consumer != "c" {
			t.Errorf("a call for %s", c.Consumer)
		}
		if c.Replay {
			replays++
		}
	}
	if replays != 2 || len(b.calls) != 3 {
		t.Errorf("%d of %d calls are marked replay", replays, len(b.calls))
	}
	after, err := b.store.Show(t.Context(), "c")
	if err != nil || after.Places[0].Seq != before.Places[0].Seq || after.Places[0].Seq != 3 {
		t.Errorf("the live cursor moved: %+v, before %+v, %v", after.Places, before.Places, err)
	}
	b.want("events", b.history("c"), "created replayed replay-done")
	if left := b.leftovers(); left != nil {
		t.Errorf("rows are left: %q", left)
	}
	b.calls, b.got = nil, nil
	b.add("maps", "b")
	b.run("c", "maps")
	b.want("handled after the replay", b.handled(), "b.2")
	if b.calls[0].Replay {
		t.Error("a new event is marked replay")
	}
}

// TestRanges: by seq, time, subject, type and partition.
func TestRanges(t *testing.T) {
	at := time.UnixMilli(1_800_000_000_000).UTC()
	clock := func(minutes time.Duration) string {
		return "time:" + at.Add(minutes*time.Minute).Format(time.RFC3339)
	}
	for _, c := range []struct {
		r    consumer.Range
		want string
	}{
		{consumer.Range{Partition: "maps", From: "seq:2", Until: "seq:3"}, "b.1 a.2"},
		{consumer.Range{Partition: "maps", From: "seq:3"}, "a.2 b.2"},
		{consumer.Range{Partition: "maps", Until: "seq:1"}, "a.1"},
		{consumer.Range{Partition: "maps", Until: "seq:100"}, "a.1 b.1 a.2 b.2"},
		{consumer.Range{From: clock(2), Until: clock(4)}, "x.1 b.1 a.2"},
		{consumer.Range{From: clock(5)}, "b.2"},
		{consumer.Range{Filter: "All+All{id=a}"}, "a.1 a.2"},
		{consumer.Range{Filter: "All+All{type=job.held}"}, "b.1"},
		{consumer.Range{Filter: "Object+All"}, ""},
	} {
		b := newBench(t)
		b.apply(define("c", func(d *consumer.Definition) { d.Start = consumer.StartLatest }))
		for i, s := range []string{"a", "b", "x", "a", "b"} { // minutes 1 to 5
			b.now = at.Add(time.Duration(i+1) * time.Minute)
			partition := "maps"
			if s == "x" {
				partition = "books"
			}
			b.add(partition, s, func(e *envelope.Event) {
				if e.ID == "b.1" {
					e.Type = "job.held"
				}
			})
		}
		for _, p := range []string{"maps", "books"} {
			if err := b.store.Reset(t.Context(), "c", p, consumer.StartLatest, bob); err != nil {
				t.Fatal(err)
			}
		}
		p := b.replay("", c.r)
		b.settle()
		b.show(p.ID)
		b.want(fmt.Sprintf("%+v", c.r), b.handled(), c.want)
	}
}

// TestReplayRefused: what cannot be replayed is refused at once, with the reason.
func TestReplayRefused(t *testing.T) {
	b := newBench(t)
	b.apply(define("c"))
	b.apply(define("mail", func(d *consumer.Definition) { d.IgnoreReplays = true }))
	b.store.Handlers = append(b.store.Handlers, "single")
	b.apply(define("one", func(d *consumer.Definition) { d.Target.Handler = "single"; d.Paused = true }))
	b.add("maps", "a")
	for _, c := range []struct {
		name, into string
		r          consumer.Range
		by         consumer.By
		want       string
	}{
		{"mail", "", consumer.Range{}, bob, "consumer mail is not replayed"},
		{"nobody", "", consumer.Range{}, bob, "there is no consumer"},
		{"c", "", consumer.Range{}, consumer.By{Actor: "ann"}, "reason: empty"},
		{"c", "", consumer.Range{From: "seq:1"}, bob, "name the partition"},
		{"c", "", consumer.Range{From: "latest"}, bob, "nothing would be replayed"},
		{"c", "", consumer.Range{Until: "horizon"}, bob, "nothing would be replayed"},
		{"c", "", consumer.Range{From: "never"}, bob, "from: "},
		{"c", "", consumer.Range{Partition: "maps", From: "seq:5", Until: "seq:4"}, bob, "seq:4 is before"},
		{"c", "", consumer.Range{Partition: "atlas"}, bob, "atlas"},
		{"c", "", consumer.Range{Filter: "Itm+Create"}, bob, `column 1: "Itm"`},
		{"c", "mail", consumer.Range{}, bob, "into: consumer mail is running"},
		{"c", "a~b", consumer.Range{}, bob, "into: "},
		{"one", "other", consumer.Range{}, bob, "into: the handler single has one place"},
	} {
		_, err := b.store.Replay(t.Context(), c.name, c.into, c.r, c.by)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s into %q, %+v: %v; want %s", c.name, c.into, c.r, err, c.want)
		}
	}
	b.apply(define("files", func(d *consumer.Definition) { d.Filter = "File+All"; d.Paused = true }))
	if _, err := b.store.Rebuild(t.Context(), "files", "", bob); !fault.Is(err, fault.Conflict) {
		t.Errorf("a rebuild of files: %v", err)
	}
	if _, err := b.store.Rebuild(t.Context(), "mail", "", bob); !fault.Is(err, fault.Conflict) {
		t.Errorf("a rebuild of mail: %v", err)
	}
	b.settle()
	b.want("handled", b.handled(), "a.1 a.1") // live, by both
}

// TestShadow: a replay into a shadow calls the target with the shadow's name, and runs while
// the consumer is paused; one into the consumer itself waits.
func TestShadow(t *testing.T) {
	b := newBench(t)
	b.apply(define("c", func(d *consumer.Definition) { d.Paused = true }))
	b.add("maps", "a")
	live := b.replay("", consumer.Range{})
	shadow := b.replay("c-new", consumer.Range{})
	b.settle()
	b.want("handled", b.handled(), "a.1")
	if b.calls[0].Consumer != "c-new" || !b.calls[0].Replay {
		t.Errorf("the call is %+v", b.calls[0])
	}
	b.show(shadow.ID)
	if p, _, err := b.store.ShowReplay(t.Context(), live.ID); err != nil || p.State != consumer.ReplayRunning {
		t.Errorf("the other is %+v, %v", p, err)
	}
	if err := b.store.CancelReplay(t.Context(), live.ID, bob); err != nil {
		t.Fatal(err)
	}
	b.settle()
	if p := b.show(live.ID); !p.Cancelled {
		t.Errorf("it is %+v", p)
	}
	b.want("handled after the cancellation", b.handled(), "a.1")
	if left := b.leftovers(); left != nil {
		t.Errorf("rows are left: %q", left)
	}
}

// TestReplayFails: what fails does not stop a replay; it is listed in its result, and the
// consumer has nothing parked.
func TestReplayFails(t *testing.T) {
	b := newBench(t)
	b.apply(define("c", func(d *consumer.Definition) { d.Retries, d.OnFailure = consumer.NoRetries, consumer.Block }))
	for _, s := range []string{"a", "b", "a"} {
		b.add("maps", s)
	}
	b.run("c", "maps")
	b.got, b.fails["a.1"] = nil, "it is broken"
	p := b.replay("", consumer.Range{})
	b.settle()
	b.want("handled", b.handled(), "b.1")
	got := b.show(p.ID)
	if got.Failed != 2 || len(got.Failures) != 2 ||
		!slices.ContainsFunc(got.Failures, func(f consumer.Failure) bool {
			return f.ID == "a.1" && f.Reason == "it is broken"
		}) {
		t.Errorf("the result is %+v", got)
	}
	if st, err := b.store.Show(t.Context(), "c"); err != nil || st.Parked != 0 {
		t.Errorf("%+v, %v", st, err)
	}
	if left := b.leftovers(); left != nil {
		t.Errorf("rows are left: %q", left)
	}
}

// TestReplayResumes: a replay whose process dies before or after any call of the table goes on. It
// handles each event at least once, in the order of its key, and says so if it may have handled
// one twice.
func TestReplayResumes(t *testing.T) {
	for _, after := range []bool{false, true} {
		for dies := 1; ; dies++ {
			b := newBench(t)
			b.apply(define("c", func(d *consumer.Definition) { d.Window = 2; d.Start = consumer.StartLatest }))
			for _, s := range []string{"a", "b", "a", "b", "a"} {
				b.add("maps", s)
			}
			if err := b.store.Reset(t.Context(), "c", "maps", consumer.StartLatest, bob); err != nil {
				t.Fatal(err)
			}
			p := b.replay("", consumer.Range{})
			died := b.interrupted(dies, after)
			b.now = b.now.Add(10 * time.Minute) // leases and flags of the dead are over
			b.settle()
			got := b.show(p.ID)
			if left := b.leftovers(); left != nil {
				t.Errorf("died at call %d (after it %v): rows are left: %q", dies, after, left)
			}
			for _, want := range []string{"a.1 a.2 a.3", "b.1 b.2"} {
				if got := firsts(b.got, want[:1]); got != want {
					t.Errorf("died at call %d (after it %v): handled %q, first times %q", dies, after, b.handled(), got)
				}
			}
			if len(b.got) > 5 && got.Repeats == 0 {
				t.Errorf("died at call %d (after it %v): handled %q, and the replay does not say so", dies, after,
					b.handled())
			}
			if !died {
				if dies < 15 || len(b.got) != 5 || got.Repeats != 0 {
					t.Errorf("%d calls, handled %q, %d repeats", dies, b.handled(), got.Repeats)
				}
				break
			}
		}
	}
}

// interrupted lets a process do the work of a replay, until it dies at the nth call of the table.
func (b *bench) interrupted(n int, after bool) (died bool) {
	m := newMortal(b, n, after)
	b.woken = nil
	_ = m.runtime.Tick(b.Context(), b.now.Add(time.Minute))
	for len(b.woken) > 0 && !m.Dead() {
		name, partition, _ := strings.Cut(b.woken[0], " ")
		b.woken = b.woken[1:]
		_, _ = m.runtime.Run(b.Context(), name, partition, b.now.Add(time.Minute))
	}
	return m.Dead()
}

// TestReplayOfUnreadable: events that cannot be read now are not passed.
func TestReplayOfUnreadable(t *testing.T) {
	b := newBench(t)
	b.apply(define("c", func(d *consumer.Definition) { d.Paused = true }))
	b.add("maps", "a")
	b.add("maps", "b")
	p := b.replay("again", consumer.Range{})
	for len(b.woken) == 0 {
		if err := b.runtime.Tick(t.Context(), b.now.Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	name, partition, _ := strings.Cut(b.woken[0], " ")
	b.log.broken = 1
	if _, err := b.runtime.Run(t.Context(), name, partition, b.now.Add(time.Minute)); err == nil {
		t.Error("the run has no error")
	}
	b.now = b.now.Add(10 * time.Minute)
	b.settle()
	if got := b.show(p.ID); got.Repeats != 0 {
		t.Errorf("%+v; nothing was handled twice", got)
	}
	b.want("handled", b.handled(), "a.1 b.1")
}

// TestReplayBound: no more partitions are replayed at once than the target can have calls.
func TestReplayBound(t *testing.T) {
	b := newBench(t)
	b.apply(define("c", func(d *consumer.Definition) { d.Concurrency, d.Paused = 2, true }))
	for _, p := range []string{"maps", "books", "films", "plays"} {
		b.add(p, p)
	}
	p := b.replay("again", consumer.Range{})
	if err := b.runtime.Tick(t.Context(), b.now.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if len(b.woken) != 2 {
		t.Errorf("woken: %q", b.woken)
	}
	for len(b.woken) > 0 { // the end of each begins the next
		name, partition, _ := strings.Cut(b.woken[0], " ")
		b.woken = b.woken[1:]
		b.run(name, partition)
	}
	b.show(p.ID)
	if len(b.got) != 4 {
		t.Errorf("handled %q", b.handled())
	}
}

// TestReplayOfManyPartitions: where a replay begins in each partition is searched for in several calls, if one ends
// before all were searched, and none begins anew. Partitions without events of its time are no part of it.
func TestReplayOfManyPartitions(t *testing.T) {
	b := newBench(t)
	b.apply(define("c", func(d *consumer.Definition) { d.Paused = true }))
	const partitions, old, later = 500, 3, 50
	for i := range partitions {
		name := fmt.Sprintf("p%04d", i)
		for range old {
			b.add(name, name)
		}
	}
	b.now = b.now.Add(72 * time.Hour)
	for i := range later {
		name := fmt.Sprintf("p%04d", i*10)
		b.add(name, name)
	}
	p := b.replay("again", consumer.Range{From: "time:" + b.now.Add(-time.Hour).UTC().Format(time.RFC3339)})
	calls := 0
	for ; ; calls++ {
		b.log.last = b.log.reads + 400
		err := b.runtime.Tick(t.Context(), b.now.Add(time.Minute))
		got, progress, _ := b.store.ShowReplay(t.Context(), p.ID)
		if got.State != consumer.ReplayPreparing {
			if progress.Partitions != later || progress.Total != later || err != nil {
				t.Fatalf("%+v, %v", progress, err)
			}
			break
		}
		if calls > 10 {
			t.Fatal("it does not get on: ", err)
		}
	}
	if calls < 2 {
		t.Error("no call was interrupted")
	}
	b.log.last = 0
	b.now = b.now.Add(10 * time.Minute) // the run that was woken last is taken for lost
	b.settle()
	b.show(p.ID)
	if len(b.got) != later {
		t.Errorf("%d events were handled", len(b.got))
	}
}

// firsts are the ids of a subject's events in the order of their first handling.
func firsts(events []envelope.Event, subject string) string {
	var ids []string
	for _, e := range events {
		if e.Subject.ID == subject && !slices.Contains(ids, e.ID) {
			ids = append(ids, e.ID)
		}
	}
	return strings.Join(ids, " ")
}

// TestReplayOfSplitLog: partitions of an earlier generation are replayed before later ones.
func TestReplayOfSplitLog(t *testing.T) {
	b := newBench(t)
	b.apply(define("c", func(d *consumer.Definition) { d.Paused = true }))
	b.add("maps", "a")
	b.add("maps.1.0", "a")
	p := b.log.find("maps")
	p.Closed = true
	p = b.log.find("maps.1.0")
	p.Generation = 1
	slices.Reverse(b.log.partitions)
	r := b.replay("again", consumer.Range{})
	b.settle()
	b.now = b.now.Add(10 * time.Minute)
	b.settle()
	b.show(r.ID)
	b.want("handled", b.handled(), "a.1 a.2")
}

// TestExpiredEnd: a replay ends although the events at its end are not kept any more.
func TestExpiredEnd(t *testing.T) {
	b := newBench(t)
	b.apply(define("c", func(d *consumer.Definition) { d.Paused = true }))
	for range 3 {
		b.add("maps", "a")
	}
	b.log.events["maps"] = b.log.events["maps"][:2]
	p := b.replay("again", consumer.Range{})
	b.settle()
	b.show(p.ID)
	b.want("handled", b.handled(), "a.1 a.2")
}

// TestReplayOfDeleted: the replay of a consumer that is deleted ends.
func TestReplayOfDeleted(t *testing.T) {
	b := newBench(t)
	b.apply(define("c", func(d *consumer.Definition) { d.Paused = true }))
	b.add("maps", "a")
	p := b.replay("", consumer.Range{})
	b.settle()
	if err := b.store.Delete(t.Context(), "c", false, bob); err != nil {
		t.Fatal(err)
	}
	b.settle()
	if got := b.show(p.ID); !got.Cancelled || b.leftovers() != nil {
		t.Errorf("%+v; rows %q", got, b.leftovers())
	}
}

// TestSameRequest: a request that is repeated is one replay.
func TestSameRequest(t *testing.T) {
	b := newBench(t)
	b.apply(define("c"))
	b.add("maps", "a")
	by := bob
	by.Request = "r1"
	one, err := b.store.Replay(t.Context(), "c", "", consumer.Range{}, by)
	if err != nil {
		t.Fatal(err)
	}
	two, err := b.store.Replay(t.Context(), "c", "", consumer.Range{}, by)
	if err != nil || one.ID != two.ID {
		t.Errorf("%+v and %+v, %v", one, two, err)
	}
	list, _, err := b.store.Replays(t.Context(), "c", "")
	if err != nil || len(list) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
}
