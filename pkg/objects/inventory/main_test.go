package inventory_test

import (
	"os"
	"testing"

	"archivist/pkg/events/event/eventtest"
)

// TestMain compares every event with the schema of its type. Package replica has that of object.repair.
func TestMain(m *testing.M) {
	os.Exit(eventtest.Main(m, "file", "object.create", "object.modify", "version"))
}
