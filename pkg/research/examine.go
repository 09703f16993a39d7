package research

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"archivist/pkg/event"
	"archivist/pkg/fault"
	"archivist/pkg/table"
)

// Rule is a rule between the rows of research. The names are parts of the doctor's findings.
type Rule string

// The rules.
const (
	RuleProject Rule = "project" // a row is of a project that exists
	RuleLine    Rule = "line"    // a row of the line is where its owner says that it is
	RulePlace   Rule = "place"   // an episode, clip or lease has its rows in the line, and belongs there
	RuleCatalog Rule = "catalog" // a clip has its row in the catalog, and a number of its own
	RuleHeld    Rule = "held"    // the leases on an episode are those that are live
	RuleNumbers Rule = "numbers" // researched are only numbers that clips have
	RuleResult  Rule = "result"  // a result is of an episode that exists
	RuleCounts  Rule = "counts"  // the counts are what the rows add up to
)

// Wrong is a rule that does not hold. Repair corrects what follows from other rows; nil: a person has
// to act.
type Wrong struct {
	Rule   Rule
	What   string
	Repair func(ctx context.Context) error
}

// exam is the examination of one row.
type exam struct {
	*Store
	ctx   context.Context
	row   table.Raw
	wrong []Wrong
}

func (x *exam) add(r Rule, repair func(ctx context.Context) error, what string, args ...any) {
	x.wrong = append(x.wrong, Wrong{r, fmt.Sprintf(what, args...), repair})
}

// Examine checks a row of research against the rows that belong to it. It writes nothing. What it finds
// holds only if the row is still the same afterwards: the transactions that change what belongs to it
// change the row, too.
func (s *Store) Examine(ctx context.Context, row table.Raw) ([]Wrong, error) {
	x := &exam{Store: s, ctx: ctx, row: row}
	kind, id, _ := strings.Cut(row.PK, "#")
	of := map[string]func(id string) error{"RESEARCHPROJECT": x.catalog, "EPISODE": x.episode, "CLIP": x.clip,
		"RESEARCHLEASE": x.lease, "CLIPS": x.listed, "RESEARCHLINE": x.line, "RESULTS": x.result,
		"RESEARCHCOUNTS": x.exists, "RESEARCHWALK": x.exists}[kind]
	if of == nil {
		return nil, nil
	}
	err := of(id)
	return x.wrong, err
}

// project reads the project of the row; nil: there is none, which is wrong.
func (x *exam) project(name string) (*projectRow, error) {
	p, err := x.projectRow(x.ctx, name)
	if fault.Is(err, fault.NotFound) {
		x.add(RuleProject, nil, "there is no project %s", name)
		return nil, nil
	}
	return p, err
}

func (x *exam) exists(name string) error {
	_, err := x.project(name)
	return err
}

// absent reports whether there is no row, and reads it otherwise.
func (x *exam) absent(k table.Key, row table.Row) (bool, error) {
	err := x.Table.Get(x.ctx, k, row)
	if fault.Is(err, fault.NotFound) {
		return true, nil
	}
	return false, err
}

// commit makes a repair on the condition that the row that was examined is the same.
func (x *exam) commit(of *table.Head, put func(tx *table.Tx)) func(context.Context) error {
	return func(ctx context.Context) error {
		tx := x.Table.Begin(x.NewID())
		put(tx)
		tx.Require(of.Key(), "rev = ?", of.Rev)
		return tx.Commit(ctx)
	}
}

// needs checks that an owner has its row in the line.
func (x *exam) needs(of *table.Head, project, sk, owner string) error {
	k := lineKey(project, sk)
	var there lineRow
	absent, err := x.absent(k, &there)
	if err != nil || there.Owner == owner {
		return err
	}
	what := "its row in the line, %s, is missing"
	if !absent {
		what = "its row in the line, %s, is of another"
	}
	x.add(RulePlace, x.commit(of, func(tx *table.Tx) {
		tx.Insert(&lineRow{Head: newHead(k), Owner: owner})
	}), what, sk)
	return nil
}

// remove removes the row.
func (x *exam) remove(head table.Head) func(context.Context) error {
	return func(ctx context.Context) error {
		tx := x.Table.Begin(x.NewID())
		tx.Remove(&head)
		return tx.Commit(ctx)
	}
}

