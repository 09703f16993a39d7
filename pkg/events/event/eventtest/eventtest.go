// Package eventtest checks in tests that events are as their JSON Schemas say.
package eventtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/guregu/dynamo/v2"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"archivist/events"
	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/table/tabletest"
)

// Folder has the schemas and the samples, in package events.
const Folder = "types"

// Schemas are the compiled schemas of the types of events, by type.
type Schemas map[string]*jsonschema.Schema

// Compile compiles the schemas of all types that have one. They are made strict: properties
// that they do not name are refused, so that a schema that lacks one is found. For readers,
// who may have an older schema than the writer, they are not.
func Compile() (Schemas, error) {
	names, err := events.Types.ReadDir(Folder)
	if err != nil {
		return nil, err
	}

	c := jsonschema.NewCompiler()
	for _, n := range names {
		data, err := events.Types.ReadFile(path.Join(Folder, n.Name()))
		if err != nil {
			return nil, err
		}

		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", n.Name(), err)
		}

		if err := c.AddResource("memory:///"+n.Name(),
			strict(doc, n.Name() == "event.schema.json")); err != nil {
			return nil, err
		}
	}

	all := Schemas{}
	for _, n := range names {
		name, ok := strings.CutSuffix(n.Name(), ".schema.json")
		if !ok || name == "event" {
			continue
		}
		if all[name], err = c.Compile("memory:///" + n.Name()); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// strict refuses properties that are not named, of the objects below doc, and of doc if its own are
// all that there are. It changes doc, and returns it.
func strict(doc any, own bool) any {
	switch d := doc.(type) {
	case map[string]any:
		if _, object := d["properties"]; object && own {
			d["additionalProperties"] = false
		}
		for name, v := range d {
			d[name] = strict(v, own || name == "detail" || name == "before" || name == "after")
		}
	case []any:
		for i, v := range d {
			d[i] = strict(v, own)
		}
	}
	return doc
}

// remedy is what a developer does about an event that is not as its schema says.
const remedy = "if the event is right, write the schemas with: go test ./events -run TestSchemas$ -update"

// Check returns why the event is not as the schema of its type says; nil if it is.
func (s Schemas) Check(e envelope.Event) error {
	schema, ok := s[e.Type]
	if !ok {
		return fmt.Errorf("events/types has no schema of %s: %s", e.Type, remedy)
	}

	data, err := json.Marshal(e)
	if err != nil {
		return err
	}

	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return err
	}

	if err := schema.Validate(doc); err != nil {
		return fmt.Errorf("%w\nof %s\n%s", err, data, remedy)
	}
	return nil
}

// samples is set by go test ./pkg/NAME -samples FOLDER.
var samples = flag.String("samples", "",
	"folder to which the first event of each type is written, if it has none")

// Main runs the tests of a package, and checks every event of these types that they write to
// tables in the process: it panics at one that is not as its schema says. If all tests run,
// it also fails if they write none of a type: then its schema was not compared with what the
// code writes. A type can be given by its beginning, e.g. "job".
func Main(m *testing.M, types ...string) int {
	schemas, err := Compile()
	if err != nil {
		panic(err)
	}

	mine := func(name string) bool {
		return slices.ContainsFunc(types,
			func(t string) bool { return name == t || strings.HasPrefix(name, t+".") })
	}

	var seen sync.Map
	tabletest.EveryWrite = func(c tabletest.Change) {
		e, ok := written(c)
		if !ok || !mine(e.Type) {
			return
		}

		if err := schemas.Check(e); err != nil {
			panic(err)
		}

		if _, again := seen.LoadOrStore(e.Type, true); !again {
			record(*samples, e.Type, e)
			record(*rows, fmt.Sprintf("%s.%d", e.Type, e.Schema), Sample{Row: encode(c.After)})
		}
	}

	code := m.Run()
	if code != 0 || partial() {
		return code
	}

	for _, k := range envelope.Kinds {
		if _, ok := seen.Load(k.Type); !ok && mine(k.Type) {
			fmt.Printf("no test writes an event of type %s: its schema is not tested\n", k.Type)
			code = 1
		}
	}
	return code
}

// written is the event that a write inserts; ok is false for other rows, and for what changes an
// event's row, such as its place.
func written(c tabletest.Change) (e envelope.Event, ok bool) {
	var row event.Row
	if c.Before != nil || c.After == nil || dynamo.UnmarshalItem(c.After, &row) != nil ||
		!strings.HasPrefix(row.SK, event.Prefix) {
		return e, false
	}
	e, err := row.Envelope()
	if err != nil {
		panic(err)
	}
	return e, true
}

// partial reports whether only some of the tests ran, or ran on a table of another process.
func partial() bool {
	for _, name := range []string{"test.run", "test.skip", "test.list"} {
		if f := flag.Lookup(name); f != nil && f.Value.String() != "" {
			return true
		}
	}
	return !tabletest.InProcess()
}

// record writes a sample into the folder, if there is one. The first is kept: a sample that changes
// with each run would say nothing.
func record(folder, name string, e any) {
	if folder == "" {
		return
	}

	data, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		panic(err)
	}

	f, err := os.OpenFile(filepath.Join(folder, name+".json"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return
	}

	if err != nil {
		panic(err)
	}

	_, err = f.Write(append(data, '\n'))
	if err := errors.Join(err, f.Close()); err != nil {
		panic(err)
	}
}
