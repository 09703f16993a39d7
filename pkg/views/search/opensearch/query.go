package opensearch

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/views/search"
)

// object is a JSON object. Requests are made of them.
type object map[string]any

// hits is the response to a search. Sort has the values of the sort keys as JSON, which become a cursor
// and are sent back as they are.
type hits struct {
	Hits struct {
		Total struct{ Value int }
		Hits  []struct {
			ID   string            `json:"_id"`
			Sort []json.RawMessage `json:"sort"`
		}
	}
	Aggregations struct{ Collections, Days, Kinds terms }
}

// terms is how often each value of a field occurs, and the number of objects whose values are not among these.
type terms struct {
	Other   int `json:"sum_other_doc_count"`
	Buckets []struct {
		Key   string
		Count int `json:"doc_count"`
	}
}

// Search implements search.Index. A cursor whose values are not JSON is an Invalid; other errors are
// those of send.
func (x *Index) Search(ctx context.Context, r search.Request) (out search.Result, err error) {
	if err := r.Check(); err != nil {
		return out, err
	}

	order := orders(r.Order)
	if r.Reverse {
		reverse(order)
	}
	after, err := r.Start(len(order))
	if err != nil {
		return out, err
	}

	collections := object{"terms": object{"field": search.FieldCollection,
		"size": search.MaxFacets}}
	days := object{"terms": object{"field": "day", "size": search.MaxDays}}
	kinds := object{"terms": object{"field": "kind", "size": search.MaxFacets}}
	request := object{"query": within(condition(r.Query), r.In), "size": r.Limit, "_source": false,
		"track_total_hits": true,
		"sort":             order, "aggs": object{"collections": collections, "days": days,
			"kinds": kinds}}

	if after != nil {
		values := make([]any, len(after)) // texts, numbers, or null
		for i, v := range after {
			err = errors.Join(err, json.Unmarshal([]byte(v), &values[i]))
		}
		if err != nil {
			return out, fault.New(fault.Invalid, "invalid cursor: %w", err)
		}
		request["search_after"] = values
	}

	answer, err := x.query(ctx, request)
	return result(r, answer), err
}

// ARKs implements search.Index. They are found by a search for all ARKs, in their order, which goes on
// after the last one: the domain keeps nothing between two pages.
func (x *Index) ARKs(ctx context.Context, after string) (arks []string, next string, err error) {
	all := search.Query{Clauses: []search.Clause{{Field: search.FieldARK, Prefix: "ark:"}}}
	request := object{"query": condition(all), "size": search.MaxARKs, "_source": false,
		"sort": []object{{search.FieldARK: object{"order": "asc"}}}}
	if after != "" {
		request["search_after"] = []string{after}
	}

	answer, err := x.query(ctx, request)
	for _, h := range answer.Hits.Hits {
		arks = append(arks, h.ID)
	}

	if len(arks) == search.MaxARKs {
		next = arks[len(arks)-1]
	}
	return arks, next, err
}

// Modified implements search.Index. Documents are read by their ids ("Multi-get documents"), so it also knows
// those that searches do not show yet. Without an index no document is found.
func (x *Index) Modified(ctx context.Context, arks []string) (map[string]int64, error) {
	if len(arks) == 0 {
		return nil, nil
	}

	body, err := json.Marshal(object{"ids": arks})
	if err != nil {
		return nil, err
	}

	var answer struct {
		Docs []struct {
			ID     string `json:"_id"`
			Found  bool   `json:"found"`
			Source struct {
				Modified int64 `json:"modified"`
			} `json:"_source"`
		} `json:"docs"`
	}
	path := "/" + url.PathEscape(x.Name) + "/_mget?_source_includes=modified"
	err = x.send(ctx, http.MethodPost, path, "application/json", body, &answer)
	out := map[string]int64{}
	for _, d := range answer.Docs {
		if d.Found {
			out[d.ID] = d.Source.Modified
		}
	}
	return out, err
}

// query sends a search. Nothing is found if nothing was indexed yet.
func (x *Index) query(ctx context.Context, request object) (answer hits, err error) {
	body, err := json.Marshal(request)
	if err != nil {
		return answer, err
	}

	err = x.send(ctx, http.MethodPost, "/"+url.PathEscape(x.Name)+"/_search", "application/json",
		body, &answer)
	var refused *refusal
	if asRefusal(err, &refused) && refused.Type == "index_not_found_exception" {
		return answer, nil
	}
	return answer, err
}

