package replica

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"archivist/pkg/events/event"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/registry"
	"archivist/pkg/kernel/table"
	"archivist/pkg/objects/fixity"
	"archivist/pkg/objects/inventory"
	"archivist/pkg/objects/ocfl"
)

// States of a repair.
const (
	Planning  = "planning"  // both files are read
	Planned   = "planned"   // it waits for a person
	Refused   = "refused"   // there is nothing to repair, or nothing to repair it with: see Problem
	Confirmed = "confirmed" // the file is restored
	Done      = "done"      // the restored file was read back, and is right
	Failed    = "failed"    // the restored file was read back, and is wrong
)

// Repair is a repair of one file, in one of the two storage roots, from the other one: its row. Until it is
// Planned, the digests are not known. Its states go from Planning to Planned or Refused, and from
// Planned to Confirmed and to Done, Failed or Refused.
type Repair struct {
	table.Head
	Where   fixity.Location `dynamo:"repair_at,omitempty" json:"at"` // where the file is; "" = in the storage root
	ID      string          `dynamo:"repair_id" json:"id"`
	ARK     string          `dynamo:"ark" json:"object"`
	File    string          `dynamo:"file_key" json:"key"` // in both buckets
	State   string          `dynamo:"repair_state" json:"state"`
	Problem string          `dynamo:"problem,omitempty" json:"problem,omitempty"`

	// Digests (sha512): from the object's inventory; of the file, or "missing"; of that from which it is restored.
	Expected string `dynamo:"expected,omitempty" json:"expected,omitempty"`
	Found    string `dynamo:"found_digest,omitempty" json:"found,omitempty"`
	Source   string `dynamo:"copy_digest,omitempty" json:"source,omitempty"`

	Token string `dynamo:"token_id,omitempty" json:"token,omitempty"` // confirms this plan, and no other

	By          string `dynamo:"proposed_by" json:"proposedBy"`
	Reason      string `dynamo:"reason" json:"reason"`
	At          int64  `dynamo:"proposed_ms" json:"proposed"` // milliseconds since 1970
	ConfirmedBy string `dynamo:"confirmed_by,omitempty" json:"confirmedBy,omitempty"`
	ConfirmedAt int64  `dynamo:"confirmed_ms,omitempty" json:"confirmed,omitempty"`
	Quarantine  string `dynamo:"quarantine_key,omitempty" json:"quarantine,omitempty"` // in the work bucket
	EndedAt     int64  `dynamo:"ended_ms,omitempty" json:"ended,omitempty"`

	// First is the damaged file, Second that from which it is restored, Restored the first one
	// after the repair: how far each was read.
	First    fixity.Part  `dynamo:"first_part" json:"-"`
	Second   fixity.Part  `dynamo:"second_part" json:"-"`
	Restored *fixity.Part `dynamo:"restored_part,omitempty" json:"-"`
}

// missing stands for the digest of a file that is not there.
const missing = "missing"

// maxKey is the maximum length of a key, in bytes ("Naming Amazon S3 objects").
const maxKey = 1024

func repairKey(ark, id string) table.Key {
	return table.Key{PK: partition(ark), SK: "REPAIR#" + id}
}

// Repair reads a repair. A missing one is a NotFound.
func (r *Replica) Repair(ctx context.Context, ark, id string) (*Repair, error) {
	var row Repair
	err := r.Table.Get(ctx, repairKey(ark, id), &row)
	if fault.Is(err, fault.NotFound) {
		err = fault.New(fault.NotFound, "%s has no repair %s", ark, id)
	}
	return &row, err
}

// Repairs lists the repairs of an object, the oldest first, a page at a time.
//
// Ids begin with their time, so the order of the keys is that of the repairs.
func (r *Replica) Repairs(ctx context.Context, ark,
	cursor string) (rows []Repair, next string, err error) {
	next, err = r.Table.Page(ctx, table.Query{
		PK:     partition(ark),
		Prefix: "REPAIR#",
		Limit:  50,
		Cursor: cursor,
	}, &rows)
	return rows, next, err
}

