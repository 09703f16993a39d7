package consumer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"archivist/pkg/events/consumer"
	"archivist/pkg/events/envelope"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
)

// memory is a log in the process.
type memory struct {
	mu         sync.Mutex
	partitions []envelope.Partition
	events     map[string][]envelope.Event
	reads      int
	broken     int // so many reads fail
	last       int // this read fails, and all after it; 0: none
}

func (m *memory) Partitions(context.Context) ([]envelope.Partition, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.partitions), nil
}

func (m *memory) Partition(_ context.Context, name string) (envelope.Partition, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.find(name); p != nil {
		return *p, nil
	}
	return envelope.Partition{}, fault.New(fault.NotFound, "no partition %s", name)
}

func (m *memory) find(name string) *envelope.Partition {
	for i := range m.partitions {
		if m.partitions[i].Name == name {
			return &m.partitions[i]
		}
	}
	return nil
}

func (m *memory) Read(_ context.Context, partition string, after int64, limit int) ([]envelope.Event, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reads++
	if m.broken > 0 || m.last > 0 && m.reads >= m.last {
		m.broken--
		return nil, errors.New("the log cannot be read")
	}
	var page []envelope.Event
	for _, e := range m.events[partition] {
		if e.Seq > after && len(page) < limit {
			page = append(page, e.Facts())
		}
	}
	return page, nil
}

func (m *memory) At(_ context.Context, places []envelope.Place) (map[envelope.Place]envelope.Event, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := map[envelope.Place]envelope.Event{}
	for _, p := range places {
		for _, e := range m.events[p.Partition] {
			if e.Seq == p.Seq {
				at[p] = e.Facts()
			}
		}
	}
	return at, nil
}

func (m *memory) Events(_ context.Context, facts []envelope.Event) ([]envelope.Event, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var found []envelope.Event
	for _, f := range facts {
		all := m.events[f.Partition]
		i := slices.IndexFunc(all, func(e envelope.Event) bool {
			return e.Subject.ID == f.Subject.ID && e.Version == f.Version && e.Seq == f.Seq
		})
		if i < 0 {
			return nil, fault.New(fault.NotFound, "the event %s is not kept", f.ID)
		}
		found = append(found, all[i])
	}
	return found, nil
}

// bench is a system with a log, a store and a runtime.
type bench struct {
	*testing.T
	mu      sync.Mutex
	now     time.Time
	ids     int
	fake    *tabletest.Fake
	log     *memory
	store   *consumer.Store
	runtime *consumer.Runtime
	woken   []string
	metrics map[string]float64
	got     []envelope.Event // handled by the handler "note"
	calls   []consumer.Batch
	fails   map[string]string // reasons by the ids of events that "note" cannot handle
	waits   int
	onCall  func() // of "note"

	versions map[string]int64 // of subjects
}

func newBench(t *testing.T) *bench {
	b := &bench{T: t, now: time.UnixMilli(1_800_000_000_000), fake: tabletest.New(), metrics: map[string]float64{},
		log:   &memory{events: map[string][]envelope.Event{}},
		fails: map[string]string{}, versions: map[string]int64{}}
	b.store = b.storeOn(tabletest.Table(b.fake))
	handlers := map[string]consumer.Handler{"note": consumer.HandlerFunc(b.note)}
	b.store.Handlers, b.store.Shadows = consumer.Names(handlers), consumer.Names(handlers)
	b.runtime = &consumer.Runtime{Store: b.store, Handlers: handlers,
		Wake: func(_ context.Context, c, p string) error {
			b.woken = append(b.woken, c+" "+p)
			return nil
		},
		Metric: func(name string, v float64) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.metrics[name] += v
		}}
	return b
}

func (b *bench) storeOn(tb *table.Table) *consumer.Store {
	tb.Jitter = func() float64 { return 0.5 }
	tb.Wait = func(context.Context, time.Duration) error { b.waits++; return nil }
	return &consumer.Store{Table: tb, Log: b.log, Now: func() time.Time { return b.now },
		NewID: func() string {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.ids++
			return fmt.Sprintf("id%05d", b.ids)
		}}
}

// note is a handler that remembers what it handles, and fails for some events.
func (b *bench) note(_ context.Context, batch consumer.Batch) ([]consumer.Failure, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls = append(b.calls, batch)
	if b.onCall != nil {
		b.onCall()
	}
	var failed []consumer.Failure
	bad := map[string]bool{}
	for _, it := range batch.Events {
		if bad[it.Subject.ID] {
			continue
		}
		if why, ok := b.fails[it.ID]; ok {
			failed = append(failed, consumer.Failure{ID: it.ID, Reason: why})
			bad[it.Subject.ID] = true
			continue
		}
		b.got = append(b.got, it.Event)
	}
	return failed, nil
}

// add places an event of a job, with the id "SUBJECT.VERSION".
func (b *bench) add(partition, subject string, change ...func(*envelope.Event)) envelope.Event {
	b.log.mu.Lock()
	defer b.log.mu.Unlock()
	p := b.log.find(partition)
	if p == nil {
		log, _, _ := strings.Cut(partition, ".")
		b.log.partitions = append(b.log.partitions, envelope.Partition{Name: partition, Log: log, Horizon: 1, Epoch: 1})
		p = &b.log.partitions[len(b.log.partitions)-1]
	}
	b.versions[subject]++
	version := b.versions[subject]
	p.Head++
	e := envelope.Event{ID: fmt.Sprintf("%s.%d", subject, version), Subject: envelope.Ref{Type: "Job", ID: subject},
		Version: version, Type: "job.state", Action: envelope.Modify, Time: b.now.UnixMilli(), Outcome: "success",
		Detail: json.RawMessage(`{}`), Schema: 1, Partition: partition, Seq: p.Head,
		Parents: []envelope.Ref{{Type: "Collection", ID: p.Log}}}
	for _, f := range change {
		f(&e)
	}
	b.log.events[partition] = append(b.log.events[partition], e)
	return e
}

// define is a consumer with the handler "note" that reads from the beginning.
func define(name string, change ...func(*consumer.Definition)) consumer.Definition {
	d := consumer.Definition{Name: name, Filter: "*+*", Target: consumer.Target{Handler: "note"},
		Start: consumer.StartHorizon, Concurrency: 1}
	for _, f := range change {
		f(&d)
	}
	return d
}

func (b *bench) apply(d consumer.Definition) consumer.Consumer {
	b.Helper()
	c, err := b.store.Apply(b.Context(), d, consumer.By{Actor: "ann"})
	if err != nil {
		b.Fatal(err)
	}
	return c
}

// run runs a consumer until nothing is left.
func (b *bench) run(name, partition string) {
	b.Helper()
	more, err := b.runtime.Run(b.Context(), name, partition, b.now.Add(time.Minute))
	if err != nil || more {
		b.Fatalf("run of %s in %s: more %v, %v", name, partition, more, err)
	}
}

// handled are the ids of the events that were handled, in order.
func (b *bench) handled() string {
	var ids []string
	for _, e := range b.got {
		ids = append(ids, e.ID)
	}
	return strings.Join(ids, " ")
}

func (b *bench) want(what, got, want string) {
	b.Helper()
	if got != want {
		b.Errorf("%s: %q, want %q", what, got, want)
	}
}

// text is a string attribute of a row.
func text(v types.AttributeValue) string {
	if s, ok := v.(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}
