package fixity

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/inventory"
	"archivist/pkg/objects/ocfl"
)

// Parts of an object, in the order in which they are checked. The texts are stored, in the rows of
// checks in progress.
const (
	partDeclaration = "declaration"
	partRoot        = "inventory"
	partVersions    = "versions"
	partContent     = "content"
	partKeys        = "keys"
	partEnd         = "end"
)

// walk is one call's part of a check.
type walk struct {
	*Checker
	*run
	ark   string
	until time.Time
	left  int64 // bytes that this call may still read
}

// errOver means that the time or the bytes of a call are used up.
func (w *walk) errOver() error {
	return fault.New(fault.Unavailable,
		"%s: %d files and %d bytes are checked; the rest follows: %w", w.ark, w.Files,
		w.Bytes, ErrStopped)
}

// over reports whether this call must save how far it came.
func (w *walk) over(ctx context.Context) bool {
	return w.left <= 0 || !w.Now().Before(w.until) || ctx.Err() != nil
}

// all checks the rest of the object.
func (w *walk) all(ctx context.Context) error {
	steps := map[string]func(context.Context) error{
		partDeclaration: w.declaration,
		partRoot:        w.rootInventory,
		partVersions:    w.versions,
		partContent:     w.content,
		partKeys:        w.keys,
	}

	for w.Part != partEnd {
		if err := steps[w.Part](ctx); err != nil {
			return err
		}
	}
	return nil
}

// declaration checks the declaration: it has one possible content.
func (w *walk) declaration(ctx context.Context) error {
	d := ocfl.Declaration(w.ark)
	err := w.check(ctx, d.Key, d.Digest)
	if err == nil {
		w.Part = partRoot
	}
	return err
}

// rootInventory checks the root inventory by its sidecar. If it cannot be read as an inventory, or is not the one
// that is on record, nothing else can be checked: the files of an object that was put back would be called unnamed.
func (w *walk) rootInventory(ctx context.Context) error {
	before := w.Result
	if err := w.inventory(ctx, 0); err != nil {
		return err
	}

	stored, err := w.Root.Head(ctx, w.ark)
	if err != nil {
		return w.unread(ctx, err)
	}

	w.Version = stored.Head
	other, err := w.isOther(ctx, stored)
	if err != nil {
		return fault.New(fault.Unavailable, "%w", err)
	}
	if other {
		damaged, err := w.judged(ctx)
		if err == nil && !damaged { // it got a version since it was read
			w.Result, w.Part = before, partRoot
			err = fault.New(fault.Unavailable,
				"%s got a version during its check: %w", w.ark, ErrStopped)
		}
		return err
	}

	w.Number, w.Part = 1, partVersions
	return nil
}

// isOther reports whether another root inventory is on record, or one of a later version. One of an
// earlier version is usual between a commit and its record.
func (w *walk) isOther(ctx context.Context, stored *ocfl.Stored) (bool, error) {
	if w.Root.Recorded == nil {
		return false, nil
	}
	head, digest, err := w.Root.Recorded(ctx, w.ark)
	return head > stored.Head || head == stored.Head && digest != stored.Digest, err
}

// unread ends the check of an object whose root inventory cannot be read as one: that is damage. An error
// of S3 is none.
func (w *walk) unread(ctx context.Context, err error) error {
	if err := transient(ctx, err); err != nil {
		return err
	}

	p := Problem{Key: ocfl.Inventory(w.ark, 0).Key, Kind: Mismatch, Reason: cut(err.Error())}
	if fault.Is(err, fault.NotFound) {
		p.Kind = Missing
	}

	w.addOnce(p)
	w.Part = partEnd
	return nil
}

// versions checks the inventory of each version by its sidecar, and the sidecar by the version's
// row.
func (w *walk) versions(ctx context.Context) error {
	for ; w.Number <= w.Version; w.Number++ {
		if err := w.inventory(ctx, w.Number); err != nil {
			return err
		}
		if err := w.recorded(ctx, w.Number); err != nil {
			return err
		}
	}
	w.Part = partContent
	return nil
}

