package stage_test

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"strings"
	"testing"
	"time"

	"archivist/pkg/events/consumer"
	"archivist/pkg/events/envelope"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/collection"
	"archivist/pkg/ingest/ezid"
	"archivist/pkg/ingest/ezid/ezidtest"
	"archivist/pkg/ingest/queue/queuetest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/fetch"
	"archivist/pkg/objects/inventory"
)

// registered are deposits into a collection whose ARKs are registered at a server.
type registered struct {
	*deposits
	*ezid.Registry
	server *ezidtest.Server
	now    *time.Time
}

func newRegistered(t *testing.T) registered {
	d, server, now := newDeposits(t), ezidtest.New(t), time.Now()
	d.clock(&now)
	d.files["/a.txt"] = []byte("x")
	client := *d.Stages.Fetch
	client.Wait = func(context.Context, time.Duration) error { return nil }
	access := fetch.Access{Authorize: func(_ context.Context, u *url.URL) (string, error) {
		return fetch.Authorization(server.Secret(), u)
	}}
	r := &ezid.Registry{Client: &ezid.Client{HTTP: client.With(access), URL: server.URL},
		Collections: d.Stages.Collections, Inventory: d.Stages.Inventory, Root: d.Stages.Root, Queue: d.Machine.Queue,
		Target: "https://example.org"}
	d.Stages.Register, d.Stages.Collections.EZID = r.Reserve, true
	p := collection.Profile{Register: collection.RegisterEZID}
	if err := d.Stages.Collections.Put(t.Context(), "bench", p,
		collection.By{Actor: "me"}, time.Now().UnixMilli()); err != nil {
		t.Fatal(err)
	}
	return registered{d, r, server, &now}
}

// deposit submits a file, until its job is Completed.
func (r registered) deposit(title string) ingest.Job {
	r.Helper()
	b := r.submit(ingest.Payload{URL: r.Source.URL + "/a.txt", Type: ingest.TypeFile, Filename: "a.txt"},
		func(b *ingest.Batch) { b.Metadata.What = title })
	for range 10 {
		j, err := r.Machine.Queue.Job(r.Context(), ingest.JobID(b.ID, 1))
		if err != nil {
			r.Fatal(err)
		}
		if j.State == ingest.Completed {
			return j.Job
		}
		if j.State != ingest.Failed { // its step is tried again
			*r.now = r.now.Add(time.Hour)
			r.Drive()
			continue
		}
		if !strings.Contains(j.Message, "EZID") && !strings.Contains(j.Message, r.server.URL) {
			r.Fatalf("%s: %s", j.State, j.Message)
		}
		if _, err := queuetest.Requeue(r.Context(), r.Machine.Queue, j.Job.ID, "again", "me"); err != nil {
			r.Fatal(err)
		}
		r.Drive()
	}
	r.Fatal("the job is never Completed")
	return ingest.Job{}
}

// handle gives an event to the consumer until it is handled.
func (r registered) handle(kind, id string, identifiers ...string) {
	r.Helper()
	e := envelope.Event{ID: id, Subject: envelope.Ref{Type: kind, ID: id}, Identifiers: identifiers}
	for range 10 {
		failed, err := r.Registry.Handle(r.Context(), consumer.Batch{Events: []consumer.Item{{Event: e}}})
		if err == nil && len(failed) == 0 {
			return
		}
		if err != nil && !fault.Is(err, fault.Unavailable) || len(failed) > 0 {
			r.Fatalf("%s %s: %v, %v", kind, id, failed, err)
		}
	}
	r.Fatalf("the event of %s is never handled", id)
}

// withdraw withdraws an object.
func (r registered) withdraw(ark string) {
	r.Helper()
	o, err := r.Inventory.Object(r.Context(), ark)
	if err != nil {
		r.Fatal(err)
	}
	o.Withdrawal = &inventory.Decision{Reason: "test", At: "2026-11-29T00:00:00Z"}
	tx := r.Inventory.Table.Begin("withdraw" + ark)
	tx.Save(o)
	if err := tx.Commit(r.Context()); err != nil {
		r.Fatal(err)
	}
}

// unused reserves an ARK for a job that is over before it stores anything.
func (r registered) unused(ark string) {
	r.Helper()
	j := &ingest.Job{ID: "GONE-00001", Collection: "bench", Primary: ark}
	tx := r.Inventory.Table.Begin("unused" + ark)
	inventory.Reserve(tx, ark, "bench", j.ID)
	if err := tx.Commit(r.Context()); err != nil {
		r.Fatal(err)
	}
	for range 10 {
		refused, err := r.Reserve(r.Context(), j, true)
		if refused == "" && err == nil {
			return
		}
	}
	r.Fatalf("%s is never reserved", ark)
}

