package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"archivist/pkg/events/consumer"
	"archivist/pkg/events/envelope"
	"archivist/pkg/kernel/fault"
)

// state is an archive of objects, of each of which there is a snapshot, and one of a version.
type state struct {
	objects []string
	pages   int
	fails   int // so many reads
	size    int // a page has at least so many events
	broken  map[string]bool
}

func (s *state) Snapshots(_ context.Context, part, parts int, cursor string, _ int) (events []consumer.Snapshot,
	next string, err error) {
	s.pages++
	if s.fails > 0 {
		s.fails--
		return nil, "", errors.New("S3 is down")
	}
	last := ""
	s.size = max(s.size, 1)
	for i, ark := range s.objects {
		if i%parts != part || ark <= cursor {
			continue
		}
		if len(events) >= s.size {
			return events, last, nil
		}
		last = ark
		if s.broken[ark] {
			e := envelope.Event{ID: "snapshot." + ark, Subject: envelope.Ref{Type: "Object", ID: ark}}
			events = append(events, consumer.Snapshot{Event: e, Unreadable: "its inventory is broken"})
			continue
		}
		for _, subject := range []envelope.Ref{{Type: "Object", ID: ark}, {Type: "Version", ID: ark + "/v1"}} {
			e := envelope.Event{ID: subject.Type + "/" + ark, Subject: subject, Action: envelope.Create,
				Type: strings.ToLower(subject.Type) + ".snapshot", Outcome: "success"}
			events = append(events, consumer.Snapshot{Event: e})
		}
	}
	return events, "", nil
}

// TestRebuild: a consumer gets a snapshot of what is stored, whatever actions its filter
// names, then the events that were placed from the beginning of the rebuild on. It does not
// run before.
func TestRebuild(t *testing.T) {
	b := newBench(t)
	s := &state{}
	for i := range 40 {
		s.objects = append(s.objects, fmt.Sprintf("o%02d", i))
	}
	b.runtime.State = s
	b.apply(define("c", func(d *consumer.Definition) { d.Filter = "Object+Delete:Job+All" }))
	b.add("maps", "old")
	p, err := b.store.Rebuild(t.Context(), "c", "", bob)
	if err != nil {
		t.Fatal(err)
	}
	b.add("maps", "new")
	b.run("c", "maps")
	b.want("handled before the rebuild", b.handled(), "")
	b.settle()
	b.now = b.now.Add(10 * time.Minute)
	b.settle()
	b.show(p.ID)
	var got []string
	for _, e := range b.got {
		got = append(got, e.Subject.ID)
	}
	if last := got[len(got)-1]; last != "new" {
		t.Errorf("the last is %s", last)
	}
	got = got[:len(got)-1]
	slices.Sort(got)
	if !slices.Equal(got, s.objects) {
		t.Errorf("handled %q", got)
	}
	for _, c := range b.calls {
		if c.Replay != (c.Events[0].Subject.Type == "Object") {
			t.Errorf("replay is %t in %+v", c.Replay, c.Events)
		}
	}
	b.want("events", b.history("c"), "created rebuilt replay-done")
	if left := b.leftovers(); left != nil {
		t.Errorf("rows are left: %q", left)
	}
}

// TestRebuildFails: an object that fails is listed with what comes behind it, others are
// handled; a broken store, and a broken target, are waited for.
func TestRebuildFails(t *testing.T) {
	b := newBench(t)
	s := &state{objects: []string{"a", "b", "c"}, fails: 2}
	b.runtime.State = s
	broken := true
	note := func(ctx context.Context, x consumer.Batch) ([]consumer.Failure, error) {
		if broken {
			return nil, fault.New(fault.Unavailable, "the index is away")
		}
		return b.note(ctx, x)
	}
	b.runtime.Handlers["note"] = consumer.HandlerFunc(note)
	b.fails["Object/b"] = "it is broken"
	b.apply(define("c", func(d *consumer.Definition) { d.Retries, d.Concurrency = consumer.NoRetries, 8 }))
	p, err := b.store.Rebuild(t.Context(), "c", "", bob)
	if err != nil {
		t.Fatal(err)
	}
	_ = b.runtime.Tick(t.Context(), b.now.Add(time.Minute))
	for _, woken := range b.woken {
		name, partition, _ := strings.Cut(woken, " ")
		_, _ = b.runtime.Run(t.Context(), name, partition, b.now.Add(time.Minute))
	}
	b.want("handled while the target is broken", b.handled(), "")
	broken = false
	for range 5 {
		b.now = b.now.Add(10 * time.Minute)
		b.settle()
	}
	if got := b.show(p.ID); got.Failed != 1 || got.Failures[0].ID != "Object/b" {
		t.Errorf("the result is %+v", got)
	}
	var ids []string
	for _, e := range b.got {
		ids = append(ids, e.ID)
	}
	slices.Sort(ids)
	b.want("handled", strings.Join(ids, " "), "Object/a Object/c Version/a Version/b Version/c")
}

