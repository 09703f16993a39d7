// Package preservation has the components that ship with the system: they check and copy stored
// objects, identify the formats of their files, and report batches that do not end.
//
// Each is a function that [Functions] names, and a definition in [Definitions], which [Install]
// applies. The work itself is in packages that know nothing of components: fixity, formats, replica
// and queue.
package preservation

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"archivist/pkg/components/component"
	"archivist/pkg/events/event"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/fixity"
	"archivist/pkg/objects/formats"
	"archivist/pkg/objects/inventory"
	"archivist/pkg/objects/replica"
)

// Names of the components, and of their functions.
const (
	FixityCheck    = "fixity-check"
	CopyCheck      = "copy-check"
	Identification = "format-identification"
	Replication    = "replication"
	FileRepair     = "file-repair"
	DelayedBatches = "delayed-batches"
)

// Names of the events of the components.
const (
	FixityChecked = "Fixity_checked"
	CopyChecked   = "Copy_checked"
	FormatsKnown  = "Format_identified"
	Replicated    = "Replicated"
	DelayChecked  = "Delay_checked"

	RepairRequested = "Repair_requested" // by a person
	RepairWorked    = "Repair_worked"
)

// PreservationFailures is the metric of objects with files that are damaged, missing or cannot be
// read, and of versions that cannot be copied. Any of them is an alarm.
const PreservationFailures = "PreservationFailures"

const (
	// itemSeconds is the time-out of an object or version: what is left follows in the next turn.
	itemSeconds = 600
	// margin is the part of it that is left to save what was done.
	margin = 30 * time.Second
	// atOnce is how many objects or versions are worked on at once; their reads share the bandwidth
	// of one bucket.
	atOnce = 4
)

// Options are the settings of a deployment on which definitions depend.
type Options struct {
	// FixityDays: an object is checked again after so many days.
	FixityDays int

	// Replica: there is a second bucket. Without one, components that copy or repair would only
	// fail, so they are left out.
	Replica bool
}

// Definitions are those of the components that ship. Each has an event of its own, in Old if the
// work is to be done again, in Future if once is enough.
func Definitions(o Options) []component.Definition {
	all := []component.Definition{
		check(FixityCheck, FixityChecked, o.FixityDays,
			"Reads the stored files of objects again and compares their digests."),
		newVersions(Identification, FormatsKnown,
			"Identifies the formats of the files of new versions by PRONOM."),
		{
			Name:        DelayedBatches,
			Event:       DelayChecked,
			Future:      []string{DelayChecked},
			Schedule:    "rate(1 day)",
			Items:       &component.Items{Filter: "Batch+All"},
			MaxDepth:    component.AnyDepth,
			Runnable:    component.Runnable{Function: DelayedBatches},
			Description: "Sends a mail about a batch that has not ended after some days.",
		},
	}

	if o.Replica {
		all = append(all, newVersions(Replication, Replicated,
			"Copies new versions to the second storage root and compares the digests of the copies."),
			check(CopyCheck, CopyChecked, o.FixityDays,
				"Reads the copies of objects in the second storage root again and compares their digests."),
			long(FileRepair, component.Definition{
				Event:       RepairWorked,
				PastSuccess: []string{RepairRequested},
				Future:      []string{RepairWorked},
				Items:       &component.Items{Filter: "Object+All"},
				Wake:        true,
				Description: "Plans repairs of files from their copies, and does those that a person has confirmed.",
			}))
	}
	return all
}

// check is a component that works on each object after a change, and some days after its last work.
func check(name, event string, days int, description string) component.Definition {
	return long(name, component.Definition{
		Event:       event,
		Old:         []string{event},
		EveryDays:   days,
		Schedule:    "rate(1 hour)",
		Items:       &component.Items{Filter: "Object+All"},
		MaxDepth:    component.AnyDepth,
		Description: description,
	})
}

// newVersions is a component that works on each version once. A failure is tried again three times,
// after an hour at first.
func newVersions(name, event, description string) component.Definition {
	return long(name, component.Definition{
		Event:       event,
		PastSuccess: []string{"version.create"},
		Future:      []string{event},
		Description: description,
		Items:       &component.Items{Filter: "Version+All"},
		MaxDepth:    component.AnyDepth,
		Wake:        true,
		Retry:       &component.Retry{Max: 3, Backoff: 3600},
	})
}

// long is a component whose work on an item can take several turns: a turn ends in time with Again.
// Its run takes as long as four of them, and the next goes on.
func long(name string, d component.Definition) component.Definition {
	d.Name, d.Runnable.Function, d.Concurrency = name, name, atOnce
	d.Timeout = &component.Timeout{Item: itemSeconds, Run: 4 * itemSeconds}
	return d
}

// Services do the work. Metric and Now must be set; what a deployment has not is nil.
type Services struct {
	Fixity  *fixity.Checker
	Formats *formats.Maker
	Open    formats.Open     // loads the signatures
	Replica *replica.Replica // nil: there is no second bucket
	Queue   *queue.Queue
	Metric  func(name string, value float64)
	Now     func() time.Time

	DelayDays int // a batch is reported after so many days
}

