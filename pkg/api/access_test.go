package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/access"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/research"
	"archivist/pkg/revisions/revision"
)

// programs are whose the tokens of a test are, by their texts; "none" is a good token that gives nothing.
var programs = tokens{"theirs": granted("administrator"),
	"one":   granted("researcher:jingles"),
	"other": granted("researcher:songs"), "hook": granted("notifier:maps"),
	"hooks": granted("notifier:songs"), "none": {Subject: "token:3"},
	"operator": granted("operator"), "viewer": granted("viewer"),
	"named": {Subject: "token:1", Name: "bench-3", Grants: granted("administrator").Grants}}

// granted is an identity with grants.
func granted(grants ...string) (x access.Identity) {
	for _, text := range grants {
		g, err := access.Parse(text)
		if err != nil {
			panic(err)
		}
		x.Grants = append(x.Grants, g)
	}
	return x
}

// guarded serves the API for the tokens of programs, and the client has that of an administrator.
func guarded(t *testing.T) (c *v1.Client, q *queue.Queue) {
	a, waits := service(through)
	a.Authenticator, a.Open = programs, false
	srv := httptest.NewServer(a.Handler())
	t.Cleanup(srv.Close)
	inboxes[srv.URL] = waits
	return &v1.Client{URL: srv.URL, Bearer: as("theirs"), HTTP: srv.Client()}, a.Queue
}

// as is a token for a client.
func as(token string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return token, nil }
}

