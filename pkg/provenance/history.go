package provenance

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"archivist/pkg/event"
	"archivist/pkg/inventory"
	"archivist/pkg/premis"
)

// History writes events of an object's log as PREMIS. What happened to a version before
// it was stored is in the document that is stored with it.
func (a Archive) History(w io.Writer, o *inventory.Object, log []event.Row) error {
	details := make([]inventory.Detail, len(log))
	for i, row := range log {
		if err := json.Unmarshal([]byte(row.Detail), &details[i]); err != nil {
			return fmt.Errorf("provenance: detail of event %d of %s: %w", row.Version, o.ARK, err)
		}
	}

	d, entity := premis.New(w), object(o.ARK, o.LocalIDs)
	for _, object := range append([]premis.Object{entity}, versions(o.ARK, details)...) {
		if err := d.Object(object); err != nil {
			return err
		}
	}
	for i, row := range log {
		for _, e := range a.logged(o.ARK, row, details[i]) {
			d.Event(e)
		}
	}
	for _, agent := range a.agents() {
		d.Agent(agent)
	}
	return d.Close()
}

// versions are the versions that events are about, each once.
func versions(ark string, details []inventory.Detail) (objects []premis.Object) {
	entity, seen := premis.Identifier{Type: "ARK", Value: ark}, map[int]bool{0: true}
	for _, detail := range details {
		if seen[detail.Version] {
			continue
		}
		seen[detail.Version] = true
		objects = append(objects, premis.Object{
			Category:  premis.Representation,
			IDs:       []premis.Identifier{representation(ark, detail.Version)},
			Relations: []premis.Relation{{Kind: premis.Represents, To: premis.To(entity)}},
		})
	}
	return objects
}

// logged is one event of an object's log in terms of PREMIS. If it makes several events,
// the first has the id of the log's event.
func (a Archive) logged(ark string, row event.Row, detail inventory.Detail) (events []premis.Event) {
	about, outcome := []premis.Identifier{{Type: "ARK", Value: ark}}, premis.Success
	if detail.Version > 0 {
		about = append(about, representation(ark, detail.Version))
	}
	if row.Outcome == event.Failure {
		outcome = premis.Failure
	}
	add := func(kind, text string, args ...any) {
		id := row.ID
		if len(events) > 0 {
			id = fmt.Sprintf("%s#%d", row.ID, len(events)+1)
		}
		events = append(events, premis.Event{ID: ours(id), Type: kind, Time: time.UnixMilli(row.Time),
			Detail: fmt.Sprintf(text, args...), Outcome: outcome, Agents: a.implementers(), Objects: about})
	}

	if detail.Job == "" {
		add("metadata modification",
			"The object's inventory records were rebuilt from the storage root at the request of %q.", row.Actor)
		return events
	}
	add("fixity check", "Each file that job %s copied to the storage root was verified against the checksum computed "+
		"during the download. The event's time is when the version was recorded.", detail.Job)
	add("ingestion", "Job %s stored version %d of the object in the storage root.", detail.Job, detail.Version)
	if row.Type == "object.create" {
		add("accession", "The object was added to the archive's inventory.")
	}
	return events
}
