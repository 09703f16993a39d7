package doctor_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"archivist/pkg/events/consumer"
	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/ingest/collection"
	"archivist/pkg/kernel/table"
	"archivist/pkg/views/acts"
	"archivist/pkg/views/history"
)

// recorded is a settled world whose consumer of the record has handled every event.
func recorded(t *testing.T) *world {
	w := settled(t)
	q := w.Machine.Queue
	w.consumed(history.Definition, history.Recorder{Table: q.Table, NewID: q.NewID})
	return w
}

// consumed lets a consumer with a handler of ours handle every event.
func (w *world) consumed(d consumer.Definition, h consumer.Handler) {
	w.Helper()
	q := w.Machine.Queue
	store := &consumer.Store{Table: q.Table, Log: w.log(), Now: q.Now, NewID: q.NewID, Handlers: []string{d.Name}}
	run := consumer.Runtime{Store: store, Handlers: map[string]consumer.Handler{d.Name: h}}
	if _, err := store.Apply(w.Context(), d, consumer.By{Actor: "me"}); err != nil {
		w.Fatal(err)
	}
	all, err := w.log().Partitions(w.Context())
	if err != nil || len(all) == 0 {
		w.Fatalf("%d partitions, %v", len(all), err)
	}
	for _, p := range all {
		if _, err := run.Run(w.Context(), d.Name, p.Name, q.Now().Add(time.Minute)); err != nil {
			w.Fatal(err)
		}
	}
}

// ofRecord are the rows of the object's record.
func (w *world) ofRecord() (keys []table.Key) {
	w.Helper()
	keys = w.keptBy("HISTORY#" + w.object)
	if len(keys) < 4 { // of the object, and of its two versions
		w.Fatalf("the record has %d events", len(keys))
	}
	return keys
}

// TestRecord: an event that the record of its object lacks is found and recorded again, as it was. What its consumer
// has not passed yet is no finding.
func TestRecord(t *testing.T) {
	w := recorded(t)
	w.finds(false)
	lost := w.ofRecord()[1]
	before := w.Rows.Row(lost)["event_json"].(*types.AttributeValueMemberS).Value
	var e envelope.Event
	if err := json.Unmarshal([]byte(before), &e); err != nil {
		t.Fatal(err)
	}
	w.drop(lost)
	want := "record-event " + key(strings.ToUpper(e.Subject.Type)+"#"+e.Subject.ID,
		fmt.Sprintf("%s%012d", event.Prefix, e.Version)).String()
	if found := w.finds(false, want); len(found) != 1 || found[0].Repaired {
		t.Fatalf("%+v", found)
	}
	w.repairs([]string{want})
	w.finds(false)
	if is := w.Rows.Row(lost)["event_json"].(*types.AttributeValueMemberS).Value; is != before {
		t.Errorf("recorded as %s, was %s", is, before)
	}

	w.drop(lost)
	w.set(key("CONSUMER#"+history.Name, "CURSOR#"+e.Partition), "seq", num(e.Seq-1))
	w.finds(false)
}

// TestActs: an act that a list of what people did lacks is found, and recorded again as it was.
func TestActs(t *testing.T) {
	w := settled(t)
	q := w.Machine.Queue
	profiles := collection.Store{Table: q.Table, NewID: q.NewID}
	if err := profiles.Put(t.Context(), "acted", collection.Profile{Title: "t"}, collection.By{Actor: "ann"},
		q.Now().UnixMilli()); err != nil {
		t.Fatal(err)
	}
	subject := event.Subject{Type: event.Collection, ID: "acted"}
	if _, err := w.log().Place(t.Context(), []event.Subject{subject}); err != nil {
		t.Fatal(err)
	}
	w.consumed(acts.Definition, acts.Recorder{Table: q.Table, NewID: q.NewID})
	w.finds(false)
	for _, list := range []string{"ACTS#all", "ACTSOF#ann"} {
		i := slices.IndexFunc(w.keptBy(list), func(k table.Key) bool {
			return strings.Contains(w.Rows.Row(k)["event_json"].(*types.AttributeValueMemberS).Value, "acted")
		})
		if i < 0 {
			t.Fatalf("%s does not have the act", list)
		}
		lost := w.keptBy(list)[i]
		w.drop(lost)
		want := "act " + event.Key(subject, 1).String()
		w.finds(false, want)
		w.repairs([]string{want})
		w.finds(false)
		if w.Rows.Row(lost) == nil {
			t.Errorf("%s: not recorded again", list)
		}
	}
}
