package event_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/guregu/dynamo/v2"

	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/events/event/eventtest"
)

var update = flag.Bool("update", false, "write the envelopes of the stored rows anew; the rows stay")

// TestStoredRows: a row of each type of events, in each schema that a release wrote, is read for ever:
// as the newest schema of its type, and as the JSON Schema says. testdata/rows has the rows. None is
// changed or removed: for a new type or schema one is added, with go test ./pkg/NAME -rows FOLDER.
func TestStoredRows(t *testing.T) {
	schemas, err := eventtest.Compile()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	for _, k := range envelope.Kinds {
		for schema := 1; schema <= k.Schema; schema++ {
			file := fmt.Sprintf("%s.%d.json", k.Type, schema)
			want[file] = true
			checkStored(t, schemas, k, schema, filepath.Join("testdata", "rows", file))
		}
	}
	files, err := os.ReadDir(filepath.Join("testdata", "rows"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !want[f.Name()] {
			t.Errorf("%s: its type or its schema is no longer in the table of types of events, but rows of it are "+
				"stored", f.Name())
		}
	}
}

// checkStored reads one stored row.
func checkStored(t *testing.T, schemas eventtest.Schemas, k envelope.Kind, schema int, file string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Errorf("a stored row is missing: %v", err)
		return
	}
	var s eventtest.Sample
	if err := json.Unmarshal(data, &s); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	item, err := s.Item()
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	var row event.Row
	if err := dynamo.UnmarshalItem(item, &row); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	e, err := row.Envelope()
	if err != nil || row.Type != k.Type || row.Schema != schema || e.Schema != k.Schema {
		t.Errorf("%s: type %s, schema %d, read as schema %d: %v", file, row.Type, row.Schema, e.Schema, err)
		return
	}
	if err := schemas.Check(e); err != nil {
		t.Errorf("%s: %v", file, err)
	}
	if *update {
		s.Envelope = &e
		data, err := json.MarshalIndent(s, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, append(data, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if s.Envelope == nil || !reflect.DeepEqual(plain(t, *s.Envelope), plain(t, e)) {
		t.Errorf("%s: it is now read as %+v", file, plain(t, e))
	}
}

// plain is a value as JSON, to compare it whatever the order and the white space.
func plain(t *testing.T, v any) (out any) {
	t.Helper()
	data, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}