// catalog checks that the clips of a project have numbers of their own.
func (x *exam) catalog(name string) error {
	seen := map[uint32]string{}
	q := table.Query{PK: catalogKey(name, 0).PK, Limit: 5000}
	for {
		var rows []catalogRow
		next, err := x.Table.Page(x.ctx, q, &rows)
		if err != nil {
			return err
		}
		for _, r := range rows {
			if other := seen[r.Number]; other != "" && other != r.Owner {
				x.add(RuleCatalog, nil, "the clips %s and %s both have the number %d", other, r.Owner, r.Number)
			}
			seen[r.Number] = r.Owner
		}
		if next == "" {
			return nil
		}
		q.Cursor = next
	}
}

// listed checks that a row of the catalog is that of its clip.
func (x *exam) listed(project string) error {
	var row catalogRow
	err := x.row.Decode(&row)
	if err != nil {
		return err
	}
	c, err := x.clipRow(x.ctx, project, row.Owner)
	switch {
	case err != nil:
		return err
	case c.Rev == 0:
		x.add(RuleCatalog, nil, "its clip %s has no row", row.Owner)
	case catalogKey(project, c.Listed) != x.row.Key:
		x.add(RuleCatalog, x.remove(row.Head), "its clip %s is at %d of the catalog", row.Owner, c.Listed)
	}
	return nil
}

// clip checks that a clip has its row in the catalog, and in the line if it is deferred.
func (x *exam) clip(id string) error {
	project, key, _ := strings.Cut(id, "/")
	c, err := x.clipRow(x.ctx, project, key)
	if err != nil || c.Rev == 0 {
		return err
	}
	p, err := x.project(project)
	if err != nil || p == nil {
		return err
	}
	if c.Clip == 0 || int64(c.Clip) > p.Numbers {
		x.add(RuleCatalog, nil, "it has the number %d; the project has given %d", c.Clip, p.Numbers)
	}
	x.away(c.Head, want{project: project, clip: key}, &c.media)
	if c.media.Deferred > 0 {
		err = x.needs(&c.Head, project, dueKey(c.media.Deferred, string(Clip), key), key)
	}
	if err != nil {
		return err
	}
	return x.catalogRow(c)
}

// catalogRow checks the row of a clip in the catalog.
func (x *exam) catalogRow(c *clipRow) error {
	k := catalogKey(c.Project, c.Listed)
	var row catalogRow
	absent, err := x.absent(k, &row)
	if err != nil {
		return err
	}
	should := catalogRow{Head: row.Head, Owner: c.Name, Number: c.Clip, Order: c.media.order(), Live: c.media.live()}
	switch {
	case absent:
		should.Head = newHead(k)
		x.add(RuleCatalog, x.commit(&c.Head, func(tx *table.Tx) { tx.Insert(&should) }),
			"its row %d in the catalog is missing", c.Listed)
	case row.Owner != c.Name || row.Number != c.Clip:
		x.add(RuleCatalog, nil, "its row %d in the catalog is of the clip %s with the number %d; it has the number %d",
			c.Listed, row.Owner, row.Number, c.Clip)
	case row != should:
		x.add(RuleCatalog, func(ctx context.Context) error { return x.relist(ctx, c.Project, c.Name) },
			"its row %d in the catalog has another order or state", c.Listed)
	}
	return nil
}

// relist gives a clip a new row in the catalog: processes that know the present one do not read it again.
func (s *Store) relist(ctx context.Context, project, key string) error {
	c := &change{ctx: ctx, s: s, tx: s.Table.Begin(s.NewID()), now: s.now()}
	err := c.read(want{project: project, clip: key})
	if err != nil {
		return err
	}
	c.list(listed{c.clip.Clip, c.clip.media.order(), c.clip.media.live()})
	c.put(c.clip, c.clip.Rev)
	return c.tx.Commit(ctx)
}

// episode checks the place of an episode, the leases on it, and what is researched of it.
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
	err = x.place(e)
	if err == nil {
		err = x.held(e)
	}
	if err == nil {
		err = x.decided(e)
	}
	if n := e.researched; err == nil && !n.IsEmpty() && (n.Contains(0) || int64(n.Maximum()) > p.Numbers) {
		x.add(RuleNumbers, func(ctx context.Context) error { return x.forget(ctx, project, key) },
			"number %d is researched of it; the project has given %d", n.Maximum(), p.Numbers)
	}
	return err
}

