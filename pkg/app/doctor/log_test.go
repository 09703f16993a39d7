package doctor_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/guregu/dynamo/v2"

	"archivist/pkg/events/consumer"
	"archivist/pkg/events/event"
	"archivist/pkg/events/eventlog"
	"archivist/pkg/ingest/collection"
	"archivist/pkg/kernel/table"
)

func (w *world) log() *eventlog.Log {
	q := w.Machine.Queue
	return &eventlog.Log{Table: q.Table, Now: q.Now, NewID: q.NewID}
}

// sweep gives events their places in the log, as the relay does each minute.
func (w *world) sweep() {
	w.Helper()
	if _, err := w.log().Sweep(w.Context(), w.Machine.Queue.Now().Add(time.Minute)); err != nil {
		w.Fatal(err)
	}
}

// change changes the profile at a time, which writes an event.
func (w *world) change(title string, at time.Time) {
	w.Helper()
	store := collection.Store{Table: w.Machine.Queue.Table, NewID: w.Machine.Queue.NewID}
	if err := store.Put(w.Context(), "bench", collection.Profile{Title: title},
		collection.By{Actor: "me"}, at.UnixMilli()); err != nil {
		w.Fatal(err)
	}
}

// logged is a world with three events of a collection. One consumer has parked them, another
// waits until their key is quiet.
func logged(t *testing.T) *world {
	w := newWorld(t)
	for _, title := range []string{"One", "Two", "Three"} {
		w.change(title, w.now)
	}
	q := w.Machine.Queue
	store := &consumer.Store{Table: q.Table, Log: w.log(), Now: q.Now, NewID: q.NewID, Handlers: []string{"refuses"}}
	refuses := func(_ context.Context, b consumer.Batch) ([]consumer.Failure, error) {
		return []consumer.Failure{{ID: b.Events[0].ID, Reason: "a reason"}}, nil
	}
	run := consumer.Runtime{Store: store, Handlers: map[string]consumer.Handler{
		"refuses": consumer.HandlerFunc(refuses)}}
	waits := consumer.Definition{Name: "waits", Coalesce: &consumer.Coalesce{Debounce: 3600}}
	for _, d := range []consumer.Definition{{Name: "parks"}, waits} {
		d.Filter, d.Target.Handler = "Collection+*", "refuses"
		d.Start, d.Retries = consumer.StartHorizon, consumer.NoRetries
		if _, err := store.Apply(t.Context(), d, consumer.By{Actor: "me"}); err != nil {
			t.Fatal(err)
		}
	}
	w.advance(eventlog.Grace + time.Second)
	w.sweep()
	w.unswept = true
	for _, name := range []string{"parks", "waits"} {
		if _, err := run.Run(t.Context(), name, "bench", w.now.Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// Keys of the world of events.
func eventKey(n int64) table.Key {
	return event.Key(event.Subject{Type: event.Collection, ID: "bench"}, n)
}

func placeKey(n string) table.Key    { return key("LOG#bench", "SEQ#00000000000"+n) }
func cursorOf(name string) table.Key { return key("CONSUMER#"+name, "CURSOR#bench") }

var headOf = key("LOGS", "HEAD#bench")

// keptBy are the rows of the events that a consumer keeps.
func (w *world) keptBy(pk string) (keys []table.Key) {
	w.Helper()
	var rows []table.Head
	if _, err := w.Machine.Queue.Table.Page(w.Context(), table.Query{PK: pk}, &rows); err != nil || len(rows) == 0 {
		w.Fatalf("%d rows of %s, %v", len(rows), pk, err)
	}
	for _, r := range rows {
		keys = append(keys, r.Key())
	}
	return keys
}

func (w *world) parked() []table.Key { return w.keptBy("PARKED#parks#bench") }
func (w *world) waitsFor() table.Key { return w.keptBy("PENDING#waits#bench")[0] }

// found are findings: each an invariant, and the key of the row.
func found(all ...any) func(*world) []string {
	return func(w *world) (out []string) {
		for i := 0; i < len(all); i += 2 {
			switch k := all[i+1].(type) {
			case table.Key:
				out = append(out, all[i].(string)+" "+k.String())
			case func(*world) table.Key:
				out = append(out, all[i].(string)+" "+k(w).String())
			}
		}
		return out
	}
}

func orphans(w *world) []string {
	out := []string{"cursor-consumer " + cursorOf("parks").String()}
	for _, k := range w.parked() {
		out = append(out, "kept-consumer "+k.String())
	}
	return out
}

// trimmed removes the first two places, as an expiry much later does.
func trimmed(w *world) {
	w.drop(placeKey("1"))
	w.drop(placeKey("2"))
	w.set(headOf, "trimmed_seq", num(2))
	w.set(headOf, "trimmed_ms", num(w.now.Add(2*time.Hour).UnixMilli()))
}

// require makes a consumer required.
func (w *world) require(name string) {
	w.Helper()
	var row struct {
		table.Head
		Text string `dynamo:"definition_json"`
	}
	k := key("CONSUMERS", name)
	if err := w.Machine.Queue.Table.Get(w.Context(), k, &row); err != nil {
		w.Fatal(err)
	}
	w.set(k, "definition_json", str(`{"required":true,`+strings.TrimPrefix(row.Text, "{")))
}

// ofLog are the damages of the event log and of consumers.
var ofLog = []damage{
	{"an event at the place of another", func(w *world) { w.set(eventKey(2), "log_seq", num(3)) },
		found("event-place", eventKey(2), "event-order", eventKey(3), "log-event", placeKey("2")), false},
	{"an event that has forgotten its place", func(w *world) {
		w.set(eventKey(2), "log_seq", nil)
		w.set(eventKey(2), "log_name", nil)
	}, found("event-order", eventKey(3), "log-event", placeKey("2")), false},
	{"an event that no sweep finds", func(w *world) {
		w.insert(key("LOGS", "PAST"), "done_ms", num(1))
		w.change("Four", w.now)
		w.set(eventKey(4), "place", nil)
		w.set(eventKey(4), "ranking", nil)
	}, found("event-unplaced", eventKey(4)), true},
	{"an event that was never placed", func(w *world) { w.change("Four", w.now.Add(-24*time.Hour)) },
		found("event-overdue", eventKey(4)), true},
	{"a place that is gone", func(w *world) { w.drop(placeKey("2")) },
		found("event-place", eventKey(2), "log-gap", placeKey("3")), false},
	{"the newest place that is gone", func(w *world) { w.drop(placeKey("3")) },
		found("event-place", eventKey(3), "log-head", headOf), false},
	{"places that are in the archive", func(w *world) {
		w.drop(placeKey("1"))
		w.drop(placeKey("2"))
		w.set(headOf, "trimmed_seq", num(2))
		w.insert(key("LOG#bench", "FILE#000000000001"), "last_seq", num(2))
		w.change("Four", w.now.Add(-24*time.Hour)) // the only finding
	}, found("event-overdue", eventKey(4)), true},
	{"an event of a place that is gone", func(w *world) { w.drop(eventKey(3)) }, func(w *world) []string {
		return []string{"event-last collection:bench", "log-event " + placeKey("3").String(),
			"kept-event " + w.parked()[2].String(), "kept-event " + w.waitsFor().String()}
	}, false},
	{"a cursor beyond the log", func(w *world) { w.set(cursorOf("parks"), "seq", num(9)) },
		found("cursor-beyond", cursorOf("parks")), false},
	{"a head before its newest place", func(w *world) {
		w.set(headOf, "last_seq", num(2))
		for _, name := range []string{"parks", "waits"} {
			w.set(cursorOf(name), "seq", num(2))
			w.set(cursorOf(name), "reset_id", str("by hand"))
		}
	}, found("log-head", headOf), true},
	{"a split log whose partition is open", func(w *world) {
		w.insert(key("LOGS", "LOG#bench"), "log_of", str("bench"), "generation_no", num(1), "parts_count", num(2))
	}, found("log-open", headOf), true},
	{"rows of no consumer", func(w *world) {
		w.drop(key("CONSUMERS", "parks"))
		w.advance(30 * time.Minute)
	}, orphans, false},
	{"rows of a deleted consumer", func(w *world) {
		w.set(key("CONSUMERS", "parks"), "consumer_state", str("deleted"))
		w.advance(30 * time.Minute)
	}, orphans, true},
	{"rows of a replay that has ended", func(w *world) {
		w.insert(key("CONSUMER#parks~r", "CURSOR#bench"), "seq", num(3))
		w.insert(key("REPLAY#r", "REPLAY"), "replay_json", str(`{"state":"done","ended":1}`))
		w.insert(key("PARKED#parks~r#bench", "k"), "why", str("it is broken"))
		w.insert(key("CONSUMER#parks~gone", "CURSOR#bench"), "seq", num(3))
		w.insert(key("CONSUMER#parks~runs", "CURSOR#bench"), "seq", num(3))
		w.insert(key("REPLAY#runs", "REPLAY"), "replay_json", str(`{"state":"running"}`))
	}, found("replay-ended", key("CONSUMER#parks~r", "CURSOR#bench"), "replay-ended",
		key("PARKED#parks~r#bench", "k"), "replay-ended", key("CONSUMER#parks~gone", "CURSOR#bench")), true},
	{"a cursor of a consumer that is being made", func(w *world) {
		w.insert(key("CONSUMER#new", "CURSOR#bench"), "seq", num(3), "moved_ms", num(w.now.UnixMilli()))
		w.change("Four", w.now.Add(-24*time.Hour)) // the only finding
	}, found("event-overdue", eventKey(4)), true},
	{"events in the wrong order", func(w *world) {
		w.set(eventKey(2), "log_seq", num(3))
		w.set(eventKey(3), "log_seq", num(2))
		w.set(placeKey("2"), "version", num(3))
		w.set(placeKey("3"), "version", num(2))
	}, found("event-order", eventKey(3)), false},
	{"an event before one in an earlier part of the log", func(w *world) {
		w.drop(placeKey("3"))
		w.set(headOf, "last_seq", num(2))
		for _, name := range []string{"parks", "waits"} {
			w.set(cursorOf(name), "seq", num(2))
			w.set(cursorOf(name), "reset_id", str("by hand"))
		}
		w.set(eventKey(2), "log_name", str("bench:1:0"))
		w.set(eventKey(3), "log_seq", num(2))
		w.set(placeKey("2"), "version", num(3))
		w.insert(key("LOG#bench:1:0", "SEQ#000000000002"), "subject_type", str("Collection"), "subject_id",
			str("bench"), "version", num(2))
	}, found("event-order", eventKey(3), "log-gap", key("LOG#bench:1:0", "SEQ#000000000002")), false},
	{"an event that has a place, and the one before it none", func(w *world) {
		w.set(eventKey(2), "log_seq", nil)
		w.set(eventKey(2), "log_name", nil)
		w.insert(key("LOGS", "PAST"), "done_ms", num(1))
	}, found("event-order", eventKey(3), "event-unplaced", eventKey(2), "log-event", placeKey("2")), false},
	{"a raised epoch without its event", func(w *world) {
		w.insert(key("LOGS", "EPOCH"), "epoch_no", num(2), "version", num(1))
	}, found("event-last", key("LOGS", "EPOCH")), false},
	{"a staged transaction that nobody finishes", func(w *world) {
		w.insert(key("STAGE#one", "STAGE"), "stage_state", str("committed"), "place", str("staged"),
			"ranking", str("1700000000000"))
	}, found("overdue", key("STAGE#one", "STAGE")), false},
	{"places that were removed before they were archived", trimmed, found("log-archive", headOf), false},
	{"places that a required consumer has not passed", func(w *world) {
		trimmed(w)
		w.insert(key("LOG#bench", "FILE#000000000001"), "last_seq", num(2))
		for _, name := range []string{"parks", "waits"} {
			w.require(name)
		}
		w.set(cursorOf("waits"), "seq", num(1))
		w.drop(w.waitsFor())
		w.set(cursorOf("waits"), "pending", nil)
	}, func(w *world) []string {
		return []string{"log-expired " + headOf.String(), "log-expired " + w.parked()[0].String(),
			"log-expired " + w.parked()[1].String()}
	}, false},
	{"a waiting key without events", func(w *world) { w.set(w.waitsFor(), "refs", nil) },
		found("kept-event", (*world).waitsFor), false},
	{"a cursor that counts fewer parked events", func(w *world) { w.set(cursorOf("parks"), "parked", nil) },
		found("cursor-counts", cursorOf("parks")), true},
	{"a cursor that counts no waiting keys", func(w *world) { w.set(cursorOf("waits"), "pending", nil) },
		found("cursor-counts", cursorOf("waits")), true},
	{"a parked event before the cursor", func(w *world) { w.set(cursorOf("parks"), "seq", num(2)) },
		func(w *world) []string { return []string{"kept-cursor " + w.parked()[2].String()} }, false},
	{"a key that nobody finds when it is quiet", func(w *world) { w.set(w.waitsFor(), "ranking", str("0")) },
		found("index-place", (*world).waitsFor), true},
	{"a key that is quiet for long", func(w *world) { w.now = w.now.Add(3 * time.Hour) },
		found("overdue", (*world).waitsFor), false},
	{"a consumer that was woken and has not run", func(w *world) { w.set(cursorOf("parks"), "woken_ms", num(1)) },
		found("overdue", cursorOf("parks")), false},
}

// placed is the place of an event, whose row may be gone.
func (w *world) placed(k table.Key) string {
	w.Helper()
	for _, row := range w.Rows.All() {
		var is struct {
			table.Head
			Type    string `dynamo:"subject_type"`
			ID      string `dynamo:"subject_id"`
			Version int64  `dynamo:"version"`
		}
		if err := dynamo.UnmarshalItem(row, &is); err != nil {
			w.Fatal(err)
		}
		s := event.Subject{Type: event.Job, ID: is.ID}
		if strings.HasPrefix(is.SK, "SEQ#") && is.Type == s.Type.String() && event.Key(s, is.Version) == k {
			return is.Key().String()
		}
	}
	w.Fatalf("%s has no place", k)
	return ""
}

// TestParkedFile: a file can be parked while others of its version are still being handled.
func TestParkedFile(t *testing.T) {
	w := logged(t)
	w.set(cursorOf("parks"), "seq", num(2))
	w.set(cursorOf("parks"), "files_of", &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{
		"event": &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{"seq": num(3)}}}})
	w.finds(false)
}
