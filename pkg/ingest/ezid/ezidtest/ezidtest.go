// Package ezidtest is a server that answers as EZID does (ezid.cdlib.org/doc/apidoc.html, and EZID's own source): its
// statuses and its words, its rules of what may be changed, and, when a test asks for it, its failures.
package ezidtest

import (
	"bufio"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Password of the user "archive".
const Password = "apitest"

// Failure is what happens to a call.
type Failure string

// What can happen to a call: the server dies before or after it has done what was asked, it is overloaded, it fails, it
// answers something else.
const (
	DiesBefore Failure = "dies before"
	DiesAfter  Failure = "dies after"
	Overloaded Failure = "overloaded"
	Broken     Failure = "broken"
	Proxy      Failure = "a proxy answers"
)

// Failures are all of them.
var Failures = []Failure{DiesBefore, DiesAfter, Overloaded, Broken, Proxy}

// Server is an EZID. Its identifiers have their elements by name.
type Server struct {
	*httptest.Server

	mu    sync.Mutex
	all   map[string]map[string]string
	calls []string // METHOD ark, in order
	fails func(call int) Failure
}

// New starts a server, which ends with the test.
func New(t *testing.T) *Server {
	s := Start()
	t.Cleanup(s.Close)
	return s
}

// Start starts a server that the caller closes.
func Start() *Server {
	s := &Server{all: map[string]map[string]string{}}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	return s
}

// Host is the server's host with its port, as a secret names it.
func (s *Server) Host() string { return strings.TrimPrefix(s.URL, "http://") }

// Secret is the secret of the user.
func (s *Server) Secret() string {
	return fmt.Sprintf(`{"host": %q, "username": "archive", "password": %q}`, s.Host(), Password)
}

// Fail sets what happens to each call, counted from 0; "" is nothing.
func (s *Server) Fail(f func(call int) Failure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails, s.calls = f, nil
}

// Calls are the calls since the last Fail.
func (s *Server) Calls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// Identifiers are all identifiers with their elements.
func (s *Server) Identifiers() map[string]map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]map[string]string{}
	for id, elements := range s.all {
		all[id] = maps.Clone(elements)
	}
	return all
}

// Put makes an identifier of somebody else.
func (s *Server) Put(ark string, elements map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[ark] = elements
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id, _ := url.PathUnescape(strings.TrimPrefix(r.URL.EscapedPath(), "/id/"))
	var f Failure
	if s.fails != nil {
		f = s.fails(len(s.calls))
	}
	s.calls = append(s.calls, r.Method+" "+id)
	switch f {
	case DiesBefore:
		panic(http.ErrAbortHandler)
	case Overloaded:
		say(w, "error: concurrency limit exceeded")
		return
	case Broken:
		say(w, "error: internal server error")
		return
	case Proxy:
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusBadGateway)
		_, _ = w.Write([]byte("<html>Bad Gateway</html>"))
		return
	}

	said, elements := s.answer(r, id)
	if f == DiesAfter {
		panic(http.ErrAbortHandler)
	}
	if strings.HasPrefix(said, "success") && r.Method == http.MethodPut {
		w.WriteHeader(http.StatusCreated)
	}
	say(w, said)
	for _, name := range slices.Sorted(maps.Keys(elements)) {
		fmt.Fprintf(w, "%s: %s\n", name, encode.Replace(elements[name]))
	}
}

// statuses are those of the beginnings of answers, as in EZID's source.
var statuses = []struct {
	begins string
	status int
}{{"success", http.StatusOK}, {"error: bad request", http.StatusBadRequest},
	{"error: unauthorized", http.StatusUnauthorized}, {"error: forbidden", http.StatusForbidden},
	{"error: concurrency limit exceeded", http.StatusServiceUnavailable}, {"", http.StatusInternalServerError}}

func say(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	for _, s := range statuses {
		if strings.HasPrefix(text, s.begins) {
			if s.status != http.StatusOK {
				w.WriteHeader(s.status)
			}
			break
		}
	}
	fmt.Fprintln(w, text)
}

var encode = strings.NewReplacer("%", "%25", "\n", "%0A", "\r", "%0D", ":", "%3A")

// answer does what a request asks for.
func (s *Server) answer(r *http.Request, id string) (said string, elements map[string]string) {
	if user, password, _ := r.BasicAuth(); user != "archive" || password != Password {
		return "error: unauthorized", nil
	}
	if !strings.HasPrefix(id, "ark:/99999/fk") {
		return "error: forbidden", nil
	}

	known, there := s.all[id]
	switch {
	case r.Method == http.MethodPut:
		return s.put(r, id), nil
	case !there:
		return "error: bad request - no such identifier", nil
	case r.Method == http.MethodGet:
		return "success: " + id, known
	case r.Method != http.MethodDelete:
		return "error: method not allowed", nil
	case known["_status"] != "reserved":
		return "error: bad request - identifier status does not support deletion", nil
	}
	delete(s.all, id)
	return "success: " + id, nil
}

// put makes an identifier, or changes it.
func (s *Server) put(r *http.Request, id string) (said string) {
	known, there := s.all[id]
	sent, wrong := readBody(r)
	update := r.URL.Query().Get("update_if_exists") == "yes"
	switch status := sent["_status"]; {
	case wrong != "":
		return "error: bad request - " + wrong
	case there && !update:
		return "error: bad request - identifier already exists, cannot create"
	case !there && status != "" && status != "public" && status != "reserved":
		return "error: bad request - invalid identifier status at creation time"
	case there && !mayBecome(known["_status"], status):
		return "error: bad request - invalid identifier status change"
	}

	if !there {
		known = map[string]string{"_status": "public", "_owner": "archive",
			"_target": "https://ezid.example.org/id/" + id}
		s.all[id] = known
	}
	maps.Copy(known, sent)
	return "success: " + id
}

// mayBecome is EZID's rule of which status may follow which.
func mayBecome(from, to string) bool {
	from, _, _ = strings.Cut(from, " |")
	to, _, _ = strings.Cut(to, " |")
	switch to {
	case "", from:
		return true
	case "public":
		return true
	case "unavailable":
		return from == "public"
	}
	return false
}

// readBody reads the elements of a request.
func readBody(r *http.Request) (elements map[string]string, wrong string) {
	elements = map[string]string{}
	if r.Header.Get("Content-Type") != "text/plain; charset=UTF-8" {
		return nil, "If specified, Content-Type must be text/plain and encoding must be UTF-8"
	}
	lines := bufio.NewScanner(r.Body)
	for lines.Scan() {
		name, value, is := strings.Cut(lines.Text(), ":")
		if !is {
			return nil, "ANVL parse error"
		}
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if err != nil {
			return nil, "ANVL parse error (percent-decode error)"
		}
		elements[name] = value
	}
	return elements, ""
}
