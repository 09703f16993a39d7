package revision

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"archivist/pkg/definition"
	"archivist/pkg/fault"
	"archivist/pkg/lease"
	"archivist/pkg/table"
)

// Passed says what a pass did.
type Passed struct {
	Planned int  // revisions
	Settled int  // instances for whose end others waited
	Started int  // instances
	Due     int  // instances whose time had come
	More    bool // there is more to do; the time is over
	Busy    bool // another pass is at this archive
}

// pass is one pass in one archive, under its lease.
type pass struct {
	*Store
	archive string
	lease   lease.Lease
	until   time.Time
	raised  string // who asked for it last, when it began
	done    Passed
	later   map[string]bool // what could not be done in this pass
}

// planAtOnce is how many revisions are planned before what is ready is started.
const planAtOnce = 10

// Pass does what is to be done in an archive: it lets those go on that waited for what has ended, supersedes, plans
// and starts, and repairs what was lost. One pass at a time works on an archive. It starts nothing after until.
func (s *Store) Pass(ctx context.Context, archive string, until time.Time) (Passed, error) {
	l, err := s.Leases.Acquire(ctx, "archive-"+archive, s.Times.Pass)
	if fault.Is(err, fault.Held) {
		return Passed{Busy: true}, nil
	}
	if err != nil {
		return Passed{}, err
	}
	p := &pass{Store: s, archive: archive, lease: l, until: until, later: map[string]bool{}}
	err = p.run(ctx)
	released := s.Leases.Release(ctx, l) // also after an error: the next pass need not wait
	return p.done, cmp.Or(err, released)
}

func (p *pass) guard() guard { return guard{fence: &p.lease} }

func (p *pass) over() bool {
	p.done.More = p.done.More || !p.Now().Before(p.until)
	return p.done.More
}

func (p *pass) run(ctx context.Context) error {
	var w wakeRow
	err := p.Table.Get(ctx, wakeKey(p.archive), &w)
	if fault.Is(err, fault.NotFound) {
		return nil // it is not known yet
	}
	p.raised = w.Raised
	for err == nil && !p.over() {
		var did bool
		did, err = p.round(ctx)
		if err == nil && !did {
			break
		}
	}
	if err != nil || p.done.More {
		return err
	}
	return p.rest(ctx)
}

// round does once what there is to do, and reports whether that was anything. Those that supersede come before those
// that start: so nothing starts that is superseded already.
func (p *pass) round(ctx context.Context) (did bool, err error) {
	a, err := p.archiveRow(ctx, p.archive)
	if err != nil || a.Rev == 0 || a.Archive.Mode == Deleted {
		return false, err
	}
	steps := []func(context.Context, *archiveRow) (bool, error){p.endDue, p.settleAll, p.filterAll, p.cancelAll,
		p.clearAll}
	if a.Archive.Mode == Active {
		steps = append(steps, p.startAll, p.reconcile, p.planAll, p.backfill, p.fire)
	}
	for _, step := range steps {
		d, err := step(ctx, a)
		did = did || d
		if err != nil || p.over() {
			return did, err
		}
	}
	return did, nil
}

// each calls f with the owners of the rows of one kind. It reports whether there was one.
func (p *pass) each(ctx context.Context, q table.Query, f func(id string) error) (did bool, err error) {
	err = p.owners(ctx, q, func(r lineRow) (bool, error) {
		if p.later[r.SK] {
			return !p.over(), nil
		}
		err := f(r.Owner)
		if fault.Is(err, fault.Unavailable) { // what it needs cannot be reached: the next pass tries again
			p.warn("the revision queue could not go on with an instance; it is tried again", "instance", r.Owner,
				"error", err)
			p.later[r.SK] = true
			return !p.over(), nil
		}
		did = true
		return !p.over(), err
	})
	return did, err
}

func (p *pass) endDue(ctx context.Context, _ *archiveRow) (bool, error) {
	q := table.Query{PK: linePK(p.archive), From: dueSK + "#", To: dueSK + "#" + text(p.now()) + last}
	return p.each(ctx, q, func(id string) error {
		p.done.Due++
		return p.due(ctx, id)
	})
}

func (p *pass) settleAll(ctx context.Context, _ *archiveRow) (bool, error) {
	return p.each(ctx, kind(p.archive, toSettle), func(id string) error {
		p.done.Settled++
		return p.settle(ctx, id)
	})
}

