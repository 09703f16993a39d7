package api_test

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"archivist/pkg/api"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/bucket/buckettest"
	"archivist/pkg/kernel/table"
	"archivist/pkg/objects/ocfl"
)

// allEvents are all events by their keys.
func allEvents(t *testing.T, a *api.API) map[table.Key]event.Row {
	t.Helper()
	all := map[table.Key]event.Row{}
	for cursor := ""; ; {
		page, next, err := a.Queue.Table.Scan(t.Context(), "", 1000, cursor)
		if err != nil {
			t.Fatal(err)
		}
		for _, raw := range page {
			var row event.Row
			if !strings.HasPrefix(raw.SK, event.Prefix) {
				continue
			}
			if err := raw.Decode(&row); err != nil {
				t.Fatal(err)
			}
			all[raw.Key] = row
		}
		cursor = next
		if cursor == "" {
			return all
		}
	}
}

// bodies are what operations are called with whose examples do nothing here.
var bodies = map[string]string{
	"POST /v1/batches/{id}/actions":              `{"action":"hold","reason":"r"}`,
	"POST /v1/queue/actions":                     `{"action":"pause","reason":"r"}`,
	"POST /v1/storage/actions":                   `{"action":"pause","reason":"r"}`,
	"POST /v1/consumers/{name}/actions":          `{"action":"pause","reason":"r"}`,
	"POST /v1/item/actions":                      `{"action":"event","event":"Received","reason":"r"}`,
	"POST /v1/objects/{naan}/{name}/corrections": `{"what":"A title","reason":"r"}`,
}

// noEvents are the operations that write no event here, and why.
var noEvents = map[string]string{
	"POST /v1/uploads/{id}/files":                     "what an upload lists is in its row",
	"POST /v1/uploads/{id}/stored":                    "what an upload has is in its row",
	"POST /v1/components/{name}/runs":                 "a run is under way, and is returned",
	"POST /v1/research/{project}/hello":               "who researches is in a row",
	"POST /v1/research/{project}/bye":                 "who researches is in a row",
	"POST /v1/filters":                                "a filter is tried, and nothing is changed",
	"POST /v1/batches/check":                          "a submission is checked, and nothing is stored",
	"POST /v1/events/verify":                          "events are read",
	"POST /v1/objects/{naan}/{name}/versions/{n}/zip": "what is derived has no event; that it is given out has one",
	"POST /v1/reindex":                                "rows are made of the storage, and there is none",
	"PUT /v1/reindex/runs/{id}":                       "how far a run is, is in its row",
	// What they act on is not here, so it is not shown by this test who is the actor.
	"POST /v1/objects/{naan}/{name}/repairs":                   "there is no second bucket",
	"POST /v1/objects/{naan}/{name}/repairs/{id}/confirm":      "there is no repair",
	"POST /v1/task/actions":                                    "there is no task",
	"POST /v1/archives/{archive}/tasks/{task}/runs":            "there is no task",
	"POST /v1/archives/{archive}/revisions/{revision}/actions": "there is no task",
	"POST /v1/research/{project}/feeds/{key}/actions":          "there is no feed",
	"POST /v1/research/{project}/differences/actions":          "there is no difference",
	"POST /v1/research/{project}/reviews/actions":              "there is no result",
	"POST /v1/research/{project}/reports":                      "there is no such episode",
	"POST /v1/research/{project}/accept":                       "there is no such lease",
	"PUT /v1/research/{project}":                               "its settings cannot change",
	"POST /v1/research/{project}/clips/{key}/actions":          "it is not set aside",
	"POST /v1/research/{project}/episodes/{key}/actions":       "it is not set aside",
	"POST /v1/replays/{id}/actions":                            "there is no replay",
	"POST /v1/jobs/{id}/actions":                               "there is no job; see TestActorsOfTokens",
}

