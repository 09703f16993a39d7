package lambda

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"archivist/pkg/aws/cloudwatch"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/research"
)

// curator is what the function of curation calls.
type curator struct {
	kept        []string
	deadLetters []map[string]string
	bodies      []string
	looked      []time.Time
	err         error // of DeadLetter and Feeds
}

func (c *curator) function() *Curation {
	return &Curation{Now: func() time.Time { return time.UnixMilli(1000) }, Budget: time.Minute,
		Metrics: &cloudwatch.Metrics{}, Log: slog.New(slog.DiscardHandler),
		Curate: func(_ context.Context, r research.Curated, by research.By) (string, error) {
			switch r.ID {
			case "busy":
				return "", fault.New(fault.Unavailable, "later")
			case "broken":
				return "", errors.New("a defect")
			case "wrong":
				return "", fault.New(fault.Invalid, "url: found \"\x02\u2028%s\"", strings.Repeat("é", 1000))
			case "nowhere":
				return "", fault.New(fault.NotFound, "there is no research project")
			}
			priority := 0
			if r.Priority != nil {
				priority = *r.Priority
			}
			c.kept = append(c.kept, fmt.Sprint(r.Project, r.Kind, r.Source, r.ID, r.Title, r.URL, r.Size, r.SHA256,
				r.Withdrawn, priority, r.Curated, r.Initial, by.Component))
			return "key", nil
		},
		Feeds: func(_ context.Context, until time.Time) error {
			c.looked = append(c.looked, until)
			return c.err
		},
		DeadLetter: func(_ context.Context, body string, attributes map[string]string) error {
			if c.err != nil {
				return c.err
			}
			c.bodies, c.deadLetters = append(c.bodies, body), append(c.deadLetters, attributes)
			return nil
		}}
}

// TestCuration: a message that cannot be kept becomes a dead letter with the reason; one that may be kept
// later comes back; all others are kept.
func TestCuration(t *testing.T) {
	c := &curator{}
	var in CurationEvent
	sample(t, "curation.message.json", &in)
	message := func(id, body string) {
		in.Records = append(in.Records, events.SQSMessage{MessageId: id, Body: body, EventSourceARN: "arn:clips"})
	}
	for _, id := range []string{"busy", "wrong", "broken", "nowhere", "fine"} {
		message(id, `{"project":"p","kind":"clip","id":"`+id+`","url":"u"}`)
	}
	message("text", "hello")
	out, err := c.function().Handle(t.Context(), in)
	if err != nil || len(out.BatchItemFailures) != 2 || out.BatchItemFailures[0].ItemIdentifier != "busy" ||
		out.BatchItemFailures[1].ItemIdentifier != "broken" {
		t.Errorf("%+v, %v", out, err)
	}
	want := []string{"songs episode tbtl 4711 A morning https://media.example.org/4711.mp3 57600000 " +
		strings.Repeat("ab", 32) + " false 10 1795341600000 1795305600000 curation"}
	if len(c.kept) != 2 || strings.Join(strings.Fields(c.kept[0]), "") != strings.Join(strings.Fields(want[0]), "") {
		t.Errorf("kept: %q", c.kept)
	}
	if len(c.deadLetters) != 3 || c.bodies[2] != "hello" ||
		c.deadLetters[1]["reason"] != "there is no research project" ||
		c.deadLetters[1]["message"] != "nowhere" || c.deadLetters[1]["queue"] != "arn:clips" ||
		!strings.Contains(c.deadLetters[2]["reason"], "column 1: invalid character 'h'") {
		t.Errorf("dead letters: %q", c.deadLetters)
	}
	if r := c.deadLetters[0]["reason"]; !strings.HasPrefix(r, `url: found "??é`) || len(r) > mostReason+10 ||
		strings.ContainsAny(r, "\x02\u2028") {
		t.Errorf("a reason: %q", r)
	}
	c.err = errors.New("the queue cannot be reached")
	out, err = c.function().Handle(t.Context(), in)
	back := []string{}
	for _, f := range out.BatchItemFailures {
		back = append(back, f.ItemIdentifier)
	}
	if err != nil || !slices.Equal(back, []string{"busy", "wrong", "broken", "nowhere", "text"}) {
		t.Errorf("without the dead-letter queue: %v, %v", back, err)
	}
}

// TestCurationSchedule: the schedule looks at feeds, for a time.
func TestCurationSchedule(t *testing.T) {
	c := &curator{}
	var in CurationEvent
	sample(t, "scheduler.minute.json", &in)
	_, err := c.function().Handle(t.Context(), in)
	if err != nil || len(c.looked) != 1 || !c.looked[0].Equal(time.UnixMilli(61_000)) {
		t.Errorf("%v, %v", c.looked, err)
	}
	c.err = errors.New("the table cannot be reached")
	_, err = c.function().Handle(t.Context(), in)
	if !errors.Is(err, c.err) {
		t.Error(err)
	}
}