// recorded compares the digest of a version's inventory, which its sidecar has, with the version's row.
// The newest version may have no row yet.
func (w *walk) recorded(ctx context.Context, n int) error {
	digest, err := w.onRecord(ctx, n)
	if err != nil {
		return fault.New(fault.Unavailable, "%w", err)
	}

	if digest == "" {
		return nil
	}

	w.OnRecord = n
	i := ocfl.Inventory(w.ark, n)
	if w.named(i.Sidecar) { // then the inventory was compared with the row
		return nil
	}

	found, err := w.Root.SidecarDigest(ctx, i.Sidecar)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return fault.New(fault.Unavailable, "%w", err)
	}

	if found != digest {
		w.add(Problem{Key: i.Key, Kind: BadRecord, Expected: digest, Actual: found,
			Reason: "the row of the version has another digest than the sidecar of its inventory"})
	}
	return nil
}

// keys compares the list of the object's keys with what its inventories name. What a job has written of a
// version that is not committed yet is left out. It asks for one page at a time, since the call may
// have to end after any of them.
func (w *walk) keys(ctx context.Context) error {
	for {
		if w.over(ctx) {
			return w.errOver()
		}

		found, err := w.Root.Check(ctx, ocfl.Prefix(w.ark), w.Key, nil, func() bool { return false })
		if err != nil {
			return fault.New(fault.Unavailable, "%w", err)
		}

		for _, d := range found.Damage {
			w.pollution(d)
		}

		w.Key = found.Next
		switch {
		case w.Key != "":
		case w.Outcome == OK:
			_, err := w.judged(ctx)
			return err
		default:
			w.Part = partEnd
			return nil
		}
	}
}

// judged ends a check: it asks whether the object is the one that is on record. One that was put back to an earlier
// version, or changed as a whole, agrees with itself.
func (w *walk) judged(ctx context.Context) (damaged bool, err error) {
	v, err := w.Root.Judge(ctx, w.ark)
	if err != nil {
		return false, fault.New(fault.Unavailable, "%w", err)
	}

	w.Part = partEnd
	damaged = v.Trust == ocfl.Damaged
	if damaged {
		w.addOnce(Problem{Key: ocfl.Inventory(w.ark, 0).Key, Kind: BadRecord, Reason: cut(v.Why)})
	}
	return damaged, nil
}

// addOnce adds what is wrong with a file, unless something is already.
func (w *walk) addOnce(p Problem) {
	if !w.named(p.Key) {
		w.add(p)
	}
}

// named reports whether something is wrong with a file.
func (w *walk) named(key string) bool {
	return slices.ContainsFunc(w.Problems, func(found Problem) bool { return found.Key == key })
}

// pollution notes keys that do not belong to the object. The other kinds of damage are found by the
// digests. No job writes to the copy, so nothing there is of a job.
func (w *walk) pollution(d ocfl.Damage) {
	uncommitted := d.Kind == ocfl.Uncommitted && (d.Job == "" || w.At == InCopy)
	if d.Kind != ocfl.Foreign && d.Kind != ocfl.Unnamed && !uncommitted {
		return
	}

	for _, key := range d.Keys {
		if uncommitted && w.At != InCopy && ocfl.IsInventory(key) { // the claim of a job
			continue
		}
		w.add(Problem{Key: key, Kind: Unnamed, Reason: "no inventory names the key"})
	}
	w.More += d.More
}

