package api

import (
	"context"
	"errors"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest/policy"
	"archivist/pkg/objects/inventory"
)

// wireObjects are the wire forms of objects' rows, each with the reasons for which its content is kept. The profiles of
// their collections are read at once.
func (a *API) wireObjects(ctx context.Context, objects ...*inventory.Object) ([]v1.Object, error) {
	names := make([]string, len(objects))
	for i, o := range objects {
		names[i] = o.Collection
	}

	of, err := a.Collections.Policies(ctx, names...)
	if err != nil {
		return nil, err
	}

	out := make([]v1.Object, len(objects))
	for i, o := range objects {
		out[i] = wireObject(o, a.Queue.Now())
		var kept *policy.KeptError
		if errors.As(policy.Deletable(o, of[o.Collection], a.Queue.Now()), &kept) {
			out[i].Kept = wireKept(kept.Reasons)
		}
	}
	return out, nil
}

// wireKept is the wire form of reasons.
func wireKept(reasons []policy.Reason) []v1.Kept {
	return each(reasons, func(r policy.Reason) v1.Kept {
		return v1.Kept{Kind: r.Kind, Of: r.Of, Until: r.Until, Reason: r.Reason, By: r.By, At: r.At}
	})
}
