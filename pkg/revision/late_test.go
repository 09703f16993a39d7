package revision_test

import (
	"testing"
	"time"

	"archivist/pkg/fault"
	"archivist/pkg/revision"
	"archivist/pkg/table/tabletest"
)

// TestLatePass: a pass that hangs before any of its calls, until others have planned the same revision and the next
// one, ends with a Stale at most: that is no defect.
func TestLatePass(t *testing.T) {
	const both = "[{name: a, command: x}, {name: b, command: x, depends: ['PREV:a']}]"
	for hangs, overtaken := 1, true; overtaken; hangs++ {
		w := newWorld(t)
		w.archive("maps", (&repository{}).add(3, both), 1)
		w.notify("maps", 1)
		w.pass("maps")
		w.notify("maps", 2, 3)
		calls := 0
		overtaken = false
		late := *w.store
		late.Table = tabletest.Through(w.fake, func(_ string, call func() error) error {
			calls++
			if calls == hangs {
				overtaken = true
				w.now = w.now.Add(time.Hour)
				w.pass("maps")
			}
			return call()
		})
		_, err := late.Pass(t.Context(), "maps", w.now.Add(time.Minute))
		if err != nil && !fault.Is(err, fault.Stale) {
			t.Errorf("behind its call %d: %v", hangs, err)
		}
		r, err := w.store.Revision(t.Context(), "maps", 3)
		if err != nil || r.State != revision.Committed {
			t.Errorf("behind its call %d: revision 3 is %+v, %v", hangs, r, err)
		}
	}
}
