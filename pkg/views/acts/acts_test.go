package acts_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"archivist/pkg/events/consumer"
	"archivist/pkg/events/envelope"
	"archivist/pkg/events/filter"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/pkg/views/acts"
)

// did is an event of somebody, with a reason.
func did(n int, who string) envelope.Event {
	return envelope.Event{ID: fmt.Sprintf("tx%03d.0", n), Type: "collection.held", Action: "modify",
		Time: int64(1_000_000 + 1000*n), Outcome: "success",
		Subject: envelope.Ref{Type: "Collection", ID: "maps"},
		Version: int64(n), Context: envelope.Context{Actor: who, Component: "admin", Request: "r"},
		Identifiers: []string{"x"}, Detail: []byte(`{"reason":"because"}`), Partition: "maps", Seq: int64(n)}
}

func through(_ string, call func() error) error { return call() }

// recorder records in a table whose calls pass through do.
func recorder(fake *tabletest.Fake, do func(op string, call func() error) error) acts.Recorder {
	var n atomic.Int64
	return acts.Recorder{Table: tabletest.Through(fake, do),
		NewID: func() string { return fmt.Sprintf("tx-%p-%d", &n, n.Add(1)) }}
}

// batch is a batch of events.
func batch(events ...envelope.Event) (b consumer.Batch) {
	for _, e := range events {
		b.Events = append(b.Events, consumer.Item{Event: e})
	}
	return b
}

// pages reads a list page by page, and returns the numbers of its events in the order of the list.
func pages(t *testing.T, s acts.Store, of acts.Query) (numbers []int64) {
	t.Helper()
	for of.Limit = 3; ; {
		page, next, err := s.Page(t.Context(), of)
		if err != nil || len(page) > 3 {
			t.Fatalf("%d acts, %v", len(page), err)
		}
		for _, a := range page {
			numbers = append(numbers, a.Event.Version)
		}
		of.Cursor = next
		if next == "" {
			return numbers
		}
	}
}

// TestActs: an act is once in the list of all and in that of who did it, also if its event comes
// again or late; the newest is the first, and each page is one call.
func TestActs(t *testing.T) {
	calls := 0
	fake := tabletest.New()
	r := recorder(fake, func(_ string, call func() error) error { calls++; return call() })
	var all []envelope.Event
	for n := range 8 {
		all = append(all, did(n, []string{`ann ("Ann")`, "bob"}[n%2]))
	}
	late := did(3, "ann")
	all[3] = did(9, "ann") // by another name of the token
	for _, b := range []consumer.Batch{batch(all...), batch(all[2:]...), batch(late)} {
		if failures, err := r.Handle(t.Context(), b); err != nil || len(failures) > 0 {
			t.Fatal(failures, err)
		}
	}

	s := acts.Store{Table: r.Table}
	calls = 0
	if got := pages(t, s, acts.Query{}); !slices.Equal(got, []int64{9, 7, 6, 5, 4, 3, 2, 1, 0}) || calls > 4 {
		t.Errorf("%v, in %d calls", got, calls)
	}
	for _, who := range []string{"ann", `ann ("Ann")`, `ann (unverified: "x")`} {
		if got := pages(t, s, acts.Query{Actor: who}); !slices.Equal(got, []int64{9, 6, 4, 3, 2, 0}) {
			t.Errorf("of %s: %v", who, got)
		}
	}
	if got := pages(t, s, acts.Query{Actor: "an"}); len(got) != 0 {
		t.Errorf("of nobody: %v", got)
	}
	if got := pages(t, s, acts.Query{Before: all[5].Time}); !slices.Equal(got, []int64{4, 3, 2, 1, 0}) {
		t.Errorf("before a time: %v", got)
	}

	page, _, err := s.Page(t.Context(), acts.Query{Limit: 1})
	if err != nil || page[0].Reason != "because" || page[0].Event.Context.Actor != "ann" ||
		page[0].Event.Detail != nil || page[0].Event.Type != "collection.held" {
		t.Errorf("%+v, %v", page, err)
	}
}

// TestCrash: a call that dies at any point is repeated, and each act is in both lists once.
func TestCrash(t *testing.T) {
	tabletest.Crashes(t, 4, func(t *testing.T, m *tabletest.Mortal) {
		fake := tabletest.New()
		b := batch(did(1, "ann"), did(2, "bob"))
		_, err := recorder(fake, m.Do).Handle(t.Context(), b)
		if m.Dead() != (err != nil) {
			t.Fatalf("died %v, %v", m.Dead(), err)
		}
		again := recorder(fake, through)
		if failures, err := again.Handle(t.Context(), b); err != nil || failures != nil {
			t.Fatal(failures, err)
		}
		s := acts.Store{Table: again.Table}
		if got := pages(t, s, acts.Query{}); !slices.Equal(got, []int64{2, 1}) {
			t.Errorf("all: %v", got)
		}
		if got := pages(t, s, acts.Query{Actor: "ann"}); !slices.Equal(got, []int64{1}) {
			t.Errorf("of ann: %v", got)
		}
	})
}

