package research

import (
	"fmt"
	"iter"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/tidwall/btree"

	"archivist/pkg/kernel/table"
)

// catalogRow is a clip in the catalog of its project, under the number of its last change. So a
// process that knows the catalog of some number reads only what has changed since.
type catalogRow struct {
	table.Head
	Owner  string `dynamo:"owned_by"`   // the clip's key
	Number uint32 `dynamo:"clip_no"`    // as clipRow.Clip
	Order  string `dynamo:"clip_order"` // Media.order
	Live   bool   `dynamo:"live"`       // Media.live
}

// catalogKey is the key of the row under a number of the catalog. A clip has one row: when it
// changes, the row under its last number is removed and one under the next number is written, in
// one transaction. So there are as many rows as clips, and gaps between the numbers.
func catalogKey(project string, catalog int64) table.Key {
	return table.Key{PK: "CLIPS#" + project, SK: fmt.Sprintf("%012d", catalog)}
}

// listed is a clip in a catalog: all that selection needs to know of it.
type listed struct {
	number uint32 // in bitmaps
	order  string // ends with the clip's key
	live   bool
}

// key is the clip's key, the last part of its order.
func (l listed) key() string { return l.order[strings.LastIndexByte(l.order, '#')+1:] }

// catalog is the clips of a project as of one number. It is never changed once it is kept: the next
// one is a copy, which shares all that is the same. So an import, which changes the catalog with
// each clip, costs as much for each.
type catalog struct {
	number int64
	clips  *btree.Map[uint32, listed] // all, by their numbers
	order  *btree.Map[string, listed] // those that are live, in order
	live   *roaring.Bitmap            // their numbers
}

// newCatalog returns the catalog of a project without clips, which may be changed.
func newCatalog() *catalog {
	return &catalog{
		clips: btree.NewMap[uint32, listed](0),
		order: btree.NewMap[string, listed](0),
		live:  roaring.New(),
	}
}

// copy returns a catalog that may be changed. No two may be made of one at the same time: to copy a
// tree writes a mark into it, so the caller holds a lock.
func (c *catalog) copy() *catalog {
	// The trees share all nodes; the bitmap, which is copied, has at most 16 KiB.
	return &catalog{c.number, c.clips.Copy(), c.order.Copy(), c.live.Clone()}
}

// set puts a clip into the catalog as it is now. What it was before is taken out of the order
// first.
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

// numbers are those of all clips, by their keys.
func (c *catalog) numbers() map[string]uint32 {
	all := make(map[string]uint32, c.clips.Len())
	for _, l := range c.clips.Values() {
		all[l.key()] = l.number
	}
	return all
}

// from are the clips that are live, in order, from a place on; "" is the first.
func (c *catalog) from(order string) iter.Seq[listed] {
	return func(yield func(listed) bool) {
		c.order.Ascend(order, func(_ string, l listed) bool { return yield(l) })
	}
}

// due are the first clips, in order, that are not among those taken, at most n. If all are taken,
// which is so for most episodes, two cardinalities say it without a walk through the clips.
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
