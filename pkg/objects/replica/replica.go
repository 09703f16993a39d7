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
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"io"
	"slices"
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

// state is an object's row.
type state struct {
	table.Head
	ARK  string `dynamo:"ark"`
	Last Result `dynamo:"last_copy"`
	Run  *run   `dynamo:"in_progress,omitempty"`
}

// run is a copy in progress: of which state of the object, and its next file.
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
		return fault.New(fault.Unavailable, "replica: another call works on the same object: %w", err)
	}
	return err
}

// saveTime limits the requests that save how far a call came.
const saveTime = 10 * time.Second

// Copy copies an object until a time, or continues. If the time is over, it has saved how far it came
// and returns an Unavailable: called again, it continues. A file whose copy differs although it was
// copied just now is damaged in the storage root, which is an Invalid.
func (r *Replica) Copy(ctx context.Context, ark string, until time.Time) (Result, error) {
	s, err := r.load(ctx, ark)
	if err != nil {
		return Result{}, err
	}

	w := &walk{Replica: r, ark: ark, until: until}
	err = w.begin(ctx, s)
	if err == nil && w.run != nil {
		err = w.all(ctx)
	}

	// The context may have ended: what was done is saved nevertheless.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTime)
	defer cancel()
	if w.run == nil {
		return s.Last, err
	}

	s.Run = w.run
	if err == nil {
		s.Last, s.Run = w.run.Result, nil
		s.Last.At = r.Now().UnixMilli()
	}

	if saveErr := r.save(ctx, s, s.Rev == 0); saveErr != nil {
		return Result{}, saveErr
	}
	return s.Last, err
}

// Last returns the last copy of an object, without a version if there is none.
func (r *Replica) Last(ctx context.Context, ark string) (Result, error) {
	s, err := r.load(ctx, ark)
	return s.Last, err
}

// LastCopies returns the last copy of each object that has one.
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

// walk is one call's part of a copy.
type walk struct {
	*Replica
	*run
	ark   string
	until time.Time
	etag  string // of the second root inventory, "" if there is none
}

func (w *walk) over(ctx context.Context) bool {
	return !w.Now().Before(w.until) ||
		ctx.Err() != nil
}

func (w *walk) errOver() error {
	return fault.New(fault.Unavailable, "%s: %d files are copied; the rest follows: %w", w.ark,
		w.Files,
		fixity.ErrStopped)
}

