package research

import (
	"cmp"
	"context"
	"strings"
	"time"

	"archivist/pkg/fault"
	"archivist/pkg/lease"
	"archivist/pkg/table"
)

// Metrics of research, in numbers.
const (
	MetricExpired = "ResearchLeasesExpired"
	MetricResent  = "ResearchResent"
	MetricAside   = "ResearchSetAside"
)

// Passed says what a pass of the archivist did.
type Passed struct {
	Assigned int  // work items
	Resent   int  // work items whose message perhaps was not sent
	Ended    int  // leases and deferrals whose time had passed
	Looked   int  // episodes, because clips came, came back or went away
	More     bool // there is more to do; the time is over
	Busy     bool // another archivist is at this project
}

// walkRow says how far the closed episodes have been looked at since the catalog grew.
type walkRow struct {
	table.Head
	Catalog int64  `dynamo:"catalog_no"` // of the project when it began
	After   string `dynamo:"after_sk"`   // the last closed episode that was looked at

	// After a clip was withdrawn, set aside or brought back, the pairs of all episodes are counted again: of the
	// closed ones, then of those that are ready. The closed ones are left out if they were looked at since.
	Recount int64  `dynamo:"recount_ms"`     // that of the project when it began
	Counted string `dynamo:"count_after_sk"` // the last that was counted
}

func walkKey(project string) table.Key { return table.Key{PK: "RESEARCHWALK#" + project, SK: "WALK"} }

// pass is one pass of the archivist of pending work, under its lease.
type pass struct {
	*Store
	project string
	lease   lease.Lease
	until   time.Time
	walk    *walkRow
	moved   bool // the walk
	paused  bool
	recount int64 // of the project
	shrunk  int64 // of the project
	done    Passed
}

// Pass is what the archivist of pending work does when it is started: it ends what has expired, sends
// again what was perhaps not sent, and adds work items to the queue as the requirement says ("Work
// Assignment Process"). One pass at a time works on a project. It starts nothing after until.
func (s *Store) Pass(ctx context.Context, project string, until time.Time) (Passed, error) {
	l, err := s.Leases.Acquire(ctx, "research-"+project, s.Times.Pass)
	if fault.Is(err, fault.Held) {
		return Passed{Busy: true}, nil
	}
	if err != nil {
		return Passed{}, err
	}
	p := &pass{Store: s, project: project, lease: l, until: until}
	err = p.run(ctx)
	released := s.Leases.Release(ctx, l) // also after an error: the next pass need not wait
	return p.done, cmp.Or(err, released)
}

func (p *pass) over() bool {
	p.done.More = p.done.More || !p.Now().Before(p.until)
	return p.done.More
}

func (p *pass) run(ctx context.Context) error {
	err := p.begin(ctx)
	if fault.Is(err, fault.NotFound) {
		return nil // it is not configured yet
	}
	for _, step := range []func(context.Context) error{p.assignAll, p.look} {
		if err != nil || p.over() {
			break
		}
		err = step(ctx)
	}
	if err == nil && p.moved {
		err = p.saveWalk(ctx)
	}
	return err
}

// begin reads the project, how far the closed episodes were looked at, and the samples, of which it takes one.
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

// see notes what the row of the project says now. When the catalog has grown, the walk begins again. A clip that
// goes away or changes its place in the order makes no pair due, so it opens no closed episode.
func (p *pass) see(row *projectRow) {
	p.paused, p.recount, p.shrunk = row.Paused != "", row.Recount, row.Shrunk
	if p.walk.Catalog < row.grown() {
		p.walk.Catalog, p.walk.After, p.moved = row.Catalog, closed+"#", true
	}
}

