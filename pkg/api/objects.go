package api

import (
	"context"
	"path"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"archivist/pkg/aip"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ark"
	"archivist/pkg/fault"
	"archivist/pkg/ingest"
	"archivist/pkg/inventory"
	"archivist/pkg/inventorycache"
	"archivist/pkg/ocfl"
	"archivist/pkg/queue"
)

// ARKInput names an object by the two parts of its ARK.
type ARKInput struct {
	NAAN string `path:"naan" maxLength:"20"`
	Name string `path:"name" maxLength:"200"`
}

func (in ARKInput) ark() string { return ark.ARK{NAAN: in.NAAN, Name: in.Name}.String() }

// ARKCursor names an object and a page of one of its lists.
type ARKCursor struct {
	ARKInput
	Cursor string `query:"cursor"`
}

// VersionInput names a version of an object.
type VersionInput struct {
	ARKInput
	Version int `path:"n" minimum:"1"`
}

// ContentInput names a file of a version.
type ContentInput struct {
	VersionInput
	Path string `query:"path" required:"true"`
}

// FilesInput names a version and a page of its files.
type FilesInput struct {
	VersionInput
	Cursor string `query:"cursor"`
}

// contentFor is how long the URL of a redirect to content is valid.
const contentFor = 15 * time.Minute

func (a *API) objects(h huma.API) {
	const path = "/v1/objects/{naan}/{name}"
	get(a, h, "/v1/objects", "findObjects", "Find objects", a.find)
	get(a, h, path, "getObject", "Get an object", func(ctx context.Context, in *ARKInput) (v1.Object, error) {
		o, err := a.Inventory.Object(ctx, in.ark())
		if err != nil {
			return v1.Object{}, err
		}
		one := []v1.Object{wireObject(o)}
		err = a.withFixity(ctx, one)
		return one[0], err
	})
	get(a, h, path+"/versions", "listVersions", "List an object's versions", a.versions)
	get(a, h, path+"/versions/{n}/files", "listFiles", "List a version's files", a.files)
	redirect(a, h, path+"/versions/{n}/content", "getContent", "Get a file's content", a.content)
	a.history(h)
	a.records(h)
	a.preservation(h)
	a.repairs(h)
}

func (a *API) versions(ctx context.Context, in *ARKCursor) (v1.List[v1.Version], error) {
	rows, next, err := a.Inventory.Versions(ctx, in.ark(), in.Cursor)
	if err == nil && len(rows) == 0 {
		_, err = a.Inventory.Object(ctx, in.ark())
	}
	wire := func(v inventory.Version) v1.Version {
		return v1.Version{Version: v.Number, Created: ingest.Timestamp(v.Created), Job: v.Job, Files: v.Files,
			Bytes: v.Bytes, InventoryDigest: v.Digest}
	}
	return list(queue.Page[inventory.Version]{Items: rows, Cursor: next}, wire), err
}

func (a *API) content(ctx context.Context, in *ContentInput) (string, error) {
	o, stored, err := a.stored(ctx, in.VersionInput)
	if err != nil {
		return "", err
	}
	key, err := aip.Of(a.Root, stored, in.Version).Content(ctx, in.Path)
	if err != nil {
		return "", err
	}
	to, err := a.Root.Bucket.Presign(ctx, key, path.Base(in.Path), contentFor)
	if err == nil {
		a.disseminated(ctx, o, in.Version, in.Path)
	}
	return to, err
}

// stored reads a recorded object, and its inventory from the storage root.
func (a *API) stored(ctx context.Context, in VersionInput) (*inventory.Object, *ocfl.Stored, error) {
	o, err := a.Inventory.Object(ctx, in.ark())
	if err != nil {
		return nil, nil, err
	}
	if in.Version > o.HeadOf {
		return nil, nil, fault.New(fault.NotFound, "%s has %d versions, not %d", o.ARK, o.HeadOf, in.Version)
	}
	stored, err := a.head(ctx, o.ARK)
	return o, stored, err
}

// mostKnown is the maximum number of cached inventories.
const mostKnown = 100

