package fetch

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http/httptrace"
	"sync"
	"time"
)

// Limits are the time limits of the phases of one request, so that a server that hangs
// costs little time and the message names what was not received.
type Limits struct {
	Connect time.Duration // until the name is resolved and there is a connection
	TLS     time.Duration // of the handshake
	Header  time.Duration // from the request until the response's header
	Data    time.Duration // until the next bytes of the content
	Small   time.Duration // of a whole request that asks for a size only
}

// DefaultLimits: four tries without data end within the time budget of a long
// stage; the two requests for a size end within that of a short one.
var DefaultLimits = Limits{
	Connect: 10 * time.Second,
	TLS:     10 * time.Second,
	Header:  30 * time.Second,
	Data:    45 * time.Second,
	Small:   10 * time.Second,
}

// SilentError reports what a server did not send, and how long the client waited.
type SilentError struct {
	What string
	For  time.Duration // 0: until the caller's own time was up
}

// Error names both.
func (e *SilentError) Error() string { return "no " + e.What + e.howLong() }

func (e *SilentError) howLong() string {
	if e.For == 0 {
		return " until the time for this try was up"
	}
	return fmt.Sprintf(" for %g s", e.For.Seconds())
}

// phase is what a request waits for. The phases are in this order.
type phase int

const (
	connecting phase = iota + 1
	handshake
	header
	data
)

// watch ends a request whose current phase takes too long.
type watch struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	limits Limits

	mu    sync.Mutex
	now   phase
	timer *time.Timer
}

func watched(ctx context.Context, l Limits) *watch {
	w := &watch{limits: l}
	ctx, w.cancel = context.WithCancelCause(ctx)
	w.ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn:           func(string) { w.begin(connecting) },
		TLSHandshakeStart: func() { w.advance(handshake) },
		TLSHandshakeDone:  func(tls.ConnectionState, error) { w.advance(header) },
		GotConn:           func(httptrace.GotConnInfo) { w.advance(header) },
		WroteRequest:      func(httptrace.WroteRequestInfo) { w.advance(header) },
	})

	w.begin(connecting)
	return w
}

func (p phase) of(l Limits) *SilentError {
	switch p {
	case connecting:
		return &SilentError{"connection", l.Connect}
	case handshake:
		return &SilentError{"end of the TLS handshake", l.TLS}
	case header:
		return &SilentError{"response header", l.Header}
	}
	return &SilentError{"data", l.Data}
}

// begin starts the time of a phase.
func (w *watch) begin(p phase) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.start(p)
}

// advance begins a later phase than the current one. A second connection that is made
// in parallel also reports phases; these are ignored.
func (w *watch) advance(p phase) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p > w.now {
		w.start(p)
	}
}

func (w *watch) start(p phase) {
	w.stop()
	w.now = p
	silent := p.of(w.limits)
	w.timer = time.AfterFunc(silent.For, func() { w.cancel(silent) })
}

func (w *watch) stop() {
	if w.timer != nil {
		w.timer.Stop()
	}
}

// pause stops the time until the next phase begins.
func (w *watch) pause() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stop()
}

// end stops watching the request.
func (w *watch) end() {
	w.pause()
	w.cancel(nil)
}

// cause is the error of a request or, if it was ended, what it waited for.
func (w *watch) cause(err error) error {
	if err == nil || err == io.EOF || w.ctx.Err() == nil {
		return err
	}
	var silent *SilentError
	if errors.As(context.Cause(w.ctx), &silent) {
		return silent
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return &SilentError{What: w.now.of(w.limits).What}
}

// body is a response's content: each read has a time limit.
type body struct {
	io.ReadCloser
	w *watch
}

// Read returns a SilentError if no data is received in time.
func (b *body) Read(p []byte) (int, error) {
	b.w.begin(data)
	n, err := b.ReadCloser.Read(p)
	b.w.pause()
	return n, b.w.cause(err)
}

// Close ends the request.
func (b *body) Close() error {
	err := b.ReadCloser.Close()
	b.w.end()
	return err
}
