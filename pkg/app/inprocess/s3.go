package inprocess

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"archivist/pkg/kernel/bucket/buckettest"
)

// requests answers requests to S3 by its twin, without a socket.
type requests struct {
	twin    *buckettest.Twin
	process *process
}

// Do answers one request. The process is checked before, and with each piece of the body, but
// not after: what was stored is stored.
func (c requests) Do(r *http.Request) (*http.Response, error) {
	if err := c.process.check(); err != nil {
		return nil, err
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}

	if r.Body != nil {
		r.Body = upload{r.Body, r.Context(), c.process}
	}
	return serve(c.twin, r)
}

// upload is the body of a request. It ends with its process, so that nothing is stored from then
// on.
type upload struct {
	io.ReadCloser
	ctx     context.Context
	process *process
}

// Read reads what is sent. The twin stores an object when it has read all of it, so a body
// that ends with an error stores nothing.
func (u upload) Read(data []byte) (int, error) {
	n, err := u.ReadCloser.Read(data)
	if ended := cmp.Or(u.process.check(), u.ctx.Err()); ended != nil {
		return 0, ended
	}
	return n, err
}

// listen serves S3 on an address, and returns its URL. The server is closed by Close.
func (s *System) listen(address string) (string, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return "", err
	}

	s.server = &http.Server{Handler: s.sharing(s.buckets), ReadHeaderTimeout: time.Minute}
	s.running.Go(func() {
		if err := s.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("S3 is not served any more", "error", err)
		}
	})

	return "http://" + l.Addr().String(), nil
}
