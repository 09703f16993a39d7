package research

import (
	"context"
	"time"

	"archivist/pkg/events/event"
	"archivist/pkg/kernel/definition"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/registry"
	"archivist/pkg/kernel/table"
)

// A researcher whose problems nobody else has is paused for a while: its network, its permissions or its disk can be
// the cause, and each of its problems defers a recording for everybody. What it has reported is kept, and what it has
// at hand goes on.

const (
	// problemsInRow is how many problems in a row, without a result between them, pause a researcher. Those of
	// recordings with which another one has had a problem, too, do not count.
	problemsInRow = 3

	// conductDays is how long the row of a researcher is kept after its newest change.
	conductDays = 7
)

// Pause is why a researcher gets no work items.
type Pause struct {
	Researcher string
	Until      int64  // milliseconds since 1970
	Reason     string // of its last problem
}

// conductRow counts the problems of a researcher. It is apart from its presence, which ends with each Leave.
type conductRow struct {
	table.Head
	Name   string `dynamo:"researcher"`
	InRow  int    `dynamo:"in_row_n"`
	Pauses int    `dynamo:"pauses_n"`         // in a row: each is longer
	Until  int64  `dynamo:"until_ms"`         // the end of the newest one, 0: there was none
	Reason string `dynamo:"reason,omitempty"` // of the newest problem

	Requests registry.Requests `dynamo:"requests,omitempty"`
}

// conductPK is the partition of the conduct of the researchers of a project.
func conductPK(project string) string { return "RESEARCHCONDUCT#" + project }

// conductKey is the key of the conduct of a researcher.
func conductKey(project, name string) table.Key { return table.Key{PK: conductPK(project), SK: name} }

// judge counts a report for or against its researcher. The report is stored already, so what cannot be counted is only
// logged; a crash before it loses the count of one report.
func (s *Store) judge(ctx context.Context, r *Report, done Recording, known *conductRow) {
	if !done.alone && (r.Problem != nil || r.Sequence == 0 || known.InRow == 0) {
		return
	}

	err := s.conduct(ctx, r.Project, r.Researcher, func(row *conductRow) string {
		if !done.alone {
			row.InRow, row.Pauses = 0, 0
			return ""
		}

		row.InRow, row.Reason = row.InRow+1, r.Problem.Reason
		if row.InRow < problemsInRow {
			return ""
		}

		row.Pauses++
		row.Until = s.now() + deferral(min(row.Pauses, 6))
		row.InRow = problemsInRow - 1 // the next one pauses it again
		return pausedEvent
	}, By{Actor: assigner, Component: assigner, Reason: problemText(r.Problem)})
	if err != nil {
		s.warn("the conduct of a researcher was not counted", "researcher", r.Researcher, "error", err)
	}
}

// problemText is the reason of a problem, "" for none.
func problemText(p *Problem) string {
	if p == nil {
		return ""
	}
	return p.Reason
}

// conduct changes what is known of a researcher, with an event of the project if f names one.
func (s *Store) conduct(ctx context.Context, project, name string, f func(*conductRow) (eventType string),
	by By) (err error) {
	return s.Table.Again(ctx, "researcher "+name, func() error { return s.tryConduct(ctx, project, name, f, by) })
}

// tryConduct is one try of conduct. A Stale means that another change was first.
func (s *Store) tryConduct(ctx context.Context, project, name string, f func(*conductRow) string, by By) error {
	k := conductKey(project, name)
	row := &conductRow{Head: newHead(k), Name: name}
	all, err := s.read(ctx, projectKey(project), k)
	if err != nil {
		return err
	}

	p, err := all.project(project)
	if err != nil {
		return err
	}

	if err := all.decode(k, row); err != nil {
		return err
	}

	eventType := f(row)
	row.ExpiresAt = max(s.now(), row.Until)/1000 + conductDays*24*3600
	tx := s.Table.Begin(s.NewID())
	tx.InsertOrSave(row)
	if eventType == "" {
		return tx.Commit(ctx)
	}

	p.Number++
	tx.Save(p)
	err = event.Append(tx, subject(event.ResearchProject, project), p.Number, event.New{
		Type:      eventType,
		Time:      s.now(),
		Actor:     by.Actor,
		Component: by.Component,
		Detail:    Conduct{Researcher: name, Until: row.Until, Reason: by.Reason},
	})
	if err != nil {
		return err
	}

	if eventType == pausedEvent {
		tx.OnCommit(func() { s.count(MetricPaused, 1) })
	}
	return tx.Commit(ctx)
}

// pausedEvent says that a researcher gets no work items for a while.
const pausedEvent = "project.researcher-paused"

// Pauses are the researchers of a project that are paused now, by name.
func (s *Store) Pauses(ctx context.Context, project string) (all []Pause, err error) {
	q := table.Query{PK: conductPK(project), Limit: 1000}
	for {
		var rows []conductRow
		next, err := s.Table.Page(ctx, q, &rows)
		if err != nil {
			return nil, err
		}

		for _, r := range rows {
			if s.now() < r.Until {
				all = append(all, Pause{r.Name, r.Until, r.Reason})
			}
		}

		if next == "" {
			return all, nil
		}
		q.Cursor = next
	}
}

// Admit returns a Held if a researcher is paused: it gets no work items. Every way to one asks it.
func (s *Store) Admit(ctx context.Context, project, name string) error {
	var row conductRow
	err := s.Table.Get(ctx, conductKey(project, name), &row)
	if fault.Is(err, fault.NotFound) {
		return nil
	}

	if err != nil || s.now() >= row.Until {
		return err
	}
	return fault.New(fault.Held, "the researcher %s is paused until %s, since others do not have its problems; the "+
		"last one: %s. See what is wrong with it; archivist research resume %s --researcher %s --reason TEXT ends the "+
		"pause", name, time.UnixMilli(row.Until).UTC().Format(time.RFC3339), definition.Clip(row.Reason, 200), project,
		name)
}

// ResumeResearcher ends the pause of a researcher. It is a Conflict if it is not paused, an Invalid without a reason.
// The same request again changes nothing.
func (s *Store) ResumeResearcher(ctx context.Context, project, name string, by By) error {
	err := by.Check()
	if err != nil {
		return err
	}

	var row conductRow
	err = s.Table.Get(ctx, conductKey(project, name), &row)
	if done, used := row.Requests.Done(by); err == nil && (done || used != nil) {
		return used
	}
	if fault.Is(err, fault.NotFound) || err == nil && s.now() >= row.Until {
		return fault.New(fault.Conflict, "the researcher %q is not paused", definition.Clip(name, 100))
	}

	if err != nil {
		return err
	}

	err = s.conduct(ctx, project, name, func(row *conductRow) string {
		row.InRow, row.Pauses, row.Until, row.Requests = 0, 0, 0, row.Requests.With(by)
		return "project.researcher-resumed"
	}, by)
	if err != nil {
		return err
	}
	s.wake(ctx, project)
	return nil
}
