package token

import (
	"os"
	"testing"

	"archivist/pkg/events/event/eventtest"
)

// TestMain compares every event with the schema of its type.
func TestMain(m *testing.M) { os.Exit(eventtest.Main(m, "token")) }
