package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"archivist/pkg/api"
	v1 "archivist/pkg/api/v1"
)

// registered is a kind of thing that is registered under a name, and that persons pause, resume and delete.
type registered struct {
	path          string
	define        any    // its definition
	more          string // of a definition that is another one, as a field
	pause, resume string
	deletes       bool
}

var registries = map[string]registered{
	"consumer":   {"/v1/consumers/mine", searching, `"description": "another"`, "pause", "resume", true},
	"component":  {"/v1/components/count-words", counting, `"description": "another"`, "pause", "resume", true},
	"project":    {"/v1/research/jingles", jingles, `"description": "another"`, "pause", "resume", false},
	"archive":    {"/v1/archives/maps", mapsArchive, `"title": "another"`, "pause", "resume", true},
	"collection": {"/v1/collections/maps", v1.Profile{}, `"requireDigest": true`, "hold", "release", false},
}

// asking is an API with one registered thing.
type asking struct {
	*testing.T
	registered
	url string
	api *api.API
	// meanwhile, if it is set, is done once, before the next transaction.
	meanwhile atomic.Pointer[func()]
}

func newAsking(t *testing.T, r registered) *asking {
	a := &asking{T: t, registered: r}
	a.api, _ = service(func(op string, call func() error) error {
		if op == "TransactWriteItems" {
			if f := a.meanwhile.Swap(nil); f != nil {
				(*f)()
			}
		}
		return call()
	})
	srv := httptest.NewServer(a.api.Handler())
	t.Cleanup(srv.Close)
	a.url = srv.URL
	body, err := json.Marshal(r.define)
	if err != nil {
		t.Fatal(err)
	}
	if status, text := a.send(http.MethodPut, "", string(body), ""); status != http.StatusOK {
		t.Fatalf("%s: %d: %s", r.path, status, text)
	}
	return a
}

