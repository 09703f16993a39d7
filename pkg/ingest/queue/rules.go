package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"archivist/pkg/events/check"
	"archivist/pkg/events/event"
	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// cleanAfter is after how long a clean-up that is due is a finding: clean-ups have only a part of the time of a sweep.
const cleanAfter = 24 * time.Hour

// RowRules are the rules of the rows of jobs, batches, bulk operations, and of all that these have.
func (q *Queue) RowRules() check.Rules {
	r := &rules{Queue: q}
	of := func(f func(x *exam, ctx context.Context) error) func(context.Context, *check.Row) error {
		return func(ctx context.Context, row *check.Row) error { return f(&exam{rules: r, Row: row}, ctx) }
	}

	return check.Rules{Name: "lists", State: &r.unlisted, Row: r.unlisted.passed, End: r.whole, Kinds: []check.Kind{
		{PK: "JOB", SK: "JOB", Rule: of((*exam).job), Needs: needsLists},
		{PK: "BATCH", SK: event.Prefix, Rule: of((*exam).batchEvent)},
		{PK: "BATCH", SK: "BATCH", Rule: of((*exam).batch)},
		{PK: "BATCH", SK: "COUNT", Rule: of((*exam).counts)},
		{PK: "COLLECTIONS"}, // a name that is lost is written again with the next submission
		{PK: slotPK, Rule: of((*exam).reservation)},
		{PK: spacePK, Rule: of((*exam).reservation)},
		{PK: "LOCK", Rule: of((*exam).reservation)},
		{PK: namedPK, Rule: of((*exam).listing), Needs: needsOwner},
		{PK: "MAIL", Rule: of((*exam).mail)},
		{PK: "KEY", SK: "KEY", Expires: true},
		{PK: "LEASE"},
		{PK: "HOLD", Rule: of((*exam).hold)},
		{PK: "QUEUE", SK: "QUEUE", Rule: of((*exam).queue)},
		{PK: "OPERATION", SK: "OPERATION", Expires: true, Rule: of((*exam).operation)},
		{PK: "OPERATION", Expires: true}, // what an operation refused or found
		{PK: "ACT", Expires: true, Rule: of((*exam).receipt)},
	}}
}

// rules are the rules of a page.
type rules struct {
	*Queue
	unlisted   unlisted
	operations sync.Map // keys of operations that exist: many receipts name the same
}

// exam is the check of one row.
type exam struct {
	*rules
	*check.Row
}

// late reports whether what is due at a place should have been done long ago.
func (x *exam) late(due int64, place string) bool {
	if place == ingest.WorkCleanUp {
		return x.LateBy(due, cleanAfter)
	}
	return x.Late(due)
}

// job checks a job's row, the rows that it owns, and its newest event. All checks are made even if one fails. A row
// that has a live lease is not moved in the indexes: the write would raise its rev, and its worker would lose the
// job.
func (x *exam) job(ctx context.Context) error {
	var j Job
	if !x.Into(&j) {
		return nil
	}

	if !x.valid("job", j.Job.ID, string(j.State), slices.Contains(ingest.JobStates(), j.State)) {
		return nil
	}

	x.progress(&j)
	should := j
	should.Place()
	err := errors.Join(x.owned(ctx, &j.Head, &j.Job),
		x.listed(ctx, &j.Head, j.Job.ID, Listed(&j.Job)),
		x.History(ctx, jobSubject(j.Job.ID), j.Version, string(j.State)))

	x.Placed(j.Head, should.Head, x.unless(j.Live(x.Queue.Now()), &should))
	return err
}

// valid checks that a job or batch has the id of its key, and is in a state that there is. If
// not, the other rules mean nothing for the row, and are not checked.
func (x *exam) valid(what, id, state string, known bool) bool {
	x.Subject = what + ":" + id
	own := x.PK == strings.ToUpper(what)+"#"+id
	switch {
	case !known:
		x.Row.Add("state", check.Restore, nil, "there is no state %q", state)
	case !own:
		x.Row.Add("row-key", check.Restore, nil, "the row says that it is %s %s", what, id)
	}
	return known && own
}

