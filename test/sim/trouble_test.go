package sim

import (
	"time"

	"archivist/pkg/kernel/table/tabletest"
	"archivist/test/adversary"
)

// troubles says which calls meet which faults.
func (w *world) troubles() {
	w.Latency, w.CutOff, w.Throttling = w.s.latency, w.s.cutOff, w.s.throttling
	w.Delays = [3]time.Duration{3 * time.Second, timing.Short + 10*time.Second, timing.Long + timing.Return}
	w.Reads = []string{"look up", "read", "GET", "ask"}
	w.Rate = func() int {
		if w.s.late && !w.check.late {
			return 2
		}
		return w.s.rate
	}
	w.Faults = func(op string) ([]adversary.Fault, bool) {
		// a clean-up is cancelled before its lease ends
		return []adversary.Fault{adversary.None, adversary.CrashBefore, adversary.CrashAfter, adversary.Throttled},
			op == "clean"
	}
	w.Hit = func(a *adversary.Actor) {
		if a.Owner.(*actor).ticks {
			w.check.tick.troubled = true // it may give up a job, and continues with the others
		}
	}
	w.Failed = func() bool { return w.check.err != nil }
}

// throttles refuses calls to the partitions that are throttled now.
func (w *world) throttles(partition string) error {
	err := w.Throttle(partition)
	if w.s.refuses == refusesRows && w.Calm && partition == "JOB#"+w.check.oldest {
		err = tabletest.Throttled()
	}
	if err != nil {
		w.check.tick.troubled = true // the running tick may give up a job, and continues with the others
	}
	return err
}