// inventory checks the inventory of a version, 0 for the root inventory, by its sidecar.
func (w *walk) inventory(ctx context.Context, n int) error {
	i := ocfl.Inventory(w.ark, n)
	digest, whole, err := w.Root.ReadSidecar(ctx, i.Sidecar)
	if fault.Is(err, fault.NotFound) {
		if err := w.finished(ctx, n, ""); err != nil {
			return err
		}
		w.addOnce(Problem{Key: i.Sidecar, Kind: BadSidecar, Reason: "the sidecar is missing"})
		return w.checkRecorded(ctx, i.Key, n)
	}

	if err != nil {
		return fault.New(fault.Unavailable, "%w", err)
	}

	if !isDigest(digest) {
		w.addOnce(Problem{Key: i.Sidecar, Kind: BadSidecar, Reason: "the sidecar has no digest"})
		return w.checkRecorded(ctx, i.Key, n)
	}

	if !whole {
		w.addOnce(Problem{Key: i.Sidecar, Kind: BadSidecar, Reason: `the sidecar is not "DIGEST inventory.json"`})
	}

	// Between a commit and its end, the sidecar is that of the version before. Such a difference is
	// taken back, and the check waits.
	before := w.Result
	err = w.check(ctx, i.Key, digest)
	if err == nil && len(w.Problems) > len(before.Problems) {
		if err = w.finished(ctx, n, digest); err != nil {
			w.Result = before
			return err
		}
		err = w.blame(ctx, n, digest, before)
	}
	return err
}

// checkRecorded checks an inventory without a sidecar: that of a version by its row. The root inventory is judged
// later, by the newest version and by what is on record.
func (w *walk) checkRecorded(ctx context.Context, key string, n int) error {
	if n == 0 {
		return w.check(ctx, key, "")
	}
	digest, err := w.onRecord(ctx, n)
	if err != nil {
		return fault.New(fault.Unavailable, "%w", err)
	}
	return w.check(ctx, key, digest)
}

// blame tells which of an inventory and its sidecar is wrong, if they differ: an inventory that is as recorded is
// not. A crash can leave the root's sidecar of the version before; the next deposit or a repair by the doctor writes
// it.
func (w *walk) blame(ctx context.Context, n int, sidecar string, before Result) error {
	found := w.Problems[len(w.Problems)-1]
	if found.Kind != Mismatch {
		return nil
	}

	recorded, err := w.onRecord(ctx, n)
	if err != nil {
		return fault.New(fault.Unavailable, "%w", err)
	}

	if found.Actual == recorded {
		w.Outcome, w.Problems = before.Outcome, before.Problems
		w.add(Problem{
			Key:      ocfl.Inventory(w.ark, n).Sidecar,
			Kind:     BadSidecar,
			Expected: recorded,
			Actual:   sidecar,
			Reason:   "the sidecar has another digest than its inventory, which is as recorded",
		})
	}
	return nil
}

// onRecord is the digest on record of the inventory of a version, 0 for the root inventory; "" if there is none.
func (w *walk) onRecord(ctx context.Context, n int) (digest string, err error) {
	switch {
	case n > 0:
		return inventory.Store{Table: w.Table}.VersionDigest(ctx, w.ark, n)
	case w.Root.Recorded != nil:
		_, digest, err = w.Root.Recorded(ctx, w.ark)
	}
	return digest, err
}

// finished refuses, with an Unavailable, to call the root inventory of a version damaged that is
// not finished. sidecar is the digest in its sidecar, "" if there is none.
func (w *walk) finished(ctx context.Context, n int, sidecar string) error {
	if n > 0 {
		return nil
	}
	unfinished, err := w.unfinished(ctx, sidecar)
	if unfinished {
		err = fault.New(fault.Unavailable,
			"%s: its newest version is not finished; it is checked later", w.ark)
	}
	return err
}

// unfinished reports whether the sidecar of the root inventory is that of the version before: that is
// how a commit leaves it until it is finished, or is repaired after a crash. A version that is on record
// is finished, and a copy is finished once it is one.
func (w *walk) unfinished(ctx context.Context, sidecar string) (bool, error) {
	if w.At == InCopy {
		return false, nil
	}

	stored, err := w.Root.Head(ctx, w.ark)
	if err != nil {
		return false, transient(ctx, err)
	}

	recorded, err := inventory.Store{Table: w.Table}.VersionDigest(ctx, w.ark, stored.Head)
	if err != nil || recorded != "" {
		return false, transient(ctx, err)
	}

	newest, err := w.Root.SidecarDigest(ctx, ocfl.Inventory(w.ark, stored.Head).Sidecar)
	if err != nil || newest != stored.Digest {
		return false, transient(ctx, err)
	}

	if sidecar == newest || stored.Head == 1 {
		return sidecar == newest || sidecar == "", nil // finished meanwhile, or a first version
	}

	before, err := w.Root.SidecarDigest(ctx, ocfl.Inventory(w.ark, stored.Head-1).Sidecar)
	return err == nil && sidecar == before, transient(ctx, err)
}

