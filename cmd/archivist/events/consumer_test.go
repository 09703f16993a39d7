package events

import (
	"strings"
	"testing"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/terminal"
)

// TestShownState: a consumer that does not run says why.
func TestShownState(t *testing.T) {
	for want, c := range map[string]v1.Consumer{
		"running":    {},
		"paused":     {ConsumerDefinition: v1.ConsumerDefinition{Paused: true}, Rebuild: "r"},
		"rebuilding": {Rebuild: "r"},
		"resetting":  {Resets: 1},
		"stopped":    {Stopped: 1},
	} {
		if got := shownState(c); got != want {
			t.Errorf("%+v: %s, want %s", c, got, want)
		}
	}
}

// TestShownWarnings: why a filter cannot be read is shown, also to programs.
func TestShownWarnings(t *testing.T) {
	for _, width := range []int{0, 200} {
		var out strings.Builder
		showConsumer(terminal.Page{Writer: &out, Width: width},
			v1.Consumer{AtLeast: true, Warnings: []string{"filter: column 1: no such type"}})
		if !strings.Contains(out.String(), "column 1: no such type") ||
			!strings.Contains(out.String(), "more than 0 events") ||
			strings.Contains(out.String(), "0 seconds") {
			t.Errorf("at a width of %d: %s", width, out.String())
		}
	}
}
