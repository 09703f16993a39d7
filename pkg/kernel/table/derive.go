package table

import (
	"cmp"
	"maps"
	"reflect"
	"slices"

	"github.com/guregu/dynamo/v2"
)

// Owned is a row that follows from another one: its key is a place, e.g. in a line, and Owner says who is at it. Only
// the owner moves it, in the transaction that writes the owner's own row.
type Owned struct {
	Head
	Owner string `dynamo:"owned_by"`
}

// OwnedAt are the rows of an owner at some places.
func OwnedAt(owner string, places ...Key) []Row {
	rows := make([]Row, len(places))
	for i, k := range places {
		rows[i] = &Owned{Head: Head{PK: k.PK, SK: k.SK}, Owner: owner}
	}
	return rows
}

// Derive puts into the transaction that the rows which follow from an owner are those that it has now: was are those
// of its state before the change, is those after it, each computed from the owner alone. Each row has the attribute
// owned_by with the owner. Rows in both are written only if they differ. The commit is a Stale if a row to be removed
// or written is not there or is of another owner, or one to be inserted is there: so nothing is granted or given back
// twice.
func (tx *Tx) Derive(owner string, was, is []Row) {
	before := byKey(was)
	after := byKey(is)
	for _, row := range was {
		if after[row.Key()] == nil {
			tx.RemoveOwned(row.Key(), owner)
		}
	}

	for _, row := range is {
		old := before[row.Key()]
		if old == nil {
			tx.Insert(row)
		} else {
			tx.replace("owned_by = ?", owner, old, row)
		}
	}
}

// ownOrNone is the condition that a row is of an owner, or not there.
const ownOrNone = "attribute_not_exists(pk) OR owned_by = ?"

// Follow is Derive for rows that only list their owner, and grant nothing: one that is missing, or is there already, is
// no Stale. Earlier versions may not have written it. A row of another owner is one.
func (tx *Tx) Follow(owner string, was, is []Row) {
	before, after := byKey(was), byKey(is)
	for _, k := range sortedKeys(before) {
		if after[k] == nil {
			remove := tx.t.Rows.Delete("pk", k.PK).Range("sk", k.SK)
			tx.add(op{key: k, del: remove.If(ownOrNone, owner)})
		}
	}
	for _, k := range sortedKeys(after) {
		tx.replace(ownOrNone, owner, before[k], after[k])
	}
}

func sortedKeys(rows map[Key]Row) []Key {
	return slices.SortedFunc(maps.Keys(rows), func(a, b Key) int {
		return cmp.Or(cmp.Compare(a.PK, b.PK), cmp.Compare(a.SK, b.SK))
	})
}

func byKey(rows []Row) map[Key]Row {
	all := map[Key]Row{}
	for _, r := range rows {
		all[r.Key()] = r
	}
	return all
}

// replace puts an owned row that says something else than before into the transaction; old is nil if there was none.
// Its revision rises, as that of a row that is counted; it was not read. The condition has the owner as its argument.
func (tx *Tx) replace(condition, owner string, old, now Row) {
	var was Item
	if old != nil {
		was = attributes(old)
	}
	is := attributes(now)
	if reflect.DeepEqual(was, is) {
		return
	}

	u := tx.t.Rows.Update("pk", now.Key().PK).Range("sk", now.Key().SK)
	for _, name := range slices.Sorted(maps.Keys(is)) {
		u.Set(name, is[name])
	}
	for _, name := range slices.Sorted(maps.Keys(was)) {
		if is[name] == nil {
			u.Remove(name)
		}
	}

	u.Add("rev", 1).Set("wid", tx.id).Set("schema_no", Schema)
	u.If(condition, owner).If(notNewer, Schema)
	tx.add(op{key: now.Key(), update: u})
}

// ofHead are the attributes of a row's head that each write sets.
var ofHead = []string{"pk", "sk", "rev", "wid", "schema_no"}

// attributes are those of a row that say something. A row that cannot be encoded has none here: Insert reports it.
func attributes(row Row) Item {
	item, _ := dynamo.MarshalItem(row)
	for _, name := range ofHead {
		delete(item, name)
	}
	return item
}

// SameRow reports whether two rows say the same, whoever has written them.
func SameRow(a, b Row) bool { return reflect.DeepEqual(attributes(a), attributes(b)) }
