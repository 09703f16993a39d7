package queue_test

import (
	"testing"
	"time"

	"archivist/pkg/ingest"
)

// TestHours: of each hour the most is kept that was measured in it; of one in which nothing was measured nothing is
// said; a queue that rests is written once in an hour.
func TestHours(t *testing.T) {
	b := newBench(t)
	b.now = b.now.Truncate(time.Hour)
	b.metrics = map[string]float64{}
	measure := func() {
		t.Helper()
		if err := b.q.Measure(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	measure()
	b.submitJobs(ingest.Job{Collection: "c", Priority: 5})
	b.now = b.now.Add(10 * time.Minute)
	measure()
	b.tick()
	b.now = b.now.Add(10 * time.Minute)
	measure()

	hours, err := b.q.Hours(t.Context(), 24)
	if err != nil || len(hours) != 24 || hours[22] != nil || hours[23] == nil {
		t.Fatalf("%+v, %v", hours, err)
	}
	if h := hours[23]; h.Waited != 600 || h.Running != 1 {
		t.Errorf("the most in the hour: %+v", h)
	}

	b.now = b.now.Add(2 * time.Hour)
	measure()
	hours, err = b.q.Hours(t.Context(), 24)
	if err != nil || hours[21] == nil || hours[21].Waited != 600 || hours[22] != nil || hours[23] == nil ||
		hours[23].Waited != 0 {
		t.Errorf("%+v, %v", hours, err)
	}
	b.now = b.now.Add(30 * time.Hour)
	measure()
	hours, err = b.q.Hours(t.Context(), 48)
	if err != nil || hours[47] == nil || hours[17] != nil {
		t.Errorf("after a day: %+v, %v", hours, err)
	}
}
