package events

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"archivist/cmd/archivist/command"
	"archivist/cmd/archivist/command/commandtest"
	v1 "archivist/pkg/api/v1"
)

// TestListEnds: what the end of a list leaves out is said on the standard error, and only at its end.
func TestListEnds(t *testing.T) {
	page := v1.EventPage{Items: make([]v1.LogEvent, 2), Others: 3,
		Incomplete: "24 logs go on in the archive only"}
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(page)
	}))
	defer api.Close()
	c := commandtest.New(t, api.URL, func() command.Program {
		var all struct {
			command.Flags
			Event Cmd `cmd:""`
		}
		return command.Program{Commands: &all, Flags: &all.Flags, Texts: []command.Texts{Texts}}
	})
	c.Run("event list")
	for _, says := range []string{"24 logs go on in the archive only", "3 other logs are not in the list"} {
		if !strings.Contains(c.Err.String(), says) {
			t.Errorf("it is not said that %q:\n%s", says, c.Err.String())
		}
	}
	c.Run("event list -L 1")
	if strings.Contains(c.Err.String(), "archive only") || !strings.Contains(c.Err.String(), "the first 1") {
		t.Errorf("of a list that is cut:\n%s", c.Err.String())
	}
}
