package consumer_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/guregu/dynamo/v2"

	"archivist/pkg/events/consumer"
	"archivist/pkg/events/envelope"
	"archivist/pkg/kernel/explain"
	"archivist/pkg/kernel/table"
)

// TestBehind: a consumer is behind by the events that it has still to handle, since the first of them. Those that its
// filter does not select do not count, also before a run has moved past them; very many count as they are.
func TestBehind(t *testing.T) {
	b := newBench(t)
	b.apply(define("c", func(d *consumer.Definition) { d.Filter = "Job+Create" }))
	created := func(e *envelope.Event) { e.Action = envelope.Create }
	want := func(what string, behind, seconds int64) {
		t.Helper()
		st, err := b.store.Show(t.Context(), "c")
		if err != nil || st.Behind != behind || st.LagSeconds != seconds || st.Places[0].LagSeconds != seconds {
			t.Errorf("%s: %d behind, %d s, %v; want %d, %d s", what, st.Behind, st.LagSeconds, err, behind, seconds)
		}
	}

	b.add("maps", "a")
	b.now = b.now.Add(time.Minute)
	want("of another action", 0, 0)
	b.add("maps", "b", created)
	b.add("maps", "a")
	b.now = b.now.Add(10 * time.Second)
	want("one of its own", 1, 10)
	b.run("c", "maps")
	want("handled", 0, 0)
	for range 250 {
		b.add("maps", "a")
	}
	want("many", 250, 0)
}

// TestFarBehind: where a consumer is far behind, no log is read by itself: the next events of all are read at once.
func TestFarBehind(t *testing.T) {
	b := newBench(t)
	b.apply(define("c"))
	for _, in := range []string{"maps", "plans"} {
		for range 60 {
			b.add(in, "a")
		}
	}
	b.add("near", "a")
	b.now = b.now.Add(time.Minute)
	b.log.reads = 0
	st, err := b.store.Show(t.Context(), "c")
	if err != nil || st.Behind != 121 || st.LagSeconds != 60 || b.log.reads != 1 {
		t.Errorf("%d behind, %d s, %v; %d reads", st.Behind, st.LagSeconds, err, b.log.reads)
	}
}

// TestLate: who asks only for consumers that are late or paused reads no events while all is well; of many partitions
// where events are late, only some are read, the latest first, and the number of the others is returned.
func TestLate(t *testing.T) {
	b := newBench(t)
	b.apply(define("c"))
	b.apply(define("night", func(d *consumer.Definition) { d.Mode, d.Schedule = consumer.Scheduled, "0 3 * * *" }))
	want := func(what string, behind, lag int64, reads, unread int) {
		t.Helper()
		b.log.reads = 0
		all, n, err := b.store.ShowLate(t.Context(), time.Hour)
		if err != nil || all[0].Behind != behind || all[0].LagSeconds != lag || b.log.reads != reads || n != unread {
			t.Errorf("%s: %d behind, %d s, %d reads, %d not read, %v; want %d, %d s, %d reads, %d", what, all[0].Behind,
				all[0].LagSeconds, b.log.reads, n, err, behind, lag, reads, unread)
		}
		if all[1].Behind != 0 {
			t.Errorf("%s: one that waits for its hour is behind", what)
		}
	}

	b.add("maps", "a")
	b.now = b.now.Add(29 * time.Minute)
	want("waits shortly", 0, 0, 0, 0)
	b.now = b.now.Add(2 * time.Hour)
	b.add("plans", "b")
	want("one waits long, one shortly", 1, 149*60, 1, 0)

	if err := b.store.Pause(t.Context(), "c", consumer.By{Actor: "ann", Reason: "so"}); err != nil {
		t.Fatal(err)
	}
	want("paused", 2, 149*60, 2, 0)
	if err := b.store.Resume(t.Context(), "c", consumer.By{Actor: "ann", Reason: "so"}); err != nil {
		t.Fatal(err)
	}

	for n := range 10 {
		b.add(fmt.Sprint("more-", n), "c")
	}
	b.now = b.now.Add(2 * time.Hour)
	want("many wait long", 8, 269*60, 8, 4)
	st, err := b.store.Show(t.Context(), "c")
	if err != nil || st.Behind != 12 {
		t.Errorf("%d behind, %v", st.Behind, err)
	}
}