// Functions are those of the components, by name. Signatures are loaded when the first version is
// identified, and once for a process.
func Functions(s Services) map[string]component.Function {
	open := s.Open
	load := sync.OnceValue(func() (l loaded) { l.identify, l.signatures, l.err = open(); return l })
	s.Open = func() (formats.Identify, string, error) {
		l := load()
		return l.identify,
			l.signatures, l.err
	}
	return map[string]component.Function{
		FixityCheck:    function(s.checkFixity),
		CopyCheck:      function(s.checkCopy),
		Identification: function(s.identify),
		Replication:    function(s.replicate),
		FileRepair:     function(s.repair),
		DelayedBatches: function(s.reportDelay),
	}
}

// ErrNoSignatures is returned by an Open in a function without signatures.
var ErrNoSignatures = fault.New(fault.Unavailable, "this function has no signatures of formats")

// loaded are signatures that were loaded, or why they could not be: that does not change while the
// process lives.
type loaded struct {
	identify   formats.Identify
	signatures string
	err        error
}

// function is a Function.
type function func(ctx context.Context, w component.Work) (component.Result, error)

// Run calls it.
func (f function) Run(ctx context.Context, w component.Work) (component.Result, error) {
	return f(ctx, w)
}

// checkKind refuses, with an Invalid, items of another kind: a person can have changed the definition.
func checkKind(w component.Work, kind string) error {
	if w.Kind != kind {
		return fault.New(fault.Invalid, "%s is no %s, on which %s works", w.Item, kind, w.Component)
	}
	return nil
}

// version is the version of an object that is to be worked on: its ARK and number. An Invalid means
// that the item is none.
func version(w component.Work) (ark string, n int, err error) {
	if err := checkKind(w, component.KindVersion); err != nil {
		return "", 0, err
	}
	return inventory.ParseVersionID(w.Subject)
}

// until is when the work on an item stops, so that what was done is saved in its time, and the next
// turn goes on with it.
func until(w component.Work) time.Time { return time.UnixMilli(w.Deadline).Add(-margin) }

// checkFixity checks the stored files of an object, or the next of them.
func (s Services) checkFixity(ctx context.Context, w component.Work) (component.Result, error) {
	return s.checked(ctx, w, s.Fixity)
}

// checkCopy checks the copy of an object, or the next files of it. While a version of the object is copied, the
// check waits.
func (s Services) checkCopy(ctx context.Context, w component.Work) (component.Result, error) {
	if s.Replica == nil {
		return component.Result{}, errNoReplica
	}

	c := *s.Fixity // several objects are checked at once in a process
	c.At, c.Root, c.State = fixity.InCopy, s.Replica.SecondRoot(), s.Replica.Copied
	out, err := s.checked(ctx, w, &c)
	if errors.Is(err, replica.ErrNotCopied) {
		return component.Result{NotYet: true, Reason: err.Error()}, nil
	}
	return out, err
}

// errNoReplica means that a component works with a second bucket, and there is none.
var errNoReplica = fault.New(fault.Unavailable, "there is no second bucket: the setting replicaBucket is empty")

// checked checks an object, or the next part of it. Damage is a failure; files that S3 does not
// deliver are none, they are tried again. Both raise an alarm. A change of the object begins the
// check anew by itself, since its event is in old.
func (s Services) checked(ctx context.Context, w component.Work, c *fixity.Checker) (out component.Result, err error) {
	if err := checkKind(w, component.KindObject); err != nil {
		return out, err
	}

	r, err := c.Check(ctx, w.Subject, until(w))
	if err != nil {
		return again(err)
	}

	if r.Outcome == fixity.OK {
		return done("ok: %d files, %d bytes", r.Files, r.Bytes)
	}

	s.Metric(PreservationFailures, 1)
	if r.Outcome == fixity.Unreadable {
		return out, fault.New(fault.Unavailable,
			"%d of %d files could not be read for a day; the first: %s: %s",
			len(r.Problems)+r.More, r.Files, r.Problems[0].Key, r.Problems[0].Reason)
	}

	out.Outcome, out.Report.Total = event.Failure, len(r.Problems)+r.More
	out.Reason = fmt.Sprintf("%s: %d of %d files; the first: %s", r.Outcome, out.Report.Total,
		r.Files,
		r.Problems[0].Key)

	for _, p := range r.Problems {
		out.Report.Entries = append(out.Report.Entries, entry(w.Component, p))
	}
	return out, nil
}

// entry is a problem as an entry of a report: the file, and which digest was expected and found.
func entry(by string, p fixity.Problem) component.Entry {
	e := component.Entry{File: p.Key, Type: p.Kind, Component: by, Description: p.Reason}
	if e.Description == "" {
		e.Description = "expected the digest " + p.Expected
	}
	if p.Actual != "" {
		e.Details = "found the digest " + p.Actual
	}
	return e
}