func (p *pass) filterAll(ctx context.Context, _ *archiveRow) (bool, error) {
	return p.each(ctx, kind(p.archive, toFilter), func(id string) error { return p.filter(ctx, id) })
}

// cancelAll goes through those that supersede others. One that still waits is not something done: else the pass would
// not end.
func (p *pass) cancelAll(ctx context.Context, _ *archiveRow) (did bool, err error) {
	_, err = p.each(ctx, kind(p.archive, toCancel), func(id string) error {
		before, err := p.instanceRow(ctx, id)
		if err == nil {
			err = p.cancel(ctx, id)
		}
		if err != nil {
			return err
		}
		after, err := p.instanceRow(ctx, id)
		did = did || after.Rev != before.Rev
		return err
	})
	return did, err
}

// clearAll cancels what has not ended in epochs before, or in all if the archive is deleted.
func (p *pass) clearAll(ctx context.Context, a *archiveRow) (bool, error) {
	upTo := a.Epoch
	if a.Archive.Mode != Deleting {
		upTo--
	}
	left, did := 0, false
	for epoch := a.Cleared + 1; epoch <= upTo && !p.over(); epoch++ {
		ended, n, err := p.clear(ctx, ref(a.Name, epoch))
		if err != nil {
			return false, err
		}
		left, did = left+n, did || ended > 0
	}
	if left > 0 || a.Cleared >= upTo || p.done.More {
		return did, nil
	}
	ended, err := p.first(ctx, kind(a.Name, toSettle))
	if err != nil || ended != "" {
		return did, err // the next round settles it
	}
	return true, p.cleared(ctx, a, upTo)
}

// cleared keeps that all has ended up to an epoch.
func (p *pass) cleared(ctx context.Context, a *archiveRow, upTo int64) error {
	a.Cleared = upTo
	if a.Archive.Mode == Deleting {
		a.Archive.Mode = Deleted
	}
	tx := p.Table.Begin(p.NewID())
	err := saveArchive(tx, a)
	if err != nil {
		return err
	}
	p.lease.Guard(tx)
	return tx.Commit(ctx)
}

// startAll starts what is ready, in order, as far as the archive may run more at once.
func (p *pass) startAll(ctx context.Context, a *archiveRow) (did bool, err error) {
	most := cmp.Or(a.Running, MaxRunning)
	busy := 0
	err = p.owners(ctx, kind(p.archive, running), func(lineRow) (bool, error) {
		busy++
		return busy < most, nil
	})
	if err != nil || busy >= most {
		return false, err
	}
	_, err = p.each(ctx, kind(p.archive, toStart), func(id string) error {
		if busy >= most {
			return nil
		}
		started, err := p.start(ctx, id)
		if started {
			busy++
			p.done.Started++
		}
		did = did || err == nil
		return err
	})
	return did, err
}

// planAll plans revisions in their order, as long as the next one was notified.
func (p *pass) planAll(ctx context.Context, a *archiveRow) (did bool, err error) {
	for range planAtOnce {
		if a.First == 0 || a.Archive.Mode != Active || p.over() || p.troubled(a, a.Watermark+1) {
			return did, nil
		}
		r, err := p.revisionRow(ctx, a.Ref(), a.Watermark+1)
		if err != nil || r.Rev == 0 {
			return did, err
		}
		planned, err := p.planOne(ctx, a, r, false)
		if err != nil || !planned {
			return did, err
		}
		did = true
	}
	return did, nil
}

// planOne plans a revision. A revision that cannot be read is the archive's trouble, and not an error: the rest goes
// on.
func (p *pass) planOne(ctx context.Context, a *archiveRow, r *revisionRow, fill bool) (bool, error) {
	err := p.plan(ctx, a, r, fill)
	if err == nil {
		p.done.Planned++
		return true, nil
	}
	if fault.Is(err, fault.Stale) || p.lease.Lost(err) || ctx.Err() != nil {
		return false, err
	}
	if fault.Is(err, fault.Conflict) {
		return false, nil // the archive was stopped
	}
	var known *fault.Error
	if !errors.As(err, &known) {
		return false, err // a defect: the function fails, and is seen
	}
	return false, p.trouble(ctx, a, r.Revision.Number, err)
}

