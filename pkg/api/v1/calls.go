package v1

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// Submit submits a batch. The same key with the same request gives the same batch.
func (c *Client) Submit(ctx context.Context, in BatchRequest, key string) (Accepted, error) {
	return post[Accepted](ctx, c, "/v1/batches", in, key)
}

// Batches lists batches, newest first: of the filter's collection, or of all.
func (c *Client) Batches(ctx context.Context, f Filter) ([]Batch, error) {
	return list[Batch](ctx, c, "/v1/batches", f.Limit, f.query()...)
}

// Batch returns one batch.
func (c *Client) Batch(ctx context.Context, id string) (Batch, error) {
	return get[Batch](ctx, c, at("batches", id))
}

// Report streams a batch's report number n, or its newest if n is 0: a JSON
// document of any size. Before the batch has ended there is none: the error is NotFound.
func (c *Client) Report(ctx context.Context, batch string, n int) (io.ReadCloser, error) {
	return c.stream(ctx, at("batches", batch, "report")+query("number", number(int64(n))))
}

// Jobs lists the jobs of the filter's batch in the order of the manifest; without a batch, those of its collection,
// or of all, newest first; or as Sort says.
func (c *Client) Jobs(ctx context.Context, f Filter) ([]Job, error) {
	path := "/v1/jobs"
	if f.Batch != "" {
		path = at("batches", f.Batch, "jobs")
	}
	return list[Job](ctx, c, path, f.Limit, f.query()...)
}

// Job returns one job.
func (c *Client) Job(ctx context.Context, id string) (Job, error) {
	return get[Job](ctx, c, at("jobs", id))
}

// Receipt returns what is preserved of a job, with all of its files.
func (c *Client) Receipt(ctx context.Context, job string) (Receipt, error) {
	path := at("jobs", job, "receipt")
	out, err := get[Receipt](ctx, c, path)
	if err != nil {
		return out, err
	}

	for out.Cursor != "" {
		page, err := get[Receipt](ctx, c, path+query("cursor", out.Cursor))
		out.Files, out.Cursor = append(out.Files, page.Files...), page.Cursor
		if err != nil {
			return out, err
		}
	}
	return out, nil
}

// Events lists what happened to a batch, a job or an object, oldest first.
func (c *Client) Events(ctx context.Context, id string) ([]Event, error) {
	path, err := pathOf(id)
	if err != nil {
		return nil, err
	}
	return list[Event](ctx, c, path+"/events", 0)
}

// Objects lists a collection's objects, last changed first; without a collection, or with a Title
// or a Format, by title; or as Sort says.
func (c *Client) Objects(ctx context.Context, f Filter) ([]Object, error) {
	return list[Object](ctx, c, "/v1/objects", f.Limit, f.query()...)
}

// ObjectPages reads a collection's objects as Objects does, page by page, while more is wanted.
func (c *Client) ObjectPages(ctx context.Context, f Filter, each func(page []Object) (more bool)) error {
	return eachPage(ctx, c, "/v1/objects", f.query(), each)
}

// Object returns one object by its ARK in canonical form.
func (c *Client) Object(ctx context.Context, ark string) (Object, error) {
	return get[Object](ctx, c, ObjectPath(ark))
}

// Versions lists an object's versions, oldest first.
func (c *Client) Versions(ctx context.Context, ark string) ([]Version, error) {
	return list[Version](ctx, c, ObjectPath(ark)+"/versions", 0)
}

// Files lists the files of a version by path, the system files last.
func (c *Client) Files(ctx context.Context, ark string, version int) ([]File, error) {
	return list[File](ctx, c, versionPath(ark, version)+"/files", 0)
}

// Content streams a file of a stored version.
func (c *Client) Content(ctx context.Context, ark string, version int,
	path string) (io.ReadCloser, error) {
	return c.stream(ctx, versionPath(ark, version)+"/content"+query("path", path))
}

// Stored streams a file of an object as it is in the storage root. path is below the object's place there.
func (c *Client) Stored(ctx context.Context, ark, path string) (io.ReadCloser, error) {
	return c.stream(ctx, ObjectPath(ark)+"/stored"+query("path", path))
}

// Queue returns a summary of the queue.
func (c *Client) Queue(ctx context.Context) (Queue, error) {
	return get[Queue](ctx, c, "/v1/queue")
}

// ReindexRequest selects what to reindex: one object, or the part of the storage root
// from Cursor up to To. The zero value selects the whole root.
type ReindexRequest struct {
	ARK    string
	Cursor string // of the previous response, "" to begin
	To     string // "" to the end
}

// Reindex rebuilds missing rows of stored objects for some seconds. If the response
// has a cursor, call it again with that cursor.
func (c *Client) Reindex(ctx context.Context, in ReindexRequest) (Reindexed, error) {
	return post[Reindexed](ctx, c, "/v1/reindex"+
		query("ark", in.ARK, "cursor", in.Cursor, "to", in.To), nil)
}

