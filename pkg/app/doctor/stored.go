package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"archivist/pkg/events/check"
	"archivist/pkg/events/event"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/reindex"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/ocfl"
)

// actor is the name under which repairs of the storage root write.
const actor = "doctor"

// storedObject is the check of one object of the storage root. found is of one page of its
// keys, if the object is a large one.
type storedObject struct {
	*page
	prefix   string
	found    ocfl.Checked
	subject  string
	problems []check.Problem
}

// checkStored checks an object, after a key, as long as the page has time. known are all of
// its keys, nil if they are to be listed. It returns the key at which the check stopped.
//
// The keys are listed first, then rows and jobs are read. A job that commits in between makes
// both look wrong. So, after all, the root inventory is asked for its ETag: if a version was
// committed, all findings of this page are dropped, and the next run looks at the object
// again.
func (p *page) checkStored(ctx context.Context, prefix, after string, known []bucket.Listed) (
	problems []check.Problem, next string, err error) {
	s := &storedObject{page: p, prefix: prefix, subject: prefix}
	more := func() bool { return !p.enough() }
	for range 2 { // the second try tells a broken connection from a broken inventory
		s.found, err = p.root().Check(ctx, prefix, after, known, more)
		if err == nil {
			break
		}
	}

	switch {
	case err == nil:
	case outage(ctx, err):
		return nil, "", err
	// The rest of a large object is left out, too: the next run finds it at rest.
	case fault.Is(err, fault.NotFound) || fault.Is(err, fault.Stale):
		return nil, "", nil // the object changed during the check
	default:
		s.add("storage-readable", reindex.LostKeys(prefix), nil, "the root inventory cannot be read: %v", err)
		return s.problems, "", nil
	}

	if err := s.check(ctx, after == ""); err != nil {
		if outage(ctx, err) {
			return nil, "", err
		}
		return []check.Problem{check.Unreadable(s.subject, err)}, s.found.Next, nil
	}

	if len(s.problems) > 0 {
		etag, err := p.root().ETagAt(ctx, prefix)
		if err != nil {
			return nil, "", err
		}
		if etag != s.etag() {
			// A version was committed during the check: a job works on the object.
			return nil, s.found.Next, nil
		}
	}
	return s.problems, s.found.Next, nil
}

func (s *storedObject) etag() string {
	if s.found.Object == nil {
		return ""
	}
	return s.found.Object.ETag()
}

func (s *storedObject) add(invariant, command string, repair func(context.Context) error,
	evidence string,
	args ...any) {
	s.problems = append(s.problems, check.Problem{
		Invariant: invariant,
		Subject:   s.subject,
		Evidence:  fmt.Sprintf(evidence, args...),
		Command:   command,
		Repair:    repair,
	})
}

// check judges what differs. rows are compared with the object only once. An object at the
// place of another would be read as that one, so nothing else of it is judged. A job that is
// still at work records its version itself, and is left alone.
func (s *storedObject) check(ctx context.Context, rows bool) error {
	o := s.found.Object
	if o == nil {
		s.subject = s.prefix
		return s.unpublished(ctx)
	}

	s.subject = o.ID
	if ocfl.Prefix(o.ID) != s.prefix {
		s.add("storage-place", reindex.LostKeys(s.prefix), nil,
			"the inventory at %s is of %s, whose place is %s", s.prefix,
			o.ID, ocfl.Prefix(o.ID))
		return nil
	}

	why, repairable, err := "", true, error(nil)
	if rows || len(s.found.Damage) > 0 {
		why, repairable, err = s.Reindexer.Recorded(ctx, o)
	}

	if err != nil {
		return err
	}

	if err := s.damage(ctx, why == "" || repairable); err != nil {
		return err
	}

	if why == "" || !rows {
		return nil
	}

	ended, err := s.Queue.JobEnded(ctx, o.Job(o.Head))
	switch {
	case err != nil || !ended && repairable: // its job records it
	case repairable:
		s.add("storage-recorded", "archivist object reindex "+o.ID, s.reindex(o.ID), "%s", why)
	default:
		s.add("storage-recorded", reindex.Lost(o.ID)+"; the root inventory may be an older one", nil,
			"%s", why)
	}
	return err
}

// damage judges the keys that differ from the inventory. trusted is false if the rows say
// that the root inventory is not the one that was recorded: then nothing is repaired by it.
//
// Content that no inventory names is garbage, unless something is missing: then it may be the
// only copy of it, perhaps under another name, and is kept. The same holds if the job that
// wrote it is not known, since the table may be older than the bucket.
func (s *storedObject) damage(ctx context.Context, trusted bool) error {
	lost, err := s.lost(ctx)
	if err != nil {
		return err
	}

	for _, d := range s.found.Damage {
		is, safe, err := s.persists(ctx, d)
		if err != nil {
			return err
		}

		if !is {
			continue
		}

		name, command, repair := "storage-"+string(d.Kind), "", s.finish
		switch {
		case d.Kind == ocfl.Missing:
			command, repair = reindex.LostKeys(s.prefix), nil
		case d.Kind == ocfl.Foreign:
			command, repair = "find out what wrote them; Archivist does not remove them", nil
		case d.Kind == ocfl.Undeclared:
			repair = s.declare
		case lost || !trusted || !safe:
			command, repair = keepKeys, nil
		}

		s.add(name, command, repair, "%s: %s", damageText[d.Kind], keysOf(d))
	}
	return nil
}

