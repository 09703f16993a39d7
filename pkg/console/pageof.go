package console

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	v1 "archivist/pkg/api/v1"
)

// pageOf reads a page of a list of the API, whose path is below /v1. cursor is "" for the first one.
func pageOf[T any](v *visit, path, cursor string, pairs ...string) (v1.List[T], error) {
	return call[v1.List[T]](v, http.MethodGet, path+"?"+query(append(pairs, "cursor",
		cursor)...), nil, "")
}

// parts are the address of what is about a thing, from the parts of its path, each escaped.
func parts(all ...string) string {
	escaped := make([]string, len(all))
	for i, part := range all {
		escaped[i] = url.PathEscape(part)
	}
	return "/v1/" + strings.Join(escaped, "/")
}

// more is the address of the next part of one of several lists of a page, "" after the last. The rest of the address
// stays.
func (v *visit) more(name, cursor string) string {
	if cursor == "" {
		return ""
	}
	q := v.URL.Query()
	q.Set(name, cursor)
	return "?" + q.Encode()
}

// mostBack is how many pages back a list leads, one by one: the address has their cursors.
const mostBack = 8

// cutOff stands in an address for the pages before those.
const cutOff = "-"

// beside are the addresses of the page before and of the next one, "" if there is none. The API knows
// only what follows; so the address has the cursors of the pages between the first and this one, the
// newest last.
func (v *visit) beside(name, next string) (before, behind string) {
	var at []string
	if back := v.field("back"); back != "" {
		at = strings.Split(back, ",")
	}
	from := v.field(name)
	if from != "" {
		last, rest := "", at
		if n := len(at); n > 0 {
			last, rest = at[n-1], at[:n-1]
		}
		if last != cutOff {
			before = v.with(name, last, "back", strings.Join(rest, ","))
		}
		at = append(slices.Clone(at), from)
	}
	if len(at) > mostBack {
		at = append([]string{cutOff}, at[len(at)-mostBack:]...)
	}
	if next != "" {
		behind = v.with(name, next, "back", strings.Join(at, ","))
	}
	return before, behind
}

// with is the address of this page with other values, "" removes one.
func (v *visit) with(pairs ...string) string {
	q := v.URL.Query()
	for i := 0; i+1 < len(pairs); i += 2 {
		q.Set(pairs[i], pairs[i+1])
		if pairs[i+1] == "" {
			q.Del(pairs[i])
		}
	}
	return "?" + q.Encode()
}

// pagesOfTypes are the pages of what events are about, by the type of the subject: before its id, below /console/. A
// type that is not here has no page.
var pagesOfTypes = map[string]string{"Batch": "batches/", "Job": "jobs/",
	"Operation": "operations/", "Collection": "collections/",
	"Consumer": "consumers/", "Archive": "archives/", "Component": "components/",
	"ResearchProject": "research/",
	"Task":            "task?id=", "ComponentItem": "item?id="}

// subjectPage is the page of what an event is about, below /console/; "" if there is none.
func subjectPage(kind, id string) string {
	switch project, rest, _ := strings.Cut(id, "/"); {
	case kind == "Revision":
		return "archives/" + url.PathEscape(plainArchive(project)) + "/revisions/" +
			url.PathEscape(rest)
	case kind == "Episode" || kind == "Clip":
		return "research/" + url.PathEscape(project) + "/" + strings.ToLower(kind) + "s/" +
			url.PathEscape(rest)
	case kind == "Archive":
		id = plainArchive(id)
	}
	page, has := pagesOfTypes[kind]
	switch {
	case !has:
		return ""
	case strings.HasSuffix(page, "="):
		return page + url.QueryEscape(id)
	}
	return page + url.PathEscape(id)
}

// plainArchive is the name of an archive without the number that tells it from earlier ones of this name.
func plainArchive(ref string) string {
	name, _, _ := strings.Cut(ref, "@")
	return name
}
