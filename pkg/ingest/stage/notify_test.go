package stage_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"archivist/pkg/events/event"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/callback"
	"archivist/pkg/ingest/collection"
	"archivist/pkg/ingest/queue/queuetest"
)

// called is a depositor's server of callbacks.
type called struct {
	*httptest.Server
	mu       sync.Mutex
	status   int
	location string
	ids      []string // of the callbacks that came
	unsigned int      // how many of them had no signature
}

func newCalled(t *testing.T) *called {
	c := &called{status: http.StatusNoContent}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		var p callback.Preserved
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(body, &p)
		}
		if err != nil || r.Method != http.MethodPost {
			t.Errorf("%s %s: %v", r.Method, body, err)
		}
		c.ids = append(c.ids, p.ID)
		if r.Header.Get(callback.SignatureHeader) == "" {
			c.unsigned++
		}
		w.Header().Set("Location", c.location)
		w.WriteHeader(c.status)
	}))
	t.Cleanup(c.Close)
	return c
}

// toldWorld has a server of the profile, and one of submissions.
type toldWorld struct {
	*twins
	own, named *called
}

func newTold(t *testing.T) *toldWorld {
	w := &toldWorld{newTwins(t), newCalled(t), newCalled(t)}
	w.Stages.Collections.Plain = true
	w.Stages.Fetch.Wait = func(context.Context, time.Duration) error { return nil }
	w.Stages.Secret = func(context.Context, string) (string, error) { return "the key", nil }
	return w
}

// profile replaces that of the collection.
func (w *toldWorld) profile(c collection.Callback) {
	w.Helper()
	if err := w.Stages.Collections.Put(w.Context(), "bench", collection.Profile{Callback: c},
		collection.By{Actor: "me"}, 0); err != nil {
		w.Fatal(err)
	}
}

// usual is a profile with a callback of its own that allows submissions theirs.
func (w *toldWorld) usual(mode collection.Mode) collection.Callback {
	return collection.Callback{URL: w.own.URL + "/preserved", Secret: collection.SecretPrefix + "x", Mode: mode,
		Hosts: []string{"127.0.0.1", "10.0.0.1", "localhost"}}
}

// ends submits an object with a callback, and fails unless its job ends so, with a message or warning that says texts.
func (w *toldWorld) ends(url string, state ingest.State, says ...string) string {
	w.Helper()
	id := w.Submit("a.txt", func(b *ingest.Batch) { b.Callback = url })
	w.is(id, state, says...)
	return id
}

func (w *toldWorld) is(id string, state ingest.State, says ...string) {
	w.Helper()
	j := w.Job(id)
	text := j.Message + strings.Join(j.Warnings(), "\n")
	if j.State != state || j.ObjectVersion != 1 || (text == "") != (len(says) == 0) {
		w.Errorf("%s, v%d: %q", j.State, j.ObjectVersion, text)
	}
	for _, want := range says {
		if !strings.Contains(text, want) {
			w.Errorf("it does not say %q: %q", want, text)
		}
	}
	if strings.Contains(text, "SECRET") {
		w.Errorf("it says a secret: %q", text)
	}
}

// heard fails unless the servers were called so often, each time with the id of the job, and as often signed.
func (w *toldWorld) heard(id string, own, named int) {
	w.Helper()
	for c, want := range map[*called]int{w.own: own, w.named: named} {
		wrong := slices.ContainsFunc(c.ids, func(got string) bool { return got != id+".preserved" })
		if len(c.ids) != want || wrong || c.unsigned != 0 {
			w.Errorf("heard %q of %s, %d not signed; expected %d", c.ids, id, c.unsigned, want)
		}
	}
}

