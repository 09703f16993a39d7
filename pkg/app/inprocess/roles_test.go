package inprocess

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	v1 "archivist/pkg/api/v1"
)

var update = flag.Bool("update", false, "write the table of roles anew")

// The columns of the table, each with its grant. The things that are asked for are in the collection maps.
var callers = []struct{ name, grant string }{{"viewer", "viewer"}, {"operator", "operator"},
	{"administrator", "administrator"}, {"depositor", "depositor:maps"}, {"other",
		"depositor:letters"},
	{"researcher", "researcher:jingles"}, {"notifier", "notifier:songs"}}

// elsewhere is all that a depositor gets of a thing of another collection, and of one that does not exist.
const elsewhere = `{"type":"urn:archivist:problem:not-found","title":"Not found","status":404,"detail":"there is no ` +
	`such thing in the collections of the caller"}` + "\n"

// asked is a request of the test. The text has the headers that can name things, too.
func (w *world) asked(caller, method, path, body string, headers ...string) (status int,
	text string) {
	w.Helper()
	r, err := http.NewRequestWithContext(w.Context(), method, APIURL+path, strings.NewReader(body))
	w.must(err)
	if token := w.tokens[caller]; token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	client := w.HTTP()
	client.CheckRedirect = func(*http.Request,
		[]*http.Request) error {
		return http.ErrUseLastResponse
	}
	resp, err := client.Do(r)
	w.must(err)
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	w.must(err)
	text = string(data)
	for _, name := range []string{"Location", "Link", "ETag", "Content-Disposition", "Content-Location",
		"WWW-Authenticate"} {
		text += resp.Header.Get(name)
	}
	return resp.StatusCode, text
}

// things are two preserved objects, of two depositors, and where those of the first are.
type things struct {
	batch, job, ark  string // of maps
	upload           string // of maps
	theirs, theirARK string // of letters: the job, and the object
}

// preserved submits an object to a collection as its depositor, and waits for it.
func (w *world) preserved(caller, collection string) (batch, job, ark string) {
	w.Helper()
	name := "/marker-" + collection + ".txt"
	w.src.put(name, "content of "+collection)
	c := w.with(w.tokens[caller])
	out, err := c.Submit(w.Context(), v1.BatchRequest{Collection: collection, Submitter: "marker-" +
		collection,
		Payload: v1.Payload{URL: sourceURL + name}, Metadata: &v1.Metadata{What: "marker " +
			collection},
		Identifiers: &v1.Identifiers{Local: []string{"marker-" + collection}}}, "the same key")
	w.must(err)
	w.until("it is preserved", func() bool {
		b, err := c.Batch(w.Context(), out.ID)
		w.must(err)
		return b.State == v1.Completed
	})
	jobs, err := c.Jobs(w.Context(), v1.Filter{Batch: out.ID})
	w.must(err)
	w.until("it is found", func() bool {
		found, err := c.Search(w.Context(), "marker", "relevance", 10)
		w.must(err)
		return found.Total == 1
	})
	return out.ID, jobs[0].ID, jobs[0].Identifiers.Primary
}

// guarded is a system with a token for each caller, and with things.
func guarded(t *testing.T, with ...func(*Settings)) (*world, things) {
	settings := quick()
	for _, change := range with {
		change(&settings)
	}
	settings.Projects = []string{"jingles"}
	grants := map[string]string{}
	for _, c := range callers {
		grants[c.name] = c.grant
	}
	tokens := demanding(t, &settings, grants)
	w := begin(t, settings)
	w.tokens = tokens
	var is things
	is.batch, is.job, is.ark = w.preserved("depositor", "maps")
	_, is.theirs, is.theirARK = w.preserved("other", "letters")
	up, err := w.with(tokens["depositor"]).OpenUpload(t.Context(),
		v1.UploadRequest{Collection: "maps", Files: 1, Bytes: 1, Note: "marker-maps"}, "")
	w.must(err)
	is.upload = up.ID
	return w, is
}

