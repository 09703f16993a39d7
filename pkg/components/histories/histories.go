// Package histories writes what happened to objects, and to other items that components work on, as
// documents in PREMIS 3, from their events.
//
//	w := histories.Writer{Archive: provenance.Archive{NAAN: "99999", Version: "v1.2.3"}}
//	err := w.History(out, ark, localIDs, log)
//
// What happened to a version before it was stored is in the document that is stored with it: see
// package provenance.
package histories

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"archivist/pkg/components/component"
	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/formats/premis"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/provenance"
	"archivist/pkg/objects/inventory"
	"archivist/pkg/objects/replica"
)

// History writes events of an object and of its versions as PREMIS. What happened to a version
// before it was stored is in the document that is stored with it. localIDs are further identifiers
// of the object. log is in the order in which it is written. An error is one of out, or of an event
// whose detail cannot be read; then what was written is not a whole document.
func (w Writer) History(out io.Writer, ark string, localIDs []string, log []envelope.Event) error {
	return w.history(out, topic{entity: provenance.Object(ark, localIDs), ark: ark}, log)
}

// Item writes events of an item that components work on as PREMIS: its own, and those of the
// object, version or batch that it is. Imported events are as they were in the document that they
// come from. identifiers are all by which the item is known. An Invalid means that the id is not
// one; other errors are as of History.
func (w Writer) Item(out io.Writer, id string, identifiers []string, log []envelope.Event) error {
	kind, name, err := component.ParseID(id)
	if err != nil {
		return err
	}

	switch kind {
	case component.KindObject:
		local := slices.DeleteFunc(slices.Clone(identifiers),
			func(i string) bool { return i == name || i == id })
		return w.history(out, topic{entity: provenance.Object(name, local), ark: name}, log)
	case component.KindVersion:
		ark, _, _ := strings.Cut(name, "/v")
		return w.history(out, topic{entity: provenance.Object(ark, nil), ark: ark}, log)
	}

	entity := premis.Object{Category: premis.Entity,
		IDs: []premis.Identifier{provenance.Identifier(id)}}
	for _, i := range identifiers {
		if i != id {
			entity.IDs = append(entity.IDs, premis.Identifier{Type: "local", Value: i})
		}
	}
	return w.history(out, topic{entity: entity}, log)
}

// topic is what a history is about: an object, with its ARK, or something that is none and has no
// ARK, such as a batch. Its first identifier is that by which events name it.
type topic struct {
	entity premis.Object
	ark    string
}

// history writes a document: objects, then events, then agents, as the PREMIS 3 schema has them.
func (w Writer) history(out io.Writer, of topic, log []envelope.Event) error {
	details := make([]inventory.Detail, len(log))
	for i, e := range log {
		if err := readDetail(e, &details[i]); err != nil {
			return fmt.Errorf("histories: detail of event %d of %s: %w", e.Version, e.Subject.ID, err)
		}
	}

	d := premis.New(out)
	for _, object := range append([]premis.Object{of.entity}, versions(of.ark, details)...) {
		if err := d.Object(object); err != nil {
			return err
		}
	}

	for i, e := range log {
		events, err := w.logged(of, e, details[i])
		if err != nil {
			return fmt.Errorf("histories: detail of event %d of %s: %w", e.Version, e.Subject.ID, err)
		}
		for _, e := range events {
			d.Event(e)
		}
	}

	for _, agent := range append(w.Agents(), w.participants(log)...) {
		d.Agent(agent)
	}
	return d.Close()
}

// readDetail reads which version an event is about, into Version; 0: none. That of an event of a
// version, or of its item, is in the id of its subject, "{ark}/v{n}"; others than those of objects
// are about none.
func readDetail(e envelope.Event, into *inventory.Detail) error {
	item := strings.HasPrefix(e.Subject.ID, component.KindVersion+":")
	switch {
	case e.Subject.Type == "Version" || e.Subject.Type == event.Item.String() && item:
		// Names in an ARK can have a v and slashes, so the number is looked for behind the last
		// slash.
		_, n, _ := strings.Cut(e.Subject.ID[strings.LastIndex(e.Subject.ID, "/")+1:], "v")
		number, err := strconv.Atoi(n)
		into.Version = number
		return err
	case e.Subject.Type == "Object" && len(e.Detail) > 0:
		return json.Unmarshal(e.Detail, into)
	}
	return nil
}

// versions are the versions that events are about, each once, in the order of the events. They are
// related to the object that they represent.
func versions(ark string, details []inventory.Detail) (objects []premis.Object) {
	entity, seen := premis.Identifier{Type: "ARK", Value: ark}, map[int]bool{0: true}
	for _, detail := range details {
		if seen[detail.Version] {
			continue
		}
		seen[detail.Version] = true
		objects = append(objects, premis.Object{
			Category:  premis.Representation,
			IDs:       []premis.Identifier{provenance.Representation(ark, detail.Version)},
			Relations: []premis.Relation{{Kind: premis.Represents, To: premis.To(entity)}},
		})
	}
	return objects
}

