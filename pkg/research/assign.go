package research

import (
	"context"

	"github.com/RoaringBitmap/roaring/v2"

	"archivist/pkg/kernel/fault"
)

// assign makes a lease on the first clips of an episode that are due. It returns none if there is
// none after all, then the episode is closed; and if the project was paused, or the catalog has
// grown since the pass saw it: then an episode that is closed may come first. The fence excludes
// other assigners, the row of the episode every other lease on these pairs.
//
// The lease is made before its message is sent: if the process dies between the two, the next pass
// sends it. The other way round, a researcher could receive a work item that does not exist.
//
// names are the researchers who are present: in a project with a quorum, one of them must be able to take it.
func (p *pass) assign(ctx context.Context, key string, names []string) (made *leaseRow, err error) {
	id := p.NewID()
	var now *projectRow
	err = p.change(ctx, want{
		project: p.project,
		episode: key,
		lease:   id,
	}, By{Actor: assigner, Component: assigner},
		func(c *change) error {
			made, now = nil, c.project
			p.lease.Guard(c.tx)
			if now.Paused != "" || now.grown() > p.walk.Catalog {
				return nil
			}

			e := c.episode
			clips, err := c.choose(names, c.project.def.MaxClips)
			if err != nil {
				return err
			}

			if !e.media.live() || len(clips) == 0 || len(e.Leased) >= MaxLeases {
				return nil
			}

			c.hold(clips)
			made = c.lease
			return c.leaseEvent("lease.created",
				Assigned{made.Project, made.Episode, made.Clips, made.Analysis,
					made.Until})
		})
	if err != nil {
		return made, err
	}
	p.see(now)
	return made, nil
}

// hold fills the lease, and puts it on the episode. There is at least one clip.
func (c *change) hold(clips []listed) {
	numbers, names := roaring.New(), []string{}
	for _, l := range clips {
		numbers.Add(l.number)
		names = append(names, l.key())
	}

	r, p, t := c.lease, c.project, c.s.Times
	r.Lease = Lease{
		ID:         r.ID,
		Project:    p.Name,
		Episode:    c.episode.Name,
		Clips:      names,
		Analysis:   p.def.Analysis.String(),
		Generation: p.Generation,
		Created:    c.now,
		Until:      c.now + t.Lease.Milliseconds(),
		QueueEnd:   c.now + t.Queue.Milliseconds(),
	}

	data, _ := packed(numbers) // of numbers that were just added
	c.episode.Leased = append(c.episode.Leased, leasedPairs{Lease: r.ID, Until: r.Until, Clips: data})
}

// publish sends the work item of a lease, and records that in its row as it was read. If the row
// has changed since, the work item was accepted or has ended, or another assigner has sent it:
// then nobody sends it again. After an error it is perhaps sent; the next pass sends it again,
// which does no harm.
func (s *Store) publish(ctx context.Context, r *leaseRow) error {
	err := s.Send(ctx, Message{
		Lease:   r.ID,
		Project: r.Project,
		Episode: r.Episode,
		Clips:   r.Clips,
		Ends:    r.QueueEnd,
	})
	if err != nil {
		return err
	}

	r.Published = s.now()
	tx := s.Table.Begin(s.NewID())
	tx.Save(r)
	err = tx.Commit(ctx)
	if fault.Is(err, fault.Stale) {
		return nil
	}
	return err
}