// queries are what routes need beside their path.
var queries = map[string]string{"GET /v1/batches": "collection=maps", "GET /v1/batch-counts": "collection=maps",
	"GET /v1/jobs":    "collection=maps",
	"GET /v1/objects": "collection=maps", "GET /v1/browse": "by=collection&collection=maps",
	"GET /v1/uploads": "collection=maps", "GET /v1/search": "query=marker", "GET /v1/statistics": "collection=maps",
	"GET /v1/objects/{naan}/{name}/versions/{n}/content": "path=producer/marker-maps.txt",
	"GET /v1/objects/{naan}/{name}/stored":               "path=inventory.json"}

// pathOf is the path of an operation, with the names of things.
func (is things) pathOf(operation string) string {
	id := map[bool]string{strings.Contains(operation, "/batches/"): is.batch,
		strings.Contains(operation, "/jobs/"): is.job, strings.Contains(operation, "/uploads/"): is.upload,
		strings.Contains(operation, "/explain/"): is.job}[true]
	if id == "" {
		id = "none"
	}
	naan, name, _ := strings.Cut(strings.TrimPrefix(is.ark, "ark:/"), "/")
	_, path, _ := strings.Cut(operation, " ")
	path = strings.NewReplacer("{id}", id, "{naan}", naan, "{name}", name, "{n}", "1", "{project}",
		"jingles",
		"{archive}", "songs", "{key}", "none", "{lease}", "none", "{run}", "none", "{revision}",
		"1", "{task}",
		"none").Replace(path)
	if q := queries[operation]; q != "" {
		path += "?" + q
	}
	return path
}

// outcome is a cell of the table: passes, if the call reached its handler.
func outcome(status int, text string) string {
	switch {
	case text == elsewhere:
		return "404"
	case status == http.StatusForbidden && (strings.Contains(text, "urn:archivist:problem:forbidden") ||
		strings.Contains(text, "exc:tException.USER_NOT_AUTHORIZED")):
		return "403"
	case status == http.StatusUnauthorized:
		return "401"
	}
	return "passes"
}

// TestRoles: each operation of the OpenAPI document is called in each role, and the answers are those of the table in
// testdata/roles.txt. A new route needs a row: go test ./pkg/app/inprocess -run TestRoles -update. The depositor of
// another collection gets nothing of maps.
func TestRoles(t *testing.T) {
	w, is := guarded(t)
	_, text := w.asked("viewer", "GET", "/openapi.json", "")
	var doc struct {
		Paths map[string]map[string]json.RawMessage
	}
	w.must(json.Unmarshal([]byte(text), &doc))
	var got strings.Builder
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		for _, method := range []string{"get", "post", "put"} {
			if _, has := doc.Paths[path][method]; !has {
				continue
			}
			name := strings.ToUpper(method) + " " + path
			fmt.Fprintf(&got, "%s:", name)
			for _, c := range slices.Concat(callers, []struct{ name, grant string }{{"nobody",
				""}}) {
				status, text := w.asked(c.name, strings.ToUpper(method), is.pathOf(name), "{}")
				cell := outcome(status, text)
				fmt.Fprintf(&got, " %s=%s", c.name, cell)
				if c.name == "other" {
					w.tells(is, strings.ToUpper(method), is.pathOf(name))
				}
			}
			got.WriteString("\n")
		}
	}
	const file = "testdata/roles.txt"
	if *update {
		w.must(os.WriteFile(file, []byte(got.String()), 0o644))
	}
	want, err := os.ReadFile(file)
	w.must(err)
	if got.String() != string(want) {
		had := strings.Split(string(want), "\n")
		for line := range strings.SplitSeq(got.String(), "\n") {
			if !slices.Contains(had, line) {
				t.Errorf("it is new, or not as the table says: %s", line)
			}
		}
		t.Error("the table of roles is another one; if that is meant: -update")
	}
}