// endDue ends the leases and deferrals whose time has passed, the earliest first.
func (p *pass) endDue(ctx context.Context) error {
	q := table.Query{PK: linePK(p.project), From: dueSK + "#", To: dueKey(p.now(), "~", ""), Limit: 50}
	for !p.over() {
		var rows []lineRow
		next, err := p.Table.Page(ctx, q, &rows)
		if err != nil {
			return err
		}
		for _, r := range rows {
			err = p.endOne(ctx, r.SK)
			if fault.Is(err, fault.NotFound) {
				p.warn("a row of the line is about a lease that there is not; the doctor removes it", "row", r.SK)
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

// endOne ends what a row in the line says is over.
func (p *pass) endOne(ctx context.Context, sk string) error {
	part := strings.SplitN(sk, "#", 4) // due, time, kind, id
	if part[2] == "lease" {
		return p.expire(ctx, part[3])
	}
	return p.endDeferral(ctx, Kind(part[2]), p.project, part[3])
}

// waiting lists the work items in the queue that nobody has accepted: they are counted exactly.
func (p *pass) waiting(ctx context.Context) (ids []string, err error) {
	q := table.Query{PK: linePK(p.project), From: pendingKey(p.now()+1, ""), To: pending + "#~", Limit: 1000}
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

// resend sends the work items again that an earlier pass did not record as sent. A message that comes
// twice does no harm: one is accepted.
func (p *pass) resend(ctx context.Context, ids []string) error {
	all, err := p.leases(ctx, ids)
	if err != nil {
		return err
	}
	for _, r := range all {
		if p.over() {
			return nil
		}
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

// assignAll adds work items while the requirement's loop says so. What has expired meanwhile is ended before
// each: an expired lease does not count. What waits in the queue is sent again first, if need be.
func (p *pass) assignAll(ctx context.Context) error {
	for first := true; !p.over(); first = false {
		err := p.endDue(ctx)
		if err != nil {
			return err
		}
		waiting, err := p.waiting(ctx)
		if err == nil && first {
			err = p.resend(ctx, waiting)
		}
		if err != nil || p.paused {
			return err
		}
		present, err := p.Present(ctx, p.project)
		if err != nil {
			return err
		}
		_, add := Position(present, len(waiting))
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
		_, add = Position(present, len(waiting)+1)
		if !add {
			return nil
		}
	}
	return nil
}

// next makes the lease of the next work item: of the first episode, in order, that has a pair that is
// due. nil: there is none, or the time is over.
func (p *pass) next(ctx context.Context) (*leaseRow, error) {
	for !p.over() {
		first, err := p.first(ctx, ready+"#")
		var stale *lineRow
		if err == nil && (first == nil || p.walk.After < ended) { // else assign finds out whether the catalog has grown
			stale, err = p.stale(ctx)
		}
		if err != nil {
			return nil, err
		}
		switch {
		case p.paused:
			return nil, nil
		case stale != nil && (first == nil || rank(stale) < rank(first)):
			err = p.lookAt(ctx, stale, &p.walk.After)
		case first == nil:
			return nil, nil
		default:
			l, err := p.assign(ctx, first.Owner)
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

// rank is the order of an episode in the line.
func rank(r *lineRow) string {
	_, order, _ := strings.Cut(r.SK, "#")
	return order
}

// first is the first row of the line from a place of one class on, nil if there is none.
func (p *pass) first(ctx context.Context, from string) (*lineRow, error) {
	var rows []lineRow
	_, err := p.Table.Page(ctx, table.Query{PK: linePK(p.project), From: from, To: class(from) + "#~", Limit: 1}, &rows)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return &rows[0], nil
}

func (p *pass) saveWalk(ctx context.Context) error {
	tx := p.Table.Begin(p.NewID())
	p.lease.Guard(tx)
	tx.InsertOrSave(p.walk)
	return tx.Commit(ctx)
}

// Behind the last places of closed and of ready episodes.
const (
	ended   = closed + "#~"
	counted = ready + "#~"
)

// stale is the first closed episode that was not looked at since the catalog grew, nil if there is none.
func (p *pass) stale(ctx context.Context) (*lineRow, error) {
	row, err := p.projectRow(ctx, p.project)
	if err != nil {
		return nil, err
	}
	p.see(row)
	if p.walk.After >= ended {
		return nil, nil
	}
	r, err := p.first(ctx, p.walk.After+"!") // the next place
	if err == nil && r == nil {
		p.walk.After, p.moved = ended, true
	}
	return r, err
}

// decide decides the place of an episode by the catalog as it is now, and counts its pairs.
func (s *Store) decide(ctx context.Context, project, key string) error {
	return s.change(ctx, want{project: project, episode: key}, By{}, func(*change) error { return nil })
}

// lookAt decides the place of an episode of the line, and notes how far a walk is.
func (p *pass) lookAt(ctx context.Context, r *lineRow, walked *string) error {
	err := p.decide(ctx, p.project, r.Owner)
	if err != nil {
		return err
	}
	p.done.Looked++
	p.moved, *walked = true, r.SK
	return nil
}

// settled is how long after a change of a clip no transaction runs any more that was decided before: more
// than the time-out of a function.
const settled = 5 * time.Minute

// uncounted is the first episode whose pairs are to be counted again, nil if there is none.
func (p *pass) uncounted(ctx context.Context) (*lineRow, error) {
	if p.walk.Recount < p.recount && p.now() >= p.recount+settled.Milliseconds() {
		p.walk.Recount, p.walk.Counted, p.moved = p.recount, ready+"#", true
		if p.walk.Catalog < p.shrunk {
			p.walk.Counted = closed + "#"
		}
	}
	for p.walk.Counted != "" && p.walk.Counted < counted {
		r, err := p.first(ctx, p.walk.Counted+"!")
		if err != nil || r != nil {
			return r, err
		}
		p.moved = true
		p.walk.Counted = map[string]string{closed: ready + "#", ready: counted}[class(p.walk.Counted)]
	}
	return nil, nil
}

// lookMost bounds the episodes that one pass looks at after its assignments.
const lookMost = 200

// look looks at episodes in the background: first at closed ones, then at those to be counted again.
func (p *pass) look(ctx context.Context) error {
	for range lookMost {
		walked := &p.walk.After
		r, err := p.stale(ctx)
		if err == nil && r == nil {
			walked = &p.walk.Counted
			r, err = p.uncounted(ctx)
		}
		if err != nil || r == nil || p.over() {
			return err
		}
		err = p.lookAt(ctx, r, walked)
		if err != nil {
			return err
		}
	}
	p.done.More = true
	return nil
}