// done is a success.
func done(format string, args ...any) (component.Result, error) {
	return component.Result{Reason: fmt.Sprintf(format, args...)}, nil
}

// again is the result of work that has not ended: if its time is over, it continues at once. Any
// other error stays as it is.
func again(err error) (component.Result, error) {
	if errors.Is(err, fixity.ErrStopped) || errors.Is(err, formats.ErrStopped) {
		return component.Result{Again: true, Reason: err.Error()}, nil
	}
	return component.Result{}, err
}

// identify identifies the files of a version, or the next of them.
func (s Services) identify(ctx context.Context,
	w component.Work) (out component.Result, err error) {
	ark, n, err := version(w)
	if err != nil {
		return out, err
	}

	// A copy, since several versions are worked on at once in a process.
	m := *s.Formats
	m.Identify, m.Signatures, err = s.Open()
	if err != nil {
		return out, err
	}

	r, err := m.Version(ctx, ark, n, until(w))
	if err != nil {
		return again(err)
	}
	return done("%d files of %d formats; %d files are of no known format, %d have warnings",
		r.Files,
		len(r.Formats)+r.More, r.Unknown, r.Warnings)
}

// replicate copies an object whose version is new. What cannot be copied as it is is a failure, and
// raises an alarm. A version that is copied with a later one is not copied again.
func (s Services) replicate(ctx context.Context,
	w component.Work) (out component.Result, err error) {
	ark, n, err := version(w)
	if err != nil {
		return out, err
	}

	if s.Replica == nil {
		return out, errNoReplica
	}

	last, err := s.Replica.Last(ctx, ark)
	if err != nil {
		return out, err
	}

	if last.Version <= n {
		last, err = s.Replica.Copy(ctx, ark, until(w))
		if err != nil {
			if !fault.Is(err, fault.Unavailable) { // the end of the time is one, too
				s.Metric(PreservationFailures, 1)
			}
			return again(err)
		}
	}
	return done("version %d is copied: %d files, %d bytes were read back", last.Version, last.Files,
		last.Bytes)
}

// repair goes on with the repairs of an object: their plans, and those that are confirmed. It
// changes no file that a person has not confirmed. The counts are of repairs that changed their
// state in this turn.
func (s Services) repair(ctx context.Context, w component.Work) (out component.Result, err error) {
	if err := checkKind(w, component.KindObject); err != nil {
		return out, err
	}

	if s.Replica == nil {
		return out, errNoReplica
	}

	counts := map[string]int{}
	for cursor, first := "", true; first || cursor != ""; first = false {
		var rows []replica.Repair
		rows, cursor, err = s.Replica.Repairs(ctx, w.Subject, cursor)
		if err != nil {
			return out, err
		}

		for _, row := range rows {
			now, err := s.Replica.Advance(ctx, w.Subject, row.ID, until(w))
			if err != nil {
				return again(err)
			}
			if now.State != row.State {
				counts[now.State]++
			}
		}
	}

	if counts[replica.Failed] > 0 {
		s.Metric(PreservationFailures, 1)
	}
	out, err = done("%d repairs are planned, %d refused, %d done, %d failed", counts[replica.Planned],
		counts[replica.Refused], counts[replica.Done], counts[replica.Failed])
	// A repair that was proposed or confirmed since they were listed.
	out.AgainAfter = RepairRequested
	return out, err
}

// RequestRepair makes the component file-repair look at the repairs of an object: one was proposed
// or confirmed. The first event makes the object one to be worked on, and the revocation lets the
// component do so again. Both can be repeated.
func RequestRepair(ctx context.Context, items *component.Store, ark string, by component.By) error {
	item := component.KindObject + ":" + ark
	_, err := items.Register(ctx, item, RepairRequested, event.Success, by)
	if err != nil {
		return err
	}
	_, err = items.Revoke(ctx, item, []string{RepairWorked}, by)
	return err
}

// reportDelay makes a mail due about a batch that has not ended after some days. Until then it
// answers NotYet, so that the batch is looked at again, and its event is recorded once.
func (s Services) reportDelay(ctx context.Context,
	w component.Work) (out component.Result, err error) {
	if err := checkKind(w, component.KindBatch); err != nil {
		return out, err
	}

	b, err := s.Queue.Batch(ctx, w.Subject)
	switch {
	case fault.Is(err, fault.NotFound):
		return done("the batch was removed")
	case err != nil:
		return out, err
	case b.HasEnded():
		return done("the batch has ended: %s", b.State)
	}

	days := int(s.Now().Sub(time.UnixMilli(b.Created)).Hours()) / 24
	if days < s.DelayDays {
		return component.Result{NotYet: true,
			Reason: fmt.Sprintf("the batch is %d days old; it is reported after %d",
				days, s.DelayDays)}, nil
	}

	owed, err := s.Queue.MailDelay(ctx, b)
	if err != nil {
		return out, err
	}

	if !owed {
		return done("the batch has not ended after %d days; this deployment sends no mails", days)
	}
	return done("the batch has not ended after %d days: a mail is sent", days)
}
