package v1

import "context"

// The methods below read one page of a list each, for a reader who goes on later. A cursor is "" for the first page;
// that of the next one is in the list.

// BatchPage reads a page of the batches of a filter, newest first.
func (c *Client) BatchPage(ctx context.Context, f Filter, cursor string) (List[Batch], error) {
	return pageOf[Batch](ctx, c, "/v1/batches", cursor, f.query()...)
}

// JobPage reads a page of the jobs of a filter, as Jobs orders them.
func (c *Client) JobPage(ctx context.Context, f Filter, cursor string) (List[Job], error) {
	path := "/v1/jobs"
	if f.Batch != "" {
		path = at("batches", f.Batch, "jobs")
	}
	return pageOf[Job](ctx, c, path, cursor, f.query()...)
}

// EventPageOf reads a page of what happened to a batch, a job or an object, oldest first.
func (c *Client) EventPageOf(ctx context.Context, id, cursor string) (List[Event], error) {
	path, err := pathOf(id)
	if err != nil {
		return List[Event]{}, err
	}
	return pageOf[Event](ctx, c, path+"/events", cursor)
}

// ReceiptPage reads the beginning of a receipt, and a page of its files.
func (c *Client) ReceiptPage(ctx context.Context, job, cursor string) (Receipt, error) {
	return get[Receipt](ctx, c, at("jobs", job, "receipt")+query("cursor", cursor))
}

// OperationPage reads a page of the bulk operations, newest first.
func (c *Client) OperationPage(ctx context.Context, cursor string) (List[Operation], error) {
	return pageOf[Operation](ctx, c, "/v1/operations", cursor)
}

// ItemPage reads a page of the jobs that an operation acts on.
func (c *Client) ItemPage(ctx context.Context, id, cursor string) (List[OperationItem], error) {
	return pageOf[OperationItem](ctx, c, at("operations", id, "items"), cursor)
}

// ObjectPage reads a page of objects, as Objects orders them.
func (c *Client) ObjectPage(ctx context.Context, f Filter, cursor string) (List[Object], error) {
	return pageOf[Object](ctx, c, "/v1/objects", cursor, f.query()...)
}

// SearchPage reads a page of at most some objects that a search finds: see Search.
func (c *Client) SearchPage(ctx context.Context, text, order, cursor string, most int) (Found,
	error) {
	return get[Found](ctx, c, "/v1/search"+searched(text, order, cursor, "limit",
		number(int64(most))))
}

// VersionPage reads a page of the versions of an object, oldest first.
func (c *Client) VersionPage(ctx context.Context, ark, cursor string) (List[Version], error) {
	return pageOf[Version](ctx, c, ObjectPath(ark)+"/versions", cursor)
}

// FilePage reads a page of at most some files of a version, the system files last. The last page has all of them.
func (c *Client) FilePage(ctx context.Context, ark string, version int, cursor string,
	most int) (List[File], error) {
	return pageOf[File](ctx, c, versionPath(ark, version)+"/files", cursor, "limit",
		number(int64(most)))
}

// ChangePage reads a page of at most some files that differ between a version and the one before, in the order of
// their paths. A page before the last can be empty.
func (c *Client) ChangePage(ctx context.Context, ark string, version int, cursor string,
	most int) (List[FileChange], error) {
	return pageOf[FileChange](ctx, c, versionPath(ark, version)+"/changes", cursor, "limit",
		number(int64(most)))
}

// HistoryPage reads a page of the permanent record of an object, oldest event first.
func (c *Client) HistoryPage(ctx context.Context, ark, cursor string) (List[HistoryEvent], error) {
	return pageOf[HistoryEvent](ctx, c, ObjectPath(ark)+"/history", cursor)
}

// Description returns how a version of an object is described.
func (c *Client) Description(ctx context.Context, ark string, version int) (Description, error) {
	return get[Description](ctx, c, versionPath(ark, version)+"/description")
}

// CollectionPage reads a page of the names of all collections, in their order.
func (c *Client) CollectionPage(ctx context.Context, cursor string) (List[CollectionName], error) {
	return pageOf[CollectionName](ctx, c, "/v1/collections", cursor)
}
