package events_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"archivist/events"
	"archivist/pkg/components/component"
	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event/eventtest"
	"archivist/pkg/events/eventlog"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/collection"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/token"
	"archivist/pkg/ingest/upload"
	"archivist/pkg/objects/inventory"
	"archivist/pkg/objects/replica"
	"archivist/pkg/research"
	"archivist/pkg/revisions/revision"
	"archivist/pkg/views/derivatives"
)

var update = flag.Bool("update", false, "write the schemas anew")

// details are the types of the details of events, by the type of event or of its subject.
var details = map[string]any{
	"Object":             inventory.Detail{},
	"Version":            inventory.VersionDetail{},
	"derivative.create":  derivatives.Result{},
	"object.repair":      replica.Detail{},
	"Job":                queue.Change{},
	"Batch":              queue.Change{},
	"batch.mail":         ingest.MailResult{},
	"collection.profile": collection.Profile{},
	"Collection":         queue.HoldChange{},
	"Queue":              queue.HoldChange{},
	"epoch.raised":       eventlog.Raised{},
	"Operation":          queue.OperationChange{},
	"item.create":        component.Shape{},
	"item.change":        component.Shape{},
	"item.event":         component.Registered{},
	"item.revoke":        component.Revoked{},
	"item.prioritize":    component.Prioritized{},
	"item.release":       component.Released{},
	"item.forget":        component.Forgot{},
	"component.ran":      component.Ran{},
	"Component":          component.DefinitionChange{},
	"project.applied":    research.Applied{},
	"ResearchProject":    research.Because{},
	"Episode":            research.Recorded{},
	"episode.researched": research.Researched{},
	"episode.differs":    research.Differing{},
	"episode.decided":    research.Decided{},
	"episode.reviewed":   research.Reviewed{},
	"episode.retried":    research.Because{},

	"project.researcher-paused":  research.Conduct{},
	"project.researcher-resumed": research.Conduct{},
	"Clip":                       research.Recorded{},
	"clip.retried":               research.Because{},
	"lease.created":              research.Assigned{},
	"lease.accepted":             research.Accepted{},
	"lease.extended":             research.Extended{},
	"lease.ended":                research.Ended{},
	"Archive":                    revision.Changed{},
	"Revision":                   revision.Known{},
	"revision.committed":         revision.CommitDetail{},
	"task.planned":               revision.Planned{},
	"task.state":                 revision.Moved{},
	"task.told":                  revision.StopRequest{},
	"Upload":                     upload.Detail{},
	"Token":                      token.Detail{},
}

// TestSchemas: the schema of each type is that of the code that writes its events.
func TestSchemas(t *testing.T) {
	want := map[string]any{"event.schema.json": common()}
	for _, k := range envelope.Kinds {
		want[k.Type+".schema.json"] = schemaOf(k)
	}
	for name, schema := range want {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		if err := enc.Encode(schema); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(eventtest.Folder, name)
		if *update {
			if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := events.Types.ReadFile(file); !*update && !bytes.Equal(got, b.Bytes()) {
			t.Errorf("%s is not what the code writes (%v): go test ./events -update", file, err)
		}
	}
}

// TestEveryType: each type has a schema and a sample, the sample is valid, and nothing else
// is there.
func TestEveryType(t *testing.T) {
	schemas, err := eventtest.Compile()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]bool{"event.schema.json": true}
	for _, k := range envelope.Kinds {
		files[k.Type+".schema.json"], files[k.Type+".json"] = true, true
		data, err := events.Types.ReadFile(eventtest.Folder + "/" + k.Type + ".json")
		if err != nil {
			t.Error(err)
			continue
		}
		e := decode(t, data)
		if err := schemas.Check(e); err != nil {
			t.Errorf("the sample of %s: %v", k.Type, err)
		}
		if e.Type != k.Type || e.Schema != k.Schema {
			t.Errorf("the sample of %s is of %s, schema %d", k.Type, e.Type, e.Schema)
		}
	}
	found, err := events.Types.ReadDir(eventtest.Folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		if !files[f.Name()] {
			t.Errorf("types/%s is of no type of events", f.Name())
		}
	}
}

