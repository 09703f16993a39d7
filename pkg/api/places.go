package api

import (
	"context"
	"fmt"
	"maps"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/definition"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/ocfl"
	"archivist/pkg/objects/replica"
	"archivist/pkg/views/manifest"
	"archivist/pkg/views/versionzip"
)

// places registers the routes of where an object is stored, and of what was made of its versions.
func (a *API) places(h huma.API) {
	get(a, h, "/v1/objects/{naan}/{name}/places", "listPlaces", "List where an object is stored",
		a.listPlaces)
	get(a, h, "/v1/objects/{naan}/{name}/versions/{n}/made", "getMade",
		"Say what was made of a version", a.made)
}

// mostPlaces are the versions of a page of places: in each bucket as many.
const mostPlaces = 500

// listPlaces are the folders of an object: in the storage root, and in the second bucket as far as
// it was copied. A cursor is the last version of the page before.
func (a *API) listPlaces(ctx context.Context, in *ARKCursor) (out v1.List[v1.ObjectPlace],
	err error) {
	first := 1
	if in.Cursor != "" {
		last, err := strconv.Atoi(in.Cursor)
		if err != nil || last < 1 {
			return out, fault.New(fault.Invalid,
				"cursor: found %q; expected that of the page before", definition.Clip(in.Cursor, 60))
		}
		first = last + 1
	}
	o, err := a.Inventory.Object(ctx, in.ark())
	if err != nil {
		return out, err
	}
	copies, err := replica.LastCopies(ctx, a.Queue.Table, o.ARK)
	if err != nil {
		return out, err
	}

	end := first + mostPlaces - 1
	add := func(where, bucket string, versions int) {
		one := v1.ObjectPlace{In: where, Bucket: bucket, Key: ocfl.Prefix(o.ARK),
			Versions: []v1.VersionPlace{}}
		for n := first; n <= min(versions, end); n++ {
			one.Versions = append(one.Versions,
				v1.VersionPlace{Version: n, Key: fmt.Sprintf("%sv%d/", one.Key, n)})
		}
		if first == 1 || len(one.Versions) > 0 {
			out.Items = append(out.Items, one)
		}
	}
	add(v1.InStorage, a.Root.Bucket.Name, o.HeadOf)
	if last, copied := copies[o.ARK]; copied && a.Replica != "" {
		add(v1.InCopy, a.Replica, last.Version)
	}
	if o.HeadOf > end {
		out.Cursor = strconv.Itoa(end)
	}
	return out, nil
}

// made says what was made of a version that can be made again, and is there now. What is there is
// not given out by it.
func (a *API) made(ctx context.Context, in *VersionInput) (out v1.VersionMade, err error) {
	o, err := a.Inventory.Object(ctx, in.ark())
	if err != nil {
		return out, err
	}
	row, err := a.Inventory.Version(ctx, o.ARK, in.Version)
	if err != nil {
		return out, err
	}

	out.Version, out.Zippable = row.Number, versionzip.DefaultLimits.Check(row) == nil
	if out.Zippable {
		if out.Zip, err = there(ctx, a.Derived, versionzip.Key(o, row)); err != nil {
			return out, err
		}
	}
	out.Manifest, err = there(ctx, a.Derived, manifest.Key(o.ARK))
	return out, err
}

// there reports whether a bucket has a key.
func there(ctx context.Context, b bucket.Bucket, key string) (bool, error) {
	_, err := b.Head(ctx, key)
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	return err == nil, err
}

// placeOperations describes the operations of places.
var placeOperations = map[string]about{
	"listPlaces": {tag: "Objects", role: operator, refusals: []problemType{notFound},
		answer: listOf(v1.ObjectPlace{In: v1.InStorage, Bucket: "archivist-storage",
			Key: "531/80c/ccf/ark%3a%2f99999%2ffk4tq65d6k/",
			Versions: []v1.VersionPlace{
				{Version: 1, Key: "531/80c/ccf/ark%3a%2f99999%2ffk4tq65d6k/v1/"}}}),
		description: "The folders of the object and of its versions: in the storage bucket, and in the " +
			"second bucket as far as the object was copied. A folder has what its version added; the " +
			"inventory in the folder of the object names all files of each version. A page has 500 " +
			"versions, the oldest first, of each bucket that has one of them."},
	"getMade": {tag: "Objects", role: viewer, scope: ofObject, refusals: []problemType{notFound},
		answer: v1.VersionMade{Version: 1, Zippable: true, Zip: true, Manifest: true},
		description: "Whether there is a zip file of the version now, whether one can be made here, " +
			"and whether the packaging manifest of the object is there."},
}

func init() { maps.Copy(operations, placeOperations) }
