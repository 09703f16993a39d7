package component

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// compiledSchema is the schema, ready to check documents.
func compiledSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("memory:///component.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("memory:///component.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSchemaHasEveryField: the schema names the fields of a definition, and no others.
func TestSchemaHasEveryField(t *testing.T) {
	var s node
	if err := json.Unmarshal(Schema(), &s); err != nil {
		t.Fatal(err)
	}
	sameFields(t, "", reflect.TypeFor[Definition](), s)
}

func sameFields(t *testing.T, at string, of reflect.Type, s node) {
	properties, _ := s["properties"].(node)
	if n := of.NumField(); n != len(properties) {
		t.Errorf("%s has %d fields, the schema %d", at, n, len(properties))
	}
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		p, ok := properties[name].(node)
		if !ok {
			t.Errorf("the schema does not name %s.%s", at, name)
			continue
		}
		inner := of.Field(i).Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct {
			sameFields(t, at+"."+name, inner, p)
		}
	}
}

// crossField are beginnings of reasons for which Check refuses what the schema accepts: fields do not go
// together, or a text is not valid in its language.
var crossField = []string{"pastFailure: ", "future: ", "event: Own is neither", "event: Manually_stopped",
	"items: expected", "items.ids: ", "items.filter: ", "timeout.runSeconds: ", "timeout.itemSeconds: ", "timeZone: ",
	"schedule: ", "runnable: ", "runnable.lambda: ", "runnable.task.cluster: ", "runnable.task.taskDefinition: ",
	"pastSuccess: ", "old: ", "everyDays: the component's event"}

// TestSchemaAgrees: of random definitions the schema accepts each that Check accepts, and Check refuses one
// that the schema accepts only for a reason that is not of one field.
func TestSchemaAgrees(t *testing.T) {
	schema := compiledSchema(t)
	rng := rand.New(rand.NewPCG(1, 3))
	accepted, both, refused := 0, 0, 0
	for range 20_000 {
		text := randomDefinition(rng)
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		said := schema.Validate(doc)
		d, err := Parse([]byte(text))
		if err == nil {
			err = d.Check()
		}
		switch {
		case said == nil && err == nil:
			both++
		case err == nil:
			t.Fatalf("Check accepts what the schema does not: %v\n%s", said, text)
		case said == nil:
			accepted++
			known := false
			for _, beginning := range crossField {
				known = known || strings.HasPrefix(err.Error(), beginning)
			}
			if !known {
				t.Fatalf("the schema accepts it, and Check says: %v\n%s", err, text)
			}
		default:
			refused++
		}
	}
	if both < 500 || accepted < 500 || refused < 500 {
		t.Errorf("%d accepted by both, %d by the schema only, %d by none", both, accepted, refused)
	}
}

// randomDefinition is a definition in which some fields are wrong.
func randomDefinition(rng *rand.Rand) string {
	d := node{"name": "check", "event": "Own", "future": []string{"Own"}, "runnable": node{"function": "x"}}
	values := map[string][]any{
		"name":        {"a", "A", "", strings.Repeat("a", 51), 7},
		"event":       {"Own", "object.create", "", "Manually_stopped", "x y"},
		"description": {"text", strings.Repeat("x", 1001)},
		"pastSuccess": {[]string{"A"}, []string{"A", "A"}, []string{}, nil, []string{"object.create"}, []string{"a.b"},
			"A"},
		"pastFailure": {[]string{"A"}, []string{"Own"}, []any{7}},
		"future":      {[]string{"Own", "A"}, []string{"B"}},
		"old":         {[]string{"Own"}, []string{"object.create"}, []string{"1"}},
		"everyDays":   {0, 1, -1, 36_500, 36_501},
		"types":       {[]string{"Object"}, []string{" "}, []string{}},
		"items": {node{"ids": []string{"item:a"}}, node{"ids": []string{"x"}}, node{"filter": "Object+All"},
			node{"filter": "?"}, node{}, nil, node{"other": 1}},
		"maxItems":    {0, 1, -1, 100_001, 1.5},
		"concurrency": {0, 40, 41},
		"instances":   {0, 10, 11},
		"timeout": {node{"itemSeconds": 10, "runSeconds": 5}, node{"itemSeconds": 900}, node{"runSeconds": 700_000},
			node{"itemSeconds": 5}, nil},
		"schedule": {"rate(5 minutes)", "sometimes", "", "30 2 * * *"},
		"timeZone": {"Europe/Berlin", "", "Nowhere"},
		"wake":     {true, "yes"},
		"runnable": {node{}, node{"lambda": "x"}, node{"function": "x", "lambda": "y"},
			node{"task": node{"cluster": "x"}},
			7},
		"retry": {node{"max": 1}, node{"max": 11}, node{"max": 0}, node{}, nil,
			node{"max": 1, "backoffSeconds": 90_000}},
		"maxResults": {1000, 1001, 0},
		"maxDepth":   {30, 31, 0},
		"paused":     {true, 1},
		"other":      {1},
	}
	for name, from := range values {
		if rng.IntN(12) == 0 {
			d[name] = pick(rng, from)
		}
	}
	data, _ := json.Marshal(d)
	return string(data)
}

// TestSchemaAcceptsTasks: the definition of a task, whole.
func TestSchemaAcceptsTasks(t *testing.T) {
	text := `{"name":"ocr","event":"Read","old":["Read"],"timeout":{"itemSeconds":7200,"runSeconds":7200},
		"runnable":{"task":{
		"cluster":"arn:aws:ecs:eu-central-1:000000000000:cluster/main",
		"taskDefinition":"arn:aws:ecs:eu-central-1:000000000000:task-definition/ocr:3",
		"container":"ocr","subnets":["subnet-1"],"securityGroups":["sg-1"]}}}`
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := compiledSchema(t).Validate(doc); err != nil {
		t.Error(err)
	}
	d, err := Parse([]byte(text))
	if err == nil {
		err = d.Check()
	}
	if err != nil {
		t.Error(err)
	}
}
