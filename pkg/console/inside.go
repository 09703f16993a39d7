package console

import (
	"bytes"
	"io"
	"net/http"
)

// inside answers requests by a handler of this process: the console is a client of the API without a network.
type inside struct {
	to http.Handler
	// refused: the API did not accept the token of a request, or missed one.
	refused bool
	// location is where the last answer redirects to, "" if it does not. It is for the browser: the console follows
	// none.
	location string
}

// RoundTrip answers a request.
func (i *inside) RoundTrip(r *http.Request) (*http.Response, error) {
	in := r.Clone(r.Context())
	if in.Body == nil {
		in.Body = http.NoBody
	}
	in.RequestURI = in.URL.RequestURI()
	w := &kept{header: http.Header{}, status: http.StatusOK}
	i.to.ServeHTTP(w, in)
	_ = in.Body.Close()
	i.refused = i.refused || w.status == http.StatusUnauthorized
	i.location = w.header.Get("Location")
	if w.status/100 == 3 {
		w.status = http.StatusNoContent
	}
	return &http.Response{
		StatusCode:    w.status,
		Status:        http.StatusText(w.status),
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        w.header,
		Body:          io.NopCloser(&w.body),
		ContentLength: int64(w.body.Len()),
		Request:       r,
	}, nil
}

// kept is an answer in memory.
type kept struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header is what is sent before the body.
func (k *kept) Header() http.Header { return k.header }

// WriteHeader sets the status.
func (k *kept) WriteHeader(status int) { k.status = status }

// Write appends to the body.
func (k *kept) Write(p []byte) (int, error) { return k.body.Write(p) }
