package research

import (
	"context"
	"slices"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// episode checks the place of an episode, the leases on it, and what is researched of it. id is the
// project, a slash, and the key.
func (x *exam) episode(id string) error {
	project, key, _ := strings.Cut(id, "/")
	e, err := x.episodeRow(x.ctx, project, key)
	if err != nil || e.Rev == 0 {
		return err
	}

	p, err := x.project(project)
	if err != nil || p == nil {
		return err
	}

	// To decide writes the episode, on which the repairs of the others have a condition.
	for _, check := range []func(*episodeRow) error{x.place, x.leased, x.differing, x.decided} {
		err = check(e)
		if err != nil {
			return err
		}
	}

	n := roaring.FastOr(e.researched, e.waiting, e.differs)
	if !n.IsEmpty() && (n.Contains(0) || int64(n.Maximum()) > p.Numbers) {
		x.add(ruleNumbers, func(ctx context.Context) error { return x.forget(ctx, project, key) },
			"number %d is researched of it; the project has given %d", n.Maximum(), p.Numbers)
	}
	return nil
}

// place checks that an episode has its rows in the line, and is in order there. Whether it belongs
// to "ready" or to "closed" is not asked here (decided).
func (x *exam) place(e *episodeRow) error {
	should := ""
	if e.media.live() {
		should = ready + "#" + e.media.order()
		if class(e.Place) == closed {
			should = closed + "#" + e.media.order()
		}
	}

	if e.Further != "" && e.Further != further+"#"+e.media.order() || e.Place != should {
		x.add(rulePlace, x.deciding(e), "it is at %q of the line; its place is %q", e.Place, should)
	}

	x.away(e.Head, want{project: e.Project, episode: e.Name}, &e.media)
	return x.at(&e.Head, e.Project, e.Name, e.places())
}

// deciding is the repair that decides the place and the counts of an episode anew.
func (x *exam) deciding(e *episodeRow) func(context.Context) error {
	return func(ctx context.Context) error { return x.decide(ctx, e.Project, e.Name) }
}

// decided checks what was decided by the catalog: that a closed episode has no pair that is due,
// and how many of its pairs count. It says nothing while the assigner still looks at episodes
// because the catalog has changed.
func (x *exam) decided(e *episodeRow) error {
	w, err := x.walk(x.ctx, e.Project)
	if err != nil {
		return err
	}

	p, cat, err := x.load(x.ctx, e.Project)
	// The assigner has not begun to look at what the newest clips have changed; or the episode is
	// still of an earlier analysis, and its next change makes it one of this.
	if err != nil || w.Catalog < p.grown() || e.Generation < p.Generation {
		return ignoreStale(err)
	}

	place, waits, err := e.belongs(cat)
	if err != nil {
		return err
	}

	pairs := e.tally(cat.live)
	// The project is read again below: if a clip has changed since its catalog was read, the row is
	// right by another catalog.
	due, miscounted := w.passed(e) && e.forgotten(place, waits), w.counts(e, p) && e.Tally != pairs
	if !due && !miscounted {
		return nil
	}

	again, err := x.projectRow(x.ctx, p.Name)
	if err != nil || again.Catalog != p.Catalog {
		return err
	}

	if due {
		x.add(rulePlace, x.deciding(e), "it is closed, and has a pair that is due: its place is %q", class(place))
	}

	if miscounted {
		x.add(ruleCounts, x.deciding(e), "it counts %s; it has %s", e.Tally, pairs)
	}
	return nil
}

// forgotten reports whether a closed episode has a pair that is due, by where it belongs.
func (e *episodeRow) forgotten(place, again string) bool {
	return class(place) == ready || again != "" && e.Further == ""
}

// leased checks that the leases on an episode have not ended, and that no two share a clip. One that
// has ended is taken off; it would keep its pairs from being assigned. What contradicts a live
// lease is for a person, who revokes it.
func (x *exam) leased(e *episodeRow) error {
	all := map[uint32]string{}
	for _, h := range e.Leased {
		l, err := x.leaseRow(x.ctx, h.Lease)
		if err != nil {
			return err
		}

		clips, err := bits(h.Clips)
		if err != nil {
			return err
		}

		switch {
		// The row of one that has ended is removed after keptDays.
		case l.Ended > 0, l.Rev == 0 && h.Until <= x.now():
			x.add(ruleLeased, func(ctx context.Context) error { return x.release(ctx, e, h.Lease) },
				"the lease %s, which is on it, has ended", h.Lease)
			continue
		case l.Rev == 0:
			x.add(ruleLeased, nil, "the lease %s, which is on it, has no row", h.Lease)
		case l.Until != h.Until || l.Project != e.Project || l.Episode != e.Name:
			x.add(ruleLeased, nil, "the lease %s, which is on it until %d, is on %s/%s until %d",
				h.Lease, h.Until,
				l.Project, l.Episode, l.Until)
		}

		for it := clips.Iterator(); it.HasNext(); {
			n := it.Next()
			if other := all[n]; other != "" {
				x.add(ruleLeased, nil, "the leases %s and %s both have the clip number %d", other,
					h.Lease, n)
				break
			}
			all[n] = h.Lease
		}
	}
	return nil
}

// release removes a lease that has ended from its episode. Its pairs are due again.
func (s *Store) release(ctx context.Context, e *episodeRow, id string) error {
	return s.change(ctx, want{project: e.Project, episode: e.Name}, By{}, func(c *change) error {
		c.episode.Leased = slices.DeleteFunc(c.episode.Leased,
			func(h leasedPairs) bool { return h.Lease == id })
		return nil
	})
}

// forget removes numbers that no clip has from what is researched of an episode. The clip that gets
// such a number would not be researched.
func (s *Store) forget(ctx context.Context, project, episode string) error {
	return s.change(ctx, want{project: project, episode: episode}, By{}, func(c *change) error {
		for _, b := range []*roaring.Bitmap{c.episode.researched, c.episode.waiting, c.episode.differs} {
			b.Remove(0)
			b.RemoveRange(uint64(c.project.Numbers)+1, 1<<32)
		}
		for bit := range uint64(placesBits) {
			c.episode.found.Remove(uint32(bit * placesPart))
			c.episode.found.RemoveRange(bit*placesPart+uint64(c.project.Numbers)+1, (bit+1)*placesPart)
		}
		return nil
	})
}

// differing checks that the pairs of an episode that a person has to decide on are listed. The repair lists what is
// missing: a pair that nobody sees is never researched.
func (x *exam) differing(e *episodeRow) error {
	p, cat, err := x.load(x.ctx, e.Project)
	if err != nil || e.Generation < p.Generation {
		return ignoreStale(err)
	}

	for it := e.differs.Iterator(); it.HasNext(); {
		l, known := cat.clips.Get(it.Next())
		if !known {
			continue // another rule
		}

		k := pairKey(e.Project, e.Name, l.key())
		row := pairRow{Head: newHead(k)}
		if _, err := x.absent(k, &row); err != nil {
			return err
		}
		if row.lists(p) {
			continue
		}

		row.list(e, l.key(), p.Generation, x.now())
		x.add(ruleDiffers, x.Making(&e.Head, func(tx *table.Tx) { tx.InsertOrSave(&row) }),
			"the results of its clip %s differ, and nobody can see it", l.key())
	}
	return nil
}

// ignoreStale is nil for the error of a catalog that keeps changing, or is damaged: that is another rule.
func ignoreStale(err error) error {
	if fault.Is(err, fault.Stale) {
		return nil
	}
	return err
}

// differs checks that a pair is listed for a person only while its results differ. The list of what a person has
// decided is empty.
func (x *exam) differs(id string) error {
	var row pairRow
	err := x.Decode(&row)
	if err != nil {
		return err
	}

	project, _, _ := strings.Cut(id, "/")
	p, err := x.project(project)
	if err != nil || p == nil {
		return err
	}
	if row.ListPK != differsPK(project) {
		return x.reviews(p, &row)
	}

	e, err := x.episodeRow(x.ctx, project, row.Episode)
	if err != nil {
		return err
	}

	c, err := x.clipRow(x.ctx, project, row.Clip)
	if err != nil || row.Generation == p.Generation && e.Generation == p.Generation && e.differs.Contains(c.Clip) {
		return err
	}

	x.add(ruleDiffers, x.Removing(), "it is listed for a person, and nothing is to be decided")
	return nil
}

// said checks that what a researcher has said is of an episode that exists.
func (x *exam) said(id string) error {
	project, key, _ := strings.Cut(id, "/")
	absent, err := x.absent(episodeKey(project, key), &episodeRow{})
	if absent {
		x.add(ruleResult, nil, "its episode %s has no row", id)
	}
	return err
}
