package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"archivist/pkg/api"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/fault"
)

// keys are what the keys of a test allow.
var keys = map[string]api.Access{"theirs": {Role: api.Administrator},
	"one": {Role: api.Researcher, Project: "jingles"}, "other": {Role: api.Researcher, Project: "songs"},
	"hook": {Role: api.Notifier, Archive: "maps"}, "named": {Role: api.Administrator, Name: "bench-3"},
	"hooks": {Role: api.Notifier, Archive: "songs"}}

// keyed serves the API behind a gateway that takes a key's id for the key.
func keyed(t *testing.T) (c *v1.Client, q *queue.Queue) {
	a, waits := service(through)
	a.Keys = keys
	h := a.Handler()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(api.WithKey(r.Context(), r.Header.Get("x-api-key"))))
	}))
	t.Cleanup(srv.Close)
	inboxes[srv.URL] = waits
	return &v1.Client{URL: srv.URL, Key: "theirs", HTTP: srv.Client()}, a.Queue
}

// TestEventsNameTheKey: who acts is named by the key, which was verified, with the name that the request gives.
func TestEventsNameTheKey(t *testing.T) {
	c, _ := keyed(t)
	c.Key = "named"
	for user, want := range map[string]string{"": "the key bench-3", "ann": `the key bench-3 (unverified: "ann")`} {
		c.User = user
		name := "one" + user
		_, err := c.PutCollection(t.Context(), name, v1.Profile{})
		if err != nil {
			t.Fatal(err)
		}
		var page v1.List[v1.Event]
		err = c.Call(t.Context(), "GET", "/v1/collections/"+name+"/events", nil, &page)
		if err != nil || len(page.Items) == 0 || page.Items[0].Actor != want {
			t.Errorf("%+v, %v; want %s", page, err, want)
		}
	}
}

// pathOf fills the parameters of a path.
var pathOf = strings.NewReplacer("{id}", "none", "{name}", "maps", "{project}", "jingles", "{key}", "none", "{lease}",
	"none", "{naan}", "99999", "{n}", "1", "{run}", "none", "{archive}", "maps",
	"{revision}", "1", "{task}", "index")

// ofResearchers are the operations that a researcher needs (docs/research.md).
var ofResearchers = []string{"POST /v1/research/{project}/hello", "POST /v1/research/{project}/bye",
	"POST /v1/research/{project}/next", "POST /v1/research/{project}/accept", "POST /v1/research/{project}/reports",
	"GET /v1/research/{project}/leases/{lease}"}

// TestRoles calls each operation with each key. That of a researcher is for the operations of its
// project; an unknown one, and none, are for nothing; that of an administrator is for everything. The
// document says the same.
func TestRoles(t *testing.T) {
	c, _ := keyed(t)
	n := 0
	operationsOf(document(t), func(name string, op object) {
		n++
		method, path, _ := strings.Cut(name, " ")
		opened := slices.Contains(ofResearchers, name)
		notifies := name == "POST /v1/archives/{archive}/revisions"
		for key, allowed := range map[string]bool{"theirs": true, "one": opened, "other": false, "none": false,
			"": false, "hook": notifies, "hooks": false} {
			resp, text := ask(t, method, c.URL+pathOf.Replace(path), "{}", "x-api-key", key)
			var p v1.Problem
			_ = json.Unmarshal([]byte(text), &p) // other answers are none
			refused := p.Type == "urn:archivist:problem:forbidden" && resp.StatusCode == http.StatusForbidden
			if refused == allowed || refused && p.Detail == "" {
				t.Errorf("%s with the key %q: %d %s", name, key, resp.StatusCode, text)
			}
		}
		if says := fmt.Sprint(op["security"]); strings.Contains(says, "researcher") != opened ||
			!strings.Contains(says, "administrator") {
			t.Errorf("%s: the document says %s", name, says)
		}
		if !strings.Contains(op["description"].(string), "Role: ") {
			t.Errorf("%s: the description names no role", name)
		}
	})
	if n < 100 {
		t.Errorf("only %d operations", n)
	}
	for _, path := range []string{"/docs", "/openapi.json", "/openapi.yaml"} {
		if resp, _ := ask(t, "GET", c.URL+path, ""); resp.StatusCode != http.StatusOK {
			t.Errorf("%s without a key: %d", path, resp.StatusCode)
		}
	}
}

// TestRefusalsOfRoles: a refusal says what is needed and what the key has, and nothing of the request was read.
func TestRefusalsOfRoles(t *testing.T) {
	c, _ := keyed(t)
	for key, says := range map[string]string{
		"one":   `"Submit a batch" needs the role administrator; the API key has the role researcher`,
		"other": `"Submit a batch" needs the role administrator; the API key has the role researcher`,
		"none": `"Submit a batch" needs the role administrator; the API key has no role. The setting apiKeys of the ` +
			`deployment makes keys with roles`,
	} {
		c.Key = key
		_, err := c.Submit(t.Context(), good, "")
		if !fault.Is(err, fault.Denied) || err.Error() != says {
			t.Errorf("%s: %v", key, err)
		}
	}
	c.Key = "other"
	err := c.Bye(t.Context(), "jingles", "bench-3")
	if !fault.Is(err, fault.Denied) || err.Error() != `the API key is for the research project "songs" only` {
		t.Error(err)
	}
	c.Key = "theirs"
	page, err := c.Batches(t.Context(), v1.Filter{Collection: "maps"})
	if err != nil || len(page) != 0 {
		t.Errorf("%d batches, %v", len(page), err)
	}
}

// TestAccess: an access is read as it is written; what is not one is refused.
func TestAccess(t *testing.T) {
	for _, a := range keys {
		a.Name = "" // it is not a part of what the key allows
		if got, err := api.ParseAccess(a.String()); err != nil || got != a {
			t.Errorf("%s: %+v, %v", a, got, err)
		}
	}
	for _, text := range []string{"", "researcher", "researcher:", "researcher:A", "administrator:jingles", "admin",
		"viewer", "administrator:", ":jingles", "researcher:a,b", "notifier", "notifier:", "notifier:A"} {
		if got, err := api.ParseAccess(text); !fault.Is(err, fault.Invalid) || got != (api.Access{}) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}
