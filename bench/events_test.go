package bench

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"archivist/pkg/app/lambda"
	"archivist/pkg/events/consumer"
	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/events/eventlog"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue/queuetest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
)

// eventBench is the service, with the relay and consumers of events on the same table. What each
// of the two sides asks the table is counted apart.
type eventBench struct {
	machine *queuetest.Machine
	path    *meter // of the changes
	events  *meter // of what events cost afterwards
	runtime *consumer.Runtime
	log     *eventlog.Log

	invoked float64 // functions of events
	woken   []lambda.WakeUp
}

func newEventBench(t *testing.T, consumers int) *eventBench {
	fake := tabletest.New()
	path, events := &meter{DynamoDBAPI: fake}, &meter{DynamoDBAPI: fake}
	b := eventBenchOn(t, tabletest.Table(path), tabletest.Table(events), consumers)
	b.path, b.events = path, events
	*b.events = meter{DynamoDBAPI: fake}
	return b
}

// eventBenchOn is the same on one table that two clients see: that of the changes, and that of what
// events cause.
func eventBenchOn(t *testing.T, path, other *table.Table, consumers int) *eventBench {
	b := &eventBench{machine: queuetest.New(path, time.Now, 50)}
	n := 0
	id := func() string { n++; return fmt.Sprintf("01M7ZBMEYHBB62YP6S%08d", n) }
	b.log = &eventlog.Log{Table: other, Now: time.Now, NewID: id}
	handlers := map[string]consumer.Handler{"nothing": consumer.HandlerFunc(
		func(context.Context, consumer.Batch) ([]consumer.Failure, error) { return nil, nil })}
	b.runtime = &consumer.Runtime{Handlers: handlers,
		Store: &consumer.Store{Table: other, Log: b.log, Now: time.Now, NewID: id, Handlers: consumer.Names(handlers)},
		Wake: func(_ context.Context, c, p string) error {
			b.woken = append(b.woken, lambda.WakeUp{Consumer: c, Partition: p})
			return nil
		}}
	for i := range consumers {
		d := consumer.Definition{Name: fmt.Sprintf("c%02d", i), Filter: "All+All", Batch: 50,
			Target: consumer.Target{Handler: "nothing"}, Start: consumer.StartHorizon}
		if _, err := b.runtime.Store.Apply(t.Context(), d, consumer.By{Actor: "bench"}); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// ingest runs a batch of jobs. It returns the batch's id.
func (b *eventBench) ingest(t *testing.T, jobs int) string {
	b.machine.Step = unpacks(jobs)
	report, err := b.machine.Queue.Submit(t.Context(), ingest.Batch{Collection: "bench"}, "", nil, "me")
	if err != nil {
		t.Fatal(err)
	}
	if err := b.machine.Run(t.Context(), 40); err != nil {
		t.Fatal(err)
	}
	return report.Batch.ID
}

// relay gives all events of a batch their places, in batches of the stream, and runs the consumers that
// each of them wakes.
func (b *eventBench) relay(t *testing.T, batch string, jobs, perBatch int) (placed int) {
	subjects := []event.Subject{{Type: event.Batch, ID: batch}}
	for i := range jobs {
		subjects = append(subjects, event.Subject{Type: event.Job, ID: ingest.JobID(subjects[0].ID, i+1)})
	}
	for len(subjects) > 0 {
		n := min(len(subjects), perBatch)
		got, err := b.log.Place(t.Context(), subjects[:n])
		if err != nil {
			t.Fatal(err)
		}
		subjects = subjects[n:]
		placed += len(got)
		b.wake(t, got)
	}
	return placed
}

// wake is the end of an invocation of the relay, and what follows from it.
func (b *eventBench) wake(t *testing.T, placed []envelope.Event) {
	b.invoked++
	if err := b.runtime.Placed(t.Context(), placed); err != nil {
		t.Fatal(err)
	}
	for len(b.woken) > 0 {
		w := b.woken[0]
		b.woken = b.woken[1:]
		b.invoked++
		if _, err := b.runtime.Run(t.Context(), w.Consumer, w.Partition, time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestEventCost: a change costs the same calls and units however many consumers there are, and what
// its events cost afterwards is what bench/RESULTS.md says.
func TestEventCost(t *testing.T) {
	const jobs, perBatch = 100, 5 // subjects of one batch of the stream: some 40 events
	per := func(n float64) float64 { return n * 1000 / jobs }
	paths := map[int]meter{}
	for _, c := range []struct {
		consumers                       int
		writes, reads, invoked, seconds float64 // at most
	}{{0, 47_000, 2_600, 220, 0.5}, {20, 60_000, 240_000, 4_600, 0.15}} {
		b := newEventBench(t, c.consumers)
		placed := b.relay(t, b.ingest(t, jobs), jobs, perBatch)
		b.path.DynamoDBAPI = nil
		paths[c.consumers] = *b.path
		t.Logf("%d consumers: the write path makes %.0f calls for %d jobs; %d events", c.consumers, b.path.calls, jobs,
			placed)
		bill(t, fmt.Sprintf("events, %d consumers", c.consumers), []charge{
			{"DynamoDB write units", per(b.events.writes), perWrite, c.writes},
			{"DynamoDB read units", per(b.events.reads), perRead, c.reads},
			{"Lambda requests", per(b.invoked), perLambda, c.invoked},
			{"Lambda GB-seconds", per(b.invoked) * c.seconds, perGBs, 0},
		})
	}
	if paths[0] != paths[20] {
		t.Errorf("the write path asks for %+v without consumers, for %+v with 20", paths[0], paths[20])
	}
}

// TestWritePath measures on DynamoDB Local how long a call of the write path takes, with no consumer and
// with 20, which get every event. The two take turns; their consumers run in between.
func TestWritePath(t *testing.T) {
	at := os.Getenv(tabletest.EndpointVariable)
	if at == "" {
		t.Skip("measured on DynamoDB Local: make bench")
	}
	const jobs, rounds, warm = 20, 24, 4
	sides := []int{0, 20}
	var benches []*eventBench
	took := make([][]time.Duration, len(sides))
	for i, consumers := range sides {
		rows := tabletest.Real(t, at)
		timed := &tabletest.Client{DynamoDBAPI: rows.DB.Client(), Do: func(_ string, call func() error) error {
			began := time.Now()
			err := call()
			took[i] = append(took[i], time.Since(began))
			return err
		}}
		path := tabletest.Table(timed)
		path.Rows = path.DB.Table(rows.Rows.Name())
		benches = append(benches, eventBenchOn(t, path, rows, consumers))
	}
	for round := range rounds {
		if round == warm {
			took[0], took[1] = nil, nil
		}
		for _, b := range benches {
			b.relay(t, b.ingest(t, jobs), jobs, 5)
		}
	}
	var p50 []float64
	for i, consumers := range sides {
		slices.Sort(took[i])
		p50 = append(p50, float64(took[i][len(took[i])/2].Microseconds())/1000)
		t.Logf("%d consumers: %d calls of the write path, p50 %.2f ms", consumers, len(took[i]), p50[i])
	}
	t.Logf("ratio %.3f", p50[1]/p50[0])
	if len(took[0]) != len(took[1]) {
		t.Error("the write path makes other calls with consumers")
	}
}

// shippedConsumers is about how many ship.
const shippedConsumers = 10

// idleEvents counts what the relay asks for each minute while nothing happens.
func idleEvents(t *testing.T, consumers int) meter {
	t.Helper()
	b := newEventBench(t, consumers)
	tick := func() {
		until := time.Now().Add(time.Minute)
		if _, err := b.log.Sweep(t.Context(), until); err != nil && !fault.Is(err, fault.NotFound) {
			t.Fatal(err)
		}
		if err := b.runtime.Tick(t.Context(), until); err != nil {
			t.Fatal(err)
		}
	}
	b.relay(t, b.ingest(t, 1), 1, 10)
	tick()
	*b.events = meter{DynamoDBAPI: b.events.DynamoDBAPI}
	tick()
	return *b.events
}
