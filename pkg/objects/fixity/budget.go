package fixity

import (
	"context"
	"time"

	"github.com/guregu/dynamo/v2"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// day is the row of the bytes that were read on a day. A call that dies has not given back what it did
// not read: that is on the safe side. The row expires by itself (TTL).
type day struct {
	table.Head
	Bytes int64 `dynamo:"bytes_read"`
}

// kept is how long the row of a day is kept.
const kept = 30 * 24 * time.Hour

// leastGrant is the least number of bytes with which a call begins. With less, a call would cost
// more requests than it is worth.
const leastGrant = 1 << 20

// atOnce is how many calls at once the bytes of a day suffice for. A call that could reserve all
// that is left would let the others wait until tomorrow.
const atOnce = 64

// grant is bytes of a day that a call may read.
type grant struct {
	day   table.Key
	bytes int64
}

// grant reserves bytes of the day for a call. Without enough it is an Unavailable.
//
// The bytes are reserved before they are read, so that calls at the same time cannot read more than
// the day has.
func (c *Checker) grant(ctx context.Context) (grant, error) {
	now := c.Now().UTC()
	g := grant{table.Key{PK: "FIXITY", SK: "DAY#" + now.Format(time.DateOnly)},
		min(c.Limits.Call, c.Limits.Day, max(c.Limits.Day/atOnce, leastGrant))}
	for least := min(leastGrant, g.bytes); ; {
		var row day
		err := c.Table.Change(ctx, g.day, c.NewID(), func(u *dynamo.Update) {
			u.Add("bytes_read", g.bytes).Set("gone", now.Add(kept).Unix()).
				If("attribute_not_exists(bytes_read) OR bytes_read <= ?", c.Limits.Day-g.bytes)
		}, &row)
		if !fault.Is(err, fault.Stale) {
			return g, err
		}

		// The row is as it is now: the rest of the day is tried, if it is enough to begin with.
		g.bytes = min(g.bytes, c.Limits.Day-row.Bytes)
		if g.bytes < least {
			return g, fault.New(fault.Unavailable,
				"fixity: the %d bytes of %s are read, or reserved by other checks; "+
					"the rest follows when some are given back, or tomorrow", c.Limits.Day,
				now.Format(time.DateOnly))
		}
	}
}

// giveBack returns what a call did not read. They go back to the day of which they were reserved,
// also after midnight.
func (c *Checker) giveBack(ctx context.Context, g grant, left int64) error {
	if left <= 0 {
		return nil
	}
	return c.Table.Change(ctx, g.day, c.NewID(),
		func(u *dynamo.Update) { u.Add("bytes_read", -left) }, &day{})
}
