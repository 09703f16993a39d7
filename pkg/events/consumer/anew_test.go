package consumer

import (
	"testing"
	"time"
)

// TestStopsAnew: a stop for the same reason at the same event goes on counting its tries; at another event, or for
// another reason, it begins anew, so that the waits do not begin with long ones.
func TestStopsAnew(t *testing.T) {
	now := time.UnixMilli(9000)
	n := &run{r: &Runtime{Store: &Store{Now: func() time.Time { return now }}}}
	n.cur.Stop = &Stop{Kind: "failed", Seq: 5, Since: 1000, Tries: 3}
	for _, c := range []struct {
		kind  string
		seq   int64
		since int64
		tries int
	}{
		{"failed", 5, 1000, 4},
		{"failed", 6, 9000, 1},
		{"target", 5, 9000, 1},
	} {
		if s := n.stop(c.kind, c.seq, "why"); s.Since != c.since || int(s.Tries) != c.tries {
			t.Errorf("%s at %d: since %d, %d tries", c.kind, c.seq, s.Since, s.Tries)
		}
	}
}