// place checks that an episode has its rows in the line, and is in order there.
func (x *exam) place(e *episodeRow) error {
	should := ""
	if e.media.live() {
		should = ready + "#" + e.media.order()
		if class(e.Place) == closed {
			should = closed + "#" + e.media.order()
		}
	}
	if e.Place != should {
		x.add(RulePlace, x.deciding(e), "it is at %q of the line; its place is %q", e.Place, should)
	}
	x.away(e.Head, want{project: e.Project, episode: e.Name}, &e.media)
	if e.Place != "" {
		err := x.needs(&e.Head, e.Project, e.Place, e.Name)
		if err != nil {
			return err
		}
	}
	if e.media.Deferred == 0 {
		return nil
	}
	return x.needs(&e.Head, e.Project, dueKey(e.media.Deferred, string(Episode), e.Name), e.Name)
}

// away checks that what is withdrawn, set aside or deferred is listed.
func (x *exam) away(is table.Head, w want, m *Media) {
	should, kind := is, Episode
	if w.clip != "" {
		kind = Clip
	}
	setAway(&should, kind, w.project, w.episode+w.clip, m)
	if is == should {
		return
	}
	x.add(RulePlace, func(ctx context.Context) error {
		return x.change(ctx, w, By{}, func(*change) error { return nil })
	}, "it is at %q %q of the index list, and should be at %q %q", is.ListPK, is.ListSK, should.ListPK, should.ListSK)
}

func (x *exam) deciding(e *episodeRow) func(context.Context) error {
	return func(ctx context.Context) error { return x.decide(ctx, e.Project, e.Name) }
}

// decided checks what was decided by the catalog: that a closed episode has no pair that is due, and how
// many of its pairs count. It says nothing while the archivist still looks at episodes because the
// catalog has changed.
func (x *exam) decided(e *episodeRow) error {
	w, err := x.walk(x.ctx, e.Project)
	if err != nil {
		return err
	}
	p, cat, err := x.load(x.ctx, e.Project)
	if fault.Is(err, fault.Stale) { // also if the catalog is damaged: that is another rule
		return nil
	}
	if err != nil || w.Catalog < p.grown() || e.Round < p.Round {
		return err
	}
	taken, err := e.taken()
	if err != nil {
		return err
	}
	pairs := int64(e.researched.AndCardinality(cat.live))
	due, miscounted := w.passed(e) && len(cat.due(taken, 1)) > 0, w.counts(e, p) && e.Counted != pairs
	if !due && !miscounted {
		return nil
	}
	again, err := x.projectRow(x.ctx, p.Name)
	if err != nil || again.Catalog != p.Catalog {
		return err
	}
	if due {
		x.add(RulePlace, x.deciding(e), "it is closed, and has a pair that is due")
	}
	if miscounted {
		x.add(RuleCounts, x.deciding(e), "it counts %d researched pairs, and has %d", e.Counted, pairs)
	}
	return nil
}

// passed reports whether the archivist has looked at an episode, which is closed because nothing was due.
func (w *walkRow) passed(e *episodeRow) bool {
	return class(e.Place) == closed && e.Place <= w.After && len(e.Held) < MaxHeld
}

// counts reports whether the pairs of an episode were counted again since the clips have changed.
func (w *walkRow) counts(e *episodeRow, p *projectRow) bool {
	over := w.After >= ended && (w.Counted == "" || w.Counted >= counted)
	return over && w.Recount >= p.Recount && e.media.live()
}

// held checks that the leases on an episode have not ended, and that no two share a clip.
func (x *exam) held(e *episodeRow) error {
	all := map[uint32]string{}
	for _, h := range e.Held {
		l, err := x.leaseRow(x.ctx, h.Lease)
		if err != nil {
			return err
		}
		clips, err := bits(h.Clips)
		if err != nil {
			return err
		}
		switch {
		case l.Ended > 0, l.Rev == 0 && h.Until <= x.now():
			x.add(RuleHeld, func(ctx context.Context) error { return x.release(ctx, e, h.Lease) },
				"the lease %s, which is on it, has ended", h.Lease)
			continue
		case l.Rev == 0:
			x.add(RuleHeld, nil, "the lease %s, which is on it, has no row", h.Lease)
		case l.Until != h.Until || l.Project != e.Project || l.Episode != e.Name:
			x.add(RuleHeld, nil, "the lease %s, which is on it until %d, is on %s/%s until %d", h.Lease, h.Until,
				l.Project, l.Episode, l.Until)
		}
		for it := clips.Iterator(); it.HasNext(); {
			n := it.Next()
			if other := all[n]; other != "" {
				x.add(RuleHeld, nil, "the leases %s and %s both have the clip number %d", other, h.Lease, n)
				break
			}
			all[n] = h.Lease
		}
	}
	return nil
}

