// Package replica keeps a second copy of each stored object in another bucket, and restores files of
// the storage root from there.
//
// The copy is a storage root of its own: it can be read and validated without this system. The files
// of an object are copied under the same keys, each is read back and its digest compared, and only
// then the root inventory follows, and last the declaration. So what is copied in part is not part of
// an object. A copy takes as many calls as it needs.
//
// A repair restores a file of one root from the other. It is reviewed: [Replica.Propose] and
// [Replica.Advance] make a plan, a person confirms it by its token ([Replica.Confirm]), and Advance
// restores the file. A file whose digest is right is never
// replaced, and the damaged bytes are kept.
//
//	REPLICA#{ark}  STATE         the last copy of an object, and the one in progress
//	REPLICA#{ark}  REPAIR#{id}   a repair
//	quarantine/{id}/{key}        the damaged file, in the work bucket
//	replication/{digest}.json    the state of a large copy, in the work bucket
package replica

import (
	"context"
	"errors"
	"time"

	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/objects/fixity"
	"archivist/pkg/objects/inventory"
	"archivist/pkg/objects/ocfl"
)

// Replica copies objects to a second storage root, and repairs from it.
type Replica struct {
	Table     *table.Table
	NewID     func() string
	Now       func() time.Time
	Inventory inventory.Store
	Root      ocfl.Root     // the storage root; Root.Work has the quarantine and the state of copies
	To        bucket.Bucket // of the second storage root
}

// Result is the last complete copy of an object.
type Result struct {
	Version int    `dynamo:"head_version" json:"version"`
	Digest  string `dynamo:"inventory_digest" json:"inventoryDigest"`
	At      int64  `dynamo:"copied_ms" json:"copied"` // milliseconds since 1970
	Files   int    `dynamo:"files" json:"files"`      // that were copied and compared
	Bytes   int64  `dynamo:"bytes" json:"bytes"`      // that were read back
}

// state is an object's row. Last stays while the next copy is made.
type state struct {
	table.Head
	ARK  string `dynamo:"ark"`
	Last Result `dynamo:"last_copy"`
	Run  *run   `dynamo:"in_progress,omitempty"`
}

// run is a copy in progress: of which state of the object, and its next file. It is thrown away if
// the object gets another version meanwhile.
type run struct {
	Result
	From   int          `dynamo:"copied_before"` // the newest version that the copy had
	Number int          `dynamo:"next_version"`  // of the next inventory
	Place  place        `dynamo:"next_place"`    // of the next content
	Path   int          `dynamo:"next_path"`     // of that content
	File   *fixity.Part `dynamo:"next_file,omitempty"`
}

// place is an ocfl.Place.
type place struct {
	ETag   string `dynamo:"etag,omitempty"`
	At     int64  `dynamo:"at_byte,omitempty"`
	Digest string `dynamo:"digest,omitempty"`
}

// load reads the row of an object, or makes that of one that was never copied.
func (r *Replica) load(ctx context.Context, ark string) (*state, error) {
	s := &state{ARK: ark}
	s.PK, s.SK = stateKey(ark).PK, stateKey(ark).SK
	err := r.Table.Get(ctx, s.Key(), s)
	if fault.Is(err, fault.NotFound) {
		err = nil
	}
	return s, err
}

func partition(ark string) string { return "REPLICA#" + ark }

func stateKey(ark string) table.Key { return table.Key{PK: partition(ark), SK: "STATE"} }

// save writes a row. A Stale becomes an Unavailable: another call is working on this object.
func (r *Replica) save(ctx context.Context, row table.Row, isNew bool) error {
	tx := r.Table.Begin(r.NewID())
	if isNew {
		tx.Insert(row)
	} else {
		tx.Save(row)
	}

	err := tx.Commit(ctx)
	if fault.Is(err, fault.Stale) {
		return fault.New(fault.Unavailable,
			"replica: another call works on the same object: %w", err)
	}
	return err
}

// Last returns the last copy of an object, without a version if there is none.
func (r *Replica) Last(ctx context.Context, ark string) (Result, error) {
	s, err := r.load(ctx, ark)
	return s.Last, err
}

// LastCopies returns the last copy of each object that has one. Others are left out.
func LastCopies(ctx context.Context, t *table.Table, arks ...string) (map[string]Result, error) {
	var keys []table.Key
	for _, ark := range arks {
		keys = append(keys, stateKey(ark))
	}

	rows, err := t.Many(ctx, keys)
	if err != nil {
		return nil, err
	}

	last := map[string]Result{}
	for _, raw := range rows {
		var s state
		if err := raw.Decode(&s); err != nil {
			return nil, err
		}
		if s.Last.Version > 0 {
			last[s.ARK] = s.Last
		}
	}
	return last, nil
}

// SecondRoot is the second storage root. On record of an object there is its last complete copy.
func (r *Replica) SecondRoot() ocfl.Root {
	// The row of the copy is outside of both roots. A copy that was put back to an earlier state
	// agrees with itself, and only this tells.
	recorded := func(ctx context.Context, ark string) (head int, digest string, err error) {
		last, err := r.Last(ctx, ark)
		return last.Version, last.Digest, err
	}
	return ocfl.Root{Bucket: r.To, Work: r.Root.Work, Recorded: recorded}
}

// ErrNotCopied means that an object has no complete copy, or that one is being made.
var ErrNotCopied = errors.New("it is not copied yet, or is being copied")

// Copied is the digest of the inventory of the last copy of an object, while no other is being made: then it
// is an Unavailable with ErrNotCopied.
func (r *Replica) Copied(ctx context.Context, ark string) (digest string, err error) {
	s, err := r.load(ctx, ark)
	if err == nil && (s.Run != nil || s.Last.Version == 0) {
		err = fault.New(fault.Unavailable, "%s: %w", ark, ErrNotCopied)
	}
	return s.Last.Digest, err
}
