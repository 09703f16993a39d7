package api

import (
	"context"

	"archivist/pkg/ingest"
)

// used reports whether a collection was ever used, or has objects, which may have come by a reindex.
func (a *API) used(ctx context.Context, name string) (bool, error) {
	is, err := a.Queue.Used(ctx, name)
	if is || err != nil {
		return is, err
	}
	objects, _, err := a.Inventory.Collection(ctx, name, "")
	return len(objects) > 0, err
}

// newCollection says that a collection was never used, with those whose names are nearly the same; "" if it was used.
// One who may not read everything is not told the names of others.
func (a *API) newCollection(ctx context.Context, name string) (string, error) {
	used, err := a.used(ctx, name)
	if used || err != nil {
		return "", err
	}

	var near []string
	if identityOf(ctx).Is(viewer) {
		near, err = a.Queue.Near(ctx, name)
	}
	return ingest.Unused(name, near) + ". This submission begins it", err
}
