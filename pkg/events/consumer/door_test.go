package consumer_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"archivist/pkg/events/consumer"
	"archivist/pkg/events/envelope"
	"archivist/pkg/kernel/definition"
	"archivist/pkg/kernel/fault"
)

// TestDeletedWhileRebuilt: a consumer that is deleted during its rebuild and made again runs, and
// the rebuild does not go on with it.
func TestDeletedWhileRebuilt(t *testing.T) {
	b := newBench(t)
	b.runtime.State = &state{objects: []string{"a"}}
	b.apply(define("c"))
	b.add("maps", "a")
	p, err := b.store.Rebuild(t.Context(), "c", "", bob)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.store.Delete(t.Context(), "c", true, bob); err != nil {
		t.Fatal(err)
	}
	b.now = b.now.Add(time.Second)
	b.apply(define("c"))
	b.run("c", "maps")
	b.want("the new one handles", b.handled(), "a.1")
	b.settle()
	b.want("after the rebuild's end", b.handled(), "a.1")
	if p := b.show(p.ID); !p.Cancelled {
		t.Errorf("the rebuild is %+v", p)
	}
}

// TestApplyRepeated: a request that comes again, late, does not undo what others changed meanwhile,
// and does not make a deleted consumer again.
func TestApplyRepeated(t *testing.T) {
	b := newBench(t)
	ann := consumer.By{Actor: "ann", Request: "r1"}
	apply := func(batch int, by consumer.By) (consumer.Consumer, error) {
		return b.store.Apply(t.Context(), define("c", func(d def) { d.Batch = batch }), by)
	}
	if _, err := apply(5, ann); err != nil {
		t.Fatal(err)
	}
	if _, err := apply(7, bob); err != nil {
		t.Fatal(err)
	}
	if c, err := apply(5, ann); err != nil || c.Batch != 7 || c.Version != 2 {
		t.Errorf("after the repeated request: %+v, %v", c, err)
	}
	if err := b.store.Delete(t.Context(), "c", false, bob); err != nil {
		t.Fatal(err)
	}
	if _, err := apply(5, ann); !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "deleted since") {
		t.Errorf("repeated after the deletion: %v", err)
	}
	b.want("events", b.history("c"), "created changed deleted")
}

// TestCharacters: limits of texts count characters, as the API does.
func TestCharacters(t *testing.T) {
	d := define("c", func(d def) {
		d.Description = strings.Repeat("ü", definition.MaxDescription)
		d.Filter = "*+*{id=" + strings.Repeat("ü", consumer.MaxFilter-8) + "}"
	})
	if err := d.Check(); err != nil {
		t.Error(err)
	}
	d.Filter += "ü"
	if err := d.Check(); err == nil || !strings.Contains(err.Error(), "4097 characters") {
		t.Errorf("one too many: %v", err)
	}
}