// TestRebuildShadow: the consumer runs on beside a rebuild into a shadow, and one rebuild of
// it excludes another.
func TestRebuildShadow(t *testing.T) {
	b := newBench(t)
	b.runtime.State = &state{objects: []string{"a"}}
	b.apply(define("c"))
	b.add("maps", "j")
	if _, err := b.store.Rebuild(t.Context(), "c", "c-new", bob); err != nil {
		t.Fatal(err)
	}
	b.run("c", "maps")
	b.want("handled beside it", b.handled(), "j.1")
	if _, err := b.store.Rebuild(t.Context(), "c", "", bob); err != nil {
		t.Fatal(err)
	}
	if _, err := b.store.Rebuild(t.Context(), "c", "", bob); !fault.Is(err, fault.Conflict) {
		t.Errorf("two rebuilds of one consumer: %v", err)
	}
	b.settle()
	b.now = b.now.Add(10 * time.Minute)
	b.settle()
	shadows := 0
	for _, c := range b.calls {
		if c.Consumer == "c-new" && c.Replay {
			shadows += len(c.Events)
		}
	}
	if shadows != 2 {
		t.Errorf("%d events into the shadow: %+v", shadows, b.calls)
	}
}

// pruner has three pages, of which the second cannot be read at first.
type pruner struct {
	pages []string
	fails bool
}

func (p *pruner) Prune(_ context.Context, cursor string) (string, error) {
	if cursor == "2" && p.fails {
		p.fails = false
		return "", fault.New(fault.Unavailable, "the index is away")
	}
	p.pages = append(p.pages, cursor)
	return map[string]string{"": "2", "2": "3", "3": ""}[cursor], nil
}

// TestRebuildPrunes: a rebuild lets the handler remove what is not stored any more, and goes on
// where it was after an error. One into a shadow does not.
func TestRebuildPrunes(t *testing.T) {
	b := newBench(t)
	b.runtime.State = &state{objects: []string{"a"}}
	p := &pruner{fails: true}
	b.runtime.Pruners = map[string]consumer.Pruner{"note": p}
	b.apply(define("c"))
	if _, err := b.store.Rebuild(t.Context(), "c", "c-new", bob); err != nil {
		t.Fatal(err)
	}
	b.settle()
	b.want("pages for a shadow", strings.Join(p.pages, ","), "")
	r, err := b.store.Rebuild(t.Context(), "c", "", bob)
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		b.woken = nil
		_ = b.runtime.Tick(t.Context(), b.now.Add(time.Minute))
		for len(b.woken) > 0 {
			name, partition, _ := strings.Cut(b.woken[0], " ")
			b.woken = b.woken[1:]
			_, _ = b.runtime.Run(t.Context(), name, partition, b.now.Add(time.Minute))
		}
		b.now = b.now.Add(10 * time.Minute)
	}
	b.show(r.ID)
	b.want("pages", strings.Join(p.pages, ","), ",2,3")
}

