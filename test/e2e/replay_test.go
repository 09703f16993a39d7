package e2e

import (
	"slices"
	"strconv"
	"testing"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/events/consumer"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/views/search"
)

// TestReplays: a replay calls its consumer again, marked, and a consumer that sends mail is not
// replayed; a rebuild of a search index that is lost gives the same answers.
func TestReplays(t *testing.T) {
	begin(t)
	target := own(t)
	const filter = "Object+Create{parent=replays}"
	apply(t, consumer.Definition{Name: "replayed", Filter: filter, Target: target})
	apply(t, consumer.Definition{Name: "mailer", Filter: filter, Target: target, IgnoreReplays: true})
	ark := preserve(t, "replays", newSource(t), "/replays.txt").Identifiers.Primary
	finds := func() []string {
		page, err := client.Search(t.Context(), "collection:replays", search.ByTitle, 10)
		if err != nil {
			t.Fatal(err)
		}
		var arks []string
		for _, o := range page.Items {
			arks = append(arks, o.ARK)
		}
		return arks
	}
	until(t, "both were called, and the object is found", soon, func() bool {
		return len(subjects(t, "replayed")) > 0 && len(subjects(t, "mailer")) > 0 && slices.Contains(finds(), ark)
	})
	before, mails := finds(), len(calls(t, "mailer"))

	_, err := client.StartReplay(t.Context(), "mailer", v1.ReplayRequest{Reason: "a test"}, "")
	if !fault.Is(err, fault.Conflict) {
		t.Errorf("a replay that would send mail: %v", err)
	}
	replay, err := client.StartReplay(t.Context(), "replayed", v1.ReplayRequest{Partition: "replays", Reason: "a test"},
		"")
	if err != nil {
		t.Fatal(err)
	}
	lose(t, table.Key{PK: "SEARCH#objects", SK: "SNAPSHOT"})
	if left := finds(); len(left) > 0 {
		t.Errorf("without an index, %v are found", left)
	}
	rebuild, err := client.StartReplay(t.Context(), search.Name, v1.ReplayRequest{Rebuild: true, Reason: "a test"}, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []v1.Replay{replay, rebuild} {
		until(t, "the replay of "+r.Consumer+" is done", soon, func() bool {
			r, err = client.Replay(t.Context(), r.ID)
			return err == nil && r.State == v1.ReplayDone
		})
		if r.Failed > 0 {
			t.Errorf("%+v", r)
		}
	}
	again := 0
	for _, b := range calls(t, "replayed") {
		if b.Replay && b.Events[0].Subject.ID == ark {
			again++
		}
	}
	if again == 0 || len(calls(t, "mailer")) != mails {
		t.Errorf("%d calls in the replay; %d mails, before %d", again, len(calls(t, "mailer")), mails)
	}
	if after := finds(); !slices.Equal(after, before) {
		t.Errorf("the index finds %v, before %v", after, before)
	}
}

// lose removes a row, also one that the system writes meanwhile.
func lose(t *testing.T, k table.Key) {
	t.Helper()
	until(t, k.String()+" is removed", soon, func() bool {
		var h table.Head
		if err := rows().Get(t.Context(), k, &h); err != nil {
			t.Fatal(err)
		}
		tx := rows().Begin(t.Name() + strconv.FormatInt(h.Rev, 10))
		tx.Remove(&h)
		err := tx.Commit(t.Context())
		if err != nil && !fault.Is(err, fault.Stale) {
			t.Fatal(err)
		}
		return err == nil
	})
}