// result makes the page. A page that is not full is the last.
func result(r search.Request, answer hits) search.Result {
	out := search.Result{Total: answer.Hits.Total.Value}
	for _, h := range answer.Hits.Hits {
		out.ARKs = append(out.ARKs, h.ID)
	}

	if n := len(answer.Hits.Hits); n == r.Limit && n > 0 {
		var after []string
		for _, v := range answer.Hits.Hits[n-1].Sort {
			after = append(after, string(v))
		}
		out.Cursor = r.Cursor(after)
	}

	for _, b := range answer.Aggregations.Collections.Buckets {
		out.Collections = append(out.Collections, search.Count{Collection: b.Key, Objects: b.Count})
	}

	for _, b := range answer.Aggregations.Kinds.Buckets {
		out.Formats = append(out.Formats, search.FormatCount{Format: b.Key, Objects: b.Count})
	}

	if of := answer.Aggregations.Days; of.Other == 0 {
		days := map[string]int{}
		for _, b := range of.Buckets {
			days[b.Key] = b.Count
		}
		out.Years = search.Years(days)
	}
	return out
}

// orders are the sort keys of an order; the ARK is the last.
func orders(name string) []object {
	id := object{search.FieldARK: object{"order": "asc"}}
	switch name {
	case search.ByTitle:
		return []object{{"titlekey": object{"order": "asc"}}, id}
	case search.ByDate:
		return []object{{"day": object{"order": "asc", "missing": "_last"}}, id}
	case search.ByModified:
		return []object{{"modified": object{"order": "desc"}}, id}
	}
	return []object{{"_score": object{"order": "desc"}}, id}
}

// reverse turns the order around. What has no value stays the last.
func reverse(order []object) {
	for _, key := range order {
		for _, how := range key {
			how := how.(object)
			if how["order"] == "asc" {
				how["order"] = "desc"
			} else {
				how["order"] = "asc"
			}
		}
	}
}

// condition is a query in OpenSearch's terms ("Boolean query").
func condition(q search.Query) object {
	must, not := []object{}, []object{}
	for _, c := range q.Clauses {
		if c.Not {
			not = append(not, clause(c))
		} else {
			must = append(must, clause(c))
		}
	}
	if len(must) == 0 { // all documents: a parsed query has a condition without a Not
		must = append(must, object{"match_all": object{}})
	}
	return object{"bool": object{"must": must, "must_not": not}}
}

// within limits a condition to what is in one of the collections, unless they are nil. It does not count for the
// relevance ("Boolean query", filter).
func within(q object, collections []string) object {
	if collections == nil {
		return q
	}
	in := object{"terms": object{search.FieldCollection: collections}}
	return object{"bool": object{"must": []object{q}, "filter": []object{in}}}
}

// How much more a word in the title, or of the creator, counts for the relevance.
const (
	titleBoost   = 3
	creatorBoost = 2
)

// clause is one condition, without its Not. A word without a field has to be somewhere in the document,
// and counts more in the title or as a creator.
func clause(c search.Clause) object {
	if c.Field != search.FieldAny {
		return one(c, c.Field, 1)
	}
	return object{"bool": object{"should": []object{one(c, "any", 1),
		one(c, search.FieldTitle, titleBoost),
		one(c, search.FieldCreator, creatorBoost)}, "minimum_should_match": 1}}
}

// one is the condition on one field. A range is always one of days, whatever the field is called.
func one(c search.Clause, field string, boost int) object {
	switch {
	case c.Prefix != "":
		return object{"prefix": object{field: object{"value": c.Prefix, "boost": boost}}}
	case c.Exact != "":
		return object{"term": object{field: object{"value": c.Exact, "boost": boost}}}
	case c.From != "" || c.To != "":
		return object{"range": object{"day": between(c)}}
	}
	return object{"match_phrase": object{field: object{"query": c.Words, "boost": boost}}}
}

// between is a range of days, which are compared as texts.
func between(c search.Clause) object {
	bounds := object{}
	if c.From != "" {
		bounds["gte"] = c.From
	}
	if c.To != "" {
		bounds["lte"] = c.Until()
	}
	return bounds
}
