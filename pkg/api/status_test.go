package api_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"archivist/pkg/api/status"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/queue/queuetest"
	"archivist/pkg/kernel/table"
)

// named is a section of a status.
func named(s v1.Status, name string) v1.StatusSection {
	return s.Sections[slices.IndexFunc(s.Sections, func(p v1.StatusSection) bool { return p.Name == name })]
}

// TestStatusOfAlarms: raised alarms need a person. If they cannot be read, that is said with the reason, it is never
// "none", and the other sections are there.
func TestStatusOfAlarms(t *testing.T) {
	a, _ := service(through)
	raised, problem := []status.Alarm{}, error(nil)
	a.Alarms = func(context.Context) ([]status.Alarm, bool, error) { return raised, len(raised) > 1, problem }
	srv := httptest.NewServer(a.Handler())
	defer srv.Close()
	c := &v1.Client{URL: srv.URL, HTTP: http.DefaultClient}
	read := func() (v1.Status, v1.StatusSection) {
		s, err := c.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return s, named(s, "alarms")
	}

	if _, got := read(); got.State != v1.SectionOK || got.Summary != "none is raised" {
		t.Errorf("%+v", got)
	}
	raised = []status.Alarm{{Name: "Archivist-Stuck", Text: "An item is stuck", Since: time.Unix(1700000000, 0)},
		{Name: "Archivist-Crashes"}}
	if s, got := read(); !s.Attention || got.State != v1.SectionAttention || len(got.Lines) != 2 || got.Cut == "" ||
		got.Lines[0].Text != "Archivist-Stuck: An item is stuck" ||
		got.Lines[0].Command != "archivist queue show" || got.Lines[0].Since != "2023-11-14T22:13:20Z" {
		t.Errorf("%+v", got)
	}
	raised = []status.Alarm{{Name: "my-archive-FailedJobs1A2B3C4D-XYZ12"},
		{Name: "my-archive-Refused"}, {Name: "my-archive-OfAnotherRelease1A2B3C4D-XYZ12"}}
	if _, got := read(); got.Lines[0].Command != "archivist job list --state failed" ||
		got.Lines[1].Command != "" || got.Lines[2].Command != "" {
		t.Errorf("%+v", got)
	}
	problem = errors.New("no permission")
	s, got := read()
	if !s.Attention || got.State != v1.SectionUnavailable || got.Summary != "not known: no permission" ||
		len(got.Lines) != 0 {
		t.Errorf("%+v", got)
	}
	if got := named(s, "running"); got.State != v1.SectionOK || got.Summary != "nothing runs" {
		t.Errorf("%+v", got)
	}
	if got := named(s, "preservation"); got.State != v1.SectionAttention || !strings.Contains(got.Lines[0].Text,
		"no component fixity-check") {
		t.Errorf("nobody checks the files: %+v", got)
	}
}

// TestStatusHasALimit: a section that takes too long ends with that reason, and the others are there.
func TestStatusHasALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, _ := service(through)
		a.Alarms = func(ctx context.Context) ([]status.Alarm, bool, error) {
			<-ctx.Done()
			return nil, false, ctx.Err()
		}
		s := a.Status().Status(t.Context(), false)
		got := named(s, "alarms")
		if got.State != v1.SectionUnavailable || !strings.Contains(got.Summary, "within 8s") {
			t.Errorf("%+v", got)
		}
		if got := named(s, "holds"); got.State != v1.SectionOK {
			t.Errorf("%+v", got)
		}
	})
}

// TestStatusOfATableThatFails: no section claims that there is nothing.
func TestStatusOfATableThatFails(t *testing.T) {
	a, _ := service(func(string, func() error) error { return errors.New("the table is gone") })
	for _, part := range a.Status().Status(t.Context(), false).Sections {
		if part.State != v1.SectionUnavailable && part.Name != "alarms" {
			t.Errorf("%+v", part)
		}
	}
}

