package research

import (
	"context"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// load returns the row of a project and its catalog as that row says it is. A clip that changes
// moves in the catalog, so a read that runs meanwhile can miss it at both places: what was read is
// complete if the project's row says the same afterwards, and the number of clips is right.
// Otherwise the changes since are read, too.
//
// It returns a NotFound if there is no such project, and a Stale if the clips keep changing, or if
// the catalog is damaged. The catalog is shared by all callers: they do not change it.
func (s *Store) load(ctx context.Context, name string) (*projectRow, *catalog, error) {
	s.mu.Lock()
	known := s.catalogs[name]
	s.mu.Unlock()
	p, err := s.projectRow(ctx, name)
	if err != nil {
		return nil, nil, err
	}

	if known != nil && known.number == p.Catalog {
		return p, known, nil
	}

	// A kept catalog that is newer than the row belongs to a read that overtook this one: all is
	// read anew.
	c, from := newCatalog(), int64(1)
	if known != nil && known.number < p.Catalog {
		s.mu.Lock()
		c, from = known.copy(), known.number+1
		s.mu.Unlock()
	}

	for range maxTries {
		err = s.readClips(ctx, p, from, c)
		if err != nil {
			return nil, nil, err
		}

		from = p.Catalog + 1
		p, err = s.projectRow(ctx, name)
		if err != nil {
			return nil, nil, err
		}

		if p.Catalog == from-1 && int64(c.clips.Len()) == p.Numbers {
			c.number = p.Catalog
			s.keep(name, c)
			return p, c, nil
		}
	}
	return nil, nil, fault.New(fault.Stale, "the clips of %s are being changed", name)
}

// readClips reads the clips that have changed from one number on, up to the project's, into a
// catalog. It changes the catalog that it is given also if it fails.
func (s *Store) readClips(ctx context.Context, p *projectRow, from int64, c *catalog) error {
	if from > p.Catalog {
		return nil
	}

	q := table.Query{
		PK:    "CLIPS#" + p.Name,
		From:  catalogKey("", from).SK,
		To:    catalogKey("", p.Catalog).SK,
		Limit: 5000,
	}

	for {
		var page []catalogRow
		next, err := s.Table.Page(ctx, q, &page)
		if err != nil {
			return err
		}

		for _, r := range page {
			c.set(listed{r.Number, r.Order, r.Live})
		}

		if next == "" {
			return nil
		}

		q.Cursor = next
	}
}

// keep keeps a catalog for the next load of this process, unless a newer one is kept.
func (s *Store) keep(name string, c *catalog) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.catalogs == nil {
		s.catalogs = map[string]*catalog{}
	}
	if k := s.catalogs[name]; k == nil || k.number < c.number {
		s.catalogs[name] = c
	}
}
