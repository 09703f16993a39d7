package inprocess

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestBatchIsPreserved: a batch of two objects goes through all stages; its content comes back from signed URLs, and
// its depositor gets the report.
func TestBatchIsPreserved(t *testing.T) {
	w := begin(t, quick())
	batch := w.completed(w.two())
	if batch.Counts.Completed != 2 || batch.Counts.Expected != 2 {
		t.Errorf("the counts are %+v", batch.Counts)
	}
	if got := w.content(w.job(batch.ID, 1), "producer/b.txt"); got != string(w.src.files["/b.txt"]) {
		t.Errorf("the file came back with %d bytes", len(got))
	}
	w.mailed("bob@example.org", "2 objects preserved: "+batch.ID)
	for n := 1; n <= 2; n++ {
		if j := w.job(batch.ID, n); w.repairs(j.ID) != 0 {
			t.Errorf("%d repairs of %s in a run without faults", w.repairs(j.ID), j.ID)
		}
	}
}

// TestSweepRepairsALostMessage: in a bubble, with the times of production, a job whose message was lost completes
// after the repair by the sweep.
func TestSweepRepairsALostMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := begin(t, Settings{})
		w.Lose("store", 1)
		began := time.Now()
		batch := w.completed(w.two())
		if n := w.repairs(w.job(batch.ID, 1).ID) + w.repairs(w.job(batch.ID, 2).ID); n != 1 {
			t.Errorf("%d repairs, not that of the lost message", n)
		}
		if took := time.Since(began); took < 2*time.Minute || took > time.Hour {
			t.Errorf("the batch took %s", took)
		}
	})
}

// TestJobsSurviveAKilledWorker: in a bubble, the processes of a stage end while they download. Nothing of them is
// heard from then on, and their messages come back.
func TestJobsSurviveAKilledWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := begin(t, Settings{})
		w.src.gate = make(chan struct{})
		id := w.two()
		w.until("both jobs download", func() bool {
			return w.src.waiting("/a.txt") && w.src.waiting("/c.txt")
		})
		if n := w.Kill("run-download"); n != 2 {
			t.Errorf("%d workers were killed", n)
		}
		w.src.open()
		batch := w.completed(id)
		if got := w.content(w.job(batch.ID, 2), "producer/c.txt"); got != "content of c" {
			t.Errorf("stored %q", got)
		}
	})
}