// SecondRoot is the second storage root. On record of an object there is its last complete copy.
func (r *Replica) SecondRoot() ocfl.Root {
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

// begin finds out what is to be copied. There is no run if all is.
func (w *walk) begin(ctx context.Context, s *state) error {
	first, err := w.trusted(ctx)
	if err != nil {
		return err
	}

	second, err := w.SecondRoot().Head(ctx, w.ark)
	from := 0
	switch {
	case err == nil:
		from, w.etag = second.Head, second.ETag()
		if err := w.follows(ctx, second, first); err != nil {
			return err
		}
		if second.Digest == first.Digest && s.Run == nil && s.Last.Digest == first.Digest {
			return nil
		}
	case !fault.Is(err, fault.NotFound):
		return w.damagedCopy(ctx, err)
	}

	w.run = s.Run
	if w.run == nil || w.Digest != first.Digest {
		w.run = &run{
			Result: Result{Version: first.Head, Digest: first.Digest},
			From:   from,
			Number: from + 1,
		}
	}
	return unavailable(w.SecondRoot().Init(ctx))
}

// trusted reads an object that may be copied: it is not damaged, and its newest version is finished.
func (w *walk) trusted(ctx context.Context) (*ocfl.Stored, error) {
	v, err := w.Root.Judge(ctx, w.ark)
	switch {
	case err != nil:
		return nil, unavailable(err)
	case v.Trust == ocfl.Damaged:
		return nil, fault.New(fault.Invalid, "%w", v.Err())
	case v.Trust == ocfl.Unused:
		return nil, fault.New(fault.NotFound, "there is no object %s in the storage root", w.ark)
	case v.Trust == ocfl.Interrupted:
		return nil, fault.New(fault.Unavailable, "%s: its newest version is not finished (%s); it is copied later",
			w.ark, v.Why)
	}
	return v.Object, nil
}

// wasRead reports whether an inventory could be read, and its error is that it is none.
func wasRead(ctx context.Context, err error) bool {
	var s3 *bucket.Error
	return fault.Of(err) == "" && !errors.As(err, &s3) && ctx.Err() == nil
}

// damagedCopy is the error of the root inventory of the copy: a Conflict if it was read, but is none.
func (w *walk) damagedCopy(ctx context.Context, err error) error {
	if !wasRead(ctx, err) {
		return unavailable(err)
	}
	return fault.New(fault.Conflict, "%s: the inventory of its copy is damaged: %w; "+
		"repair it first: archivist object repair %s inventory.json --in-copy --reason TEXT", w.ark, err, w.ark)
}

// damaged is the error of an inventory that was read, but is none: an Invalid. One of S3 is an Unavailable.
func (w *walk) damaged(ctx context.Context, err error) error {
	if !wasRead(ctx, err) {
		return unavailable(err)
	}
	return fault.New(fault.Invalid, "%s: its inventory in the storage root is damaged: %w", w.ark, err)
}

// follows refuses to replace a copy that is not an earlier state of the object.
func (w *walk) follows(ctx context.Context, second, first *ocfl.Stored) error {
	if second.Head > first.Head {
		return fault.New(fault.Conflict,
			"%s: the copy has version %d, the object has %d; find out which is right",
			w.ark, second.Head, first.Head)
	}

	digest, err := w.Root.VersionDigest(ctx, first, second.Head)
	if err != nil {
		return unavailable(err)
	}

	if digest != second.Digest {
		return fault.New(fault.Conflict,
			"%s: version %d of the copy has the inventory %s, that of the object %s; "+
				"find out which is right", w.ark, second.Head, second.Digest, digest)
	}
	return nil
}

// all copies the rest of the object: content, inventories of versions, the root inventory with its
// sidecar, the declaration.
func (w *walk) all(ctx context.Context) error {
	if err := w.content(ctx); err != nil {
		return err
	}

	for ; w.Number <= w.Version; w.Number++ {
		i := ocfl.Inventory(w.ark, w.Number)
		digest, err := w.Root.SidecarDigest(ctx, i.Sidecar)
		if err == nil {
			err = w.file(ctx, i.Key, digest)
		}

		if err == nil {
			err = w.To.Put(ctx, i.Sidecar, ocfl.Sidecar(digest), bucket.Condition{})
		}

		if err != nil {
			return unavailable(err)
		}
	}

	root := ocfl.Inventory(w.ark, 0)
	err := w.inventory(ctx, root.Key)
	if err == nil {
		err = w.To.Put(ctx, root.Sidecar, ocfl.Sidecar(w.Digest), bucket.Condition{})
	}

	if err == nil {
		err = w.SecondRoot().Declare(ctx, w.ark)
	}
	return unavailable(err)
}

// entriesPage is how many entries of a manifest are read at once.
const entriesPage = 500

// content copies the content of the versions that the copy did not have, and what is missing or not the
// same of the others: a version is copied when all of its content is.
func (w *walk) content(ctx context.Context) error {
	for {
		all, err := w.Root.Manifest(ctx, w.ark, ocfl.Place(w.Place), entriesPage)
		if err != nil {
			return w.damaged(ctx, err)
		}

		for _, e := range all {
			for ; w.Path < len(e.Paths); w.Path++ {
				if err := w.contentAt(ctx, e.Paths[w.Path], e.Digest); err != nil {
					return unavailable(err)
				}
			}
			w.Path, w.Place = 0, place(e.Next)
		}

		if len(all) < entriesPage {
			return nil
		}
	}
}

// contentAt copies the content at a path, unless the copy had its version and has it still.
func (w *walk) contentAt(ctx context.Context, path, digest string) error {
	key := ocfl.Prefix(w.ark) + path
	if n, ok := ocfl.VersionOf(path); ok && n <= w.From && (w.File == nil || w.File.Key != key) {
		if w.over(ctx) {
			return w.errOver()
		}
		same, err := w.same(ctx, key)
		if err != nil || same {
			return err
		}
	}
	return w.file(ctx, key, digest)
}

// same reports whether both buckets have the same size and checksum for a key.
func (w *walk) same(ctx context.Context, key string) (bool, error) {
	second, err := w.To.Head(ctx, key)
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}

	if err != nil {
		return false, err
	}

	first, err := w.Root.Bucket.Head(ctx, key)
	if fault.Is(err, fault.NotFound) {
		return false, nil // the copy is compared with the inventory
	}

	if err != nil {
		return false, err
	}
	return first.Size == second.Size && first.CRC64NVME != "" && first.CRC64NVME == second.CRC64NVME, nil
}