// transient is an error that says nothing about the files, as an Unavailable; nil if it is about them: one is
// missing, or was read and is not what it must be. So no object is called damaged because S3 or the
// table was not reached.
func transient(ctx context.Context, err error) error {
	var s3 *bucket.Error
	switch {
	case err == nil, fault.Is(err, fault.NotFound):
		return nil
	case errors.As(err, &s3), fault.Of(err) != "", ctx.Err() != nil:
		return fault.New(fault.Unavailable, "%w", err)
	}
	return nil
}

// entriesPage is how many entries of a manifest are read at once.
const entriesPage = 500

// content checks the files that the manifest of the root inventory names: those of all versions,
// each once.
func (w *walk) content(ctx context.Context) error {
	for {
		all, err := w.Root.Manifest(ctx, w.ark, ocfl.Place(w.Place), entriesPage)
		if err != nil {
			return w.unread(ctx, err)
		}

		for _, e := range all {
			for ; w.Path < len(e.Paths); w.Path++ {
				if err := w.check(ctx, ocfl.Prefix(w.ark)+e.Paths[w.Path], e.Digest); err != nil {
					return err
				}
			}
			w.Path, w.Place = 0, place(e.Next)
		}

		if len(all) < entriesPage {
			w.Part = partKeys
			return nil
		}
	}
}

// patience is how long a file is tried that S3 does not deliver, before it is listed as unreadable.
const patience = 24 * time.Hour

// check reads a file and compares its digest; "" compares nothing.
func (w *walk) check(ctx context.Context, key, expected string) error {
	if w.over(ctx) {
		return w.errOver()
	}

	// Otherwise an earlier call has read the first part of this file.
	if w.File == nil || w.File.Key != key {
		w.File = &Part{Key: key}
	}

	actual, err := w.File.Digest(ctx, w.Root.Bucket, expected, func(read int64) int64 {
		w.left, w.Bytes = w.left-read, w.Bytes+read
		if w.over(ctx) {
			return 0
		}
		return w.left
	})

	switch {
	case err == nil:
		if actual != strings.ToLower(expected) && expected != "" {
			w.addOnce(Problem{Key: key, Kind: Mismatch, Expected: expected, Actual: actual})
		}
	case fault.Is(err, fault.NotFound):
		w.add(Problem{Key: key, Kind: Missing, Expected: expected})
	case errors.Is(err, ErrStopped):
		return w.errOver()
	case w.waits(ctx):
		return fault.New(fault.Unavailable, "%s: %w", w.ark, err)
	default:
		w.add(Problem{Key: key, Kind: Unread, Expected: expected, Reason: cut(err.Error())})
	}

	w.Files, w.File, w.Failing = w.Files+1, nil, 0
	return nil
}

// waits reports whether a file that S3 did not deliver is tried again. The end of the context is
// that of the call, and says nothing about S3.
func (w *walk) waits(ctx context.Context) bool {
	if ctx.Err() != nil {
		return true
	}
	now := w.Now().UnixMilli()
	if w.Failing == 0 {
		w.Failing = now
	}
	return now < w.Failing+patience.Milliseconds()
}

// mostReason is the maximum length of a reason, in bytes.
const mostReason = 300

// cut shortens a reason: it is kept in a row.
func cut(text string) string {
	if len(text) <= mostReason {
		return text
	}
	return strings.ToValidUTF8(text[:mostReason], "") + "…"
}
