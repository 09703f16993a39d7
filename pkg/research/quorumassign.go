package research

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"archivist/pkg/kernel/definition"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// others refuses a work item with a Held if the researcher has a result of one of its pairs already: another one is
// needed. Its message stays in the queue.
func (c *change) others(researcher string) error {
	if c.project.def.quorum() == 1 {
		return nil
	}

	l := c.lease
	all, err := c.s.read(c.ctx, episodeKey(l.Project, l.Episode))
	if err != nil {
		return err
	}

	e, err := all.episode(l.Project, l.Episode)
	if err != nil {
		return err
	}

	i := slices.IndexFunc(e.Leased, func(h leasedPairs) bool { return h.Lease == l.ID })
	said, err := c.opinionsOf(l.Episode, researcher)
	if err != nil || i < 0 {
		return err
	}

	clips, err := bits(e.Leased[i].Clips)
	if err != nil || !clips.Intersects(said.clips) {
		return err
	}
	return fault.New(fault.Held, "the lease %s is for another researcher: %s has a result of one of its pairs, and "+
		"this project compares those of %d; leave the message in the queue", l.ID, definition.Clip(researcher, 60),
		c.project.def.quorum())
}

// opinionsOf reads what a researcher has said of an episode, by the present analysis.
func (c *change) opinionsOf(episode, researcher string) (*opinionRow, error) {
	k := opinionKey(c.project.Name, episode, researcher)
	row := &opinionRow{Head: newHead(k)}
	all, err := c.s.read(c.ctx, k)
	if err != nil {
		return nil, err
	}
	if err := all.decode(k, row); err != nil {
		return nil, err
	}
	return row, row.unpack(c.project.Generation)
}

// choose are the clips of an episode for a work item, at most n: those without any result; if there is none, those of
// which at least one researcher of names has no result yet.
func (c *change) choose(names []string, n int) ([]listed, error) {
	taken, err := c.episode.taken()
	if err != nil {
		return nil, err
	}

	first := c.cat.due(roaring.Or(taken, c.episode.waiting), n)
	if len(first) > 0 || c.episode.waiting.IsEmpty() {
		return first, nil
	}

	said, err := c.s.saidOf(c.ctx, c.project, c.episode.Name)
	if err != nil {
		return nil, err
	}

	able, found := names, []listed(nil)
	for l := range c.cat.from("") {
		can := slices.DeleteFunc(slices.Clone(able), func(name string) bool {
			return said[name] != nil && said[name].Contains(l.number)
		})
		// One researcher must be able to take all of them.
		if taken.Contains(l.number) || len(can) == 0 {
			continue
		}
		able, found = can, append(found, l)
		if len(found) == n {
			break
		}
	}
	return found, nil
}

// saidOf are the pairs of an episode of which each researcher has a result, by names.
func (s *Store) saidOf(ctx context.Context, row *projectRow, episode string) (map[string]*roaring.Bitmap, error) {
	all := map[string]*roaring.Bitmap{}
	q := table.Query{PK: opinionsPK(row.Name, episode), Prefix: byResearcher}
	for {
		var rows []opinionRow
		next, err := s.Table.Page(ctx, q, &rows)
		if err != nil {
			return nil, err
		}

		for i := range rows {
			if err := rows[i].unpack(row.Generation); err != nil {
				return nil, err
			}
			all[strings.TrimPrefix(rows[i].SK, byResearcher)] = rows[i].clips
		}

		if next == "" {
			return all, nil
		}
		q.Cursor = next
	}
}

// furtherMost bounds the episodes at which a pass looks for a pair that one of the researchers who are present can
// take. The next pass goes on behind them.
const furtherMost = 20

// again makes the lease of the next work item with pairs that have a result already. nil: nobody who is present can
// take one, or the time is over.
func (p *pass) again(ctx context.Context) (*leaseRow, error) {
	present, err := p.takers(ctx, p.project)
	if err != nil || len(present) == 0 {
		return nil, err
	}

	var names []string
	for _, r := range present {
		names = append(names, r.Name)
	}

	for range furtherMost {
		r, err := p.behind(ctx)
		if r == nil || err != nil {
			return nil, err
		}
		l, err := p.assign(ctx, r.Owner, names)
		if l != nil || err != nil || p.paused || p.over() {
			return l, err
		}
	}
	return nil, nil
}

// behind is the episode of that line behind the one at which a pass has looked last, and behind the last one the first
// again; nil if there is none.
func (p *pass) behind(ctx context.Context) (*lineRow, error) {
	for _, after := range []string{cmp.Or(p.walk.Further, further+"#"), further + "#"} {
		r, err := p.first(ctx, after+"!")
		if err != nil {
			return nil, err
		}
		if r != nil {
			p.walk.Further, p.moved = r.SK, true
			return r, nil
		}
	}
	return nil, nil
}
