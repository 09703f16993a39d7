package embedded

import (
	"context"
	"fmt"
	"strconv"

	"github.com/blevesearch/bleve/v2"
	found "github.com/blevesearch/bleve/v2/search"
	"github.com/blevesearch/bleve/v2/search/query"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/views/search"
)

// The names of the facets.
const (
	collectionsName = "collections"
	daysName        = "days"
	kindsName       = "kinds"
)

// Search implements search.Index. Nothing is found if
// nothing was indexed yet. The snapshot stays open until the search has ended, although a newer one may
// be opened meanwhile.
func (x *Index) Search(ctx context.Context, r search.Request) (out search.Result, err error) {
	if err := r.Check(); err != nil {
		return out, err
	}

	order, scored := orders(r.Order)
	if r.Reverse {
		reverse(order)
	}
	after, err := r.Start(len(order))
	if err != nil {
		return out, err
	}

	index, done, err := x.current(ctx)
	defer done()
	if err != nil || index == nil {
		return out, err
	}

	request := bleve.NewSearchRequestOptions(within(condition(r.Query), r.In), r.Limit, 0, false)
	request.Sort = order
	request.SearchAfter = after
	request.AddFacet(collectionsName,
		bleve.NewFacetRequest(search.FieldCollection, search.MaxFacets))
	request.AddFacet(kindsName, bleve.NewFacetRequest(kindName, search.MaxFacets))
	request.AddFacet(daysName, bleve.NewFacetRequest(dayName, search.MaxDays))
	if err := request.Validate(); err != nil {
		return out, fault.New(fault.Invalid, "invalid cursor: %w", err)
	}

	answer, err := index.SearchInContext(ctx, request)
	if err != nil {
		return out, fmt.Errorf("search: %w", err)
	}
	return result(r, answer, scored), nil
}

// orders are the sort keys of an order; the ARK, which is the document's id, is the last.
// scored is whether the first is the score.
func orders(name string) (order found.SortOrder, scored bool) {
	id := &found.SortDocID{}
	switch name {
	case search.ByTitle:
		return found.SortOrder{&found.SortField{Field: titleName, Type: found.SortFieldAsString},
			id}, false
	case search.ByDate:
		return found.SortOrder{&found.SortField{
			Field:   dayName,
			Type:    found.SortFieldAsString,
			Missing: found.SortFieldMissingLast,
		}, id}, false
	case search.ByModified:
		modified := &found.SortField{Field: modifiedName, Type: found.SortFieldAsNumber, Desc: true}
		return found.SortOrder{modified, id}, false
	}
	return found.SortOrder{&found.SortScore{Desc: true}, id}, true
}

// reverse turns an order around. What has no value stays the last.
func reverse(order found.SortOrder) {
	order.Reverse()
	for _, key := range order {
		if field, is := key.(*found.SortField); is {
			field.Missing = found.SortFieldMissingLast
		}
	}
}

// result makes the page. The score of the last hit is written with all of its digits: SearchAfter
// compares it with those of other hits.
func result(r search.Request, answer *bleve.SearchResult, scored bool) search.Result {
	out := search.Result{Total: int(answer.Total)}
	for _, hit := range answer.Hits {
		out.ARKs = append(out.ARKs, hit.ID)
	}

	if n := len(answer.Hits); n == r.Limit && n > 0 {
		last := answer.Hits[n-1]
		after := []string{last.DecodedSort[0], last.ID}
		if scored {
			after[0] = strconv.FormatFloat(last.Score, 'g', -1, 64)
		}
		out.Cursor = r.Cursor(after)
	}

	if facet := answer.Facets[collectionsName]; facet != nil && facet.Terms != nil {
		for _, term := range facet.Terms.Terms() {
			out.Collections = append(out.Collections,
				search.Count{Collection: term.Term, Objects: term.Count})
		}
	}

	if facet := answer.Facets[kindsName]; facet != nil && facet.Terms != nil {
		for _, term := range facet.Terms.Terms() {
			out.Formats = append(out.Formats, search.FormatCount{Format: term.Term,
				Objects: term.Count})
		}
	}

	if facet := answer.Facets[daysName]; facet != nil && facet.Terms != nil && facet.Other == 0 {
		days := map[string]int{}
		for _, term := range facet.Terms.Terms() {
			days[term.Term] = term.Count
		}
		out.Years = search.Years(days)
	}
	return out
}

// condition is a query in bleve's terms.
func condition(q search.Query) *query.BooleanQuery {
	all := bleve.NewBooleanQuery()
	if len(q.Clauses) == 0 {
		all.AddMust(bleve.NewMatchAllQuery())
	}
	for _, c := range q.Clauses {
		if c.Not {
			all.AddMustNot(clause(c))
		} else {
			all.AddMust(clause(c))
		}
	}
	return all
}

// within limits a condition to what is in one of the collections, unless they are nil. It does not count for the
// relevance.
func within(q *query.BooleanQuery, collections []string) query.Query {
	if collections == nil {
		return q
	}
	any := bleve.NewDisjunctionQuery()
	for _, name := range collections {
		one := bleve.NewTermQuery(name)
		one.SetField(search.FieldCollection)
		any.AddQuery(one)
	}
	q.AddFilter(any)
	return q
}

// How much more a word in the title, or of the creator, counts for the relevance.
const (
	titleBoost   = 3
	creatorBoost = 2
)

// clause is one condition, without its Not. A word without a field has to be somewhere in the document;
// where it is in the title or names the creator, the document counts more.
func clause(c search.Clause) query.Query {
	if c.Field != search.FieldAny {
		return one(c, c.Field)
	}
	title, creator := one(c, search.FieldTitle), one(c, search.FieldCreator)
	title.(query.BoostableQuery).SetBoost(titleBoost)
	creator.(query.BoostableQuery).SetBoost(creatorBoost)
	return bleve.NewDisjunctionQuery(one(c, anyName), title, creator)
}

// one is the condition on one field.
func one(c search.Clause, field string) query.FieldableQuery {
	var q query.FieldableQuery
	switch {
	case c.Prefix != "":
		q = bleve.NewPrefixQuery(c.Prefix)
	case c.Exact != "":
		q = bleve.NewTermQuery(c.Exact)
	case c.From != "" || c.To != "":
		return between(c)
	default:
		q = bleve.NewMatchPhraseQuery(c.Words)
	}

	q.SetField(field)
	return q
}

// between is a range of days. Days are compared as texts. A range without a beginning begins at "0":
// years begin with a digit.
func between(c search.Clause) query.FieldableQuery {
	from, to := c.From, ""
	if from == "" {
		from = "0"
	}
	if c.To != "" {
		to = c.Until()
	}
	q := bleve.NewTermRangeQuery(from, to)
	q.SetField(dayName)
	return q
}
