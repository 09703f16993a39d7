package opensearch_test

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// domain is a small OpenSearch: it keeps documents, and fails the test on a request whose form
// or signature is not what the real one expects.
type domain struct {
	testing.TB
	refuse string // the error of each document, as JSON

	mu      sync.Mutex
	created bool
	fields  []string
	docs    map[string]document
	version map[string]int64 // also of deleted ones
}

type document = map[string]any

func (d *domain) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		d.Error(err)
	}
	d.signed(r, body)
	w.Header().Set("Content-Type", "application/json")
	switch r.Method + " " + r.URL.Path + " " + r.Header.Get("Content-Type") {
	case "PUT /objects application/json":
		d.create(w, body)
	case "PUT /objects/_mapping application/json":
		d.extend(w, body)
	case "POST /objects/_bulk application/x-ndjson":
		d.bulk(w, body)
	case "POST /objects/_search application/json":
		d.search(w, body)
	case "POST /objects/_mget application/json":
		d.read(w, r, body)
	default:
		d.Errorf("unexpected request: %s %s", r.Method, r.URL)
	}
}

// signed signs the request again, as AWS does, and compares.
func (d *domain) signed(r *http.Request, body []byte) {
	keys, _ := who.Retrieve(r.Context())
	again := httptest.NewRequest(r.Method, "http://"+r.Host+r.URL.String(), bytes.NewReader(body))
	again.Header.Set("Content-Type", r.Header.Get("Content-Type"))
	sum := sha256.Sum256(body)
	hash := hex.EncodeToString(sum[:])
	again.Header.Set("X-Amz-Content-Sha256", hash)
	if err := v4.NewSigner().SignHTTP(r.Context(), keys, again, hash, "es", "eu-west-1", now()); err != nil {
		d.Error(err)
	}
	for _, name := range []string{"Authorization", "X-Amz-Date", "X-Amz-Security-Token", "X-Amz-Content-Sha256"} {
		if got, want := r.Header.Get(name), again.Header.Get(name); got != want || got == "" {
			d.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func (d *domain) create(w http.ResponseWriter, body []byte) {
	var in struct {
		Mappings struct {
			Dynamic    *bool
			Properties map[string]struct{ Type string }
		}
	}
	if err := json.Unmarshal(body, &in); err != nil || in.Mappings.Dynamic == nil || *in.Mappings.Dynamic ||
		len(in.Mappings.Properties) == 0 {
		d.Errorf("%s: %v", body, err)
	}
	if d.created {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"error": {"type": "resource_already_exists_exception", "reason": "exists"}, "status": 400}`)
		return
	}
	d.created, d.docs, d.version = true, map[string]document{}, map[string]int64{}
	d.fields = slices.Collect(maps.Keys(in.Mappings.Properties))
	fmt.Fprint(w, `{"acknowledged": true}`)
}

// extend adds fields to the index.
func (d *domain) extend(w http.ResponseWriter, body []byte) {
	var in struct {
		Properties map[string]struct{ Type string }
	}
	if err := json.Unmarshal(body, &in); err != nil || len(in.Properties) == 0 || !d.created {
		d.Errorf("%s: %v", body, err)
	}
	d.fields = slices.AppendSeq(d.fields, maps.Keys(in.Properties))
	fmt.Fprint(w, `{"acknowledged": true}`)
}

// read answers a request of documents by their ids, as OpenSearch does ("Multi-get documents").
func (d *domain) read(w http.ResponseWriter, r *http.Request, body []byte) {
	var in struct{ IDs []string }
	if err := json.Unmarshal(body, &in); err != nil || r.URL.Query().Get("_source_includes") != "modified" {
		d.Errorf("%s %s: %v", r.URL, body, err)
	}
	var docs []document
	for _, id := range in.IDs {
		doc, found := d.docs[id]
		switch {
		case !d.created:
			docs = append(docs, document{"_id": id, "error": document{"type": "index_not_found_exception"}})
		case !found:
			docs = append(docs, document{"_id": id, "found": false})
		default:
			docs = append(docs, document{"_id": id, "found": true, "_source": document{"modified": doc["modified"]}})
		}
	}
	if err := json.NewEncoder(w).Encode(document{"docs": docs}); err != nil {
		d.Error(err)
	}
}

func (d *domain) bulk(w http.ResponseWriter, body []byte) {
	if !bytes.HasSuffix(body, []byte("\n")) {
		d.Errorf("a bulk request does not end with a line break")
	}
	lines := bufio.NewScanner(bytes.NewReader(body))
	lines.Buffer(nil, 20<<20)
	var items []string
	for lines.Scan() {
		var action map[string]struct {
			ID      string `json:"_id"`
			Version int64
			Type    string `json:"version_type"`
		}
		if err := json.Unmarshal(lines.Bytes(), &action); err != nil || len(action) != 1 {
			d.Errorf("%s: %v", lines.Text(), err)
		}
		for op, a := range action {
			if a.Type != "external_gte" || a.Version < 1 || a.ID == "" {
				d.Errorf("%s", lines.Text())
			}
			var doc document
			if op == "index" {
				lines.Scan()
				if err := json.Unmarshal(lines.Bytes(), &doc); err != nil {
					d.Error(err)
				}
			}
			items = append(items, fmt.Sprintf(`{%q: {"_id": %q, %s}}`, op, a.ID, d.write(a.ID, a.Version, doc)))
		}
	}
	fmt.Fprintf(w, `{"took": 1, "errors": true, "items": [%s]}`, strings.Join(items, ","))
}

func (d *domain) write(id string, version int64, doc document) string {
	_, there := d.docs[id]
	switch {
	case d.refuse != "":
		return `"status": 403, "error": ` + d.refuse
	case version < d.version[id]:
		return `"status": 409, "error": {"type": "version_conflict_engine_exception", "reason": "older"}`
	}
	d.version[id] = version
	if doc != nil {
		d.docs[id] = doc
		return `"status": 201`
	}
	delete(d.docs, id)
	if !there {
		return `"status": 404, "result": "not_found"`
	}
	return `"status": 200`
}

type hit struct {
	id    string
	score float64
	doc   document
}

// question is a search, or a list of ARKs.
type question struct {
	Query  document
	Size   int
	Sort   []map[string]struct{ Order, Missing string }
	After  []any `json:"search_after"`
	Source *bool `json:"_source"`
	Total  bool  `json:"track_total_hits"`
	Aggs   map[string]struct{ Terms aggregation }
}

// aggregation counts the values of a field.
type aggregation struct {
	Field string
	Size  int
}

// of are the counts of the values of the field, the largest first: as many as it says, and how many are in none of
// them ("Terms aggregations").
func (a aggregation) of(all []hit) document {
	counts := map[string]int{}
	for _, h := range all {
		for _, value := range values(h.doc[a.Field]) {
			counts[value]++
		}
	}
	names := slices.SortedFunc(maps.Keys(counts), func(x, y string) int { return cmp.Compare(counts[y], counts[x]) })
	buckets, other := []document{}, 0
	for i, name := range names {
		if i < a.Size {
			buckets = append(buckets, document{"key": name, "doc_count": counts[name]})
		} else {
			other += counts[name]
		}
	}
	return document{"buckets": buckets, "sum_other_doc_count": other}
}

func (d *domain) search(w http.ResponseWriter, body []byte) {
	if !d.created {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"error": {"type": "index_not_found_exception", "reason": "no such index"}, "status": 404}`)
		return
	}
	var in question
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&in)
	known := in.Total && len(in.Sort) == 2 || !in.Total && len(in.Sort) == 1
	if err != nil || in.Source == nil || *in.Source || !known {
		d.Errorf("%s: %v", body, err)
		return
	}
	var all []hit
	for id, doc := range d.docs {
		if score := d.score(in.Query, doc); score > 0 {
			all = append(all, hit{id, score, doc})
		}
	}
	counted := document{}
	for name, of := range in.Aggs {
		counted[name] = of.Terms.of(all)
	}
	key := func(h hit) (values []any) {
		for _, s := range in.Sort {
			for field := range s {
				value := h.doc[field]
				if field == "_score" {
					value = h.score
				}
				values = append(values, value)
			}
		}
		return values
	}
	order := func(a, b []any) int {
		for i, s := range in.Sort {
			for _, how := range s {
				if c := compare(a[i], b[i], how.Order == "desc"); c != 0 {
					return c
				}
			}
		}
		return 0
	}
	slices.SortFunc(all, func(a, b hit) int { return order(key(a), key(b)) })
	total := len(all)
	if in.After != nil {
		all = slices.DeleteFunc(all, func(h hit) bool { return order(key(h), in.After) <= 0 })
	}
	page := []document{}
	for _, h := range all[:min(len(all), in.Size)] {
		page = append(page, document{"_id": h.id, "sort": key(h)})
	}
	answer := document{"hits": document{"total": document{"value": total}, "hits": page},
		"aggregations": counted}
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		d.Error(err)
	}
}

