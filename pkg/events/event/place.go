package event

import (
	"fmt"
	"hash/fnv"

	"archivist/pkg/kernel/table"
)

// UnplacedShards is the number of partitions of the index "work" that list the events without
// a place in the log. Each takes about 500 events per second.
const UnplacedShards = 8

// Unplaced is the partition of one shard of the events without a place, in the index "work". They
// are in order of time.
func Unplaced(shard int) string { return fmt.Sprintf("unplaced#%d", shard) }

// UnplacedAt begins the places of events of a time, in milliseconds since 1970: thirteen digits,
// which sort as times do.
func UnplacedAt(ms int64) string { return fmt.Sprintf("%013d", ms) }

// wait puts a new event into the index "work", where the relay's sweep finds it until it has a
// place in the log. The events of a subject are in one shard.
func (r *Row) wait() {
	h := fnv.New32a()
	h.Write([]byte(r.PK))
	r.WorkPK = Unplaced(int(h.Sum32() % UnplacedShards))
	r.WorkSK = UnplacedAt(r.Time)
}

// SetPlace puts into tx that an event has got its place in the log, and takes it out of the index
// of those that wait. The row stays the proof of the transaction that wrote it: its revision and
// transaction do not change. The commit fails if the event has a place already, or is not there: so
// no event is placed twice.
func SetPlace(tx *table.Tx, k table.Key, partition string, seq int64) {
	tx.Amend(k, "attribute_exists(pk) AND attribute_not_exists(log_seq)",
		map[string]any{"log_name": partition, "log_seq": seq}, "place", "ranking")
}
