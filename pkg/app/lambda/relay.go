package lambda

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"archivist/pkg/aws/cloudwatch"
	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
)

// Placer gives events their places in the log. Both return also what was placed before an
// error.
type Placer interface {
	// Place places all events without a place of these subjects, and returns them.
	Place(ctx context.Context, subjects []event.Subject) ([]envelope.Event, error)

	// Sweep places events whose stream records were lost, and returns them.
	Sweep(ctx context.Context, until time.Time) ([]envelope.Event, error)
}

// Waker wakes consumers.
type Waker interface {
	// Placed wakes the consumers whose filters select one of these events.
	Placed(ctx context.Context, placed []envelope.Event) error

	// Tick wakes consumers that are due.
	Tick(ctx context.Context, until time.Time) error
}

// Relay is the function that gives events their places in the log, and wakes consumers. A
// record of the table's stream says only that its subject has a new event.
//
// A batch of records fails as a whole. It is then delivered again: what has a place keeps
// it. Records that are given up are found by the minute's sweep.
type Relay struct {
	Log       Placer
	Consumers Waker
	// Install and Hourly are called by the minute's rule only, never by records.
	// Install makes the consumers that ship; at a minute.
	Install func(ctx context.Context) error
	Hourly  func(ctx context.Context, until time.Time) error // expires what is old in the log
	Now     func() time.Time
	Budget  time.Duration // of one invocation
	Metrics *cloudwatch.Metrics
	Logger  *slog.Logger

	installed bool // by this process: a release starts new ones
}

// RelayEvent is what invokes the relay: records of the table's stream, or the minute's rule,
// which has none.
type RelayEvent struct {
	Records []events.DynamoDBEventRecord `json:"Records"`
}

// Handle handles records of the stream, or the minute. Each part is tried whatever became of
// the others, and the errors are joined: a failure of one must not stop all of them each
// minute.
func (r *Relay) Handle(ctx context.Context, in RelayEvent) error {
	began := r.Now()
	until := began.Add(r.Budget)
	ctx, cancel := context.WithTimeout(ctx, r.Budget)
	defer cancel()
	err := r.install(ctx, len(in.Records) == 0)
	placed, failed := r.place(ctx, in, until)
	err = errors.Join(err, failed)
	// Those that have a place wake consumers, whatever became of the others.
	err = errors.Join(err, r.Consumers.Placed(ctx, placed))
	if len(in.Records) == 0 {
		err = errors.Join(err, r.Consumers.Tick(ctx, until))
		if began.Minute() == 0 { // one that is missed is made up for by the next hour's
			err = errors.Join(err, r.Hourly(ctx, until))
		}
	}

	if len(placed) > 0 || err != nil {
		r.Logger.Info("relayed", "records", len(in.Records), "placed", len(placed),
			"ms", r.Now().Sub(began).Milliseconds())
	}
	return errors.Join(err, r.Metrics.Put(context.WithoutCancel(ctx)))
}

// install makes the consumers that ship, at the first minute of a process. If it fails, the
// next minute tries again.
func (r *Relay) install(ctx context.Context, minute bool) error {
	if !minute || r.installed {
		return nil
	}
	err := r.Install(ctx)
	r.installed = err == nil
	return err
}

// place gives places to the events of the records' subjects, or to those that the sweep
// finds.
func (r *Relay) place(ctx context.Context, in RelayEvent,
	until time.Time) ([]envelope.Event, error) {
	if len(in.Records) == 0 {
		return r.Log.Sweep(ctx, until)
	}
	return r.Log.Place(ctx, r.subjects(in.Records))
}

// subjects are those of the records, each once, in the order of the stream. A record of
// another row is no subject's: the event source's filter lets none through. Only the key is
// looked at: what the subject's events are is read from the table, so that a record which
// comes late or twice changes nothing.
func (r *Relay) subjects(records []events.DynamoDBEventRecord) (all []event.Subject) {
	seen := map[event.Subject]bool{}
	for _, record := range records {
		pk := record.Change.Keys["pk"]
		if pk.DataType() != events.DataTypeString {
			continue
		}

		s, err := event.SubjectAt(pk.String())
		if err != nil {
			r.Logger.Error("a record that is of no subject's event; its row is left alone", "error", err)
			continue
		}

		if !seen[s] {
			seen[s] = true
			all = append(all, s)
		}
	}
	return all
}
