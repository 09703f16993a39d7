package api

import (
	"cmp"
	"context"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/formats/ark"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/aip"
	"archivist/pkg/objects/fixity"
	"archivist/pkg/objects/inventory"
	"archivist/pkg/objects/ocfl"
	"archivist/pkg/objects/replica"
	"archivist/pkg/views/browse"
	"archivist/pkg/views/search"
)

// objects registers the routes of objects, their versions and files. What consumers and components keep
// of objects has its own: history, records, preservation and repairs.
func (a *API) objects(h huma.API) {
	const path = "/v1/objects/{naan}/{name}"
	get(a, h, "/v1/objects", "findObjects", "Find objects", a.find)
	get(a, h, path, "getObject", "Get an object", a.object)
	get(a, h, path+"/versions", "listVersions", "List an object's versions", a.versions)
	get(a, h, path+"/versions/{n}/files", "listFiles", "List a version's files", a.files)
	get(a, h, path+"/versions/{n}/description", "getDescription",
		"Get the description of a version", a.description)
	get(a, h, path+"/versions/{n}/changes", "listChanges", "List the changes of a version's files",
		a.changes)
	redirect(a, h, path+"/versions/{n}/content", "getContent", "Get a file's content", a.content)
	redirect(a, h, path+"/stored", "getStored", "Get a stored file of an object", a.storedFile)
}

// object is an object, as its row is now.
func (a *API) object(ctx context.Context, in *ARKInput) (v1.Object, error) {
	o, err := a.Inventory.Object(ctx, in.ark())
	if err != nil {
		return v1.Object{}, err
	}

	one, err := a.wireObjects(ctx, o)
	if err == nil {
		err = a.withFixity(ctx, one)
	}

	if err != nil {
		return v1.Object{}, err
	}
	if a.Resolves {
		one[0].Resolves = ARKPath + "/" + strings.TrimPrefix(o.ARK, "ark:/")
	}
	return one[0], nil
}

// description is how a version is described.
func (a *API) description(ctx context.Context, in *VersionInput) (v1.Description, error) {
	_, stored, err := a.stored(ctx, *in)
	if err != nil {
		return v1.Description{}, err
	}
	k, err := aip.Of(a.Root, stored, in.Version).Description(ctx)
	return v1.Description{Who: k.Who, What: k.What, When: k.When, Where: k.Where, More: k.More}, err
}

// versions lists the recorded versions of an object, oldest first. They are rows; the storage root is
// not read.
func (a *API) versions(ctx context.Context, in *ARKCursor) (v1.List[v1.Version], error) {
	rows, next, err := a.Inventory.Versions(ctx, in.ark(), in.Cursor)
	wire := func(v inventory.Version) v1.Version {
		return v1.Version{
			Version:         v.Number,
			Created:         ingest.Timestamp(v.Created),
			Job:             v.Job,
			Files:           v.Files,
			Bytes:           v.Bytes,
			InventoryDigest: v.Digest,
		}
	}

	out := list(queue.Page[inventory.Version]{Items: rows, Cursor: next}, wire)
	if err != nil || len(rows) > 0 {
		return out, err
	}

	_, err = a.Inventory.Object(ctx, in.ark()) // a NotFound if there is no object
	return out, err
}

// content is the URL of a file's content in the storage, signed for contentFor. The event that it was
// given out is recorded first, but its failure does not refuse the download.
func (a *API) content(ctx context.Context, in *ContentInput) (string, error) {
	o, stored, err := a.stored(ctx, in.VersionInput)
	if err != nil {
		return "", err
	}

	if strings.HasPrefix(in.Path, "producer/") {
		if err := o.Open(a.Queue.Now()); err != nil {
			return "", err
		}
	}

	key, err := aip.Of(a.Root, stored, in.Version).Content(ctx, in.Path)
	if err != nil {
		return "", err
	}

	to, err := a.Root.Bucket.Presign(ctx, key, path.Base(in.Path), contentFor)
	if fault.Is(err, fault.NotFound) {
		a.Log.Error("a stored file is missing", "ark", o.ARK, "path", in.Path, "error", err)
		err = fault.New(fault.NotFound,
			"%q of %s v%d is missing in the storage: the object is damaged, and an operator has "+
				"to repair it",
			in.Path, o.ARK, in.Version)
	}

	if err != nil {
		return to, err
	}

	a.disseminated(ctx, o, in.Version, in.Path)
	return to, nil
}