// TestBrokenFilter: a filter that cannot be read, as another release may have written it, hides no other consumer, and
// is named.
func TestBrokenFilter(t *testing.T) {
	b := newBench(t)
	b.apply(define("a"))
	b.apply(define("b"))
	b.add("maps", "a")
	b.now = b.now.Add(2 * time.Hour)
	var row struct {
		table.Head
		Text string `dynamo:"definition_json"`
	}
	if err := b.store.Table.Get(t.Context(), table.Key{PK: "CONSUMERS", SK: "a"}, &row); err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(row.Text, `"*+*"`, `"Itme+*"`, 1)
	err := b.store.Table.Rows.Update("pk", "CONSUMERS").Range("sk", "a").Set("definition_json", text).Run(t.Context())
	if err != nil || text == row.Text {
		t.Fatal(text, err)
	}
	all, _, err := b.store.ShowLate(t.Context(), time.Hour)
	if err != nil || len(all) != 2 || !strings.Contains(all[0].Broken, "column 1") || all[1].Broken != "" ||
		all[1].Behind != 1 || !all[0].AtLeast || all[1].AtLeast {
		t.Errorf("%+v, %v", all, err)
	}
	x, err := b.store.ExplainConsumer(t.Context(), "a")
	if err != nil || x.State != "broken" || x.Waits != explain.Person || len(x.Do) != 1 ||
		!strings.Contains(x.Why, "column 1") {
		t.Errorf("%+v, %v", x, err)
	}
}

// TestShowAll: among all, each consumer is as it is by itself, whether it is near or far behind, or not at all.
func TestShowAll(t *testing.T) {
	b := newBench(t)
	b.apply(define("c"))
	b.apply(define("d"))
	same := func(what string, c, d int64) {
		t.Helper()
		for name, behind := range map[string]int64{"c": c, "d": d} {
			st, err := b.store.Show(t.Context(), name)
			if err != nil || st.Behind != behind {
				t.Errorf("%s: %s is %d behind, %v; want %d", what, name, st.Behind, err, behind)
			}
			b.amongAll(st)
		}
	}
	for range 3 {
		b.add("maps", "a")
	}
	b.run("c", "maps")
	same("one is not behind", 0, 3)
	b.now = b.now.Add(time.Minute)
	b.add("maps", "a")
	b.add("plans", "b")
	same("both are near", 2, 5)
	for range 47 {
		b.add("maps", "a")
	}
	same("one is far", 49, 52)
	for range 47 {
		b.add("maps", "a")
	}
	same("both are far", 96, 99)
}

// TestCounted: a list of all has what the last tick has counted, and says when that was; what a person
// has changed since is as it is, and of a consumer that no tick has seen nothing is said.
func TestCounted(t *testing.T) {
	b := newBench(t)
	b.apply(define("c"))
	b.apply(define("d"))
	began := b.now
	for n := range 3 {
		b.add(fmt.Sprint("maps", n), "a")
	}
	b.run("c", "maps0")
	tick := func(within time.Duration) {
		t.Helper()
		if err := b.runtime.Tick(t.Context(), b.now.Add(within)); err != nil {
			t.Fatal(err)
		}
	}
	want := func(what, name string, behind, lag int64, counted time.Time) {
		t.Helper()
		all, err := b.store.Counted(t.Context())
		i := slices.IndexFunc(all, func(st consumer.Status) bool { return st.Name == name })
		if err != nil || i < 0 || all[i].Behind != behind || all[i].LagSeconds != lag ||
			!time.UnixMilli(max(0, all[i].Counted)).Equal(counted) {
			t.Errorf("%s: %s is %+v, %v", what, name, all, err)
		}
	}
	never := time.UnixMilli(0)
	want("before a tick", "c", 0, 0, never)
	b.now = b.now.Add(10 * time.Second)
	tick(time.Minute)
	first := b.now
	want("a tick", "c", 2, 10, first)
	want("a tick", "d", 3, 10, first)

	b.now = b.now.Add(time.Minute)
	b.add("maps0", "a")
	if err := b.store.Pause(t.Context(), "c", consumer.By{Actor: "ann", Reason: "so"}); err != nil {
		t.Fatal(err)
	}
	want("no tick since", "c", 2, 10, first)
	if all, err := b.store.Counted(t.Context()); err != nil || !all[0].Paused {
		t.Errorf("it is not said that it is paused: %+v, %v", all, err)
	}
	for _, p := range b.log.partitions {
		b.run("d", p.Name)
	}
	b.apply(define("e"))
	want("one that is new", "e", 0, 0, never)
	tick(time.Minute)
	want("another tick", "c", 3, 70, b.now)
	want("another tick", "d", 0, 0, b.now)
	want("another tick", "e", 4, int64(b.now.Sub(began).Seconds()), b.now)

	second := b.now
	if err := b.store.Delete(t.Context(), "e", true, consumer.By{Actor: "ann", Reason: "so"}); err != nil {
		t.Fatal(err)
	}
	b.now = b.now.Add(time.Hour)
	b.apply(define("e"))
	want("another one of the same name", "e", 0, 0, never)
	want("another hour", "c", 3, 70, second)
}

