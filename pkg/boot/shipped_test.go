package boot

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"archivist/pkg/consumer"
	"archivist/pkg/preservation"
	"archivist/pkg/queue"
	"archivist/pkg/search"
	"archivist/pkg/stage"
	"archivist/pkg/table/tabletest"
)

// TestShipped: each consumer that ships has a handler of its name, each handler has a consumer, and
// the definitions are accepted.
func TestShipped(t *testing.T) {
	s := &System{env: func(string) string { return "" }, queue: &queue.Queue{Table: tabletest.Open(t)},
		stages: &stage.Stages{}, scheduler: &queue.Scheduler{}}
	s.runner = s.newRunner()
	handlers := s.handlers(search.Consumer{})
	names := consumer.Names(handlers)
	for _, d := range shipped() {
		i := slices.Index(names, d.Target.Handler)
		if d.Name != d.Target.Handler || i < 0 || handlers[d.Name] == nil {
			t.Errorf("%s has no handler of its name: %v", d.Name, d.Target)
			continue
		}
		names = slices.Delete(names, i, i+1)
		if err := d.Check(); err != nil {
			t.Errorf("%s: %v", d.Name, err)
		}
	}
	if len(names) > 0 {
		t.Errorf("handlers of no consumer: %v", names)
	}
}

// TestShippedComponents: the definition of each component that ships is accepted, with a second bucket too.
func TestShippedComponents(t *testing.T) {
	for _, bucket := range []string{"", "copy"} {
		env := map[string]string{EnvReplica: bucket}
		s := &System{env: func(name string) string { return env[name] }, queue: &queue.Queue{Table: tabletest.Open(t),
			Now: time.Now}, stages: &stage.Stages{}, scheduler: &queue.Scheduler{}, limits: DefaultLimits}
		s.stages.Root.Bucket.Client = s3.New(s3.Options{})
		s.runner = s.newRunner()
		all := preservation.Definitions(s.shippedComponents())
		if err := preservation.Install(t.Context(), s.components(), all); err != nil {
			t.Fatal(err)
		}
		there, err := s.components().List(t.Context())
		if err != nil || len(there) != len(all) || len(all) < 3 {
			t.Errorf("the second bucket %q: %d components of %d, %v", bucket, len(there), len(all), err)
		}
	}
}

// TestShippedIsDocumented: the table of consumers that ship has each of them, with its filter and whether it
// is required, and no others.
func TestShippedIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/consumers.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Consumers that ship\n")
	section, _, _ = strings.Cut(section, "\n## ")
	rows := map[string][]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\|(.*)$").FindAllStringSubmatch(section, -1) {
		rows[m[1]] = strings.Split(strings.ReplaceAll(m[2], "\\|", "\x00"), "|")
	}
	for _, d := range shipped() {
		row := rows[d.Name]
		delete(rows, d.Name)
		required := map[bool]string{true: "yes", false: "no"}[d.Required]
		if len(row) != 7 || strings.Trim(row[1], " `") != strings.ReplaceAll(d.Filter, "|", "\x00") ||
			strings.TrimSpace(row[4]) != required {
			t.Errorf("%s: the row is %q, expected the filter %s and required: %s", d.Name, row, d.Filter, required)
		}
	}
	if len(rows) > 0 {
		t.Errorf("rows of no consumer: %q", rows)
	}
}