// TestRebuildOfDamaged: what is stored and cannot be read is a failure of the rebuild, which goes on.
// While nothing can be read, or nothing be removed, the rebuild says why it waits.
func TestRebuildOfDamaged(t *testing.T) {
	b := newBench(t)
	s := &state{objects: []string{"a", "b"}, broken: map[string]bool{"a": true}, fails: 1000}
	b.runtime.State = s
	p := &pruner{fails: true}
	b.runtime.Pruners = map[string]consumer.Pruner{"note": p}
	b.apply(define("c", func(d *consumer.Definition) { d.Order = consumer.OrderCollection }))
	r, err := b.store.Rebuild(t.Context(), "c", "", bob)
	if err != nil {
		t.Fatal(err)
	}
	for range 4 {
		b.settle()
		b.now = b.now.Add(10 * time.Minute)
	}
	_, progress, err := b.store.ShowReplay(t.Context(), r.ID)
	if err != nil || len(progress.Stops) == 0 || progress.Stops[0].Kind != consumer.Unreadable ||
		!strings.Contains(progress.Stops[0].Reason, "S3 is down") {
		t.Errorf("%+v, %v", progress, err)
	}
	s.fails = 0
	b.now = b.now.Add(time.Hour)
	b.settle()
	got := b.show(r.ID)
	if got.Failed != 1 || len(got.Failures) != 1 ||
		got.Failures[0] != (consumer.Failure{ID: "snapshot.a", Reason: "its inventory is broken"}) {
		t.Errorf("the result is %+v", got)
	}
	b.want("handled", b.handled(), "Object/b Version/b")
	b.want("pages", strings.Join(p.pages, ","), ",2,3")
}

// inFirst is an archive of n objects in the first part, and one in the second.
func inFirst(n int) *state {
	s := &state{objects: make([]string, 16*n)}
	for i := range n {
		s.objects[16*i] = fmt.Sprintf("o%04d", i)
	}
	s.objects[1] = "other"
	return s
}

// TestRebuildInManyRuns: a page of which one run can handle only some is handled in several: what is
// handled is not handled again, and what fails keeps its tries.
func TestRebuildInManyRuns(t *testing.T) {
	b := newBench(t)
	s := inFirst(6)
	s.size = 100
	b.runtime.State = s
	b.apply(define("c", func(d *consumer.Definition) { d.Retries, d.Batch = 3, 1 }))
	b.fails["Object/o0002"] = "it is broken"
	b.onCall = func() { b.now = b.now.Add(40 * time.Second) }
	p, err := b.store.Rebuild(t.Context(), "c", "", bob)
	if err != nil {
		t.Fatal(err)
	}
	for range 40 {
		b.woken = nil
		if err := b.runtime.Tick(t.Context(), b.now.Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		for _, woken := range b.woken {
			name, part, _ := strings.Cut(woken, " ")
			if _, err := b.runtime.Run(t.Context(), name, part, b.now.Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
		}
		b.now = b.now.Add(2 * time.Minute)
	}
	got := b.show(p.ID)
	if got.Failed != 1 || got.Failures[0].ID != "Object/o0002" || len(b.calls) != 14-1+4 {
		t.Errorf("%d calls; the result is %+v", len(b.calls), got)
	}
	var first []string
	for _, e := range b.got {
		if e.Subject.ID[0] == 'o' && e.Subject.ID[1] == '0' {
			first = append(first, e.ID)
		}
	}
	b.want("handled", strings.Join(first, " "), "Object/o0000 Version/o0000 Object/o0001 Version/o0001 "+
		"Version/o0002 Object/o0003 Version/o0003 Object/o0004 Version/o0004 Object/o0005 Version/o0005")
}

// TestRebuildFull: a part of which more fails than can be kept ends, and says so; others are handled. More
// failures of a page than one transaction can have are no reason to end.
func TestRebuildFull(t *testing.T) {
	for objects, want := range map[int]int64{150: 150, consumer.MaxParked + 5: consumer.MaxParked + 1} {
		b := newBench(t)
		s := inFirst(objects)
		s.size, s.broken = 200, map[string]bool{}
		for _, ark := range s.objects {
			s.broken[ark] = ark != "other"
		}
		b.runtime.State = s
		b.apply(define("c"))
		p, err := b.store.Rebuild(t.Context(), "c", "", bob)
		if err != nil {
			t.Fatal(err)
		}
		b.settle()
		got := b.show(p.ID)
		if len(got.Failures) == 0 {
			t.Fatalf("%d objects: the result has no failures: %+v", objects, got)
		}
		ended := got.Failures[0].ID == "part.00" && strings.Contains(got.Failures[0].Reason, "as many failures")
		if got.Failed != want || ended != (want > 150) {
			t.Errorf("%d objects: the result is %+v", objects, got)
		}
		b.want("handled", b.handled(), "Object/other Version/other")
	}
}
