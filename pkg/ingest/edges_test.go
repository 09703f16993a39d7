package ingest

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"
)

// TestTransitionsThatAreMade applies every rule to a job, beginning with a new one: the
// transitions made are the whole table.
func TestTransitionsThatAreMade(t *testing.T) {
	now := time.UnixMilli(1)
	made := map[string]bool{"→Pending": true, "→Failed": true}
	type place struct{ at, last State }
	seen := map[place]bool{}
	waiting := []Job{rules.New(Job{}, now)}
	for len(waiting) > 0 {
		j := waiting[0]
		waiting = waiting[1:]
		if seen[place{j.State, j.LastSuccessful}] {
			continue
		}
		seen[place{j.State, j.LastSuccessful}] = true
		var next []Job
		switch {
		case j.State == Pending:
			held, err := rules.Held(j, Hold{}, now)
			if err != nil {
				t.Fatal(err)
			}
			next = append(next, rules.Admit(j, now), held, rules.Deleted(j, "cancelled", now))
		case j.State == Held:
			released, err := rules.Released(j, now)
			if err != nil {
				t.Fatal(err)
			}
			next = append(next, released, rules.Deleted(j, "by hand", now))
		case j.State == Provisioning:
			next = append(next, rules.Provision(j, now), rules.Failed(j, "by hand", true, now))
		case j.Running():
			next = append(next, rules.Next(j, Result{Outcome: StepNext}, now), rules.Next(j, Fail(true, "no"), now))
		case j.State == Failed:
			again, err := rules.Requeue(j, now)
			if err != nil {
				t.Fatal(err)
			}
			next = append(next, again, rules.Cleaned(j), rules.Deleted(j, "by hand", now))
		}
		for _, n := range next {
			if n.State != j.State {
				made[fmt.Sprintf("%s→%s", j.State, n.State)] = true
			}
			waiting = append(waiting, n)
		}
	}
	whole(t, nextJob, made)
}

func whole[S ~string](t *testing.T, table map[S][]S, made map[string]bool) {
	t.Helper()
	left := map[string]bool{}
	for from, tos := range table {
		for _, to := range tos {
			if edge := fmt.Sprintf("%s→%s", from, to); !made[edge] {
				left[edge] = true
			}
			delete(made, fmt.Sprintf("%s→%s", from, to))
		}
	}
	if len(left) > 0 {
		t.Errorf("nothing makes %v", slices.Sorted(maps.Keys(left)))
	}
	if len(made) > 0 {
		t.Errorf("%v are made but not in the table", made)
	}
}