// compare orders sort values; those that are missing are the last.
func compare(a, b any, desc bool) (c int) {
	switch {
	case a == nil || b == nil:
		return cmp.Compare(fmt.Sprint(a == nil), fmt.Sprint(b == nil))
	default:
		x, number := a.(float64)
		if number {
			c = cmp.Compare(x, b.(float64))
		} else {
			c = strings.Compare(a.(string), b.(string))
		}
	}
	if desc {
		return -c
	}
	return c
}

// score is 0 for a document that a query does not select.
func (d *domain) score(q, doc document) float64 {
	if len(q) != 1 {
		d.Errorf("a query with %d forms: %v", len(q), q)
	}
	for form, in := range q {
		switch form {
		case "bool":
			return d.boolean(in.(document), doc)
		case "match_all":
			return 1
		}
		for field, how := range in.(document) {
			if form == "terms" {
				has := slices.ContainsFunc(how.([]any), func(v any) bool { return v == doc[field] })
				return map[bool]float64{true: 1}[has]
			}
			return d.one(form, how.(document), values(doc[field]))
		}
	}
	return 0
}

func (d *domain) boolean(q, doc document) (score float64) {
	list := func(name string) (out []any) {
		out, _ = q[name].([]any)
		return out
	}
	for _, c := range list("must_not") {
		if d.score(c.(document), doc) > 0 {
			return 0
		}
	}
	for _, c := range list("filter") {
		if d.score(c.(document), doc) == 0 {
			return 0
		}
	}
	for _, c := range list("must") {
		one := d.score(c.(document), doc)
		if one == 0 {
			return 0
		}
		score += one
	}
	for _, c := range list("should") {
		score += d.score(c.(document), doc)
	}
	return score
}

func (d *domain) one(form string, how document, of []string) (score float64) {
	boost, _ := how["boost"].(float64)
	for _, v := range of {
		found := false
		switch form {
		case "match_phrase":
			found = strings.Contains(" "+v+" ", " "+how["query"].(string)+" ")
		case "prefix":
			found = strings.Contains(" "+v, " "+how["value"].(string))
		case "term":
			found = v == how["value"]
		case "range":
			from, _ := how["gte"].(string)
			to, bounded := how["lte"].(string)
			boost, found = 1, v >= from && (!bounded || v <= to)
		default:
			d.Errorf("unexpected query %q", form)
		}
		if found {
			score = max(score, boost)
		}
	}
	return score
}

// values are those of a field, whether it has one or several.
func values(v any) (out []string) {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		for _, one := range v {
			out = append(out, one.(string))
		}
	}
	return out
}
