package api_test

import (
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/queue/queuetest"
	"archivist/pkg/kernel/table"
)

// TestSortedBatches: a list is sorted in either direction over all pages, with what is equal in the
// order of its ids; what changes between two pages moves itself, and nothing else. A cursor, and an
// order, of another list are refused.
func TestSortedBatches(t *testing.T) {
	c, q := serve(t, through)
	names := []string{"bob", "Ann", "cy", "ann", "Bob", "d"}
	ids := map[string]string{}
	for _, name := range names {
		in := good
		in.Submitter = name
		out, err := c.Submit(t.Context(), in, name)
		if err != nil {
			t.Fatal(err)
		}
		ids[out.ID] = name
	}
	read := func(query string, between func()) (found []string) {
		t.Helper()
		for cursor, first := "", true; first || cursor != ""; first = false {
			p := page[v1.Batch](t, c,
				"/v1/batches?limit=2&"+query+"&cursor="+url.QueryEscape(cursor))
			for _, b := range p.Items {
				found = append(found, ids[b.ID])
			}
			cursor = p.Cursor
			if first && between != nil {
				between()
			}
		}
		return found
	}
	up := []string{"Ann", "ann", "bob", "Bob", "cy", "d"}
	if got := read("sort=submitter", nil); !slices.Equal(got, up) {
		t.Errorf("by submitter: %v", got)
	}
	down := []string{"d", "cy", "bob", "Bob", "Ann", "ann"}
	if got := read("sort=submitter&order=descending&collection=maps", nil); !slices.Equal(got,
		down) {
		t.Errorf("by submitter, turned around: %v", got)
	}
	if got := read("sort=since&submitter=cy", nil); !slices.Equal(got, []string{"cy"}) {
		t.Errorf("those of one: %v", got)
	}

	// The first one fails after the page that has it: it is there twice, and each other one once.
	first := page[v1.Batch](t, c, "/v1/batches?sort=state&limit=2").Items[0].ID
	got := read("sort=state", func() {
		_, err := queuetest.Act(t.Context(), q, ingest.ActCancel, first,
			func(a *ingest.Action) { a.Reason = "a try" })
		if err != nil {
			t.Fatal(err)
		}
	})
	if want := append(slices.Clone(names), ids[first]); !slices.Equal(got, want) {
		t.Errorf("while one changed: %v, want %v", got, want)
	}
	// It is the one that entered its state last.
	if got := read("sort=since", nil); got[len(got)-1] != ids[first] {
		t.Errorf("what rests longest comes first: %v", got)
	}

	refusedSorts(t, c, first)
}

// refusedSorts fails for cursors and orders of other lists that are not refused.
func refusedSorts(t *testing.T, c *v1.Client, batch string) {
	t.Helper()
	cursor := page[v1.Batch](t, c, "/v1/batches?sort=state&limit=2").Cursor
	jobs := "sorted.jobs" + strings.TrimPrefix(cursor, "sorted.batches")
	for query, says := range map[string]string{
		"sort=since&cursor=" + cursor:                          "invalid cursor",
		"sort=state&order=descending&cursor=" + cursor:         "invalid cursor",
		"cursor=" + cursor:                                     "invalid cursor",
		"sort=state&cursor=" + jobs:                            "invalid cursor",
		"sort=state&cursor=sorted.batches.state.ascending.!.x": "invalid cursor",
		"sort=state&cursor=sorted.batches.state.ascending.x":   "invalid cursor",
		"sort=state&order=oldest":                              "expected ascending or descending",
		"order=ascending":                                      "expected newest or oldest",
		"sort=space":                                           "expected value to be one of",
	} {
		err := c.Call(t.Context(), http.MethodGet, "/v1/batches?"+query, nil, nil)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", query, err)
		}
	}
	err := c.Call(t.Context(), http.MethodGet, "/v1/batches/"+batch+"/jobs?order=ascending", nil,
		nil)
	if err == nil || !strings.Contains(err.Error(), "give what to sort by") {
		t.Errorf("an order of the jobs of a batch without a sort: %v", err)
	}
}

// TestSortedLargest: jobs are sorted by their space up to the largest number that a size can have.
func TestSortedLargest(t *testing.T) {
	c, q := serve(t, through)
	if _, err := c.Submit(t.Context(), good, ""); err != nil {
		t.Fatal(err)
	}
	for n, space := range []int64{5, math.MaxInt64, 0} {
		id := ingest.JobID("B", n+1)
		row := &queue.Job{Head: table.Head{PK: "JOB#" + id, SK: "JOB"}, Job: ingest.Job{ID: id,
			Batch: "B", Row: n + 1, Collection: "maps", State: ingest.Pending, Turn: id, Created: 1,
			SpaceNeeded: space}}
		row.Place()
		tx := q.Table.Begin("X")
		tx.Insert(row)
		tx.Follow(id, nil, queue.Listed(&row.Job))
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, j := range page[v1.Job](t, c, "/v1/jobs?sort=space").Items {
		got = append(got, j.ID)
	}
	want := []string{ingest.JobID("B", 2), ingest.JobID("B", 1), ingest.JobID("B", 3)}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
