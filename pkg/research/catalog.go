package research

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/tidwall/btree"

	"archivist/pkg/fault"
	"archivist/pkg/table"
)

// catalogRow is a clip in the catalog of its project, under the number of its last change. So a process
// that knows the catalog of some number reads only what has changed since.
type catalogRow struct {
	table.Head
	Owner  string `dynamo:"owned_by"` // the clip's key
	Number uint32 `dynamo:"clip_no"`
	Order  string `dynamo:"clip_order"`
	Live   bool   `dynamo:"live"`
}

func catalogKey(project string, catalog int64) table.Key {
	return table.Key{PK: "CLIPS#" + project, SK: fmt.Sprintf("%012d", catalog)}
}

// listed is a clip in a catalog.
type listed struct {
	number uint32
	order  string // ends with the clip's key
	live   bool
}

func (l listed) key() string { return l.order[strings.LastIndexByte(l.order, '#')+1:] }

// catalog is the clips of a project as of one number. It is never changed once it is kept: the next one is a
// copy, which shares all that is the same. So an import, which changes the catalog with each clip, costs as
// much for each.
type catalog struct {
	number int64
	clips  *btree.Map[uint32, listed] // all, by their numbers
	order  *btree.Map[string, listed] // those that are live, in order
	live   *roaring.Bitmap            // their numbers
}

func newCatalog() *catalog {
	return &catalog{clips: btree.NewMap[uint32, listed](0), order: btree.NewMap[string, listed](0), live: roaring.New()}
}

// copy returns a catalog that may be changed. No two may be made of one at the same time.
func (c *catalog) copy() *catalog {
	return &catalog{c.number, c.clips.Copy(), c.order.Copy(), c.live.Clone()} // the numbers are at most 16 KiB
}

// set puts a clip into the catalog as it is now.
func (c *catalog) set(l listed) {
	was, ok := c.clips.Set(l.number, l)
	if ok {
		c.order.Delete(was.order)
		c.live.Remove(was.number)
	}
	if l.live {
		c.order.Set(l.order, l)
		c.live.Add(l.number)
	}
}

// from are the clips that are live, in order, from a place on.
func (c *catalog) from(order string) iter.Seq[listed] {
	return func(yield func(listed) bool) {
		c.order.Ascend(order, func(_ string, l listed) bool { return yield(l) })
	}
}

// due are the first clips, in order, that are not among those taken, at most n.
func (c *catalog) due(taken *roaring.Bitmap, n int) (found []listed) {
	if c.live.AndCardinality(taken) == c.live.GetCardinality() {
		return nil
	}
	for l := range c.from("") {
		if len(found) == n {
			break
		}
		if !taken.Contains(l.number) {
			found = append(found, l)
		}
	}
	return found
}

// load returns the row of a project and its catalog as that row says it is. A clip that changes moves in the
// catalog: what was read is complete if the project's row says the same afterwards.
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

// readClips reads the clips that have changed from one number on, up to the project's.
func (s *Store) readClips(ctx context.Context, p *projectRow, from int64, c *catalog) error {
	if from > p.Catalog {
		return nil
	}
	q := table.Query{PK: "CLIPS#" + p.Name, From: catalogKey("", from).SK, To: catalogKey("", p.Catalog).SK,
		Limit: 5000}
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

// keep keeps a catalog, unless a newer one is kept.
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
