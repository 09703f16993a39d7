package stage

import (
	"strings"
	"testing"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/notify"
)

// TestChange: each result by the earlier report, with each state of the job now.
func TestChange(t *testing.T) {
	type want struct {
		change   notify.Change
		nextStep bool
	}
	still, same, other := notify.StillFailed, want{}, true
	kept, failed := want{notify.NowPreserved, false}, want{notify.NewlyFailed, false}
	gone := want{notify.NowDeleted, false}
	// By the earlier result: unknown, preserved, recoverable, final, deleted, cancelled.
	for now, wants := range map[result][]want{
		unknown:     {same, same, same, same, same, same},
		preserved:   {kept, same, kept, kept, same, kept},
		recoverable: {failed, failed, {still, false}, {still, other}, same, failed},
		final:       {failed, failed, {still, other}, {still, false}, same, failed},
		deleted:     {gone, gone, gone, gone, same, gone},
		cancelled:   {failed, failed, {still, other}, {still, other}, same, same},
	} {
		j := &ingest.Job{Row: 1, NotRecoverable: now == final, Cancelled: now == cancelled}
		j.State = []ingest.State{ingest.Pending, ingest.Completed, ingest.Failed, ingest.Failed, ingest.Deleted,
			ingest.Failed}[now]
		for then, w := range wants {
			if result(then) == deleted && now != deleted {
				continue // a deleted job stays deleted
			}
			e := &earlier{Results: []byte{byte(then)}}
			if change, nextStep := e.change(j); change != w.change || nextStep != w.nextStep {
				t.Errorf("%d, then %d: %q, next step %v; expected %+v", then, now, change, nextStep, w)
			}
		}
	}
}

// TestReadEarlier: a report of any form is read: unknown members, jobs that the batch does not
// have, and the list "open" of before deleted jobs had a list of their own.
func TestReadEarlier(t *testing.T) {
	e := &earlier{Results: make([]byte, 8)}
	err := e.read(strings.NewReader(`{"batch": "B", "warnings": ["a"], "later": {"x": [1, {}]},
		"at": "2026-11-22T00:00:00Z",
		"failed": [{"job": "B-00001", "state": "Failed", "recoverable": true, "message": "x"},
			{"job": "B-00002", "state": "Failed"}, {"job": "B-00009", "state": "Failed"}, {"job": "?"},
			{"job": "B-00006", "state": "Failed", "recoverable": true}],
		"completed": [{"job": "B-00004", "state": "Completed", "warnings": 4, "fileDetails": [{"path": "a"}]}],
		"open": [{"job": "B-00003", "state": "Deleted"}, {"job": "B-00005", "state": "Downloading"}],
		"cancelled": [{"job": "B-00007", "state": "Failed", "recoverable": true}, {"job": "B-00008", "state": "Deleted"}],
		"counts": {"failed": 2}}`))
	want := []byte{byte(recoverable), byte(final), byte(deleted), byte(preserved), byte(unknown), byte(recoverable),
		byte(cancelled), byte(deleted)}
	if err != nil || string(e.Results) != string(want) || e.At != "2026-11-22T00:00:00Z" {
		t.Errorf("%v at %s, %v", e.Results, e.At, err)
	}
	for _, broken := range []string{"", `{"at": 4}`, `{"failed": [{"job": 4}]}`, `{"failed": [`} {
		if err := e.read(strings.NewReader(broken)); err == nil {
			t.Errorf("%s was read", broken)
		}
	}
}