// TestSchemasRefuse: a sample with one thing changed is not valid.
func TestSchemasRefuse(t *testing.T) {
	schemas, err := eventtest.Compile()
	if err != nil {
		t.Fatal(err)
	}
	data, err := events.Types.ReadFile(eventtest.Folder + "/job.state.json")
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(e *envelope.Event){
		"another subject":       func(e *envelope.Event) { e.Subject.Type = "Batch" },
		"no id of the subject":  func(e *envelope.Event) { e.Subject.ID = "" },
		"an unknown action":     func(e *envelope.Event) { e.Action = "change" },
		"an unknown outcome":    func(e *envelope.Event) { e.Outcome = "maybe" },
		"no version":            func(e *envelope.Event) { e.Version = 0 },
		"another schema":        func(e *envelope.Event) { e.Schema++ },
		"a detail that is text": func(e *envelope.Event) { e.Detail = []byte(`"x"`) },
		"a detail without to":   func(e *envelope.Event) { e.Detail = []byte(`{"exec":1}`) },
		"a detail with more":    func(e *envelope.Event) { e.Detail = []byte(`{"exec":1,"to":"Failed","more":1}`) },
		"another type in it":    func(e *envelope.Event) { e.Detail = []byte(`{"exec":"1","to":"Failed"}`) },
	} {
		e := decode(t, data)
		change(&e)
		if schemas.Check(e) == nil {
			t.Errorf("a job.state with %s is valid", name)
		}
	}
}

func decode(t *testing.T, data []byte) (e envelope.Event) {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&e); err != nil {
		t.Error(err)
	}
	return e
}

// node is a part of a schema.
type node = map[string]any

const dialect = "https://json-schema.org/draft/2020-12/schema"

// common is the schema of what all events have in common.
func common() node {
	s := reflected(reflect.TypeFor[envelope.Event]())
	s["$schema"], s["title"] = dialect, "An event of Archivist"
	p := s["properties"].(node)
	p["outcome"] = node{"enum": []string{"success", "failure"}}
	for _, name := range []string{"id", "type", "action"} {
		p[name] = node{"type": "string", "minLength": 1}
	}
	for name, least := range map[string]int{"version": 1, "schema": 1, "time": 0} {
		p[name] = node{"type": "integer", "minimum": least}
	}
	p["subject"].(node)["properties"].(node)["id"] = node{"type": "string", "minLength": 1}
	return s
}

func schemaOf(k envelope.Kind) node {
	actions := []string{k.Action}
	for _, other := range []string{k.First, envelope.Delete} {
		if other != "" && !slices.Contains(actions, other) {
			actions = append(actions, other)
		}
	}
	p := node{"type": node{"const": k.Type}, "action": node{"enum": actions}, "schema": node{"const": k.Schema},
		"subject": node{"properties": node{"type": node{"const": k.Subject}}},
		"before":  node{"type": "object"}, "after": node{"type": "object"}}
	detail, known := details[k.Type]
	if !known {
		detail, known = details[k.Subject]
	}
	if known {
		p["detail"] = reflected(reflect.TypeOf(detail))
	}
	return node{"$schema": dialect, "title": k.Type, "allOf": []node{{"$ref": "event.schema.json"}}, "properties": p}
}

// reflected is the schema of the JSON of a type.
func reflected(t reflect.Type) node {
	if t == reflect.TypeFor[json.RawMessage]() || t == reflect.TypeFor[map[string]any]() {
		return node{} // whatever it has
	}
	if t.Implements(reflect.TypeFor[json.Marshaler]()) {
		panic("what is the JSON of " + t.String() + "?")
	}
	switch t.Kind() {
	case reflect.Pointer:
		return reflected(t.Elem())
	case reflect.Struct:
		s := node{"type": "object", "properties": node{}}
		required := properties(t, s["properties"].(node))
		if len(required) > 0 {
			s["required"] = slices.Sorted(maps.Keys(required))
		}
		return s
	case reflect.Slice:
		return node{"type": "array", "items": reflected(t.Elem())}
	case reflect.Map:
		return node{"type": "object", "additionalProperties": reflected(t.Elem())}
	case reflect.String:
		return node{"type": "string"}
	case reflect.Bool:
		return node{"type": "boolean"}
	case reflect.Float64:
		return node{"type": "number"}
	case reflect.Int, reflect.Int64:
		return node{"type": "integer"}
	}
	panic("what is the JSON of " + t.String() + "?")
}

// properties puts the fields of a struct into p, and returns those that are always there.
func properties(t reflect.Type, p node) (required map[string]bool) {
	required = map[string]bool{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			maps.Copy(required, properties(f.Type, p))
			continue
		case name == "-" || !f.IsExported():
			continue
		case name == "":
			name = f.Name
		}
		p[name] = reflected(f.Type)
		if strings.Contains(options, "omit") {
			continue
		}
		required[name] = true
		if kind := f.Type.Kind(); kind == reflect.Slice || kind == reflect.Map || kind == reflect.Pointer {
			p[name] = node{"anyOf": []node{reflected(f.Type), {"type": "null"}}}
		}
	}
	return required
}
