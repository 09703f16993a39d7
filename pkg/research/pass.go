package research

import (
	"time"

	"archivist/pkg/kernel/lease"
	"archivist/pkg/kernel/passes"
)

// Passed says what a pass of the assigner did.
type Passed struct {
	Assigned int // work items
	Resent   int // work items whose message perhaps was not sent
	Ended    int // leases and deferrals whose time had passed
	Looked   int // episodes, because clips came, came back or went away
	passes.Left
}

// pass is one pass of the assigner. It holds a lease on the project: each of its
// transactions that assigns work, or moves the walk, has the fence of that lease as a condition, so
// an assigner that hung and wakes up late changes nothing. It is used by one goroutine.
type pass struct {
	*Store
	project string
	lease   lease.Lease
	until   time.Time // nothing is started from then on
	walk    *walkRow  // how far the episodes were looked at; saved at the end if it moved
	moved   bool      // the walk
	paused  bool      // the project
	recount int64     // of the project, as projectRow has it
	shrunk  int64     // of the project, as projectRow has it
	former  bool      // pairs are counted by an earlier form (walkRow.former)
	done    Passed
}

// over reports whether the time of the pass has passed. Then there may be more to do, which the
// caller of Pass learns by Passed.More.
func (p *pass) over() bool {
	p.done.More = p.done.More || !p.Now().Before(p.until)
	return p.done.More
}

// see notes what the row of the project says now; it is called whenever that row was read, because
// people pause projects and clips arrive during a pass. When the catalog has grown, the walk begins
// again. A clip that goes away or changes its place in the order makes no pair due, so it opens no
// closed episode.
func (p *pass) see(row *projectRow) {
	p.paused, p.recount, p.shrunk = row.Paused != "", row.Recount, row.Shrunk
	p.former = p.walk.former(row)
	if p.walk.Catalog < row.grown() {
		p.walk.Catalog, p.walk.After, p.moved = row.Catalog, closed+"#", true
	}
}
