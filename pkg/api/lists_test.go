package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/queue/queuetest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// page is one page of a list.
func page[T any](t *testing.T, c *v1.Client, path string) (out v1.List[T]) {
	t.Helper()
	if err := c.Call(t.Context(), http.MethodGet, path, nil, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestFilterComesBeforePaging: the only matches of a long list are on its first page, in
// any case of the state's letters.
func TestFilterComesBeforePaging(t *testing.T) {
	c, q := serve(t, through)
	var ids []string
	for i := range 160 { // a page has 50
		out, err := c.Submit(t.Context(), good, fmt.Sprint(i))
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, out.ID)
	}
	cancel := func(id, reason string) {
		_, err := queuetest.Act(t.Context(), q, ingest.ActCancel, id, func(a *ingest.Action) { a.Reason = reason })
		if err != nil {
			t.Fatal(err)
		}
	}
	cancel(ids[0], "the oldest") // it is listed last
	cancel(ids[1], "a try")
	for _, state := range []string{"Failed", "failed", "FAILED"} {
		p := page[v1.Batch](t, c, "/v1/batches?collection=maps&state="+state)
		if len(p.Items) != 2 || p.Cursor != "" {
			t.Errorf("%s: %d items, cursor %q", state, len(p.Items), p.Cursor)
		}
	}
	if p := page[v1.Batch](t, c, "/v1/batches?collection=maps&state=pending"); len(p.Items) < 50 || p.Cursor == "" {
		t.Errorf("%d items, cursor %q", len(p.Items), p.Cursor)
	}

	// A shorter page goes on where it ends; with others, each batch is there once.
	var listed []string
	for cursor := ""; ; {
		p := page[v1.Batch](t, c, "/v1/batches?limit=30&cursor="+url.QueryEscape(cursor))
		for _, b := range p.Items {
			listed = append(listed, b.ID)
		}
		cursor = p.Cursor
		if cursor == "" {
			break
		}
		if len(p.Items) != 30 {
			t.Errorf("a page of 30 has %d", len(p.Items))
		}
	}
	slices.Sort(listed)
	if !slices.Equal(listed, ids) {
		t.Errorf("%d batches are listed of %d", len(listed), len(ids))
	}

	// A long search returns what it has found, and continues with the cursor.
	for _, id := range ids[2:] {
		cancel(id, "a try")
	}
	now := time.Now()
	q.Now = func() time.Time { now = now.Add(11 * time.Second); return now }
	all, requests := 0, 0
	for cursor := ""; requests == 0 || cursor != ""; requests++ {
		p := page[v1.Batch](t, c, "/v1/batches?collection=maps&message=THE+OLDEST&cursor="+cursor)
		all, cursor = all+len(p.Items), p.Cursor
	}
	if all != 1 || requests < 2 {
		t.Errorf("%d items in %d requests", all, requests)
	}
}

// TestUnknownThings: a list below an unknown resource is a 404. An unknown state or cursor
// is a 422 that states what is expected.
func TestUnknownThings(t *testing.T) {
	c, _ := serve(t, through)
	out, err := c.Submit(t.Context(), good, "")
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]struct {
		kind fault.Kind
		says string
	}{
		"/v1/objects/99999/none/versions": {fault.NotFound, "there is no object ark:/99999/none"},
		"/v1/objects/99999/none/events":   {fault.NotFound, "there is no object ark:/99999/none"},
		"/v1/jobs/none/events":            {fault.NotFound, `there is no job "none"`},
		"/v1/jobs?collection=maps&state=done": {fault.Invalid,
			`state: found "done"; expected one of Pending, Held`},
		"/v1/batches?collection=maps&state=Storing": {fault.Invalid,
			`state: found "Storing"; expected one of Pending`},
		"/v1/batches/" + out.ID + "/jobs?state=ok":          {fault.Invalid, "state: found"},
		"/v1/batches/" + out.ID + "/jobs?cursor=zz":         {fault.Invalid, `invalid cursor "zz"`},
		"/v1/batches/" + out.ID + "/jobs?cursor=-1":         {fault.Invalid, `invalid cursor "-1"`},
		"/v1/batches/" + out.ID + "/events?cursor=zz":       {fault.Invalid, "invalid cursor"},
		"/v1/batches?collection=maps&cursor=zz":             {fault.Invalid, "invalid cursor"},
		"/v1/jobs?collection=maps&cursor=zz":                {fault.Invalid, "invalid cursor"},
		"/v1/objects?collection=maps&cursor=zz":             {fault.Invalid, "invalid cursor"},
		"/v1/objects?collection=maps&localId=one&cursor=zz": {fault.Invalid, `invalid cursor "zz"`},
		"/v1/objects?ark=ark:/99999/fk4x&cursor=zz":         {fault.Invalid, `invalid cursor "zz"`},
		"/v1/collections/maps/events?cursor=zz":             {fault.Invalid, "invalid cursor"},
	} {
		err := c.Call(t.Context(), http.MethodGet, path, nil, nil)
		if !fault.Is(err, want.kind) || !strings.Contains(err.Error(), want.says) {
			t.Errorf("%s: %v", path, err)
		}
	}
	for _, query := range []string{"cursor=zz", "to=zz", "cursor=a%0A", "cursor=" + strings.Repeat("a", 2000),
		"ark=ark:/99999/fk4x&cursor=b", "ark=nonsense", "cursor=%ff", "cursor=a%ff"} {
		if err := c.Call(t.Context(), http.MethodPost, "/v1/reindex?"+query, nil, nil); !fault.Is(err, fault.Invalid) {
			t.Errorf("reindex of %.40s: %v", query, err)
		}
	}
}

