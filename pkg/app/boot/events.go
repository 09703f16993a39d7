package boot

import (
	"cmp"
	"context"
	"errors"
	"time"

	"archivist/pkg/app/lambda"
	"archivist/pkg/events/consumer"
	"archivist/pkg/events/eventlog"
	"archivist/pkg/events/target"
	"archivist/pkg/ingest/ezid"
	"archivist/pkg/objects/aip"
	"archivist/pkg/revisions/revision"
	"archivist/pkg/views/search"
	"archivist/pkg/views/snapshot"
)

// Relay is the function that gives events their places in the log. Its handlers are nil,
// since no consumer runs in it.
func (s *System) Relay() *lambda.Relay {
	return &lambda.Relay{
		Log:       s.events,
		Consumers: s.consumers(nil),
		Install:   s.install,
		Hourly:    s.keepLog,
		Now:       s.queue.Now,
		Budget:    s.queue.Rules.Timing.Events().RelayBudget,
		Metrics:   s.metrics,
		Logger:    s.log,
	}
}

// Consumer is the function in which consumers of events run. A rebuild of the search index also
// removes from it what is not stored any more: that is its pruner.
func (s *System) Consumer(open OpenIndex) *lambda.Consumer {
	searcher := s.searching(open)
	runtime := s.consumers(s.handlers(searcher))
	runtime.Pruners = map[string]consumer.Pruner{search.Name: searcher}
	return &lambda.Consumer{
		Runtime: runtime,
		Wake:    s.wakeConsumer,
		Now:     s.queue.Now,
		Budget:  s.queue.Rules.Timing.Events().ConsumerBudget,
		Metrics: s.metrics,
		Log:     s.log,
	}
}

// keepLog removes from the table what is old in the log, if it is in the archive. What a
// required consumer has not passed stays, and is counted as a problem: the table grows
// meanwhile.
func (s *System) keepLog(ctx context.Context, until time.Time) error {
	done, err := s.events.Expire(ctx, eventlog.DefaultRetention, s.consumerStore().Passed, until)
	s.consumerMetric(ExpiryBlocked, float64(len(done.Blocked)))
	for _, b := range done.Blocked {
		s.log.Warn("events that should have expired wait", "partition", b.Partition, "for", b.By,
			"seq", b.Seq)
	}
	return err
}

// consumerStore keeps the consumers. It knows the names of the handlers that ship, so that a
// definition can name only those.
func (s *System) consumerStore() *consumer.Store {
	var handlers []string
	for _, d := range s.shipped() {
		handlers = append(handlers, d.Name)
	}
	return &consumer.Store{
		Table:    s.queue.Table,
		Log:      s.events,
		Now:      s.queue.Now,
		NewID:    newID,
		Handlers: handlers,
		Targets:  s.targets(),
		Files:    (&aip.Lister{Root: s.stages.Root}).Files,
	}
}

// consumers runs consumers. The relay only wakes them, and needs no handlers. A run has Grace
// between its budget and the end of its lease, in which it saves how far it is.
func (s *System) consumers(handlers map[string]consumer.Handler) *consumer.Runtime {
	times := s.queue.Rules.Timing.Events()
	calls := &target.Caller{
		Functions: s.functions,
		Queues:    s.sqs,
		Allowed:   s.targets(),
		Limit:     times.Call,
	}
	return &consumer.Runtime{
		Store:    s.consumerStore(),
		Handlers: handlers,
		Call:     calls.Call,
		Wake:     s.wakeConsumer,
		Metric:   s.consumerMetric,
		Grace:    times.Lease - times.ConsumerBudget,
		Lost:     times.Lost,
		Deferred: s.stages.Collections.Deferred,
		State: snapshot.Reader{
			Root:        s.stages.Root,
			Inventory:   s.stages.Inventory,
			Collections: s.stages.Collections,
			Log:         s.events,
		},
	}
}

// install makes the consumers that ship, and deletes what the settings leave out. Both can be
// repeated at any time.
func (s *System) install(ctx context.Context) error {
	err := s.consumerStore().Install(ctx, s.shipped())
	if !s.revisionQueue() {
		err = errors.Join(err, s.consumerStore().Uninstall(ctx, revision.VersionsName))
	}
	if s.registry == nil {
		err = errors.Join(err, s.consumerStore().Uninstall(ctx, ezid.Name))
	}
	return err
}

// wakeConsumer invokes the function in which consumers run. That function knows its own name
// from Lambda. The call is asynchronous; one that is lost costs a minute, until the relay's
// tick.
func (s *System) wakeConsumer(ctx context.Context, consumer, partition string) error {
	name := cmp.Or(s.env(EnvConsumer), s.env("AWS_LAMBDA_FUNCTION_NAME"))
	return s.functions.Send(ctx, name, lambda.WakeUp{Consumer: consumer, Partition: partition})
}