// TestStatusIsBounded: how many requests a status takes does not grow with collections and jobs; a batch that was
// rejected in any of them is in it.
func TestStatusIsBounded(t *testing.T) {
	reads := func(collections int) (int64, v1.StatusSection) {
		var calls atomic.Int64
		a, _ := service(func(_ string, call func() error) error { calls.Add(1); return call() })
		last := ""
		for n := range collections {
			b, err := a.Queue.Submit(t.Context(), ingest.Batch{Collection: fmt.Sprintf("c%03d", n)}, "", nil, "me")
			if err != nil {
				t.Fatal(err)
			}
			last = b.Batch.ID
		}
		_, err := queuetest.Act(t.Context(), a.Queue, ingest.ActCancel, last)
		if err != nil {
			t.Fatal(err)
		}
		calls.Store(0)
		s := a.Status().Status(t.Context(), false)
		return calls.Load(), named(s, "failures")
	}
	few, _ := reads(2)
	many, failures := reads(300)
	if many != few || many > 30 {
		t.Errorf("%d requests for 300 collections, %d for 2", many, few)
	}
	if len(failures.Lines) != 1 || failures.Lines[0].Count != 1 || failures.Cut != "" ||
		!strings.Contains(failures.Lines[0].Text, "failed before there were jobs") {
		t.Errorf("%+v", failures)
	}
}

// TestStatusOfAttention: asked for what needs a person, a status has those lines and no others, with
// the same numbers and states of sections, and takes fewer requests.
func TestStatusOfAttention(t *testing.T) {
	var calls atomic.Int64
	a, _ := service(func(_ string, call func() error) error { calls.Add(1); return call() })
	if _, err := a.Queue.Submit(t.Context(), ingest.Batch{Collection: "maps"}, "", nil, "me"); err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(a.Handler())
	defer srv.Close()
	c := &v1.Client{URL: srv.URL, HTTP: http.DefaultClient}
	read := func(of func(context.Context) (v1.Status, error)) (v1.Status, int64) {
		calls.Store(0)
		s, err := of(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return s, calls.Load()
	}
	all, most := read(c.Status)
	some, fewer := read(c.Attention)
	if fewer >= most {
		t.Errorf("%d requests, %d for all", fewer, most)
	}
	if all.Attention != some.Attention || !reflect.DeepEqual(all.Queue, some.Queue) {
		t.Errorf("%+v\n%+v", all.Queue, some.Queue)
	}
	needs := 0
	for i, of := range all.Sections {
		got := some.Sections[i]
		want := slices.DeleteFunc(slices.Clone(of.Lines), func(l v1.StatusLine) bool { return !l.Attention })
		needs += len(want)
		if got.State != of.State || !slices.Equal(got.Lines, want) {
			t.Errorf("%+v\nexpected of it %+v", got, want)
		}
	}
	if needs == 0 {
		t.Error("nothing needs a person")
	}
}

// TestFailuresAmongOthers: where so much else is to be removed on the same day that not all that
// failed lately is found, the jobs that are failed need a person nevertheless.
func TestFailuresAmongOthers(t *testing.T) {
	a, _ := service(through)
	a.Queue.Rules.FailedRetention = 30 * 24 * time.Hour
	long := time.Now().AddDate(0, 0, -3).UnixMilli()
	id := ingest.JobID("B", 1)
	row := &queue.Job{Head: table.Head{PK: "JOB#" + id, SK: "JOB"}, Job: ingest.Job{ID: id,
		Batch: "B", Row: 1, Collection: "maps", State: ingest.Failed, Created: long}}
	row.Entered = long
	row.Place()
	tx := a.Queue.Table.Begin("X")
	tx.Insert(row)
	tx.Follow(id, nil, queue.Listed(&row.Job))
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	due := ingest.DueSK(time.Now().Add(29*24*time.Hour+12*time.Hour).UnixMilli()) + "#batch:"
	for n := range 24 { // batches, whose rows are removed then
		tx := a.Queue.Table.Begin(fmt.Sprint("Y", n))
		for i := range 50 {
			at := table.Head{PK: fmt.Sprint("BATCH#old", n, "-", i), SK: "BATCH",
				WorkPK: ingest.WorkCleanUp}
			at.WorkSK = due + at.PK
			tx.Insert(&struct{ table.Head }{at})
		}
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	got := named(a.Status().Status(t.Context(), false), "failures")
	if got.State != v1.SectionAttention || len(got.Lines) != 1 || got.Lines[0].Count != 1 ||
		!strings.Contains(got.Summary, "at least 0 jobs, 0 batches without jobs; 1 job beside") ||
		!strings.Contains(got.Cut, "not all jobs were looked at") {
		t.Errorf("%+v", got)
	}
}
