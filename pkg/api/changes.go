package api

import (
	"context"
	"fmt"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/objects/aip"
)

// changes lists which of the depositor's files differ between a version and the one before. A cursor has the places in
// both lists of files.
func (a *API) changes(ctx context.Context, in *FilesLimit) (v1.List[v1.FileChange], error) {
	out := v1.List[v1.FileChange]{Items: []v1.FileChange{}}
	_, stored, err := a.stored(ctx, in.VersionInput)
	if err != nil {
		return out, err
	}

	var from aip.Places
	if in.Cursor != "" {
		n, err := fmt.Sscanf(in.Cursor, "%d.%d", &from.Was, &from.Is)
		if err != nil || n != 2 || from.Was < 0 || from.Is < 0 || cursorOf(from) != in.Cursor {
			return out, badCursor(in.Cursor)
		}
	}
	var was *aip.Version
	if in.Version > 1 {
		before := aip.Of(a.Root, stored, in.Version-1)
		was = &before
	}
	changes, next, err := aip.Changes(ctx, was, aip.Of(a.Root, stored, in.Version), from, in.Limit)
	for _, c := range changes {
		out.Items = append(out.Items, wireFileChange(c))
	}
	if next != nil {
		out.Cursor = cursorOf(*next)
	}
	return out, err
}

func cursorOf(p aip.Places) string { return fmt.Sprintf("%d.%d", p.Was, p.Is) }

// wireFileChange is the wire form of a change.
func wireFileChange(c aip.Change) v1.FileChange {
	out := v1.FileChange{Change: c.Kind}
	if c.Was != nil {
		out.Path, out.Was = c.Was.Path, &v1.FileState{Size: c.Was.Size,
			SHA512: c.Was.Digests["sha512"]}
	}
	if c.Is != nil {
		out.Path, out.Is = c.Is.Path, &v1.FileState{Size: c.Is.Size, SHA512: c.Is.Digests["sha512"]}
	}
	return out
}
