package inprocess

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// longest is the time-out of functions of users.
const longest = 15 * time.Minute

// Register makes, or replaces, a function of a user, and returns its ARN. Consumers and
// components may call it, as if the settings named it. An error that it returns is that of
// the function; it must end with its context. The context ends after a quarter of an hour, or
// when the system is closed.
func (s *System) Register(name string, handle Function) string {
	s.functions.add(&function{
		name:    name,
		timeout: longest,
		cold: func(*process) (Function, func(), error) {
			return handle, func() {}, nil
		},
	})
	s.admit(ARN(name))
	return ARN(name)
}

// admit lets consumers and components call a target. The functions get new environments, as
// after a deployment with another setting.
func (s *System) admit(target string) {
	s.functions.mu.Lock()
	defer s.functions.mu.Unlock()
	if slices.Contains(s.targets, target) {
		return
	}
	s.targets = append(s.targets, target)
	for _, f := range s.functions.all {
		f.renew()
	}
}

// allowed are what consumers and components may call. It is the variable EnvTargets, which
// changes while the system runs.
func (s *System) allowed() string {
	s.functions.mu.Lock()
	defer s.functions.mu.Unlock()
	return strings.Join(s.targets, ",")
}

// Invoke invokes a function and waits for its answer. An error says what the function said.
// The answer of a function that failed is its error document.
func (s *System) Invoke(ctx context.Context, function string, payload []byte) ([]byte, error) {
	a, err := s.functions.invoke(ctx, function, payload)
	if err != nil {
		return a.out, err
	}
	if a.failed != nil {
		return a.out, fmt.Errorf("%s: %s: %s", function, a.failed.Type, a.failed.Message)
	}
	return a.out, nil
}

// Kill ends the processes of a function, as a machine that fails: invocations that run have
// no effect from now on, and nobody is told. It returns how many there were. The next
// invocation starts a new process. Messages that they had come back after their visibility
// time-out.
func (s *System) Kill(function string) (ended int) {
	f, err := s.functions.named(function)
	if err != nil {
		return 0
	}
	return f.kill()
}

// Lose loses the next n messages that are sent to a queue. Their senders are told that they
// were sent. A queue that does not exist loses nothing.
func (s *System) Lose(queue string, n int) {
	q, err := s.queues.named(queue)
	if err == nil {
		q.lose(n)
	}
}

// Repeat delivers the next n messages that are sent to a queue twice.
func (s *System) Repeat(queue string, n int) {
	q, err := s.queues.named(queue)
	if err == nil {
		q.repeat(n)
	}
}

// KillAt ends a process of a function at a point, and returns how often that has happened so
// far. off ends that. Points are independent: a call can be one of several.
func (s *System) KillAt(p Point) (met func() int, off func()) {
	kept := &point{Point: p}
	s.points.mu.Lock()
	defer s.points.mu.Unlock()
	s.points.all = append(s.points.all, kept)
	met = func() int {
		s.points.mu.Lock()
		defer s.points.mu.Unlock()
		return kept.met
	}
	return met, func() {
		s.points.mu.Lock()
		defer s.points.mu.Unlock()
		s.points.all = slices.DeleteFunc(s.points.all, func(x *point) bool { return x == kept })
	}
}

// ofTable are the operations of the table.
var ofTable = []string{"GetItem", "BatchGetItem", "Query", "Scan", "PutItem", "UpdateItem", "DeleteItem",
	"BatchWriteItem", "TransactGetItems", "TransactWriteItems"}

// TableUse is what calls of the table were.
type TableUse struct {
	Calls int
	Units float64        // read units, as they are billed
	Kinds map[string]int // how many there were of each kind
}

// UseOfTable counts the calls of the table that a function makes from now on. used says what they were so far.
func (s *System) UseOfTable(function string) (used func() TableUse) {
	counts := &counter{function: function, used: TableUse{Kinds: map[string]int{}}}
	s.points.mu.Lock()
	defer s.points.mu.Unlock()
	s.points.counts = append(s.points.counts, counts)
	return func() TableUse {
		s.points.mu.Lock()
		defer s.points.mu.Unlock()
		now := counts.used
		now.Kinds = maps.Clone(now.Kinds)
		return now
	}
}

// TableCalls is how many calls UseOfTable has counted.
func (s *System) TableCalls(function string) (calls func() int) {
	used := s.UseOfTable(function)
	return func() int { return used().Calls }
}

// Mails are the mails that were sent. They are in the order in which they were sent.
func (s *System) Mails() []Mail {
	s.services.mu.Lock()
	defer s.services.mu.Unlock()
	return slices.Clone(s.services.mails)
}

// Metric is the sum of the values of a metric. It is 0 if nothing was sent.
func (s *System) Metric(name string) float64 {
	s.services.mu.Lock()
	defer s.services.mu.Unlock()
	return s.services.sums[name]
}

// Secret sets a secret. One that is there is replaced.
func (s *System) Secret(name, value string) {
	s.services.mu.Lock()
	defer s.services.mu.Unlock()
	s.services.secrets[name] = value
}

// Functions are the names of all functions. Registered ones are among them. They are in
// order.
func (s *System) Functions() []string {
	s.functions.mu.Lock()
	defer s.functions.mu.Unlock()
	return slices.Sorted(maps.Keys(s.functions.all))
}
