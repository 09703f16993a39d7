package api

import (
	"context"
	"strconv"

	"archivist/pkg/formats/ark"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/aip"
	"archivist/pkg/objects/inventory"
	"archivist/pkg/objects/ocfl"
	"archivist/pkg/views/inventorycache"
)

// ARKInput names an object by the two parts of its ARK.
type ARKInput struct {
	NAAN string `path:"naan" maxLength:"20"`
	Name string `path:"name" maxLength:"200"`
}

// ark is the ARK in its one form: "ark:/" and both parts.
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

// StoredInput names a file of an object in the storage root.
type StoredInput struct {
	ARKInput
	Path string `query:"path" required:"true" maxLength:"1024"`
}

// FilesInput names a version and a page of a list of its files.
type FilesInput struct {
	VersionInput
	Cursor string `query:"cursor"`
}

// FilesLimit is a FilesInput with the number of files of a page.
type FilesLimit struct {
	FilesInput
	Limit int `query:"limit" minimum:"1" maximum:"1000" default:"1000"`
}

// stored reads a recorded object, and its inventory from the storage root. What the storage root has,
// but is not recorded, is not given out: a version is there for others when its row is. A NotFound says
// how many versions there are.
func (a *API) stored(ctx context.Context,
	in VersionInput) (*inventory.Object, *ocfl.Stored, error) {
	o, err := a.Inventory.Object(ctx, in.ark())
	if err != nil {
		return nil, nil, err
	}
	if in.Version > o.HeadOf {
		return nil, nil, fault.New(fault.NotFound, "%s has no version %d; its newest is version %d", o.ARK, in.Version,
			o.HeadOf)
	}
	stored, err := a.head(ctx, o.ARK)
	return o, stored, err
}

// mostKnown is the maximum number of cached inventories. When there are so many, all are forgotten:
// that costs some reads, and needs no order of use.
const mostKnown = 100

// head returns an object's inventory. It is cached in this process, and read again only if it has
// changed: for an object of very many files that takes seconds, without a summary. Each use costs a
// request that compares its ETag. Requests at the same time may read the same inventory twice; the last
// one stays. Inventories are shared, so nobody changes them.
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

// filesPage is the maximum number of files on a page. The response of a function has at most 6 MB.
const filesPage = 1000

// page reads the next files of a version, at most that many. A cursor is a position in the version's list of files;
// it is "" at the beginning and at the end. A page that is not full is the last. An Invalid refuses a cursor that is
// no place.
func (a *API) page(ctx context.Context, stored *ocfl.Stored, version int,
	cursor string, most int) (files []aip.Entry, next string, err error) {
	from := int64(0)
	if cursor != "" {
		if from, err = strconv.ParseInt(cursor, 10, 64); err != nil || from < 1 {
			return nil, "", badCursor(cursor)
		}
	}

	files, to, err := aip.Of(a.Root, stored, version).Files(ctx, from, most)
	if len(files) == most {
		next = strconv.FormatInt(to, 10)
	}
	return files, next, err
}
