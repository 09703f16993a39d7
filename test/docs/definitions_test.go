package docs

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"archivist/pkg/components/component"
	"archivist/pkg/events/consumer"
	"archivist/pkg/kernel/fault"
)

// documented is a field of a definition with what its document says of it.
type documented struct {
	field string // with a dot: of a part
	value any    // by default
	most  int    // 0: it is no number
	says  string // in the field's row
}

var definitions = map[string]struct {
	document, least string
	checked         func(text string) (any, error)
	limits          []documented
}{
	"component": {"components.md", `"name": "a", "event": "A", "future": ["A"], "runnable": {"function": "x"}`,
		func(text string) (any, error) {
			d, err := component.Parse([]byte(text))
			if err == nil {
				err = d.Check()
			}
			return d, err
		}, []documented{
			{"maxItems", 1000., 100_000, "| 1,000 | items of a run, at most 100,000."},
			{"concurrency", 10., 40, "| 10 | items at once, at most 40:"},
			{"instances", 1., 10, "| 1 | runs at once, at most 10."},
			{"timeout.itemSeconds", 60., 840, "| 60 | after this time the item has failed; at most 840,"},
			{"timeout.runSeconds", 3600., 604_800, "at most 604,800 |"},
			{"maxResults", 100., 1000, "| 100 | findings that a report keeps, at most 1,000"},
			{"maxDepth", 20., 30, "| 20 | how long a chain of causes may be, at most 30."},
		}},
	"consumer": {"consumers.md", `"name": "a", "filter": "All+All", "target": {"handler": "x"}`,
		func(text string) (any, error) {
			d, err := consumer.Parse([]byte(text))
			if err == nil {
				err = d.Check()
			}
			return d, err
		}, []documented{
			{"batch", 10., 90, "| 10, 4, 3 | events in a call (at most 90),"},
			{"concurrency", 4., 16, "calls at once in a partition (16),"},
			{"retries", 3., 10, "further tries (10);"},
			{"window", 500., 1000, "1 to 1,000 |"},
			{"maxDepth", 8., 50, "| 8 | how long a chain of causes may be, at most 50;"},
			{"mode", "async", 0, "| `async` |"},
			{"order", "subject", 0, "| `subject` |"},
			{"onFailure", "park", 0, "| `park` |"},
			{"start", "latest", 0, "| `latest` |"},
			{"ownEvents", "ignore", 0, "| `ignore` |"},
		}},
}

// TestDefinitions: the fields of a definition have the defaults and the limits that its document says.
func TestDefinitions(t *testing.T) {
	for kind, d := range definitions {
		text, err := os.ReadFile(filepath.Join(root, "docs", d.document))
		if err != nil {
			t.Fatal(err)
		}
		least, err := d.checked("{" + d.least + "}")
		if err != nil {
			t.Fatal(kind, err)
		}
		for _, l := range d.limits {
			if !rowSays(string(text), l) {
				t.Errorf("%s: no row of %s says %q", d.document, l.field, l.says)
			}
			if got := fieldOf(t, least, l.field); got != l.value {
				t.Errorf("%s: %s is %v by default, expected %v", kind, l.field, got, l.value)
			}
			for n, accepted := range map[int]bool{l.most: true, l.most + 1: false} {
				part, name, nested := strings.Cut(l.field, ".")
				field := fmt.Sprintf(`%q: %d`, part, n)
				if nested {
					field = fmt.Sprintf(`%q: {%q: %d}`, part, name, n)
				}
				_, err := d.checked("{" + d.least + ", " + field + "}")
				if l.most > 0 && (accepted && err != nil || !accepted && !fault.Is(err, fault.Invalid)) {
					t.Errorf("%s: %s of %d: %v", kind, l.field, n, err)
				}
			}
		}
	}
}

func rowSays(text string, l documented) bool {
	for line := range strings.Lines(text) {
		first, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		field := strings.HasPrefix(line, "| `") && strings.Contains(first, "`"+l.field+"`")
		if field && strings.Contains(line, l.says) {
			return true
		}
	}
	return false
}

// fieldOf is the value of a field as JSON has it.
func fieldOf(t *testing.T, definition any, field string) any {
	t.Helper()
	data, err := json.Marshal(definition)
	if err != nil {
		t.Fatal(err)
	}
	var value any
	if err := json.Unmarshal(data, &value); err != nil {
		t.Fatal(err)
	}
	for name := range strings.SplitSeq(field, ".") {
		fields, _ := value.(map[string]any)
		value = fields[name]
	}
	return value
}
