package ezid

import (
	"context"
	"fmt"
	"strings"

	"archivist/pkg/events/consumer"
	"archivist/pkg/events/event"
	"archivist/pkg/formats/erc"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/collection"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/inventory"
	"archivist/pkg/objects/ocfl"
)

// Name of the consumer that keeps what EZID has of objects, and of its handler.
const Name = "ezid"

// Definition of the consumer. EZID wants few requests at once of one client.
var Definition = consumer.Definition{
	Name:        Name,
	Version:     1,
	Description: "Registers the ARKs of objects with EZID.",
	Filter:      "Object+Create|Modify|Modify_Metadata|Add|Remove|Delete|Install:Job+Delete",
	Target:      consumer.Target{Handler: Name},
	MaxDepth:    consumer.AnyDepth,
	Order:       consumer.OrderSubject,
	Coalesce:    &consumer.Coalesce{},
	Batch:       10,
	Concurrency: 4,
	Start:       consumer.StartHorizon,
	Required:    true,
}

// Registry keeps the registrations of the collections whose profile says so.
type Registry struct {
	Client      *Client
	Collections collection.Store
	Inventory   inventory.Store
	Root        ocfl.Root
	Queue       *queue.Queue
	Target      string // of objects: their ARK is put behind it, after a slash
}

// registers reports whether the ARKs of a collection are registered.
func (r *Registry) registers(ctx context.Context, name string) (bool, error) {
	p, _, err := r.Collections.Profile(ctx, name)
	return p.Register == collection.RegisterEZID, err
}

// Reserve reserves the ARK of a job before anything is stored under it. One that was drawn for the job must be new, or
// of an earlier try of this job; one that the depositor gave may be there. refused is why it cannot be used, "" if it
// can. An error is one of EZID or of the secret; the job is tried again.
func (r *Registry) Reserve(ctx context.Context, j *ingest.Job, drawn bool) (refused string, err error) {
	on, err := r.registers(ctx, j.Collection)
	if err != nil || !on {
		return "", err
	}

	created, err := r.Client.Create(ctx, j.Primary, Record{Status: Reserved, Job: j.ID})
	if err == nil && !created && drawn {
		var known Record
		known, err = r.Client.Get(ctx, j.Primary)
		if err == nil && known.Job != j.ID {
			return fmt.Sprintf("%s is registered at EZID already, and not by this job. Delete that reservation, "+
				"then %s; or submit the content again, for another ARK", j.Primary, j.Again()), nil
		}
	}
	if refusing(err) {
		return fmt.Sprintf("the ARK could not be reserved: %v. Correct the secret %s, or what its user may do at "+
			"EZID, then %s", err, collection.EZIDSecret, j.Again()), nil
	}
	return "", err
}

// refusing reports whether EZID has refused a call: another try does not cure it.
func refusing(err error) bool {
	return fault.Is(err, fault.Invalid) || fault.Is(err, fault.Denied)
}

// Handle makes right what EZID has of the objects and of the deleted jobs that events are about. It reads what is
// stored now, and not the event, so it can be repeated, and events can be left out.
func (r *Registry) Handle(ctx context.Context, b consumer.Batch) ([]consumer.Failure, error) {
	denied := error(nil)
	failed, err := consumer.Each(ctx, b, nil, func(ctx context.Context, it consumer.Item) error {
		if denied != nil {
			return denied
		}

		var err error
		if it.Subject.Type == event.Object.String() {
			err = r.publish(ctx, it.Subject.ID)
		} else {
			err = r.free(ctx, it)
		}

		switch {
		case fault.Is(err, fault.Denied):
			denied = err
		case err != nil && !fault.Is(err, fault.Invalid):
			return fault.New(fault.Unavailable, "ezid: %w", err)
		}
		return err
	})
	if denied != nil { // nothing can be registered now: no event is to blame
		return nil, denied
	}
	return failed, err
}

// publish makes the ARK of an object public with its description, or unavailable if the object is withdrawn.
func (r *Registry) publish(ctx context.Context, ark string) error {
	o, err := r.Inventory.Object(ctx, ark)
	if fault.Is(err, fault.NotFound) {
		return nil // its row was lost; it is written again with an event
	}
	if err != nil {
		return err
	}

	on, err := r.registers(ctx, o.Collection)
	if err != nil || !on {
		return err
	}

	want := Record{Status: Public, Target: r.Target + "/" + ark, ERC: description(o)}
	if o.Withdrawal != nil {
		want.Status = Unavailable
	}
	return r.Client.ensure(ctx, ark, want)
}

// ensure makes an identifier right, if it is not.
func (c *Client) ensure(ctx context.Context, ark string, want Record) error {
	known, err := c.Get(ctx, ark)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}

	known.Job = ""
	if known == want {
		return nil
	}

	if want.Status == Unavailable && (known.Status == "" || known.Status == Reserved) {
		public := want
		public.Status = Public // EZID makes only a public one unavailable
		if err := c.Set(ctx, ark, public); err != nil {
			return err
		}
	}
	return c.Set(ctx, ark, want)
}

// description is the ERC record of an object, as one value (EZID's API, "Metadata profiles").
func description(o *inventory.Object) string {
	said := func(v string) string {
		if erc.Absent(v) {
			return "(:unkn)"
		}
		return strings.Join(strings.Fields(v), " ")
	}
	return "who: " + said(o.Who) + "\nwhat: " + said(o.Title) + "\nwhen: " + said(o.When)
}

// free deletes the reservations of a deleted job.
func (r *Registry) free(ctx context.Context, it consumer.Item) error {
	for _, id := range it.Identifiers {
		if !strings.HasPrefix(id, "ark:/") {
			continue
		}
		if err := r.Free(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// Free deletes the reservation of an ARK if it is left.
func (r *Registry) Free(ctx context.Context, ark string) error {
	left, err := r.Left(ctx, ark)
	if err != nil || !left {
		return err
	}
	return r.Client.Delete(ctx, ark)
}

// Left reports whether an ARK is reserved at EZID although nothing will be stored under it: the job that has reserved
// it is over, no other one has the ARK, and there is no object.
func (r *Registry) Left(ctx context.Context, ark string) (bool, error) {
	row, err := r.Inventory.Reserved(ctx, ark)
	if err != nil || row == nil {
		return false, err
	}

	on, err := r.registers(ctx, row.Collection)
	if err != nil || !on {
		return false, err
	}

	used, err := r.used(ctx, ark, row.Job)
	if err != nil || used {
		return false, err
	}

	known, err := r.Client.Get(ctx, ark)
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	return err == nil && known.Status == Reserved && known.Job == row.Job, err
}

// used reports whether an object has an ARK, or a job may still store one.
func (r *Registry) used(ctx context.Context, ark, job string) (bool, error) {
	etag, err := r.Root.ETag(ctx, ark)
	if err != nil || etag != "" {
		return true, err
	}

	owner, err := r.Queue.LockedBy(ctx, ingest.ARKLock(ark))
	if err != nil || owner != "" {
		return true, err
	}

	j, err := r.Queue.Job(ctx, job)
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	return err != nil || j.State != ingest.Deleted, err
}
