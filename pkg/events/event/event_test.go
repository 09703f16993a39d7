package event_test

import (
	"strings"
	"testing"

	"archivist/pkg/events/event"
	"archivist/pkg/kernel/table/tabletest"
)

// TestPartitions: the events of every type of subject are in the partition of its row, and
// no two types share a partition.
func TestPartitions(t *testing.T) {
	seen := map[string]event.Type{}
	for _, kind := range event.Types {
		s := event.Subject{Type: kind, ID: "SLOT"}
		if pk := event.Key(s, 7).PK; pk != s.Key().PK || !strings.HasSuffix(pk, "#SLOT") || pk == "#SLOT" {
			t.Errorf("events of a %s are in %q, its row is in %q", kind, pk, s.Key().PK)
		}
		if back, err := event.SubjectAt(s.Key().PK); err != nil || back != s {
			t.Errorf("%q is of %+v, %v", s.Key().PK, back, err)
		}
		if other, twice := seen[s.Key().PK]; twice {
			t.Errorf("%s and %s share the partition %q", kind, other, s.Key().PK)
		}
		seen[s.Key().PK] = kind
	}
}

// TestNoSubject: partitions of other rows are of no subject.
func TestNoSubject(t *testing.T) {
	for _, pk := range []string{"", "#x", "JOB#", "JOB", "SLOT", "job#x", "LOG#site"} {
		if s, err := event.SubjectAt(pk); err == nil {
			t.Errorf("%q is of %+v", pk, s)
		}
	}
}

// TestUnknownSubject: a subject without a type or an id is refused before anything
// is written or read.
func TestUnknownSubject(t *testing.T) {
	tb := tabletest.Open(t)
	for _, s := range []event.Subject{{}, {ID: "SLOT"}, {Type: event.Job}} {
		if err := event.Append(tb.Begin("tx"), s, 1, event.New{Type: "x"}); err == nil {
			t.Errorf("an event of %+v was accepted", s)
		}
		if _, _, err := event.Page(t.Context(), tb, s, ""); err == nil {
			t.Errorf("events of %+v were listed", s)
		}
	}
}