// tells fails if a call of another depositor is answered with something of things, in any form and in any header; a
// refusal must say its cause.
func (w *world) tells(is things, method, path string) {
	w.Helper()
	for _, accept := range []string{"application/json", "text/csv", "application/xml", "*/*"} {
		status, text := w.asked("other", method, path, "{}", "Accept", accept)
		for _, secret := range []string{"maps", is.batch, is.job, is.ark, is.upload} {
			if strings.Contains(text, secret) {
				w.Errorf("%s %s as %s: the other depositor gets %d %s", method, path, accept, status, text)
			}
		}
		if strings.Contains(text, "exc:tException") { // an answer for clients of Merritt
			if !strings.Contains(text, "exc:error") {
				w.Errorf("%s %s as %s: the refusal is %d %s", method, path, accept, status, text)
			}
			continue
		}
		var p v1.Problem
		if status >= 400 && (json.Unmarshal([]byte(strings.TrimSuffix(text, "Bearer")), &p) != nil || p.Detail == "" ||
			p.Status != status) {
			w.Errorf("%s %s as %s: the refusal is %d %s", method, path, accept, status, text)
		}
	}
}

// TestOtherDepositor: who guesses ids, cursors and paths of another collection gets nothing of it.
func TestOtherDepositor(t *testing.T) {
	w, is := guarded(t)
	var page v1.List[v1.BrowseEntry]
	_, text := w.asked("viewer", "GET", "/v1/browse?by=collection&limit=1", "")
	w.must(json.Unmarshal([]byte(text), &page))
	var found v1.Found
	_, text = w.asked("viewer", "GET", "/v1/search?query=marker&limit=1&sort=title", "")
	w.must(json.Unmarshal([]byte(text), &found))
	if page.Cursor == "" || found.Cursor == "" || found.Total != 2 {
		t.Fatalf("%+v %+v", page, found)
	}

	own := "/v1/objects/" + strings.TrimPrefix(is.theirARK, "ark:/")
	for _, path := range []string{
		"/v1/batches", "/v1/jobs", "/v1/objects", "/v1/statistics", // the only collection is the default
		"/v1/browse?by=collection&collection=letters&cursor=" + url.QueryEscape(page.Cursor),
		"/v1/browse?by=title", "/v1/search?query=marker", "/v1/search?query=collection:maps",
		"/v1/search?query=marker&sort=title&limit=1&cursor=" + url.QueryEscape(found.Cursor),
		"/v1/batches?collection=letters&collection=maps",
		"/v1/batches?collection=maps&collection=letters",
		"/v1/batches?collection=letter", "/v1/batches?Collection=maps", "/v1/jobs?state=Completed",
		"/v1/objects?collection=letters&localId=marker-maps",
		"/v1/objects?collection=letters&ark=" + is.ark,
		"/v1/objects?ark=" + is.ark, "/v1/objects?ark=" + strings.ToUpper(is.ark),
		"/v1/statistics?collection=maps",
		"/v1/explain/" + is.job, "/v1/explain/" + is.ark, "/v1/explain/Job:" + is.job,
		"/v1/explain/batch:" + is.batch, "/v1/explain/" + is.upload, "/v1/uploads/" + is.upload,
		"/v1/uploads?collection=maps", "/v1/uploads/" + is.upload + "/files",
		"/v1/objects?title=marker&collection=maps",
		"/v1/objects?date=2026&collection=maps", "/v1/jobs?localId=marker-maps",
		"/v1/jobs?collection=letters&localId=marker-maps",
		"/v1/explain/Collection:maps", "/v1/explain/marker-maps?collection=maps",
		"/v1/explain/Object:" + is.ark,
		"/v1/explain/marker-maps?collection=letters", "/v1/explain/" + is.theirs +
			"?component=fixity-check",
		"/v1/jobs/" + is.job, "/v1/jobs/" + is.batch, "/v1/batches/" + is.batch, "/v1/jobs/" +
			strings.Repeat("x", 3000),
		own + "/stored?path=../" + url.QueryEscape(strings.ReplaceAll(is.ark, "/", "%2f")) +
			"/inventory.json",
		own + "/versions/1/content?path=../../marker-maps.txt", own +
			"/versions/1/content?path=producer/marker-maps.txt",
		"/v1/events?collection=maps", "/v1/events?subject=Job:" + is.job, "/v1/item?id=object:" +
			is.ark, "/v1/queue",
		"/v1/jobs/" + is.job + "/receipt?format=csv", "/v1/batches/" + is.batch + "/report?format=csv",
		"/v1/batches/" + is.batch + "/report?number=1", "/v1/batches/" + is.batch + "/jobs?format=csv",
		"/v1/jobs/" + is.job + "/events", "/v1/batches/" + is.batch + "/events",
		"/v1/uploads/" + is.upload + "/events", "/v1/jobs?format=csv", "/v1/status",
		"/v1/collections", "/v1/holds", "/v1/partitions"} {
		status, text := w.asked("other", "GET", path, "")
		given, _ := url.QueryUnescape(path) // what the request itself says is no news
		for _, secret := range []string{"marker-maps", "marker maps", is.job, is.ark, is.batch, is.upload} {
			if strings.Contains(text, secret) && !strings.Contains(given, secret) ||
				status == http.StatusOK &&
					strings.Contains(text, secret) || status >= 500 || status == http.StatusFound {
				t.Errorf("%s: %d %s", path, status, text)
				break
			}
		}
	}

	none := strings.Replace(is.job, is.job[:4], "0000", 1)
	for _, pair := range [][2]string{{"/v1/jobs/" + is.job, "/v1/jobs/" + none},
		{"/v1/explain/" + is.job, "/v1/explain/" + none},
		{"/v1/objects/" + strings.TrimPrefix(is.ark, "ark:/"), "/v1/objects/99999/fk4none"}} {
		status, text := w.asked("other", "GET", pair[0], "")
		noStatus, noText := w.asked("other", "GET", pair[1], "")
		if status != noStatus || text != noText || text != elsewhere {
			t.Errorf("%s: %d %s; %s: %d %s", pair[0], status, text, pair[1], noStatus, noText)
		}
	}
}

