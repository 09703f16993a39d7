package component

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/table"
	"archivist/test/adversary/seeds"
)

// rules is an assembly line that has every kind of condition.
func rules() []Definition {
	x := Runnable{Function: "x"}
	return []Definition{
		{Name: "structure", Event: "Structure", PastSuccess: []string{"Received"}, Old: []string{"Structure"},
			Runnable: x},
		{Name: "metadata", Event: "Metadata", PastSuccess: []string{"Structure"}, Old: []string{"Metadata"},
			Runnable: x,
			Retry:    &Retry{Max: 2, Backoff: 60}},
		{Name: "ingest", Event: "Ingested", PastSuccess: []string{"Structure", "Metadata"}, Runnable: x,
			Future: []string{"Ingested", "Returned"}},
		{Name: "return", Event: "Returned", PastFailure: []string{"Metadata"}, Future: []string{"Returned"},
			Runnable: x,
			Types:    []string{"delivery"}},
		{Name: "count", Event: "Counted", PastSuccess: []string{"object.create"}, Old: []string{"Counted", "Structure"},
			Runnable: x, Types: []string{"Object"}, Retry: &Retry{Max: 1, Backoff: 60}},
		{Name: "once", Event: "Once", PastSuccess: []string{"object.modify"}, Future: []string{"Once"}, Runnable: x,
			Retry: &Retry{Max: 1, Backoff: 60}},
		{Name: "repeated", Event: "Repeated", PastSuccess: []string{"Received"}, Old: []string{"Repeated"},
			EveryDays: 30, Runnable: x},
		{Name: "listed", Event: "Listed", Old: []string{"Listed"}, Items: &Items{IDs: []string{"item:i3"}},
			Runnable: x},
	}
}

// play is a random history of one item.
type play struct {
	t       testing.TB
	s       *Store
	rng     *rand.Rand
	id      string
	subject event.Subject // zero for a custom item
	facts   int64         // events of the subject
	claims  map[string]Claim
	now     *int64
}

// names are those of all events that are recorded.
var names = []string{"Received", "Structure", "Metadata", "Ingested", "Returned", "Counted", "Once", "Listed",
	"Repeated"}

func pick[T any](rng *rand.Rand, from []T) T { return from[rng.IntN(len(from))] }

func (p *play) outcome() string {
	if p.rng.IntN(3) == 0 {
		return event.Failure
	}
	return event.Success
}

// step makes one thing happen. synced is false if the item does not know it yet.
func (p *play) step() (synced bool) {
	if p.rng.IntN(2) == 0 {
		*p.now += int64(p.rng.IntN(3)) // often nothing: events of one millisecond
	}
	if p.rng.IntN(10) == 0 {
		*p.now -= 2 // the clock of another machine
	}
	switch n := p.rng.IntN(12); {
	case p.subject.ID != "" && n < 4:
		p.fact()
		if n > 0 {
			return false // other events come before the consumer does
		}
		p.change(nil)
	case n < 6:
		p.own("item.event", p.outcome(), "items", func(it *Item) any {
			r := Registered{Event: pick(p.rng, names), BasedOn: SeenVersions{Subject: it.Applied, Item: it.Version}}
			if p.rng.IntN(4) == 0 {
				r.Imported = &Imported{IDType: "local", ID: "e1", Time: "2009-01-01T00:00:00Z"}
			}
			return r
		})
	case n < 9:
		p.work(pick(p.rng, rules()))
	case n < 10:
		revoked := []string{pick(p.rng, names)}
		switch p.rng.IntN(3) {
		case 0: // a restart
			revoked = append(revoked, names[p.rng.IntN(len(names)):]...)
		case 1:
			revoked = append(revoked, Stopped)
		}
		slices.Sort(revoked)
		p.own("item.revoke", "", "items", func(*Item) any { return Revoked{Events: slices.Compact(revoked)} })
	case n < 11 && p.rng.IntN(3) == 0:
		p.own("item.event", "", "items", func(*Item) any { return Registered{Event: Stopped} })
	case p.subject.ID == "" && n < 11:
		p.own("item.change", "", "items", func(*Item) any { return p.shape() })
	default:
		p.own("item.prioritize", "", "items", func(*Item) any { return Prioritized{Priority: 1 + p.rng.IntN(9)} })
	}
	return true
}

func (p *play) shape() Shape {
	return Shape{Types: [][]string{{"delivery"}, {"box", "delivery"}, {"box"}}[p.rng.IntN(3)]}
}

// work is a part of what a component does: it claims the item, or the result of its claim comes.
func (p *play) work(d Definition) {
	claim, working := p.claims[d.Name]
	if !working {
		p.change(func(c *change) error {
			it := c.item()
			claim = Claim{ID: "c", Run: "r", Until: c.now + 1000,
				BasedOn: SeenVersions{Subject: it.Applied, Item: it.Version}}
			if it.Claims == nil {
				it.Claims = map[string]Claim{}
			}
			it.Claims[d.Name] = claim
			return nil
		})
		p.claims[d.Name] = claim
		return
	}
	delete(p.claims, d.Name)
	if p.rng.IntN(6) == 0 {
		p.own("item.release", "", "items", func(*Item) any { return Released{Component: d.Name} })
		return
	}
	changed := p.rng.IntN(3) == 0
	p.own("component.ran", p.outcome(), d.Name, func(*Item) any {
		return Ran{Component: d.Name, Event: d.Event, BasedOn: claim.BasedOn, Changed: changed}
	})
}