// play plays the life of ARKs: of an object that is withdrawn once it is public, of one that is withdrawn before, of
// one that is neither, and one that is never used. It returns what EZID should have in the end.
func (r registered) play() map[string]map[string]string {
	r.Helper()
	const never = "ark:/99999/fk4tq65d6k"
	first, early, second := r.deposit("One: 100%"), r.deposit("Early"), r.deposit("Two")
	r.withdraw(early.Primary)
	r.unused(never)
	r.handle("Object", first.Primary)
	r.handle("Object", early.Primary)
	r.handle("Object", second.Primary)
	r.withdraw(first.Primary)
	r.handle("Object", first.Primary)
	r.handle("Job", "GONE-00001", "local", never)
	is := func(j ingest.Job, status, title string) map[string]string {
		return map[string]string{"_status": status, "_target": "https://example.org/" + j.Primary, "_profile": "erc",
			"_owner": "archive", "archivist.job": j.ID, "erc": "who: (:unkn)\nwhat: " + title + "\nwhen: (:unkn)"}
	}
	return map[string]map[string]string{first.Primary: is(first, ezid.Unavailable, "One: 100%"),
		early.Primary: is(early, ezid.Unavailable, "Early"), second.Primary: is(second, "public", "Two")}
}

func (r registered) compare(want map[string]map[string]string) {
	r.Helper()
	got := r.server.Identifiers()
	if !maps.EqualFunc(got, want, func(a, b map[string]string) bool { return maps.Equal(a, b) }) {
		r.Errorf("EZID has\n%v\nwant\n%v", got, want)
	}
}

// TestEZID: ARKs are reserved by their job before anything is stored, public with their description when an object has
// them, unavailable when it is withdrawn, and deleted when nothing will have them; repeating any of it changes nothing.
func TestEZID(t *testing.T) {
	r := newRegistered(t)
	r.server.Fail(nil)
	want := r.play()
	r.compare(want)
	calls := len(r.server.Calls())
	for ark := range want {
		r.handle("Object", ark)
	}
	r.handle("Job", "GONE-00001", "ark:/99999/fk4tq65d6k")
	r.compare(want)
	if again := r.server.Calls()[calls:]; len(again) != 4 || strings.Contains(fmt.Sprint(again), "PUT") {
		t.Errorf("what was right already was changed: %v", again)
	}

	// An update, and a collection that does not register, need no EZID.
	r.server.Fail(func(int) ezidtest.Failure { return ezidtest.Broken })
	b := r.submit(ingest.Payload{URL: r.Source.URL + "/a.txt", Type: ingest.TypeFile, Filename: "b.txt"},
		func(b *ingest.Batch) { b.Primary = firstOf(want) })
	if j, err := r.Machine.Queue.Job(t.Context(), ingest.JobID(b.ID, 1)); err != nil || j.State != ingest.Completed {
		t.Errorf("a new version: %v, %s: %s", err, j.State, j.Message)
	}
}

func firstOf(all map[string]map[string]string) (least string) {
	for ark := range all {
		if least == "" || ark < least {
			least = ark
		}
	}
	return least
}

// TestEZIDFails: the server dies in the middle of any call, is overloaded, fails, once or until EZID is given up for a
// while: no identifier is there twice or left, and none is lost.
func TestEZIDFails(t *testing.T) {
	r := newRegistered(t)
	r.server.Fail(nil)
	r.play()
	calls := len(r.server.Calls())
	if calls < 15 {
		t.Fatalf("only %d calls", calls)
	}
	for _, failure := range ezidtest.Failures {
		for _, long := range []int{1, 4} {
			for at := range calls {
				r := newRegistered(t)
				r.server.Fail(func(call int) ezidtest.Failure {
					if call >= at && call < at+long {
						return failure
					}
					return ""
				})
				r.compare(r.play())
				if t.Failed() {
					t.Fatalf("%s at call %d, %d times", failure, at, long)
				}
			}
		}
	}
}

// TestForeignReservation: an ARK that was drawn, and that somebody else has at EZID, is not used; one that the
// depositor gave is.
func TestForeignReservation(t *testing.T) {
	r := newRegistered(t)
	draw := r.Stages.Draw
	r.Stages.Draw = func(string, int) func(int) int { return draw("always the same", 0) }
	first := r.deposit("One")

	other := newRegistered(t)
	other.Stages.Draw = r.Stages.Draw
	other.server.Put(first.Primary, map[string]string{"_status": "reserved", "_owner": "archive"})
	b := other.submit(ingest.Payload{URL: other.Source.URL + "/a.txt", Type: ingest.TypeFile, Filename: "a.txt"})
	j, err := other.Machine.Queue.Job(t.Context(), ingest.JobID(b.ID, 1))
	if err != nil || j.State != ingest.Failed ||
		!strings.Contains(j.Message, first.Primary+" is registered at EZID already, and not by this job") {
		t.Errorf("%v, %s: %s", err, j.State, j.Message)
	}
	if o, err := other.Inventory.Object(t.Context(), first.Primary); !fault.Is(err, fault.NotFound) {
		t.Errorf("%+v is stored", o)
	}

	other.Stages.Draw = draw
	b = other.submit(ingest.Payload{URL: other.Source.URL + "/a.txt", Type: ingest.TypeFile, Filename: "a.txt"},
		func(b *ingest.Batch) { b.Primary = first.Primary })
	j, err = other.Machine.Queue.Job(t.Context(), ingest.JobID(b.ID, 1))
	if err != nil || j.State != ingest.Completed || j.Primary != first.Primary {
		t.Errorf("a given ARK: %v, %s: %s", err, j.State, j.Message)
	}
}
