package revision

import (
	"context"
	"strconv"
	"time"

	"archivist/pkg/fault"
	"archivist/pkg/table"
)

func parse(ms string) int64 {
	n, _ := strconv.ParseInt(ms, 10, 64)
	return n
}

// look is when the head of the archive is looked at next, 0 for never.
func (a *archiveRow) look(t Times) int64 {
	if a.Settings.Reconcile < 0 {
		return 0
	}
	if a.Look > 0 {
		return a.Look
	}
	return a.Created + a.every(t)
}

// every is the time between two looks, in milliseconds.
func (a *archiveRow) every(t Times) int64 {
	if a.Settings.Reconcile > 0 {
		return a.Settings.Reconcile
	}
	return t.Reconcile.Milliseconds()
}

// reconcile asks the archive itself for revisions that nobody has notified: those of a gap after a while, and those
// behind the last notice from time to time.
func (p *pass) reconcile(ctx context.Context, a *archiveRow) (bool, error) {
	gap, err := p.gap(ctx, a)
	if err != nil {
		return false, err
	}
	look := a.look(p.Times)
	due := look > 0 && look <= p.now()
	waits := gap > 0 && gap+p.Times.Gap.Milliseconds() <= p.now()
	if gap > 0 && !waits && (look == 0 || look > gap+p.Times.Gap.Milliseconds()) {
		return false, p.lookAt(ctx, a, gap+p.Times.Gap.Milliseconds(), a.Newest)
	}
	if !due || a.First == 0 && gap == 0 && a.Baseline == 0 && look == 0 {
		return false, nil
	}
	return p.catchUp(ctx, a)
}

// gap is since when a revision waits for one that was not notified, 0 if none does.
func (p *pass) gap(ctx context.Context, a *archiveRow) (since int64, err error) {
	if a.First == 0 {
		return 0, nil
	}
	next, err := p.revisionRow(ctx, a.Ref(), a.Watermark+1)
	if err != nil || next.Rev > 0 {
		return 0, err
	}
	q := table.Query{PK: linePK(a.Name), Prefix: toPlan + "#" + a.Ref() + "#", Limit: 1}
	err = p.owners(ctx, q, func(r lineRow) (bool, error) {
		waiting, err := p.revisionRow(ctx, a.Ref(), parse(r.SK[len(toPlan+"#"+a.Ref()+"#"):]))
		since = waiting.Notified
		return false, err
	})
	return since, err
}

// catchUp looks at the head of the archive, and notifies what it lacks.
func (p *pass) catchUp(ctx context.Context, a *archiveRow) (bool, error) {
	src, err := p.Open(ctx, a.Location)
	var head int64
	if err == nil {
		head, err = src.Head(ctx)
	}
	if err != nil {
		p.warn("the head of an archive could not be read; it is looked at again", "archive", a.Name, "error", err)
		p.count(MetricUnreadable, 1)
		return false, p.lookAt(ctx, a, p.now()+time.Minute.Milliseconds()*5, a.Newest)
	}
	did := false
	if a.First == 0 && head > 0 { // nobody has notified anything yet: it begins at its head
		_, err = p.Notify(ctx, a.Name, Notice{Revision: head}, By{Actor: manager})
		return true, err
	}
	to := min(head, a.Watermark+reconcileMost)
	for n := a.Watermark + 1; n <= to && a.First > 0 && !p.over(); n++ {
		r, err := p.revisionRow(ctx, a.Ref(), n)
		if err != nil {
			return did, err
		}
		if r.Rev > 0 {
			continue
		}
		_, err = p.Notify(ctx, a.Name, Notice{Revision: n}, By{Actor: manager})
		if err != nil && !fault.Is(err, fault.Conflict) {
			return did, err
		}
		did = true
	}
	next := p.now() + a.every(p.Times)
	if to < head {
		next = p.now() + p.Times.Gap.Milliseconds()
	}
	return did, p.lookAt(ctx, a, next, head)
}

// lookAt keeps when the head is looked at next.
func (p *pass) lookAt(ctx context.Context, a *archiveRow, next, head int64) error {
	if a.Look == next && a.Newest == head {
		return nil
	}
	a.Look, a.Newest = next, head
	tx := p.Table.Begin(p.NewID())
	err := saveArchive(tx, a)
	if err != nil {
		return err
	}
	p.lease.Guard(tx)
	return tx.Commit(ctx)
}