// own makes an own event.
func (p *play) own(name, outcome, component string, detail func(it *Item) any) {
	p.change(func(c *change) error {
		return c.append(name, outcome, component, By{Actor: "eva"}, detail(c.item()))
	})
}

func (p *play) change(f func(c *change) error) {
	if _, err := p.s.change(p.t.Context(), p.id, f); err != nil {
		p.t.Fatal(p.id, err)
	}
}

// fact makes an event of the subject: by a person, by another part of the system, or because a component
// asked for it.
func (p *play) fact() {
	p.facts++
	name := "object.modify"
	if p.facts == 1 {
		name = "object.create"
	}
	ctx := p.t.Context()
	if p.rng.IntN(2) == 0 {
		ctx = event.From(ctx, event.Origin{Cause: envelope.Cause{Event: "e", Root: "e", Depth: 1,
			Components: []string{"items", pick(p.rng, rules()).Name}}})
	}
	tx := p.s.Table.Begin(p.s.NewID())
	err := event.Append(tx, p.subject, p.facts, event.New{Type: name, Time: *p.now, Component: "record",
		Outcome: event.Success})
	if err == nil {
		err = tx.Commit(ctx)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// TestRandomHistories: after each step of random histories, each component's line has the item exactly
// where the reference says. Each mutant of the reference differs somewhere, so the histories show these
// mistakes.
func TestRandomHistories(t *testing.T) {
	differ := &differences{of: map[string]int{}}
	played := seeds.Each(t, func(t *seeds.T, seed uint64) { playBoth(t, seed, differ) })
	if missing := len(mutants) - len(differ.of); missing > 0 && played.All() >= seeds.Many {
		t.Errorf("%d mutants were not found: %v", missing, differ.of)
	}
	t.Logf("%s: %d states; mutants differ in %v", played, differ.compared, differ.of)
}

// differences counts in how many states each mutant differs from the reference.
type differences struct {
	mu       sync.Mutex
	compared int
	of       map[string]int
}

// look counts a state. A mutant that has differed often is compared no more.
func (d *differences) look(differs func(mutant reference) bool) {
	d.mu.Lock()
	d.compared++
	seen := maps.Clone(d.of)
	d.mu.Unlock()
	for name, mutant := range mutants {
		if seen[name] < 20 && differs(mutant) {
			d.mu.Lock()
			d.of[name]++
			d.mu.Unlock()
		}
	}
}

// playBoth plays the histories of a custom item and of an object in one store.
func playBoth(t testing.TB, seed uint64, differ *differences) {
	s := newStore(t)
	now := int64(1_000_000)
	s.Now = func() time.Time { return time.UnixMilli(now) }
	define(t, s, rules()...)
	rng := rand.New(rand.NewPCG(seed, 0))
	object := event.Subject{Type: event.Object, ID: "ark:/99999/fk4"}
	both := []*play{
		{t: t, s: s, rng: rng, now: &now, claims: map[string]Claim{}, id: fmt.Sprintf("item:i%d", seed%4)},
		{t: t, s: s, rng: rng, now: &now, claims: map[string]Claim{}, id: "object:" + object.ID, subject: object},
	}
	both[0].own("item.create", "", "items", func(*Item) any { return both[0].shape() })
	both[1].fact()
	for range 8 + rng.IntN(32) {
		p := pick(rng, both)
		if p.step() {
			p.compare(differ)
		}
	}
	checkLines(t, s)
}

// compare compares the item's places with the reference.
func (p *play) compare(differ *differences) {
	row, err := p.s.row(p.t.Context(), p.id)
	if err != nil {
		p.t.Fatal(err)
	}
	own := readAll(p.events(itemSubject(p.id)))
	var subject []read
	if p.subject.ID != "" {
		subject = readAll(p.events(p.subject))
	}
	for _, d := range rules() {
		want := p.expected(reference{}, d, own, subject)
		if got := row.Places[d.Name]; got != want {
			p.t.Errorf("%s: %s is at %q, expected %q", p.id, d.Name, got, want)
		}
		differ.look(func(mutant reference) bool { return p.expected(mutant, d, own, subject) != want })
	}
}

func (p *play) events(s event.Subject) []event.Row {
	rows, next, err := event.Page(p.t.Context(), p.s.Table, s, "")
	if err != nil || next != "" {
		p.t.Fatal(next, err)
	}
	return rows
}

// expected is where the item should be in the line of a component.
func (p *play) expected(ref reference, d Definition, own, subject []read) string {
	if claim, ok := p.claims[d.Name]; ok {
		return fmt.Sprintf("running#%013d#%s", claim.Until, p.id)
	}
	rank, first := 4, int64(0)
	for _, r := range slices.Concat(own, subject) {
		if r.Type == "item.prioritize" {
			rank = 9 - r.Priority
		}
		if first == 0 || r.Time < first {
			first = r.Time
		}
	}
	ready, from := ref.ready(d, p.id, own, subject)
	newest, ok := ref.newest(own, subject, d.Event)
	switch {
	case ready && from == 0:
		return fmt.Sprintf("ready#%d#%013d#%s", rank, first, p.id)
	case ready:
		return fmt.Sprintf("later#%013d#%s", from, p.id)
	case !ok:
		return ""
	case newest.Outcome == event.Failure:
		return "failed#" + p.id
	}
	return "done"
}

// checkLines compares all rows of all lines, and all counts, with the places that the items have.
func checkLines(t testing.TB, s *Store) {
	t.Helper()
	ctx := t.Context()
	list, err := s.List(ctx)
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{} // items keep the places in the lines of deleted components until they change
	for _, c := range list {
		there[c.Name] = true
	}
	want, counts := shouldBe(t, s, there)
	got := map[string]string{}
	for _, c := range list {
		for _, class := range []string{Ready, Later, Running, Failed} {
			for cursor, more := "", true; more; more = cursor != "" {
				var page []placeRow
				q := table.Query{PK: linePK(c.Name), Prefix: class + "#", Cursor: cursor}
				next, err := s.Table.Page(ctx, q, &page)
				if err != nil {
					t.Fatal(err)
				}
				for _, r := range page {
					got[c.Name+"/"+r.SK] = r.Item
				}
				cursor = next
			}
		}
		is := counted(t, s, c.Name)
		is.Oldest = 0
		if is != counts[c.Name] {
			t.Errorf("%s: the counts are %+v, expected %+v", c.Name, is, counts[c.Name])
		}
	}
	if !reflect.DeepEqual(got, want) {
		for k := range want {
			if _, ok := got[k]; !ok {
				t.Errorf("the row %s is missing", k)
			}
		}
		for k := range got {
			if _, ok := want[k]; !ok {
				t.Errorf("the row %s is of no item", k)
			}
		}
	}
}

// shouldBe are the rows that the lines of these components should have by the places that the items have,
// and their counts.
func shouldBe(t testing.TB, s *Store, components map[string]bool) (map[string]string, map[string]Counts) {
	t.Helper()
	ctx := t.Context()
	want, counts := map[string]string{}, map[string]Counts{}
	for shard := range uint32(shards) {
		for cursor, more := "", true; more; more = cursor != "" {
			ids, next, err := s.items(ctx, shard, cursor, 100)
			if err != nil {
				t.Fatal(err)
			}
			rows, err := s.rows(ctx, ids)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range rows {
				for name, place := range r.Places {
					if !components[name] {
						continue
					}
					n := counts[name]
					n.add(classOf(place), 1)
					counts[name] = n
					if place != Done {
						want[name+"/"+place] = r.id
					}
				}
			}
			cursor = next
		}
	}
	return want, counts
}

// TestInterleavings: what is known of an item does not depend on how its own events and those of its
// subject came, one among the other, nor on repeats.
func TestInterleavings(t *testing.T) {
	ctx := context.Background()
	s := newStore(t)
	now := int64(1_000_000)
	s.Now = func() time.Time { return time.UnixMilli(now) }
	for seed := range uint64(50) {
		p := &play{t: t, s: s, rng: rand.New(rand.NewPCG(seed, 1)), now: &now, claims: map[string]Claim{},
			subject: event.Subject{Type: event.Object, ID: fmt.Sprintf("ark:/99999/fk5%d", seed)}}
		p.id = "object:" + p.subject.ID
		p.fact()
		for range 30 {
			p.step()
		}
		own, subject := envelopes(t, p.events(itemSubject(p.id))), envelopes(t, p.events(p.subject))
		p.change(nil)
		stored, err := s.row(ctx, p.id)
		if err != nil {
			t.Fatal(err)
		}
		stored.it.Claims, stored.it.Waits = nil, nil // they are no events
		for range 20 {
			got := Item{ID: p.id, Types: []string{"Object"}}
			for i, k := 0, 0; i < len(own) || k < len(subject); {
				next := &i
				from := own
				if i == len(own) || k < len(subject) && p.rng.IntN(2) == 0 {
					next, from = &k, subject
				}
				for range 1 + p.rng.IntN(2) {
					if err := got.apply(from[*next]); err != nil {
						t.Fatal(err)
					}
				}
				*next++
			}
			if a, b := toJSON(t, got), toJSON(t, stored.it); a != b {
				t.Fatalf("seed %d: %s\n%s", seed, a, b)
			}
		}
	}
}

func envelopes(t *testing.T, rows []event.Row) (all []envelope.Event) {
	for _, r := range rows {
		e, err := r.Envelope()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

// TestMutantsAreNamed: the rules that are broken one at a time are all rules.
func TestMutantsAreNamed(t *testing.T) {
	if n := reflect.TypeFor[reference]().NumField(); n != len(mutants) {
		t.Errorf("%d mutants of %d rules: %s", len(mutants), n,
			strings.Join(slices.Sorted(maps.Keys(mutants)), ", "))
	}
}
