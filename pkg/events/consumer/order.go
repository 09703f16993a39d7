package consumer

import "slices"

// order is what a person wants to be done with parked events. A run does it: only runs write the
// rows of parked events. It is done in two parts: first its keys are found, and what it discards is
// removed, then the keys are redriven.
type order struct {
	ID string `dynamo:"id"`

	// Discard: the selected rows are removed first; then those behind them are redriven.
	Discard bool      `dynamo:"discard,omitempty"`
	Select  Selection `dynamo:"select_what"`

	// Keys are the hashes of the keys to be redriven, complete once Known is set.
	Keys  []string `dynamo:"order_keys,omitempty"`
	Known bool     `dynamo:"known,omitempty"`
}

// Selection selects parked events. Exactly one field is set.
type Selection struct {
	All    bool   `dynamo:"all_of,omitempty" json:"all,omitempty"`
	Event  string `dynamo:"event_id,omitempty" json:"event,omitempty"` // the id of one
	Filter string `dynamo:"filter_text,omitempty" json:"filter,omitempty"`
}

// equals reports whether another order, that has not begun, does the same: then it need not be
// given again. One that has begun may have passed what is parked since.
func (o order) equals(other order) bool {
	return o.Select == other.Select && o.Discard == other.Discard && !other.Known
}

// without returns the orders but that one; it leaves the slice of the row as it is, since a write
// may be repeated.
func without(orders []order, id string) []order {
	return slices.DeleteFunc(slices.Clone(orders), func(o order) bool { return o.ID == id })
}

// String describes the selection, for the consumer's event. It is stored there, so the texts stay.
func (sel Selection) String() string {
	switch {
	case sel.Event != "":
		return "event " + sel.Event
	case sel.Filter != "":
		return "filter " + sel.Filter
	}
	return "all"
}

// maxOrders is how many orders can wait in one partition: they are on the cursor's row.
const maxOrders = 10
