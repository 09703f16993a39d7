package api_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/notify"
)

type object = map[string]any

// document is the OpenAPI document as a client gets it.
func document(t *testing.T) object {
	t.Helper()
	c, _ := serve(t, through)
	var doc object
	if err := c.Call(t.Context(), http.MethodGet, "/openapi.json", nil, &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// operationsOf calls f for each operation of a document.
func operationsOf(doc object, f func(name string, op object)) {
	for path, item := range doc["paths"].(object) {
		for method, op := range item.(object) {
			f(strings.ToUpper(method)+" "+path, op.(object))
		}
	}
}

// TestEveryPropertyIsDescribed walks all schemas: each has a description, each property
// has one and a type, and no object is untyped.
func TestEveryPropertyIsDescribed(t *testing.T) {
	doc := document(t)
	properties := 0
	var walk func(at string, schema object)
	walk = func(at string, s object) {
		typed := false
		for _, key := range []string{"type", "$ref", "oneOf", "enum"} {
			typed = typed || s[key] != nil
		}
		if !typed {
			t.Errorf("%s: it has no type", at)
		}
		if s["type"] == "object" && s["properties"] == nil {
			if of, is := s["additionalProperties"].(object); !is {
				t.Errorf("%s: an object without properties", at)
			} else {
				walk(at+".*", of)
			}
		}
		fields, _ := s["properties"].(object)
		for name, p := range fields {
			properties++
			field := p.(object)
			if field["description"] == nil || field["description"] == "" {
				t.Errorf("%s.%s: it has no description", at, name)
			}
			walk(at+"."+name, field)
		}
		if items, is := s["items"].(object); is {
			walk(at+"[]", items)
		}
	}
	for name, s := range doc["components"].(object)["schemas"].(object) {
		if d, _ := s.(object)["description"].(string); d == "" {
			t.Errorf("%s: it has no description", name)
		}
		walk(name, s.(object))
	}
	if properties < 100 {
		t.Errorf("only %d properties were checked", properties)
	}
}

// TestEveryOperationIsDescribed: each operation has a summary, a description, a tag,
// examples of request and response, and its error responses. Each parameter is described.
func TestEveryOperationIsDescribed(t *testing.T) {
	doc := document(t)
	tags, ids, n := map[any]bool{}, map[any]string{}, 0
	for _, tag := range doc["tags"].([]any) {
		tags[tag.(object)["name"]] = true
	}
	operationsOf(doc, func(name string, op object) {
		n++
		if op["summary"] == nil || op["description"] == nil || op["operationId"] == nil ||
			ids[op["operationId"]] != "" {
			t.Errorf("%s: summary %v, description %v, id %v", name, op["summary"], op["description"], op["operationId"])
		}
		ids[op["operationId"]] = name
		if list, _ := op["tags"].([]any); len(list) != 1 || !tags[list[0]] {
			t.Errorf("%s: tags %v", name, op["tags"])
		}
		if _, example, has := exampleOf(op); has && example == nil {
			t.Errorf("%s: no example of a request", name)
		}
		checkAnswers(t, name, op["responses"].(object))
		list, _ := op["parameters"].([]any)
		for _, p := range list {
			if d, _ := p.(object)["description"].(string); d == "" {
				t.Errorf("%s: the parameter %v is not described", name, p.(object)["name"])
			}
		}
	})
	if n < 20 || doc["security"] == nil || doc["components"].(object)["securitySchemes"] == nil {
		t.Errorf("%d operations, security %v", n, doc["security"])
	}
}

// exampleOf is the example of a request, with its media type.
func exampleOf(op object) (media string, example any, has bool) {
	body, has := op["requestBody"].(object)
	if !has {
		return "", nil, false
	}
	media = "application/json"
	content := body["content"].(object)
	if content[media] == nil {
		media = "multipart/form-data"
	}
	return media, content[media].(object)["example"], true
}

func checkAnswers(t *testing.T, name string, answers object) {
	t.Helper()
	for _, status := range []string{"403", "422", "429", "500", "503", "504"} {
		if status == "422" && answers["200"] != nil && answers["200"].(object)["content"].(object)["text/xml"] != nil {
			status = "400" // Merritt's
		}
		if answers[status] == nil {
			t.Errorf("%s: no response %s", name, status)
		}
	}
	if strings.Contains(name, "{") && answers["404"] == nil && !strings.Contains(name, "/collections/") {
		t.Errorf("%s: no response 404", name)
	}
	good := false
	for status, a := range answers {
		content, _ := a.(object)["content"].(object)
		if status[0] != '2' && status != "302" {
			continue
		}
		good = true
		if strings.HasSuffix(name, "/{name}/events") && strings.Contains(name, "objects") &&
			content["application/xml"] == nil {
			t.Errorf("%s: it has no XML response", name)
		}
		if media, is := content["application/json"].(object); is && media["example"] == nil {
			t.Errorf("%s: the response %s has no example", name, status)
		}
	}
	if !good {
		t.Errorf("%s: no success response", name)
	}
}

// TestExamplesAreAccepted: the API accepts the example of each request, on the day that the examples are about.
func TestExamplesAreAccepted(t *testing.T) {
	c, q := serve(t, through)
	q.Now = func() time.Time { return time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC) }
	operationsOf(document(t), func(name string, op object) {
		media, example, has := exampleOf(op)
		if !has {
			return
		}
		data, err := json.Marshal(example)
		if err != nil {
			t.Fatal(err)
		}
		if media == "multipart/form-data" {
			media, data = formOf(t, example.(object))
		}
		method, path, _ := strings.Cut(name, " ")
		path = strings.NewReplacer("{id}", "none", "{name}", "maps", "{project}", "jingles", "{key}", "none", "{lease}",
			"none", "{archive}", "maps", "{task}", "none", "{revision}", "1", "{scheme}", "ark:", "{naan}/{name}",
			strings.TrimPrefix(arkOf, "ark:/")).Replace(path)
		switch {
		case strings.HasPrefix(path, "/v1/item/"):
			path += "?id=item:none"
		case strings.HasPrefix(path, "/v1/task/"):
			path += "?id=maps/12/none"
		}
		resp, text := ask(t, method, c.URL+path, string(data), "Content-Type", media)
		noItem := resp.StatusCode == 409 && strings.HasSuffix(path, "/runs") // nothing is ready
		if resp.StatusCode >= 400 && resp.StatusCode != 404 && !noItem {
			t.Errorf("%s: the example gets %d %s", name, resp.StatusCode, text)
		}
	})
}

// TestWireTypesAgree: the states and the report of the wire types agree with the stored ones.
func TestWireTypesAgree(t *testing.T) {
	for _, state := range []ingest.State{ingest.Pending, ingest.Held, ingest.Estimating, ingest.Provisioning,
		ingest.Downloading,
		ingest.Processing, ingest.Storing, ingest.Recording, ingest.Notify, ingest.Completed, ingest.Failed,
		ingest.Deleted} {
		if !slices.Contains(v1.JobStates, string(state)) {
			t.Errorf("the state %s is not documented", state)
		}
	}
	file := notify.File{Path: "a", Size: 1, Digests: map[string]string{"md5": "d"},
		Given: &notify.Digest{Algorithm: "md5", Value: "d"}, Warning: "w"}
	job := notify.Job{Job: "j", State: "Failed", Cancelled: true, Change: notify.StillFailed, Source: "s",
		ARK: "a", Version: 1, NoChange: true, InventoryDigest: "i", LocalIDs: []string{"l"},
		Title: "t", Files: 1, Bytes: 1, Warnings: []string{"w"}, FileDetails: []notify.File{file}, Receipt: "r",
		Problem: "p", Message: "m", Recoverable: true, Next: "n"}
	stored := notify.Report{Batch: "b", Collection: "c", Note: "n", At: "a", Number: 2, Since: "s", Message: "m",
		Problem: "p", Incomplete: "i", Warnings: []string{"w"},
		Counts: notify.Counts{Failed: 1, Cancelled: 1, Completed: 1, Deleted: 1, Open: 1},
		Failed: []notify.Job{job}, Cancelled: []notify.Job{job}, Completed: []notify.Job{job},
		Deleted: []notify.Job{job}, Open: []notify.Job{job},
		Changes: &notify.Changes{NowPreserved: 1, NewlyFailed: 2, StillFailed: 3, NextStep: 4, Deleted: 5}}
	want, err := json.Marshal(stored)
	if err != nil {
		t.Fatal(err)
	}
	var wire v1.Report
	if err := json.Unmarshal(want, &wire); err != nil {
		t.Fatal(err)
	}
	if got, err := json.Marshal(wire); err != nil || string(got) != string(want) {
		t.Errorf("a report comes back as %s, not %s; %v", got, want, err)
	}
}
