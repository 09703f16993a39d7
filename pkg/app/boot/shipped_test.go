package boot

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"archivist/pkg/aws/cloudwatch"
	"archivist/pkg/components/preservation"
	"archivist/pkg/events/consumer"
	"archivist/pkg/events/envelope"
	"archivist/pkg/events/eventlog"
	"archivist/pkg/events/filter"
	"archivist/pkg/ingest/ezid"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/stage"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/pkg/revisions/revision"
	"archivist/pkg/views/formatcounts"
	"archivist/pkg/views/search"
)

// TestShipped: each consumer that ships has a handler of its name, each handler has a consumer, and
// the definitions are accepted.
func TestShipped(t *testing.T) {
	for _, machine := range []string{"", "arn:aws:states:eu-west-1:111122223333:stateMachine:task-run"} {
		s := with(map[string]string{EnvTaskMachine: machine})
		s.queue, s.stages, s.scheduler = &queue.Queue{Table: tabletest.Open(t)}, &stage.Stages{}, &queue.Scheduler{}
		s.metrics, s.events, s.runner = &cloudwatch.Metrics{}, &eventlog.Log{Bucket: &bucket.Bucket{}}, s.newRunner()
		checkShipped(t, s)
		if has := s.handlers(search.Consumer{})[revision.VersionsName] != nil; has != (machine != "") {
			t.Errorf("with the machine %q, the consumer of versions is there: %v", machine, has)
		}
	}
}

// with is a system with an environment.
func with(env map[string]string) *System {
	return &System{env: func(name string) string { return env[name] }}
}

func checkShipped(t *testing.T, s *System) {
	t.Helper()
	handlers := s.handlers(search.Consumer{})
	names := consumer.Names(handlers)
	for _, d := range s.shipped() {
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

// TestShippedComponents: the definition of each component that ships is accepted, with a second bucket too. Objects are
// checked every 90 days.
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
		for _, d := range all {
			checks := d.Name == preservation.FixityCheck || d.Name == preservation.CopyCheck
			if want := map[bool]int{true: 90}[checks]; d.EveryDays != want {
				t.Errorf("%s is repeated after %d days, expected %d", d.Name, d.EveryDays, want)
			}
		}
		there, err := s.components().List(t.Context())
		if err != nil || len(there) != len(all) || len(all) < 3 {
			t.Errorf("the second bucket %q: %d components of %d, %v", bucket, len(there), len(all), err)
		}
	}
}

// TestIdentifiedFormatsAreIndexed: the search index, and what counts by format, is told when
// the component that identifies formats has worked on a version, and not of the work of others.
func TestIdentifiedFormatsAreIndexed(t *testing.T) {
	for _, d := range []consumer.Definition{search.Definition(), formatcounts.Definition()} {
		followsFormats(t, d)
	}
}

func followsFormats(t *testing.T, d consumer.Definition) {
	t.Helper()
	f, err := filter.Compile(d.Filter)
	if err != nil {
		t.Fatal(err)
	}
	kind, _ := envelope.KindOf("component.ran")
	for name, want := range map[string]bool{preservation.Identification: true,
		preservation.FixityCheck: false} {
		ran := envelope.Event{Type: kind.Type, Action: kind.Action,
			Subject: envelope.Ref{Type: kind.Subject},
			Context: envelope.Context{Component: name}}
		if f.Match(ran) != want {
			t.Errorf("%s: an event of %s is selected: %v", d.Name, name, !want)
		}
	}
}

// TestShippedIsDocumented: the table of consumers that ship has each of them, with its filter and whether it
// is required, and no others; and it names those that are never replayed.
func TestShippedIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../docs/consumers.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Consumers that ship\n")
	section, _, _ = strings.Cut(section, "\n## ")
	rows := map[string][]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\|(.*)$").FindAllStringSubmatch(section, -1) {
		rows[m[1]] = strings.Split(strings.ReplaceAll(m[2], "\\|", "\x00"), "|")
	}
	all := with(map[string]string{EnvTaskMachine: "arn"})
	all.registry = &ezid.Registry{}
	for _, d := range all.shipped() {
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
	var refused []string
	for _, d := range all.shipped() {
		if d.IgnoreReplays {
			refused = append(refused, "`"+d.Name+"`")
		}
	}
	slices.Sort(refused)
	says := "and is refused (of those that ship: " + strings.Join(refused, ", ") + ")"
	if !strings.Contains(string(text), says) {
		t.Errorf("the document does not say %q", says)
	}
}
