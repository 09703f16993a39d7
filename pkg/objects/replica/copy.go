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
	"archivist/pkg/objects/fixity"
	"archivist/pkg/objects/ocfl"
)

// walk is one call's part of a copy.
type walk struct {
	*Replica
	*run
	ark   string
	until time.Time
	etag  string // of the second root inventory, "" if there is none
}

// over reports whether this call must save how far it came.
func (w *walk) over(ctx context.Context) bool {
	return !w.Now().Before(w.until) ||
		ctx.Err() != nil
}

// errOver means that the time of a call is over.
func (w *walk) errOver() error {
	return fault.New(fault.Unavailable, "%s: %d files are copied; the rest follows: %w", w.ark,
		w.Files,
		fixity.ErrStopped)
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
		// All three, since a call may have died between the copy of the inventory and the row that
		// says so: such a copy is looked through again.
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

// trusted reads an object that may be copied: it is not damaged, and its newest version is
// finished. A damaged one is an Invalid: its copy may be the only one that is right, and must stay.
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
		return nil, fault.New(fault.Unavailable,
			"%s: its newest version is not finished (%s); it is copied later",
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
	return fault.New(fault.Invalid,
		"%s: its inventory in the storage root is damaged: %w", w.ark, err)
}

// follows refuses to replace a copy that is not an earlier state of the object. That is a Conflict:
// one of the two is not what was stored, and only a person can tell which.
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
// sidecar, the declaration. In this order nothing is named by an inventory of the copy before it is
// there.
func (w *walk) all(ctx context.Context) error {
	if err := w.content(ctx); err != nil {
		return err
	}

	// Inventories of versions that the copy has are not copied again: they do not change.
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

	// A call that ends between these writes makes them again, on the condition of the inventory
	// that it has put.
	root := ocfl.Inventory(w.ark, 0)
	err := w.inventory(ctx, root.Key)
	if err == nil {
		err = w.sidecar(ctx, root.Sidecar)
	}

	if err == nil {
		err = w.SecondRoot().Declare(ctx, w.ark)
	}
	return unavailable(err)
}

// sidecar replaces the sidecar of the root inventory, on the condition that it is the one that is there: a request that
// comes late must not replace that of a later version.
func (w *walk) sidecar(ctx context.Context, key string) error {
	was, err := w.To.Head(ctx, key)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}
	return w.To.Put(ctx, key, ocfl.Sidecar(w.Digest), bucket.Condition{Absent: was.ETag == "", ETag: was.ETag})
}

// entriesPage is how many entries of a manifest are read at once.
const entriesPage = 500

// content copies the content of the versions that the copy did not have, and what is missing or not the
// same of the others: a version is copied when all of its content is. How far it came is in the
// run, within a file as well.
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

// contentAt copies the content at a path, unless the copy had its version and has it still. A file
// that an earlier call has begun is gone on with, whatever its version.
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

// same reports whether both buckets have the same size and checksum for a key. Without checksums of
// S3 it is false: then the digests are compared.
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
		// These bytes have just come from the storage root, so they are wrong there, too. The copy
		// is removed on the condition that it is the one that was read.
		case copied:
			etag := w.File.ETag
			w.File = nil
			damaged := fault.New(fault.Invalid,
				"%s in the storage root is damaged: its copy has the digest %s, "+
					"the inventory %s; the copy is removed", key, actual, digest)
			return errors.Join(damaged, w.To.DeleteSame(ctx, key, etag))
		}

		// An older copy was wrong: it is made anew, and compared once more.
		if err := w.bring(ctx, key, false); err != nil {
			return err
		}
		copied = true
	}
}

// there reports whether the copy has a file. A large one was perhaps completed by a call that died
// then. Then the state of its parts is still there, and the next copy to the key would continue it.
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

// transfer is the copy of a file to the same key of the second bucket.
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
			return fault.New(fault.Invalid,
				"%s is missing in the storage root, and in its copy", key)
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
		err = fault.New(fault.Unavailable,
			"%s got another version meanwhile, which is copied next", w.ark)
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
		err = fault.New(fault.Unavailable,
			"%s: its copy has the digest %s, expected %s", key, got, w.Digest)
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

// final are the kinds that callers tell apart. A Stale is not among them: it means that something
// changed meanwhile, and the work begins again.
var final = []fault.Kind{fault.Invalid, fault.NotFound, fault.Conflict, fault.Unavailable}

// saveTime limits the requests that save how far a call came.
const saveTime = 10 * time.Second

// Copy copies an object until a time, or continues. If the time is over, it has saved how far it came
// and returns an Unavailable: called again, it continues. A file whose copy differs although it was
// copied just now is damaged in the storage root, which is an Invalid.
//
// A Conflict means that the copy is not an earlier state of the object, or is damaged. A NotFound
// means that there is no such object.
func (r *Replica) Copy(ctx context.Context, ark string, until time.Time) (Result, error) {
	s, err := r.load(ctx, ark)
	if err != nil {
		return Result{}, err
	}

	w := &walk{Replica: r, ark: ark, until: until}
	err = w.begin(ctx, s)
	if err == nil {
		err = r.note(ctx, s, w.run)
	}
	if err == nil && w.run != nil {
		err = w.all(ctx)
	}

	// The context may have ended: what was done is saved nevertheless.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTime)
	defer cancel()
	// There was nothing to copy, or it could not be found out.
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

// note saves that a copy is being made before its first file is copied: a check of the copy would take the files of
// a call that dies for files that do not belong there.
func (r *Replica) note(ctx context.Context, s *state, next *run) error {
	if next == nil || s.Run != nil {
		return nil
	}
	s.Run = next
	return r.save(ctx, s, s.Rev == 0)
}
