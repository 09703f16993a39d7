package envelope_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"archivist/pkg/events/envelope"
)

// TestCauseHeader: a cause that is encoded is read again as it was.
func TestCauseHeader(t *testing.T) {
	for _, c := range []envelope.Cause{
		{},
		{Event: "01M7.0", Root: "01M7.0", Depth: 0},
		{Event: "a b&c=d", Root: "ä", Depth: 3, Components: []string{"x", "a robot", "x"}},
	} {
		got, err := envelope.DecodeCause(c.Encode())
		if err != nil || !reflect.DeepEqual(got, c) {
			t.Errorf("%q: %+v, %v; expected %+v", c.Encode(), got, err, c)
		}
	}
}

// TestBadCause: a cause that no consumer could have is refused, and the error names the field.
func TestBadCause(t *testing.T) {
	for text, names := range map[string]string{
		"event=e&root=r":                               "depth",
		"event=e&root=r&depth=-1":                      "depth",
		"event=e&root=r&depth=51":                      "0 to 50",
		"event=e&root=r&depth=9&component=a":           "with 1 components",
		"event=e&root=r&depth=1&component=" + long(65): "component: expected 1 to 64",
		"event=e&root=r&depth=1&depth=2":               "depth",
		"event=e&depth=1":                              "root",
		"event=&root=r&depth=1":                        "event",
		"event=e&root=r&depth=1&other=1":               "other",
		"event=e%0a&root=r&depth=1":                    "event",
		"event=e;root=r":                               "event=…",
		"root=r&depth=1&event=" + long(201):            "event",
		"event=e&root=r&depth=1" + components(102):     "components",
		"event=e&root=r&depth=1&component=" + "%ff":    "component",
	} {
		if c, err := envelope.DecodeCause(text); err == nil || !strings.Contains(err.Error(), names) ||
			!reflect.DeepEqual(c, envelope.Cause{}) {
			t.Errorf("%q: %+v, error %v", text, c, err)
		}
	}
}

func long(n int) string { return strings.Repeat("x", n) }

func components(n int) (out string) {
	for i := range n {
		out += fmt.Sprint("&component=", i)
	}
	return out
}
