package inventory_test

import (
	"strings"
	"testing"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/pkg/objects/inventory"
)

// TestLongestLocalID: the longest local id of the collection with the longest name
// fits into the keys of its row, of its lock and of the queue for the lock.
func TestLongestLocalID(t *testing.T) {
	const most = 2048 // bytes of a partition key (DynamoDB, "Service quotas")
	id := strings.Repeat("ü", ingest.MaxLocalIDBytes/2)
	if err := ingest.CheckLocalID(id); err != nil {
		t.Fatal(err)
	}
	o := inventory.Object{ARK: "ark:/99999/fk4tq65d6k", Collection: strings.Repeat("c", 100), LocalIDs: []string{id},
		HeadOf: 1, Digest: "d"}
	rows := tabletest.New()
	store := inventory.Store{Table: tabletest.Table(rows)}
	put, err := store.Prepare(t.Context(), inventory.Record{Object: o, First: "job"}, 1)
	if err != nil {
		t.Fatal(err)
	}
	tx := store.Table.Begin("1")
	if err := put(tx); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if ark, err := store.ByLocalID(t.Context(), o.Collection, id); err != nil || ark != o.ARK {
		t.Errorf("found %q, %v", ark, err)
	}
	key := table.Key{PK: "LOCAL#" + o.Collection + "#" + id, SK: "LOCAL"}
	if rows.Row(key) == nil || len(key.PK) > most {
		t.Errorf("the key of the row has %d bytes, or is another", len(key.PK))
	}
	j := ingest.Job{Collection: o.Collection, LocalIDs: o.LocalIDs}
	if lock := queue.LockKey(j.LockKeys()[0]); len(lock.PK) > most {
		t.Errorf("the key of the lock has %d bytes", len(lock.PK))
	}
}
