package boot

import (
	"testing"
	"time"

	"archivist/pkg/ingest"
)

// TestAgingKeepsOrder: waiting jobs are sorted as text by a time of 13 digits. The slowest
// aging that is accepted keeps the worst priority within them, until 2100 and longer.
func TestAgingKeepsOrder(t *testing.T) {
	l := DefaultLimits
	l.AgingMinutes = mostAging
	rules := l.rules(ingest.Timings["production"])
	j := rules.New(ingest.Job{ID: "x", Priority: ingest.WorstPriority}, time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC))
	_, rank := j.WorkKey()
	if l.Check() != nil || len(rank) != len("0000000000000#x") {
		t.Errorf("%v: the rank is %s", l.Check(), rank)
	}
	l.AgingMinutes++
	if l.Check() == nil {
		t.Error("a slower aging was accepted")
	}
}

func TestLocalOnly(t *testing.T) {
	for _, endpoint := range []string{"", "http://127.0.0.1:4566"} {
		env := Env(func(n string) string {
			return map[string]string{EnvAllow: "127.0.0.0/8,::1/128", "AWS_ENDPOINT_URL": endpoint}[n]
		})
		if g, err := allowed(env); (err == nil) != (endpoint != "") || len(g.Allow) != 2*min(1, len(endpoint)) {
			t.Errorf("private networks at the endpoint %q: %v, %v", endpoint, g, err)
		}
	}
	if g, err := allowed(func(string) string { return "" }); err != nil || len(g.Allow) > 0 {
		t.Errorf("%v, %v", g, err)
	}
}

// TestIDs: ids that many make at once are different.
func TestIDs(t *testing.T) {
	const makers, each = 8, 1000
	made := make(chan []string, makers)
	for range makers {
		go func() {
			var own []string
			for range each {
				own = append(own, newID())
			}
			made <- own
		}()
	}
	seen := map[string]bool{}
	for range makers {
		for _, id := range <-made {
			if seen[id] || len(id) != 26 {
				t.Fatalf("%s came twice, or is no ULID", id)
			}
			seen[id] = true
		}
	}
}