// keepKeys is what a person does about keys that may be needed.
const keepKeys = "keep the keys until what is missing is restored: they may be the only copy; then: aws s3 rm"

// damageText says what is wrong with some keys.
var damageText = map[ocfl.DamageKind]string{
	ocfl.Missing:     "the inventory names these keys, which do not exist",
	ocfl.Unnamed:     "no inventory names these keys",
	ocfl.Uncommitted: "these keys are of a version that was never committed",
	ocfl.Undeclared:  "the declaration of the object is missing",
	ocfl.Stale:       "the sidecar differs from the root inventory",
	ocfl.Differing:   "these keys differ from the root inventory",
	ocfl.Foreign:     "these keys do not belong to an object",
}

// keysOf names the first five keys, the number of the others, and the job that wrote them.
func keysOf(d ocfl.Damage) string {
	most := 5
	text := strings.Join(d.Keys[:min(most, len(d.Keys))], ", ")
	if n := len(d.Keys) + d.More - most; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	if ingest.IsJobID(d.Job) { // another software can have written a key of the same form
		text += " (written by job " + d.Job + ")"
	}
	return text
}

// lost reports whether content of the object is missing. ocfl.Check collects missing keys in
// one Damage, so the first decides.
func (s *storedObject) lost(ctx context.Context) (bool, error) {
	for _, d := range s.found.Damage {
		if d.Kind == ocfl.Missing {
			is, _, err := s.persists(ctx, d)
			return is, err
		}
	}
	return false, nil
}

// persists reports whether damage is still there and no job will correct it, and whether the
// keys are safe to remove. What a job at work has left half done is not damage: it finishes
// it. Keys that were missing in the listing are asked for once more, since they may have been
// written right after it.
func (s *storedObject) persists(ctx context.Context, d ocfl.Damage) (is, safe bool, err error) {
	switch d.Kind {
	case ocfl.Missing, ocfl.Undeclared:
		is, err = s.absent(ctx, d.Keys)
		return is, false, err
	case ocfl.Stale, ocfl.Differing:
		is, err = s.Queue.JobEnded(ctx, s.found.Object.Job(s.found.Object.Head))
		return is, true, err
	case ocfl.Unnamed:
		return s.done(ctx, d.Job)
	case ocfl.Uncommitted:
		return s.allDone(ctx)
	}
	return true, false, nil
}

// absent reports whether one of some keys really does not exist.
func (s *storedObject) absent(ctx context.Context, keys []string) (bool, error) {
	for _, key := range keys {
		_, err := s.root().Bucket.Head(ctx, key)
		if fault.Is(err, fault.NotFound) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
	}
	return false, nil
}

// allDone is done for all jobs that wrote to the uncommitted version, and for one that has
// the lock of the object. Who has the lock may be about to write, even if it has written
// nothing yet.
func (s *storedObject) allDone(ctx context.Context) (done, safe bool, err error) {
	owner, err := s.Queue.LockedBy(ctx, ingest.ARKLock(s.id()))
	if err != nil || owner != "" {
		return false, false, err
	}

	done, safe = true, true
	for _, d := range s.found.Damage {
		if d.Kind != ocfl.Uncommitted || d.Job == "" {
			continue
		}
		o, s, err := s.done(ctx, d.Job)
		if err != nil {
			return false, false, err
		}
		done, safe = done && o, safe && s
	}
	return done, safe, nil
}

// id is the id of the object, "" if it is not known.
func (s *storedObject) id() string {
	if s.found.Object != nil {
		return s.found.Object.ID
	}
	return ocfl.IDOf(s.prefix)
}

// done reports whether a job will not write any more, also not after a requeue, and whether
// what it left may be removed: that it has ended is known from its row or its events. A job
// that has failed can be requeued, and continues with what it has uploaded, unless it is not
// recoverable. A job without a row is done; whether that is safe is told by its last event,
// because a table that was restored to an earlier time does not know it either. No job ("")
// is done, not safe.
func (p *page) done(ctx context.Context, job string) (done, safe bool, err error) {
	if job == "" {
		return true, false, nil
	}

	ended, err := p.Queue.JobEnded(ctx, job)
	if err != nil || !ended {
		return false, false, err
	}

	row, err := p.Queue.Job(ctx, job)
	if fault.Is(err, fault.NotFound) {
		last, err := p.LastState(ctx, event.Subject{Type: event.Job, ID: job})
		to := ingest.State(last)
		return true, to == ingest.Completed || to == ingest.Deleted, err
	}

	if err != nil {
		return false, false, err
	}

	done = slices.Contains([]ingest.State{ingest.Completed, ingest.Deleted}, row.State) ||
		row.State == ingest.Failed && row.NotRecoverable
	return done, done, nil
}

