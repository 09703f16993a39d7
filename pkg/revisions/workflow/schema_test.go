package workflow

import (
	"bytes"
	"flag"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files")

// TestSchemaFile: the schema that is embedded follows from the limits.
func TestSchemaFile(t *testing.T) {
	made := makeSchema()
	if *update {
		if err := os.WriteFile("schema.json", made, 0o644); err != nil {
			t.Fatal(err)
		}
	} else if !bytes.Equal(made, Schema) {
		t.Error("schema.json is not that of the limits; go test ./pkg/revisions/workflow -update")
	}
}