// logged is one event of an object's log in terms of PREMIS. If it makes several events, the first
// has the id of the log's event. A version.create makes none: the event of the object, of the same
// transaction, says how the version came about. Identifiers of events are unique in PREMIS, so
// further ones have "#2" and so on behind it.
func (w Writer) logged(of topic, from envelope.Event,
	detail inventory.Detail) (events []premis.Event, err error) {
	about, outcome, agents := of.entity.IDs[:1:1], premis.Success, w.Implementers()
	if detail.Version > 0 {
		about = append(about, provenance.Representation(of.ark, detail.Version))
	}

	if from.Subject.Type == event.Item.String() {
		e, err := w.ofItem(from, about)
		return []premis.Event{e}, err
	}

	if from.Outcome == "failure" {
		outcome = premis.Failure
	}

	if from.Context.Actor != "" {
		agents = append(agents,
			premis.Link{Agent: actor(from.Context.Actor).ID, Role: premis.Authorizer})
	}

	add := func(kind, text string, args ...any) {
		id := from.ID
		if len(events) > 0 {
			id = fmt.Sprintf("%s#%d", from.ID, len(events)+1)
		}

		events = append(events, premis.Event{
			ID:      provenance.Identifier(id),
			Type:    kind,
			Time:    time.UnixMilli(from.Time),
			Detail:  fmt.Sprintf(text, args...),
			Outcome: outcome,
			Agents:  agents,
			Objects: about,
		})
	}

	if from.Type == "version.create" {
		return nil, nil
	}

	kind, text, err := single(from, detail)
	if err != nil {
		return nil, err
	}

	if kind != "" {
		add(kind, "%s", text)
		return events, nil
	}

	add("fixity check",
		"Each file that job %s copied to the storage root was verified against the checksum "+
			"computed during the download. The event's time is when the version was recorded.",
		detail.Job)
	add("ingestion", "Job %s stored version %d of the object in the storage root.", detail.Job,
		detail.Version)
	if from.Type == "object.create" {
		add("accession", "The object was added to the archive's inventory.")
	}
	return events, nil
}

// single is what happened if it is one event in terms of PREMIS; "" if it is an ingest, which is several.
func single(from envelope.Event, detail inventory.Detail) (kind, text string, err error) {
	switch {
	case !strings.HasPrefix(from.Type, "object."):
		return string(from.Type), fmt.Sprintf("The event %s was recorded by the component %q.", from.Type,
			from.Context.Component), nil
	case from.Action == envelope.Delete:
		return "deletion", fmt.Sprintf("The object was deleted at the request of %q.", from.Context.Actor), nil
	case from.Type == inventory.EventRepair:
		text, err := repaired(from.Detail)
		return "recovery", text, err
	case detail.Change != "":
		kind, text := changed(detail)
		return kind, text, nil
	case detail.Job == "":
		return "metadata modification", fmt.Sprintf(
			"The object's inventory records were rebuilt from the storage root at the request of %q.",
			from.Context.Actor), nil
	}
	return "", "", nil
}

// changed says what a version without new content changed.
func changed(d inventory.Detail) (kind, text string) {
	kind, what := "policy assignment", ""
	switch ingest.Policy(d.Change) {
	case ingest.PlaceHold:
		what = "which places a legal hold on it"
	case ingest.LiftHold:
		what = "which lifts its legal hold"
	case ingest.Retain:
		what = "which retains its content until " + d.RetainUntil
	case ingest.Embargo:
		what = "which places an embargo on its files until " + d.EmbargoUntil
	case ingest.LiftEmbargo:
		what = "which lifts the embargo on its files"
	case ingest.Withdraw, ingest.Reinstate:
		what = "which " + d.Change + "s access to its files"
	default:
		kind, what = "metadata modification", "in which its description or its identifiers were corrected"
	}
	return kind, fmt.Sprintf("Job %s stored version %d of the object, %s. The files are those of the version before.",
		d.Job, d.Version, what)
}

// repaired says which files a repair restored, from the detail of its event.
func repaired(detail []byte) (text string, err error) {
	var d replica.Detail
	if err := json.Unmarshal(detail, &d); err != nil {
		return "", err
	}

	switch {
	case len(d.Keys) > 0:
		text = "Damaged or missing files in the storage root were replaced with the bytes that job " + d.Repair +
			" brought: " + strings.Join(d.Keys, ", ")
		if d.More > 0 {
			text += fmt.Sprintf(" and %d more", d.More)
		}
	case d.InCopy:
		text = fmt.Sprintf("A damaged or missing file of the copy was restored from the storage root: %s.", d.Key)
	default:
		text = fmt.Sprintf("A damaged or missing file in the storage root was restored from the copy: %s.", d.Key)
	}

	text = strings.TrimSuffix(text, ".") + ". Reason: " + d.Reason
	if d.Problem != "" {
		text += ". Problem: " + d.Problem
	}
	return text, nil
}
