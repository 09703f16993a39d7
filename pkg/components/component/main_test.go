package component

import (
	"encoding/json"
	"os"
	"testing"

	"archivist/pkg/events/event/eventtest"
)

// TestMain compares every event with the schema of its type.
func TestMain(m *testing.M) { os.Exit(eventtest.Main(m, "item", "component")) }

func toJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
