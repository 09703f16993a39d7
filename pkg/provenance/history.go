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

// History writes events of an object's log as PREMIS. What happened to a version
// before it was stored is in the document that is stored with it.
func (a Archive) History(w io.Writer, o *inventory.Object, log []event.Row) error {
	d, entity := premis.New(w), premis.Identifier{Type: "ARK", Value: o.ARK}
	objects := []premis.Object{{Category: premis.Entity, IDs: []premis.Identifier{entity}}}
	for _, id := range o.LocalIDs {
		objects[0].IDs = append(objects[0].IDs, premis.Identifier{Type: "local", Value: id})
	}
	details, seen := make([]inventory.Detail, len(log)), map[int]bool{}
	for i, row := range log {
		if err := json.Unmarshal([]byte(row.Detail), &details[i]); err != nil {
			return fmt.Errorf("provenance: detail of event %d of %s: %w", row.Version, o.ARK, err)
		}
		if n := details[i].Version; n > 0 && !seen[n] {
			seen[n] = true
			objects = append(objects, premis.Object{Category: premis.Representation,
				IDs:       []premis.Identifier{representation(o.ARK, n)},
				Relations: []premis.Relation{{Kind: premis.Represents, To: premis.To(entity)}}})
		}
	}
	for _, object := range objects {
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

// logged is what one event of an object's log says in terms of PREMIS.
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
			Detail: fmt.Sprintf(text, args...), Outcome: outcome, Agents: a.doers(), Objects: about})
	}
	if detail.Job == "" {
		add(row.Type, "The archive's rows of the object were written again from the storage root, on behalf of %q.", row.Actor)
		return events
	}
	add("fixity check", "Each file that job %s copied into the storage root was compared with the checksum that was "+
		"calculated during the download; all matched. The time is that at which the version was recorded.", detail.Job)
	add("ingestion", "Job %s stored version %d of the object in the storage root.", detail.Job, detail.Version)
	if row.Type == "object.create" {
		add("accession", "The object was recorded in the archive's inventory.")
	}
	return events
}
