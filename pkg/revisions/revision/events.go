package revision

import (
	"cmp"
	"encoding/json"

	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/table"
	"archivist/pkg/revisions/workflow"
)

// Changed is the detail of the events of an archive: archive.added, .changed, .paused, .stopped,
// .resumed, .deleted and .backfilled. What an event does not concern is left out.
type Changed struct {
	Mode     Mode      `json:"mode"`
	Why      string    `json:"why,omitempty"`
	Settings *Settings `json:"settings,omitempty"`
	Epoch    int64     `json:"epoch,omitempty"`
	First    int64     `json:"first,omitempty"`

	// Of a back-fill: from First to here.
	To int64 `json:"to,omitempty"`
}

// Known is the detail of revision.notified and revision.skipped.
type Known struct {
	Transaction string `json:"transaction,omitempty"`
	State       string `json:"state"`
	MadeBy      string `json:"madeBy,omitempty"`
}

// CommitDetail is the detail of revision.committed: what the revision's plan is. Tasks is how many
// instances it has beside COMMIT.
type CommitDetail struct {
	State       string             `json:"state"`
	Transaction string             `json:"transaction,omitempty"`
	Definition  string             `json:"definition,omitempty"`
	Tasks       int                `json:"tasks"`
	Problems    []workflow.Problem `json:"problems,omitempty"`
	Reason      string             `json:"reason,omitempty"`
}

// Planned is the detail of task.planned: the first event of an instance, with the state that it
// begins in. It can be an end: a task that makes a loop is planned as skipped.
type Planned struct {
	Trigger string         `json:"trigger"`
	State   workflow.State `json:"state"`
	Reason  string         `json:"reason,omitempty"`
	Edges   []Awaits       `json:"edges,omitempty"`
	Lock    string         `json:"lock,omitempty"`
	Cancels []string       `json:"cancels,omitempty"`

	// Of a run by hand: what was set.
	Parameters map[string]string `json:"parameters,omitempty"`
}

// planned is the detail of the event of a new instance.
func planned(in *Instance, reason string) Planned {
	return Planned{in.Trigger, in.State, reason, in.Edges, in.Lock, in.Cancels, in.Parameters}
}

// Moved is the detail of task.state: one for each change of the state. The attempts of an instance
// are read from these: see Attempts.
type Moved struct {
	From    workflow.State `json:"from,omitempty"`
	To      workflow.State `json:"to"`
	Reason  string         `json:"reason,omitempty"`
	Root    string         `json:"root,omitempty"` // the instance whose end is the cause
	By      string         `json:"by,omitempty"`   // who superseded or cancelled it
	Attempt int            `json:"attempt,omitempty"`

	// The execution of the attempt, by which events of one attempt are known to belong together.
	Exec  string `json:"exec,omitempty"`
	Tried *Tried `json:"tried,omitempty"` // the attempt that ended

	// Of one that a person has started: what was set.
	Parameters map[string]string `json:"parameters,omitempty"`
}

// StopRequest is the detail of task.told: a run was asked to end. Its state does not change by that.
type StopRequest struct {
	End    workflow.State `json:"end"` // in which the instance is to end
	By     string         `json:"by,omitempty"`
	Reason string         `json:"reason,omitempty"`

	// Milliseconds since 1970: it is ended then, whatever it does.
	Until int64 `json:"until"`
}

// manager is who makes changes that nobody asked for.
const manager = "revision-queue"

// parents are the containers of an instance, by which its events are found with those of its
// archive and of its revision.
func parents(ref string, n int64) []envelope.Ref {
	return []envelope.Ref{{Type: event.Archive.String(), ID: archiveOf(ref)},
		{Type: event.Revision.String(), ID: revisionID(ref, n)}}
}

// event adds an event about the archive to a transaction that also writes the archive: the number
// of the event is in its row.
func (a *archiveRow) event(tx *table.Tx, eventType string, now int64, by By, detail Changed) error {
	a.Number++
	return event.Append(tx, archiveSubject(a.Name), a.Number, event.New{
		Type:      eventType,
		Time:      now,
		Detail:    detail,
		Actor:     cmp.Or(by.Actor, manager),
		Component: manager,
	})
}

// event adds an event about the revision to a transaction that also writes the revision.
func (r *revisionRow) event(tx *table.Tx, eventType string, now int64, by By, detail any) error {
	r.Number++
	actor := by.Actor
	if actor == "" {
		actor = manager
	}
	return event.Append(tx, revisionSubject(revisionID(r.Archive, r.Revision.Number)), r.Number,
		event.New{
			Type:      eventType,
			Time:      now,
			Detail:    detail,
			Actor:     actor,
			Component: manager,
			Parents:   []envelope.Ref{{Type: event.Archive.String(), ID: archiveOf(r.Archive)}},
		})
}

// listKept is how many bytes as JSON such a list has at most (outputs, problems): an event has it,
// too, and other things beside it, and event.MaxDetail bounds all of its detail.
const listKept = event.MaxDetail / 2

// sizeOf is how many bytes a part of a row or an event has as JSON.
func sizeOf(v any) int {
	data, _ := json.Marshal(v) // it has only plain fields
	return len(data)
}

// keptText bounds what rows keep of texts that others wrote: authors, messages and reasons of runs,
// in bytes.
const keptText = 1000
