package componentsim

import (
	"context"
	"log/slog"

	"archivist/pkg/components/component"
	"archivist/pkg/events/consumer"
	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
)

// connect wires the services as this process has them.
func (a *actor) connect() {
	a.store = &component.Store{Table: a.table, Now: a.Now, NewID: a.newID, Functions: []string{robot},
		Allowed: []string{arn}, Wake: a.wake, Metric: a.w.count}
	a.runner = &component.Runner{Store: a.store, Functions: map[string]component.Function{robot: function{a}},
		Executions: a, Metric: a.w.count, Log: slog.New(slog.DiscardHandler)}
	handlers := map[string]consumer.Handler{component.FollowerName: component.Follower{Store: a.store}}
	store := &consumer.Store{Table: a.table, Log: a.log, Now: a.Now, NewID: a.newID,
		Handlers: consumer.Names(handlers)}
	a.run = &consumer.Runtime{Store: store, Handlers: handlers, Wake: a.wakeConsumer, Metric: a.w.count}
}

func (a *actor) consumerBy() consumer.By { return consumer.By{Actor: a.Name, Reason: "the simulation"} }

// wakeConsumer invokes a consumer asynchronously.
func (a *actor) wakeConsumer(_ context.Context, name, partition string) error {
	return a.Do("invoke "+name+" "+partition, func() error {
		a.w.consumers.Send(wakeUp{name, partition})
		return nil
	})
}

// relay is one invocation of the relay by the stream.
func (a *actor) relay(ctx context.Context) {
	var subjects []event.Subject
	for range 1 + a.Rng.IntN(6) {
		if s, ok := a.w.stream.Arrive(a.Rng); ok {
			subjects = append(subjects, s)
		}
	}
	if len(subjects) == 0 {
		return
	}
	a.Begin(relayTime)
	placed, err := a.log.Place(ctx, subjects)
	a.relayed(ctx, placed, err)
}

// relayed tells the consumers what was placed.
func (a *actor) relayed(ctx context.Context, placed []envelope.Event, err error) {
	a.w.Log("  (%s placed %d: %v)", a.Name, len(placed), err)
	if len(placed) > 0 {
		err := a.run.Placed(ctx, placed)
		a.w.Log("  (%s placed, wake-ups: %v)", a.Name, err)
	}
}

// consume is one invocation of a consumer.
func (a *actor) consume(ctx context.Context) {
	if u, ok := a.w.consumers.Arrive(a.Rng); ok {
		a.consumeOne(ctx, u)
	}
}

func (a *actor) consumeOne(ctx context.Context, u wakeUp) {
	more, err := a.run.Run(ctx, u.consumer, u.partition, a.Begin(relayTime))
	a.w.Log("  (%s ran %s in %s: more %v: %v)", a.Name, u.consumer, u.partition, more, err)
}