// TestKeyIsComparedByMeaning: with the same key, an equivalent request returns the same
// batch, and a different request is refused.
func TestKeyIsComparedByMeaning(t *testing.T) {
	c, _ := serve(t, through)
	submit := func(body string) (int, string) {
		resp, text := ask(t, "POST", c.URL+"/v1/batches", body, "Idempotency-Key", "k")
		return resp.StatusCode, text
	}
	status, first := submit(`{"collection":"maps","payload":{"url":"https://example.org/a.txt","size":5},"note":"n"}`)
	if status != http.StatusAccepted {
		t.Fatal(status, first)
	}
	for name, body := range map[string]string{
		"order": `{"note":"n","payload":{"size":5,"url":"https://example.org/a.txt"},"collection":"maps"}`,
		"blanks": "{\n  \"collection\": \"maps\",\n  \"payload\": " +
			"{\"url\": \"https://example.org/a.txt\", \"size\": 5 },\t\"note\": \"n\"}\n",
		"escape": `{"collection":"m\u0061ps","payload":{"url":"https:\/\/example.org\/a.txt","size":5},"note":"n"}`,
		"empty":  `{"collection":"maps","payload":{"url":"https://example.org/a.txt","size":5},"note":"n","submitter":""}`,
	} {
		if status, again := submit(body); status != http.StatusAccepted || again != first {
			t.Errorf("%s: %d %s", name, status, again)
		}
	}
	status, text := submit(`{"collection":"maps","payload":{"url":"https://example.org/a.txt","size":0},"note":"n"}`)
	if status != http.StatusConflict || !strings.Contains(text, "Idempotency-Key") {
		t.Errorf("another request: %d %s", status, text)
	}

	// A repeated request has its batch, whatever the profile says now.
	resp, text := ask(t, "PUT", c.URL+"/v1/collections/maps", `{"sources": {"deny": ["example.org"]}}`)
	if resp.StatusCode != http.StatusOK {
		t.Fatal(resp.StatusCode, text)
	}
	const body = `{"collection":"maps","payload":{"url":"https://example.org/a.txt","size":5},"note":"n"}`
	if status, again := submit(body); status != http.StatusAccepted || again != first {
		t.Errorf("after a change of the profile: %d %s", status, again)
	}
	resp, text = ask(t, "POST", c.URL+"/v1/batches", body, "Idempotency-Key", "other")
	if resp.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(text, "payload.url") {
		t.Errorf("a new request: %d %s", resp.StatusCode, text)
	}
}