// Orders of lists of jobs and batches, by the time at which they were made.
const (
	Newest = "newest"
	Oldest = "oldest"
)

// Filter limits a list: batches by all but Batch, ARK, LocalID and Title; jobs by all but Title, those of a Batch by
// State and Callback only; objects by Collection, and LocalID or Title and Date. An empty field
// does not filter.
type Filter struct {
	Collection string
	Batch      string
	State      string
	Submitter  string
	LocalID    string
	ARK        string
	Message    string // a part of it
	After      string // created then or later: a time or a day, in ISO 8601
	Before     string // created before that
	Title      string // its beginning
	Date       string // its beginning
	Format     string // of one of its files: a media type or an id of PRONOM
	// Sort: objects: ByTitle, ByDate or ByModified; jobs: one of JobSorts; batches: one of
	// BatchSorts; "" = as the list is.
	Sort string
	// Order: with Sort Ascending or Descending; without it, of jobs and batches, Newest or Oldest.
	Order string
	// Callback: jobs of a Batch: a state of one of their callbacks.
	Callback string
	Limit    int // most items to return
}

// get reads the resource at a path.
func get[T any](ctx context.Context, c *Client, path string) (out T, err error) {
	err = c.Call(ctx, http.MethodGet, path, nil, &out)
	return out, err
}

// post asks for something to be done. A repeated request with the same key, if it has one, does nothing more.
func post[T any](ctx context.Context, c *Client, path string, in any,
	key ...string) (out T, err error) {
	err = c.Call(ctx, http.MethodPost, path, in, &out, "Idempotency-Key", strings.Join(key, ""))
	return out, err
}

// put creates or replaces the resource at a path. The key is as for post.
func put[T any](ctx context.Context, c *Client, path string, in any,
	key ...string) (out T, err error) {
	err = c.Call(ctx, http.MethodPut, path, in, &out, "Idempotency-Key", strings.Join(key, ""))
	return out, err
}

// query has the names and values of a filter.
func (f Filter) query() []string {
	return []string{"collection", f.Collection, "state", f.State, "submitter", f.Submitter, "localId", f.LocalID,
		"ark", f.ARK, "message", f.Message, "after", f.After, "before", f.Before, "title",
		f.Title, "date", f.Date,
		"format", f.Format, "sort", f.Sort, "order", f.Order, "callback", f.Callback}
}

// list reads the pages of a list with these names and values in its query, up to a limit; 0 = all. The result may be
// empty, but is never nil.
func list[T any](ctx context.Context, c *Client, path string, limit int,
	pairs ...string) ([]T, error) {
	all := []T{}
	err := eachPage(ctx, c, path, pairs, func(page []T) (more bool) {
		all = append(all, page...)
		return limit == 0 || len(all) < limit
	})
	if err != nil {
		return nil, err
	}
	if limit > 0 && len(all) > limit {
		all = all[:limit]
	}
	return all, nil
}

// eachPage reads the pages of a list, while more is wanted.
func eachPage[T any](ctx context.Context, c *Client, path string, pairs []string, f func(page []T) (more bool)) error {
	for cursor := ""; ; {
		page, err := pageOf[T](ctx, c, path, cursor, pairs...)
		if err != nil {
			return err
		}

		cursor = page.Cursor
		if !f(page.Items) || cursor == "" {
			return nil
		}
	}
}

// pageOf reads one page of a list.
func pageOf[T any](ctx context.Context, c *Client, path, cursor string, pairs ...string) (List[T], error) {
	return get[List[T]](ctx, c, path+query(append([]string{"cursor", cursor}, pairs...)...))
}

// query builds the query of a URL from names and values. Empty values are left out.
func query(pairs ...string) string {
	q := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	if len(q) == 0 {
		return ""
	}
	return "?" + q.Encode()
}

// at is the path of a resource of the API, from its parts.
func at(parts ...string) string {
	path := "/v1"
	for _, part := range parts {
		path += "/" + url.PathEscape(part)
	}
	return path
}

// ObjectPath is the path of an object, given its ARK in canonical form.
func ObjectPath(ark string) string { return "/v1/objects/" + strings.TrimPrefix(ark, "ark:/") }

func versionPath(ark string, version int) string {
	return fmt.Sprintf("%s/versions/%d", ObjectPath(ark), version)
}

// stream opens the body of a response. The caller closes it.
func (c *Client) stream(ctx context.Context, path string) (io.ReadCloser, error) {
	resp, err := c.do(ctx, http.MethodGet, path, nil, nil)
	if err != nil {
		return nil, err
	}
	return resp.Body, nil
}
