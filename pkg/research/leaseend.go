package research

import (
	"context"
	"slices"

	"archivist/pkg/kernel/fault"
)

// end ends the lease of the change, and takes it off its episode in the same transaction. Its pairs
// without a result are due again. why is Final, Expired or Revoked, reason that of a person.
func (c *change) end(why, reason string) error {
	c.lease.Ended, c.lease.Why = c.now, why
	c.episode.Leased = slices.DeleteFunc(c.episode.Leased,
		func(h leasedPairs) bool { return h.Lease == c.lease.ID })
	return c.leaseEvent("lease.ended", Ended{why, c.lease.Stored, reason})
}

// expire ends a lease whose time has passed. It changes nothing if the lease was extended or has
// ended meanwhile: whether it is over is decided in the change. It is a NotFound if there is no
// such lease.
func (s *Store) expire(ctx context.Context, id string) error {
	l, err := s.Lease(ctx, id) // which names the episode that the change reads, too
	if err != nil {
		return err
	}

	ended := false
	err = s.change(ctx, want{project: l.Project, episode: l.Episode, lease: id},
		By{Actor: assigner, Component: assigner}, func(c *change) error {
			ended = c.lease.Rev > 0 && c.lease.Ended == 0 && c.lease.Until <= c.now
			if !ended {
				return nil
			}
			return c.end(Expired, "")
		})
	if err != nil {
		return err
	}

	if ended {
		s.count(MetricExpired, 1)
	}
	return nil
}

// Revoke ends a lease by hand. What its researcher still reports is stored. It returns an Invalid
// without a reason, a NotFound if there is no such lease, and a Conflict if it has ended.
func (s *Store) Revoke(ctx context.Context, id string, by By) error {
	err := by.Check()
	if err != nil {
		return err
	}

	l, err := s.Lease(ctx, id)
	if err != nil {
		return err
	}

	err = s.change(ctx, want{
		project: l.Project,
		episode: l.Episode,
		lease:   id,
	}, by, func(c *change) error {
		if c.lease.Rev == 0 || c.lease.Ended > 0 {
			return fault.New(fault.Conflict, "the lease %s has ended already: %s", id, c.lease.Why)
		}
		return c.end(Revoked, by.Reason)
	})
	if err != nil {
		return err
	}
	s.wake(ctx, l.Project)
	return nil
}
