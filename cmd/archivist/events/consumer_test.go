package events

import (
	"testing"

	v1 "archivist/pkg/api/v1"
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
