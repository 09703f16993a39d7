package researchsim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"archivist/pkg/events/event"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/pkg/research"
)

// project is the project of a seed, by its present version.
func (w *world) project(maxClips int) research.Project {
	p := project(w.version, maxClips)
	p.Quorum, p.Review = w.s.quorum, w.s.review
	return p
}

// place is one of a result, numbered from 1.
type place struct {
	episode, clip, lease string
	hit                  int
}

// decision takes over what a person has said of places, by the event of it.
func (c *checker) decision(ch tabletest.Change) {
	key, is := strings.CutPrefix(text(either(ch), "pk"), episodePK)
	isNew := ch.Before == nil && strings.HasPrefix(text(either(ch), "sk"), event.Prefix)
	if !is || !isNew || text(ch.After, "event_type") != "episode.reviewed" {
		return
	}
	d := decode[research.Reviewed](text(ch.After, "detail"))
	if len(d.Hits) == 0 || d.Reason == "" || text(ch.After, "actor") == "" {
		c.fail("a review of %s says %+v", key, d)
	}
	for _, n := range d.Hits {
		at := place{key, d.Clip, d.Lease, n}
		if was, known := c.reviews[at]; known && was == d.Accepted {
			c.fail("%+v was decided twice in the same way", at)
		}
		c.reviews[at] = d.Accepted
		c.ever[at] = c.ever[at] || d.Accepted
	}
}

// checkReviews checks that the marks of each pair are what persons have said of the result that
// counts, and that it is listed while places of it wait.
func (c *checker) checkReviews() {
	for k, row := range c.differs {
		if row.Generation != c.project.Generation || row.Lease == "" {
			continue
		}
		marks, list := "", ""
		if hits := c.counting(row); c.def.Review {
			marks = c.marks(row, len(hits))
		}
		if strings.Contains(marks, "w") {
			list = fmt.Sprintf("RESEARCHREVIEWS#%s/%06d", songs, row.Generation)
		}
		if row.Marks != marks || row.List != list {
			c.fail("the pair %s is marked %+v; persons have said %q, its list is %q", k, row,
				marks, list)
		}
	}
}

// counting are the hits of the result of a pair that counts.
func (s *state) counting(row pairRow) []research.Hit {
	for _, r := range s.results {
		if r.Episode == row.Episode && r.Clip == row.Clip && r.Lease == row.Lease &&
			r.Sequence == row.Sequence {
			return r.Hits
		}
	}
	return nil
}

// marks are those that a pair should have.
func (c *checker) marks(row pairRow, hits int) (marks string) {
	for n := range hits {
		accepted, known := c.reviews[place{row.Episode, row.Clip, row.Lease, n + 1}]
		switch {
		case !known:
			marks += "w"
		case accepted:
			marks += "a"
		default:
			marks += "r"
		}
	}
	return marks
}

