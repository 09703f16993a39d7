package inprocess

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"sync"
)

// Web answers requests by handlers in this process, by the hosts of their URLs, and others by
// Next, if it is set. Keys of Hosts are as in URLs, with the port if there is one.
type Web struct {
	Hosts map[string]http.Handler
	Next  http.RoundTripper
}

// RoundTrip answers a request. A host that is not known is an error, as one that has no
// address.
func (w *Web) RoundTrip(r *http.Request) (*http.Response, error) {
	h := w.Hosts[r.URL.Host]
	switch {
	case h != nil:
		return serve(h, r)
	case w.Next != nil:
		return w.Next.RoundTrip(r)
	}
	return nil, fmt.Errorf("there is no host %s in this process", r.URL.Host)
}

// serve calls a handler as a server would: its response is read while it is written. When the
// request's context ends, the handler's next write fails, as over a connection that was
// closed. The handler may still run when the response is returned.
func serve(h http.Handler, r *http.Request) (*http.Response, error) {
	in := r.Clone(r.Context())
	if in.Body == nil {
		in.Body = http.NoBody
	}
	in.Host = cmp.Or(r.Host, r.URL.Host) // a server always has it

	body, out := io.Pipe()
	w := &writer{
		header: http.Header{},
		body:   out,
		ready:  make(chan struct{}),
		head:   r.Method == http.MethodHead,
	}

	stop := context.AfterFunc(r.Context(), func() { out.CloseWithError(r.Context().Err()) })
	go func() {
		defer stop()
		h.ServeHTTP(w, in)
		w.WriteHeader(http.StatusOK)
		_ = out.Close()
		_ = in.Body.Close()
	}()

	select {
	case <-w.ready:
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}

	// -1 means that the length is not known.
	length, err := strconv.ParseInt(w.sent.Get("Content-Length"), 10, 64)
	if err != nil {
		length = -1
	}
	return &http.Response{
		Status:        strconv.Itoa(w.status) + " " + http.StatusText(w.status),
		StatusCode:    w.status,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        w.sent,
		Body:          body,
		ContentLength: length,
		Request:       r,
	}, nil
}

// writer is the response of serve. ready is closed when status and header are known; sent is
// the header as it was then.
type writer struct {
	header, sent http.Header
	status       int
	body         *io.PipeWriter
	head         bool
	once         sync.Once
	ready        chan struct{}
}

// Header is what WriteHeader will send.
func (w *writer) Header() http.Header { return w.header }

// WriteHeader sends status and header. Only the first call counts, as with a server.
func (w *writer) WriteHeader(status int) {
	w.once.Do(func() {
		w.status, w.sent = status, maps.Clone(w.header)
		close(w.ready)
	})
}

// Write sends a part of the body. A response to HEAD has none.
func (w *writer) Write(data []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.head {
		return len(data), nil
	}
	return w.body.Write(data)
}