// finish repairs the object, and checks that this has helped. It needs no lock: what it
// writes has the condition that the root inventory is the same, and what it removes is named
// by no version, and of no job that can continue. Alone is false, since jobs may be at work
// on other versions; the fence has nothing to check.
func (s *storedObject) finish(ctx context.Context) error {
	ended := func(ctx context.Context, job string) (bool, error) {
		_, safe, err := s.done(ctx, job)
		return safe, err
	}

	_, err := s.root().Finish(ctx, s.id(), ocfl.Owner{
		Job:   actor,
		Ended: ended,
		Alone: func() bool { return false },
		Fence: func(context.Context) error { return nil },
	}, nil)
	if err != nil {
		return err
	}

	now, err := s.root().Check(ctx, s.prefix, "", nil, func() bool { return true })
	for _, d := range now.Damage {
		if d.Kind != ocfl.Foreign {
			return errors.Join(err,
				fault.New(fault.Conflict, "%s: %s", damageText[d.Kind], keysOf(d)))
		}
	}
	return err
}

// declare writes the missing declaration of the object.
func (s *storedObject) declare(ctx context.Context) error { return s.root().Declare(ctx, s.id()) }

// unpublished judges an object without a root inventory: its first version was never
// committed, or the inventory is lost.
//
// The two look alike in the bucket. Content of a job that is done, of an object without a
// row, was never committed, and is removed. If a row says that the object was recorded, or
// keys are there that no job has written, the inventory is lost, and a person has to restore
// it.
func (s *storedObject) unpublished(ctx context.Context) error {
	id := s.id()
	done, safe, err := s.allDone(ctx)
	if err != nil || !done {
		return err
	}

	claimed := slices.ContainsFunc(s.found.Damage, func(d ocfl.Damage) bool {
		return d.Kind == ocfl.Foreign || d.Kind == ocfl.Uncommitted && d.Job == ""
	})

	recorded, job, err := s.knownAs(ctx, id)
	if err != nil {
		return err
	}

	if len(s.found.Damage) == 0 { // declared only
		done, safe, err = s.done(ctx, job)
		if err != nil || !done {
			return err
		}
	}

	var keys []string
	for _, d := range s.found.Damage {
		keys = append(keys, keysOf(d))
	}

	evidence := "there is no root inventory of " + s.prefix + "; the keys: " +
		strings.Join(keys, "; ")
	switch {
	case claimed || recorded || id == "":
		command := reindex.LostKeys(s.prefix) +
			". If no version of it was ever committed, remove them with: aws s3 rm"
		s.add("storage-no-inventory", command, nil, "%s", evidence)
	case !safe:
		s.add("storage-uncommitted", keepKeys, nil,
			"%s. The jobs that wrote them are unknown: the table may have been restored to an earlier time", evidence)
	default:
		s.add("storage-uncommitted", "", s.abandon(id), "%s. Its first version was never committed", evidence)
	}
	return nil
}

// knownAs reports whether an object has a row, and which job reserved its ARK. job is "" if
// the ARK is not reserved, or the object has a row.
func (s *storedObject) knownAs(ctx context.Context,
	id string) (recorded bool, job string, err error) {
	if id == "" {
		return false, "", nil
	}

	_, err = s.Reindexer.Inventory.Object(ctx, id)
	if err == nil || !fault.Is(err, fault.NotFound) {
		return err == nil, "", err
	}

	reserved, err := s.Reindexer.Inventory.Reserved(ctx, id)
	if err != nil || reserved == nil {
		return false, "", err
	}
	return false, reserved.Job, nil
}

// abandon removes the keys of an object of which nothing was ever committed, last its
// declaration. If a job has begun to work on the object meanwhile, that is written again.
//
// The declaration goes last, so that a repair that was interrupted leaves an object that the
// next run finds as uncommitted. It goes only if no other keys have appeared. A job that
// takes the lock after that declares the object itself; for one that had it before, the
// declaration is put back.
func (s *storedObject) abandon(id string) func(context.Context) error {
	return func(ctx context.Context) error {
		for _, d := range s.found.Damage {
			folder := s.prefix + "v1/content/" + d.Job
			err := s.root().Bucket.List(ctx, folder, func(o bucket.Listed) error {
				return s.root().Bucket.Delete(ctx, o.Key)
			})
			if err != nil {
				return err
			}
		}

		now, err := s.root().Check(ctx, s.prefix, "", nil, func() bool { return true })
		if err != nil {
			return err
		}
		if now.Object != nil || len(now.Damage) > 0 {
			return fault.New(fault.Conflict, "there are other keys now")
		}

		if err := s.root().Undeclare(ctx, id); err != nil {
			return err
		}

		owner, err := s.Queue.LockedBy(ctx, ingest.ARKLock(id))
		if err != nil || owner == "" {
			return err
		}
		return s.root().Declare(ctx, id)
	}
}

// reindex is the repair that writes the rows of an object from the storage root.
func (s *storedObject) reindex(ark string) func(context.Context) error {
	return func(ctx context.Context) error { return s.Reindexer.Repair(ctx, ark, s.Until) }
}
