package v1

import (
	"context"
	"strings"
)

// Found is a page of the objects that a search found.
type Found struct {
	// The objects, in the order of the search.
	Items []Object `json:"items"`
	// How many objects were found, on all pages.
	Total int `json:"total" example:"12"`
	// How many of them are in each collection, the largest first, at most 20.
	Collections []CollectionCount `json:"collections,omitempty"`
	// How many of them have a date in each year, the latest year first; of more than 20 years those with most objects.
	// Absent if they have no date, or more than 5,000 different days.
	Years []YearCount `json:"years,omitempty"`
	// How many of them have a file of each format, that of most objects first, at most 20. A
	// format is a media type, or the id in PRONOM of one that has none; unknown is a file that no
	// signature matches. Of an object with very many, others are those that are not counted.
	Formats []FormatCount `json:"formats,omitempty"`
	// The cursor of the next page. Absent on the last page.
	Cursor string `json:"cursor,omitempty"`
}

// CollectionCount is how many of the objects found are in a collection.
type CollectionCount struct {
	// The name of the collection.
	Name string `json:"name" example:"maps"`
	// The number of objects.
	Objects int `json:"objects" example:"12"`
}

// FormatCount is how many of the objects found have a file of a format.
type FormatCount struct {
	// The format.
	Format string `json:"format" example:"image/tiff"`
	// The number of objects.
	Objects int `json:"objects" example:"12"`
}

// YearCount is how many of the objects found have a date in a year.
type YearCount struct {
	// The year.
	Year string `json:"year" example:"1851"`
	// The number of objects.
	Objects int `json:"objects" example:"4"`
}

// BrowseEntry is an object in a list of all objects.
type BrowseEntry struct {
	// What it is listed by: its title, its date, one of its creators, or its collection. Absent at the end of a
	// list, for objects that have none.
	Value string `json:"value,omitempty" example:"Map of the harbour"`
	// The object.
	Object Object `json:"object"`
}

// Orders of a search.
const (
	ByRelevance = "relevance"
	ByTitle     = "title"
	ByDate      = "date"
	ByModified  = "modified"
)

// Directions of an order of objects.
const (
	Ascending  = "ascending"
	Descending = "descending"
)

// Search finds objects. The order is one of the above, or "", with a direction behind a blank if
// it is not the ordinary one: "date descending".
func (c *Client) Search(ctx context.Context, text, order string, limit int) (out Found, err error) {
	out.Items = []Object{}
	for cursor := ""; ; {
		page, err := get[Found](ctx, c, "/v1/search"+searched(text, order, cursor))
		if err != nil {
			return out, err
		}

		page.Items = append(out.Items, page.Items...)
		out = page
		if limit > 0 && len(out.Items) >= limit {
			out.Items = out.Items[:limit]
			return out, nil
		}

		cursor = page.Cursor
		if cursor == "" {
			return out, nil
		}
	}
}

// searched is the query of a page of a search.
func searched(text, order, cursor string, more ...string) string {
	by, direction, _ := strings.Cut(order, " ")
	return query(append([]string{"query", text, "sort", by, "order", direction, "cursor", cursor},
		more...)...)
}

// Browse reads the list of all objects by title, date, creator or collection: from a value
// on, or only that of one collection.
func (c *Client) Browse(ctx context.Context, by, from, collection string,
	limit int) ([]BrowseEntry, error) {
	return list[BrowseEntry](ctx, c, "/v1/browse", limit, "by", by, "from", from, "collection",
		collection)
}
