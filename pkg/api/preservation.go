package api

import (
	"context"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/fixity"
	"archivist/pkg/objects/formats"
)

// preservation registers the routes of what the components that ship keep of objects.
func (a *API) preservation(h huma.API) {
	const object = "/v1/objects/{naan}/{name}"
	get(a, h, object+"/fixity", "getFixity", "Get the last fixity check of an object", a.fixity)
	get(a, h, object+"/versions/{n}/formats", "listFormats",
		"List the formats of a version's files", a.formats)
}

// fixity is the last check of an object's stored files. An object that was not checked yet is a
// NotFound that says so, apart from one that does not exist.
func (a *API) fixity(ctx context.Context, in *ARKInput) (out v1.FixityCheck, err error) {
	o, err := a.Inventory.Object(ctx, in.ark())
	if err != nil {
		return out, err
	}

	last, err := fixity.Last(ctx, a.Queue.Table, o.ARK)
	if err != nil {
		return out, err
	}

	r, checked := last[o.ARK]
	if !checked {
		return out, fault.New(fault.NotFound, "the stored files of %s were not checked yet", o.ARK)
	}

	out = v1.FixityCheck{
		Checked:  ingest.Timestamp(r.Checked),
		Outcome:  r.Outcome,
		Version:  r.Version,
		Files:    r.Files,
		Bytes:    r.Bytes,
		OnRecord: r.OnRecord,
		More:     r.More,
	}

	for _, p := range r.Problems {
		out.Problems = append(out.Problems, v1.FixityProblem(p))
	}
	return out, nil
}

// formats lists the formats of a version's files. A cursor is the number of a stored page, from 1. A
// version whose formats are not identified yet is a NotFound.
func (a *API) formats(ctx context.Context, in *FilesInput) (v1.List[v1.FileFormats], error) {
	out := v1.List[v1.FileFormats]{Items: []v1.FileFormats{}}
	o, err := a.Inventory.Object(ctx, in.ark())
	if err != nil {
		return out, err
	}

	number := 0
	if in.Cursor != "" {
		number, err = strconv.Atoi(in.Cursor)
		if err != nil || number < 1 {
			return out, badCursor(in.Cursor)
		}
	}

	page, next, err := formats.Store{Table: a.Queue.Table, Derived: a.Derived}.Page(ctx, o.ARK,
		in.Version, number)
	if err != nil {
		return out, err
	}

	for _, f := range page.Files {
		wire := v1.FileFormats{Path: f.Path, Size: f.Size}
		for _, m := range f.Matches {
			wire.Formats = append(wire.Formats, v1.Format(m))
		}
		out.Items = append(out.Items, wire)
	}

	if next > 0 {
		out.Cursor = strconv.Itoa(next)
	}
	return out, nil
}
