package revision

import (
	"context"
	"time"

	"archivist/pkg/kernel/table"
	"archivist/pkg/revisions/workflow"
)

// define takes over the schedules of a definition at the watermark. A revision whose definition is
// invalid changes none; one that was skipped neither. A schedule that was there before, by task,
// cron and zone, keeps its next time: so frequent commits do not put off an occurrence. A new one
// fires first after now. An error is of a schedule that has no next time.
func (a *archiveRow) define(now time.Time, state, hash string, d *workflow.Definition) error {
	// Schedules run the tasks of the newest revision that has any, also if the definition is the
	// same.
	if state == Committed {
		a.Defined = a.Watermark
	}

	if state != Committed || hash == a.Definition {
		return nil
	}

	// By what decides when it fires; a change of the overlap does not matter.
	known := map[string]schedule{}
	for _, s := range a.Schedules {
		known[s.Task+"\n"+s.Cron+"\n"+s.Zone] = s
	}

	a.Definition, a.Schedules = hash, nil
	for _, t := range d.Tasks {
		for _, s := range t.Schedules {
			next := schedule{Task: t.Name, Schedule: s}
			if old, ok := known[t.Name+"\n"+s.Cron+"\n"+s.Zone]; ok {
				next.Next = old.Next
			} else {
				at, err := s.Next(now)
				if err != nil {
					return err
				}
				next.Next = millis(at)
			}

			a.Schedules = append(a.Schedules, next)
		}
	}
	return nil
}

// fire starts the tasks whose time has come: each occurrence once, and one for a stretch that was
// missed. It reports whether any was due.
func (p *pass) fire(ctx context.Context, a *archiveRow) (did bool, err error) {
	for i := range a.Schedules {
		s := &a.Schedules[i]
		if s.Next > p.now() || p.over() {
			continue
		}
		err = p.fireOne(ctx, a, s)
		if err != nil {
			return did, err
		}
		did = true
	}
	return did, nil
}

// fireOne starts a task by its schedule, and sets the next time, in one transaction: so a crash
// neither loses nor repeats an occurrence. While a run before it goes on, overlap skip starts none,
// queue one more, and replace one that supersedes all that go on. The run has the definition of the
// newest revision that has tasks.
func (p *pass) fireOne(ctx context.Context, a *archiveRow, s *schedule) error {
	goesOn, err := p.scheduled(ctx, a.Ref(), s.Task)
	if err != nil {
		return err
	}

	next, err := s.Schedule.Next(p.Now())
	if err != nil {
		return err
	}

	s.Next = millis(next)
	tx := p.Table.Begin(p.NewID())
	// With skip, an occurrence passes without a run while one before it goes on.
	if len(goesOn) == 0 || s.Overlap != workflow.Skip {
		r := request{Task: s.Task, Revision: a.Defined, Trigger: BySchedule}
		if s.Overlap == workflow.Replace {
			r.Replaces = goesOn
		}
		_, err = p.putRun(ctx, tx, a, r, By{Actor: manager})
		if err != nil {
			return err
		}
	}

	err = saveArchive(tx, a)
	if err != nil {
		return err
	}

	p.lease.Guard(tx)
	return tx.Commit(ctx)
}

// scheduled are the runs of a task by schedule that have not ended, in their order. Runs by hand
// are not among them: an overlap is only between runs of schedules.
func (s *Store) scheduled(ctx context.Context, ref, task string) (ids []string, err error) {
	err = s.owners(ctx, table.Query{PK: timedPK(ref, task)}, func(r lineRow) (bool, error) {
		ids = append(ids, r.Owner)
		return true, nil
	})
	return ids, err
}
