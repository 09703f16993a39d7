package api

import (
	"cmp"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
)

// wireItem is what became of one job of an operation; what was not done yet is "left".
func wireItem(i queue.Item) v1.OperationItem {
	return v1.OperationItem{
		Job:     i.Job,
		Outcome: cmp.Or(string(i.Outcome), v1.ItemLeft),
		Message: i.Message,
	}
}

// operation is an operation that was read, in its wire form. It passes the error on.
func operation(row *queue.Operation, err error) (v1.Operation, error) {
	if err != nil {
		return v1.Operation{}, err
	}
	return WireOperation(*row), nil
}

// WireOperation is the wire form of an operation. The doctor has no filter. Execution is there only
// while the operation runs.
func WireOperation(row queue.Operation) v1.Operation {
	o, b := row.Operation, wireBulk(row.Bulk)
	out := v1.Operation{
		ID:       o.ID,
		Action:   b.Action,
		State:    string(o.State),
		Reason:   o.Reason,
		Actor:    o.Actor,
		DryRun:   o.DryRun,
		Confirm:  b.Confirm,
		Until:    b.Until,
		Priority: b.Priority,
		Repair:   o.Repair,
		Planning: o.Planning,
		Progress: o.Progress,
		Started:  timestamp(o.Created),
		Ended:    timestamp(o.Ended),
		Counts:   wireTally(row.Tally),
	}

	if o.Name != ingest.ActDoctor {
		out.Filter = &b.Filter
	}

	if o.State == ingest.OperationRunning {
		out.Execution = row.RunBy()
	}
	return out
}

// wireTally is the wire form of an operation's counts. Left is computed, not stored.
func wireTally(n ingest.Tally) v1.OperationCounts {
	return v1.OperationCounts{
		Planned:  n.Planned,
		Done:     n.Done,
		Refused:  n.Refused,
		Left:     n.Left(),
		Checked:  n.Checked,
		Findings: n.Findings,
		Repaired: n.Repaired,
	}
}

// wireChange is the detail of an operation's event: how it stood after the change.
func wireChange(c queue.OperationChange) v1.OperationChange {
	out := v1.OperationChange{
		Action: string(c.Action),
		State:  string(c.State),
		Exec:   c.Exec,
		Reason: c.Reason,
		DryRun: c.DryRun,
		Counts: wireTally(c.Tally),
	}

	if c.Filter != nil {
		f := wireFilter(*c.Filter)
		out.Filter = &f
	}
	return out
}

// wireBulk is the wire form of an action on many jobs.
func wireBulk(b ingest.Bulk) v1.Bulk {
	return v1.Bulk{
		Action:   string(b.Name),
		Priority: b.Priority,
		Confirm:  b.Confirm,
		Until:    timestamp(b.Until),
		Filter:   wireFilter(b.Filter),
	}
}

// wireFilter is the wire form of a filter of jobs. Before is "" if the time does not matter.
func wireFilter(f ingest.Filter) v1.JobFilter {
	return v1.JobFilter{
		Batch:        f.Batch,
		Collection:   f.Collection,
		State:        string(f.State),
		Message:      f.Message,
		Before:       timestamp(f.Before),
		KeepOwnHolds: f.KeepOwnHolds,
	}
}