// TestOwnDepositor: a depositor sees all of the own collection, and only submits there.
func TestOwnDepositor(t *testing.T) {
	w, is := guarded(t)
	own := "/v1/objects/" + strings.TrimPrefix(is.theirARK, "ark:/")
	for _, path := range []string{"/v1/batches", "/v1/batches?state=Completed", "/v1/jobs",
		"/v1/objects",
		"/v1/browse?by=collection", "/v1/search?query=marker", "/v1/explain/" + is.theirs,
		"/v1/jobs/" + is.theirs, own,
		own + "/events", own + "/versions/1/files", "/v1/objects?ark=" + is.theirARK,
		"/v1/explain/marker-letters?collection=letters"} {
		status, text := w.asked("other", "GET", path, "")
		if status != http.StatusOK || !strings.Contains(text, is.theirARK) &&
			!strings.Contains(text, "letters") {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	if status, text := w.asked("other", "POST", "/v1/uploads",
		`{"collection": "maps", "files": 1, "bytes": 1}`); status != http.StatusForbidden {
		t.Errorf("an upload to a collection of another: %d %s", status, text)
	}
	if status, text := w.asked("depositor", "GET", "/v1/explain/"+is.upload, ""); status != http.StatusOK {
		t.Errorf("the own upload: %d %s", status, text)
	}
	status, text := w.asked("other", "GET",
		own+"/versions/1/content?path=producer/marker-letters.txt", "")
	if status != http.StatusFound {
		t.Errorf("%d %s", status, text)
	}

	body := `{"collection":%q,"payload":{"url":"` + sourceURL +
		`/a.txt"},"identifiers":{"primary":%q}}`
	for _, c := range []struct {
		collection, ark string
		status          int
		says            string
	}{{"maps", "", http.StatusForbidden, "the caller may submit to letters only"},
		{"nowhere", "", http.StatusForbidden, "the caller may submit to letters only"},
		{"letters", is.ark, http.StatusUnprocessableEntity,
			"is not an object that this submission may change"},
		{"letters", is.theirARK, http.StatusAccepted, "Pending"}} {
		status, text := w.asked("other", "POST", "/v1/batches", fmt.Sprintf(body, c.collection,
			c.ark))
		if status != c.status || !strings.Contains(text, c.says) {
			t.Errorf("%s %s: %d %s", c.collection, c.ark, status, text)
		}
	}
}