// progress checks that something moves a job on: a gate, a worker or the sweep. It reports
// the first thing that is missing: a slot exactly while the job runs, a turn at a gate, a
// reason of a hold, a due time at all other places.
func (x *exam) progress(j *Job) {
	explain := "archivist explain " + j.Job.ID
	place, _ := j.Job.WorkKey()
	switch {
	case j.Running() != j.HasSlot:
		x.Row.Add("job-slot",
			fmt.Sprintf("archivist job fail %s --reason …, then requeue it", j.Job.ID), nil,
			"the job is %s, running: %v, with a slot: %v", j.State, j.Running(), j.HasSlot)
	case j.Waiting() && j.Turn == "":
		x.Row.Add("job-turn", explain, nil,
			"the job is %s and at a gate without a turn: the gate cannot find it", j.State)
	case j.State == ingest.Held && j.Hold == nil:
		x.Row.Add("held-reason", fmt.Sprintf("archivist job release %s --reason …", j.Job.ID), nil,
			"the job is Held, but its row has no hold that says why")
	default:
		x.due(j.Due, place, j.Live(x.Queue.Now()), explain)
	}
}

// due checks that an item at a place that the sweep checks has a due time, which has not passed long ago.
// due is in milliseconds since 1970. An item with a live lease is being worked on, however
// late.
func (x *exam) due(due int64, place string, live bool, command string) {
	swept := place == ingest.WorkCleanUp || place == ingest.PlaceMail ||
		strings.HasPrefix(place, duePlace)
	switch {
	case swept && due == 0:
		x.Row.Add("due", command, nil, "it is never due: no sweep checks it")
	case swept && x.late(due, place) && !live:
		x.overdue(due, command)
	}
}

// duePlace begins the names of the places of due items.
var duePlace = strings.TrimSuffix(ingest.DuePK(0), "0")

// overdue says that the sweep has not acted on an item.
func (x *exam) overdue(due int64, command string) {
	x.Row.Add("overdue", command+
		"; if nothing is swept, look at the scheduler's alarms (docs/operations.md)", nil,
		"it was due at %s, and nothing has happened for %s", ingest.Timestamp(due),
		x.Queue.Now().Sub(time.UnixMilli(due)).Round(time.Second))
}

// unless is a repair of the row's places, which is not made while a worker has its lease: the write would take the row
// from it, and it corrects them itself.
func (x *exam) unless(live bool, should table.Row) func(tx *table.Tx) {
	if live {
		return nil
	}
	return func(tx *table.Tx) { tx.Save(should) }
}

// owned checks that the rows exist that a job owns, or a batch for its only job. Slots, spaces,
// locks and places in line are rows with the job as their owner. A row that is missing or has
// the wrong size is made as it should be, on the condition that the owner's row is the same: a job that has changed may
// not need the row any more. A row of another job is not touched, since which of the
// two is right cannot be told. owner is the row of the job or batch.
func (x *exam) owned(ctx context.Context, owner *table.Head, j *ingest.Job) error {
	for _, want := range Owned(j) {
		var row Reservation
		found, err := x.Read(ctx, want.Key(), &row)
		switch {
		case err != nil:
			return err
		case !found:
			x.Row.Add("reservation-missing", "", x.Making(owner, func(tx *table.Tx) { tx.Insert(&want) }),
				"the job has %s, but there is no such row", want.Key())
		case row.Owner != want.Owner:
			command := fmt.Sprintf("archivist job fail %s --reason …: two jobs must not own one row", j.ID)
			x.Row.Add("reservation-owner", command, nil, "the job has %s, but the row's owner is %s",
				want.Key(), row.Owner)
		case row.Bytes != want.Bytes:
			right := row
			right.Bytes = want.Bytes
			x.Row.Add("reservation-bytes", "", x.Making(owner, func(tx *table.Tx) { tx.Save(&right) }),
				"the job needs %d bytes, its row %s has %d", want.Bytes, want.Key(), row.Bytes)
		case !table.SameRow(&row, &want):
			right := want
			right.Head = row.Head
			x.Row.Add("reservation-row", "", x.Making(owner, func(tx *table.Tx) { tx.Save(&right) }),
				"its row %s is of the collection %q, and related to %v; by the job it should be %q, and %v", want.Key(),
				row.Collection, row.Related, want.Collection, want.Related)
		}
	}
	return nil
}

