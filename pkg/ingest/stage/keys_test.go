package stage_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"archivist/pkg/events/event"
	"archivist/pkg/ingest/collection"
	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/pkg/objects/inventory"
)

// partition is every partition key that the system writes: a prefix and an id. So a name
// that a person chooses cannot collide with rows of another kind, or with one of the two
// partitions whose rows are counted.
var partition = regexp.MustCompile(`^((BATCH|JOB|OBJECT|VERSION|COLLECTION|LOCAL|ARK|LOCK|KEY|LEASE|MAIL|NAMED)#.+|SLOT|SPACE|COLLECTIONS)$`)

// TestKeys: after work of every kind, with names chosen to collide, each row is in a
// partition of its kind, and each event is in the partition of its subject.
func TestKeys(t *testing.T) {
	w := newTwins(t)
	fake := tabletest.New()
	w.Machine.Queue.Table = tabletest.Table(fake)
	w.Machine.Scheduler.Leases.Table, w.Stages.Inventory.Table, w.Stages.Collections.Table = w.Machine.Queue.Table,
		w.Machine.Queue.Table,
		w.Machine.Queue.Table
	for _, name := range []string{"SLOT", "SPACE", "JOB", "bench"} {
		if err := w.Stages.Collections.Put(t.Context(), name, collection.Profile{Title: "x"},
			collection.By{Actor: "me"}, 0); err != nil {
			t.Fatal(err)
		}
	}
	w.Ended(w.Submit("a.txt"), 1, false)
	rows, events := map[table.Key]bool{}, 0
	key := func(it tabletest.Item) table.Key {
		pk, _ := it["pk"].(*types.AttributeValueMemberS)
		sk, _ := it["sk"].(*types.AttributeValueMemberS)
		return table.Key{PK: pk.Value, SK: sk.Value}
	}
	for _, it := range fake.All() {
		rows[key(it)] = true
	}
	for k := range rows {
		if !partition.MatchString(k.PK) {
			t.Errorf("the row %s is in no known partition", k)
		}
		if !strings.HasPrefix(k.SK, event.Prefix) {
			continue
		}
		events++
		kind, _, _ := strings.Cut(k.PK, "#")
		subject := table.Key{PK: k.PK, SK: kind}
		if id, version := strings.CutPrefix(k.PK, "VERSION#"); version { // its row is in its object's partition
			ark, n, _ := strings.Cut(id, "/v")
			number, _ := strconv.Atoi(n)
			subject = inventory.VersionKey(ark, number)
		}
		if !rows[subject] {
			t.Errorf("the event %s is in another partition than its subject", k)
		}
	}
	if events == 0 {
		t.Error("no events were written")
	}
	if o, err := w.Machine.Queue.Overview(t.Context()); err != nil || o.Running != 0 {
		t.Errorf("%d of %d slots are still in use, %v", o.Running, o.MaxInFlight, err)
	}
}
