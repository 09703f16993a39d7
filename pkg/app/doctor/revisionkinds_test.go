package doctor

import (
	"testing"

	"archivist/pkg/kernel/table"
)

// TestRevisionKinds: each kind of rows of the revision queue is known, and what is none is not.
func TestRevisionKinds(t *testing.T) {
	for _, k := range []table.Key{{PK: "ARCHIVE#maps", SK: "ARCHIVE"}, {PK: "ARCHIVE#maps", SK: "WAKE"},
		{PK: "ARCHIVEOF#ark:/99999/fk4tq65d6k", SK: "maps"},
		{PK: "REVISION#maps/1", SK: "REVISION"}, {PK: "TASK#maps/1/index", SK: "TASK"},
		{PK: "TASK#maps/1/index", SK: "WAITER#maps/2/index"}, {PK: "WORKFLOW#maps", SK: "0a1b"},
		{PK: "TASKNAMES#maps", SK: "index"}, {PK: "TASKLIVE#maps#index", SK: "000000000001#001#index#000000"},
		{PK: "TASKTIMED#maps#index", SK: "000000000001#001#index#000001"},
		{PK: "TASKCANCEL#maps#index", SK: "000000000001#001#index#000000"},
		{PK: "TASKLOCK#maps#disk", SK: "LOCK"}, {PK: "TASKLINE#maps", SK: "run#000000000001#001#index#000000#maps"},
		{PK: "TASKRUNS#maps", SK: "key"}} {
		if _, known := kindOf(k); !known {
			t.Errorf("the row %s is of an unknown kind", k)
		}
	}
	for _, k := range []table.Key{{PK: "ARCHIVE#maps", SK: "OTHER"}, {PK: "TASKS#maps", SK: "x"}} {
		if _, known := kindOf(k); known {
			t.Errorf("the row %s is of a known kind", k)
		}
	}
}
