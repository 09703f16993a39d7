package revision

import (
	"context"
	"strings"
	"time"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/lease"
	"archivist/pkg/kernel/passes"
	"archivist/pkg/kernel/table"
)

// Passed says what a pass did: numbers for the log, and what is left.
type Passed struct {
	Planned int // revisions
	Settled int // instances for whose end others waited
	Started int // instances

	// Instances whose time had come.
	Due int

	passes.Left
}

// pass is one pass in one archive, under its lease. What it writes is guarded by the lease's fence;
// what it reads can be changed by others at any time, except what only passes write: plans and the
// states before a start.
type pass struct {
	*Store
	archive string
	lease   lease.Lease

	// When it ends: it begins nothing more after that, so that the function has time to end.
	until time.Time

	// Who asked for it last, when it began: see wakeRow.
	raised string
	done   Passed

	// The rows of lines whose items were put off to the next pass, since what they need could not
	// be reached.
	later map[table.Key]bool

	// Instances that were superseded before they had started: more may be possible by that.
	overtook int
}

// guard lets a change be made by the pass: only as long as it has its lease.
func (p *pass) guard() guard { return guard{fence: &p.lease} }

// over reports whether the time of the pass is over. Once it is, the pass says that there is more
// to do: each loop asks before its next item, so what is left is not known.
func (p *pass) over() bool {
	p.done.More = p.done.More || !p.Now().Before(p.until)
	return p.done.More
}

// each calls f with the owners of the rows of one kind, in their order, until the time is over. It
// reports whether anything was done. An error that is no Unavailable ends it: see one.
func (p *pass) each(ctx context.Context, q table.Query,
	f func(id string) error) (did bool, err error) {
	err = p.owners(ctx, q, func(r lineRow) (bool, error) {
		done, err := p.one(r, f)
		did = did || done
		return !p.over(), err
	})
	return did, err
}

// one calls f with the owner of a row. If what f needs cannot be reached (an Unavailable), the item
// is put off to the next pass, which comes within a minute: it does not keep the others from going
// on. All other errors are of the pass.
func (p *pass) one(r lineRow, f func(id string) error) (did bool, err error) {
	if p.later[r.Key()] {
		return false, nil
	}

	err = f(r.Owner)
	if fault.Is(err, fault.Unavailable) {
		p.warn("the revision queue could not go on with an instance; it is tried again", "instance",
			r.Owner,
			"error", err)
		p.later[r.Key()] = true
		return false, nil
	}
	return err == nil, err
}

// cancelLater reports whether an instance that supersedes others was put off. They could still
// start: so nothing does.
func (p *pass) cancelLater() bool {
	for k := range p.later {
		if strings.HasPrefix(k.SK, toCancel+"#") {
			return true
		}
	}
	return false
}

// keepArchive writes the archive as a step has changed it, without an event. If somebody else has
// changed it since it was read, nothing is written: a is then as it is now, and the next round does
// the step again, if it is still to be done.
func (p *pass) keepArchive(ctx context.Context, a *archiveRow) error {
	tx := p.Table.Begin(p.NewID())
	err := saveArchive(tx, a)
	if err != nil {
		return err
	}

	p.lease.Guard(tx)
	err = tx.Commit(ctx)
	if !fault.Is(err, fault.Stale) || p.lease.Lost(err) {
		return err
	}

	fresh, err := p.archiveRow(ctx, p.archive)
	*a = *fresh
	return err
}
