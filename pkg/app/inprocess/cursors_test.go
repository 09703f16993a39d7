package inprocess

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/table/schema"
	"archivist/pkg/kernel/table/tabletest"
)

// listed are the operations with a cursor that a depositor can call, each with what its own call needs beside the path.
// A new one needs a row.
var listed = map[string]string{
	"GET /v1/batches":                                    "collection=letters",
	"GET /v1/batches/{id}/events":                        "",
	"GET /v1/batches/{id}/jobs":                          "",
	"GET /v1/batches/{id}/report":                        "format=csv",
	"GET /v1/browse":                                     "by=collection&collection=letters",
	"GET /v1/jobs":                                       "collection=letters",
	"GET /v1/jobs/{id}/events":                           "",
	"GET /v1/jobs/{id}/receipt":                          "",
	"GET /v1/objects":                                    "collection=letters",
	"GET /v1/objects/{naan}/{name}/events":               "",
	"GET /v1/objects/{naan}/{name}/versions/{n}/changes": "",
	"GET /v1/objects/{naan}/{name}/versions/{n}/formats": "",
	"GET /v1/objects/{naan}/{name}/history":              "",
	"GET /v1/objects/{naan}/{name}/versions":             "",
	"GET /v1/objects/{naan}/{name}/versions/{n}/files":   "",
	"GET /v1/search":                                     "query=marker",
	"GET /v1/statistics":                                 "collection=letters",
	"GET /v1/uploads":                                    "collection=letters",
	"GET /v1/uploads/{id}/events":                        "",
	"GET /v1/uploads/{id}/files":                         "",
}

// cursorsOf are cursors that lead to the things of another depositor: those that an administrator gets, and made-up
// ones of each form, at the beginning of each place where a row of these things is, or is listed.
func (w *world) cursorsOf(is things, rows []tabletest.Item) (all []string) {
	w.Helper()
	for _, path := range []string{"/v1/browse?by=collection&limit=1", "/v1/browse?by=title&limit=1",
		"/v1/search?query=marker&limit=1&sort=title",
		"/v1/search?query=marker&limit=1"} {
		_, text := w.asked("administrator", http.MethodGet, path, "")
		var page v1.List[json.RawMessage]
		w.must(json.Unmarshal([]byte(text), &page))
		if page.Cursor == "" {
			w.Fatalf("%s has no cursor: %s", path, text)
		}
		all = append(all, page.Cursor)
	}

	for _, row := range rows {
		text := func(name string) string {
			var s struct{ Value string }
			raw, err := json.Marshal(row[name])
			w.must(err)
			_ = json.Unmarshal(raw, &s) // it has no such attribute
			return s.Value
		}
		key := map[string]string{"pk": text("pk"), "sk": text("sk")}
		whole, err := json.Marshal(row)
		w.must(err)
		if !slices.ContainsFunc([]string{is.ark, is.batch, is.upload, "maps"},
			func(of string) bool { return strings.Contains(string(whole), of) }) {
			continue
		}
		add := func(key map[string]string) {
			data, err := json.Marshal(key)
			w.must(err)
			all = append(all, base64.RawURLEncoding.EncodeToString(data))
		}
		key["sk"] = ""
		add(key)
		for _, index := range schema.Indexes {
			pk, sk := index.PK, index.SK
			if text(pk) == "" {
				continue
			}
			add(map[string]string{"pk": text("pk"), "sk": text("sk"), pk: text(pk), sk: text(sk)})
			all = append(all, strings.Replace(text(sk), "#", ".", 1), text(sk))
		}
	}
	slices.Sort(all)
	return append(slices.Compact(all), "0", "1", "99999999999999999999", "-1", is.job, is.ark,
		"0000000000000."+is.batch, "9999999999999."+is.job)
}

// TestForeignCursors: a depositor who has a cursor of another collection, or makes one up, gets nothing of that
// collection in any list, and no answer of a server that is broken.
func TestForeignCursors(t *testing.T) {
	table := tabletest.New()
	w, is := guarded(t, func(s *Settings) { s.Table = table })
	theirs := things{job: is.theirs, ark: is.theirARK}
	theirs.batch, _, _ = strings.Cut(is.theirs, "-")
	c := w.with(w.tokens["other"])
	up, err := c.OpenUpload(t.Context(), v1.UploadRequest{Collection: "letters", Files: 1, Bytes: 1}, "")
	w.must(err)
	theirs.upload = up.ID

	cursors := w.cursorsOf(is, table.All())
	if len(cursors) < 50 {
		t.Fatalf("only %d cursors", len(cursors))
	}
	_, text := w.asked("viewer", http.MethodGet, "/openapi.json", "")
	type parameter struct{ Name string }
	var doc struct {
		Paths map[string]map[string]struct{ Parameters []parameter }
	}
	w.must(json.Unmarshal([]byte(text), &doc))
	asked := map[string]bool{}
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		op, ok := doc.Paths[path]["get"]
		if !ok || !slices.Contains(op.Parameters, parameter{"cursor"}) {
			continue
		}
		name := "GET " + path
		at, _, _ := strings.Cut(theirs.pathOf(name), "?")
		query, known := listed[name]
		if !known {
			status, text := w.asked("other", http.MethodGet, at, "")
			if status != http.StatusForbidden {
				t.Errorf("%s is for depositors, and has no row: %d %s", name, status, text)
			}
			continue
		}
		asked[name] = true
		if status, text := w.asked("other", http.MethodGet, at+"?"+query, ""); status >= 400 {
			t.Errorf("%s without a cursor: %d %s", name, status, text)
		}
		for _, cursor := range cursors {
			w.nothingOf(is, at+"?"+query+"&cursor="+url.QueryEscape(cursor), cursor)
		}
	}
	for name := range listed {
		if !asked[name] {
			t.Errorf("%s has a row, and no cursor", name)
		}
	}
}

// nothingOf asks as another depositor, and fails if the answer has something of things, or is that of a broken server.
// An answer that repeats the cursor tells nothing.
func (w *world) nothingOf(is things, path, cursor string) {
	w.Helper()
	status, text := w.asked("other", http.MethodGet, path, "")
	text = strings.ReplaceAll(text, cursor, "")
	for _, secret := range []string{"marker-maps", "marker maps", is.job, is.ark, is.batch, is.upload} {
		if status >= 500 || strings.Contains(text, secret) {
			w.Errorf("%s: %d %s", path, status, text)
			return
		}
	}
}