// TestShowsRebuild: a consumer that is being rebuilt is shown as such, explain says what its events
// wait for, and it raises no alarm about its lag.
func TestShowsRebuild(t *testing.T) {
	b := newBench(t)
	b.runtime.State = &state{objects: []string{"a"}}
	b.apply(define("c"))
	p, err := b.store.Rebuild(t.Context(), "c", "", bob)
	if err != nil {
		t.Fatal(err)
	}
	e := b.add("maps", "new")
	b.now = b.now.Add(time.Hour)
	if err := b.runtime.Tick(t.Context(), b.now.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if lag := b.metrics[consumer.MetricLag]; lag != 0 {
		t.Errorf("the metric of the lag is %v", lag)
	}
	if st, err := b.store.Show(t.Context(), "c"); err != nil || st.Rebuild != p.ID || st.Resets != 0 {
		t.Errorf("it is shown as %+v, %v", st, err)
	}
	x, err := b.store.Explain(t.Context(), "c", e)
	if err != nil || !strings.HasSuffix(x.Why, "it is being rebuilt") ||
		x.Do[0].Command != "archivist consumer show-replay "+p.ID {
		t.Errorf("explained as %+v, %v", x, err)
	}
	b.settle()
	b.now = b.now.Add(10 * time.Minute)
	b.settle()
	if st, err := b.store.Show(t.Context(), "c"); err != nil || st.Rebuild != "" || st.Behind != 0 {
		t.Errorf("after its end: %+v, %v", st, err)
	}
}

// TestShowsReset: a reset that is not finished is shown.
func TestShowsReset(t *testing.T) {
	b := newBench(t)
	b.apply(define("c"))
	b.add("maps", "a")
	e := b.add("maps", "b")
	b.log.broken = 1
	err := b.store.Reset(t.Context(), "c", "", "time:"+b.now.Format(time.RFC3339), bob)
	if err == nil {
		t.Fatal("the reset did not fail")
	}
	if st, err := b.store.Show(t.Context(), "c"); err != nil || st.Resets != 1 {
		t.Errorf("it is shown as %+v, %v", st, err)
	}
	x, err := b.store.Explain(t.Context(), "c", e)
	if err != nil || !strings.Contains(x.Why, "its cursors are being moved") {
		t.Errorf("explained as %+v, %v", x, err)
	}
	b.tick("c maps")
	if st, err := b.store.Show(t.Context(), "c"); err != nil || st.Resets != 0 {
		t.Errorf("after its end: %+v, %v", st, err)
	}
}

// TestDryRunPlaces: a partition that does not exist, and a seq of no partition, are refused.
func TestDryRunPlaces(t *testing.T) {
	b := newBench(t)
	b.add("maps", "a")
	b.add("maps", "b")
	if _, err := b.store.DryRun(t.Context(), "*+*", "mpas", "horizon", ""); !fault.Is(err, fault.NotFound) {
		t.Errorf("a wrong partition: %v", err)
	}
	if _, err := b.store.DryRun(t.Context(), "*+*", "", "seq:1", ""); !fault.Is(err, fault.Invalid) {
		t.Errorf("a seq without a partition: %v", err)
	}
	if page, err := b.store.DryRun(t.Context(), "*+*", "maps", "seq:2", ""); err != nil || page.Read != 1 {
		t.Errorf("from 2: %+v, %v", page, err)
	}
}

// TestDryRunInTime: a trial from a time on ends in time, however many partitions there are, and its
// pages together read all of them.
func TestDryRunInTime(t *testing.T) {
	b := newBench(t)
	for i := range 40 {
		for range 5 {
			b.add(fmt.Sprintf("maps%02d", i), "a")
			b.now = b.now.Add(time.Second)
		}
	}
	from := b.now.Add(24*time.Hour - 3*time.Second) // the search begins a day earlier
	last := from.Add(time.Second)
	for i := range 40 {
		b.add(fmt.Sprintf("maps%02d", i), "z", func(e *envelope.Event) { e.Time = last.UnixMilli() })
	}
	b.store.Now = func() time.Time { return b.now.Add(time.Duration(b.log.reads) * time.Second) }
	selected, pages := 0, 0
	for cursor := ""; pages == 0 || cursor != ""; pages++ {
		before := b.log.reads
		page, err := b.store.DryRun(t.Context(), "*+*", "", "time:"+from.Format(time.RFC3339), cursor)
		if err != nil || pages > 40 {
			t.Fatal(pages, err)
		}
		if n := b.log.reads - before; n > 20 {
			t.Errorf("page %d took %d reads", pages, n)
		}
		selected, cursor = selected+page.Selected, page.Cursor
	}
	if selected != 40 || pages < 5 {
		t.Errorf("%d of 40 are selected, in %d pages", selected, pages)
	}
}

// TestLongReset: a reset by time over many partitions ends in time, goes on with each tick where it
// was, and other consumers are woken before it.
func TestLongReset(t *testing.T) {
	b := newBench(t)
	b.apply(define("a"))
	for i := range 40 {
		for range 5 {
			b.add(fmt.Sprintf("maps%02d", i), "a")
			b.now = b.now.Add(time.Second)
		}
	}
	b.apply(define("z"))
	b.now = b.now.Add(10 * time.Minute)
	begin := b.now.Add(-10 * time.Minute)
	b.store.Now = func() time.Time { return b.now.Add(time.Duration(b.log.reads) * time.Second / 2) }
	to := "time:" + begin.Add(24*time.Hour-3*time.Second).Format(time.RFC3339)
	if err := b.store.Reset(t.Context(), "a", "", to, bob); err != nil {
		t.Fatal(err)
	}
	ticks := 0
	for ; ; ticks++ {
		st, err := b.store.Show(t.Context(), "a")
		if err != nil || ticks > 20 {
			t.Fatal(ticks, err)
		}
		if st.Resets == 0 {
			break
		}
		b.woken = nil
		before := b.log.reads
		if err := b.runtime.Tick(t.Context(), b.store.Now().Add(23*time.Second)); err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(b.woken, "z maps00") && ticks == 0 {
			t.Errorf("z is not woken; woken are %q", b.woken)
		}
		if n := b.log.reads - before; n > 50 {
			t.Errorf("tick %d took %d reads", ticks, n)
		}
	}
	if ticks < 2 {
		t.Errorf("it took %d ticks", ticks)
	}
	b.store.Now = func() time.Time { return b.now }
	for _, p := range b.log.partitions {
		b.run("a", p.Name)
	}
	b.want("handled, all too old", b.handled(), "")
}
