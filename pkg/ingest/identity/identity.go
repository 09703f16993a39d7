// Package identity decides which object a submission is for: one that is stored, found
// by the local ids or the ARK that the depositor gave, or a new one with an ARK of its
// own.
//
// A [Resolver] decides, and changes nothing. It reads the inventory first, and the storage
// root if there is no row, since rows can be lost. A [Registrar] records the decision: the
// ARK is reserved, the local ids stand for the object, and the job holds their locks,
// before anything is stored.
//
//	refused, err := resolver.Resolve(ctx, job)
//	refused, err = resolver.Adopt(ctx, job, description)
//	result, err := registrar.Assign(ctx, claim)
package identity

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"archivist/pkg/formats/ark"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/collection"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/aip"
	"archivist/pkg/objects/inventory"
	"archivist/pkg/objects/ocfl"
)

// Resolver finds the object that a job is for.
type Resolver struct {
	Inventory   inventory.Store
	Collections collection.Store
	Root        ocfl.Root
	NAAN        string                                    // of minted ARKs
	Shoulder    string                                    // of collections whose profile names none
	Draw        func(job string, try int) func(n int) int // numbers for a job's ARK; see Draw
}

// Foreign refuses a submission for an object of another collection. It names no collection. Whose
// objects there are is not for other depositors.
func Foreign(ark string) string {
	return ark + " is not an object that this submission may change"
}

// Resolve finds the job's object by the local ids and by the ARK that the depositor
// gave. It returns why the submission is refused, or "". The job's primary identifier is in its
// canonical form then.
func (r Resolver) Resolve(ctx context.Context, j *ingest.Job) (refused string, err error) {
	found, by, refused, err := r.byLocalIDs(ctx, j)
	if err != nil || refused != "" {
		return refused, err
	}

	// A Known one was looked up before the job had its locks: since then it can stand for another
	// object.
	if j.Primary == "" || j.Known {
		j.Primary, j.Known = found, found != ""
		return "", nil
	}

	given, err := ark.Parse(j.Primary)
	if err != nil {
		return "the primary identifier is not an ARK: " + err.Error(), nil
	}

	j.Primary = given.String()
	if found != "" && found != j.Primary {
		return fmt.Sprintf("the local id %q belongs to another object than %s. Remove one of them",
			by, j.Primary), nil
	}

	return r.allowed(ctx, j, given)
}

// byLocalIDs finds the one object of the submitted local ids, and the id that names it.
func (r Resolver) byLocalIDs(ctx context.Context,
	j *ingest.Job) (found, by, refused string, err error) {
	for _, id := range j.Submitted() {
		known, err := r.Inventory.ByLocalID(ctx, j.Collection, id)
		if err != nil {
			return "", "", "", err
		}

		if known != "" && found != "" && known != found {
			return "", "",
				fmt.Sprintf("the local ids %q and %q belong to different objects (%s, %s). "+
					"Submit one object at a time", by, id, found, known), nil
		}

		if known != "" {
			found, by = known, id
		}
	}

	return found, by, "", nil
}

// allowed checks that a given ARK may be used: that of an object of this collection, or a
// new one on its shoulder. If the object has no row, the storage root is checked, since
// rows can be lost.
func (r Resolver) allowed(ctx context.Context, j *ingest.Job,
	given ark.ARK) (refused string, err error) {
	object, err := r.Inventory.Object(ctx, given.String())
	switch {
	case err == nil && object.Collection != j.Collection:
		return r.foreign(ctx, j.Collection, given)
	case err == nil:
		return "", nil
	case !fault.Is(err, fault.NotFound):
		return "", err
	}

	v, err := r.Root.Judge(ctx, given.String())
	if err != nil {
		return "", err
	}

	if v.Trust == ocfl.Unused {
		return r.unused(ctx, j, given)
	}

	if err := v.Err(); err != nil {
		return "", err
	}

	id, err := aip.Head(r.Root, v.Object).Identity(ctx)
	if err == nil && !id.In(j.Collection) {
		return r.foreign(ctx, j.Collection, given)
	}
	return "", err // its rows are brought back in Processing
}

// unused checks that an ARK of which nothing is stored may become a new object's.
func (r Resolver) unused(ctx context.Context, j *ingest.Job,
	given ark.ARK) (refused string, err error) {
	reserved, err := r.Inventory.Reserved(ctx, given.String())
	if err != nil {
		return "", err
	}
	// The job's own reservation is of an earlier try.
	if reserved != nil && reserved.Collection != j.Collection && reserved.Job != j.ID {
		return r.foreign(ctx, j.Collection, given)
	}
	shoulder, err := r.shoulder(ctx, j.Collection)
	return mistaken(given, ark.ARK{NAAN: r.NAAN, Name: shoulder}), err
}

// foreign is why a submission to a collection cannot have the ARK of another one's object. If no new object of the
// collection can have the ARK, that is why: so the answer does not say whether there is such an object.
func (r Resolver) foreign(ctx context.Context, collection string, given ark.ARK) (refused string, err error) {
	shoulder, err := r.shoulder(ctx, collection)
	return cmp.Or(mistaken(given, ark.ARK{NAAN: r.NAAN, Name: shoulder}), Foreign(given.String())), err
}

// mistaken returns why a given ARK cannot be that of a new object on a shoulder, or "".
func mistaken(given, shoulder ark.ARK) string {
	const instead = "omit it to have one minted"
	switch {
	case given.NAAN != shoulder.NAAN || !strings.HasPrefix(given.Name, shoulder.Name):
		return fmt.Sprintf("%s, and a new one cannot have it, since it is not on the "+
			"shoulder %s of this collection; %s", Foreign(given.String()), shoulder, instead)
	case given == shoulder:
		return fmt.Sprintf("%s is the shoulder of this collection, not an object's ARK; %s", given, instead)
	// NOID's check character finds a wrong character, and two neighbours that are interchanged.
	case !given.Valid():
		return fmt.Sprintf("the check character of %s is wrong; correct the ARK, or %s", given, instead)
	}
	return ""
}

// Unusable returns why an ARK cannot be given in a submission to a collection, or "": what Estimate would refuse
// is refused when it is submitted. What is stored can be updated, also if its row was lost; whose it is then, Estimate
// reads.
func (r Resolver) Unusable(ctx context.Context, collection, text string) (string, error) {
	given, err := ark.Parse(text)
	if err != nil {
		return err.Error(), nil
	}

	object, err := r.Inventory.Object(ctx, given.String())
	switch {
	case err == nil && object.Collection != collection:
		return r.foreign(ctx, collection, given)
	case err == nil || !fault.Is(err, fault.NotFound):
		return "", err
	}

	why, err := r.unused(ctx, &ingest.Job{Collection: collection}, given)
	if err != nil || why == "" {
		return "", err
	}

	etag, err := r.Root.ETag(ctx, given.String())
	if err != nil || etag != "" {
		return "", err
	}
	return why, nil
}

// shoulder is the shoulder of a collection's ARKs.
func (r Resolver) shoulder(ctx context.Context, collection string) (string, error) {
	profile, _, err := r.Collections.Profile(ctx, collection)
	return cmp.Or(profile.Shoulder, r.Shoulder), err
}
