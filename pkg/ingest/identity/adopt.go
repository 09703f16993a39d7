package identity

import (
	"context"
	"fmt"
	"slices"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/description"
)

// Adopt adds the identifiers that were found in the package to the job's, after the
// submission's own are resolved. An ARK must be the one that was submitted; if none was
// submitted, it names the object. Local ids are added to those of the submission; they
// never select another object. Adopt returns why the submission is refused, or "". An error means
// that it could not be found out; another try may.
func (r Resolver) Adopt(ctx context.Context, j *ingest.Job,
	d description.Description) (refused string, err error) {
	if d.ARK != "" && j.Primary == "" {
		j.Primary = d.ARK
		if refused, err := r.Resolve(ctx, j); err != nil || refused != "" {
			return refused, err
		}
	}

	// After Resolve, so also if the local ids of the submission have named the object.
	if d.ARK != "" && j.Primary != d.ARK {
		return fmt.Sprintf("the package's description names %s, but the submission is for %s. Correct one of them",
			d.ARK, j.Primary), nil
	}

	// All of them together have locks in one transaction.
	if _, err := ingest.CleanLocalIDs(slices.Concat(j.Submitted(), d.LocalIDs)); err != nil {
		return "together with the identifiers in the package's description: " + err.Error(), nil
	}

	// A second try begins with the submission's own ids again.
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

// adopt checks that a local id that was found in the package can be one of the job's
// object. It may stand for an object of which nothing is stored, since the job that
// reserved it failed. Then it selects that object for a submission that names none.
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
		"To update that object, submit with that id; otherwise remove the id from the description",
		id, known), nil
}
