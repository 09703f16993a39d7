package ocfl

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
)

// Trust is whether the root inventory of an object can be believed.
type Trust string

// Kinds of trust.
const (
	Unused      Trust = "unused"      // nothing was ever committed
	Trusted     Trust = "trusted"     // all witnesses agree
	Interrupted Trust = "interrupted" // a crash came between the commit and its end; Finish completes it
	Damaged     Trust = "damaged"     // witnesses disagree in a way that no crash leaves
)

// Verdict is the judgement of a stored object.
type Verdict struct {
	Trust
	ID     string
	Object *Stored // as its root inventory describes it; nil if there is none that can be read
	Why    string  // what differs from which witness; "" of a trusted object

	record   record
	side     side      // of the root inventory
	contents *contents // what the root inventory names, if that was asked for
}

// record is what is on record of an object: its newest version, and the sha512 of its inventory.
type record struct {
	head   int
	digest string
}

// OnRecord reports whether a version of the object is on record. Without a record, only the
// inventory of the newest version vouches for the root inventory.
func (v Verdict) OnRecord() bool { return v.record.head > 0 }

// Newer reports whether the newest version in the storage root is not on record yet.
func (v Verdict) Newer() bool { return v.Object != nil && v.Object.Head > v.record.head }

// Err is a *DamagedError if the object is damaged, nil otherwise.
func (v Verdict) Err() error {
	if v.Trust == Damaged {
		return &DamagedError{ID: v.ID, Why: v.Why}
	}
	return nil
}

// DamagedError means that an object in the storage root is damaged. Nothing is written to it before
// a person has restored it. Its kind is a Conflict. Why is for operators: it names the witnesses
// that disagree.
type DamagedError struct{ ID, Why string }

// Error says what differs, and what an operator does.
func (e *DamagedError) Error() string {
	return fmt.Sprintf("%s is damaged in the storage root, and is not changed before an operator has "+
		"restored it: %s. From a second copy: archivist object repair %s FILE --reason TEXT; otherwise "+
		"from an earlier version of the key in the storage bucket", e.ID, e.Why, e.ID)
}

// Unwrap returns the error as a Conflict.
func (e *DamagedError) Unwrap() error { return fault.New(fault.Conflict, "%s is damaged", e.ID) }

// judgeTries is how often an object is judged that keeps changing.
const judgeTries = 5

// Judge tells whether an object's root inventory can be believed. Ingest asks it before it writes to an
// object, Finish, reindex and replication before they use one, and the fixity check at its end. Those
// that only read an object to show it do not.
//
// The witnesses are the record, the root's sidecar, and the inventory and sidecar of the newest
// version. A commit writes them in this order: the version's inventory and sidecar, the root
// inventory, its sidecar, the record. So a crash leaves the later ones one version behind, and
// only so. Any other difference is damage: of a disk, or by a hand.
//
// It costs one request of the table and two of S3 if the record is as the object is. An object that
// is not trusted is read twice: only what is the same both times was so at one moment. An
// Unavailable means that the object keeps changing.
func (r Root) Judge(ctx context.Context, id string) (Verdict, error) { return r.judge(ctx, id, false) }

// judge is Judge. With collect, the verdict has what the root inventory names.
func (r Root) judge(ctx context.Context, id string, collect bool) (Verdict, error) {
	var before Verdict
	// The first verdict that is not clear is compared with the zero value, which no reading has: so
	// there are at least two readings.
	for range judgeTries {
		v, err := r.judgeOnce(ctx, id, collect)
		if err != nil || v.Trust == Trusted || v.Trust == Unused || v.readAs(before) {
			return v, err
		}
		before = v
	}
	return Verdict{}, fault.New(fault.Unavailable, "%s keeps changing; try again later", id)
}

// readAs reports whether all that was read for a verdict was read for another one, too. Why is left
// out: it follows from the rest.
func (v Verdict) readAs(o Verdict) bool {
	return v.Trust == o.Trust && v.record == o.record && v.side == o.side && v.etag() == o.etag()
}

// etag is that of the root inventory, "" if there is none that can be read.
func (v Verdict) etag() string {
	if v.Object == nil {
		return ""
	}
	return v.Object.etag
}

// judgeOnce judges an object by one reading of it. The record is read first: a job that commits
// meanwhile leaves a record that is older than the object, which is no contradiction. The sidecar is
// read before the inventory, so that Finish replaces only one that is older.
func (r Root) judgeOnce(ctx context.Context, id string, collect bool) (v Verdict, err error) {
	v.ID = id
	if collect {
		v.contents = newContents(ctx, id)
	}

	if r.Recorded != nil {
		v.record.head, v.record.digest, err = r.Recorded(ctx, id)
		if err != nil {
			return v, err
		}
	}

	v.side, err = r.sidecar(ctx, Prefix(id), nil)
	if err != nil {
		return v, err
	}

	v.Object, err = r.head(ctx, id, v.contents)
	switch {
	case err == nil:
		v.Trust, v.Why, err = r.compare(ctx, v)
	case fault.Is(err, fault.NotFound):
		v.Trust, v.Why, err = v.withoutInventory()
	default:
		v.Trust, v.Why, err = r.unreadable(ctx, id, err)
	}
	return v, err
}