// TestCountedInPart: consumers that a tick had no time for keep their numbers, with their time; and where
// somebody is behind in very many logs, the numbers are said to be the least.
func TestCountedInPart(t *testing.T) {
	b := newBench(t)
	b.apply(define("c"))
	b.apply(define("d"))
	b.add("maps", "a")
	first := b.now
	if err := b.runtime.Tick(t.Context(), b.now.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	for n := range 150 {
		b.add(fmt.Sprint("more-", n), "a")
	}
	b.now = b.now.Add(time.Minute)
	calls, now := 0, b.now
	until := now.Add(time.Minute)
	b.store.Now = func() time.Time { // the time is over when one of them was looked at
		calls++
		if calls > 4 {
			return until
		}
		return now
	}
	if err := b.runtime.Tick(t.Context(), until); err != nil {
		t.Fatal(err)
	}
	b.store.Now = func() time.Time { return b.now }
	all, err := b.store.Counted(t.Context())
	if err != nil || len(all) != 2 {
		t.Fatal(all, err)
	}
	if c := all[0]; c.Behind != 100 || !c.AtLeast || c.Counted != until.UnixMilli() {
		t.Errorf("of 151 logs 100 were read: %+v", c)
	}
	if d := all[1]; d.Behind != 1 || d.AtLeast || d.Counted != first.UnixMilli() {
		t.Errorf("the tick had no time for it: %+v", d)
	}
}

// TestCountedButOne: a consumer that cannot be counted is named, and keeps its numbers; the others are counted.
func TestCountedButOne(t *testing.T) {
	b := newBench(t)
	b.apply(define("c"))
	b.apply(define("d"))
	b.apply(define("timed", func(d *consumer.Definition) {
		d.Mode, d.Schedule = consumer.Scheduled, "30 6 * * *"
	}))
	b.add("maps", "a")
	b.tick("c maps, d maps")
	first := b.now
	b.now = b.now.Add(time.Minute)
	b.add("maps", "a")
	err := b.store.Table.Change(t.Context(), table.Key{PK: "CONSUMER#timed", SK: "SCHEDULE"}, "damage",
		func(u *dynamo.Update) { u.Set("next_ms", "soon") }, &table.Head{})
	if err != nil {
		t.Fatal(err)
	}
	err = b.runtime.Tick(t.Context(), b.now.Add(time.Minute))
	if err == nil || !strings.Contains(err.Error(), "consumer timed was not counted") {
		t.Errorf("the tick ends with %v", err)
	}
	all, err := b.store.Counted(t.Context())
	if err != nil || len(all) != 3 {
		t.Fatal(all, err)
	}
	for i, at := range []time.Time{b.now, b.now, first} {
		if st := all[i]; !time.UnixMilli(st.Counted).Equal(at) || i < 2 && st.Behind != 2 {
			t.Errorf("%s: %d events behind, counted at %d", st.Name, st.Behind, st.Counted)
		}
	}
}
