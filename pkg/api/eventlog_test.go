package api_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/events/event"
	"archivist/pkg/events/eventlog"
	"archivist/pkg/ingest/collection"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/fault"
)

// placed writes n events of a collection and places them in the log.
func placed(t *testing.T, q *queue.Queue, name string, n int) {
	t.Helper()
	profiles := collection.Store{Table: q.Table, NewID: q.NewID}
	for i := range n {
		p := collection.Profile{Title: fmt.Sprint(i)}
		if err := profiles.Put(t.Context(), name, p, collection.By{Actor: "me"}, int64(i)); err != nil {
			t.Fatal(err)
		}
	}
	log := &eventlog.Log{Table: q.Table, Now: q.Now, NewID: q.NewID}
	if _, err := log.Place(t.Context(), []event.Subject{{Type: event.Collection, ID: name}}); err != nil {
		t.Fatal(err)
	}
}

// versions are those of events, in their order.
func versions(all []v1.LogEvent) (out []int64) {
	for _, e := range all {
		out = append(out, e.Version)
	}
	return out
}

// upTo are the numbers from 1 to n.
func upTo(n int64) (out []int64) {
	for i := range n {
		out = append(out, i+1)
	}
	return out
}

// TestLogEvents: a log of several pages is listed by subject and by partition in order, by
// collection the newest first, each event once.
func TestLogEvents(t *testing.T) {
	c, q := serve(t, through)
	const n = 230
	placed(t, q, "maps", n)
	placed(t, q, "other", 2)
	for name, f := range map[string]v1.EventFilter{
		"subject":     {Subject: "collection:maps"},
		"partition":   {Partition: "maps"},
		"collection":  {Collection: "maps"},
		"with filter": {Collection: "maps", Filter: "Collection+Modify_Metadata{property=title}:Collection+create"},
	} {
		all, err := c.LogEvents(t.Context(), f)
		got := versions(all.Items)
		if f.Collection != "" {
			slices.Reverse(got)
		}
		if err != nil || !slices.Equal(got, upTo(n)) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
		if f.Partition != "" && all.After != n {
			t.Errorf("the partition was read up to %d", all.After)
		}
	}
	if all, err := c.LogEvents(t.Context(), v1.EventFilter{Collection: "maps", Limit: 3}); err != nil ||
		!slices.Equal(versions(all.Items), []int64{n, n - 1, n - 2}) {
		t.Errorf("the newest: %v, %v", versions(all.Items), err)
	}
}

// TestFollowPartition: what is added later is read from the place up to which the partition was
// read, also if the filter selects nothing.
func TestFollowPartition(t *testing.T) {
	c, q := serve(t, through)
	placed(t, q, "maps", 3)
	none := v1.EventFilter{Partition: "maps", Filter: "Object+*"}
	all, err := c.LogEvents(t.Context(), none)
	if err != nil || len(all.Items) != 0 || all.After != 3 {
		t.Fatalf("%+v, %v", all, err)
	}
	placed(t, q, "maps", 1)
	all, err = c.LogEvents(t.Context(), v1.EventFilter{Partition: "maps", After: all.After})
	if err != nil || !slices.Equal(versions(all.Items), []int64{4}) || all.After != 4 ||
		all.Items[0].Seq != 4 {
		t.Errorf("%+v, %v", all, err)
	}
}

// TestLogEvent: one event says all that is known of it; events that do not exist are not found.
func TestLogEvent(t *testing.T) {
	c, q := serve(t, through)
	placed(t, q, "maps", 2)
	e, err := c.LogEvent(t.Context(), "Collection:maps", 2)
	if err != nil || string(e.Before) != `{"title":"0"}` || string(e.After) != `{"title":"1"}` ||
		e.Time != "1970-01-01T00:00:00.001Z" || e.Context.Actor != "me" || e.Action != "modify-metadata" ||
		e.Partition != "maps" || e.Seq != 2 {
		t.Errorf("%+v, %v", e, err)
	}
	if _, err := c.LogEvent(t.Context(), "Collection:maps", 3); !fault.Is(err, fault.NotFound) {
		t.Errorf("a missing event: %v", err)
	}
	parts, err := c.LogPartitions(t.Context())
	if err != nil || len(parts) != 1 || parts[0].Name != "maps" || parts[0].Head != 2 {
		t.Errorf("partitions %+v, %v", parts, err)
	}
}

