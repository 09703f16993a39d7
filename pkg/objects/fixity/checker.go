package fixity

import (
	"context"
	"time"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/objects/ocfl"
)

// Limits bound what checks read.
type Limits struct {
	Call int64 // bytes of one call
	Day  int64 // bytes of a day (UTC), of all calls together
}

// DefaultLimits: a call of some minutes reads less than 32 GiB. 1 TiB a day is 90 TiB in a quarter.
var DefaultLimits = Limits{Call: 32 << 30, Day: 1 << 40}

// Location is where the files are that are checked.
type Location string

// Locations. Their texts are sort keys of rows.
const (
	InStorage Location = "STATE"
	InCopy    Location = "COPY" // the second storage root
)

// Checker checks objects.
type Checker struct {
	Table  *table.Table
	NewID  func() string
	Now    func() time.Time
	At     Location
	Root   ocfl.Root // of that location
	Limits Limits

	// State is a text that changes when other work has changed the files of an object, and an
	// Unavailable while it does: then what a check has found is thrown away. nil: such work is told
	// apart by its keys.
	State func(ctx context.Context, ark string) (string, error)
}

// state is an object's row. Last stays while the next check runs, so that there is always a result
// to show.
type state struct {
	table.Head
	ARK  string `dynamo:"ark"`
	Last Result `dynamo:"last_check"`
	Run  *run   `dynamo:"in_progress,omitempty"`
}

// run is a check in progress: the next file, and what was found. All of it is saved at the end of
// each call, so its size is bounded.
type run struct {
	Result
	Started int64  `dynamo:"started_ms"`
	State   string `dynamo:"files_state,omitempty"` // what Checker.State was then
	Part    string `dynamo:"next_part"`             // of the object
	Number  int    `dynamo:"next_version"`          // of the next inventory
	Place   place  `dynamo:"next_place"`            // of the next content
	Path    int    `dynamo:"next_path"`             // of that content
	Key     string `dynamo:"next_key,omitempty"`    // the last key of the list that was compared
	File    *Part  `dynamo:"next_file,omitempty"`
	Failing int64  `dynamo:"failing_ms,omitempty"` // since when S3 does not deliver the next file
}

// place is an ocfl.Place.
type place struct {
	ETag   string `dynamo:"etag,omitempty"`
	At     int64  `dynamo:"at_byte,omitempty"`
	Digest string `dynamo:"digest,omitempty"`
}

func (l Location) key(ark string) table.Key { return table.Key{PK: "FIXITY#" + ark, SK: string(l)} }

// load reads the row of an object, or makes that of one that was never checked.
func (c *Checker) load(ctx context.Context, ark string) (*state, error) {
	s := &state{ARK: ark}
	key := c.At.key(ark)
	s.PK, s.SK = key.PK, key.SK
	err := c.Table.Get(ctx, s.Key(), s)
	if fault.Is(err, fault.NotFound) {
		err = nil
	}
	return s, err
}

// save writes the row. A Stale becomes an Unavailable: another call is checking this object. What
// this call has found is lost then.
func (c *Checker) save(ctx context.Context, s *state) error {
	tx := c.Table.Begin(c.NewID())
	tx.InsertOrSave(s)
	err := tx.Commit(ctx)
	if fault.Is(err, fault.Stale) {
		return fault.New(fault.Unavailable, "fixity: another call checks %s: %w", s.ARK, err)
	}
	return err
}
