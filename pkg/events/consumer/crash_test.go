package consumer_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"archivist/pkg/events/consumer"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table/tabletest"
)

// mortal is a process that dies at its nth call of the table.
type mortal struct {
	*bench
	*tabletest.Mortal
	store   *consumer.Store
	runtime *consumer.Runtime
}

func newMortal(b *bench, at int, after bool) *mortal {
	m := &mortal{bench: b, Mortal: &tabletest.Mortal{At: at, After: after}}
	m.store = b.storeOn(tabletest.Through(b.fake, m.Do))
	m.store.Handlers, m.store.Files = b.store.Handlers, b.store.Files
	note := func(ctx context.Context, batch consumer.Batch) ([]consumer.Failure, error) {
		if m.Dead() {
			return nil, tabletest.ErrDead
		}
		return b.note(ctx, batch)
	}
	m.runtime = &consumer.Runtime{Store: m.store, Wake: b.runtime.Wake,
		Handlers: map[string]consumer.Handler{"note": consumer.HandlerFunc(note)}}
	return m
}

// scenario is something that a process does, and how it must be in the end, wherever the
// process died, after another one has done the same.
type scenario struct {
	name    string
	prepare func(b *bench)
	do      func(b *bench, s *consumer.Store, r *consumer.Runtime) error
	check   func(b *bench) string
}

func runIn(partition string) func(*bench, *consumer.Store, *consumer.Runtime) error {
	return func(b *bench, _ *consumer.Store, r *consumer.Runtime) error {
		for more := true; more; {
			var err error
			more, err = r.Run(b.Context(), "c", partition, b.now.Add(time.Minute))
			if err != nil {
				return err
			}
		}
		return nil
	}
}

// once are the events that were handled, of each the first time, by key.
func (b *bench) once() string {
	var ids []string
	for _, e := range b.got {
		if !slices.Contains(ids, e.ID) {
			ids = append(ids, e.ID)
		}
	}
	slices.SortStableFunc(ids, func(x, y string) int { return strings.Compare(x[:1], y[:1]) })
	return strings.Join(ids, " ")
}

// state is how far the consumer "c" has come in a partition, and what it has parked.
func (b *bench) state(partition string) string { return b.stateOf("c", partition) }

// amongAll fails unless a consumer is among all as it is by itself.
func (b *bench) amongAll(st consumer.Status) {
	b.Helper()
	all, unread, err := b.store.ShowAll(b.Context())
	if err != nil || unread > 0 {
		b.Fatalf("%d partitions were not read, %v", unread, err)
	}
	st.NextRun = 0
	for _, one := range all {
		if one.Name == st.Name && !reflect.DeepEqual(one, st) {
			b.Errorf("%s by itself:\n%+v\namong all:\n%+v", st.Name, st, one)
		}
	}
}

func (b *bench) stateOf(name, partition string) string {
	b.Helper()
	st, err := b.store.Show(b.Context(), name)
	if err != nil {
		b.Fatal(err)
	}
	b.amongAll(st)
	parked, _, err := b.store.Parked(b.Context(), name, partition, "")
	if err != nil {
		b.Fatal(err)
	}
	var ids []string
	for _, p := range parked {
		ids = append(ids, p.ID)
	}
	slices.Sort(ids)
	for _, p := range st.Places {
		if p.Partition == partition {
			return fmt.Sprintf("%d of %d, %d parked %v, %d wait, %d redrives, running %v", p.Seq, p.Head, p.Parked, ids,
				p.Waiting, p.Redrives, p.Running)
		}
	}
	return "nowhere"
}

func quietConsumer(d *consumer.Definition) {
	d.Coalesce, d.Retries = &consumer.Coalesce{Debounce: 30}, consumer.NoRetries
}