// ruleNamed has one name for jobs and batches: the rows are of one kind.
const ruleNamed = "job-named"

// needsLists are the keys of the rows under which a job is listed.
func needsLists(row table.Raw) (keys []table.Key) {
	var j Job
	if row.Decode(&j) != nil {
		return nil
	}
	for _, r := range Listed(&j.Job) {
		keys = append(keys, r.Key())
	}
	return keys
}

// needsOwner is the key of the job or batch that a row lists.
func needsOwner(row table.Raw) []table.Key {
	var r table.Owned
	if row.Decode(&r) != nil {
		return nil
	}
	if strings.HasPrefix(row.PK, namedBatch) {
		return []table.Key{batchKey(r.Owner)}
	}
	return []table.Key{jobKey(r.Owner)}
}

// listed checks that a job or batch is listed where it should be. of is its own row.
func (x *exam) listed(ctx context.Context, of *table.Head, id string, rows []table.Row) error {
	var all error
	x.unlisted.begin(x.Key)
	for _, want := range rows {
		should := shown{Owned: table.Owned{Owner: id}}
		if w, is := want.(*shown); is {
			should = *w
		}
		var row shown
		if x.Paired(want.Key(), &row) && row.Owner == id && table.SameRow(&row, &should) {
			continue
		}
		row = shown{}
		found, err := x.Read(ctx, want.Key(), &row)
		should.Head = row.Head
		missing := func(evidence string, put func(tx *table.Tx)) {
			x.unlisted.add(x.Key, 1)
			x.Row.Add(ruleNamed, check.Repair, x.unlisted.repairing(x.Key, x.Making(of, put)), "its row %s %s",
				want.Key(), evidence)
		}
		switch {
		case err != nil:
			x.unlisted.add(x.Key, 1)
			all = errors.Join(all, err)
		case !found:
			missing("is missing", func(tx *table.Tx) { tx.Insert(want) })
		case row.Owner != id:
			x.unlisted.add(x.Key, 1)
			x.Row.Add(ruleNamed, check.Restore, nil, "its row %s is of %s", want.Key(), row.Owner)
		case !table.SameRow(&row, &should):
			missing(fmt.Sprintf("says %q %q %q; it should say %q %q %q", row.Text, row.Collection, row.Submitter,
				should.Text, should.Collection, should.Submitter), func(tx *table.Tx) { tx.Save(&should) })
		}
	}
	return all
}

// listing checks that a job or batch is listed where a row lists it.
func (x *exam) listing(ctx context.Context) error {
	var row table.Owned
	if !x.Into(&row) {
		return nil
	}
	if !strings.HasPrefix(x.PK, namedBatch) {
		var j Job
		if x.Paired(jobKey(row.Owner), &j) && j.Job.ID == row.Owner && slices.ContainsFunc(Listed(&j.Job), x.is) {
			return nil
		}
		return x.owns(ctx, row.Owner, Listed)
	}
	return x.listingBatch(ctx, row.Owner)
}

