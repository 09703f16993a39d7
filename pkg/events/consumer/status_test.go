package consumer_test

import (
	"testing"
	"time"

	"archivist/pkg/events/consumer"
	"archivist/pkg/events/envelope"
)

// TestBehind: a consumer is behind by the events that it has still to handle, since the first of them. Those that its
// filter does not select do not count, also before a run has moved past them; of very many, the rest counts as it is.
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
	want("many", 50, 0)
}