var scenarios = []scenario{
	{"run", func(b *bench) {
		b.apply(define("c", func(d *consumer.Definition) { d.Batch, d.Window, d.Retries = 2, 3, 1 }))
		b.fails["a.1"] = "broken"
		for _, s := range []string{"a", "b", "a", "c", "b", "d", "a"} {
			b.add("maps", s)
		}
	}, runIn("maps"), func(b *bench) string { return b.once() + "; " + b.state("maps") }},

	{"files of a version", func(b *bench) {
		b.store.Files = (&lists{files: 95}).list
		b.apply(define("c", func(d *consumer.Definition) {
			d.Filter, d.Retries, d.Batch = "File+create:Version+create:Collection+add", consumer.NoRetries, 60
		}))
		b.fails["v.1#7"] = "broken"
		b.add("maps", "o", object)
		b.add("maps", "v", version)
	}, runIn("maps"), func(b *bench) string { return b.once() + "; " + b.state("maps") }},

	{"redrive", func(b *bench) {
		b.apply(define("c", func(d *consumer.Definition) { d.Retries = consumer.NoRetries }))
		b.fails["a.1"], b.fails["b.1"] = "broken", "broken"
		for _, s := range []string{"a", "b", "a", "c", "b"} {
			b.add("maps", s)
		}
		b.run("c", "maps")
		b.add("maps", "a")
		delete(b.fails, "a.1")
	}, func(b *bench, s *consumer.Store, r *consumer.Runtime) error {
		by := bob
		by.Request = "r"
		if _, err := s.Redrive(b.Context(), "c", consumer.Selection{All: true}, by); err != nil {
			return err
		}
		return runIn("maps")(b, s, r)
	}, func(b *bench) string { return b.once() + "; " + b.state("maps") + "; " + b.history("c") }},

	{"discard", func(b *bench) {
		b.apply(define("c", func(d *consumer.Definition) { d.Retries = consumer.NoRetries }))
		b.fails["a.1"] = "broken"
		for _, s := range []string{"a", "a", "b"} {
			b.add("maps", s)
		}
		b.run("c", "maps")
	}, func(b *bench, s *consumer.Store, r *consumer.Runtime) error {
		by := bob
		by.Request = "r"
		if _, err := s.Discard(b.Context(), "c", consumer.Selection{Event: "a.1"}, by); err != nil {
			return err
		}
		return runIn("maps")(b, s, r)
	}, func(b *bench) string { return b.once() + "; " + b.state("maps") + "; " + b.history("c") }},

	{"quiet keys", func(b *bench) {
		b.apply(define("c", quietConsumer))
		b.fails["a.2"] = "broken"
		for _, s := range []string{"a", "b", "a", "c"} {
			b.add("maps", s)
		}
		b.run("c", "maps")
		b.add("maps", "b")
		b.now = b.now.Add(31 * time.Second)
	}, func(b *bench, s *consumer.Store, r *consumer.Runtime) error {
		if err := runIn("maps")(b, s, r); err != nil {
			return err
		}
		b.now = b.now.Add(time.Minute)
		return runIn("maps")(b, s, r)
	}, func(b *bench) string { return b.state("maps") }},

	{"apply", func(b *bench) {
		b.add("maps", "a")
		b.add("books", "x")
	}, func(b *bench, s *consumer.Store, _ *consumer.Runtime) error {
		d := define("c", func(d *consumer.Definition) { d.Start = consumer.StartLatest })
		_, err := s.Apply(b.Context(), d, bob)
		return err
	}, func(b *bench) string { return b.state("maps") + "; " + b.state("books") + "; " + b.history("c") }},

	{"reset", func(b *bench) {
		b.apply(define("c"))
		b.add("maps", "a")
		b.add("books", "x")
		b.run("c", "maps")
		b.run("c", "books")
	}, func(b *bench, s *consumer.Store, _ *consumer.Runtime) error {
		by := bob
		by.Request = "r"
		return s.Reset(b.Context(), "c", "", "horizon", by)
	}, func(b *bench) string {
		if err := b.runtime.Tick(b.Context(), b.now.Add(time.Minute)); err != nil {
			b.Fatal(err)
		}
		return b.state("maps") + "; " + b.state("books") + "; " + b.history("c")
	}},

	{"delete", func(b *bench) {
		b.apply(define("c", func(d *consumer.Definition) { d.Retries = consumer.NoRetries }))
		b.fails["a.1"] = "broken"
		b.add("maps", "a")
		b.run("c", "maps")
	}, func(b *bench, s *consumer.Store, _ *consumer.Runtime) error {
		return s.Delete(b.Context(), "c", true, bob)
	}, func(b *bench) string {
		if err := b.runtime.Tick(b.Context(), b.now.Add(time.Minute)); err != nil {
			b.Fatal(err)
		}
		var left []string
		for _, it := range b.fake.All() {
			pk, sk := text(it["pk"]), text(it["sk"])
			if !strings.HasPrefix(sk, "EV#") && !strings.HasPrefix(pk, "CONSUMERS") {
				left = append(left, pk+" "+sk)
			}
		}
		return fmt.Sprint(left) + b.history("c")
	}},
}

// TestDiesAtEachCall: a process dies before or after each of its calls of the table. After
// another one has done the same, nothing is lost or doubled: the end is that without a crash.
func TestDiesAtEachCall(t *testing.T) {
	for _, sc := range scenarios {
		t.Run(sc.name, func(t *testing.T) {
			b := newBench(t)
			sc.prepare(b)
			if err := sc.do(b, b.store, b.runtime); err != nil {
				t.Fatal(err)
			}
			want := sc.check(b)
			t.Log(want)
			for _, after := range []bool{false, true} {
				for at := 1; ; at++ {
					b := newBench(t)
					sc.prepare(b)
					m := newMortal(b, at, after)
					_ = sc.do(b, m.store, m.runtime)
					if !m.Dead() {
						if at < 3 {
							t.Errorf("it made only %d calls", m.Calls())
						}
						break
					}
					b.now = b.now.Add(3 * time.Minute) // its lease ends
					err := sc.do(b, b.store, b.runtime)
					if err != nil && !fault.Is(err, fault.NotFound) { // deleted already
						t.Errorf("died at call %d (after it %v): %v", at, after, err)
					}
					if got := sc.check(b); got != want {
						t.Errorf("died at call %d (after it %v): %s\nwant %s", at, after, got, want)
					}
				}
			}
		})
	}
}