// ownID is the id of what an operation acts on, by its path: it is made, if there is none.
func ownID(t *testing.T, c *v1.Client, path string, ids map[string]string) string {
	t.Helper()
	switch {
	case strings.Contains(path, "/uploads/"):
		up, err := c.OpenUpload(t.Context(), v1.UploadRequest{Collection: "maps", Files: 1, Bytes: 1}, "")
		if err != nil {
			t.Fatal(err)
		}
		return up.ID
	case strings.Contains(path, "/tokens/"):
		in := v1.TokenRequest{Name: "hook", Grants: []string{"viewer"}, Days: 1, Reason: "r"}
		made, err := c.CreateToken(t.Context(), in, "")
		if err != nil {
			t.Fatal(err)
		}
		return made.ID
	case strings.Contains(path, "/operations/"):
		return ids["OPERATION"]
	}
	return ids["BATCH"]
}

// TestActorsOfOperations: whatever operation is called with a token, each event that it writes has the subject of the
// token as its actor.
func TestActorsOfOperations(t *testing.T) {
	left := maps.Clone(noEvents)
	operationsOf(document(t), func(name string, op object) {
		method, path, _ := strings.Cut(name, " ")
		if method == "GET" {
			return
		}
		c, a, ids := everything(t)
		_, buckets := buckettest.Open(t, "storage", "work")
		a.Identity.Root, a.Uploads.Work = ocfl.Root{Bucket: buckets[0]}, buckets[1]
		own := ownID(t, c, path, ids)
		a.Authenticator = tokens{"t": {Subject: "4711", Grants: granted("administrator").Grants}}
		of := strings.NewReplacer("{scheme}", "ark:", "{id}", own, "{naan}", "99999", "{project}", "jingles",
			"{lease}", ids["LEASE"], "{key}", ids["EPISODE"],
			"{run}", ids["RUN"], "{archive}", "maps", "{revision}", "2", "{n}", "1",
			"{name}", map[bool]string{strings.Contains(path, "{naan}"): "fk4x",
				strings.Contains(path, "/components/"): "count-words", strings.Contains(path, "/consumers/"): "mine",
				strings.Contains(path, "/collections/"): "maps", strings.Contains(path, "/archives/"): "maps"}[true])
		body, media := []byte("{}"), "application/json"
		if in, ok := op["requestBody"].(object); ok {
			if of, ok := in["content"].(object)[media].(object); ok {
				body, _ = json.Marshal(of["example"])
			} else {
				media, body = form(t, "a.txt", "abc", "profile", "maps", "localIdentifier", "a")
			}
		}
		if text := bodies[name]; text != "" {
			body = []byte(text)
		}
		if strings.HasPrefix(path, "/v1/item/") {
			path += "?id=" + url.QueryEscape(roll)
		}
		if strings.Contains(path, "/clips/") {
			path = strings.Replace(path, "{key}", ids["CLIP"], 1)
		}
		before := allEvents(t, a)
		to := c.URL + of.Replace(path)
		resp, text := ask(t, method, to, string(body), "Content-Type", media, "Authorization", "Bearer t")
		n := 0
		for k, row := range allEvents(t, a) {
			if _, was := before[k]; was {
				continue
			}
			n++
			// Several researchers may work with one token: the name that one gives itself is beside the subject.
			ofLease := row.Type == "lease.accepted" && strings.HasPrefix(row.Actor, `4711 (unverified: "`)
			if row.Actor != "4711" && !ofLease {
				t.Errorf("%s: the event %s of %s has the actor %q", name, row.Type, k, row.Actor)
			}
		}
		why, none := noEvents[name]
		if none != (n == 0) || !none && resp.StatusCode >= http.StatusBadRequest {
			t.Errorf("%s writes %d events, expected %s: %d %.300s", name, n, cmp.Or(why, "some"),
				resp.StatusCode, text)
		}
		delete(left, name)
	})
	for name := range left {
		t.Errorf("%s has a row, and is no operation", name)
	}
}
