package table

import (
	"context"

	"github.com/guregu/dynamo/v2"

	"archivist/pkg/kernel/fault"
)

// Change changes one row in one call and reads the new state into row. how sets the change and
// its condition; id is unique to this change, which is made once if the answer is lost, unless
// another comes in between. A Stale means that the condition did not hold; row then has the
// current state.
//
// A row that is missing is made, unless the condition of how requires it. The change is no
// transaction, so it costs half of one. how is called once for each try, so it only sets what
// it is given.
func (t *Table) Change(ctx context.Context, k Key, id string, how func(*dynamo.Update),
	row Row) error {
	return t.retry(ctx, "change "+k.String(), func(ctx context.Context) error {
		u := t.Rows.Update("pk", k.PK).Range("sk", k.SK).Add("rev", 1).Set("wid",
			id).Set(schemaName, Schema)

		// The second condition refuses a repeat of a change whose response was lost: without
		// it, an ADD would count twice.
		how(u.If(notNewer, Schema).If("attribute_not_exists(wid) OR wid <> ?", id))
		var item Item
		err := u.Value(ctx, &item)
		if err == nil {
			return decode(item, row)
		}

		if !isCondition(err) {
			return err
		}

		// The response of an earlier try may have been lost: then the change is ours. If
		// another change came in between, ours cannot be recognized, and is reported as Stale
		// although it was made.
		if err := t.get(ctx, k, row); err != nil || row.head().TxID == id {
			return err
		}
		return &fault.Error{
			Kind: fault.Stale,
			Msg:  "table: changed meanwhile: " + k.String(),
			Err:  &ConditionError{[]Key{k}},
		}
	})
}
