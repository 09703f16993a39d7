package reindex_test

import (
	"fmt"
	"testing"
	"time"

	"archivist/pkg/ingest/reindex"
	"archivist/pkg/kernel/table/tabletest"
)

// TestRuns: a run is what was reported last. A report that comes late or twice changes nothing, one after an
// interruption begins the rate anew, and nothing is changed after the end.
func TestRuns(t *testing.T) {
	now, ids := time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC), 0
	s := reindex.Runs{Table: tabletest.Table(tabletest.New()), Now: func() time.Time { return now },
		NewID: func() string { ids++; return fmt.Sprint(ids) }}
	report := func(id string, done int, ended bool) reindex.Run {
		t.Helper()
		r, err := s.Report(t.Context(), id, "ann", reindex.Progress{Done: done, Total: 100, Objects: done * 3,
			Failures: []reindex.Failure{{Key: "0a1/o", Why: "damaged"}}}, ended)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}

	if r := report("first", 0, false); r.Left() != 0 || r.Interrupted(now) {
		t.Errorf("it has begun: %+v", r)
	}
	now = now.Add(time.Minute)
	if r := report("first", 20, false); r.Left() != 4*time.Minute || r.Objects != 60 {
		t.Errorf("%v left: %+v", r.Left(), r)
	}
	if r := report("first", 10, true); r.Done != 20 || r.Ended != 0 {
		t.Errorf("a late report changed it: %+v", r)
	}
	now = now.Add(reindex.Silence + time.Second)
	runs, err := s.List(t.Context())
	if err != nil || len(runs) != 1 || !runs[0].Interrupted(now) {
		t.Fatalf("%+v, %v", runs, err)
	}
	report("first", 30, false)
	now = now.Add(time.Minute)
	if r := report("first", 40, false); r.Left() != 6*time.Minute {
		t.Errorf("%v left after it was resumed: %+v", r.Left(), r)
	}
	report("first", 100, true)
	if r := report("first", 100, false); r.Ended == 0 || r.Left() != 0 || r.Interrupted(now.Add(time.Hour)) {
		t.Errorf("it has ended: %+v", r)
	}
	now = now.Add(time.Hour)
	report("another", 1, false)
	runs, err = s.List(t.Context())
	if err != nil || len(runs) != 2 || runs[0].ID != "another" || runs[1].Failures[0].Why != "damaged" ||
		runs[0].ExpiresAt != now.Add(90*24*time.Hour).Unix() {
		t.Errorf("%+v, %v", runs, err)
	}
}

// TestManyRuns: of more runs than are listed, the newest are, whatever their ids.
func TestManyRuns(t *testing.T) {
	now, ids := time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC), 0
	s := reindex.Runs{Table: tabletest.Table(tabletest.New()), Now: func() time.Time { return now },
		NewID: func() string { ids++; return fmt.Sprint(ids) }}
	for i := range 101 {
		now = now.Add(time.Minute)
		_, err := s.Report(t.Context(), fmt.Sprintf("%03d", i), "ann", reindex.Progress{Total: 1}, true)
		if err != nil {
			t.Fatal(err)
		}
	}
	runs, err := s.List(t.Context())
	if err != nil || len(runs) != 100 || runs[0].ID != "100" || runs[99].ID != "001" {
		t.Errorf("%d, %v", len(runs), err)
	}
}