// withoutInventory judges an object that has no root inventory. Its sidecar is written after it.
func (v Verdict) withoutInventory() (Trust, string, error) {
	switch {
	case v.record.head > 0:
		return Damaged, fmt.Sprintf("version %d is on record, but there is no root inventory", v.record.head), nil
	// A first commit writes the root inventory before the sidecar: no crash leaves the sidecar
	// alone.
	case v.side.etag != "":
		return Damaged, "there is a sidecar of the root inventory, but no root inventory", nil
	}
	return Unused, "", nil
}

// unreadable judges an object whose root inventory could not be read: that is damage if all its
// bytes can be. An error with a kind, of S3, or after the end of the context says nothing about the
// bytes.
func (r Root) unreadable(ctx context.Context, id string, why error) (Trust, string, error) {
	var s3 *bucket.Error
	if fault.Of(why) != "" || errors.As(why, &s3) || ctx.Err() != nil {
		return "", "", why
	}

	// The whole file is read once more: a stream that broke in the middle is also JSON that ends
	// too early.
	if _, err := r.digest(ctx, Inventory(id, 0).Key); err != nil {
		return "", "", err
	}
	return Damaged, "its root inventory is none: " + why.Error(), nil
}

// compare judges an object by its root inventory and the witnesses. A record that is older than the
// object is the usual state between the commit and Record.
func (r Root) compare(ctx context.Context, v Verdict) (Trust, string, error) {
	o, rec := v.Object, v.record
	switch {
	case rec.head > o.Head:
		return Damaged, fmt.Sprintf("version %d is on record, but the root inventory ends at version %d",
			rec.head, o.Head), nil
	case rec.head == o.Head && rec.digest != o.Digest:
		return Damaged, fmt.Sprintf("version %d is on record with the inventory digest %s, the root inventory has %s",
			rec.head, rec.digest, o.Digest), nil
	case rec.head == o.Head && v.side.says(o.Digest):
		return Trusted, "", nil
	case rec.head == o.Head: // the record is written after the sidecar, and vouches for the inventory
		return Interrupted, "the sidecar differs from the root inventory, which is as recorded", nil
	}
	return r.compareUnrecorded(ctx, v)
}

// compareUnrecorded judges an object whose newest version is not on record: its job has died or has
// not come so far, or the record is lost. Then the inventory of the newest version is the witness.
func (r Root) compareUnrecorded(ctx context.Context, v Verdict) (Trust, string, error) {
	why, err := r.otherThanRecorded(ctx, v)
	if err != nil || why != "" {
		return Damaged, why, err
	}

	o := v.Object
	digest, err := r.digest(ctx, Inventory(o.ID, o.Head).Key)
	if err != nil {
		return "", "", err
	}

	if digest != o.Digest {
		return Damaged, fmt.Sprintf("the root inventory has the digest %s, the inventory of version %d, "+
			"which must be the same, has %q", o.Digest, o.Head, digest), nil
	}

	if v.side.says(o.Digest) {
		return Trusted, "", nil
	}
	return r.compareSidecar(ctx, v)
}

// otherThanRecorded returns how the version that is on record, which is an earlier one, differs from
// what the object has of it; "" if it does not. A later root inventory that agrees with itself
// could follow a version that was tampered with.
func (r Root) otherThanRecorded(ctx context.Context, v Verdict) (why string, err error) {
	rec := v.record
	if rec.head == 0 {
		return "", nil
	}

	digest, err := r.versionSidecar(ctx, v.ID, rec.head)
	if err != nil || digest == rec.digest {
		return "", err
	}
	return fmt.Sprintf("version %d is on record with the inventory digest %s, the sidecar of its inventory has %q",
		rec.head, rec.digest, digest), nil
}

// compareSidecar judges an object whose sidecar is not that of its newest version: a crash leaves that
// of the version before, or none. One that has no digest is no witness: it is as good as none.
func (r Root) compareSidecar(ctx context.Context, v Verdict) (_ Trust, _ string, err error) {
	o, before := v.Object, ""
	if o.Head > 1 {
		before, err = r.versionSidecar(ctx, o.ID, o.Head-1)
		if err != nil {
			return "", "", err
		}
	}

	if !v.side.hasDigest() || before != "" && v.side.says(before) {
		return Interrupted, fmt.Sprintf("version %d is committed, but not finished", o.Head), nil
	}
	return Damaged, fmt.Sprintf("the sidecar of the root inventory says %q: neither version %d nor the one before",
		strings.TrimSpace(v.side.text), o.Head), nil
}

// versionSidecar is the digest in the sidecar of a version, "" if there is none.
func (r Root) versionSidecar(ctx context.Context, id string, n int) (string, error) {
	digest, err := r.SidecarDigest(ctx, Inventory(id, n).Sidecar)
	if fault.Is(err, fault.NotFound) {
		return "", nil
	}
	return digest, err
}