// review is a person who looks at what waits, and decides about one place of it, or all; sometimes
// of what was decided before, or long after having looked. Then what is exported is compared.
func (a *actor) review(ctx context.Context, late bool) {
	a.doing, a.Until = "review", time.Time{}
	all, _, err := a.store.Reviews(ctx, songs, "")
	known := slices.SortedFunc(maps.Keys(a.w.check.reviews), func(x, y place) int {
		return strings.Compare(fmt.Sprint(x), fmt.Sprint(y))
	})
	r, at := research.Review{Accept: a.Rng.IntN(2) == 0}, place{}
	switch n := a.Rng.IntN(4); {
	case err == nil && len(all) > 0 && (n > 0 || !late):
		one := all[a.Rng.IntN(len(all))]
		at = place{one.Episode, one.Clip, one.Lease, a.Rng.IntN(1 + len(one.Hits))}
		if late && n == 1 {
			a.w.Sleep(3 * functionTime)
		}
	case len(known) > 0:
		at = known[a.Rng.IntN(len(known))]
		r.Change = a.Rng.IntN(2) == 0
	default:
		return
	}
	r.Lease, r.Hit = at.lease, at.hit
	by := a.by()
	by.Request = a.newID()
	before := len(a.w.check.reviews)
	err = a.store.Review(ctx, songs, at.episode, at.clip, r, by)
	if a.Rng.IntN(3) == 0 {
		err = a.store.Review(ctx, songs, at.episode, at.clip, r, by) // the answer was lost
	}
	a.w.Log("  (%s reviews %+v, %+v: %v)", a.Name, at, r, err)
	switch {
	case err == nil:
		a.w.Met(fmt.Sprintf("person: reviews, accepted %t", r.Accept))
		if r.Change && before == len(a.w.check.reviews) {
			a.w.Met("person: overrules a review")
		}
	case fault.Is(err, fault.Conflict) && strings.Contains(err.Error(), "already"):
		a.w.Met("review refused: decided otherwise")
	case fault.Is(err, fault.Conflict):
		a.w.Met("review refused: replaced")
	case fault.Is(err, fault.Invalid) || fault.Is(err, fault.NotFound):
		a.w.check.fail("the review %+v of %+v was refused: %v", r, at, err)
	}
	a.exports(ctx)
}

// exports checks that each place that is exported was accepted by a person.
func (a *actor) exports(ctx context.Context) {
	all, _, err := a.exported(ctx)
	if err != nil {
		return
	}
	for _, f := range all {
		accepted := false
		for at := range a.w.check.ever {
			accepted = accepted || at.episode == f.Episode && at.clip == f.Clip &&
				a.w.check.ever[at]
		}
		if !accepted {
			a.w.check.fail("exported is %+v, which nobody has accepted", f)
		}
	}
}

// exported are all places that are exported, and how many wait.
func (a *actor) exported(ctx context.Context) (all []research.Found, waiting int, err error) {
	for cursor := ""; ; {
		page, err := a.store.Offsets(ctx, songs, "", cursor)
		if err != nil {
			return nil, 0, err
		}
		all, waiting = append(all, page.All...), waiting+page.Waiting
		if page.Next == "" {
			return all, waiting, nil
		}
		cursor = page.Next
	}
}

// reviewAll compares what is exported with what was accepted, then lets a person decide about all
// that waits, and compares again: in the end nothing waits, each place that was accepted is
// exported, and nothing else.
func (a *actor) reviewAll(ctx context.Context) error {
	if !a.w.s.review {
		return nil
	}
	for range restSteps {
		err := a.compare(ctx)
		all, _, failed := a.store.Reviews(ctx, songs, "")
		if err = errors.Join(err, failed); err != nil || len(all) == 0 {
			return err
		}
		a.review(ctx, false)
	}
	return errors.New("places wait for a person for ever")
}

// compare compares what is exported with what persons have said.
func (a *actor) compare(ctx context.Context) error {
	found, waiting, err := a.exported(ctx)
	if err != nil {
		return err
	}
	var is, want []string
	for _, f := range found {
		is = append(is, fmt.Sprint(f.Episode, f.Clip, f.Offset))
	}
	c, waits := a.w.check, 0
	for _, row := range c.differs {
		if row.Generation != c.project.Generation || row.Lease == "" {
			continue
		}
		hits := c.counting(row)
		for n, mark := range c.marks(row, len(hits)) {
			switch mark {
			case 'a':
				want = append(want, fmt.Sprint(row.Episode, row.Clip, hits[n].Offset))
			case 'w':
				waits++
			}
		}
	}
	slices.Sort(is)
	slices.Sort(want)
	st, err := a.store.Status(ctx, songs)
	if err != nil {
		return err
	}
	if !slices.Equal(is, want) || waiting != waits || st.Unreviewed != int64(waits) {
		return fmt.Errorf("exported is %v, should be %v; "+
			"%d wait by the export, %d by the status, should be %d", is, want,
			waiting, st.Unreviewed, waits)
	}
	return nil
}
