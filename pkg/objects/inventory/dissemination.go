package inventory

import (
	"context"
	"fmt"

	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// disseminated is the row of a file that was given out: the number of its events.
type disseminated struct {
	table.Head
	Number int64 `dynamo:"version"`
}

// disseminations is how often the event of a file is tried, if it is given out several times at
// once. Each time counts the file's row up, so one of two at once is a Stale.
const disseminations = 5

// Disseminated records that a file of a version was given out, as an ephemeral event. It
// changes no row of the object. newID makes ids of transactions; now is in milliseconds since 1970.
func (s Store) Disseminated(ctx context.Context, o *Object, version int, path string,
	newID func() string,
	now int64) (err error) {
	id := fmt.Sprintf("%s/v%d", o.ARK, version)
	file := event.Subject{Type: event.File, ID: id + "/" + path}
	e := event.New{
		Type:      "file.disseminate",
		Time:      now,
		Component: "api",
		Parents: append(o.parents(), envelope.Ref{Type: event.Object.String(), ID: o.ARK},
			envelope.Ref{Type: event.Version.String(), ID: id}),
		Identifiers: []string{file.ID},
	}

	for range disseminations {
		row := disseminated{Head: head(file.Key())}
		err = s.Table.Get(ctx, row.Key(), &row)
		if err != nil && !fault.Is(err, fault.NotFound) {
			return err
		}

		tx := s.Table.Begin(newID())
		row.Number++
		tx.InsertOrSave(&row)
		if err = event.Append(tx, file, row.Number, e); err != nil {
			return err
		}

		err = tx.Commit(ctx)
		if !fault.Is(err, fault.Stale) {
			break
		}
	}
	return err
}