// Propose begins a repair of a file at a location, which is named by its key or by its path below the
// object's. Advance makes the plan. A reason or a path that is too long is an Invalid, an object
// without a row a NotFound.
func (r *Replica) Propose(ctx context.Context, ark, file string, at fixity.Location,
	by, reason string) (*Repair, error) {
	if n := utf8.RuneCountInString(reason); n == 0 || n > registry.MaxReason {
		return nil, fault.New(fault.Invalid,
			"reason: %d characters; expected 1 to %d: the history keeps it", n,
			registry.MaxReason)
	}

	key := ocfl.Prefix(ark) + strings.TrimPrefix(file, ocfl.Prefix(ark))
	if len(key) > maxKey {
		return nil, fault.New(fault.Invalid,
			"file: %d bytes; a key has at most %d", len(key), maxKey)
	}

	if _, err := r.Inventory.Object(ctx, ark); err != nil {
		return nil, err
	}

	id := r.NewID()
	row := &Repair{
		Where:  at,
		ID:     id,
		ARK:    ark,
		File:   key,
		State:  Planning,
		By:     by,
		Reason: reason,
		At:     r.Now().UnixMilli(),
		First:  fixity.Part{Key: key},
		Second: fixity.Part{Key: key},
	}

	row.PK, row.SK = repairKey(ark, id).PK, repairKey(ark, id).SK
	return row, r.save(ctx, row, true)
}

// Advance reads the files of a repair and makes the plan, or restores the file of a confirmed one, until
// a time. If the time is over, it has saved how far it came and returns an Unavailable.
func (r *Replica) Advance(ctx context.Context, ark, id string, until time.Time) (*Repair, error) {
	row, err := r.Repair(ctx, ark, id)
	if err != nil {
		return nil, err
	}

	step := &repairing{
		Replica: r,
		Repair:  row,
		more:    func() bool { return r.Now().Before(until) && ctx.Err() == nil },
	}

	switch row.State {
	case Planning:
		err = step.plan(ctx)
	case Confirmed:
		err = step.restore(ctx)
	default:
		return row, nil
	}

	if errors.Is(err, fixity.ErrStopped) {
		err = fault.New(fault.Unavailable,
			"the repair %s is going on; the rest follows: %w", id, err)
	}

	// Also if the context has ended: the digests so far are kept.
	save, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTime)
	defer cancel()
	if saveErr := step.save(save); saveErr != nil {
		return nil, saveErr
	}
	return row, unavailable(err)
}

// Confirm lets a planned repair be done. The token is that of the plan that a person has seen.
// Another token, or another state than Planned, is a Conflict.
func (r *Replica) Confirm(ctx context.Context, ark, id, token, by string) (*Repair, error) {
	row, err := r.Repair(ctx, ark, id)
	switch {
	case err != nil:
		return nil, err
	case row.Token != "" && row.Token == token && row.State != Planned:
		return row, nil // the same request again
	case row.State != Planned:
		return nil, fault.New(fault.Conflict,
			"the repair %s is %s; only one that is %s can be confirmed", id,
			row.State, Planned)
	case row.Token != token:
		return nil, fault.New(fault.Conflict,
			"token: it is not that of the plan; read the plan again")
	}

	row.State, row.ConfirmedBy, row.ConfirmedAt = Confirmed, by, r.Now().UnixMilli()
	return row, r.save(ctx, row, false)
}

// repairing is one call's part of a repair. The row is saved at the end of the call, whatever
// happened.
type repairing struct {
	*Replica
	*Repair
	more func() bool
	note *event.New // what happened, saved together with the row
}

// side is one of the storage roots of a repair, and what it is called.
type side struct {
	bucket.Bucket
	file, name string
}

// sides are the root whose file is restored, and the one from which it is.
func (s *repairing) sides() (wrong, right side) {
	storage := side{s.Root.Bucket, "the stored file", "the storage root"}
	second := side{s.To, "the copied file", "the copy"}
	if s.Where == fixity.InCopy {
		return second, storage
	}
	return storage, second
}

// know finds out which digest the file must have, and from which file it is restored. A Conflict or
// a NotFound of it refuses the repair.
func (s *repairing) know(ctx context.Context) error {
	object, err := s.Inventory.Object(ctx, s.ARK)
	if err == nil && s.Where == fixity.InCopy {
		s.Second.Key, err = s.inCopy(ctx, object, s.File)
	}
	if err != nil {
		return err
	}
	s.Expected, err = s.expected(ctx, object, s.File)
	return err
}

