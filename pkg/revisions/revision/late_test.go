package revision_test

import (
	"testing"
	"time"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/pkg/revisions/revision"
	"archivist/pkg/revisions/runner"
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

// TestLateSchedule: a pass that hangs while it starts a task by its schedule, until another has planned and started a
// newer revision of it, ends with a Stale at most: only the latest result is wanted, and the other pass knows of it.
func TestLateSchedule(t *testing.T) {
	const build = "[{name: b, command: x, cancels: [PREV], triggers: [commit, {schedule: {cron: '*/10 * * * *'}}]}]"
	refused := 0
	for hangs, overtaken := 1, true; overtaken; hangs++ {
		w := newWorld(t)
		w.archive("maps", (&repository{}).add(2, build), 1)
		w.notify("maps", 1)
		w.pass("maps")
		w.end("maps/1/b", runner.Succeeded)
		w.pass("maps")
		w.now = w.now.Add(15 * time.Minute)
		calls := 0
		overtaken = false
		late := *w.store
		late.Table = tabletest.Through(w.fake, func(_ string, call func() error) error {
			calls++
			if calls == hangs {
				overtaken = true
				w.now = w.now.Add(time.Hour)
				w.notify("maps", 2)
				w.pass("maps")
			}
			return call()
		})
		_, err := late.Pass(t.Context(), "maps", w.now.Add(time.Minute))
		if err != nil {
			refused++
		}
		if err != nil && !fault.Is(err, fault.Stale) {
			t.Errorf("behind its call %d: %v", hangs, err)
		}
	}
	if refused == 0 {
		t.Error("no pass was overtaken")
	}
}
