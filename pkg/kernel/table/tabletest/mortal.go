package tabletest

import (
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
)

// ErrDead is the error of each call of a process that has died.
var ErrDead = errors.New("this process is dead")

// Mortal is a process that dies at one of its calls: before the call has an effect, or after it.
// From then on each of its calls fails, and has no effect.
type Mortal struct {
	At    int  // the call at which it dies, from 1 on; 0: it lives
	After bool // that call has its effect

	calls atomic.Int64
}

// Dead reports whether the process has died.
func (m *Mortal) Dead() bool { return m.At > 0 && m.Calls() >= m.At }

// Calls is how many calls the process has made, or tried to make.
func (m *Mortal) Calls() int { return int(m.calls.Load()) }

// Do makes a call: as Client.Do those of a table, and others as well. Calls of several
// goroutines are counted in the order in which they arrive.
func (m *Mortal) Do(_ string, call func() error) error {
	n := int(m.calls.Add(1))
	if m.At == 0 || n < m.At {
		return call()
	}
	if n == m.At && m.After {
		_ = call()
	}
	return ErrDead
}

// Status is the status of the answer to a request over HTTP, as buckettest.Twin.Before has
// it: 0, so that the request is served, or 503 once the process is dead. It counts the
// request as a call, but one with After has no effect either, since Before comes first.
func (m *Mortal) Status(_, _ string) int {
	if m.Do("", func() error { return nil }) != nil {
		return http.StatusServiceUnavailable
	}
	return 0
}

// Crashes calls crash with a process that dies at its first call, with one that dies at its
// second, and so on, before and after the call, until one lives. It fails unless processes
// died at least at so many calls. crash begins with a world of its own each time, lets the
// process work until it dies, repairs with a process that lives, and checks. least guards
// against a test that dies nowhere any more.
func Crashes(t *testing.T, least int, crash func(t *testing.T, m *Mortal)) {
	t.Helper()
	for at, died := 1, true; died && !t.Failed(); at++ {
		for _, after := range []bool{false, true} {
			m := &Mortal{At: at, After: after}
			t.Run(fmt.Sprintf("call %d, after it %v", at, after),
				func(t *testing.T) { crash(t, m) })
			died = m.Dead()
		}
		if !died && at <= least {
			t.Errorf("there were only %d calls", at-1)
		}
	}
}