// TestBlankKeyIsRefused: each operation that knows a key refuses one that is there and blank, and says what to do.
func TestBlankKeyIsRefused(t *testing.T) {
	c, _ := serve(t, through)
	path := strings.NewReplacer("{naan}", "99999", "{", "", "}", "")
	refused := 0
	operationsOf(document(t), func(name string, op object) {
		parameters, _ := op["parameters"].([]any)
		if !slices.ContainsFunc(parameters, func(p any) bool { return p.(object)["name"] == "Idempotency-Key" }) {
			return
		}
		refused++
		media, example, _ := exampleOf(op)
		body, err := json.Marshal(example)
		if err != nil {
			t.Fatal(err)
		}
		want := http.StatusUnprocessableEntity
		if media == "multipart/form-data" {
			media, body = formOf(t, example.(object))
			want = http.StatusBadRequest // Merritt's
		}
		method, route, _ := strings.Cut(name, " ")
		resp, text := ask(t, method, c.URL+path.Replace(route), string(body), "Idempotency-Key", " ",
			"Content-Type", media)
		if resp.StatusCode != want || !strings.Contains(text, "leave the header out") {
			t.Errorf("%s: a blank key gets %d %s", name, resp.StatusCode, text)
		}
	})
	if refused < 15 {
		t.Errorf("only %d operations know a key", refused)
	}
}

// TestCollectionsAreListed: a collection is listed once a submission has named it, in pages of any number.
func TestCollectionsAreListed(t *testing.T) {
	c, q := serve(t, through)
	var want []string
	for n := range queue.CollectionsPage + 2 {
		name := fmt.Sprintf("c-%04d", (7*n)%(queue.CollectionsPage+2))
		want = append(want, fmt.Sprintf("c-%04d", n))
		if _, err := q.Submit(t.Context(), ingest.Batch{Collection: name}, "", nil, "me"); err != nil {
			t.Fatal(err)
		}
	}
	got, err := c.Collections(t.Context())
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%d collections, of %d: %v", len(got), len(want), err)
	}
}

// TestLocationIsRelative: it leads to the batch under whatever path a gateway serves the API.
func TestLocationIsRelative(t *testing.T) {
	c, _ := serve(t, through)
	gateway, err := url.Parse("https://example.execute-api.test/prod/v1/batches")
	if err != nil {
		t.Fatal(err)
	}
	resp, _ := ask(t, "POST", c.URL+"/v1/batches",
		`{"collection":"maps","payload":{"url":"https://example.org/a.txt"}}`)
	at, err := gateway.Parse(resp.Header.Get("Location"))
	if err != nil || !strings.HasPrefix(at.String(), "https://example.execute-api.test/prod/v1/batches/ID") {
		t.Errorf("%v, %v", at, err)
	}
	if resp, text := ask(t, "GET", c.URL+strings.TrimPrefix(at.Path, "/prod"), ""); resp.StatusCode != 200 {
		t.Errorf("%s: %s", at, text)
	}
}

// TestOtherFormOfLocalID: an id that only looks like a known one names another object, and
// its submitter is warned.
func TestOtherFormOfLocalID(t *testing.T) {
	c, q := serve(t, through)
	recordAs(t, q, 1, "J-1", "carte de l'île") // composed
	submit := func(id string) []string {
		in := good
		in.Identifiers = &v1.Identifiers{Local: []string{"plain", id}}
		out, err := c.Submit(t.Context(), in, "")
		if err != nil {
			t.Fatal(err)
		}
		return out.Warnings
	}
	if w := submit("carte de l'i\u0302le"); len(w) != 1 || !strings.Contains(w[0], "ark:/99999/fk4x") {
		t.Errorf("decomposed: %q", w)
	}
	for _, id := range []string{"carte de l'île", "autre île"} {
		if w := submit(id); len(w) > 0 {
			t.Errorf("%s: %q", id, w)
		}
	}
}