// troubled reports whether a revision could not be read, and is not yet tried again.
func (p *pass) troubled(a *archiveRow, n int64) bool {
	return a.Trouble != nil && a.Trouble.Revision == n && p.now() < a.Trouble.Next
}

// trouble keeps why the next revision cannot be planned, and when it is tried again.
func (p *pass) trouble(ctx context.Context, a *archiveRow, n int64, why error) error {
	t := &Trouble{Revision: n, Since: p.now()}
	if a.Trouble != nil && a.Trouble.Revision == n {
		*t = *a.Trouble
	}
	t.Tries++
	t.Reason = definition.Clip(why.Error(), keptText)
	wait := min(time.Minute<<min(t.Tries-1, 6), time.Hour)
	t.Next = p.now() + wait.Milliseconds()
	a.Trouble = t
	p.count(MetricUnreadable, 1)
	p.warn("a revision could not be read; it is tried again", "archive", a.Name, "revision", n, "error", why)
	tx := p.Table.Begin(p.NewID())
	err := saveArchive(tx, a)
	if err != nil {
		return err
	}
	p.lease.Guard(tx)
	return tx.Commit(ctx)
}

// backfill plans the next revision of a back-fill.
func (p *pass) backfill(ctx context.Context, a *archiveRow) (bool, error) {
	b := a.Backfill
	if b == nil || p.troubled(a, b.Next) {
		return false, nil
	}
	r, err := p.revisionRow(ctx, a.Ref(), b.Next)
	if err != nil {
		return false, err
	}
	if r.Rev == 0 {
		r.State, r.Notified = Before, p.now()
		return true, p.insertRevision(ctx, p.Table.Begin(p.NewID()), r, By{})
	}
	if r.Planned > 0 {
		a.Backfill = b.after(b.Next, nil)
		tx := p.Table.Begin(p.NewID())
		err = saveArchive(tx, a)
		if err == nil {
			p.lease.Guard(tx)
			err = tx.Commit(ctx)
		}
		return true, err
	}
	return p.planOne(ctx, a, r, true)
}

// rest writes when the archive is to be looked at next, unless somebody has asked for a pass meanwhile.
func (p *pass) rest(ctx context.Context) error {
	a, err := p.archiveRow(ctx, p.archive)
	if err != nil {
		return err
	}
	next, err := p.next(ctx, a)
	if err != nil {
		return err
	}
	tx := p.Table.Begin(p.NewID())
	set := map[string]any{"raised_by": tx.ID(), "place": archivePlace, "ranking": text(next) + "#" + p.archive}
	var remove []string
	if next == 0 {
		delete(set, "place")
		delete(set, "ranking")
		remove = []string{"place", "ranking"}
	}
	tx.AmendIf(wakeKey(p.archive), "raised_by = ?", []any{p.raised}, set, remove...)
	err = tx.Commit(ctx)
	if fault.Is(err, fault.Stale) {
		return nil // somebody has: the row stays as it is
	}
	return err
}

// next is when the archive is to be looked at next, 0 for not at all.
func (p *pass) next(ctx context.Context, a *archiveRow) (next int64, err error) {
	soonest := func(t int64) {
		if t > 0 && (next == 0 || t < next) {
			next = t
		}
	}
	q := kind(p.archive, dueSK)
	q.Limit = 1
	err = p.owners(ctx, q, func(r lineRow) (bool, error) {
		part := strings.SplitN(r.SK, "#", 3)
		soonest(parse(part[1]))
		return false, nil
	})
	if len(p.later) > 0 {
		soonest(p.now() + time.Minute.Milliseconds())
	}
	if a.Archive.Mode != Active || err != nil {
		return next, err
	}
	gap, err := p.gap(ctx, a)
	soonest(a.look(p.Times, gap))
	if a.Trouble != nil {
		soonest(a.Trouble.Next)
	}
	for _, s := range a.Schedules {
		soonest(s.Next)
	}
	return next, err
}

// Waiting lists archives that are to be looked at, those that wait longest first.
func (s *Store) Waiting(ctx context.Context, most int) (archives []string, err error) {
	var rows []wakeRow
	_, err = s.Table.Page(ctx, table.Query{Index: "work", PK: archivePlace, From: "0", To: text(s.now()) + last,
		Limit: most}, &rows)
	for _, r := range rows {
		_, name, _ := strings.Cut(r.WorkSK, "#")
		archives = append(archives, name)
	}
	return archives, err
}
