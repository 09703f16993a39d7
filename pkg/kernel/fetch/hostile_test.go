package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

// hostile is a source whose content changes between requests, and which keeps to the rules of ranges
// only at times. It never gives two contents the same strong validator: what then came could not be told apart.
type hostile struct {
	rng      *rand.Rand
	bodies   []string
	at       int  // the body that is served now
	tags     int  // 0: strong ETags, 1: weak ones, 2: old dates, 3: dates of this second, 4: nothing
	closes   bool // the end of the connection ends a body
	requests int
	log      []string
}

func newHostile(seed uint64) *hostile {
	h := &hostile{rng: rand.New(rand.NewPCG(seed, 1))}
	h.tags = h.rng.IntN(5)
	for i := range 1 + h.rng.IntN(4) {
		size := 200
		if h.rng.IntN(3) == 0 {
			size += h.rng.IntN(3) - 1
		}
		text := strings.Repeat(string(rune('a'+i)), size)
		if at := h.rng.IntN(size); i > 0 && h.rng.IntN(2) == 0 { // one byte differs from the first
			text = h.bodies[0][:min(at, len(h.bodies[0]))] + "X" + h.bodies[0][min(at+1, len(h.bodies[0])):]
		}
		h.bodies = append(h.bodies, text)
	}
	return h
}

// name sets the validator of a body.
func (h *hostile) name(w http.ResponseWriter, body int) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	w.Header().Set("Date", now.Format(http.TimeFormat))
	switch h.tags {
	case 0:
		w.Header().Set("ETag", fmt.Sprintf(`"%d"`, body))
	case 1:
		w.Header().Set("ETag", `W/"same"`)
	case 2:
		w.Header().Set("Last-Modified", now.Add(time.Duration(body-10)*time.Hour).Format(http.TimeFormat))
	case 3:
		w.Header().Set("Last-Modified", now.Format(http.TimeFormat))
	}
}

func (h *hostile) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.requests++
	one := func(n int) bool { return h.rng.IntN(n) == 0 }
	if one(3) {
		h.at = min(h.at+1, len(h.bodies)-1)
	}
	body, from := h.bodies[h.at], 0
	validator := r.Header.Get("If-Range")
	_, _ = fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &from)
	h.name(w, h.at)
	current := validator != "" && (validator == w.Header().Get("ETag") || validator == w.Header().Get("Last-Modified"))
	if from > 0 && from < len(body) && (current || one(2)) { // it ignores the condition at times
		total := fmt.Sprint(len(body))
		switch {
		case one(6):
			total = "*"
		case one(8):
			total = fmt.Sprint(len(body) + 1)
		}
		begins := from
		if one(8) {
			begins += h.rng.IntN(5) - 2
		}
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%s", begins, len(body)-1, total))
		if one(8) {
			w.Header().Del("ETag")
			w.Header().Del("Last-Modified")
		}
		body = body[from:]
		h.log = append(h.log, fmt.Sprintf("206 of %d: %v", h.at, w.Header()))
		h.send(w, body, http.StatusPartialContent)
		return
	}
	h.log = append(h.log, fmt.Sprintf("200 of %d: %v", h.at, w.Header()))
	h.send(w, body, http.StatusOK)
}

// send sends a body, with its length or in chunks, whole or cut.
func (h *hostile) send(w http.ResponseWriter, body string, status int) {
	if h.closes {
		h.close(w, body, status)
		return
	}
	if h.rng.IntN(2) == 0 {
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	}
	w.WriteHeader(status)
	if h.requests < 12 && h.rng.IntN(3) > 0 {
		_, _ = io.WriteString(w, body[:h.rng.IntN(len(body)+1)])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	_, _ = io.WriteString(w, body)
	_ = http.NewResponseController(w).Flush()
}

// close sends a body without a length, whole or cut, as a server of HTTP/1.0 does.
func (h *hostile) close(w http.ResponseWriter, body string, status int) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "HTTP/1.%d %d %s\r\nConnection: close\r\n", h.rng.IntN(2), status, http.StatusText(status))
	_ = w.Header().Write(conn)
	if h.rng.IntN(3) > 0 {
		body = body[:h.rng.IntN(len(body)+1)]
	}
	fmt.Fprintf(conn, "\r\n%s", body)
}

// serve begins to serve a source, by HTTP/1.1, or by HTTP/2, and returns a client of it.
func (h *hostile) serve(second bool) (*httptest.Server, *Client) {
	srv := httptest.NewUnstartedServer(h)
	srv.Config.ErrorLog = quiet
	c := local("127.0.0.0/8")
	c.Tries, c.Wait = 6, func(context.Context, time.Duration) error { return nil }
	if !second {
		srv.Start()
		return srv, c
	}

	srv.EnableHTTP2 = true
	srv.StartTLS()
	t := c.HTTP.Transport.(*http.Transport)
	t.TLSClientConfig = srv.Client().Transport.(*http.Transport).TLSClientConfig
	t.ForceAttemptHTTP2 = true
	return srv, c
}

// TestHostileSource: whatever a source does, a file is one body that it served, or the download fails.
func TestHostileSource(t *testing.T) {
	for name, how := range map[string]struct{ second, closes bool }{
		"HTTP/1.1": {}, "HTTP/2": {second: true}, "ended by the connection": {closes: true}} {
		t.Run(name, func(t *testing.T) {
			resumed, failed := 0, 0
			for seed := range uint64(300) {
				h := newHostile(seed)
				h.closes = how.closes
				srv, c := h.serve(how.second)
				got, again, err := download(t.Context(), c, srv.URL)
				srv.Close()
				resumed += again
				switch {
				case err != nil:
					failed++
				case !slices.Contains(h.bodies, string(got)):
					t.Errorf("seed %d: %d bytes that were never served:\n%s", seed, len(got), strings.Join(h.log, "\n"))
				}
			}
			if !how.closes && (resumed < 20 || failed > 100) || how.closes && failed < 300 {
				t.Errorf("%d downloads went on, %d failed: the test shows little", resumed, failed)
			}
		})
	}
}

// download downloads in up to four tries, each as if by another process. Neither size nor digest is known.
func download(ctx context.Context, c *Client, url string) (got []byte, resumed int, err error) {
	var is Content
	have := func() Partial { return Partial{int64(len(got)), is} }
	err = errors.New("not begun")
	for tries := 0; err != nil && tries < 4; tries++ {
		err = c.Get(ctx, url, have, func(s Stream) error {
			if err := s.CheckEnd(false); err != nil {
				return err
			}
			if s.From == 0 || s.From != int64(len(got)) {
				got = got[:0]
			} else {
				resumed++
			}
			is = s.Content
			more, err := io.ReadAll(s)
			got = append(got, more...)
			return err
		})
	}
	return got, resumed, err
}

// quiet drops what a server logs of connections that it cuts.
var quiet = log.New(io.Discard, "", 0)
