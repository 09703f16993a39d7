package revision

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"archivist/pkg/kernel/definition"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/lease"
	"archivist/pkg/kernel/passes"
	"archivist/pkg/kernel/table"
)

// planAtOnce is how many revisions are planned before what is ready is started: an archive with
// thousands of revisions to be planned runs the first ones meanwhile.
const planAtOnce = 10

// Pass does what is to be done in an archive: it lets those go on that waited for what has ended,
// supersedes, plans and starts, and repairs what was lost. One pass at a time works on an archive;
// another one is Busy. It starts nothing after until. An archive that does not exist has nothing to
// do.
//
// It may die at any point: each step is one transaction, after which what is left to do is in
// lines, and the next pass goes on from there. An error means that a step failed in a way that is
// not known to pass: the function fails, and the schedule makes another pass.
func (s *Store) Pass(ctx context.Context, archive string, until time.Time) (Passed, error) {
	p := &pass{Store: s, archive: archive, until: until, later: map[table.Key]bool{}}
	busy, err := passes.Under(ctx, s.Leases, "archive-"+archive, s.Times.Pass, func(l lease.Lease) error {
		p.lease = l
		return p.run(ctx)
	})
	p.done.Busy = busy
	return p.done, err
}

// run makes rounds until one has nothing to do, or the time is over; then it writes when the
// archive is to be looked at next. Who asked for the pass is read first: what is asked for after
// that may not be seen.
func (p *pass) run(ctx context.Context) error {
	var w wakeRow
	err := p.Table.Get(ctx, wakeKey(p.archive), &w)
	if fault.Is(err, fault.NotFound) {
		return nil // it is not known yet
	}

	if err != nil {
		return err
	}

	p.raised = w.Raised
	for !p.over() {
		did, err := p.round(ctx)
		if err != nil {
			return err
		}
		if !did {
			break
		}
	}

	if p.done.More {
		return nil
	}
	return p.rest(ctx)
}

// round does once what there is to do, and reports whether that was anything. Those that supersede
// come before those that start: so nothing starts that is superseded already. In an archive that is
// paused, stopped or being deleted, what has ended is still settled, and what was told to end is
// ended.
func (p *pass) round(ctx context.Context) (did bool, err error) {
	a, err := p.archiveRow(ctx, p.archive)
	if err != nil || a.Rev == 0 || a.Archive.Mode == Deleted {
		return false, err
	}

	// What ends comes first, since others wait for it; what begins is only for an active archive.
	steps := []func(context.Context, *archiveRow) (bool, error){p.endDue, p.settleAll, p.filterAll,
		p.cancelAll,
		p.clearAll}

	if a.Archive.Mode == Active {
		steps = append(steps, p.startAll, p.reconcile, p.planAll, p.backfill, p.fire, p.moveAllToBucket)
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

// endDue goes through the instances whose time has come.
func (p *pass) endDue(ctx context.Context, _ *archiveRow) (bool, error) {
	q := table.Query{
		PK:   linePK(p.archive),
		From: dueSK + "#",
		To:   dueSK + "#" + text(p.now()) + last,
	}
	return p.each(ctx, q, func(id string) error {
		p.done.Due++
		return p.due(ctx, id)
	})
}

// settleAll lets those go on that wait for what has ended.
func (p *pass) settleAll(ctx context.Context, _ *archiveRow) (bool, error) {
	return p.each(ctx, kind(p.archive, toSettle), func(id string) error {
		p.done.Settled++
		return p.settle(ctx, id)
	})
}

// filterAll asks the filters of paths of those that could go on but for that.
func (p *pass) filterAll(ctx context.Context, _ *archiveRow) (bool, error) {
	return p.each(ctx, kind(p.archive, toFilter),
		func(id string) error { return p.filter(ctx, id) })
}

// cancelAll goes through those that supersede others. One that still waits is not something done:
// else the pass would not end. One that was superseded is: others wait for that.
func (p *pass) cancelAll(ctx context.Context, _ *archiveRow) (did bool, err error) {
	ended := p.overtook
	_, err = p.each(ctx, kind(p.archive, toCancel), func(id string) error {
		before, err := p.instanceRow(ctx, id)
		if err != nil {
			return err
		}

		err = p.cancel(ctx, id)
		if err != nil {
			return err
		}

		after, err := p.instanceRow(ctx, id)
		did = did || after.Rev != before.Rev
		return err
	})
	return did || p.overtook > ended, err
}

// clearAll cancels what has not ended in epochs before, or in all if the archive is deleted. An
// epoch is cleared when nothing of it lives and all that has ended is settled; what runs was told
// to end, and is waited for.
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

	// Others may wait for what has ended and is not settled yet.
	ended, err := p.first(ctx, kind(a.Name, toSettle))
	if err != nil || ended != "" {
		return did, err // the next round settles it
	}
	return true, p.cleared(ctx, a, upTo)
}

// cleared keeps that all has ended up to an epoch. With the last of a deletion, the archive is
// deleted: its name can be registered again.
func (p *pass) cleared(ctx context.Context, a *archiveRow, upTo int64) error {
	a.Cleared = upTo
	if a.Archive.Mode == Deleting {
		a.Archive.Mode = Deleted
	}
	return p.keepArchive(ctx, a)
}

// startAll starts what is ready, in order, as far as the archive may run more at once. What is not
// let start by its lock is parked, so that it is not looked at again here.
func (p *pass) startAll(ctx context.Context, a *archiveRow) (did bool, err error) {
	if p.cancelLater() {
		return false, nil
	}

	most := cmp.Or(a.Running, MaxRunning)
	busy := 0
	err = p.owners(ctx, kind(p.archive, running), func(lineRow) (bool, error) {
		busy++
		return busy < most, nil
	})
	if err != nil || busy >= most {
		return false, err
	}

	err = p.owners(ctx, kind(p.archive, toStart), func(r lineRow) (bool, error) {
		done, err := p.one(r, func(id string) error {
			started, err := p.start(ctx, id)
			if started {
				busy++
				p.done.Started++
			}
			return err
		})
		did = did || done
		return busy < most && !p.over(), err
	})
	return did, err
}

// planAll plans revisions in their order, as long as the next one was notified and can be read: the
// requirement asks for strict revision order.
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

// planOne plans a revision, and reports whether it did. A revision that cannot be read is the
// archive's trouble, and not an error: the rest goes on. A revision that is another now stops the
// archive, which is not an error, either. An error without a kind is a defect, and a Stale means
// that another pass is at work.
func (p *pass) planOne(ctx context.Context, a *archiveRow, r *revisionRow,
	fill bool) (bool, error) {
	err := p.plan(ctx, a, r, fill)
	if err == nil {
		p.done.Planned++
		return true, nil
	}

	// Somebody else was first, or the time is up: the revision itself is not to blame.
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

// troubled reports whether a revision could not be read, and is not yet tried again. Another
// revision is tried: a back-fill and the next revision do not wait for each other.
func (p *pass) troubled(a *archiveRow, n int64) bool {
	return a.Trouble != nil && a.Trouble.Revision == n && p.now() < a.Trouble.Next
}

// trouble keeps why the next revision cannot be planned, and when it is tried again: after 1, 2, 4
// … minutes, and then each hour. Since and Tries are of the same revision only.
func (p *pass) trouble(ctx context.Context, a *archiveRow, n int64, why error) error {
	t := &Trouble{Revision: n, Since: p.now()}
	if a.Trouble != nil && a.Trouble.Revision == n {
		*t = *a.Trouble
	}

	t.Tries++
	t.Reason = definition.Clip(why.Error(), keptText)
	// 1, 2, 4 … 32 minutes, and then an hour.
	wait := min(time.Minute<<min(t.Tries-1, 6), time.Hour)
	t.Next = p.now() + wait.Milliseconds()
	a.Trouble = t
	p.count(MetricUnreadable, 1)
	p.warn("a revision could not be read; it is tried again", "archive", a.Name, "revision", n,
		"error", why)
	return p.keepArchive(ctx, a)
}

// backfill plans the next revision of a back-fill. One that nobody has notified is written first,
// as one that is before the first revision; one that an earlier back-fill has planned is left as it
// is. It reports whether it did anything.
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
		return true, p.keepArchive(ctx, a)
	}
	return p.planOne(ctx, a, r, true)
}

