package property

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"

	"archivist/pkg/kernel/fetch"
)

// trouble is how a source answers before it works.
type trouble string

// Troubles. For final ones an immediate retry does not help.
const (
	fine        trouble = ""
	notFound    trouble = "404"
	unavailable trouble = "503"
	closed      trouble = "closed" // without an answer
	cut         trouble = "cut"    // in the middle of the content
	errorPage   trouble = "page"   // an HTML page, with status 200
	silent      trouble = "silent" // until the client gives up
)

const html = "<!doctype html><title>Error</title><p>The content cannot be shown right now.</p>\n"

// failing is a trouble that occurs a number of times; 0 means until the source is repaired.
type failing struct {
	How   trouble
	Times int
	// Head is the trouble of HEAD requests, which lasts.
	Head trouble
}

// page is the content of a source at one path, with its troubles.
type page struct {
	content  []byte
	failing  failing
	repaired bool
	asked    int    // by GET
	given    []byte // by its last whole answer to a GET
}

// source is a server of depositors' content, on pipes.
type source struct {
	mu    sync.Mutex
	pages map[string]*page

	server *http.Server
	dials  chan net.Conn
	gone   chan struct{}
	client *http.Transport
}

func newSource() *source {
	s := &source{pages: map[string]*page{}, dials: make(chan net.Conn), gone: make(chan struct{})}
	s.server = &http.Server{Handler: s}
	go func() { _ = s.server.Serve(s) }()
	return s
}

// serve makes a client's connections pipes to the source.
func (s *source) serve(c *fetch.Client) {
	s.client = c.HTTP.Transport.(*http.Transport)
	s.client.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		here, there := net.Pipe()
		select {
		case s.dials <- there:
			return here, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (s *source) close() {
	s.client.CloseIdleConnections()
	_ = s.server.Close()
}

// Accept, Close and Addr make the source a listener.
func (s *source) Accept() (net.Conn, error) {
	select {
	case c := <-s.dials:
		return c, nil
	case <-s.gone:
		return nil, net.ErrClosed
	}
}

// Close ends accepting.
func (s *source) Close() error {
	close(s.gone)
	return nil
}

// Addr is a dummy address.
func (s *source) Addr() net.Addr { return &net.UnixAddr{Name: "source"} }

const sourceURL = "http://source.example"

// put puts content at a path.
func (s *source) put(path string, content []byte, f failing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pages[path] = &page{content: content, failing: f}
}

// repair makes every page work.
func (s *source) repair() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.pages {
		p.repaired = true
	}
}

// given is what a path last served in answer to a request for all of it.
func (s *source) given(path string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.pages[path]; p != nil {
		return p.given
	}
	return nil
}

// ServeHTTP answers with the page's troubles, or its content.
func (s *source) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	how, content := s.next(r)
	switch how {
	case notFound:
		http.Error(w, "there is no such page", http.StatusNotFound)
	case unavailable:
		http.Error(w, "not now", http.StatusServiceUnavailable)
	case closed:
		panic(http.ErrAbortHandler)
	case silent:
		<-r.Context().Done()
	default:
		w.Header().Set("Content-Length", strconv.Itoa(len(content)))
		if r.Method == http.MethodHead {
			return
		}
		if how == cut {
			_, _ = w.Write(content[:len(content)/2])
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
		_, _ = w.Write(content)
	}
}

// next decides how a request is answered, and records it.
func (s *source) next(r *http.Request) (trouble, []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pages[r.URL.Path]
	if p == nil {
		return notFound, nil
	}
	how := p.failing.How
	if r.Method == http.MethodHead {
		how = p.failing.Head
	} else {
		p.asked++
		if p.failing.Times > 0 && p.asked > p.failing.Times || p.repaired {
			how = fine
		}
	}
	if how == cut && len(p.content) == 0 {
		how = fine
	}
	switch {
	case how == errorPage:
		p.given = []byte(html)
		return fine, p.given
	case how == fine && r.Method == http.MethodGet:
		p.given = p.content
	}
	return how, p.content
}

func path(parts ...int) string {
	p := ""
	for _, n := range parts {
		p += fmt.Sprint("/", n)
	}
	return p
}
