package doctor

import (
	"context"
	"strings"

	"archivist/pkg/components/component"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/table"
)

// componentKinds are the kinds of rows of components.
var componentKinds = []kind{
	{pk: "COMPONENTS", sk: "#HEAD", check: checkRegistry},
	{pk: "COMPONENTS"},
	{pk: "COMPONENTEPOCH", sk: "EPOCH"},
	{pk: "COMPONENTITEM", sk: "COMPONENTITEM", check: checkItem},
	{pk: "LINE", check: checkLineRow},
	{pk: "COMPONENTRUNS"},
	{pk: "RUN", expires: true},
}

func (x *rowCheck) components() *component.Store {
	return &component.Store{Table: x.Queue.Table, Now: x.Queue.Now, NewID: x.Queue.NewID}
}

// checkRegistry checks the copies of the epoch of components' definitions. Without its own no new item of a part could
// be made.
func checkRegistry(ctx context.Context, x *rowCheck) error {
	s := x.components()
	wrong, err := s.ExamineEpochs(ctx)
	if wrong != "" {
		x.add("component-epoch", "", s.RepairEpochs, "%s", wrong)
	}
	return err
}

// checkItem checks that an item is at the places in the lines of components that follow from
// its events. The places follow from the item's events and the definitions of components
// alone; Examine folds the events anew and compares.
func checkItem(ctx context.Context, x *rowCheck) error {
	var row struct {
		table.Head
		Number int64 `dynamo:"version"`
	}

	if !x.decode(&row) {
		return nil
	}

	_, id, _ := strings.Cut(x.PK, "#")
	x.subject = id
	if err := x.history(ctx, subjectOf(event.Item, id), row.Number, ""); err != nil {
		return err
	}

	s := x.components()
	wrong, err := s.Examine(ctx, id)
	if wrong != "" {
		x.add("item-place", "", func(ctx context.Context) error { return s.Repair(ctx, id) }, "%s", wrong)
	}
	return err
}

// checkLineRow checks that a row of a component's line is where its item is. checkItem looks
// from the item to its rows in lines; this finds rows that no item has any more. To remove
// one takes no work away: an item that is due has its row, or checkItem says so.
func checkLineRow(ctx context.Context, x *rowCheck) error {
	var head table.Head
	if !x.decode(&head) {
		return nil
	}

	wrong, err := x.components().ExamineRow(ctx, x.Key)
	if wrong != "" {
		x.add("line-row", "", func(ctx context.Context) error {
			return x.commit(ctx, func(tx *table.Tx) { tx.Remove(&head) })
		}, "%s", wrong)
	}
	return err
}