// release removes a lease that has ended from its episode.
func (s *Store) release(ctx context.Context, e *episodeRow, id string) error {
	return s.change(ctx, want{project: e.Project, episode: e.Name}, By{}, func(c *change) error {
		c.episode.Held = slices.DeleteFunc(c.episode.Held, func(h held) bool { return h.Lease == id })
		return nil
	})
}

// forget removes numbers that no clip has from what is researched of an episode. The clip that gets such
// a number would not be researched.
func (s *Store) forget(ctx context.Context, project, episode string) error {
	return s.change(ctx, want{project: project, episode: episode}, By{}, func(c *change) error {
		c.episode.researched.Remove(0)
		c.episode.researched.RemoveRange(uint64(c.project.Numbers)+1, 1<<32)
		return nil
	})
}

// lease checks that a lease that has not ended is on its episode, and in the line.
func (x *exam) lease(id string) error {
	l, err := x.leaseRow(x.ctx, id)
	if err != nil || l.Rev == 0 || l.Ended > 0 {
		return err
	}
	e, err := x.episodeRow(x.ctx, l.Project, l.Episode)
	if err != nil {
		return err
	}
	on := func(h held) bool { return h.Lease == id && h.Until == l.Until }
	if e.Round <= l.Round && !slices.ContainsFunc(e.Held, on) { // one of an earlier analysis excludes nothing
		x.add(RuleHeld, nil, "it is not on its episode %s/%s", l.Project, l.Episode)
	}
	err = x.needs(&l.Head, l.Project, dueKey(l.Until, "lease", id), id)
	if err != nil || l.waits() == 0 {
		return err
	}
	return x.needs(&l.Head, l.Project, pendingKey(l.waits(), id), id)
}

// line checks that a row of the line is where its owner says that it is.
func (x *exam) line(project string) error {
	var row lineRow
	err := x.row.Decode(&row)
	if err != nil {
		return err
	}
	places, err := x.places(project, row.Owner)
	if err == nil && !slices.Contains(places, x.row.SK) {
		x.add(RuleLine, x.remove(row.Head), "its owner %s is not at this place", row.Owner)
	}
	return err
}

// places are the places of the owner of the row in the line. None is at the time 0.
func (x *exam) places(project, owner string) ([]string, error) {
	part := strings.SplitN(x.row.SK, "#", 4)
	if part[0] == pending || part[0] == dueSK && part[2] == "lease" {
		l, err := x.leaseRow(x.ctx, owner)
		if err != nil || l.Project != project {
			return nil, err
		}
		return []string{pendingKey(l.waits(), owner), dueKey(l.ends(), "lease", owner)}, nil
	}
	if part[0] == dueSK && part[2] == string(Clip) {
		c, err := x.clipRow(x.ctx, project, owner)
		if err != nil {
			return nil, err
		}
		return []string{dueKey(c.media.Deferred, string(Clip), owner)}, nil
	}
	e, err := x.episodeRow(x.ctx, project, owner)
	if err != nil {
		return nil, err
	}
	return []string{e.Place, dueKey(e.media.Deferred, string(Episode), owner)}, nil
}

// Due is when the archivist is to end what a row of the line is about, in milliseconds since 1970; 0 if
// the row is no end.
func Due(k table.Key) int64 {
	part := strings.SplitN(k.SK, "#", 4)
	if part[0] != dueSK || len(part) < 4 {
		return 0
	}
	ms, _ := strconv.ParseInt(part[1], 10, 64)
	return ms
}

// result checks that a result is of an episode that exists, and has the key that it says.
func (x *exam) result(id string) error {
	var row resultRow
	err := x.row.Decode(&row)
	if err != nil {
		return err
	}
	var r Report
	err = json.Unmarshal([]byte(row.Text), &r)
	if err != nil {
		return fmt.Errorf("the result cannot be read: %w", err)
	}
	if k := resultKey(&r); k != x.row.Key {
		x.add(RuleResult, nil, "it says that it is %s", k)
		return nil
	}
	k := mediaSubject(event.Episode, r.Project, r.Episode).Key()
	absent, err := x.absent(k, &episodeRow{})
	if absent {
		x.add(RuleResult, nil, "its episode %s has no row", id)
	}
	return err
}
