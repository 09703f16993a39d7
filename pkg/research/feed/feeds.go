package feed

import (
	"cmp"
	"context"
	"slices"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// Feeds are the feeds of a project, as they are configured, with what is known of each, in the
// order of their sources. One that has no row yet is there, too. It returns a NotFound if there is
// no such project.
func (l *Looker) Feeds(ctx context.Context, project string) ([]State, error) {
	p, err := l.Research.Project(ctx, project)
	if err != nil {
		return nil, err
	}

	rows, err := l.rows(ctx, project)
	if err != nil {
		return nil, err
	}

	states := []State{}
	for _, f := range p.Feeds {
		r := newRow(project, keyOf(f), f) // it stands for a row that no tick has made yet
		for _, found := range rows {
			if found.Name == r.Name {
				r, found.feed = found, f
			}
		}

		s, err := r.state()
		if err != nil {
			return nil, err
		}

		if !r.Live(l.Now()) {
			s.LookingBy = ""
		}

		states = append(states, s)
	}

	slices.SortStableFunc(states, func(a, b State) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Kind, b.Kind),
			cmp.Compare(a.URL, b.URL))
	})

	return states, nil
}

// Soon makes a feed due, whatever it waits for: the next tick looks at it. It returns a NotFound if
// there is no row of such a feed, a Conflict if it is being looked at, and a Stale if a look has
// begun meanwhile.
func (l *Looker) Soon(ctx context.Context, project, key string) error {
	r := &row{}
	err := l.Table.Get(ctx, table.Key{PK: partition(project), SK: prefix + key}, r)
	if fault.Is(err, fault.NotFound) {
		return fault.New(fault.NotFound, "the project %s has no feed %s that was looked at",
			clip(project), clip(key))
	}

	if err != nil {
		return err
	}

	if r.Live(l.Now()) {
		return fault.New(fault.Conflict, "the feed %s is being looked at", clip(key))
	}

	r.Wait = 1 // a time that has long passed
	tx := l.Table.Begin(l.NewID())
	tx.Save(r)
	return tx.Commit(ctx)
}