// listingBatch is listing for a row that lists a batch.
func (x *exam) listingBatch(ctx context.Context, owner string) error {
	var read Batch
	if x.Paired(batchKey(owner), &read) && read.Batch.ID == owner &&
		slices.ContainsFunc(listedBatch(&read.Batch), x.is) {
		return nil
	}

	b, err := x.Batch(ctx, owner)
	switch {
	case fault.Is(err, fault.NotFound):
		x.Row.Add("reservation-owner", "", x.free(nil, batchKey(owner), owner),
			"its owner, batch %s, does not exist", owner)
		return nil
	case err != nil:
		return err
	}
	known := b.Batch.ID == owner && slices.Contains(ingest.BatchStates(), b.State)
	if known && !slices.ContainsFunc(listedBatch(&b.Batch), x.is) {
		x.Row.Add("reservation-owner", "", x.free(&b.Head, b.Key(), owner),
			"its owner, batch %s, is %s and is not listed here", owner, b.State)
	}
	return nil
}

// is reports whether the row has the key of another.
func (x *exam) is(row table.Row) bool { return row.Key() == x.Key }

// reservation checks that the owner of a slot, space, lock or place in line lives and
// has it. owned looks from the job to its rows; this looks from the row to its job, and finds
// what nobody would give back.
func (x *exam) reservation(ctx context.Context) error {
	var row Reservation
	if !x.Into(&row) {
		return nil
	}
	return x.owns(ctx, row.Owner, rowsOf)
}

// owns checks that a job lives and has the row, which is one of those that follow from it.
func (x *exam) owns(ctx context.Context, id string, rows func(*ingest.Job) []table.Row) error {
	owner, job, err := x.owner(ctx, id)
	if fault.Is(err, fault.NotFound) {
		x.Row.Add("reservation-owner", "", x.free(nil, jobKey(id), id),
			"its owner, job %s, does not exist", id)
		return nil
	}

	if err != nil {
		return err
	}

	if job.ID != id || !slices.Contains(ingest.JobStates(), job.State) {
		return nil // the rule of that row says what is wrong with it
	}

	if !slices.ContainsFunc(rows(job), x.is) {
		x.Row.Add("reservation-owner", "", x.free(owner, owner.Key(), id),
			"its owner, job %s, is %s and does not have it", id, job.State)
	}
	return nil
}

// owner is the job that owns a row, and the row in which it is. A job that is not made yet may
// have places in line by its batch.
func (x *exam) owner(ctx context.Context, id string) (*table.Head, *ingest.Job, error) {
	row, err := x.Job(ctx, id)
	if err == nil {
		return &row.Head, &row.Job, nil
	}

	if !fault.Is(err, fault.NotFound) {
		return nil, nil, err
	}

	name, _, _ := strings.Cut(id, "-")
	batch, none := x.Batch(ctx, name)
	if none != nil {
		return nil, nil, none
	}

	first := batch.First()
	if first.ID != id || len(first.QueuedLocks()) == 0 {
		return nil, nil, err
	}
	return &batch.Head, &first, nil
}

// free removes a row whose owner does not have it. owner is the owner's row, nil if there is none at
// its key; then the condition is that there is still none, because a job could be restored from
// a backup meanwhile.
func (x *exam) free(owner *table.Head, at table.Key, name string) func(context.Context) error {
	return func(ctx context.Context) error {
		return x.Commit(ctx, func(tx *table.Tx) error {
			tx.RemoveOwned(x.Key, name)
			if owner == nil {
				tx.Require(at, "attribute_not_exists(pk)")
			} else {
				tx.Require(at, "rev = ?", owner.Rev)
			}
			return nil
		})
	}
}

// mail checks that a pending mail is tried. Compose is nil in tests without mail; then
// nothing tries it, and it is never late.
func (x *exam) mail(_ context.Context) error {
	var m Mail
	if !x.Into(&m) {
		return nil
	}

	x.Subject = "batch:" + m.Batch
	if x.Compose != nil {
		x.due(m.Due, ingest.PlaceMail, false, "archivist batch show "+m.Batch)
	}

	should := m
	should.Place()
	x.Placed(m.Head, should.Head, func(tx *table.Tx) { tx.Save(&should) })
	return nil
}
