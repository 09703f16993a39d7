package histories

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"archivist/pkg/components/component"
	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/formats/premis"
	"archivist/pkg/ingest/provenance"
)

// itemDetail has the fields of the details of all own events of items: the names do not mean
// different things in two of them.
type itemDetail struct {
	component.Ran
	Revokes  []string            `json:"events"`
	Types    []string            `json:"types"`
	Priority int                 `json:"priority"`
	Imported *component.Imported `json:"imported"`
}

// readItem reads the detail of an own event; the zero value if it has none.
func readItem(e envelope.Event) (d itemDetail, err error) {
	if len(e.Detail) > 0 {
		err = json.Unmarshal(e.Detail, &d)
	}
	return d, err
}

// ofItem is an own event of an item. Those about the item itself are modifications of metadata;
// those of components and of people have their own names as types. A revocation has a detail that
// an import reads again.
func (w Writer) ofItem(from envelope.Event, about []premis.Identifier) (premis.Event, error) {
	d, err := readItem(from)
	if err != nil {
		return premis.Event{}, err
	}

	e := premis.Event{
		ID:      provenance.Identifier(from.ID),
		Type:    "metadata modification",
		Time:    time.UnixMilli(from.Time),
		Detail:  sentence(from, d),
		Outcome: premis.Success,
		Note:    d.Reason,
		Objects: about,
	}

	switch from.Type {
	case "component.ran":
		e.Type, e.Note = d.Event, findings(d.Ran)
	case "item.event":
		e.Type = d.Event
	case "item.revoke":
		e.Type = component.RevokeType
		e.Detail, e.Note = component.Revocation(component.Revoked{Events: d.Revokes,
			Reason: d.Reason}), ""
	}

	if from.Outcome == event.Failure {
		e.Outcome = premis.Failure
	}

	if d.Imported != nil {
		return original(e, *d.Imported), nil
	}

	for _, agent := range w.takingPart(from, d) {
		e.Agents = append(e.Agents, premis.Link{Agent: agent.ID, Role: roleOf(agent)})
	}
	return e, nil
}

// sentence says, for the detail of an event in PREMIS, what an own event of an item is.
func sentence(e envelope.Event, d itemDetail) string {
	switch e.Type {
	case "component.ran":
		return fmt.Sprintf("The component %s worked on the item from %s, for %d ms, in run %s.",
			d.Component,
			time.UnixMilli(d.Started).UTC().Format("2006-01-02T15:04:05.999Z07:00"), d.Duration, d.Run)
	case "item.event":
		return "The event was recorded on request."
	case "item.create":
		return "The item was created, with the types: " + strings.Join(d.Types, ", ") + "."
	case "item.change":
		return "The item was changed. Its types are: " + strings.Join(d.Types, ", ") + "."
	case "item.forget":
		return "The item was forgotten: no component works on it."
	case "item.prioritize":
		return fmt.Sprintf("The item has the priority %d.", d.Priority)
	case "item.release":
		return "The lease of the component " + d.Component + " on the item was taken away."
	}
	return "The event " + e.Type + " was recorded."
}

// findings are the reason and the report of a component, each finding in a line, for the note of an
// event. What was not kept is counted in a last line.
func findings(d component.Ran) string {
	var lines []string
	if d.Reason != "" {
		lines = append(lines, d.Reason)
	}

	if d.Report == nil {
		return strings.Join(lines, "\n")
	}

	for _, e := range d.Report.Entries {
		var parts []string
		for _, part := range []string{e.File, e.Type, e.Component, e.Description, e.Details} {
			if part != "" {
				parts = append(parts, part)
			}
		}
		lines = append(lines, strings.Join(parts, ": "))
	}

	if more := d.Report.Total - len(d.Report.Entries); more > 0 {
		lines = append(lines,
			fmt.Sprintf("%d of %d findings were kept.", len(d.Report.Entries), d.Report.Total))
	}
	return strings.Join(lines, "\n")
}

// original is an imported event as it was in its document: its identifier, type, time, texts and
// agents, so that it can be found there again. The archive, which only imported it, is no agent of
// it.
func original(e premis.Event, from component.Imported) premis.Event {
	e.ID = premis.Identifier{Type: from.IDType, Value: from.ID}
	e.Type, e.Time, e.Detail, e.Note = from.Type, time.UnixMilli(from.At), from.Detail, from.Note
	if from.Warned {
		e.Outcome = premis.Warning
	}
	for _, agent := range from.Agents {
		e.Agents = append(e.Agents, premis.Link{Role: agent.Role,
			Agent: premis.Identifier{Type: agent.IDType, Value: agent.ID}})
	}
	return e
}

// participants are those who took part in events beside the archive, each once, in the order of the
// events. PREMIS wants each agent that an event names to be in the document.
func (w Writer) participants(log []envelope.Event) (agents []premis.Agent) {
	seen := map[premis.Identifier]bool{}
	for _, agent := range w.Agents() {
		seen[agent.ID] = true
	}

	for _, e := range log {
		for _, agent := range w.agentsOf(e) {
			if !seen[agent.ID] {
				seen[agent.ID] = true
				agents = append(agents, agent)
			}
		}
	}
	return agents
}

// agentsOf are the agents of an event, with their names. One whose detail cannot be read was
// refused before.
func (w Writer) agentsOf(e envelope.Event) (agents []premis.Agent) {
	if e.Subject.Type == event.Item.String() {
		d, _ := readItem(e)
		if d.Imported == nil {
			return w.takingPart(e, d)
		}
		for _, agent := range d.Imported.Agents {
			agents = append(agents, premis.Agent{
				ID:      premis.Identifier{Type: agent.IDType, Value: agent.ID},
				Name:    agent.Name,
				Type:    agent.Type,
				Version: agent.Version,
			})
		}
		return agents
	}

	if e.Context.Actor != "" {
		agents = append(agents, actor(e.Context.Actor))
	}
	return agents
}

// takingPart are the agents of an own event that was not imported: the archive, its software in the
// version of that time, the component, and who asked for it.
func (w Writer) takingPart(e envelope.Event, d itemDetail) []premis.Agent {
	agents := w.Agents()
	if v := e.Context.Version; v != "" && v != w.Version {
		agents[1] = premis.Agent{
			ID:      provenance.Identifier("archivist:" + v),
			Name:    "Archivist",
			Type:    premis.Software,
			Version: v,
		}
	}

	if e.Type == "component.ran" {
		version := strconv.Itoa(d.Definition)
		agents = append(agents, premis.Agent{
			ID:      provenance.Identifier("component:" + d.Component + ":" + version),
			Name:    d.Component,
			Type:    premis.Software,
			Version: version,
			Note:    "A component. The version is that of its definition.",
		})
	}

	if e.Context.Actor != "" {
		agents = append(agents, actor(e.Context.Actor))
	}
	return agents
}

// roles of agents in own events, by their types: the archive does it, its software executes it.
var roles = map[string]string{premis.Organization: premis.Implementer,
	premis.Software: premis.ExecutingProgram}

// roleOf is the role of an agent of the archive's. Only those who ask for something have no type:
// they authorize it.
func roleOf(a premis.Agent) string { return cmp.Or(roles[a.Type], premis.Authorizer) }