// send makes a request, and returns its status and its body.
func (a *asking) send(method, below, body, key string) (int, string) {
	a.Helper()
	req, err := http.NewRequestWithContext(a.Context(), method, a.url+a.path+below, bytes.NewBufferString(body))
	if err != nil {
		a.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		a.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		a.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// act asks for an action with a reason, and more fields.
func (a *asking) act(action, reason, more, key string) int {
	a.Helper()
	body := fmt.Sprintf(`{"action": %q, "reason": %q%s}`, action, reason, more)
	status, text := a.send(http.MethodPost, "/actions", body, key)
	if status >= 500 {
		a.Errorf("%s %s: %d: %s", a.path, body, status, text)
	}
	return status
}

// events are the types of its events.
func (a *asking) events() (types []string) {
	a.Helper()
	_, text := a.send(http.MethodGet, "/events", "", "")
	var page v1.List[v1.Event]
	if err := json.Unmarshal([]byte(text), &page); err != nil {
		a.Fatal(err, text)
	}
	for _, e := range page.Items {
		types = append(types, e.Type)
	}
	return types
}

// with is the definition with another field.
func (a *asking) with(field string) any {
	a.Helper()
	body, _ := json.Marshal(a.define)
	var fields map[string]any
	if err := json.Unmarshal(body, &fields); err != nil {
		a.Fatal(err)
	}
	if err := json.Unmarshal([]byte("{"+field+"}"), &fields); err != nil {
		a.Fatal(err)
	}
	return fields
}

// put puts a definition, and returns the status.
func (a *asking) put(definition any, key string) int {
	a.Helper()
	body, _ := json.Marshal(definition)
	status, text := a.send(http.MethodPut, "", string(body), key)
	if status >= 500 {
		a.Errorf("%s %s: %d: %s", a.path, body, status, text)
	}
	return status
}

// asked is what persons ask of all kinds alike, and what comes of it.
var asked = []struct {
	name   string
	do     func(a *asking) int // the status of the last request
	status int
	events int // that the requests make
}{
	{"paused", func(a *asking) int { return a.act(a.pause, "wait", "", "") }, 200, 1},
	{"paused twice", func(a *asking) int {
		a.act(a.pause, "wait", "", "")
		return a.act(a.pause, "wait again", "", "")
	}, 200, 1},
	{"resumed while it runs", func(a *asking) int { return a.act(a.resume, "go on", "", "") }, 200, 0},
	{"without a reason", func(a *asking) int { return a.act(a.pause, "", "", "") }, 422, 0},
	{"with a blank reason", func(a *asking) int { return a.act(a.pause, "  ", "", "") }, 422, 0},
	{"with 500 characters of two bytes", func(a *asking) int {
		return a.act(a.pause, strings.Repeat("ü", 500), "", "")
	}, 200, 1},
	{"with a reason of two lines", func(a *asking) int { return a.act(a.pause, "one\ntwo", "", "") }, 422, 0},
	{"with an unknown field", func(a *asking) int { return a.act(a.pause, "wait", `, "for": "ever"`, "") }, 422, 0},
	{"with null", func(a *asking) int {
		status, _ := a.send(http.MethodPost, "/actions", `{"action": "`+a.pause+`", "reason": null}`, "")
		return status
	}, 422, 0},
	{"repeated after another", func(a *asking) int {
		a.act(a.pause, "wait", "", "one")
		a.act(a.resume, "go on", "", "")
		return a.act(a.pause, "wait", "", "one")
	}, 200, 2},
	{"repeated although it changed nothing", func(a *asking) int {
		a.act(a.resume, "go on", "", "one")
		a.act(a.pause, "wait", "", "")
		return a.act(a.resume, "go on", "", "one")
	}, 200, 1},
	{"another with the same key", func(a *asking) int {
		a.act(a.pause, "wait", "", "one")
		return a.act(a.resume, "go on", "", "one")
	}, 409, 1},
	{"changed meanwhile", func(a *asking) int {
		other := func() { a.put(a.with(a.more), "") }
		a.meanwhile.Store(&other)
		return a.act(a.pause, "wait", "", "")
	}, 200, 2},
	{"defined again", func(a *asking) int { return a.put(a.define, "") }, 200, 0},
	{"defined with an unknown field", func(a *asking) int {
		return a.put(a.with(`"for": "ever"`), "")
	}, 422, 0},
	{"defined with null", func(a *asking) int {
		name, _, _ := strings.Cut(a.more, ":")
		return a.put(a.with(name+": null"), "")
	}, 422, 0},
	{"defined by a repeated request", func(a *asking) int {
		a.put(a.with(a.more), "one")
		a.put(a.define, "")
		return a.put(a.with(a.more), "one")
	}, 200, 2},
	{"defined by a repeated request that changed nothing", func(a *asking) int {
		a.put(a.define, "one")
		a.put(a.with(a.more), "")
		return a.put(a.define, "one")
	}, 200, 1},
	{"defined in another way with the same key", func(a *asking) int {
		a.put(a.with(a.more), "one")
		return a.put(a.define, "one")
	}, 409, 1},
	{"deleted twice", func(a *asking) int {
		a.act("delete", "old", "", "")
		a.gone()
		return a.act("delete", "old", "", "")
	}, 404, 1},
	{"deleted, and repeated", func(a *asking) int {
		a.act("delete", "old", "", "one")
		a.gone()
		return a.act("delete", "old", "", "one")
	}, 200, 1},
}

// TestRegistries: whatever is defined, paused, resumed and deleted, the answer is the same, and so is how many events
// it makes.
func TestRegistries(t *testing.T) {
	for _, c := range asked {
		for kind, r := range registries {
			if !r.deletes && strings.HasPrefix(c.name, "deleted") {
				continue
			}
			t.Run(kind+" "+c.name, func(t *testing.T) {
				a := newAsking(t, r)
				before := len(a.events())
				status := c.do(a)
				if events := a.events(); status != c.status || len(events)-before != c.events {
					t.Errorf("the answer is %d, with %d events (%v); expected %d with %d", status,
						len(events)-before, events, c.status, c.events)
				}
			})
		}
	}
}

// gone lets a deletion end.
func (a *asking) gone() {
	a.Helper()
	if strings.HasPrefix(a.path, "/v1/archives/") {
		for range 3 {
			if _, err := a.api.Revisions.Pass(a.Context(), "maps", time.Now().Add(time.Minute)); err != nil {
				a.Fatal(err)
			}
		}
	}
}