// TestBadEventQuery: a query that selects nothing for certain is refused, and the refusal says why.
func TestBadEventQuery(t *testing.T) {
	c, q := serve(t, through)
	placed(t, q, "maps", 1)
	for says, f := range map[string]v1.EventFilter{
		"only one of them": {Collection: "maps", Subject: "Job:1"},
		"the types are":    {Subject: "Thing:1"},
		"expected TYPE:ID": {Subject: "Job:"},
		"column 8":         {Collection: "maps", Filter: "Object+nothing"},
	} {
		_, err := c.LogEvents(t.Context(), f)
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, expected %q", f, err, says)
		}
	}
	if _, err := c.LogEvents(t.Context(), v1.EventFilter{Partition: "none"}); !fault.Is(err, fault.NotFound) {
		t.Errorf("a missing partition: %v", err)
	}
}

// TestPresentedEvents: with a filter, events are listed as consumers see them: an object is also its
// addition to the collection, and a version stands for its files.
func TestPresentedEvents(t *testing.T) {
	c, q := serve(t, through)
	record(t, q, 1, "J-1")
	recordVersion(t, q, 1, "J-1")
	log := &eventlog.Log{Table: q.Table, Now: q.Now, NewID: q.NewID}
	const ark = "ark:/99999/fk4x"
	for _, s := range []event.Subject{{Type: event.Object, ID: ark}, {Type: event.Version, ID: ark + "/v1"}} {
		if _, err := log.Place(t.Context(), []event.Subject{s}); err != nil {
			t.Fatal(err)
		}
	}
	for filter, want := range map[string]string{
		"":                              "object.create version.create",
		"Object+Create":                 "object.create",
		"Collection+Add":                "collection.add",
		"*+*":                           "object.create collection.add version.create",
		"Bitstream+Create":              "version.create",
		"File+Disseminate":              "",
		"File+Create{id=" + ark + "2*}": "",
	} {
		all, err := c.LogEvents(t.Context(), v1.EventFilter{Partition: "maps", Filter: filter})
		var types []string
		for _, e := range all.Items {
			types = append(types, e.Type)
		}
		if got := strings.Join(types, " "); got != want || err != nil {
			t.Errorf("%q: %s, %v; expected %s", filter, got, err, want)
		}
	}
	page, err := c.LogEvents(t.Context(), v1.EventFilter{Subject: "Object:" + ark, Filter: "Collection+Add"})
	all := page.Items
	if err != nil || len(all) != 1 || all[0].Subject.ID != "maps" || all[0].Objects[0].ID != ark {
		t.Errorf("by subject: %+v, %v", all, err)
	}
}

// TestRaiseEpoch: the epoch of the log is raised once for a request, with an event; a reason is
// needed, and another action is refused.
func TestRaiseEpoch(t *testing.T) {
	c, _ := serve(t, through)
	in := v1.EventLogAction{Action: "raise-epoch", Reason: "restored"}
	for range 2 {
		r, err := c.ActOnEventLog(t.Context(), in, "k1")
		if err != nil || r.Epoch != 2 || r.Action != in.Action || !strings.Contains(r.Summary, "the epoch 2.") {
			t.Errorf("%+v, %v", r, err)
		}
	}
	list, err := c.LogEvents(t.Context(), v1.EventFilter{Subject: "Queue:log"})
	if err != nil || len(list.Items) != 1 || list.Items[0].Type != v1.EventEpochRaised {
		t.Errorf("%+v, %v", list, err)
	}
	for _, in := range []v1.EventLogAction{{Action: "raise-epoch"}, {Action: "lower-epoch", Reason: "restored"}} {
		if _, err := c.ActOnEventLog(t.Context(), in, "k2"); !fault.Is(err, fault.Invalid) {
			t.Errorf("%+v: %v", in, err)
		}
	}
}
