package identity

import (
	"context"
	"fmt"
	"slices"

	"archivist/pkg/description"
	"archivist/pkg/ingest"
)

// Adopt takes the identifiers that were found in the package into the job's, once
// the submission's own are resolved. An ARK must be the one that was submitted, or
// says which object it is. Local ids add to what the submission names; they never
// make it one for another object. It returns why the submission is refused, or "".
func (r Resolver) Adopt(ctx context.Context, j *ingest.Job, d description.Description) (refused string, err error) {
	if d.ARK != "" && j.Primary == "" {
		j.Primary = d.ARK
		if refused, err := r.Resolve(ctx, j); err != nil || refused != "" {
			return refused, err
		}
	}
	if d.ARK != "" && j.Primary != d.ARK {
		return fmt.Sprintf("the package's description names %s, but the submission is for %s. Correct one of them",
			d.ARK, j.Primary), nil
	}
	if _, err := ingest.CleanLocalIDs(slices.Concat(j.Submitted(), d.LocalIDs)); err != nil {
		return "together with the identifiers in the package's description: " + err.Error(), nil
	}

	j.LocalIDs, j.Found = j.Submitted(), 0
	for _, id := range d.LocalIDs {
		if slices.Contains(j.LocalIDs, id) {
			continue
		}
		if refused, err := r.adopt(ctx, j, id); err != nil || refused != "" {
			return refused, err
		}
		j.LocalIDs, j.Found = append(j.LocalIDs, id), j.Found+1
	}

	return "", nil
}

// adopt asks whether a local id that was found in the package can be one of the job's
// object. One that stands for an object of which nothing is stored, since the job
// that reserved it failed, says which object a submission is that names none.
func (r Resolver) adopt(ctx context.Context, j *ingest.Job, id string) (refused string, err error) {
	known, err := r.Inventory.ByLocalID(ctx, j.Collection, id)
	if err != nil || known == "" || known == j.Primary {
		return "", err
	}
	if j.Primary == "" {
		etag, err := r.Root.ETag(ctx, known)
		if err != nil || etag == "" {
			j.Primary = known
			return "", err
		}
	}

	return fmt.Sprintf("the package's description names the local id %q, which belongs to another object (%s). "+
		"To update that object, submit with that id; otherwise remove the id from the description", id, known), nil
}