// TestEventsNameTheToken: who acts is named by the token, which was verified; a name that the client has is not sent.
func TestEventsNameTheToken(t *testing.T) {
	c, _ := guarded(t)
	c.Bearer = as("named")
	for _, user := range []string{"", "ann"} {
		c.User = user
		name := "one" + user
		_, err := c.PutCollection(t.Context(), name, v1.Profile{})
		if err != nil {
			t.Fatal(err)
		}
		var page v1.List[v1.Event]
		err = c.Call(t.Context(), "GET", "/v1/collections/"+name+"/events", nil, &page)
		if err != nil || len(page.Items) == 0 || page.Items[0].Actor != `token:1 ("bench-3")` {
			t.Errorf("%+v, %v", page, err)
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

// TestRoles: the document says of each operation which roles can call it, and a token without grants, or
// none, is for nothing.
func TestRoles(t *testing.T) {
	c, _ := guarded(t)
	n := 0
	operationsOf(document(t), func(name string, op object) {
		n++
		if name == "GET /v1/sign-in" {
			return // open: see TestSignInIsOpen
		}
		method, path, _ := strings.Cut(name, " ")
		opened := slices.Contains(ofResearchers, name)
		for token, want := range map[string]string{"none": "forbidden", "": "unauthenticated"} {
			if token == "none" && name == "GET /v1/whoami" {
				continue // who may do nothing can ask for that
			}
			resp, text := ask(t, method, c.URL+pathOf.Replace(path), "{}", "Authorization",
				strings.TrimSuffix("Bearer "+token, "Bearer "))
			var p v1.Problem
			_ = json.Unmarshal([]byte(text), &p) // other answers are none
			if out, is := ofMerritt(text); is {
				p = v1.Problem{Status: out.HTTP, Detail: out.Error, Type: "urn:archivist:problem:" +
					map[string]string{"USER_NOT_AUTHORIZED": "forbidden",
						"USER_NOT_AUTHENTICATED": "unauthenticated"}[out.StatusName]}
			}
			if p.Type != "urn:archivist:problem:"+want || resp.StatusCode != p.Status ||
				p.Detail == "" ||
				(resp.Header.Get("WWW-Authenticate") != "") != (token == "") {
				t.Errorf("%s with the token %q: %d %s", name, token, resp.StatusCode, text)
			}
		}
		says := fmt.Sprint(op["security"])
		if strings.Contains(says, "researcher") != opened || strings.Count(says,
			"[administrator]") != map[bool]int{false: 1}[name == "GET /v1/whoami"] ||
			strings.Contains(says, "viewer") && !strings.Contains(says, "operator") {
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
			t.Errorf("%s without a token: %d", path, resp.StatusCode)
		}
	}
}

// TestSignInIsOpen: who has no token yet learns where to get one, also with one that is not accepted; the document says
// that it needs none. Without an issuer it is said that there is none.
func TestSignInIsOpen(t *testing.T) {
	a, _ := service(through)
	a.Authenticator, a.Open = programs, false
	c := httptest.NewServer(a.Handler())
	t.Cleanup(c.Close)
	if resp, text := ask(t, "GET", c.URL+"/v1/sign-in", ""); resp.StatusCode != http.StatusNotFound ||
		!strings.Contains(text, "no issuer of tokens") {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
	a.SignIn = v1.SignIn{Issuer: "https://login.example.org", ClientID: "cli", Scopes: []string{"openid"}}
	for _, header := range []string{"", "Bearer nonsense"} {
		resp, text := ask(t, "GET", c.URL+"/v1/sign-in", "", "Authorization", header)
		if resp.StatusCode != http.StatusOK || !strings.Contains(text, `"clientId":"cli"`) {
			t.Errorf("%q: %d %s", header, resp.StatusCode, text)
		}
	}
	operationsOf(document(t), func(name string, op object) {
		if open := fmt.Sprint(op["security"]) == "[map[]]"; open != (name == "GET /v1/sign-in") {
			t.Errorf("%s: the document says %v", name, op["security"])
		}
	})
}

// TestRefusalsOfRoles: a refusal says what is needed and what the caller has, and nothing of the request was read.
func TestRefusalsOfRoles(t *testing.T) {
	c, _ := guarded(t)
	for token, says := range map[string]string{
		"one": `"Submit a batch" needs the role operator, administrator or depositor of the collection; the caller ` +
			`has researcher:jingles`,
		"none": `"Submit a batch" needs the role operator, administrator or depositor of the collection; the caller ` +
			`has none`,
	} {
		c.Bearer = as(token)
		_, err := c.Submit(t.Context(), good, "")
		if !fault.Is(err, fault.Denied) || err.Error() != says {
			t.Errorf("%s: %v", token, err)
		}
	}
	c.Bearer = as("other")
	err := c.Bye(t.Context(), "jingles", "bench-3")
	if !fault.Is(err, fault.Denied) ||
		err.Error() != `"Say that a researcher leaves": the caller is researcher of the project songs only` {
		t.Error(err)
	}
	c.Bearer = as("theirs")
	page, err := c.Batches(t.Context(), v1.Filter{Collection: "maps"})
	if err != nil || len(page) != 0 {
		t.Errorf("%d batches, %v", len(page), err)
	}
}

// tokens are identities by their tokens; "away" is a token while the issuer does not answer.
type tokens map[string]access.Identity

func (v tokens) Verify(_ context.Context, token string) (access.Identity, error) {
	x, good := v[token]
	switch {
	case token == "away":
		return x, fault.New(fault.Unavailable,
			"the keys of the issuer are not known: https://login.example.org")
	case !good:
		return x, access.Refused("the token has expired; get a new one")
	}
	return x, nil
}

// ada is a person with a token.
var ada = access.Identity{Subject: "4711", Name: `Ada "L"`, Grants: granted("operator",
	"depositor:maps").Grants,
	Expires: time.Date(2026, 11, 22, 10, 30, 0, 0, time.UTC), Claims: []string{"cognito:groups"}}

// tokened serves the API for tokens of people.
func tokened(t *testing.T) (*v1.Client, *queue.Queue) {
	a, _ := service(through)
	a.Open, a.Authenticator = false, tokens{"ada": ada, "none": {Subject: "4712", Claims: []string{"groups",
		"scope"}},
		"admin": {Subject: "1", Grants: granted("administrator").Grants},
		"maps":  {Subject: "2", Grants: granted("depositor:maps").Grants},
		"both":  {Subject: "3", Grants: granted("depositor:maps", "depositor:letters").Grants}}
	srv := httptest.NewServer(a.Handler())
	t.Cleanup(srv.Close)
	return &v1.Client{URL: srv.URL, HTTP: srv.Client()}, a.Queue
}

// TestBearer: a call needs a token. A key of the API, as there once were, is none, and who sends one is told so.
func TestBearer(t *testing.T) {
	c, _ := tokened(t)
	for _, row := range []struct {
		c             *v1.Client
		authorization string
		key, user     string
		status        int
		says          string
		challenge     string
	}{
		{c, "Bearer ada", "", "", 200, `"subject":"4711"`, ""},
		{c, "bearer  ada ", "", "", 200,
			`"grants":["operator","depositor:maps"],"expires":"2026-11-22T10:30:00Z"`, ""},
		{c, "Bearer ada", "theirs", "", 200, `"subject":"4711"`, ""},
		{c, "Bearer none", "", "", 200, `"grants":[]`, ""},
		{c, "", "named", "", 401, "keys of the API (x-api-key) have ended", "Bearer"},
		{c, "Basic YTpi", "named", "", 401, "keys of the API (x-api-key) have ended", "Bearer"},
		{c, "", "", "", 401, "Authorization: Bearer TOKEN", "Bearer"},
		{c, "Basic YTpi", "", "", 401, "Authorization: Bearer TOKEN", "Bearer"},
		{c, "Bearer old", "", "", 401, "the token has expired", `Bearer error="invalid_token"`},
		{c, "Bearer old", "theirs", "", 401, "the token has expired",
			`Bearer error="invalid_token"`},
		{c, "Bearer", "theirs", "", 401, "the token has expired", `Bearer error="invalid_token"`},
		{c, "Bearer away", "theirs", "", 503, "the archive cannot answer right now", ""},
		{c, "Bearer ada", "", "ann", 422, "Archivist-User: who calls is the subject of the token",
			""},
	} {
		headers := []string{"Authorization", row.authorization, "x-api-key", row.key,
			"Archivist-User", row.user}
		resp, text := ask(t, "GET", row.c.URL+"/v1/whoami", "", headers...)
		if resp.StatusCode != row.status || !strings.Contains(text, row.says) ||
			resp.Header.Get("WWW-Authenticate") != row.challenge || strings.Contains(text,
			"login.example.org") {
			t.Errorf("%+v: %d %q %s", row, resp.StatusCode, resp.Header.Get("WWW-Authenticate"),
				text)
		}
	}

	open, _ := serve(t, through)
	for authorization, want := range map[string]int{"Bearer ada": 401, "Basic YTpi": 200} {
		if resp, text := ask(t, "GET", open.URL+"/v1/whoami", "", "Authorization",
			authorization); resp.StatusCode != want {
			t.Errorf("on an open stack: %d %s", resp.StatusCode, text)
		}
	}
}

// TestSeveralTokens: which of them counts is not decided here.
func TestSeveralTokens(t *testing.T) {
	c, _ := tokened(t)
	r, err := http.NewRequestWithContext(t.Context(), "GET", c.URL+"/v1/whoami", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header["Authorization"] = []string{"Bearer maps", "Bearer admin"}
	resp, err := c.HTTP.Do(r)
	if err != nil || resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("%v, %v", resp, err)
	}
}

// TestRolesOfTokens: who has none is told where they were looked for, and what defines is the administrator's.
func TestRolesOfTokens(t *testing.T) {
	c, _ := tokened(t)
	for _, row := range []struct {
		token, method, path, body string
		status                    int
		says                      string
	}{
		{"none", "GET", "/v1/queue", "", 403, "the token gives none in the claim groups or scope"},
		{"maps", "GET", "/v1/queue", "", 403,
			`needs the role viewer, operator or administrator; the caller has depositor:maps`},
		{"ada", "GET", "/v1/queue", "", 200, ""},
		{"ada", "PUT", "/v1/collections/maps", "{}", 403,
			"needs the role administrator; the caller has depositor:maps, operator"},
		{"ada", "POST", "/v1/consumers/x/actions", `{"action":"delete","reason":"r"}`, 403,
			"delete needs the role administrator"},
		{"ada", "POST", "/v1/consumers/x/actions", `{"action":"pause","reason":"r"}`, 404, ""},
		{"admin", "POST", "/v1/consumers/x/actions", `{"action":"delete","reason":"r"}`, 404, ""},
		{"ada", "POST", "/v1/components/x/actions", `{"action":"delete","reason":"r"}`, 403,
			"delete needs the role"},
		{"ada", "POST", "/v1/archives/x/actions", `{"action":"delete","reason":"r"}`, 403,
			"delete needs the role"},
		{"both", "GET", "/v1/batches", "", 422, "expected one of letters, maps"},
		{"both", "GET", "/v1/batches?collection=maps", "", 200, ""},
		{"both", "GET", "/v1/batches?collection=songs", "", 404,
			"no such thing in the collections of the caller"},
		{"both", "GET", "/v1/batches?collection=", "", 422, "expected one of"},
		{"maps", "GET", "/v1/batches", "", 200, ""},
		{"maps", "GET", "/v1/batches?collection=", "", 200, ""},
		{"maps", "GET", "/v1/batches?collection=&collection=songs", "", 404, ""},
		{"maps", "GET", "/v1/batches?state=Pending", "", 200, ""},
	} {
		resp, text := ask(t, row.method, c.URL+row.path, row.body, "Authorization",
			"Bearer "+row.token)
		if resp.StatusCode != row.status || !strings.Contains(text, row.says) {
			t.Errorf("%+v: %d %s", row, resp.StatusCode, text)
		}
	}
}

// TestActorsOfTokens: events name the subject, also that of a submission, whose submitter is what it says.
func TestActorsOfTokens(t *testing.T) {
	c, q := tokened(t)
	submit := func(token, body string) (status int, out v1.Accepted, text string) {
		resp, text := ask(t, "POST", c.URL+"/v1/batches", body, "Authorization", "Bearer "+token,
			"Idempotency-Key", "k")
		_ = json.Unmarshal([]byte(text), &out) // a refusal has no id
		return resp.StatusCode, out, text
	}
	const body = `{"collection":"maps","submitter":"bob","payload":{"url":"https://example.org/a.txt"}}`
	_, out, _ := submit("ada", body)
	b, err := q.Batch(t.Context(), out.ID)
	if err != nil || b.Submitter != "bob" || b.Actor() != `4711 ("Ada \"L\"")` {
		t.Fatalf("%+v, %v", b, err)
	}
	resp, text := ask(t, "POST", c.URL+"/v1/batches/"+out.ID+"/actions",
		`{"action":"hold","reason":"r"}`,
		"Authorization", "Bearer ada")
	if resp.StatusCode != http.StatusOK {
		t.Error(text)
	}
	_, text = ask(t, "GET", c.URL+"/v1/batches/"+out.ID+"/events", "", "Authorization",
		"Bearer ada")
	if n := strings.Count(text, `"actor":"4711 (\"Ada \\\"L\\\"\")"`); n != 2 ||
		strings.Contains(text, "unverified") {
		t.Errorf("%d: %s", n, text)
	}

	// The keys of depositors are apart from those of others.
	status, own, _ := submit("maps", strings.Replace(body, "bob", "eve", 1))
	if _, again, _ := submit("maps", strings.Replace(body, "bob", "eve",
		1)); status != http.StatusAccepted ||
		own.ID == out.ID || again.ID != own.ID {
		t.Errorf("%d %+v %+v %+v", status, out, own, again)
	}
	if status, _, text := submit("ada", strings.Replace(body, "bob", "eve",
		1)); status != http.StatusConflict {
		t.Errorf("%d %s", status, text)
	}
}

// TestNamesOfGrants: what a grant is limited to is named as where it is defined.
func TestNamesOfGrants(t *testing.T) {
	f, _ := reflect.TypeFor[v1.BatchRequest]().FieldByName("Collection")
	if got := access.Names[access.Depositor].String(); got != f.Tag.Get("pattern") {
		t.Error(got)
	}
	if access.Names[access.Researcher].String() != research.Names.String() ||
		access.Names[access.Notifier].String() != revision.Names.String() {
		t.Error("the names of projects or archives are others")
	}
}

// TestPossibleActions: what is said of a job, its batch, its collection, the queue and an operation is what the caller
// may do there, by role and state.
func TestPossibleActions(t *testing.T) {
	c, q := guarded(t)
	id := failedJob(t, q)
	op, err := c.Start(t.Context(), v1.OperationRequest{Action: "requeue", Filter: &v1.JobFilter{State: v1.Failed},
		ActionOptions: v1.ActionOptions{Reason: "the source is back"}}, "")
	if err != nil {
		t.Fatal(err)
	}
	const others = "[hold] map[queue:[pause] storage:[pause]] [interrupt]"
	for token, want := range map[string]string{
		"theirs":   "[requeue delete prioritize] [delete update-report clean-up] " + others,
		"operator": "[requeue prioritize] [update-report clean-up] " + others,
		"viewer":   "[] [] [] map[] []",
	} {
		c.Bearer = as(token)
		job, err := c.Job(t.Context(), id)
		batch, err1 := c.Batch(t.Context(), job.Batch)
		collection, err2 := c.Collection(t.Context(), "maps")
		queue, err3 := c.Queue(t.Context())
		operation, err4 := c.Operation(t.Context(), op.ID)
		if err := errors.Join(err, err1, err2, err3, err4); err != nil {
			t.Fatal(err)
		}
		has := fmt.Sprint(job.Actions, batch.Actions, collection.Actions, queue.Actions, operation.Actions)
		if has != want {
			t.Errorf("%s: %s, want %s", token, has, want)
		}
	}
}