// storedFile is the URL of a file as it is in the storage root: an inventory, its sidecar, or content under the path
// that inventories name. Nothing of a withdrawn object is given out.
func (a *API) storedFile(ctx context.Context, in *StoredInput) (string, error) {
	o, err := a.Inventory.Object(ctx, in.ark())
	if err == nil {
		err = o.Open(a.Queue.Now())
	}
	if err != nil {
		return "", err
	}

	if !fs.ValidPath(in.Path) || in.Path == "." {
		return "", fault.New(fault.Invalid,
			"path: %q: expected a path below the object's place in the storage root, "+
				"e.g. inventory.json", ingest.Cut(in.Path, 200))
	}

	to, err := a.Root.Bucket.Presign(ctx, ocfl.Prefix(o.ARK)+in.Path, path.Base(in.Path),
		contentFor)
	if fault.Is(err, fault.NotFound) {
		err = fault.New(fault.NotFound, "%s has no stored file %q", o.ARK, in.Path)
	}
	if err != nil {
		return "", err
	}

	if version, is := ocfl.VersionOf(in.Path); is {
		a.disseminated(ctx, o, version, in.Path)
	}
	return to, nil
}

// files lists the files of a version: those of the depositor in pages, and on the last page the system
// files, whose sizes take a request each.
func (a *API) files(ctx context.Context, in *FilesLimit) (v1.List[v1.File], error) {
	out := v1.List[v1.File]{Items: []v1.File{}}
	_, stored, err := a.stored(ctx, in.VersionInput)
	if err != nil {
		return out, err
	}

	files, next, err := a.page(ctx, stored, in.Version, in.Cursor, in.Limit)
	if err != nil {
		return out, err
	}

	for _, f := range files {
		out.Items = append(out.Items, v1.File{
			Path:      f.Path,
			Size:      f.Size,
			MediaType: f.MediaType,
			Digests:   f.Digests,
			RawName:   f.RawName,
		})
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
		out.Items = append(out.Items, v1.File{
			Path:    path,
			Size:    size,
			Digests: stored.Digests(in.Version, path),
		})
	}
	return out, nil
}

// FindInput selects the objects to find.
type FindInput struct {
	Collection string `query:"collection"`
	LocalID    string `query:"localId"`
	ARK        string `query:"ark"`
	Title      string `query:"title" maxLength:"200"`
	Date       string `query:"date" maxLength:"40"`
	Format     string `query:"format" maxLength:"255"`
	Sort       string `query:"sort" enum:"title,date,modified"`
	Order      string `query:"order" enum:"ascending,descending"`
	Cursor     string `query:"cursor"`
}

// find lists the objects that match, each with its last fixity check. With an ark, one that there is
// not is a NotFound; in other lists it is passed over.
func (a *API) find(ctx context.Context, in *FindInput) (v1.List[v1.Object], error) {
	out := v1.List[v1.Object]{Items: []v1.Object{}}
	arks, next, err := a.arks(ctx, in)
	out.Cursor = next
	if err != nil {
		return out, err
	}

	// One that is missing is reserved by a job that has not stored it yet, or the index lags.
	rows, err := a.Inventory.Objects(ctx, arks)
	if err == nil && in.ARK != "" && len(rows) == 0 {
		_, err = a.Inventory.Object(ctx, arks[0]) // a NotFound
	}
	if err != nil {
		return out, err
	}

	out.Items, err = a.wireObjects(ctx, rows...)
	if err != nil {
		return out, err
	}
	return out, a.withFixity(ctx, out.Items)
}

// check returns an Invalid for fields that do not go together.
func (in *FindInput) check() error {
	switch {
	case in.LocalID != "" && in.Collection == "" && in.ARK == "":
		return fault.New(fault.Invalid, "localId: give its collection, too")
	case in.ARK != "" && in.Collection+in.LocalID+in.Title+in.Date != "",
		in.LocalID != "" && in.Title+in.Date != "",
		in.Date != "" && in.Title+in.Collection != "":
		return fault.New(fault.Invalid, "give an ark; or a collection, with or without a "+
			"localId or a title; or a "+
			"title; or a date; or none of them. GET /v1/search combines them")
	case in.indexed() && in.ARK+in.LocalID+in.Title+in.Date != "":
		return fault.New(fault.Invalid,
			"give a format, a sort or an order with or without a collection, and "+
				"nothing else. GET /v1/search combines more")
	case in.Order != "" && in.Sort == "":
		return fault.New(fault.Invalid, "order: give what to sort by, too: title, date or modified")
	}
	return nil
}

// indexed reports whether the search index has the list: none of the table has formats, or all
// orders.
func (in *FindInput) indexed() bool { return in.Format+in.Sort+in.Order != "" }

// inIndex are the ARKs of a page of the objects with a format, or in an order, of all collections
// or of one.
func (a *API) inIndex(ctx context.Context, in *FindInput) (arks []string, next string, err error) {
	var q search.Query
	for _, c := range []search.Clause{{Field: search.FieldCollection, Exact: in.Collection},
		{Field: search.FieldFormat, Exact: strings.ToLower(in.Format)}} {
		if c.Exact != "" {
			q.Clauses = append(q.Clauses, c)
		}
	}
	found, err := a.found(ctx, q, &SearchInput{Sort: cmp.Or(in.Sort, v1.ByTitle), Order: in.Order,
		Cursor: in.Cursor})
	return found.ARKs, found.Cursor, err
}

