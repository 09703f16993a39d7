package research

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"

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

// catalog is the clips of a project as of one number. It is never changed. What is derived of them is made
// when it is needed: an import changes the catalog with each clip, and does not need it.
type catalog struct {
	number int64
	clips  map[uint32]listed
	sorted func() []listed        // those that are live, in order
	live   func() *roaring.Bitmap // their numbers
}

func newCatalog(number int64, clips map[uint32]listed) *catalog {
	sorted := sync.OnceValue(func() (all []listed) {
		for _, l := range clips {
			if l.live {
				all = append(all, l)
			}
		}
		slices.SortFunc(all, func(a, b listed) int { return cmp.Compare(a.order, b.order) })
		return all
	})
	live := sync.OnceValue(func() *roaring.Bitmap {
		b := roaring.New()
		for _, l := range sorted() {
			b.Add(l.number)
		}
		return b
	})
	return &catalog{number: number, clips: clips, sorted: sorted, live: live}
}

// due are the first clips, in order, that are not among those taken, at most n.
func (c *catalog) due(taken *roaring.Bitmap, n int) (found []listed) {
	if c.live().AndCardinality(taken) == c.live().GetCardinality() {
		return nil
	}
	for _, l := range c.sorted() {
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
	clips, from := map[uint32]listed{}, int64(1)
	if known != nil && known.number < p.Catalog {
		clips, from = maps.Clone(known.clips), known.number+1
	}
	for range maxTries {
		err = s.readClips(ctx, p, from, clips)
		if err != nil {
			return nil, nil, err
		}
		from = p.Catalog + 1
		p, err = s.projectRow(ctx, name)
		if err != nil {
			return nil, nil, err
		}
		if p.Catalog == from-1 && int64(len(clips)) == p.Numbers {
			c := newCatalog(p.Catalog, clips)
			s.keep(name, c)
			return p, c, nil
		}
	}
	return nil, nil, fault.New(fault.Stale, "the clips of %s are being changed", name)
}

// readClips reads the clips that have changed from one number on, up to the project's.
func (s *Store) readClips(ctx context.Context, p *projectRow, from int64, clips map[uint32]listed) error {
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
			clips[r.Number] = listed{r.Number, r.Order, r.Live}
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
