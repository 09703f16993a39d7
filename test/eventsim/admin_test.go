package eventsim

import (
	"context"

	"archivist/pkg/events/consumer"
)

// connect wires the runtime of consumers as this process has it.
func (a *actor) connect() {
	handlers := map[string]consumer.Handler{}
	for _, s := range specs {
		handlers[s.name] = a.handler(a.w.check.consumers[s.name])
		if wrap := a.w.mutant.handler; wrap != nil {
			handlers[s.name] = wrap(handlers[s.name])
		}
	}
	var log consumer.Log = a.log
	if wrap := a.w.mutant.log; wrap != nil {
		log = wrap(a, log)
	}
	store := &consumer.Store{Table: a.table, Log: log, Now: a.Now, NewID: a.w.NewID,
		Handlers: consumer.Names(handlers)}
	a.run = &consumer.Runtime{Store: store, Handlers: handlers, Wake: a.wake, Metric: a.w.count}
}

func (w *world) count(name string, n float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.metrics[name] += n
}

// define is how a consumer is configured.
func (w *world) define(s spec, batch int) consumer.Definition {
	d := consumer.Definition{Name: s.name, Filter: s.filter, Target: consumer.Target{Handler: s.name},
		Order: w.check.consumers[s.name].order, Batch: batch, Window: 8, Concurrency: 2, Retries: 1,
		Start: consumer.StartHorizon}
	switch {
	case s.merges:
		d.Coalesce = &consumer.Coalesce{Debounce: w.s.quiet, MaxWait: 4 * w.s.quiet}
	case s.name == unordered:
		d.OwnEvents = consumer.OwnHandle
	case w.s.block:
		d.OnFailure = consumer.Block
	}
	return d
}

// apply makes the consumers.
func (a *actor) apply(ctx context.Context) {
	for _, s := range specs {
		if _, err := a.run.Store.Apply(ctx, a.w.define(s, 3), a.by()); err != nil {
			a.w.check.fail("the consumer %s was refused: %v", s.name, err)
		}
	}
}

// by is who acts, and why.
func (a *actor) by() consumer.By { return consumer.By{Actor: a.Name, Reason: "the simulation"} }

// administrate makes one action of an admin.
func (a *actor) administrate(ctx context.Context) {
	s := specs[a.Rng.IntN(len(specs))]
	if a.w.s.split && a.Rng.IntN(5) == 0 {
		a.did("split", "", a.log.Split(ctx, "c0", 1+a.Rng.IntN(3)))
		return
	}
	switch n := a.Rng.IntN(12); {
	case n < 2:
		a.did("pause", s.name, a.run.Store.Pause(ctx, s.name, a.by()))
	case n < 5:
		a.did("resume", s.name, a.run.Store.Resume(ctx, s.name, a.by()))
	case n < 6:
		_, err := a.run.Store.Apply(ctx, a.w.define(s, 1+a.Rng.IntN(5)), a.by())
		a.did("redefine", s.name, err)
	case n < 9:
		a.redrive(ctx, s.name, a.Rng.IntN(6) == 0)
	case a.w.s.resets && n < 10:
		a.skip(ctx, s.name)
	case a.w.s.resets:
		to := []string{consumer.StartLatest, consumer.StartHorizon, consumer.StartHorizon}[a.Rng.IntN(3)]
		a.did("reset to "+to, s.name, a.run.Store.Reset(ctx, s.name, "", to, a.by()))
	}
}

// did counts an action that was accepted.
func (a *actor) did(what, name string, err error) {
	a.w.Log("  (%s: %s %s: %v)", a.Name, what, name, err)
	if err == nil {
		a.w.Met("admin: " + what)
	}
}

// redrive redrives or discards what a consumer has parked: all, one, or by a filter.
func (a *actor) redrive(ctx context.Context, name string, discard bool) {
	selection := consumer.Selection{All: true}
	if kept := a.w.check.consumers[name].sortedParked(); len(kept) > 0 && a.Rng.IntN(3) == 0 {
		selection = consumer.Selection{Event: kept[a.Rng.IntN(len(kept))]}
	} else if a.Rng.IntN(4) == 0 {
		selection = consumer.Selection{Filter: "Object+modify"}
	}
	if discard {
		_, err := a.run.Store.Discard(ctx, name, selection, a.by())
		a.did("discard", name, err)
		return
	}
	_, err := a.run.Store.Redrive(ctx, name, selection, a.by())
	a.did("redrive", name, err)
}

// skip moves a cursor past some events.
func (a *actor) skip(ctx context.Context, name string) {
	of := a.w.check.consumers[name]
	for _, partition := range a.w.check.sortedPartitions() {
		at, head := of.cursor(partition).seq, a.w.check.partitions[partition].head
		if at >= head || a.Rng.IntN(3) > 0 {
			continue
		}
		a.skips = true
		err := a.run.Store.Skip(ctx, name, partition, at+1+a.Rng.Int64N(head-at), a.by())
		a.skips = false
		a.did("skip", name, err)
	}
}

// resumeAll ends all pauses.
func (a *actor) resumeAll(ctx context.Context) {
	for _, s := range specs {
		if err := a.run.Store.Resume(ctx, s.name, a.by()); err != nil {
			a.w.check.fail("resume %s: %v", s.name, err)
		}
	}
}

// redriveAll redrives all that is parked.
func (a *actor) redriveAll(ctx context.Context) {
	for _, s := range specs {
		if len(a.w.check.consumers[s.name].parked) == 0 {
			continue
		}
		_, err := a.run.Store.Redrive(ctx, s.name, consumer.Selection{All: true}, a.by())
		a.w.Log("  (%s redrives %s: %v)", a.Name, s.name, err)
	}
}
