package research

import (
	"context"
	"strings"
	"time"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/lease"
	"archivist/pkg/kernel/passes"
	"archivist/pkg/kernel/table"
)

// Pass is what the assigner (in the requirement: the archivist of pending work) does when it is
// started: it ends what has expired, sends again what was perhaps not sent, and adds work items to
// the queue as the requirement says ("Work Assignment Process"). One pass at a time works on a
// project. It starts nothing after until.
//
// Another pass that is at work is no error (Passed.Busy), nor is a project that was not applied
// yet. After an error what was done stays done, and the next pass goes on from there. A pass can
// die anywhere: a lease that was made and not sent is sent by the next one, a step of the walk is
// repeated.
func (s *Store) Pass(ctx context.Context, project string, until time.Time) (Passed, error) {
	p := &pass{Store: s, project: project, until: until}
	busy, err := passes.Under(ctx, s.Leases, "research-"+project, s.Times.Pass, func(l lease.Lease) error {
		p.lease = l
		return p.run(ctx)
	})
	p.done.Busy = busy
	return p.done, err
}

// run makes the steps of a pass. What people wait for is first; looking at episodes in the
// background takes what time is left. The walk is saved also when the time is over, but not after
// an error: its steps are repeated.
func (p *pass) run(ctx context.Context) error {
	err := p.begin(ctx)
	if fault.Is(err, fault.NotFound) {
		return nil // it is not configured yet
	}

	if err != nil {
		return err
	}

	for _, step := range []func(context.Context) error{p.assignAll, p.look} {
		if p.over() {
			break
		}
		err = step(ctx)
		if err != nil {
			return err
		}
	}

	if !p.moved {
		return nil
	}
	return p.saveWalk(ctx)
}

// begin reads the project, how far the closed episodes were looked at, and the samples, of which it
// takes one. It is a NotFound if the project was not applied yet.
func (p *pass) begin(ctx context.Context) error {
	all, err := p.read(ctx, projectKey(p.project), walkKey(p.project), sampleKey(p.project))
	if err != nil {
		return err
	}

	row, err := all.project(p.project)
	if err != nil {
		return err
	}

	p.walk, err = all.walk(p.project)
	if err != nil {
		return err
	}

	p.see(row)
	kept, err := all.samples(p.project)
	if err != nil {
		return err
	}
	return p.sample(ctx, row, kept)
}

// sample keeps the number of researched pairs, if the newest sample is old enough. Samples of an earlier
// generation are dropped.
func (p *pass) sample(ctx context.Context, row *projectRow, kept *sampleRow) error {
	if n := len(kept.Times); kept.Generation == row.Generation && n > 0 &&
		p.now() < kept.Times[n-1]+sampleEvery.Milliseconds() {
		return nil
	}

	sum, err := p.sums(ctx, row)
	if err != nil || !kept.add(row.Generation, p.now(), sum.Pairs) {
		return err
	}

	tx := p.Table.Begin(p.NewID())
	p.lease.Guard(tx)
	tx.InsertOrSave(kept)
	return tx.Commit(ctx)
}

// assignAll adds work items while the requirement's loop says so. What has expired meanwhile is
// ended before each: an expired lease does not count. What waits in the queue is sent again first,
// if need be.
func (p *pass) assignAll(ctx context.Context) error {
	for first := true; !p.over(); first = false {
		err := p.endDue(ctx)
		if err != nil {
			return err
		}

		waiting, err := p.waiting(ctx)
		if err != nil {
			return err
		}

		if first {
			err = p.resend(ctx, waiting)
			if err != nil {
				return err
			}
		}

		if p.paused {
			return nil
		}

		present, err := p.Present(ctx, p.project)
		if err != nil {
			return err
		}

		_, add := CapacitySurplus(present, len(waiting))
		if !add {
			return nil
		}

		l, err := p.next(ctx)
		if err != nil || l == nil {
			return err
		}

		p.done.Assigned++
		err = p.publish(ctx, l)
		if err != nil {
			return err
		}

		// The next turn would read all again to find this out. Who comes meanwhile wakes
		// a pass; what is accepted meanwhile is seen by the one of the next minute.
		_, add = CapacitySurplus(present, len(waiting)+1)
		if !add {
			return nil
		}
	}
	return nil
}

