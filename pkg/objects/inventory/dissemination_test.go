package inventory_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/pkg/objects/inventory"
)

// TestDisseminated: each time that a file is given out is an event of the file, without gaps, also if
// it is given out several times at once.
func TestDisseminated(t *testing.T) {
	s := inventory.Store{Table: tabletest.Open(t)}
	o := &inventory.Object{ARK: "ark:/99999/fk4x", Collection: "maps"}
	var ids atomic.Int64
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			id := func() string { return fmt.Sprint("tx", ids.Add(1)) }
			if err := s.Disseminated(t.Context(), o, 2, "producer/a.pdf", id, 7); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	subject := event.Subject{Type: event.File, ID: "ark:/99999/fk4x/v2/producer/a.pdf"}
	rows, _, err := event.Page(t.Context(), s.Table, subject, "")
	if err != nil || len(rows) != 4 {
		t.Fatalf("%d events, %v", len(rows), err)
	}
	for i, r := range rows {
		e, err := r.Envelope()
		if err != nil || e.Version != int64(i+1) || e.Action != envelope.Disseminate || e.Log() != "maps" {
			t.Errorf("event %d: %+v, %v", i+1, e, err)
		}
	}
}
