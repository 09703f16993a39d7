package storagesim

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/callback"
	"archivist/pkg/ingest/collection"
	"archivist/pkg/kernel/table/tabletest"
)

// The servers that are called for each preserved job: by the profile, and by each submission.
const (
	hookOfProfile    = "http://127.0.0.1/called/profile"
	hookOfSubmission = "http://127.0.0.1/called/submission"
)

// hook gives the collection a profile that has both called.
func (w *world) hook(t *testing.T) {
	c := collection.Store{Table: tabletest.Table(w.fake), NewID: w.newID, Plain: true}
	err := c.Put(t.Context(), collected, collection.Profile{Callback: collection.Callback{URL: hookOfProfile,
		Secret: collection.SecretPrefix + "sim", Hosts: []string{"127.0.0.1"}}}, collection.By{Actor: "sim"}, 0)
	if err != nil {
		t.Fatal(err)
	}
}

// web sends requests to the source, and callbacks when the schedule allows them.
func (a *actor) web(source http.RoundTripper) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		if r.Method != http.MethodPost {
			return source.RoundTrip(r)
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		a.w.check.asks(r.URL.String(), body)
		err = a.do("POST", r.URL.String(), func() error {
			a.w.check.hears(r.URL.String(), body)
			return nil
		})
		if err != nil {
			return nil, err
		}
		rec := httptest.NewRecorder()
		rec.Code = http.StatusNoContent
		resp := rec.Result()
		resp.Request = r
		return resp, nil
	})
}

// asks notes a request to a receiver, before it is decided whether it arrives.
func (c *checker) asks(url string, body []byte) {
	var p callback.Preserved
	if json.Unmarshal(body, &p) == nil {
		c.asked[url+" "+p.Job]++
	}
}

// hears notes a callback: its version must be recorded.
func (c *checker) hears(url string, body []byte) {
	var p callback.Preserved
	if err := json.Unmarshal(body, &p); err != nil {
		c.fail("%s was sent %q", url, body)
		return
	}
	j := c.jobs[p.Job]
	if p.ID != p.Job+".preserved" || p.Version == 0 || p.Version != j.ObjectVersion || p.ARK != j.Primary {
		c.fail("%s was told %s, and job %s has v%d of %s", url, body, p.Job, j.ObjectVersion, j.Primary)
	}
	c.heard[url+" "+p.Job]++
}

// called fails unless each server was called for each job that completed.
func (c *checker) called() {
	for _, id := range slices.Sorted(maps.Keys(c.jobs)) {
		for _, url := range []string{hookOfProfile, hookOfSubmission} {
			n := c.heard[url+" "+id]
			if c.jobs[id].State == ingest.Completed && n == 0 {
				c.fail("job %s is Completed, and %s was not called", id, url)
			}
			if n > 1 {
				c.w.Met("called again")
			}
		}
		c.recorded(id)
	}
}

// recorded compares what a job says of its callbacks with what was sent: one that is said to be
// delivered was, and no request is counted that was not made. One that was made and not recorded,
// since its worker died, is missing.
func (c *checker) recorded(id string) {
	j := c.jobs[id]
	if j.State == ingest.Completed && len(j.Calls) != 2 {
		c.fail("job %s is Completed, and says of its callbacks: %+v", id, j.Calls)
	}
	for _, call := range j.Calls {
		url := hookOfProfile
		if call.By == ingest.CalledBySubmission {
			url = hookOfSubmission
		}
		delivered := j.CallState(call) == ingest.CallDelivered
		asked, heard := c.asked[url+" "+id], c.heard[url+" "+id]
		if delivered && heard == 0 || call.Tries > asked || call.Tries == 0 || call.At == 0 {
			c.fail("job %s (%s) says %+v, of %d requests, of which %d arrived", id, j.State, call, asked, heard)
		}
		if call.Tries < asked {
			c.w.Met("called and not recorded")
		}
	}
}