// endDue ends the leases and deferrals whose time has passed, the earliest first. A row of the line
// about a lease that does not exist is passed over: it must not hold up the project. The end of the
// query is the time when it began, so it ends also if leases expire as fast as they are read.
func (p *pass) endDue(ctx context.Context) error {
	q := table.Query{
		PK:    linePK(p.project),
		From:  dueSK + "#",
		To:    dueKey(p.now(), "~", ""),
		Limit: 50,
	}

	for !p.over() {
		var rows []lineRow
		next, err := p.Table.Page(ctx, q, &rows)
		if err != nil {
			return err
		}

		for _, r := range rows {
			err = p.endOne(ctx, r.SK)
			if fault.Is(err, fault.NotFound) {
				p.warn("a row of the line is about a lease that does not exist; the doctor removes it",
					"row", r.SK)
				continue
			}
			if err != nil || p.over() {
				return err
			}
			p.done.Ended++
		}

		if next == "" {
			return nil
		}

		q.Cursor = next
	}
	return nil
}

// endOne ends what a row in the line says is over. sk is as dueKey makes it. Whether it is still
// over is decided by the row of the lease or of the media.
func (p *pass) endOne(ctx context.Context, sk string) error {
	part := strings.SplitN(sk, "#", 4) // due, time, kind, id
	if part[2] == "lease" {
		return p.expire(ctx, part[3])
	}
	return p.endDeferral(ctx, Kind(part[2]), p.project, part[3])
}

// waiting lists the work items in the queue that nobody has accepted: they are counted exactly, in
// the table. The number of messages that SQS gives is approximate ("GetQueueAttributes"), and does
// not have those that are being received. What has left the queue at the end of its time does not
// count, also before its lease has ended.
func (p *pass) waiting(ctx context.Context) (ids []string, err error) {
	q := table.Query{
		PK:    linePK(p.project),
		From:  pendingKey(p.now()+1, ""), // what leaves the queue now is no longer in it
		To:    pending + "#~",
		Limit: 1000,
	}
	for {
		var rows []lineRow
		next, err := p.Table.Page(ctx, q, &rows)
		if err != nil {
			return nil, err
		}

		for _, r := range rows {
			ids = append(ids, r.Owner)
		}

		if next == "" {
			return ids, nil
		}

		q.Cursor = next
	}
}

// resend sends the work items again that an earlier pass did not record as sent. A message that
// comes twice does no harm: one is accepted.
func (p *pass) resend(ctx context.Context, ids []string) error {
	all, err := p.leases(ctx, ids)
	if err != nil {
		return err
	}

	for _, r := range all {
		if p.over() {
			return nil
		}

		// It was sent; or it was accepted or has ended since the line was read.
		if r.Published > 0 || r.waits() == 0 {
			continue
		}

		err = p.publish(ctx, r)
		if err != nil {
			return err
		}

		p.done.Resent++
		p.count(MetricResent, 1)
	}
	return nil
}

// next makes the lease of the next work item: of the first episode, in order, that has a pair that
// is due (source: the requirement, "Selecting Work"). nil: there is none, the project is paused, or
// the time is over.
//
// While closed episodes are left that were not looked at since the catalog grew, the first of them
// may have a pair that is due, too. If it comes before the first one that is ready, it is looked
// at, which moves it to "ready" or leaves it closed, and all is compared again. So the selection is
// exact at once, and each closed episode is looked at once per growth.
func (p *pass) next(ctx context.Context) (*leaseRow, error) {
	for !p.over() {
		first, err := p.first(ctx, ready+"#")
		if err != nil {
			return nil, err
		}

		var stale *lineRow
		// Otherwise assign finds out whether the catalog has grown.
		if first == nil || p.walk.After < ended {
			stale, err = p.stale(ctx)
			if err != nil {
				return nil, err
			}
		}

		switch {
		case p.paused:
			return nil, nil
		case stale != nil && (first == nil || rank(stale) < rank(first)):
			err = p.lookAt(ctx, stale, &p.walk.After)
		case first == nil:
			return p.again(ctx)
		default:
			l, err := p.assign(ctx, first.Owner, nil)
			if l != nil || err != nil {
				return l, err
			}
		}

		if err != nil {
			return nil, err
		}
	}
	return nil, nil
}
