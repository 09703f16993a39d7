package queue

import (
	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fetch"
	"archivist/pkg/objects/inventory"
)

// mostText limits a text in an event, in bytes, so that the event is never too large. An event has
// a text several times: in its detail, and before and after the change.
const mostText = 8 << 10

// jobProperties are the properties that events of a job show as they were before and after.
// The names are those of the API.
type jobProperties struct {
	State       ingest.State    `json:"state"`
	Parked      bool            `json:"parked,omitempty"`
	Message     string          `json:"message,omitempty"`
	Recoverable bool            `json:"recoverable,omitempty"`
	Priority    int             `json:"priority"`
	Hold        *holdProperties `json:"hold,omitempty"`
	Primary     string          `json:"primary,omitempty"`
	Version     int             `json:"version,omitempty"`
	NoChange    bool            `json:"noChange,omitempty"`
	Digest      string          `json:"inventoryDigest,omitempty"`
}

// holdProperties are what events say of a hold or a pause. Times are ISO 8601.
type holdProperties struct {
	Scope  ingest.TargetKind `json:"scope"`
	Reason string            `json:"reason"`
	Actor  string            `json:"actor"`
	Since  string            `json:"since"`
	Until  string            `json:"until,omitempty"`
}

// batchProperties are jobProperties for a batch.
type batchProperties struct {
	State      ingest.BatchState `json:"state"`
	Message    string            `json:"message,omitempty"`
	Hold       *holdProperties   `json:"hold,omitempty"`
	Expected   int               `json:"expected,omitempty"` // jobs
	Incomplete string            `json:"incomplete,omitempty"`
	Reports    int               `json:"reports,omitempty"`
	Cancelled  string            `json:"cancelled,omitempty"`  // why
	Callback   string            `json:"callback,omitempty"`   // without its secrets
	Correction string            `json:"correction,omitempty"` // of an object: why
}

// propertiesOfJob are those of a job, nil if it does not exist.
func propertiesOfJob(j ingest.Job) any {
	if j.State == "" {
		return nil
	}
	return jobProperties{
		State:       j.State,
		Parked:      j.Parked,
		Message:     ingest.Cut(j.Message, mostText),
		Recoverable: j.State == ingest.Failed && !j.NotRecoverable,
		Priority:    j.Priority,
		Hold:        holdOf(j.Hold),
		Primary:     j.Primary,
		Version:     j.ObjectVersion,
		NoChange:    j.NoChange,
		Digest:      j.Inventory,
	}
}

// propertiesOfBatch are those of a batch, nil if it does not exist.
func propertiesOfBatch(b ingest.Batch) any {
	if b.State == "" {
		return nil
	}

	p := batchProperties{
		State:      b.State,
		Message:    ingest.Cut(b.Message, mostText),
		Hold:       holdOf(b.Hold),
		Expected:   b.Expected,
		Incomplete: ingest.Cut(b.Incomplete, mostText),
		Reports:    b.LastReport(),
		Callback:   fetch.Redact(b.Callback),
	}

	if b.Payload.Type == ingest.TypeCorrection {
		p.Correction = ingest.Cut(b.Note, mostText)
	}
	if b.Cancelled != nil {
		p.Cancelled = b.Cancelled.Reason
	}
	return p
}

// propertiesOfOperation are those of a bulk operation, nil if it does not exist. What it has done
// so far is in the detail of its events.
func propertiesOfOperation(o ingest.Operation) any {
	if o.State == "" {
		return nil
	}
	return map[string]any{"state": o.State}
}

// propertiesOfHold are those of a collection that is on hold, or of the queue or the storage
// that is paused; nil if it is not.
func propertiesOfHold(row *Hold) any {
	if row == nil || row.Since == 0 {
		return nil
	}
	return map[string]any{"hold": holdOf(&row.Hold)}
}

// holdOf are the properties of a hold, nil if there is none.
func holdOf(h *ingest.Hold) *holdProperties {
	if h == nil {
		return nil
	}

	p := &holdProperties{
		Scope:  h.Scope,
		Reason: h.Reason,
		Actor:  h.Actor,
		Since:  ingest.Timestamp(h.Since),
	}

	if h.Until != 0 {
		p.Until = ingest.Timestamp(h.Until)
	}
	return p
}

// jobParents are the containers of a job.
func jobParents(j ingest.Job) []envelope.Ref {
	return []envelope.Ref{{Type: event.Collection.String(), ID: j.Collection},
		{Type: event.Batch.String(), ID: j.Batch}}
}

// batchParents are the containers of a batch.
func batchParents(b ingest.Batch) []envelope.Ref {
	return []envelope.Ref{{Type: event.Collection.String(), ID: b.Collection}}
}

// jobIdentifiers are the identifiers of a job's object that its submission named, and its ark.
func jobIdentifiers(j ingest.Job) []string { return identifiers(j.Primary, j.Submitted()) }

// identifiers are an ark, if it is known yet, and local ids.
func identifiers(ark string, local []string) []string {
	if ark == "" {
		return local
	}
	return append([]string{ark}, local...)
}

// stored is the version that a change of a job has stored, if it has.
func stored(prev, next ingest.Job) []envelope.Ref {
	if next.ObjectVersion == prev.ObjectVersion || next.NoChange {
		return nil
	}
	return []envelope.Ref{{
		Role: "version",
		Type: event.Version.String(),
		ID:   inventory.VersionID(next.Primary, next.ObjectVersion),
	}}
}

// selected is the batch or the collection whose jobs an operation acts on, if it names one.
func selected(o ingest.Operation) (objects []envelope.Ref) {
	if o.Filter.Collection != "" {
		objects = append(objects, envelope.Ref{
			Role: "collection",
			Type: event.Collection.String(),
			ID:   o.Filter.Collection,
		})
	}

	if o.Filter.Batch != "" {
		objects = append(objects, envelope.Ref{
			Role: "batch",
			Type: event.Batch.String(),
			ID:   o.Filter.Batch,
		})
	}
	return objects
}