// file copies one file, and compares the digest of the copy. A copy that is there already, or that an earlier call
// has made, is compared first: if it is wrong, that says nothing about the file as it is now.
func (w *walk) file(ctx context.Context, key, digest string) error {
	if w.over(ctx) {
		return w.errOver()
	}

	copied := false // by this call
	if w.File == nil || w.File.Key != key {
		there, err := w.there(ctx, key)
		if err == nil {
			err = w.bring(ctx, key, there)
		}
		if err != nil {
			return err
		}
		copied = !there
	}

	for {
		actual, err := w.File.Digest(ctx, w.To, digest, func(read int64) int64 {
			w.Bytes += read
			if w.over(ctx) {
				return 0
			}
			return 1 << 30
		})

		switch {
		case errors.Is(err, fixity.ErrStopped):
			return w.errOver()
		case err != nil:
			return err
		case actual == digest:
			w.Files, w.File = w.Files+1, nil
			return nil
		case copied:
			etag := w.File.ETag
			w.File = nil
			damaged := fault.New(fault.Invalid,
				"%s in the storage root is damaged: its copy has the digest %s, "+
					"the inventory %s; the copy is removed", key, actual, digest)
			return errors.Join(damaged, w.To.DeleteSame(ctx, key, etag))
		}

		if err := w.bring(ctx, key, false); err != nil {
			return err
		}
		copied = true
	}
}

// there reports whether the copy has a file. A large one was perhaps completed by a call that died then.
func (w *walk) there(ctx context.Context, key string) (bool, error) {
	info, err := w.To.Head(ctx, key)
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	if err == nil && info.Size > min(w.To.Limits.Part, w.To.Limits.Copy) {
		err = w.transfer(ctx, key).forget(ctx)
	}
	return err == nil, err
}

func (w *walk) transfer(ctx context.Context, key string) transfer {
	return transfer{
		from:   w.Root.Bucket,
		to:     w.To,
		key:    key,
		target: key,
		notes:  w.Root.Work,
		more:   func() bool { return !w.over(ctx) },
	}
}

// bring copies a file, unless it is there already.
func (w *walk) bring(ctx context.Context, key string, there bool) error {
	w.File = nil
	if !there {
		err := w.transfer(ctx, key).run(ctx)
		switch {
		case errors.Is(err, fixity.ErrStopped):
			return w.errOver()
		case fault.Is(err, fault.NotFound):
			return fault.New(fault.Invalid, "%s is missing in the storage root, and in its copy", key)
		case err != nil:
			return err
		}
	}

	w.File = &fixity.Part{Key: key}
	return nil
}

// inventory replaces the root inventory of the copy, on the condition that it is the one that was
// there. It is written only if it has the digest.
func (w *walk) inventory(ctx context.Context, key string) error {
	body, _, err := w.Root.Bucket.Open(ctx, key)
	if err != nil {
		return err
	}

	defer body.Close()
	sum := sha512.New()
	to := w.To.Writer(ctx, key, bucket.Condition{Absent: w.etag == "", ETag: w.etag})
	_, err = io.Copy(io.MultiWriter(to, sum), body)
	if got := hex.EncodeToString(sum.Sum(nil)); err == nil && got != w.Digest {
		err = fault.New(fault.Unavailable, "%s got another version meanwhile, which is copied next", w.ark)
	}

	if err != nil {
		return errors.Join(err, to.Abort())
	}

	if err := to.Close(); err != nil {
		return err
	}

	copied := fixity.Part{Key: key}
	got, err := copied.Digest(ctx, w.To, w.Digest, func(int64) int64 { return 1 << 30 })
	if err == nil && got != w.Digest {
		err = fault.New(fault.Unavailable, "%s: its copy has the digest %s, expected %s", key, got, w.Digest)
	}
	return err
}

// unavailable is an error of S3 that is not about the object, or a change meanwhile: the work is tried
// again later.
func unavailable(err error) error {
	if err == nil || slices.Contains(final, fault.Of(err)) {
		return err
	}
	return fault.New(fault.Unavailable, "%w", err)
}

var final = []fault.Kind{fault.Invalid, fault.NotFound, fault.Conflict, fault.Unavailable}