// limit lets a repair read as long as there is time: it takes nothing of the bytes of a day.
func (s *repairing) limit(int64) int64 {
	if s.more() {
		return 1 << 30
	}
	return 0
}

// plan reads both files. Only if the one is wrong and the other one right there is a plan.
func (s *repairing) plan(ctx context.Context) (err error) {
	// Once for a plan, which is of the object as it is then: it is kept in the row.
	if s.Expected == "" {
		err = s.know(ctx)
		if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Conflict) {
			s.State, s.Problem = Refused, err.Error()
			return nil
		}
		if err != nil {
			return err
		}
	}

	wrong, right := s.sides()
	if s.Found == "" {
		s.Found, err = s.First.Digest(ctx, wrong.Bucket, s.Expected, s.limit)
		if fault.Is(err, fault.NotFound) {
			s.Found, s.First, err = missing, fixity.Part{Key: s.File}, nil // perhaps a part was read
		}
		if err != nil {
			return err
		}
	}

	if s.Found == s.Expected {
		s.State, s.Problem = Refused, wrong.file+" is right: there is nothing to repair"
		return nil
	}

	s.Source, err = s.Second.Digest(ctx, right.Bucket, s.Expected, s.limit)
	switch {
	case fault.Is(err, fault.NotFound):
		s.State, s.Problem = Refused, right.name+" does not have the file"
		return nil
	case err != nil:
		return err
	case s.Source != s.Expected:
		s.State, s.Problem = Refused, right.file+" is damaged too: it is not as the inventory says"
		return nil
	}

	return s.decide(ctx)
}

// decide ends a plan whose one file is wrong and the other one right. It asks for newer versions last: what was
// committed before the file was read is told from damage, and what is committed later is another file than the one
// that the plan replaces.
func (s *repairing) decide(ctx context.Context) error {
	newer, err := s.newer(ctx)
	if err != nil {
		return err
	}

	s.State, s.Problem = Refused, newer
	if newer == "" {
		s.State, s.Token = Planned, s.NewID()
	}
	return nil
}

// restore restores the file: the damaged one is kept, the copy takes its place and is read back. Each
// step is repeated after a crash without harm.
func (s *repairing) restore(ctx context.Context) error {
	if s.Restored == nil {
		if err := s.replace(ctx); err != nil {
			if fault.Is(err, fault.Stale) {
				s.State, s.Problem, s.Token = Refused,
					"a file was replaced since the plan was made: make a new one", ""
				return nil
			}
			return err
		}
		s.Restored = &fixity.Part{Key: s.File}
	}

	wrong, _ := s.sides()
	// The file is read from the bucket again: only its digest shows that the repair was a success.
	digest, err := s.Restored.Digest(ctx, wrong.Bucket, s.Expected, s.limit)
	if fault.Is(err, fault.NotFound) {
		digest, err = missing, nil
	}

	if err != nil {
		return err
	}

	s.State, s.EndedAt = Done, s.Now().UnixMilli()
	if digest != s.Expected {
		s.State = Failed
		s.Problem = fmt.Sprintf("the file has the digest %s now: it could not be restored, or was replaced", digest)
	}

	s.note = &event.New{
		Type:      inventory.EventRepair,
		Time:      s.EndedAt,
		Component: "replica",
		Actor:     s.ConfirmedBy,
		Detail: Detail{
			Repair:     s.ID,
			Key:        s.File,
			InCopy:     s.Where == fixity.InCopy,
			Expected:   s.Expected,
			Found:      s.Found,
			Quarantine: s.Quarantine,
			ProposedBy: s.By,
			Reason:     s.Reason,
			Problem:    s.Problem,
		},
	}

	if s.State == Failed {
		s.note.Outcome = event.Failure
	}
	return nil
}

