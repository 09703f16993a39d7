package lambda

import (
	"context"
	"log/slog"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"archivist/pkg/aws/cloudwatch"
	"archivist/pkg/research"
	"archivist/pkg/research/curation"
)

// Curation is the function of curated episodes and clips: it keeps what the messages of their
// queues say, and looks at feeds, by a schedule.
type Curation struct {
	Curate func(ctx context.Context, r research.Curated, by research.By) (key string, err error)
	Feeds  func(ctx context.Context, until time.Time) error // looks at those that are due

	// DeadLetter puts a message that can never be kept on the dead-letter queue, with why.
	DeadLetter DeadLetter

	Now     func() time.Time
	Budget  time.Duration // in which looks at feeds begin
	Metrics *cloudwatch.Metrics
	Log     *slog.Logger
}

// CurationEvent is what invokes the function: messages of the queues curated-episodes and
// curated-clips, or the schedule, which has none. A message of either queue says itself what
// it is about.
type CurationEvent struct {
	Records []events.SQSMessage `json:"Records"`
}

// Handle keeps each message. The response lists those that have to be delivered again; what
// is wrong with one does not keep others back. A look at feeds that failed is an error of the
// invocation; the schedule looks again.
func (c *Curation) Handle(ctx context.Context, in CurationEvent) (events.SQSEventResponse, error) {
	defer func() { _ = c.Metrics.Put(context.WithoutCancel(ctx)) }() // the log has what was lost
	if len(in.Records) == 0 {
		err := c.Feeds(ctx, c.Now().Add(c.Budget))
		if err != nil {
			c.Log.Error("feeds were not looked at", "error", err)
		}
		return none(), err
	}
	return inbox{handle: c.keep, deadLetter: c.DeadLetter, log: c.Log}.all(ctx, in.Records), nil
}

// keep keeps what a message says.
func (c *Curation) keep(ctx context.Context, body string) error {
	m, err := curation.Decode(body)
	if err != nil {
		return err
	}
	_, err = c.Curate(ctx, Curated(m.Project, research.Kind(m.Kind), m.Record),
		research.By{Actor: "curation", Component: "curation"})
	return err
}

// Curated is a record of a curator as it is kept. Dates are milliseconds since 1970.
func Curated(project string, kind research.Kind, r curation.Record) research.Curated {
	return research.Curated{
		Project:   project,
		Kind:      kind,
		Source:    r.Source,
		ID:        r.ID,
		Title:     r.Title,
		URL:       r.URL,
		Size:      r.Size,
		SHA256:    r.SHA256,
		Withdrawn: r.Withdrawn,
		Priority:  r.Priority,
		Curated:   int64(r.Curated),
		Initial:   int64(r.Initial),
	}
}