// head returns an object's inventory. It is cached in this process, and read again only if it has
// changed: for an object of very many files that takes seconds, without a summary.
func (a *API) head(ctx context.Context, id string) (*ocfl.Stored, error) {
	a.mu.Lock()
	known := a.known[id]
	a.mu.Unlock()
	if known != nil {
		if same, err := a.Root.Same(ctx, known); err != nil || same {
			return known, err
		}
	}
	stored, err := inventorycache.Cache{Root: a.Root, Derived: a.Derived}.Head(ctx, id)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.known) >= mostKnown || a.known == nil {
		a.known = map[string]*ocfl.Stored{}
	}
	a.known[id] = stored
	return stored, nil
}

// filesPage is the maximum number of files on a page.
const filesPage = 1000

// page reads the next files of a version. A cursor is a position in the version's list of
// files; it is "" at the beginning and at the end.
func (a *API) page(ctx context.Context, stored *ocfl.Stored, version int, cursor string) (files []aip.Entry,
	next string, err error) {
	from := int64(0)
	if cursor != "" {
		if from, err = strconv.ParseInt(cursor, 10, 64); err != nil || from < 1 {
			return nil, "", badCursor(cursor)
		}
	}
	files, to, err := aip.Of(a.Root, stored, version).Files(ctx, from, filesPage)
	if len(files) == filesPage {
		next = strconv.FormatInt(to, 10)
	}
	return files, next, err
}

func (a *API) files(ctx context.Context, in *FilesInput) (v1.List[v1.File], error) {
	out := v1.List[v1.File]{Items: []v1.File{}}
	_, stored, err := a.stored(ctx, in.VersionInput)
	if err != nil {
		return out, err
	}
	files, next, err := a.page(ctx, stored, in.Version, in.Cursor)
	if err != nil {
		return out, err
	}
	for _, f := range files {
		out.Items = append(out.Items, v1.File{Path: f.Path, Size: f.Size, MediaType: f.MediaType, Digests: f.Digests})
	}
	out.Cursor = next
	if next != "" {
		return out, nil
	}
	for _, path := range stored.SystemFiles(in.Version) {
		size, err := a.Root.Size(ctx, stored, in.Version, path)
		if err != nil {
			return out, err
		}
		out.Items = append(out.Items, v1.File{Path: path, Size: size, Digests: stored.Digests(in.Version, path)})
	}
	return out, nil
}

// FindInput selects the objects to find.
type FindInput struct {
	Collection string `query:"collection"`
	LocalID    string `query:"localId"`
	ARK        string `query:"ark"`
	Cursor     string `query:"cursor"`
}

func (a *API) find(ctx context.Context, in *FindInput) (v1.List[v1.Object], error) {
	out := v1.List[v1.Object]{Items: []v1.Object{}}
	arks, next, err := a.arks(ctx, in)
	out.Cursor = next
	for _, id := range arks {
		o, err := a.Inventory.Object(ctx, id)
		if fault.Is(err, fault.NotFound) && in.ARK == "" {
			continue // reserved by a job that has not stored it yet, or the index lags
		}
		if err != nil {
			return out, err
		}
		out.Items = append(out.Items, wireObject(o))
	}
	if err != nil {
		return out, err
	}
	return out, a.withFixity(ctx, out.Items)
}

// arks returns a page of the ARKs that match. An ark or a local id names at most one object,
// so that list has one page.
func (a *API) arks(ctx context.Context, in *FindInput) (arks []string, next string, err error) {
	switch {
	case in.ARK == "" && in.Collection == "":
		return nil, "", fault.New(fault.Invalid, "give an ark, or a collection, or a collection with a localId")
	case in.ARK == "" && in.LocalID == "":
		return a.Inventory.Collection(ctx, in.Collection, in.Cursor)
	case in.Cursor != "":
		return nil, "", badCursor(in.Cursor)
	case in.ARK != "":
		given, err := ark.Parse(in.ARK)
		if err != nil {
			return nil, "", fault.New(fault.Invalid, "ark: %w", err)
		}
		return []string{given.String()}, "", nil
	}
	known, err := a.Inventory.ByLocalID(ctx, in.Collection, in.LocalID)
	if err != nil || known == "" {
		return nil, "", err
	}
	return []string{known}, "", nil
}

func wireObject(o *inventory.Object) v1.Object {
	return v1.Object{ARK: o.ARK, Collection: o.Collection, Title: o.Title, LocalIDs: o.LocalIDs, Version: o.HeadOf,
		Created: ingest.Timestamp(o.Created), Modified: ingest.Timestamp(o.Modified), InventoryDigest: o.Digest,
		Stored: ocfl.Prefix(o.ARK)}
}
