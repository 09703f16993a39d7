package revision

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"archivist/pkg/kernel/table"
	"archivist/pkg/revisions/workflow"
)

// Limits of what Status looks at.
const (
	liveOfTask = 200  // instances of a task that have not ended
	liveOfAll  = 2000 // of all tasks
)

// Status is an archive with what goes on in it. It is read row by row while things change, so its
// parts can be of different moments.
type Status struct {
	Archive
	Gap     *Gap
	Open    map[workflow.State]int // instances that have not ended
	More    bool                   // there are more of them, which were not counted
	Running []Instance             // dispatched and running, in their order
	Limit   int                    // of them at once
	Locks   []Lock                 // that are held or waited for, by name
	Due     []Due                  // schedules, by their next time
	Filling *Filling               // a back-fill that goes on
}

// Gap is a revision that was not notified, while a later one was. Times are milliseconds since
// 1970.
type Gap struct {
	Missing int64
	Behind  int64 // the first revision behind the gap
	Since   int64 // that one waits
	Looks   int64 // when the archive itself is asked, 0: never
}

// Lock is a lock of an archive.
type Lock struct {
	Name    string
	Holder  string // "" if nobody has it
	Waiting int    // without the holder, as far as they were counted
}

// Due is a schedule of a task. Next is in milliseconds since 1970.
type Due struct {
	Task string
	workflow.Schedule
	Next int64
}

// Filling is a back-fill: revisions before the first are planned, the next one and up to the last.
type Filling struct{ Next, To int64 }

// Status returns an archive with what goes on in it. One that does not exist, or that was deleted, is
// a NotFound.
func (s *Store) Status(ctx context.Context, name string) (st Status, err error) {
	a, err := s.known(ctx, name)
	if err != nil {
		return st, err
	}

	st = Status{
		Archive: a.Archive,
		Open:    map[workflow.State]int{},
		Limit:   cmp.Or(a.Settings.Running, MaxRunning),
	}

	for _, d := range a.Schedules {
		st.Due = append(st.Due, Due(d))
	}

	slices.SortStableFunc(st.Due, func(x, y Due) int { return cmp.Compare(x.Next, y.Next) })
	if a.Backfill != nil {
		st.Filling = &Filling{a.Backfill.Next, a.Backfill.To}
	}

	st.Gap, err = s.gapOf(ctx, a)
	if err != nil {
		return st, err
	}

	err = s.open(ctx, a, &st)
	if err != nil {
		return st, err
	}

	err = s.busy(ctx, a, &st)
	return st, err
}

// gapOf is the gap of an archive, nil if there is none. It is what a pass would see: the same
// function says so.
func (s *Store) gapOf(ctx context.Context, a *archiveRow) (*Gap, error) {
	p := &pass{Store: s}
	// Only reads: no lease is needed for that.
	since, err := p.gap(ctx, a)
	if err != nil || since == 0 {
		return nil, err
	}

	prefix := toPlan + "#" + a.Ref() + "#"
	g := &Gap{Missing: a.Watermark + 1, Since: since, Looks: a.look(s.Times, since)}
	q := table.Query{PK: linePK(a.Name), Prefix: prefix, Limit: 1}
	err = s.owners(ctx, q, func(r lineRow) (bool, error) {
		g.Behind = parse(r.SK[len(prefix):])
		return false, nil
	})
	return g, err
}

// open counts the instances that have not ended, by state, and those at each lock. Of a plan that
// is not complete nothing is counted. Beyond liveOfTask and liveOfAll it counts no more, and sets
// More.
func (s *Store) open(ctx context.Context, a *archiveRow, st *Status) error {
	var at []table.Key
	err := s.eachTask(ctx, a.Ref(), func(task string) error {
		n := 0
		return s.owners(ctx, table.Query{PK: livePK(a.Ref(), task)}, func(r lineRow) (bool, error) {
			if n == liveOfTask || len(at) == liveOfAll {
				st.More = true
				return false, nil
			}
			n++
			at = append(at, taskSubject(r.Owner).Key())
			return true, nil
		})
	})
	if err != nil {
		return err
	}

	rows, err := s.Table.Many(ctx, at)
	locks := map[string]int{}
	for _, raw := range rows {
		r := &instanceRow{}
		err := decode(raw, r, &r.Text, &r.Instance)
		if err != nil {
			return err
		}

		if !r.State.Over() && a.shows(a.Ref(), r.Revision) {
			st.Open[r.State]++
			if r.Lock != "" {
				locks[r.Lock]++
			}
		}
	}

	if err != nil {
		return err
	}
	return s.locks(ctx, a, st, locks)
}

// locks reads who has the locks that instances need, by name. waiting are the instances at each,
// its holder included.
func (s *Store) locks(ctx context.Context, a *archiveRow, st *Status,
	waiting map[string]int) error {
	for name, n := range waiting {
		r, err := s.lockRow(ctx, a.Ref(), name)
		if err != nil {
			return err
		}
		l := Lock{Name: name, Holder: r.Holder, Waiting: n}
		// The holder needs the lock, too, and was counted.
		if l.Holder != "" {
			l.Waiting--
		}
		st.Locks = append(st.Locks, l)
	}

	slices.SortFunc(st.Locks, func(x, y Lock) int { return strings.Compare(x.Name, y.Name) })
	return nil
}

// busy reads what is dispatched or runs, in order, at most as many as an archive can let run.
func (s *Store) busy(ctx context.Context, a *archiveRow, st *Status) error {
	return s.owners(ctx, kind(a.Name, running), func(r lineRow) (bool, error) {
		in, err := s.instanceRow(ctx, r.Owner)
		if err != nil {
			return false, err
		}

		if in.State.Started() {
			st.Running = append(st.Running, in.Instance)
		}
		return len(st.Running) < MostRunning, nil
	})
}
