package api

import (
	"context"
	"errors"

	"github.com/danielgtaylor/huma/v2"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/views/browse"
	"archivist/pkg/views/search"
)

// SearchInput is a search for objects.
type SearchInput struct {
	Query  string `query:"query"`
	Sort   string `query:"sort" enum:"relevance,title,date,modified" default:"relevance"`
	Order  string `query:"order" enum:"ascending,descending"`
	Limit  int    `query:"limit" minimum:"1" maximum:"50" default:"50"`
	Cursor string `query:"cursor"`
}

// BrowseInput names a list of objects and a page of it.
type BrowseInput struct {
	By         string `query:"by" required:"true" enum:"title,date,creator,collection"`
	From       string `query:"from" maxLength:"200"`
	Collection string `query:"collection" maxLength:"100"`
	Limit      int    `query:"limit" minimum:"1" maximum:"50" default:"50"`
	Cursor     string `query:"cursor"`
}

// searching registers the search and the lists of all objects.
func (a *API) searching(h huma.API) {
	get(a, h, "/v1/search", "searchObjects", "Search for objects", a.search)
	get(a, h, "/v1/browse", "browseObjects", "Browse the objects", a.browse)
}

// search finds objects by their index, and shows each as its row is now. So an object that the index
// still has, and that was deleted, is left out, although Total counts it.
func (a *API) search(ctx context.Context, in *SearchInput) (out v1.Found, err error) {
	var q search.Query // all, unless there is a query
	if in.Query != "" {
		if q, err = search.ParseQuery(in.Query); err != nil {
			return out, err
		}
	}

	found, err := a.found(ctx, q, in)
	if err != nil {
		return out, err
	}

	rows, err := a.Inventory.Objects(ctx, found.ARKs)
	if err != nil {
		return out, err
	}

	out.Items, err = a.wireObjects(ctx, rows...)
	if err != nil {
		return out, err
	}

	out.Total, out.Cursor = found.Total, found.Cursor
	for _, c := range found.Collections {
		out.Collections = append(out.Collections,
			v1.CollectionCount{Name: c.Collection, Objects: c.Objects})
	}
	for _, y := range found.Years {
		out.Years = append(out.Years, v1.YearCount(y))
	}
	for _, f := range found.Formats {
		out.Formats = append(out.Formats, v1.FormatCount(f))
	}
	return out, nil
}

// found asks the index for a page of what a query selects, of what the caller may read.
func (a *API) found(ctx context.Context, q search.Query, in *SearchInput) (search.Result, error) {
	return a.Index.Search(ctx, search.Request{
		Query:   q,
		Order:   in.Sort,
		Reverse: in.Order != "" && in.Order != ordinary(in.Sort),
		Limit:   in.Limit,
		After:   in.Cursor,
		In:      limits(ctx),
	})
}

// ordinary is the direction of an order, if no other is asked for.
func ordinary(sort string) string {
	if sort == v1.ByTitle || sort == v1.ByDate {
		return v1.Ascending
	}
	return v1.Descending // the last changed, or the best
}

// browse lists objects in an order. An entry whose object was deleted is left out, so a page can be
// short before the end.
func (a *API) browse(ctx context.Context, in *BrowseInput) (v1.List[v1.BrowseEntry], error) {
	out := v1.List[v1.BrowseEntry]{Items: []v1.BrowseEntry{}}
	page, next, err := a.Browse.Read(ctx, browse.Page{
		By:     in.By,
		From:   in.From,
		In:     in.Collection,
		Limit:  in.Limit,
		Cursor: in.Cursor,
	})

	out.Cursor = next
	rows, rowsErr := a.Inventory.Objects(ctx, each(page,
		func(e browse.Entry) string { return e.Owner }))
	objects, wireErr := a.wireObjects(ctx, rows...)
	by := map[string]v1.Object{}
	for _, o := range objects {
		by[o.ARK] = o
	}
	for _, e := range page { // one object can be there twice, by two creators
		if o, there := by[e.Owner]; there {
			out.Items = append(out.Items, v1.BrowseEntry{Value: e.Value, Object: o})
		}
	}
	return out, errors.Join(err, rowsErr, wireErr)
}
