package revision

import (
	"cmp"
	"context"
	"fmt"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/revisions/archive"
)

// look is when the head of the archive is looked at next, in milliseconds since 1970, 0 for never.
// gap is since when a revision waits for one that was not notified, 0 if none does. It is a pure
// function of the row, so that people are shown the same time (Status).
func (a *archiveRow) look(t Times, gap int64) int64 {
	every := cmp.Or(a.Settings.Reconcile, t.Reconcile.Milliseconds())
	soon := gap + t.Gap.Milliseconds()
	switch {
	// What the look was for has not come about: without a notice nobody else would see it.
	case a.Missed > 0:
		return a.Looked + min(t.Gap<<min(a.Missed-1, 10), t.Reconcile).Milliseconds()
	case a.Doubt > 0:
		return max(a.Created, 1) // now
	case a.Looked == 0 && a.Location.Kind == archive.Object:
		// Versions that were stored before the archive was registered are notified by nobody else.
		return a.Created
	case gap > 0 && a.Looked < soon:
		return soon
	case every < 0:
		return 0
	}
	return max(a.Looked, a.Created) + every
}

// reconcile asks the archive itself for revisions that nobody has notified: those of a gap after a
// while, and those behind the last notice from time to time. It reports whether it has notified
// any.
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

// gap is since when a revision waits for one that was not notified, in milliseconds since 1970, 0
// if none does. It is the time of the notice of the first revision behind the gap.
func (p *pass) gap(ctx context.Context, a *archiveRow) (since int64, err error) {
	if a.First == 0 {
		return 0, nil
	}

	next, err := p.revisionRow(ctx, a.Ref(), a.Watermark+1)
	if err != nil || next.Rev > 0 {
		return 0, err
	}

	q := table.Query{
		PK:    linePK(a.Name),
		From:  planKey(a.Ref(), a.Watermark+1).SK,
		To:    planKey(a.Ref(), MaxRevision).SK,
		Limit: 1,
	}

	err = p.owners(ctx, q, func(r lineRow) (bool, error) {
		waiting, err := p.revisionRow(ctx, a.Ref(), parse(r.SK[len(toPlan+"#"+a.Ref()+"#"):]))
		since = waiting.Notified
		return false, err
	})
	return since, err
}

// catchUp looks at the head of the archive, and notifies what it lacks, without saying which
// revisions these are: that is read when they are planned. An archive that cannot be read is looked
// at again after Times.Gap, and then less and less often; that is no error of the pass. An archive
// of which nothing was notified, or only revisions before a baseline that was taken back, begins at its head.
func (p *pass) catchUp(ctx context.Context, a *archiveRow) (did bool, err error) {
	src, head, err := p.headOf(ctx, a)
	if err != nil {
		return false, p.missed(ctx, a, a.Newest, err)
	}

	compared := p.newestIsSame(ctx, a, src, head)
	if compared == nil {
		compared = p.doubted(ctx, a, src, head)
	}
	if fault.Is(compared, fault.Conflict) {
		return false, nil // it was stopped; the next round sees that
	}

	began := a.First == 0 && head > 0
	if began {
		err = p.beginAt(ctx, a, head)
		if err != nil {
			return false, err
		}
	}

	from := a.Watermark + 1
	for n := from; n <= min(head, from+reconcileMost) && !p.over(); n++ {
		missing, err := p.notifyMissing(ctx, a, n)
		did = did || missing
		if isEnding(err) {
			return did, nil // the next round sees that
		}

		if err != nil {
			return did, err
		}
	}

	if did {
		return true, nil // the row has changed, perhaps; and perhaps that was not all
	}

	if compared != nil {
		return false, p.missed(ctx, a, head, compared)
	}
	a.Missed, a.Doubt = 0, 0
	return began, p.looked(ctx, a, head) // if it has begun, what was notified can be planned
}

// isEnding reports whether a notice was refused because the archive is being deleted, or was, by a pass that has
// overtaken this one.
func isEnding(err error) bool { return fault.Is(err, fault.Conflict) || fault.Is(err, fault.NotFound) }

// doubted compares the revision with the archive of which a notice has said that it is another one. If the archive does
// not have it, that is a failed look, after which it is asked again.
func (p *pass) doubted(ctx context.Context, a *archiveRow, src archive.Source, head int64) error {
	switch {
	case a.Doubt == 0:
		return nil
	case a.Doubt > head:
		return fmt.Errorf("revision %d was notified as another one, and the archive ends at %d", a.Doubt, head)
	}
	return p.sameAs(ctx, a, src, a.Ref(), a.Doubt)
}

// missed keeps that a look has not told all, so that the next one comes soon. head is the newest known one.
func (p *pass) missed(ctx context.Context, a *archiveRow, head int64, why error) error {
	p.warn("an archive could not be looked at", "archive", a.Name, "error", why)
	p.count(MetricUnreadable, 1)
	a.Missed++
	return p.looked(ctx, a, head)
}

// shrunkLooks is how many looks in a row find that the archive has fewer revisions than were planned, until that is
// believed: a copy of a repository can be behind for a while. They are about half an hour apart in all.
const shrunkLooks = 6

// newestIsSame compares the newest planned revision with the archive. If that does not have so many any more, the look
// has failed, and is made again soon; after shrunkLooks in a row the archive is stopped.
func (p *pass) newestIsSame(ctx context.Context, a *archiveRow, src archive.Source, head int64) error {
	switch {
	case a.First == 0 || a.Watermark < a.First:
		return nil
	case a.Watermark <= head:
		a.Short = 0
		return p.sameAs(ctx, a, src, a.Ref(), a.Watermark)
	}

	why := fmt.Sprintf("revision %d is planned, and the archive ends at %d now: its history was shortened", a.Watermark,
		head)
	a.Short++
	if a.Short < shrunkLooks {
		return fault.New(fault.Unavailable, "%s", why)
	}

	a.Short = 0
	return p.stop(ctx, a, why, By{})
}

// notifyMissing notifies a revision that the archive has, and reports whether nobody had.
func (p *pass) notifyMissing(ctx context.Context, a *archiveRow, n int64) (missing bool, err error) {
	r, err := p.revisionRow(ctx, a.Ref(), n)
	if err != nil || r.Rev > 0 {
		return false, err
	}
	_, err = p.Notify(ctx, a.Name, Notice{Revision: n}, By{Actor: manager})
	return true, err
}

// headOf opens an archive, and is its head, as the archive itself says.
func (p *pass) headOf(ctx context.Context, a *archiveRow) (src archive.Source, head int64, err error) {
	src, err = p.Open(ctx, a.Location)
	if err != nil {
		return nil, 0, err
	}
	head, err = src.Head(ctx)
	return src, head, err
}

// looked keeps that the head was looked at, and which it was: the one before, if it could not be
// read.
func (p *pass) looked(ctx context.Context, a *archiveRow, head int64) error {
	a.Looked, a.Newest = p.now(), head
	return p.keepArchive(ctx, a)
}
