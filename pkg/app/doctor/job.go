package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"archivist/pkg/events/event"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/objects/inventory"
	"archivist/pkg/objects/ocfl"
)

// checkJob checks a job's row, the rows that it owns, its newest event, and what is recorded
// of its version. All checks are made even if one fails. A row that has a live lease is not
// moved in the indexes: the write would raise its rev, and its worker would lose the job.
func checkJob(ctx context.Context, x *rowCheck) error {
	var j queue.Job
	if !x.decode(&j) {
		return nil
	}

	if !x.valid("job", j.Job.ID, string(j.State), slices.Contains(ingest.JobStates(), j.State)) {
		return nil
	}

	x.progress(&j)
	should := j
	should.Place()
	err := errors.Join(x.owned(ctx, j.Head, &j.Job),
		x.history(ctx, subjectOf(event.Job, j.Job.ID), j.Version, string(j.State)),
		x.recorded(ctx, &j.Job))

	x.placed(j.Head, should.Head, j.Live(x.Queue.Now()), func(tx *table.Tx) { tx.Save(&should) })
	return err
}

// valid checks that a job or batch has the id of its key, and is in a state that there is. If
// not, the other rules mean nothing for the row, and are not checked.
func (x *rowCheck) valid(what, id, state string, known bool) bool {
	x.subject = what + ":" + id
	own := x.PK == strings.ToUpper(what)+"#"+id
	switch {
	case !known:
		x.add("state", restoreRow, nil, "there is no state %q", state)
	case !own:
		x.add("row-key", restoreRow, nil, "the row says that it is %s %s", what, id)
	}
	return known && own
}

// progress checks that something moves a job on: a gate, a worker or the sweep. It reports
// the first thing that is missing: a slot exactly while the job runs, a turn at a gate, a
// reason of a hold, a due time at all other places.
func (x *rowCheck) progress(j *queue.Job) {
	explain := "archivist explain " + j.Job.ID
	place, _ := j.Job.WorkKey()
	switch {
	case j.Running() != j.HasSlot:
		x.add("job-slot",
			fmt.Sprintf("archivist job fail %s --reason …, then requeue it", j.Job.ID), nil,
			"the job is %s, running: %v, with a slot: %v", j.State, j.Running(), j.HasSlot)
	case j.Waiting() && j.Turn == "":
		x.add("job-turn", explain, nil,
			"the job is %s and at a gate without a turn: the gate cannot find it", j.State)
	case j.State == ingest.Held && j.Hold == nil:
		x.add("held-reason", fmt.Sprintf("archivist job release %s --reason …", j.Job.ID), nil,
			"the job is Held, but its row has no hold that says why")
	default:
		x.due(j.Due, place, j.Live(x.Queue.Now()), explain)
	}
}

// due checks that an item at a place that the sweep checks is due, and not past due for long.
// due is in milliseconds since 1970. An item with a live lease is being worked on, however
// late.
func (x *rowCheck) due(due int64, place string, live bool, command string) {
	swept := place == ingest.WorkCleanUp || place == ingest.PlaceMail ||
		strings.HasPrefix(place, duePlace)
	switch {
	case swept && due == 0:
		x.add("due", command, nil, "it is never due: no sweep checks it")
	case swept && x.late(due, place) && !live:
		x.overdue(due, command)
	}
}

// duePlace begins the names of the places of due items.
var duePlace = strings.TrimSuffix(ingest.DuePK(0), "0")

// overdue says that the sweep has not acted on an item.
func (x *rowCheck) overdue(due int64, command string) {
	x.add("overdue", command+
		"; if nothing is swept, look at the scheduler's alarms (docs/operations.md)", nil,
		"it was due at %s, and nothing has happened for %s", ingest.Timestamp(due),
		x.Queue.Now().Sub(time.UnixMilli(due)).Round(time.Second))
}

// owned checks that the rows exist that a job owns, or a batch for its only job. Slots, spaces,
// locks and places in line are rows with the job as their owner. A row that is missing or has
// the wrong size is made as it should be; one of another job is not touched, since which of the
// two is right cannot be told. owner is the row of the job or batch.
func (x *rowCheck) owned(ctx context.Context, owner table.Head, j *ingest.Job) error {
	for _, want := range queue.Owned(j) {
		var row queue.Reservation
		err := x.Queue.Table.Get(ctx, want.Key(), &row)
		switch {
		case fault.Is(err, fault.NotFound):
			x.add("reservation-missing", "", x.reserve(owner, want),
				"the job has %s, but there is no such row", want.Key())
		case err != nil:
			return err
		case row.Owner != want.Owner:
			command := fmt.Sprintf("archivist job fail %s --reason …: two jobs must not own one row", j.ID)
			x.add("reservation-owner", command, nil, "the job has %s, but the row's owner is %s",
				want.Key(), row.Owner)
		case row.Bytes != want.Bytes:
			x.add("reservation-bytes", "", x.resize(owner, row, want.Bytes),
				"the job needs %d bytes, its row %s has %d",
				want.Bytes, want.Key(), row.Bytes)
		}
	}
	return nil
}

// reserve inserts a missing row. The rev of the owner's row is required: a job that has changed
// may not need the row any more, and a row without an owner who needs it would never be given
// back.
func (x *rowCheck) reserve(owner table.Head, row queue.Reservation) func(context.Context) error {
	return func(ctx context.Context) error {
		return x.commit(ctx, func(tx *table.Tx) {
			tx.Insert(&row)
			tx.Require(owner.Key(), "rev = ?", owner.Rev)
		})
	}
}

