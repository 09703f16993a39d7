package queue

import (
	"context"
	"fmt"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/explain"
	"archivist/pkg/kernel/table"
)

// ExplainOperation explains what a bulk operation waits for. A missing one is a NotFound.
func (q *Queue) ExplainOperation(ctx context.Context, id string) (explain.Explanation, error) {
	row, err := q.Operation(ctx, id)
	if err != nil {
		return explain.Explanation{}, err
	}

	o := &row.Operation
	var x explain.Part
	done := fmt.Sprintf("%s done, %s refused", ingest.Number(o.Tally.Done), ingest.Number(o.Tally.Refused))
	if o.Name == ingest.ActDoctor {
		done = fmt.Sprintf("%s checked, %s found", ingest.Number(o.Tally.Checked), ingest.Number(o.Tally.Findings))
	}

	switch {
	case o.State == ingest.OperationInterrupted:
		x = says(explain.Person, fmt.Sprintf("A person has interrupted it: %s.", done), continues(id))
	case o.State == ingest.OperationDone:
		x = says(explain.Nothing, fmt.Sprintf("It has ended: %s.", done))
	case o.Blocked != "":
		x = says(explain.Person, fmt.Sprintf("It does not go on; an operator must correct this: %s It then continues "+
			"by itself.", sentence(o.Blocked)))
		x.Until = o.Due
	case o.Planning:
		x = says(explain.Worker, fmt.Sprintf("It lists what it acts on: %s so far.", ingest.Number(o.Tally.Planned)))
	default:
		x = says(explain.Worker, fmt.Sprintf("It is under way: %s.", done))
	}

	x.Kind, x.ID, x.State, x.Since = explain.Operation, id, string(o.State), o.Created
	if o.State == ingest.OperationRunning {
		x.Add("execution", row.RunBy())
		x.Add("reached", o.Cursor)
		x.Do = append(x.Do, explain.Step{What: "Interrupt it",
			Command: "archivist operation interrupt " + id + " --reason TEXT"})
	}
	return explain.Only(x), nil
}

// continues is how a person lets an interrupted operation go on.
func continues(id string) explain.Step {
	return explain.Step{What: "Continue the operation",
		Command: "archivist operation continue " + id + " --reason TEXT"}
}

// ExplainCollection explains whether a collection is held. One that nobody has used yet is explained, too.
func (q *Queue) ExplainCollection(ctx context.Context, name string) (explain.Explanation, error) {
	h, err := q.hold(ctx, collectionTarget(name))
	x := says(explain.Nothing, "Its submissions are worked on.")
	if h != nil {
		x = says(explain.Hold, capital(untilReleased("jobs", h, true)), ends(h))
		x.Since, x.Until = h.Since, h.Until
	}
	x.Kind, x.ID = explain.Collection, name
	return explain.Only(x), err
}

// ExplainObject explains which job changes an object, or is to change it next; then the chain goes on with that. Why
// is "" if there is none. Whether there is such an object is not looked at.
func (q *Queue) ExplainObject(ctx context.Context, ark string) (explain.Explanation, error) {
	return q.explain(ctx, ark, func(ctx context.Context, ark string) (explain.Part, error) {
		x := says(explain.Nothing, "")
		x.Kind, x.ID = explain.Object, ark
		var rows []Reservation
		_, err := q.Table.Page(ctx, table.Query{PK: LockKey(ingest.ARKLock(ark)).PK, Limit: countedMost}, &rows)
		if len(rows) > 0 {
			x.Waits, x.On = explain.Lock, rows[0].Owner
			x.Why = fmt.Sprintf("Job %s works on it, or is the next to do so.", x.On)
			x.Add("jobs in line", count(int64(len(rows))))
		}
		return x, err
	})
}
