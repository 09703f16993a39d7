package console

import (
	"context"
	"slices"
	"strings"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/fault"
)

// sortNames are what lists can be sorted by, in words.
var sortNames = map[string]string{
	v1.ByState: "state", v1.BySince: "begin of state", v1.BySpace: "work space",
	v1.ByTitle: "title", v1.ByJobs: "number of jobs", v1.ByFailed: "failed jobs",
	v1.ByBytes: "bytes of content", v1.BySubmitter: "submitter", byAge: "age",
}

// byAge names the order by age among the headings; the API has it without a sort.
const byAge = "created"

// heading is the heading of a column by which a list can be sorted.
type heading struct {
	To   string // the address of the list that is sorted by it, or turned around if it is already
	Aria string // ascending or descending, if the list is sorted by it
}

// sortable is how a list is sorted.
type sortable struct {
	// Sorts are what it can be sorted by beside the age; Names are these in words.
	Sorts []string
	Names map[string]string
	Heads map[string]*heading // by what they sort by, or byAge
	// Unsorted is why it is not sorted as it was asked for.
	Unsorted string
}

// By is how the list is sorted, for its caption.
func (l listed) By() string {
	switch f := l.Filter; {
	case f.Sort != "":
		order := f.Order
		if order == "" {
			order = v1.SortedFrom(f.Sort)
		}
		return "by " + sortNames[f.Sort] + ", " + order
	case f.Order == v1.Oldest:
		return "oldest first"
	}
	return "newest first"
}

// Caption is By, "" if the list is one of a batch in the order of its manifest.
func (l listed) Caption() string {
	if l.Filter.Batch != "" && l.Filter.Sort == "" {
		return ""
	}
	return l.By()
}

// suited is a filter whose order suits what it sorts by: what is oldest comes first in an ascending
// order. So a form has all orders, whatever is chosen to sort by.
func suited(f v1.Filter) v1.Filter {
	of := map[string]string{v1.Newest: v1.Descending, v1.Oldest: v1.Ascending}
	if f.Sort == "" {
		of = map[string]string{v1.Descending: v1.Newest, v1.Ascending: v1.Oldest}
	}
	if order, is := of[f.Order]; is {
		f.Order = order
	}
	return f
}

// readSorted reads a page of a list that can be sorted. If too many match to be sorted, it reads
// the first page of the list by age, changes the filter to that, and returns why.
func readSorted[T any](v *visit, f *v1.Filter, sorts []string,
	read func(context.Context, v1.Filter, string) (v1.List[T], error)) (page v1.List[T], why string,
	err error) {
	page, err = read(v.Context(), *f, v.field("cursor"))
	if !slices.Contains(sorts, f.Sort) || !fault.Is(err, fault.Invalid) {
		return page, "", err
	}
	wrong, other := faultsOf(err, filterFields)
	why = wrong["sort"]
	if why == "" || len(wrong) > 1 || strings.TrimSpace(other) != "" {
		return page, "", err
	}
	f.Sort, f.Order = "", ""
	page, err = read(v.Context(), *f, "")
	return page, why, err
}

// sortable is how a list with a filter can be sorted.
func (v *visit) sortable(f v1.Filter, sorts []string, unsorted string) sortable {
	s := sortable{Sorts: sorts, Names: sortNames, Unsorted: unsorted, Heads: map[string]*heading{}}
	for _, by := range sorts {
		s.Heads[by] = &heading{To: v.with("sort", by, "order", "", "cursor", "")}
		if by == f.Sort {
			s.Heads[by] = v.turned(f, v1.SortedFrom(by), v1.Ascending, v1.Descending)
		}
	}
	if f.Batch != "" { // without a sort it is in the order of the manifest
		return s
	}
	created := &heading{To: v.with("sort", "", "order", "", "cursor", "")}
	if f.Sort == "" {
		created = v.turned(f, v1.Newest, v1.Oldest, v1.Newest)
	}
	s.Heads[byAge] = created
	return s
}

// turned is the heading by which a list is sorted: it leads to the other order.
func (v *visit) turned(f v1.Filter, usual, up, down string) *heading {
	is, aria, other := f.Order, v1.Ascending, down
	if is == "" {
		is = usual
	}
	if is == down {
		aria, other = v1.Descending, up
	}
	if other == usual {
		other = ""
	}
	return &heading{To: v.with("sort", f.Sort, "order", other, "cursor", ""), Aria: aria}
}