// TestCallbackOfSubmission: it is called beside that of the profile, signed with the same key; the same URL is called
// once, however it is written. Without a secret it is not signed. The batch, its event and its report show it.
func TestCallbackOfSubmission(t *testing.T) {
	w := newTold(t)
	w.profile(w.usual(""))
	id := w.ends(w.named.URL+"/x?sig=SECRET", ingest.Completed)
	w.heard(id, 1, 1)
	b := w.BatchOf(id)
	want := w.named.URL + "/x?redacted"
	if r := w.report(b.ID); r.Callback != want || b.Callback != want || b.State != ingest.BatchCompleted {
		t.Errorf("the report has %q, and the row of the %s batch %q", r.Callback, b.State, b.Callback)
	}
	events, _, err := event.Page(t.Context(), w.Machine.Queue.Table, event.Subject{Type: event.Batch, ID: b.ID}, "")
	if err != nil || len(events) == 0 || !strings.Contains(string(events[0].After), want) {
		t.Errorf("%s, %v", events[0].After, err)
	}

	same := newTold(t)
	same.profile(collection.Callback{URL: same.own.URL, Secret: collection.SecretPrefix + "x"})
	same.heard(same.ends("HTTP"+strings.TrimPrefix(same.own.URL, "http")+"/", ingest.Completed), 1, 0)

	bare := newTold(t)
	bare.profile(collection.Callback{Hosts: []string{strings.TrimPrefix(bare.named.URL, "http://")}})
	bare.ends(bare.named.URL, ingest.Completed)
	if bare.named.unsigned != 1 || len(bare.named.ids) != 1 {
		t.Errorf("%d of %q are not signed", bare.named.unsigned, bare.named.ids)
	}
}

// TestOneCallbackFails: the other is called nevertheless. A required one fails the job, and both are called again after
// a requeue, with the same id; one of best effort is a warning.
func TestOneCallbackFails(t *testing.T) {
	for _, own := range []bool{true, false} {
		for _, mode := range []collection.Mode{"", collection.BestEffort} {
			w := newTold(t)
			w.profile(w.usual(mode))
			broken := w.named
			if own {
				broken = w.own
			}
			broken.status = http.StatusGone
			if mode != "" {
				w.heard(w.ends(w.named.URL+"/?SECRET", ingest.Completed, "was not delivered: "+broken.URL, "410"), 1, 1)
				continue
			}
			id := w.ends(w.named.URL+"/?SECRET", ingest.Failed, "notification failed: "+broken.URL, "410",
				"Correct the server")
			w.heard(id, 1, 1)
			broken.status = http.StatusOK
			if _, err := queuetest.Requeue(t.Context(), w.Machine.Queue, id, "corrected", "me"); err != nil {
				t.Fatal(err)
			}
			w.Drive()
			w.is(id, ingest.Completed)
			w.heard(id, 2, 2)
		}
	}
}

// TestCallbackIsCheckedAgain: what the profile does not allow any more is not called, which the job says; it fails no
// job. The rules of the profile's own callback hold: no redirect is followed, and only public addresses are called.
func TestCallbackIsCheckedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		change func(w *toldWorld, c *collection.Callback) (url string)
		state  ingest.State
		says   []string
		own    int
		named  int
	}{
		"host taken out": {func(w *toldWorld, c *collection.Callback) string {
			c.Hosts = c.Hosts[1:]
			return w.named.URL + "/?SECRET"
		}, ingest.Completed, []string{"was not sent: the profile of the collection bench does not allow",
			"callback.hosts"}, 1, 0},
		"another port": {func(w *toldWorld, c *collection.Callback) string {
			c.Hosts = []string{"127.0.0.1:1"}
			return w.named.URL
		}, ingest.Completed, []string{"does not allow submissions callbacks to http://127.0.0.1:"}, 1, 0},
		"callback taken out": {func(w *toldWorld, c *collection.Callback) string {
			*c = collection.Callback{}
			return w.named.URL
		}, ingest.Completed, []string{"was not sent"}, 0, 0},
		"redirect": {func(w *toldWorld, _ *collection.Callback) string {
			w.named.status, w.named.location = http.StatusFound, w.own.URL
			return w.named.URL
		}, ingest.Failed, []string{"302", "tried 4 times"}, 1, 4},
		"private address": {func(*toldWorld, *collection.Callback) string { return "http://10.0.0.1/SECRET" },
			ingest.Failed, []string{"notification failed: http://10.0.0.1", "not a public address"}, 1, 0},
		"secret missing": {func(w *toldWorld, _ *collection.Callback) string {
			w.Stages.Secret = func(context.Context, string) (string, error) { return "", errors.New("no such secret") }
			return w.named.URL
		}, ingest.Failed, []string{"the secret archivist/x cannot be read", "no such secret"}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTold(t)
			profile := w.usual("")
			url := c.change(w, &profile)
			w.profile(profile)
			id := w.ends(url, c.state, c.says...)
			w.heard(id, c.own, c.named)
			events, _, err := event.Page(t.Context(), w.Machine.Queue.Table, event.Subject{Type: event.Job, ID: id}, "")
			if err != nil || !strings.Contains(string(events[len(events)-1].Detail), c.says[0]) {
				t.Errorf("no event says %q, %v", c.says[0], err)
			}
		})
	}
}