// TestQueryIsUnderstood: what an operation would ignore is refused, with what it understands.
func TestQueryIsUnderstood(t *testing.T) {
	c, _ := serve(t, through)
	for path, why := range map[string]string{
		"/v1/batches?collection=maps&status=failed":          `query parameter "status"; expected collection, state, submitter, message, after, before, order, cursor, limit`,
		"/v1/batches?collection=maps&collection=books":       "collection is given 2 times",
		"/v1/batches?collection=maps&state=%zz":              `malformed query: invalid URL escape "%zz"`,
		"/v1/batches/01M7ZBMEYHBB62YP6RY21T1GQ6?verbose=yes": `unknown query parameter "verbose"; this operation has none`,
	} {
		err := c.Call(t.Context(), http.MethodGet, path, nil, nil)
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v; expected %s", path, err, why)
		}
	}
	err := c.Call(t.Context(), http.MethodPost, "/v1/reindex?bogus=1", nil, nil)
	if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), `unknown query parameter "bogus"`) {
		t.Errorf("a reindex of everything: %v", err)
	}
}

// TestJobsOfAllCollections: jobs in a state are listed without their collection, page by page.
func TestJobsOfAllCollections(t *testing.T) {
	c, q := serve(t, through)
	for _, name := range []string{"maps", "books"} {
		in := good
		in.Collection = name
		if _, err := c.Submit(t.Context(), in, ""); err != nil {
			t.Fatal(err)
		}
	}
	const jobs = 120 // a page has fewer
	for n := range jobs {
		id := ingest.JobID("B", n+1)
		row := &queue.Job{Head: table.Head{PK: "JOB#" + id, SK: "JOB"}, Job: ingest.Job{ID: id, Batch: "B",
			Row: n + 1, Collection: []string{"maps", "books"}[n%2], State: ingest.Pending, Turn: id, Created: 1}}
		row.Place()
		tx := q.Table.Begin("X")
		tx.Insert(row)
		tx.Follow(id, nil, queue.Listed(&row.Job))
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[string]bool{}
	pages := 0
	for cursor := ""; pages == 0 || cursor != ""; pages++ {
		p := page[v1.Job](t, c, "/v1/jobs?state=pending&cursor="+url.QueryEscape(cursor))
		for _, j := range p.Items {
			seen[j.ID] = true
		}
		cursor = p.Cursor
	}
	if len(seen) != jobs || pages < 2 {
		t.Errorf("%d jobs on %d pages; expected %d", len(seen), pages, jobs)
	}
	for path, why := range map[string]string{
		"/v1/jobs?cursor=sesame":              "invalid cursor",
		"/v1/jobs?after=yesterday":            `after: found "yesterday"; expected a time in ISO 8601`,
		"/v1/jobs?before=1969-12-31":          "before: found",
		"/v1/jobs?ark=1":                      "ark: ",
		"/v1/jobs?state=failed&cursor=-1+x":   "invalid cursor",
		"/v1/jobs?state=failed&cursor=7+x":    "invalid cursor",
		"/v1/jobs?state=failed&cursor=sesame": "invalid cursor",
	} {
		err := c.Call(t.Context(), http.MethodGet, path, nil, nil)
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v; expected %s", path, err, why)
		}
	}
}

// TestBoundsOfTime: bounds between which there is no time are refused, for jobs and batches; a
// moment between them is enough.
func TestBoundsOfTime(t *testing.T) {
	c, _ := serve(t, through)
	for query, ok := range map[string]bool{
		"after=2026-11-22&before=2026-11-23":                     true,
		"after=2026-11-22T09:00:00Z&before=2026-11-22T09:00:01Z": true,
		"after=2026-11-22&before=2026-11-22":                     false,
		"after=2026-11-23&before=2026-11-22":                     false,
		"after=2026-11-22T02:00:00%2B01:00&before=2026-11-22":    false,
		"after=2026-11-22":                                       true, "before=2026-11-22": true,
	} {
		for _, list := range []string{"jobs", "batches"} {
			err := c.Call(t.Context(), http.MethodGet, "/v1/"+list+"?"+query, nil, nil)
			if (err == nil) != ok || !ok && (!fault.Is(err, fault.Invalid) ||
				!strings.Contains(err.Error(), "before: found") ||
				!strings.Contains(err.Error(), "nothing is between")) {
				t.Errorf("%s?%s: %v", list, query, err)
			}
		}
	}
}
