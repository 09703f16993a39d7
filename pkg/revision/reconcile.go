package revision

import (
	"cmp"
	"context"
	"strconv"

	"archivist/pkg/archive"
	"archivist/pkg/fault"
	"archivist/pkg/table"
)

func parse(ms string) int64 {
	n, _ := strconv.ParseInt(ms, 10, 64)
	return n
}

// look is when the head of the archive is looked at next, 0 for never. gap is since when a revision waits for one
// that was not notified, 0 if none does.
func (a *archiveRow) look(t Times, gap int64) int64 {
	every := cmp.Or(a.Settings.Reconcile, t.Reconcile.Milliseconds())
	soon := gap + t.Gap.Milliseconds()
	switch {
	case a.Missed > 0: // what the look was for has not come about: without a notice nobody else would see it
		return a.Looked + min(t.Gap<<min(a.Missed-1, 10), t.Reconcile).Milliseconds()
	case a.Looked == 0 && a.Location.Kind == archive.Object:
		return a.Created // versions that were stored before the archive was registered are notified by nobody else
	case gap > 0 && a.Looked < soon:
		return soon
	case every < 0:
		return 0
	}
	return max(a.Looked, a.Created) + every
}

// reconcile asks the archive itself for revisions that nobody has notified: those of a gap after a while, and those
// behind the last notice from time to time.
func (p *pass) reconcile(ctx context.Context, a *archiveRow) (bool, error) {
	gap, err := p.gap(ctx, a)
	if err != nil {
		return false, err
	}
	look := a.look(p.Times, gap)
	if look == 0 || look > p.now() {
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
	q := table.Query{PK: linePK(a.Name), From: planKey(a.Ref(), a.Watermark+1).SK, To: planKey(a.Ref(), MaxRevision).SK,
		Limit: 1}
	err = p.owners(ctx, q, func(r lineRow) (bool, error) {
		waiting, err := p.revisionRow(ctx, a.Ref(), parse(r.SK[len(toPlan+"#"+a.Ref()+"#"):]))
		since = waiting.Notified
		return false, err
	})
	return since, err
}

// catchUp looks at the head of the archive, and notifies what it lacks. An archive that cannot be read is looked at
// again after a minute, and then less and less often.
func (p *pass) catchUp(ctx context.Context, a *archiveRow) (did bool, err error) {
	head, err := p.headOf(ctx, a)
	if err != nil {
		p.warn("the head of an archive could not be read", "archive", a.Name, "error", err)
		p.count(MetricUnreadable, 1)
		a.Missed++
		return false, p.looked(ctx, a, a.Newest)
	}
	from := a.Watermark + 1
	if a.First == 0 {
		from = head // nobody has notified anything yet: it begins at its head
	}
	for n := max(from, 1); n <= min(head, from+reconcileMost) && !p.over(); n++ {
		r, err := p.revisionRow(ctx, a.Ref(), n)
		if err == nil && r.Rev == 0 {
			_, err = p.Notify(ctx, a.Name, Notice{Revision: n}, By{Actor: manager})
			did = true
		}
		if fault.Is(err, fault.Conflict) {
			return did, nil // it is being deleted; the next round sees that
		}
		if err != nil {
			return did, err
		}
	}
	if did {
		return true, nil // the row has changed, perhaps; and perhaps that was not all
	}
	a.Missed = 0
	return false, p.looked(ctx, a, head)
}

// headOf is the head of an archive.
func (p *pass) headOf(ctx context.Context, a *archiveRow) (int64, error) {
	src, err := p.Open(ctx, a.Location)
	if err != nil {
		return 0, err
	}
	return src.Head(ctx)
}

// looked keeps that the head was looked at.
func (p *pass) looked(ctx context.Context, a *archiveRow, head int64) error {
	a.Looked, a.Newest = p.now(), head
	return p.keepArchive(ctx, a)
}