// resize sets the bytes of a job's space.
func (x *rowCheck) resize(owner table.Head, row queue.Reservation,
	bytes int64) func(context.Context) error {
	return func(ctx context.Context) error {
		row.Bytes = bytes
		return x.commit(ctx, func(tx *table.Tx) {
			tx.Save(&row)
			tx.Require(owner.Key(), "rev = ?", owner.Rev)
		})
	}
}

// recorded checks that the version of a Completed job is recorded. The check of the storage
// root compares what is recorded with what is stored. The stages write the version's row
// before the job is Completed, so no order of events explains one that is missing.
func (x *rowCheck) recorded(ctx context.Context, j *ingest.Job) error {
	if j.State != ingest.Completed {
		return nil
	}

	if j.Primary == "" || j.ObjectVersion == 0 {
		x.add("completed-version", "archivist job show "+j.ID, nil,
			"the job is Completed, but names no stored version")
		return nil
	}

	missing, err := x.missing(ctx, inventory.VersionKey(j.Primary, j.ObjectVersion))
	if err != nil || !missing {
		return err
	}

	stored, err := x.root().Head(ctx, j.Primary)
	switch {
	case fault.Is(err, fault.NotFound):
		x.add("completed-stored", lostContent(j.Primary), nil,
			"the job is Completed as %s v%d, which is not in the storage root", j.Primary,
			j.ObjectVersion)
	case err != nil:
		return err
	case stored.Head < j.ObjectVersion:
		x.add("completed-stored", lostContent(j.Primary), nil,
			"the job is Completed as %s v%d; the stored object is at v%d", j.Primary,
			j.ObjectVersion, stored.Head)
	default:
		x.add("completed-recorded", "archivist object reindex "+j.Primary, x.reindex(j.Primary),
			"the job is Completed as %s v%d, which is stored, but not recorded", j.Primary,
			j.ObjectVersion)
	}
	return nil
}

// reindex writes the rows of an object from the storage root. It can be repeated at any time.
// If the page's time ends before it has, its error says so.
func (p *page) reindex(ark string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, done, err := p.Reindexer.Object(ctx, ark, actor, p.until)
		if err != nil {
			return err
		}
		if !done {
			return fault.New(fault.Unavailable, "the time was not enough; run it again")
		}
		return nil
	}
}

// actor is the doctor, in events. It is also the name under which repairs of the storage root
// write.
const actor = "doctor"

// checkReservation checks that the owner of a slot, space, lock or place in line lives and
// has it. owned looks from the job to its rows; this looks from the row to its job, and finds
// what nobody would give back.
func checkReservation(ctx context.Context, x *rowCheck) error {
	var row queue.Reservation
	if !x.decode(&row) {
		return nil
	}

	owner, job, err := x.owner(ctx, row.Owner)
	if fault.Is(err, fault.NotFound) {
		x.add("reservation-owner", "", x.free(nil, row.Owner),
			"its owner, job %s, does not exist", row.Owner)
		return nil
	}

	if err != nil {
		return err
	}

	has := func(r queue.Reservation) bool { return r.Key() == x.Key }
	if !slices.ContainsFunc(queue.Owned(job), has) {
		x.add("reservation-owner", "", x.free(owner, row.Owner),
			"its owner, job %s, is %s and does not have it", row.Owner, job.State)
	}
	return nil
}

// owner is the job that owns a row, and the row in which it is. A job that is not made yet may
// have places in line by its batch.
func (x *rowCheck) owner(ctx context.Context, id string) (*table.Head, *ingest.Job, error) {
	row, err := x.Queue.Job(ctx, id)
	if err == nil {
		return &row.Head, &row.Job, nil
	}

	if !fault.Is(err, fault.NotFound) {
		return nil, nil, err
	}

	name, _, _ := strings.Cut(id, "-")
	batch, none := x.Queue.Batch(ctx, name)
	if none != nil {
		return nil, nil, none
	}

	first := batch.First()
	if first.ID != id || len(first.QueuedLocks()) == 0 {
		return nil, nil, err
	}
	return &batch.Head, &first, nil
}

// free removes a row whose owner does not have it. owner is the owner's row, nil if there is no
// such job; then the condition is that there is still none, because a job could be restored from
// a backup meanwhile.
func (x *rowCheck) free(owner *table.Head, name string) func(context.Context) error {
	return func(ctx context.Context) error {
		return x.commit(ctx, func(tx *table.Tx) {
			tx.RemoveOwned(x.Key, name)
			if owner == nil {
				tx.Require(subjectOf(event.Job, name).Key(), "attribute_not_exists(pk)")
			} else {
				tx.Require(owner.Key(), "rev = ?", owner.Rev)
			}
		})
	}
}

// checkMail checks that a pending mail is tried. Compose is nil in tests without mail; then
// nothing tries it, and it is never late.
func checkMail(_ context.Context, x *rowCheck) error {
	var m queue.Mail
	if !x.decode(&m) {
		return nil
	}

	x.subject = "batch:" + m.Batch
	if x.Queue.Compose != nil {
		x.due(m.Due, ingest.PlaceMail, false, "archivist batch show "+m.Batch)
	}

	should := m
	should.Place()
	x.placed(m.Head, should.Head, false, func(tx *table.Tx) { tx.Save(&should) })
	return nil
}

// lostContent is what a person does about lost keys of an object.
func lostContent(ark string) string { return lostKeys(ocfl.Prefix(ark)) }