// Detail of the event of a repair: of one file from the copy, or of one of the copy, which a person has
// confirmed; or of files that a submission brought again.
type Detail struct {
	Repair     string `json:"repair"` // its id, or the job's
	Key        string `json:"key,omitempty"`
	InCopy     bool   `json:"inCopy,omitempty"` // the file of the copy was restored, from the storage root
	Expected   string `json:"expected,omitempty"`
	Found      string `json:"found,omitempty"`
	Quarantine string `json:"quarantine,omitempty"`
	ProposedBy string `json:"proposedBy,omitempty"`
	Reason     string `json:"reason"`
	Problem    string `json:"problem,omitempty"`

	Keys []string `json:"keys,omitempty"` // of the files, below the object's prefix; the first of them
	More int      `json:"more,omitempty"` // the number of the others
}

// replace puts the right file into the place of the wrong one, unless one of them is not as it was planned. If
// another file is there already, it is that of an earlier try, or of another person: it is read back.
func (s *repairing) replace(ctx context.Context) error {
	wrong, right := s.sides()
	// The damaged file is copied below the id of the repair, so that two repairs of one key keep
	// both.
	keep := transfer{
		from:   wrong.Bucket,
		to:     s.Root.Work,
		key:    s.File,
		target: Quarantine + s.ID + "/" + s.File,
		etag:   s.First.ETag,
		notes:  s.Root.Work,
		more:   s.more,
	}

	restore := transfer{
		from:   right.Bucket,
		to:     wrong.Bucket,
		key:    s.Second.Key,
		target: s.File,
		etag:   s.Second.ETag,
		notes:  s.Root.Work,
		more:   s.more,
	}

	now, err := wrong.Head(ctx, s.File)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}

	// Both are "" of a file that is missing, as it was when the plan was made.
	if now.ETag != s.First.ETag {
		return restore.forget(ctx)
	}

	// The damaged bytes are kept, and the row says where, before anything takes their place.
	if now.ETag != "" && s.Quarantine == "" {
		if err := keep.run(ctx); err != nil {
			return err
		}
		s.Quarantine = keep.target
		if err := s.save(ctx); err != nil {
			return err
		}
	}
	if s.ofRoot() {
		return s.rewrite(ctx, wrong, right)
	}
	return restore.run(ctx)
}

// ofRoot reports whether the file is the root inventory or its sidecar. Other files are written once; these are of
// another version after the next commit.
func (s *repairing) ofRoot() bool {
	root := ocfl.Inventory(s.ARK, 0)
	return s.File == root.Key || s.File == root.Sidecar
}

// rewrite puts the right file into the place of the one that was found wrong, on the condition that it still is that
// one: a request that comes late must not replace what a later commit has written. Whatever is there instead is read
// back.
func (s *repairing) rewrite(ctx context.Context, wrong, right side) error {
	body, info, err := right.Open(ctx, s.Second.Key)
	if err != nil {
		return err
	}

	defer body.Close()
	if info.ETag != s.Second.ETag {
		return fault.New(fault.Stale, "%s was replaced since the plan was made", s.Second.Key)
	}

	to := wrong.Writer(ctx, s.File, bucket.Condition{Absent: s.First.ETag == "", ETag: s.First.ETag})
	if _, err := io.Copy(to, body); err != nil {
		return errors.Join(err, to.Abort())
	}

	err = to.Close()
	if fault.Is(err, fault.Stale) {
		return nil
	}
	return err
}

// tries of a transaction: the object's row has other writers.
const tries = 8

// save writes the row, with the event of the object if there is one.
func (s *repairing) save(ctx context.Context) (err error) {
	if s.note == nil {
		return s.Replica.save(ctx, s.Repair, false)
	}

	// A Stale of the repair's own row is final: another call works on it. The object's row is read
	// anew by each try.
	for range tries {
		tx := s.Table.Begin(s.NewID())
		tx.Save(s.Repair)
		if err := s.Inventory.Happened(ctx, tx, s.ARK, *s.note); err != nil {
			return err
		}
		err = tx.Commit(ctx)
		var changed *table.ConditionError
		if !errors.As(err, &changed) || changed.Failed(s.Repair.Key()) {
			break
		}
	}

	if fault.Is(err, fault.Stale) {
		return fault.New(fault.Unavailable, "replica: %s was changed meanwhile: %w", s.ARK, err)
	}
	return err
}
