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
	archive  string
	lease    lease.Lease
	until    time.Time
	raised   string // who asked for it last, when it began
	done     Passed
	later    map[table.Key]bool // the rows of lines whose items were put off to the next pass
	overtook int                // victims that were superseded before they had started
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
	p := &pass{Store: s, archive: archive, lease: l, until: until, later: map[table.Key]bool{}}
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
		steps = append(steps, p.startAll, p.reconcile, p.planAll, p.backfill, p.fire, p.keepAll)
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

// each calls f with the owners of the rows of one kind. It reports whether anything was done.
func (p *pass) each(ctx context.Context, q table.Query, f func(id string) error) (did bool, err error) {
	err = p.owners(ctx, q, func(r lineRow) (bool, error) {
		done, err := p.one(r, f)
		did = did || done
		return !p.over(), err
	})
	return did, err
}

// one calls f with the owner of a row. If what f needs cannot be reached, the item is put off to the next pass: it
// does not keep the others from going on.
func (p *pass) one(r lineRow, f func(id string) error) (did bool, err error) {
	if p.later[r.Key()] {
		return false, nil
	}
	err = f(r.Owner)
	if fault.Is(err, fault.Unavailable) {
		p.warn("the revision queue could not go on with an instance; it is tried again", "instance", r.Owner,
			"error", err)
		p.later[r.Key()] = true
		return false, nil
	}
	return err == nil, err
}

// cancelLater reports whether an instance that supersedes others was put off. They could still start: so nothing does.
func (p *pass) cancelLater() bool {
	for k := range p.later {
		if strings.HasPrefix(k.SK, toCancel+"#") {
			return true
		}
	}
	return false
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
// not end. A victim that it has ended is: others wait for that.
func (p *pass) cancelAll(ctx context.Context, _ *archiveRow) (did bool, err error) {
	ended := p.overtook
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
	return did || p.overtook > ended, err
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
	return p.keepArchive(ctx, a)
}

// keepArchive writes the archive as a step has changed it. If somebody else has changed it since it was read, nothing
// is written: a is then as it is now, and the next round does the step again, if it is still to be done.
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

// startAll starts what is ready, in order, as far as the archive may run more at once.
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
	return p.keepArchive(ctx, a)
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
		return true, p.keepArchive(ctx, a)
	}
	return p.planOne(ctx, a, r, true)
}

// rest writes when the archive is to be looked at next, unless somebody has asked for a pass meanwhile, or another
// pass has begun.
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
	p.lease.Guard(tx) // another pass that began since has seen more
	err = tx.Commit(ctx)
	if fault.Is(err, fault.Stale) {
		return nil // somebody has, or another pass is at work: the row stays as it is
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
	if p.Kept != nil {
		err = first(toKeep)
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