// TestOf: what a person did is an act, with its reason; what the system did, or as a part of a
// larger act, is none.
func TestOf(t *testing.T) {
	of := func(kind, subject, who, detail, after string) envelope.Event {
		e := did(1, who)
		e.Type, e.Subject = kind, envelope.Ref{Type: subject, ID: "x"}
		e.Detail, e.After = []byte(detail), []byte(after)
		return e
	}
	type sample struct {
		e      envelope.Event
		is     bool
		reason string
	}
	const back = `{"reason":"it is back"}`
	for name, c := range map[string]sample{
		"requeue": {of("job.requeued", "Job", "ann", `{"reason":"it is back","request":"api:k"}`, ""),
			true, "it is back"},
		"by hand": {of("job.requeued", "Job", "ann", back, ""), true, "it is back"},
		"a part": {of("job.requeued", "Job", "ann",
			`{"reason":"r","request":"01M7ZBMEYHBB62YP6RY21T1GQ7"}`, ""), false, ""},
		"no reason": {of("job.state", "Job", "ann", `{"to":"Pending"}`, ""), false, ""},
		"nobody":    {of("job.held", "Job", "", back, ""), false, ""},
		"archive":   {of("archive.paused", "Archive", "ann", `{"why":"a test"}`, ""), true, "a test"},
		"stopped": {of("archive.stopped", "Archive", "revision-queue", `{"why":"a gap"}`, ""),
			false, ""},
		"profile": {of("collection.profile", "Collection", "ann", `{"title":"t"}`, ""), true, ""},
		"ships":   {of("consumer.created", "Consumer", "system", `{}`, ""), false, ""},
		"by a rule": {of("operation.started", "Operation", "archivist",
			`{"reason":"3 failed jobs, and the submission has stopAfterFailures 3"}`, ""), false, ""},
		"of a batch": {of("operation.started", "Operation", "ann",
			`{"action":"cancel","state":"Running","reason":"it is wrong"}`, ""), false, ""},
		"its stop": {of("operation.interrupted", "Operation", "ann",
			`{"action":"cancel","state":"Interrupted","reason":"wait"}`, ""), true, "wait"},
		"preview": {of("operation.started", "Operation", "ann",
			`{"action":"requeue","state":"Running","dryRun":true,"reason":"it is back"}`, ""), false, ""},
		"its end": {of("operation.interrupted", "Operation", "ann",
			`{"action":"requeue","state":"Interrupted","dryRun":true,"reason":"wait"}`, ""), false, ""},
		"component": {of("item.event", "ComponentItem", "component:check", back, ""), false, ""},
		"correction": {of("batch.state", "Batch", "ann", `{"to":"Pending"}`,
			`{"correction":"a typo"}`), true, "a typo"},
		"deposit": {of("batch.state", "Batch", "ann", `{"to":"Pending"}`, `{"state":"Pending"}`),
			false, ""},
		"odd detail": {of("queue.paused", "Queue", "ann", `[1]`, ""), true, ""},
	} {
		a, is := acts.Of(c.e)
		if is != c.is || a.Reason != c.reason {
			t.Errorf("%s: %v, %q", name, is, a.Reason)
		}
	}
}

// notActs are the types of events that are no acts in the samples: what the system does, or others
// with its work.
var notActs = strings.Fields(`archive.stopped batch.mail batch.repaired batch.state clip.curated collection.add clip.deferred
	clip.retried clip.set-aside clip.withdrawn component.ran consumer.replay-done
	derivative.create episode.curated episode.deferred episode.differs episode.researched
	episode.retried episode.set-aside episode.withdrawn file.disseminate job.cleaned
	job.continued job.preserved job.repaired job.state lease.accepted lease.created
	lease.ended lease.extended object.create object.modify operation.done operation.repaired
	project.researcher-paused revision.committed revision.notified task.planned task.state
	task.told upload.expired upload.opened upload.removed upload.submitted version.create`)

// TestSelection: the consumer gets each act: its filter selects all of them, and the doctor checks
// the events of their subjects. Each type of events is an act, or is named as none.
func TestSelection(t *testing.T) {
	f, err := filter.Compile(acts.Definition.Filter)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range envelope.Kinds {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", "events", "types", k.Type+".json"))
		if err != nil {
			t.Fatal(err)
		}
		var e envelope.Event
		if err := json.Unmarshal(text, &e); err != nil {
			t.Fatalf("%s: %v", k.Type, err)
		}
		if e.Context.Component == "" { // of research, whose tests name none; the API does
			e.Context.Component = "api"
		}
		if k.Type == "operation.started" { // the sample is of the cancelling of a batch
			e.Detail = []byte(`{"action":"requeue","reason":"a test"}`)
		}
		_, is := acts.Of(e)
		is = is && f.Match(e)
		if is == slices.Contains(notActs, k.Type) {
			t.Errorf("%s of %q is an act: %v; it is in the wrong list", k.Type, e.Context.Actor, is)
		}
		if is && !acts.Checked(k.Subject) {
			t.Errorf("%s: the doctor does not check the events of a %s", k.Type, k.Subject)
		}
	}
}

// TestHealed: a file that a person has repaired is an act; one that a submission has healed, with
// a reason that nobody gave, is not.
func TestHealed(t *testing.T) {
	f, err := filter.Compile(acts.Definition.Filter)
	if err != nil {
		t.Fatal(err)
	}
	for component, want := range map[string]bool{"replica": true, "store": false} {
		e := did(1, "ann")
		e.Type, e.Subject = "object.repair", envelope.Ref{Type: "Object", ID: "ark:/99999/fk4x"}
		e.Context.Component = component
		if _, is := acts.Of(e); is && f.Match(e) != want {
			t.Errorf("a repair by %s is an act: %v", component, !want)
		}
	}
}
