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

// FixityInput names an object, and which of its files are meant.
type FixityInput struct {
	ARKInput
	In string `query:"in" enum:"storage,copy" default:"storage"`
}

// locations are the names of locations on the wire.
var locations = map[string]fixity.Location{v1.InStorage: fixity.InStorage, v1.InCopy: fixity.InCopy}

// fixity is the last check of an object's stored files, or of their copies. An object that was not checked yet
// is a NotFound that says so, apart from one that does not exist.
func (a *API) fixity(ctx context.Context, in *FixityInput) (out v1.FixityCheck, err error) {
	o, err := a.Inventory.Object(ctx, in.ark())
	if err != nil {
		return out, err
	}

	last, err := locations[in.In].Last(ctx, a.Queue.Table, o.ARK)
	if err != nil {
		return out, err
	}

	r, checked := last[o.ARK]
	if !checked {
		return out, fault.New(fault.NotFound, "the files of %s in the %s were not checked yet", o.ARK, in.In)
	}

	out = v1.FixityCheck{
		In:       in.In,
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
