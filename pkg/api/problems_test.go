package api_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"archivist/pkg/api"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/fault"
)

// TestProblems: every error response is a problem with a type of the table.
func TestProblems(t *testing.T) {
	c, _ := serve(t, through)
	submit := `{"collection":"maps","payload":{"url":"https://example.org/a"}}`
	for name, k := range map[string]struct {
		method, path, body string
		status             int
		kind               string
		headers            []string
	}{
		"route":          {"GET", "/nothing", "", 404, "unknown-route", nil},
		"version":        {"GET", "/v2/batches", "", 404, "unknown-route", nil},
		"root":           {"GET", "/", "", 404, "unknown-route", nil},
		"slash":          {"GET", "/v1/batches/", "", 404, "unknown-route", nil},
		"slashes":        {"GET", "//v1/batches", "", 404, "unknown-route", nil},
		"dots":           {"GET", "/v1/../v1/queue", "", 404, "unknown-route", nil},
		"method":         {"DELETE", "/v1/batches", "", 405, "method-not-allowed", nil},
		"other method":   {"PATCH", "/v1/queue", "{}", 405, "method-not-allowed", nil},
		"strange method": {"BREW", "/v1/queue", "", 405, "method-not-allowed", nil},
		"options":        {"OPTIONS", "/v1/queue", "", 405, "method-not-allowed", nil},
		"thing":          {"GET", "/v1/jobs/none", "", 404, "not-found", nil},
		"media type": {"POST", "/v1/batches", submit, 415, "unsupported-media-type",
			[]string{"Content-Type", "text/plain"}},
		"form": {"POST", "/v1/batches", "a=b", 415, "unsupported-media-type",
			[]string{"Content-Type", "application/x-www-form-urlencoded"}},
		"no body":   {"POST", "/v1/batches", "", 400, "malformed-request", nil},
		"no JSON":   {"POST", "/v1/batches", "{", 400, "malformed-request", nil},
		"too large": {"POST", "/v1/batches", `{"note":"` + strings.Repeat("x", 2<<20) + `"}`, 413, "too-large", nil},
		"field":     {"POST", "/v1/batches", `{}`, 422, "invalid-request", nil},
		"parameter": {"GET", "/v1/jobs?state=lost", "", 422, "invalid-request", nil},
		"state":     {"POST", "/v1/jobs/none/actions", `{"action":"fail","reason":"x"}`, 404, "not-found", nil},
	} {
		resp, text := ask(t, k.method, c.URL+k.path, k.body, k.headers...)
		var p v1.Problem
		if err := json.Unmarshal([]byte(text), &p); err != nil ||
			resp.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %d %s %.200s", name, resp.StatusCode, resp.Header.Get("Content-Type"), text)
			continue
		}
		if resp.StatusCode != k.status || p.Status != k.status || p.Type != "urn:archivist:problem:"+k.kind ||
			p.Title == "" || p.Detail == "" {
			t.Errorf("%s: %d %+v", name, resp.StatusCode, p)
		}
		if allow := resp.Header.Get("Allow"); (k.status == 405) != (allow != "") {
			t.Errorf("%s: the header Allow is %q", name, allow)
		}
	}
}

// TestKinds: an error of each kind has a type of problem, with the status of the kind.
func TestKinds(t *testing.T) {
	for kind, edge := range fault.Edges {
		if got := api.StatusOf(kind); got != edge.Status {
			t.Errorf("%s is answered with %d, expected %d", kind, got, edge.Status)
		}
	}
}

// TestTablesOfTheDocument: the routes and the problems in docs/api.md are those of the code.
func TestTablesOfTheDocument(t *testing.T) {
	text, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	var routes []string
	operationsOf(document(t), func(name string, op object) {
		routes = append(routes, fmt.Sprintf("| `%s` | %s |", name, op["summary"]))
	})
	slices.SortFunc(routes, func(a, b string) int { // by path, then by method
		return cmp.Or(cmp.Compare(strings.Fields(a)[2], strings.Fields(b)[2]), cmp.Compare(a, b))
	})
	for rows, want := range map[string][]string{
		"(?m)^\\| `[A-Z]+ /.*$":                        routes,
		"(?m)^\\| `urn:archivist:problem:[a-z-]+` .*$": api.ProblemRows(),
	} {
		got := regexp.MustCompile(rows).FindAllString(string(text), -1)
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("the table in docs/api.md should be\n%s", strings.Join(want, "\n"))
		}
	}
}
