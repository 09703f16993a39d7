package filter

import (
	"slices"
	"strings"

	"archivist/pkg/events/envelope"
)

// name is a name of a type of subject, or of an action, with other spellings of it. Events have the
// canonical one, is.
type name struct {
	is   string
	also []string
}

// subjects are the types of subjects that filters can name: ours, with DSpace's name for the
// same thing, and those of DSpace's that have no events here, so that its filters are valid.
// DSpace's are from its org.dspace.core.Constants, and from the proposal of the mechanism.
var subjects = []name{
	{"Object", []string{"Item"}}, {"Version", nil}, {"File", []string{"Bitstream"}},
	{"Collection", nil},
	{"Job", []string{"WorkflowItem"}}, {"Batch", nil}, {"Operation", nil}, {"Queue", nil},
	{"User", []string{"EPerson"}}, {"Consumer", nil}, {"Component", nil}, {"ComponentItem", nil},
	{"ResearchProject", nil}, {"Episode", nil}, {"Clip", nil}, {"ResearchLease", nil},
	{"Archive", nil}, {"Revision", nil}, {"Task", nil}, {"Upload", nil}, {"Token", nil},
	{"Site", nil}, {"Community", nil}, {"Bundle", nil}, {"Group", nil}, {"WorkspaceItem", nil},
	{"MetadataSchema", nil}, {"MetadataField", nil}, {"BitstreamFormat", nil}, {"LDN_MESSAGE", nil},
}

// actions are the actions that filters can name.
var actions = []name{
	{envelope.Create, nil}, {envelope.Modify, nil},
	{envelope.ModifyMetadata, []string{"Modify_Metadata"}},
	{envelope.Add, nil}, {envelope.Remove, nil}, {envelope.Delete, []string{"Destroy"}},
	{envelope.Install, nil}, {envelope.Disseminate, nil},
}

// find returns the canonical form of a name; upper and lower case are the same.
func find(names []name, text string) (string, bool) {
	for _, n := range names {
		same := func(s string) bool { return strings.EqualFold(s, text) }
		if same(n.is) || slices.ContainsFunc(n.also, same) {
			return n.is, true
		}
	}
	return "", false
}

// known lists names for a message.
func known(names []name) string {
	texts := make([]string, len(names))
	for i, n := range names {
		texts[i] = strings.Join(append([]string{n.is}, n.also...), " or ")
	}
	return strings.Join(texts, ", ") + ", All"
}

// field is what a term compares: a value, or several, of an event. of must give what is at path in
// the event's JSON, so that a filter and its pattern select the same.
type field struct {
	name string

	// means is what it is, for those who write a filter.
	means string

	// path is that in the event's JSON.
	path []string

	// many: an event can have several values.
	many bool

	// optional: an event can have none; then its JSON has none.
	optional bool

	// only are the possible values; nil: any.
	only []string
	of   func(envelope.Event) []string
}

// idField is the name of the field of a subject's id.
const idField = "id"

// fields are those that terms can name, in the order in which messages list them.
var fields = []field{
	{
		name:  idField,
		means: "the id of the subject",
		path:  []string{"subject", "id"},
		of:    func(e envelope.Event) []string { return one(e.Subject.ID) },
	},
	{
		name:     "parent",
		means:    "the id of a container of the subject, at any depth",
		path:     []string{"parents", "id"},
		many:     true,
		optional: true,
		of:       parents,
	},
	{
		name:     "actor",
		means:    "the person or account",
		path:     []string{"context", "actor"},
		optional: true,
		of:       func(e envelope.Event) []string { return one(e.Context.Actor) },
	},
	{
		name:     "component",
		means:    "the part of the system that made the change",
		path:     []string{"context", "component"},
		optional: true,
		of:       func(e envelope.Event) []string { return one(e.Context.Component) },
	},
	{
		name:  "outcome",
		means: "success or failure",
		path:  []string{"outcome"},
		only:  []string{"success", "failure"},
		of:    func(e envelope.Event) []string { return one(e.Outcome) },
	},
	{
		name:     "property",
		means:    "a name of what changed",
		path:     []string{"properties"},
		many:     true,
		optional: true,
		of:       func(e envelope.Event) []string { return e.Properties },
	},
	{
		name:  "type",
		means: "the type of the event, e.g. job.state",
		path:  []string{"type"},
		of:    func(e envelope.Event) []string { return one(e.Type) },
	},
}

// one is a value as a list; none if it is empty, as its JSON is left out.
func one(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

// parents are the ids of the containers of the subject.
func parents(e envelope.Event) []string {
	ids := make([]string, len(e.Parents))
	for i, p := range e.Parents {
		ids[i] = p.ID
	}
	return ids
}

func fieldNames() string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	return strings.Join(names, ", ")
}
