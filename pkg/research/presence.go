package research

import (
	"context"
	"slices"

	"archivist/pkg/kernel/definition"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// Researcher is one that has said that it is present. Times are in milliseconds since 1970.
type Researcher struct {
	Name     string `dynamo:"researcher"` // unique in its project: two with one name count as one
	Capacity int    `dynamo:"takes_n"`    // work items at once
	Host     string `dynamo:"host,omitempty"`
	Software string `dynamo:"software,omitempty"`
	Since    int64  `dynamo:"since_ms"`
	Until    int64  `dynamo:"until_ms"` // it is absent from then on
}

// researcherRow is the presence of a researcher. it is no change of the project, so it has no
// events. The table removes it a day after its newest renewal; whether it is present is decided by
// Until alone.
type researcherRow struct {
	table.Head
	Researcher
}

// researcherKey is the key of the presence of a researcher.
func researcherKey(project, name string) table.Key {
	return table.Key{PK: "RESEARCHERS#" + project, SK: name}
}

// Heartbeat says that a researcher is present for a while, and how many work items it takes at once. It
// is said again at each renewal. The first one wakes the assigner, so that there is work soon. It
// returns an Invalid for a name, capacity, host or software that cannot be kept, and a NotFound if
// there is no such project.
func (s *Store) Heartbeat(ctx context.Context, project string, r Researcher) error {
	err := r.check()
	if err != nil {
		return err
	}

	var row researcherRow
	k := researcherKey(project, r.Name)
	all, err := s.read(ctx, projectKey(project), k)
	if err != nil {
		return err
	}

	_, err = all.project(project)
	if err != nil {
		return err
	}

	err = all.decode(k, &row)
	if err != nil {
		return err
	}

	// Since is the beginning of this presence: one that was absent for a while arrives again.
	now := s.now()
	r.Since = now
	arrives := row.Rev == 0 || row.Until <= now
	if !arrives {
		r.Since = row.Since
	}

	r.Until = now + s.Times.Presence.Milliseconds()
	row.PK, row.SK, row.Researcher, row.ExpiresAt = k.PK, k.SK, r, now/1000+24*3600
	tx := s.Table.Begin(s.NewID())
	tx.InsertOrSave(&row)
	err = tx.Commit(ctx)
	if fault.Is(err, fault.Stale) {
		return nil // the same researcher has just said so
	}

	if err != nil {
		return err
	}

	if arrives {
		s.wake(ctx, project)
	}
	return nil
}

// check returns an Invalid for what cannot be kept.
func (r *Researcher) check() error {
	switch {
	case !oneLine("researcher", r.Name, MaxResearcher):
		return fault.New(fault.Invalid, "researcher: found %q; expected a name of at most %d bytes",
			definition.Clip(r.Name, 60), MaxResearcher)
	case r.Capacity < 1 || r.Capacity > MaxWorkers:
		return fault.New(fault.Invalid, "capacity: found %d; expected 1 to %d", r.Capacity,
			MaxWorkers)
	case len(r.Host) > 200 || printable("host", r.Host) != nil || len(r.Software) > 100 ||
		printable("software", r.Software) != nil:
		return fault.New(fault.Invalid,
			"host and software: expected a line of at most 200 and 100 characters")
	}
	return nil
}

// Leave says that a researcher leaves. Its leases stay until their ends or their final reports. One
// that is not known is no error. A Stale means that it has sent a heartbeat meanwhile.
func (s *Store) Leave(ctx context.Context, project, name string) error {
	var row researcherRow
	k := researcherKey(project, name)
	err := s.Table.Get(ctx, k, &row)
	if fault.Is(err, fault.NotFound) {
		return nil
	}

	if err != nil {
		return err
	}

	tx := s.Table.Begin(s.NewID())
	tx.Remove(&row)
	return tx.Commit(ctx)
}

// Researchers lists those who are present, by name.
func (s *Store) Researchers(ctx context.Context, project string) (present []Researcher, err error) {
	q := table.Query{PK: "RESEARCHERS#" + project, Limit: 1000}
	for {
		var rows []researcherRow
		next, err := s.Table.Page(ctx, q, &rows)
		if err != nil {
			return nil, err
		}

		for _, r := range rows {
			if s.now() < r.Until {
				present = append(present, r.Researcher)
			}
		}

		if next == "" {
			return present, nil
		}

		q.Cursor = next
	}
}

// Present is the number of researchers who are present: each counts as often as it takes work
// items. It is the number of researchers of the requirement ("Checking Capacity", step 1). Those that
// are paused take none.
func (s *Store) Present(ctx context.Context, project string) (n int, err error) {
	all, err := s.takers(ctx, project)
	for _, r := range all {
		n += r.Capacity
	}
	return n, err
}

// takers are the researchers who are present and not paused.
func (s *Store) takers(ctx context.Context, project string) ([]Researcher, error) {
	all, err := s.Researchers(ctx, project)
	if err != nil || len(all) == 0 {
		return nil, err
	}

	paused, err := s.Pauses(ctx, project)
	return slices.DeleteFunc(all, func(r Researcher) bool {
		return slices.ContainsFunc(paused, func(p Pause) bool { return p.Researcher == r.Name })
	}), err
}
