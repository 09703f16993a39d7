package inprocess

import (
	"slices"
	"strings"
	"sync"

	"archivist/pkg/kernel/table/tabletest"
)

// Point is a call of AWS at which a function's process ends, as if its machine failed. Calls
// that the process makes by any of its AWS clients count, also those of goroutines.
type Point struct {
	Function  string
	Operation string // its name in the SDK, e.g. "PutObject"; "" = any that changes something
	Call      int    // the nth such call of the function, over all of its processes; 0 = each
	After     bool   // the call has its effect, but its answer is lost
}

// points are those that were not met yet, and what is counted.
type points struct {
	mu     sync.Mutex
	all    []*point
	counts []*counter
}

// point: calls are those that fit, met those at which a process has ended.
type point struct {
	Point
	calls, met int
}

// counter has the calls of the table that a function has made.
type counter struct {
	function string
	used     TableUse
}

// reads are what names of operations begin with that change nothing. A read has no effect, so
// it makes no difference whether a process ends before or after it.
var reads = []string{"Get", "Head", "List", "Query", "Scan", "BatchGet", "Describe", "Receive"}

func (p Point) is(operation string) bool {
	if p.Operation != "" {
		return p.Operation == operation
	}
	return !slices.ContainsFunc(reads,
		func(name string) bool { return strings.HasPrefix(operation, name) })
}

// meet reports whether a process ends before or after a call. It counts the call at each
// point that it fits. Calls from outside of all functions meet none.
func (a *points) meet(p *process, operation string) (before, after bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, x := range a.all {
		if p == nil || x.Function != p.function || !x.is(operation) {
			continue
		}
		x.calls++
		if x.Call == 0 || x.Call == x.calls {
			x.met++
			before, after = before || !x.After, after || x.After
		}
	}
	return before, after
}

// answered counts a call, if it is of the table. out is nil if it failed.
func (a *points) answered(p *process, operation string, in, out any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, x := range a.counts {
		if p == nil || x.function != p.function || !slices.Contains(ofTable, operation) {
			continue
		}
		x.used.Calls++
		x.used.Units += tabletest.ReadUnits(in, out)
		x.used.Kinds[tabletest.Kind(operation, in)]++
	}
}
