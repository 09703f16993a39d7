// Package queuetest runs the ingest service in a test without an emulator: executions are
// messages in order, each handled once. It also counts what AWS would bill.
//
//	m := queuetest.New(tabletest.Open(t), time.Now, 10)
//	m.Step = func(s ingest.Stage) queue.Step { … }
//	batch, err := m.Queue.Submit(ctx, ingest.Batch{…}, "", nil, "me")
//	err = m.Run(ctx, 4) // messages, then a tick of the scheduler, four times
package queuetest

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/lease"
	"archivist/pkg/kernel/table"
)

// Machine is the service on a table with its executions.
type Machine struct {
	Queue     *queue.Queue
	Scheduler *queue.Scheduler
	Step      func(ingest.Stage) queue.Step // of a stage
	// Pick chooses the next of so many messages, from 0; nil: the first.
	Pick func(waiting int) int
	// What AWS would bill: executions' traces, state transitions, SQS requests, Lambda requests.
	Executions, Transitions, SQS, Lambda float64

	waiting []queue.Message
	started map[string]bool // names of executions
}

var _ queue.Executions = (*Machine)(nil)

// New makes a machine on a table, with a number of slots.
func New(t *table.Table, now func() time.Time, slots int) *Machine {
	m := &Machine{started: map[string]bool{}}
	var n atomic.Int64
	id := func() string { return fmt.Sprintf("01M7ZBMEYHBB62YP6R%08d", n.Add(1)) } // as long as a ULID
	m.Queue = &queue.Queue{
		Table:      t,
		Now:        now,
		NewID:      id,
		Executions: m,
		Metric:     func(string, float64) {},
		Rules:      ingest.Rules{Timing: ingest.Timings["production"], FailedRetention: time.Hour},
		Wake:       func(context.Context) error { m.SQS += perMessage; return nil },
		Settings:   queue.Settings{MaxInFlight: slots, Space: 1 << 50, SweepPage: 100},
		Log:        slog.New(slog.NewTextHandler(io.Discard, nil)),
	}

	m.Scheduler = &queue.Scheduler{Queue: m.Queue, Leases: &lease.Store{
		Table: t,
		Now:   now,
		NewID: id,
	}}
	return m
}

// perMessage is the number of requests for a message: send, receive, delete.
const perMessage = 3

// Start starts an execution, once for each name.
func (m *Machine) Start(_ context.Context, _, name string, in queue.Message) error {
	if m.started[name] {
		return fault.New(fault.Conflict, "%s was started before", name)
	}
	m.started[name] = true
	m.Executions++
	m.Transitions++ // the first choice
	m.send(in)
	return nil
}

func (m *Machine) send(in queue.Message) {
	m.Transitions++
	m.SQS += perMessage
	m.Lambda++
	in.Token = "t"
	m.waiting = append(m.waiting, in)
}

// Stop does nothing: the worker answers Superseded.
func (m *Machine) Stop(context.Context, string, string, string) error { return nil }

// StoppedByHand reports that no person did.
func (m *Machine) StoppedByHand(context.Context, string, string) (string, bool, error) {
	return "", false, nil
}

// Problem reports that there was none.
func (m *Machine) Problem(context.Context, string, string) (string, error) { return "", nil }

// Last is the message that was sent last.
func (m *Machine) Last() queue.Message { return m.waiting[len(m.waiting)-1] }

// Idle reports whether no message waits.
func (m *Machine) Idle() bool { return len(m.waiting) == 0 }

// Inherit takes over from another machine the names of its executions and its pending
// messages.
func (m *Machine) Inherit(from *Machine) {
	maps.Copy(m.started, from.started)
	m.waiting = append(m.waiting, from.waiting...)
}

// answers continues an execution after an answer.
type answers struct {
	m  *Machine
	in queue.Message
}

// Answer sends the message of the next state, or of the same state again.
func (a answers) Answer(_ context.Context, _ string, ans ingest.Answer, _ string) error {
	if ans == ingest.Continue {
		a.m.send(a.in)
		return nil
	}

	to := ingest.After(ingest.State(a.in.State))
	if ans == ingest.Success && a.in.Job != "" && to != ingest.Completed {
		a.in.State = string(to)
		a.m.send(a.in)
		return nil
	}

	a.m.Transitions++ // the end
	return nil
}

// Drain handles all messages, with those that they cause. A message that is kept for later
// is lost: the sweep finds its item.
func (m *Machine) Drain(ctx context.Context) error {
	for len(m.waiting) > 0 {
		if err := m.One(ctx); err != nil {
			return err
		}
	}
	return nil
}

// One handles one message, if there is any.
func (m *Machine) One(ctx context.Context) error {
	if len(m.waiting) == 0 {
		return nil
	}

	next := 0
	if m.Pick != nil {
		next = m.Pick(len(m.waiting))
	}

	in := m.waiting[next]
	m.waiting = slices.Delete(m.waiting, next, next+1)
	if in.Operation != "" {
		return m.page(ctx, in)
	}

	stage, _ := ingest.StageNamed(in.Step)
	if in.Job != "" {
		stage, _ = ingest.StageOf(ingest.State(in.State))
	}

	w := queue.Worker{Queue: m.Queue, Stage: stage, Answers: answers{m, in}, Step: m.Step(stage)}
	_, err := w.Handle(ctx, in)
	return err
}

// page does a page of a bulk operation, and sends its message again until it has ended.
func (m *Machine) page(ctx context.Context, in queue.Message) error {
	row, err := queue.Admin{Queue: m.Queue}.RunPage(ctx, in.Operation, in.Exec,
		m.Queue.Now().Add(time.Minute))
	if err == nil && row.State == ingest.OperationRunning {
		m.send(in)
	}
	return err
}

// Run handles the messages and runs a tick, ticks times.
func (m *Machine) Run(ctx context.Context, ticks int) error {
	for range ticks {
		if err := m.Drain(ctx); err != nil {
			return err
		}
		if err := m.Scheduler.Tick(ctx, true); err != nil {
			return err
		}
	}
	return nil
}
