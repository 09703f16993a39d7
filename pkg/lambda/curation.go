package lambda

import (
	"context"
	"log/slog"
	"strings"
	"time"
	"unicode"

	"github.com/aws/aws-lambda-go/events"

	"archivist/pkg/cloudwatch"
	"archivist/pkg/curation"
	"archivist/pkg/fault"
	"archivist/pkg/research"
)

// Curation is the function of curated episodes and clips: it keeps what the messages of their queues say,
// and looks at feeds, by a schedule.
type Curation struct {
	Curate func(ctx context.Context, r research.Curated, by research.By) (key string, err error)
	Feeds  func(ctx context.Context, until time.Time) error // looks at those that are due

	// Bury puts a message that can never be kept on the dead-letter queue, with why.
	Bury func(ctx context.Context, body string, attributes map[string]string) error

	Now     func() time.Time
	Budget  time.Duration // in which looks at feeds begin
	Metrics *cloudwatch.Metrics
	Log     *slog.Logger
}

// CurationEvent is what invokes the function: messages of the queues curated-episodes and curated-clips,
// or the schedule, which has none.
type CurationEvent struct {
	Records []events.SQSMessage `json:"Records"`
}

// Handle keeps each message. The response lists those that have to be delivered again; what is wrong with
// one does not keep others back.
func (c *Curation) Handle(ctx context.Context, in CurationEvent) (events.SQSEventResponse, error) {
	defer func() { _ = c.Metrics.Put(context.WithoutCancel(ctx)) }() // the log has what was lost
	out := none()
	if len(in.Records) == 0 {
		err := c.Feeds(ctx, c.Now().Add(c.Budget))
		if err != nil {
			c.Log.Error("feeds were not looked at", "error", err)
		}
		return out, err
	}
	for _, record := range in.Records {
		err := c.keep(ctx, record)
		if err != nil {
			c.Log.Error("not kept; the message comes back", "message", record.MessageId, "error", err)
			out.BatchItemFailures = append(out.BatchItemFailures, again(record))
		}
	}
	return out, nil
}

// keep keeps what a message says. The error means that it may be kept later.
func (c *Curation) keep(ctx context.Context, record events.SQSMessage) error {
	m, err := curation.Decode(record.Body)
	if err == nil {
		_, err = c.Curate(ctx, Curated(m.Project, research.Kind(m.Kind), m.Record), research.By{Actor: "curation",
			Component: "curation"})
	}
	switch fault.Of(err) {
	case fault.Invalid, fault.NotFound: // it would fail in the same way again
		c.Log.Error("a message that cannot be kept; it becomes a dead letter", "message", record.MessageId,
			"error", err)
		return c.Bury(ctx, record.Body, map[string]string{"reason": reason(err), "message": record.MessageId,
			"queue": record.EventSourceARN})
	}
	return err
}

// Curated is a record of a curator as it is kept.
func Curated(project string, kind research.Kind, r curation.Record) research.Curated {
	return research.Curated{Project: project, Kind: kind, Source: r.Source, ID: r.ID, Title: r.Title, URL: r.URL,
		Size: r.Size, SHA256: r.SHA256, Withdrawn: r.Withdrawn, Priority: r.Priority, Curated: int64(r.Curated),
		Initial: int64(r.Initial)}
}

// mostReason is how many bytes of a reason are sent with a message.
const mostReason = 1000

// reason is the text of an error as the attribute of a message can have it: no control characters, not
// empty.
func reason(err error) string {
	text := err.Error()
	if len(text) > mostReason {
		text = text[:mostReason] + "…"
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
}

// PendingWork wakes the function pending-work for a project. It carries no truth.
type PendingWork struct {
	Project string `json:"project"`
}