// rest writes when the archive is to be looked at next, unless somebody has asked for a pass
// meanwhile, or another pass has begun: a Stale of this commit is no error. Without a time, the row
// leaves the index, and costs nothing until somebody asks.
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
	set := map[string]any{"raised_by": tx.ID(), "place": archivePlace, "ranking": text(next) + "#" +
		p.archive}
	var remove []string
	if next == 0 {
		delete(set, "place")
		delete(set, "ranking")
		remove = []string{"place", "ranking"}
	}

	tx.AmendIf(wakeKey(p.archive), "raised_by = ?", []any{p.raised}, set, remove...)
	p.lease.Guard(tx) // another pass that began since has seen more
	err = tx.Commit(ctx)
	if fault.Is(err, fault.Stale) {
		return nil // somebody has, or another pass is at work: the row stays as it is
	}
	return err
}

// next is when the archive is to be looked at next, in milliseconds since 1970, 0 for not at all:
// at the time of the first instance that has one; in a minute if something was put off; and, if the
// archive is active, when its head is looked at, its trouble is tried again, a schedule fires, or
// something goes into the bucket.
func (p *pass) next(ctx context.Context, a *archiveRow) (next int64, err error) {
	soonest := func(t int64) {
		if t > 0 && (next == 0 || t < next) {
			next = t
		}
	}

	first := func(name string) error {
		q := kind(p.archive, name)
		q.Limit = 1
		return p.owners(ctx, q, func(r lineRow) (bool, error) {
			part := strings.SplitN(r.SK, "#", 3)
			soonest(parse(part[1]))
			return false, nil
		})
	}

	err = first(dueSK)
	if len(p.later) > 0 {
		soonest(p.now() + time.Minute.Milliseconds())
	}

	if a.Archive.Mode != Active || err != nil {
		return next, err
	}

	if p.Bucket != nil {
		err = first(toBucket)
	}

	if err != nil {
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

// Waiting lists up to most archives that are to be looked at, those that wait longest first. It
// reads the index, which may lag: an archive that it misses is there a moment later, and one too
// many costs a pass that does nothing.
func (s *Store) Waiting(ctx context.Context, most int) (archives []string, err error) {
	var rows []wakeRow
	_, err = s.Table.Page(ctx, table.Query{
		Index: "work",
		PK:    archivePlace,
		From:  "0",
		To:    text(s.now()) + last,
		Limit: most,
	}, &rows)

	for _, r := range rows {
		_, name, _ := strings.Cut(r.WorkSK, "#")
		archives = append(archives, name)
	}
	return archives, err
}
