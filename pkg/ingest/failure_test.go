package ingest

import (
	"testing"
	"time"
)

// TestFailure: the message of a failed job depends on whether its version is stored, not on
// the words of its reason.
func TestFailure(t *testing.T) {
	now := time.UnixMilli(1_000_000)
	for _, c := range []struct {
		name    string
		version int // when the job fails
		reason  string
		later   int // the version that turns out to be stored
		want    string
	}{
		{name: "nothing is stored", reason: "404. Correct the URL", want: "404. Correct the URL"},
		{name: "stored before", version: 2, reason: "no answer.",
			want: "preserved as ark:/1/x v2; no answer. Do not submit again: requeue the job"},
		{name: "stored, as it turns out", reason: "no answer", later: 2,
			want: "preserved as ark:/1/x v2; no answer. Do not submit again: requeue the job"},
		{name: "known twice", version: 2, reason: "no answer", later: 2,
			want: "preserved as ark:/1/x v2; no answer. Do not submit again: requeue the job"},
		{name: "an unlucky wording", version: 2, reason: "preserved as is",
			want: "preserved as ark:/1/x v2; preserved as is. Do not submit again: requeue the job"},
	} {
		j := rules.Failed(Job{Primary: "ark:/1/x", State: Recording, ObjectVersion: c.version}, c.reason, true, now)
		if c.later > 0 {
			j = rules.Preserved(j, c.later)
		}
		if j.Message != c.want {
			t.Errorf("%s: %q; expected %q", c.name, j.Message, c.want)
		}
	}
}

// TestEarlierFailure: a job that an earlier release failed keeps its message.
func TestEarlierFailure(t *testing.T) {
	const says = "preserved as ark:/1/x v1, but not recorded: the id is that of another object"
	j := Job{Primary: "ark:/1/x", State: Failed, ObjectVersion: 1, Message: says}
	j = rules.Preserved(j, 1)
	if j.Message != says {
		t.Errorf("it says %q", j.Message)
	}
}

// TestProgressClearsTheFailure: a try that made progress clears the message of an earlier
// failed try.
func TestProgressClearsTheFailure(t *testing.T) {
	j := Job{State: Downloading, Message: "no answer", Work: Work{Tries: 3}}
	j = rules.Next(j, Result{Outcome: StepContinue}, time.UnixMilli(0))
	if j.Message != "" || j.Tries != 0 {
		t.Errorf("after progress: try %d, %q", j.Tries, j.Message)
	}
}
