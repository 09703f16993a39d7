package research

import (
	"context"
	"strings"

	"archivist/pkg/kernel/table"
)

// catalog checks that the clips of a project have numbers of their own. It reads the whole catalog,
// once for each project. Two clips with one number cannot be repaired: nobody knows whose results
// the bitmaps have.
func (x *exam) catalog(name string) error {
	seen := map[uint32]string{}
	q := table.Query{PK: catalogKey(name, 0).PK, Limit: 5000}
	for {
		var rows []catalogRow
		next, err := x.Table.Page(x.ctx, q, &rows)
		if err != nil {
			return err
		}

		for _, r := range rows {
			if other := seen[r.Number]; other != "" && other != r.Owner {
				x.add(ruleCatalog, nil, "the clips %s and %s both have the number %d", other,
					r.Owner, r.Number)
			}
			seen[r.Number] = r.Owner
		}

		if next == "" {
			return nil
		}

		q.Cursor = next
	}
}

// listed checks that a row of the catalog is that of its clip. A second row, at another number than
// the clip says, is removed.
func (x *exam) listed(project string) error {
	var row catalogRow
	err := x.Decode(&row)
	if err != nil {
		return err
	}

	c, err := x.clipRow(x.ctx, project, row.Owner)
	switch {
	case err != nil:
		return err
	case c.Rev == 0:
		x.add(ruleCatalog, nil, "its clip %s has no row", row.Owner)
	case catalogKey(project, c.Listed) != x.Key:
		x.add(ruleCatalog, x.Removing(), "its clip %s is at %d of the catalog", row.Owner, c.Listed)
	}
	return nil
}

// clip checks that a clip has its row in the catalog, and in the line if it is deferred. id is the
// project, a slash, and the key.
func (x *exam) clip(id string) error {
	project, key, _ := strings.Cut(id, "/")
	c, err := x.clipRow(x.ctx, project, key)
	if err != nil || c.Rev == 0 {
		return err
	}

	p, err := x.project(project)
	if err != nil || p == nil {
		return err
	}

	if c.Clip == 0 || int64(c.Clip) > p.Numbers {
		x.add(ruleCatalog, nil, "it has the number %d; the project has given %d", c.Clip, p.Numbers)
	}

	x.away(c.Head, want{project: project, clip: key}, &c.media)
	err = x.at(&c.Head, project, key, c.places())
	if err != nil {
		return err
	}
	return x.catalogRow(c)
}

// catalogRow checks the row of a clip in the catalog. One that is missing is made where the clip
// says that it is; one with another order or state gets a new number, so that processes see it.
func (x *exam) catalogRow(c *clipRow) error {
	k := catalogKey(c.Project, c.Listed)
	var row catalogRow
	absent, err := x.absent(k, &row)
	if err != nil {
		return err
	}

	should := catalogRow{
		Head:   row.Head,
		Owner:  c.Name,
		Number: c.Clip,
		Order:  c.media.order(),
		Live:   c.media.live(),
	}

	switch {
	case absent:
		should.Head = newHead(k)
		x.add(ruleCatalog, x.Making(&c.Head, func(tx *table.Tx) { tx.Insert(&should) }),
			"its row %d in the catalog is missing", c.Listed)
	case row.Owner != c.Name || row.Number != c.Clip:
		x.add(ruleCatalog, nil,
			"its row %d in the catalog is of the clip %s with the number %d; it has the number %d",
			c.Listed, row.Owner, row.Number, c.Clip)
	case row != should:
		x.add(ruleCatalog,
			func(ctx context.Context) error { return x.relist(ctx, c.Project, c.Name) },
			"its row %d in the catalog has another order or state", c.Listed)
	}
	return nil
}

// relist gives a clip a new row in the catalog: processes that know the present one do not read it
// again.
func (s *Store) relist(ctx context.Context, project, key string) error {
	c := &change{ctx: ctx, s: s, tx: s.Table.Begin(s.NewID()), now: s.now()}
	err := c.read(want{project: project, clip: key})
	if err != nil {
		return err
	}
	c.list(listed{c.clip.Clip, c.clip.media.order(), c.clip.media.live()})
	c.put(c.clip, c.clip.Rev)
	return c.tx.Commit(ctx)
}
