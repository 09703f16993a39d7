package component

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"archivist/pkg/events/event"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table/tabletest"
)

// controls are all actions, each with an item on which it changes something.
var controls = map[string]func(ctx context.Context, s *Store) (ActionResult, error){
	"create": func(ctx context.Context, s *Store) (ActionResult, error) {
		return s.Create(ctx, "item:new", CustomItem{Types: []string{"delivery"}}, by("it"))
	},
	"change": func(ctx context.Context, s *Store) (ActionResult, error) {
		return s.Change(ctx, roll17, CustomItem{Types: []string{"shipment"}}, by("it"))
	},
	"forget": func(ctx context.Context, s *Store) (ActionResult, error) { return s.Forget(ctx, roll17, by("it")) },
	"event": func(ctx context.Context, s *Store) (ActionResult, error) {
		return s.Register(ctx, roll17, "Structure", "", by("it"))
	},
	"revoke": func(ctx context.Context, s *Store) (ActionResult, error) {
		return s.Revoke(ctx, roll17, []string{"Received"}, by("it"))
	},
	"restart": func(ctx context.Context, s *Store) (ActionResult, error) {
		return s.Restart(ctx, roll17, "Received", by("it"))
	},
	"stop": func(ctx context.Context, s *Store) (ActionResult, error) { return s.Stop(ctx, roll17, by("it")) },
	"prioritize": func(ctx context.Context, s *Store) (ActionResult, error) {
		return s.Prioritize(ctx, roll17, 9, by("it"))
	},
	"release": func(ctx context.Context, s *Store) (ActionResult, error) {
		return s.Release(ctx, roll17, "metadata", by("it"))
	},
}

// TestControlCrash: an action that ends at any of its calls, before or after it, is done as a whole or not
// at all; and the same request again completes it, once.
func TestControlCrash(t *testing.T) {
	for name, act := range controls {
		t.Run(name, func(t *testing.T) {
			tabletest.Crashes(t, 1, func(t *testing.T, m *tabletest.Mortal) {
				s, fake := newStore(t), tabletest.New()
				s.Table = tabletest.Through(fake, through)
				prepare(t, s)
				lives := s.Table
				s.Table = tabletest.Through(fake, m.Do)
				_, err := act(t.Context(), s)
				s.Table = lives
				if m.Dead() != (err != nil) {
					t.Fatalf("died %v, %v", m.Dead(), err)
				}
				before := versions(t, s)
				if before != "2" && before != "3" && before != "2 1" {
					t.Error(before)
				}
				if a := do(t)(act(t.Context(), s)); !a.Changed && m.Dead() {
					t.Errorf("the repetition does not have the answer of the first: %+v", a)
				}
				if v := versions(t, s); v != "3" && v != "2 1" {
					t.Error(v)
				}
			})
		})
	}
}

// prepare makes the line, the delivery, and a lease on it.
func prepare(t *testing.T, s *Store) {
	t.Helper()
	define(t, s, chain()...)
	do(t)(s.Create(t.Context(), roll17, CustomItem{Types: []string{"delivery"}}, by("")))
	do(t)(s.Register(t.Context(), roll17, "Received", "", by("")))
	claim(t, s, "metadata", 1) // it has ended
}

// versions are the numbers of the newest events of the items.
func versions(t *testing.T, s *Store) string {
	t.Helper()
	out := ""
	for _, id := range []string{roll17, "item:new"} {
		rows, _, err := event.Page(t.Context(), s.Table, itemSubject(id), "")
		if err != nil {
			t.Fatal(err)
		}
		row, err := s.row(t.Context(), id)
		if err != nil || row.it.Version != int64(len(rows)) {
			t.Fatalf("%s: %d events, %+v, %v", id, len(rows), row, err)
		}
		if len(rows) > 0 {
			out += fmt.Sprintf(" %d", len(rows))
		}
	}
	return strings.TrimSpace(out)
}

// TestControlRaces: a component takes its lease while an action is decided. Then the action is decided
// again: what concerns the component is refused, and the lease stays.
func TestControlRaces(t *testing.T) {
	refused := []string{"event", "revoke", "restart", "forget"}
	for name, act := range controls {
		s := newStore(t)
		raced := true
		s.Table = tabletest.Through(tabletest.New(), func(op string, call func() error) error {
			if op == "TransactWriteItems" && !raced {
				raced = true
				claim(t, s, "structure", millis(s.Now())+60_000)
			}
			return call()
		})
		prepare(t, s)
		raced = false
		_, err := act(t.Context(), s)
		if fault.Is(err, fault.Conflict) != slices.Contains(refused, name) {
			t.Errorf("%s: %v", name, err)
		}
		if row, err := s.row(t.Context(), roll17); err != nil || row.it.Claims["structure"].ID != "c1" {
			t.Errorf("%s: the lease is lost: %+v, %v", name, row, err)
		}
	}
}
