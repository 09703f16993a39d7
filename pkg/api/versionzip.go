package api

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/danielgtaylor/huma/v2"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/aip"
	"archivist/pkg/objects/inventory"
	"archivist/pkg/objects/ocfl"
	"archivist/pkg/views/versionzip"
)

// versionZips registers the routes of zip files of versions.
func (a *API) versionZips(h huma.API) {
	const path = "/v1/objects/{naan}/{name}/versions/{n}/zip"
	post(a, h, path, "makeZip", "Make a zip file of a version", a.makeZip)
	redirect(a, h, path, "getZip", "Get the zip file of a version", a.zip)
}

// zipping is how long a zip file may take: the request ends at 29 seconds, and its answer has to be sent.
const zipping = 24 * time.Second

// zipped is what a zip file is made of: an object whose files may be given out, and a version that is not too large.
func (a *API) zipped(ctx context.Context, in *VersionInput) (o *inventory.Object, stored *ocfl.Stored,
	row inventory.Version, err error) {
	o, stored, err = a.stored(ctx, *in)
	if err == nil {
		err = o.Open(a.Queue.Now())
	}
	if err == nil {
		row, err = a.Inventory.Version(ctx, o.ARK, in.Version)
	}
	if err == nil {
		err = versionzip.DefaultLimits.Check(row)
	}
	return o, stored, row, err
}

// makeZip makes the zip file of a version, unless it is there.
func (a *API) makeZip(ctx context.Context, in *VersionInput) (out v1.VersionZip, err error) {
	o, stored, row, err := a.zipped(ctx, in)
	if err != nil {
		return out, err
	}

	within, cancel := context.WithTimeout(ctx, zipping)
	defer cancel()
	err = versionzip.Make(within, a.Derived, aip.Of(a.Root, stored, in.Version), o, row)
	if err != nil && errors.Is(within.Err(), context.DeadlineExceeded) {
		err = fault.New(fault.Unavailable, "the zip file was not made within %s: the storage is slow. Try again, or "+
			"make one by archivist object export %s --number %d --as zip", zipping, o.ARK, in.Version)
	}
	return v1.VersionZip{Version: row.Number, Files: row.Files, Bytes: row.Bytes}, err
}

// zip is the signed URL of the zip file of a version. That it was given out is recorded like that of a file.
func (a *API) zip(ctx context.Context, in *VersionInput) (string, error) {
	o, _, row, err := a.zipped(ctx, in)
	if err != nil {
		return "", err
	}

	to, err := a.Derived.Presign(ctx, versionzip.Key(o, row), versionzip.Name(row), contentFor)
	if fault.Is(err, fault.NotFound) {
		err = fault.New(fault.NotFound, "version %d of %s has no zip file: none was asked for within %d days. Ask for "+
			"it by POST", row.Number, o.ARK, versionzip.Days)
	}
	if err == nil {
		a.disseminated(ctx, o, row.Number, "zip")
	}
	return to, err
}

// zipOperations describes the operations of zip files.
var zipOperations = map[string]about{
	"makeZip": {tag: "Objects", role: viewer, scope: ofObject, refusals: []problemType{notFound, conflict},
		answer: v1.VersionZip{Version: 1, Files: 4, Bytes: 3151872},
		description: "Makes a zip file of all files of a version: a bag (BagIt 1.0) in a folder " +
			"with the name of the object. The response comes when it is there, or was before. It " +
			"is removed seven days after it was made. A version of more than 300 files or 128 " +
			"MiB, and one with a damaged file, is a conflict; an object that is withdrawn or " +
			"under an embargo is refused with 403. Files are not compressed."},
	"getZip": {tag: "Objects", role: viewer, scope: ofObject, refusals: []problemType{notFound, conflict},
		redirect: "application/octet-stream",
		description: "The zip file of a version: a redirect to the storage. It has to be made " +
			"first, by `POST`. What may be given out is decided anew each time."},
}

func init() { maps.Copy(operations, zipOperations) }
