// Package search finds preserved objects by the words of their descriptions and by the names
// of their files.
//
// An Index keeps one document per object. There are two: package embedded, whose files are
// in a bucket, and package opensearch, a domain of Amazon OpenSearch Service. Both index the
// same words (Normal), and answer the same queries (ParseQuery):
//
//	q, err := search.ParseQuery(`harbour creator:blunt date:1800..1899`)
//	found, err := index.Search(ctx, search.Request{Query: q, Limit: 50})
//
// The index follows the events of objects (Consumer). A document is made from the state of
// its object, never from an event, so events may be repeated, coalesced or reordered.
package search

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/lease"
	"archivist/pkg/kernel/table"
)

// Index keeps the documents of objects, and finds them.
type Index interface {
	// Update reads the state of each changed object, and makes its document the same. When it
	// returns without an error, all of them can be found. Any number of processes may call it
	// at the same time.
	Update(ctx context.Context, changed []Change, read Reader) error
	// Search returns a page of the objects that a request selects.
	Search(ctx context.Context, r Request) (Result, error)
	// ARKs returns those of the next MaxARKs documents in the order of their ARKs, after one of them, ""
	// for the first. next is where the following page begins, "" at the end.
	ARKs(ctx context.Context, after string) (arks []string, next string, err error)
	// Modified returns when the objects were last changed as their documents have them, by ARK, in
	// milliseconds since 1970. An object without a document is left out. MaxARKs may be asked for.
	Modified(ctx context.Context, arks []string) (map[string]int64, error)
}

// MaxARKs is the number of documents that a page of Index.ARKs, or Index.Modified, looks at.
const MaxARKs = 250

// Parts are what an index in a bucket is made of. The index in a domain needs none of them: its state
// is in the domain.
type Parts struct {
	Table  *table.Table
	Bucket bucket.Bucket
	Leases *lease.Store
	Now    func() time.Time
}

// Change is an object that may have changed. Version is that of its newest known event. An index may
// use the version to refuse an older state, or ignore it and read the object under a lease.
type Change struct {
	ARK     string
	Version int64
}

// Reader reads the state of an object as a document, nil if there is no such object. It is called
// concurrently. An error ends the update.
type Reader func(ctx context.Context, ark string) (*Document, error)

// Orders of results.
const (
	ByRelevance = "relevance" // the best first
	ByTitle     = "title"
	ByDate      = "date"     // the earliest first
	ByModified  = "modified" // the last changed first
)

// Orders lists them; the first is the default.
var Orders = []string{ByRelevance, ByTitle, ByDate, ByModified}

// MaxLimit is how many objects a page has at most, and by default. Each object that is found costs the
// API a read of its row.
const MaxLimit = 50

// Request is a search. After is the cursor of the page before, "" for the first page.
type Request struct {
	Query Query
	Order string // one of Orders; ByRelevance if it is empty
	// Reverse turns the order around. Objects without a date stay the last.
	Reverse bool
	Limit   int // of the page; MaxLimit if it is 0
	After   string
	In      []string // only what is in one of these collections; nil = all
}

// Result is a page of the objects that were found. Total and Collections count all of them. A page that
// has Limit objects has a cursor, so the last page may be empty.
type Result struct {
	ARKs        []string
	Total       int
	Collections []Count // the largest first, MaxFacets at most
	// Years are those of the days of objects (Day), the latest first; of more than MaxFacets those with most objects.
	// It is nil if the objects found have more than MaxDays different days.
	Years []YearCount
	// Formats are those of files, as Document.Kinds names them: those of most objects first,
	// MaxFacets at most. An object counts for each of its formats.
	Formats []FormatCount
	Cursor  string // of the next page, "" at the end
}

// MaxFacets is how many collections, years or formats a result counts.
const MaxFacets = 20

// Count is how many of the objects found are in one collection.
type Count struct {
	Collection string
	Objects    int
}

// FormatCount is how many of the objects found have a file of a format.
type FormatCount struct {
	Format  string
	Objects int
}

// YearCount is how many of the objects found have a day in one year, of four digits.
type YearCount struct {
	Year    string
	Objects int
}

// MaxDays is of how many different days the years are counted: an index counts days, which it keeps for the order by
// date.
const MaxDays = 5000

// Years are the years of a Result, of the counts of all days.
func Years(days map[string]int) (all []YearCount) {
	years := map[string]int{}
	for day, n := range days {
		years[day[:min(len(day), 4)]] += n
	}
	for year, n := range years {
		all = append(all, YearCount{year, n})
	}
	slices.SortFunc(all, func(a, b YearCount) int {
		return cmp.Or(cmp.Compare(b.Objects, a.Objects), cmp.Compare(b.Year, a.Year))
	})
	all = all[:min(len(all), MaxFacets)]
	slices.SortFunc(all, func(a, b YearCount) int { return cmp.Compare(b.Year, a.Year) })
	return all
}

// Check sets the defaults of a request, and refuses what no index can answer. The error is an Invalid
// that names the parameter of the API.
func (r *Request) Check() error {
	if r.Order == "" {
		r.Order = ByRelevance
	}

	if !slices.Contains(Orders, r.Order) {
		return fault.New(fault.Invalid, "sort: found %q; expected one of %s", r.Order,
			strings.Join(Orders, ", "))
	}

	if r.Limit <= 0 || r.Limit > MaxLimit {
		r.Limit = MaxLimit
	}
	return nil
}

// position is a cursor: the sort values of the last object of a page, and of which search. It is JSON
// in base64 (RFC 4648, section 5), without padding. The values are texts, as the index wrote them.
type position struct {
	Of    string   `json:"of"`
	After []string `json:"after"`
}

// of identifies the search that a cursor belongs to. It is a hash of the order and of the query in its
// one form (Query.String): 72 bits are enough to notice a mistake, and keep the cursor short. A client
// can make one that fits; then it gets another page, nothing worse.
func (r Request) of() string {
	order := r.Order
	if r.Reverse {
		order = "-" + order
	}
	sum := sha256.Sum256([]byte(order + "\x00" + r.Query.String()))
	return base64.RawURLEncoding.EncodeToString(sum[:9])
}

// Cursor is the cursor of the page that begins after an object with these sort values.
func (r Request) Cursor(after []string) string {
	b, _ := json.Marshal(position{r.of(), after}) // cannot fail: strings
	return base64.RawURLEncoding.EncodeToString(b)
}

// Start returns the sort values after which the page begins, nil for the first page. n is how many
// there must be. The error is an Invalid for a cursor that is damaged, or of another search.
func (r Request) Start(n int) ([]string, error) {
	if r.After == "" {
		return nil, nil
	}

	refused := fault.New(fault.Invalid,
		"invalid cursor; use that of the page before with the same query and order, "+
			"or leave it out to begin again")
	b, err := base64.RawURLEncoding.DecodeString(r.After)
	if err != nil {
		return nil, refused
	}

	var p position
	if err := json.Unmarshal(b, &p); err != nil {
		return nil, refused
	}

	if p.Of != r.of() || len(p.After) != n {
		return nil, refused
	}
	return p.After, nil
}
