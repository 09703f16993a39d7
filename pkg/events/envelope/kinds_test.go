package envelope_test

import (
	"slices"
	"testing"

	"archivist/pkg/events/envelope"
)

// TestKinds: each type is in the table once, and what the table says of it is known.
func TestKinds(t *testing.T) {
	actions := []string{envelope.Create, envelope.Modify, envelope.ModifyMetadata, envelope.Add, envelope.Remove,
		envelope.Delete, envelope.Install, envelope.Disseminate}
	classes := []string{envelope.Permanent, envelope.Expiring, envelope.Ephemeral}
	seen := map[string]bool{}
	for _, k := range envelope.Kinds {
		if seen[k.Type] {
			t.Errorf("%s is in the table twice", k.Type)
		}
		seen[k.Type] = true
		if !slices.Contains(actions, k.Action) || k.First != "" && !slices.Contains(actions, k.First) {
			t.Errorf("%s: unknown action %q or %q", k.Type, k.Action, k.First)
		}
		if !slices.Contains(classes, k.Class) || k.Schema < 1 {
			t.Errorf("%s: unknown class %q, or schema %d", k.Type, k.Class, k.Schema)
		}
	}
}

// TestHowLongEventsStay: those of objects and of the jobs that made them stay in the table, those of batches and of
// operations do not.
func TestHowLongEventsStay(t *testing.T) {
	want := map[string]string{"Object": envelope.Permanent, "Version": envelope.Permanent, "Job": envelope.Permanent,
		"Collection": envelope.Permanent, "Batch": envelope.Expiring, "Operation": envelope.Expiring}
	seen := map[string]bool{}
	for _, k := range envelope.Kinds {
		if class, known := want[k.Subject]; known && k.Class != class {
			t.Errorf("%s is %s, expected %s", k.Type, k.Class, class)
		}
		seen[k.Subject] = true
	}
	for subject := range want {
		if !seen[subject] {
			t.Errorf("there are no events of a %s", subject)
		}
	}
}

// TestOneClass: all events of a type of subjects are kept equally long, so that a history has
// no gaps.
func TestOneClass(t *testing.T) {
	of := map[string]string{}
	for _, k := range envelope.Kinds {
		if c, known := of[k.Subject]; known && c != k.Class {
			t.Errorf("%s is %s, other events of a %s are %s", k.Type, k.Class, k.Subject, c)
		}
		of[k.Subject] = k.Class
	}
}

// TestActionOf: the first event of a job creates it, and the one that leaves it Deleted
// deletes it.
func TestActionOf(t *testing.T) {
	state, _ := envelope.KindOf("job.state")
	held, _ := envelope.KindOf("job.held")
	for _, c := range []struct {
		kind    envelope.Kind
		version int64
		state   string
		want    string
	}{
		{state, 1, "Pending", envelope.Create},
		{state, 2, "Estimating", envelope.Modify},
		{state, 9, "Deleted", envelope.Delete},
		{held, 1, "Held", envelope.Modify},
	} {
		if got := c.kind.ActionOf(c.version, c.state); got != c.want {
			t.Errorf("%s, version %d, %s: %s, expected %s", c.kind.Type, c.version, c.state, got, c.want)
		}
	}
}

// TestLog: an event is in the log of the collection among its parents.
func TestLog(t *testing.T) {
	maps := envelope.Ref{Type: "Collection", ID: "maps"}
	for _, c := range []struct {
		e    envelope.Event
		want string
	}{
		{envelope.Event{Subject: envelope.Ref{Type: "Queue", ID: "ingest"}}, envelope.Site},
		{envelope.Event{Subject: maps}, "maps"},
		{envelope.Event{Subject: envelope.Ref{Type: "Job", ID: "B-1"},
			Parents: []envelope.Ref{maps, {Type: "Batch", ID: "B"}}}, "maps"},
		{envelope.Event{Subject: envelope.Ref{Type: "Job", ID: "B-1"},
			Parents: []envelope.Ref{{Type: "Batch", ID: "B"}}}, envelope.Site},
	} {
		if got := c.e.Log(); got != c.want {
			t.Errorf("%+v: log %q, expected %q", c.e, got, c.want)
		}
	}
}