// arks returns a page of the ARKs that match. An ark or a local id names at most one object, so that
// list has one page. An Invalid refuses fields that do not go together, an ark that cannot be read, and a cursor
// where there is one page only. An unknown local id has no ARKs.
func (a *API) arks(ctx context.Context, in *FindInput) (arks []string, next string, err error) {
	if err := in.check(); err != nil {
		return nil, "", err
	}

	one := in.ARK + in.LocalID
	switch {
	case in.indexed():
		return a.inIndex(ctx, in)
	case one == "" && in.Title == "" && in.Collection != "":
		return a.Inventory.Collection(ctx, in.Collection, in.Cursor)
	case one == "":
		return a.browsed(ctx, in)
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

// browsed are the ARKs of a page of the objects by title, of all collections or of one, or of those of a date.
func (a *API) browsed(ctx context.Context, in *FindInput) (arks []string, next string, err error) {
	page := browse.Page{By: browse.ByTitle, Begins: in.Title, Cursor: in.Cursor}
	switch {
	case in.Collection != "":
		page.By, page.In = browse.ByCollection, in.Collection
	case in.Date != "":
		page.By, page.Begins, page.Day = browse.ByDate, "", in.Date
	}

	entries, next, err := a.Browse.Read(ctx, page)
	for _, e := range entries {
		arks = append(arks, e.Owner)
	}
	return arks, next, err
}

// wireObject is the wire form of an object's row at a time. Stored is the prefix of its keys in the storage root.
func wireObject(o *inventory.Object, now time.Time) v1.Object {
	is := v1.Object{
		ARK:             o.ARK,
		Collection:      o.Collection,
		Title:           o.Title,
		LocalIDs:        o.LocalIDs,
		Version:         o.HeadOf,
		Created:         ingest.Timestamp(o.Created),
		Modified:        ingest.Timestamp(o.Modified),
		InventoryDigest: o.Digest,
		Stored:          ocfl.Prefix(o.ARK),
		Withdrawn:       wireWithdrawal(o.Withdrawal),
	}
	if until := o.EmbargoUntil(now); until != "" {
		is.Embargo = &v1.Embargo{Until: until, Reason: o.Embargo.Reason, By: o.Embargo.By,
			At: o.Embargo.At}
	}
	return is
}

// wireWithdrawal is the wire form of a withdrawal, nil if there is none.
func wireWithdrawal(d *inventory.Decision) *v1.Withdrawal {
	if d == nil {
		return nil
	}
	return &v1.Withdrawal{Reason: d.Reason, By: d.By, At: d.At}
}

// emitting limits how long a download waits for its event.
const emitting = time.Second

// disseminated emits the event that a file was given out. The download does not depend on it. The
// context of the request still bounds it. A failure is logged: the statistics then miss a download.
func (a *API) disseminated(ctx context.Context, o *inventory.Object, version int, path string) {
	ctx, cancel := context.WithTimeout(ctx, emitting)
	defer cancel()
	err := a.Inventory.Disseminated(ctx, o, version, path, a.Queue.NewID, a.Queue.Now().UnixMilli())
	if err != nil {
		a.Log.Warn("a download was not recorded", "object", o.ARK, "version", version, "error", err)
	}
}

// withFixity adds to objects their last copies, and the last checks of both. They are read all at once. An
// object that was not checked stays without. The slice is changed in place; it may be empty.
func (a *API) withFixity(ctx context.Context, objects []v1.Object) error {
	arks := make([]string, len(objects))
	for i, o := range objects {
		arks[i] = o.ARK
	}

	last, err := fixity.InStorage.Last(ctx, a.Queue.Table, arks...)
	if err != nil {
		return err
	}

	copies, err := replica.LastCopies(ctx, a.Queue.Table, arks...)
	if err != nil {
		return err
	}

	inCopy := map[string]fixity.Result{}
	if len(copies) > 0 {
		inCopy, err = fixity.InCopy.Last(ctx, a.Queue.Table, arks...)
		if err != nil {
			return err
		}
	}

	for i := range objects {
		o := &objects[i]
		o.Fixity = wireFixity(last[o.ARK])
		if c, copied := copies[o.ARK]; copied {
			o.Copy = &v1.ObjectCopy{
				Version: c.Version,
				Copied:  ingest.Timestamp(c.At),
				Fixity:  wireFixity(inCopy[o.ARK]),
			}
		}
	}
	return nil
}

// wireFixity is the wire form of the outcome of a check; all is empty if there was none.
func wireFixity(r fixity.Result) v1.Fixity {
	return v1.Fixity{
		FixityChecked: timestamp(r.Checked),
		FixityOutcome: r.Outcome,
		FixityVersion: r.Version,
	}
}
