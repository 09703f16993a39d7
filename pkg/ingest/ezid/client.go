// Package ezid registers the ARKs of objects with EZID, the service of the California Digital Library: an ARK is
// reserved before its object is stored, public with the object's address and description once the object is recorded,
// and deleted if nothing will ever be stored under it.
//
// A [Client] makes the calls of EZID's API, version 2 (ezid.cdlib.org/doc/apidoc.html). A [Registry] decides which are
// needed. Every call can be repeated: the registry asks EZID what is there before it changes anything, and a
// reservation names its job. What EZID does with a request whose answer is lost does not matter.
//
//	err := registry.Reserve(ctx, job, minted) // in the stage Process
//	failures, err := registry.Handle(ctx, batch) // a consumer of events
//	left, err := registry.Left(ctx, ark) // for the doctor
package ezid

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"archivist/pkg/formats/anvl"
	"archivist/pkg/formats/ark"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/fetch"
)

// Client calls EZID. HTTP authorises the requests. URL is the address of EZID without a path.
type Client struct {
	HTTP *fetch.Client
	URL  string
}

// Statuses of an identifier. What follows a bar is the reason of unavailable.
const (
	Reserved    = "reserved"
	Public      = "public"
	Unavailable = "unavailable | withdrawn by the archive"
)

// Record is what EZID knows of an identifier. An empty element is not sent.
type Record struct {
	Status string
	Target string // the URL to which the identifier resolves
	ERC    string // the description, as a record in ANVL
	Job    string // that has reserved it
}

// names are those of the elements in EZID. EZID keeps elements of clients' own, too.
const (
	nameStatus  = "_status"
	nameTarget  = "_target"
	nameProfile = "_profile"
	nameERC     = "erc"
	nameJob     = "archivist.job"
)

// limits of one call: all tries of one must fit into the time-out of a function.
const (
	timeout   = 8 * time.Second
	maxAnswer = 256 << 10
)

// errExists is EZID's answer to the creation of an identifier that it has.
var errExists = errors.New("it exists")

// Create makes an identifier, and reports false if there is one already.
func (c *Client) Create(ctx context.Context, ark string, r Record) (created bool, err error) {
	_, err = c.call(ctx, http.MethodPut, ark, "", r)
	if errors.Is(err, errExists) {
		return false, nil
	}
	return err == nil, err
}

// Set makes an identifier, or changes it.
func (c *Client) Set(ctx context.Context, ark string, r Record) error {
	_, err := c.call(ctx, http.MethodPut, ark, "?update_if_exists=yes", r)
	return err
}

// Get reads an identifier. A NotFound means that EZID has none.
func (c *Client) Get(ctx context.Context, ark string) (Record, error) {
	elements, err := c.call(ctx, http.MethodGet, ark, "", Record{})
	var r Record
	for _, e := range elements {
		switch e.Name {
		case nameStatus:
			r.Status = e.Value
		case nameTarget:
			r.Target = e.Value
		case nameERC:
			r.ERC = e.Value
		case nameJob:
			r.Job = e.Value
		}
	}
	return r, err
}

// Delete removes a reserved identifier. EZID deletes no other one. One that is not there is as good as deleted.
func (c *Client) Delete(ctx context.Context, ark string) error {
	_, err := c.call(ctx, http.MethodDelete, ark, "", Record{})
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	return err
}

// call makes one call, and returns the elements of the answer. An error is Unavailable if EZID could not answer, which
// another try may cure; Denied, NotFound or Invalid, with EZID's words, if it has refused.
func (c *Client) call(ctx context.Context, method, ark, query string, r Record) (answer []anvl.Element, err error) {
	to := c.URL + "/id/" + (&url.URL{Path: ark}).EscapedPath() + query
	err = c.HTTP.Retry(ctx, c.URL, func() error {
		req, err := http.NewRequestWithContext(ctx, method, to, strings.NewReader(r.body()))
		if err != nil {
			return fault.New(fault.Invalid, "the address of EZID cannot be used: %v", err)
		}
		req.Header.Set("Content-Type", "text/plain; charset=UTF-8")
		req.Header.Set("User-Agent", c.HTTP.UserAgent)
		answer, err = c.once(req, ark)
		return err
	})
	if err != nil && !errors.Is(err, errExists) {
		return nil, fault.New(cmp.Or(fault.Of(err), fault.Unavailable), "%s: %w", ark, err)
	}
	return answer, err
}

// once makes one request. It follows no redirect: a changed identifier is at the address that was asked.
func (c *Client) once(req *http.Request, asked string) ([]anvl.Element, error) {
	direct := *c.HTTP.HTTP
	direct.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	direct.Timeout = timeout
	resp, err := direct.Do(req)
	if err != nil {
		return nil, ofSecret(err)
	}

	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, err
	}

	first, rest, _ := strings.Cut(string(body), "\n")
	status, said, _ := strings.Cut(decode(strings.TrimSpace(first)), ": ")
	switch {
	case resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests:
		return nil, fetch.NewStatusError(fetch.Site(req.URL.String()), resp)
	case status == "success" && resp.StatusCode < 300 && names(said, asked):
		return read(rest)
	case status == "success" && resp.StatusCode < 300:
		return nil, fault.New(fault.Invalid, "EZID answered for %q", said)
	case status == "error":
		return nil, refusal(said)
	}
	return nil, fault.New(fault.Invalid, "what answered with %d is not EZID: %q", resp.StatusCode, cut(first))
}

// ofSecret is the error of the secret, if a request has failed by it; else the error of the request.
func ofSecret(err error) error {
	var u *url.Error
	if errors.As(err, &u) && fault.Of(u.Err) != "" {
		return u.Err
	}
	return err
}

// names reports whether an answer is about the identifier that was asked for.
func names(said, asked string) bool {
	got, err := ark.Parse(said)
	return err == nil && got.String() == asked
}

// refusal is the error of what EZID said, e.g. "bad request - no such identifier".
func refusal(said string) error {
	switch {
	case strings.HasPrefix(said, "unauthorized"), strings.HasPrefix(said, "forbidden"):
		return fault.New(fault.Denied, "EZID answered %q: the user in the secret may not do this", cut(said))
	case strings.Contains(said, "no such identifier"):
		return fault.New(fault.NotFound, "EZID answered %q", cut(said))
	case strings.Contains(said, "identifier already exists"):
		return fault.New(fault.Conflict, "EZID answered %q: %w", cut(said), errExists)
	}
	return fault.New(fault.Invalid, "EZID answered %q", cut(said))
}

func cut(s string) string {
	if len(s) > 300 {
		return s[:300] + "…"
	}
	return s
}

// body is the request of a record: a line for each element.
func (r Record) body() string {
	profile := ""
	if r.ERC != "" {
		profile = "erc"
	}
	var b strings.Builder
	for _, e := range []anvl.Element{{Name: nameStatus, Value: r.Status}, {Name: nameTarget, Value: r.Target},
		{Name: nameProfile, Value: profile}, {Name: nameERC, Value: r.ERC}, {Name: nameJob, Value: r.Job}} {
		if e.Value != "" {
			fmt.Fprintf(&b, "%s: %s\n", e.Name, encode(e.Value))
		}
	}
	return b.String()
}

// read reads the elements of an answer.
func read(text string) ([]anvl.Element, error) {
	elements, err := anvl.Read(strings.NewReader(text))
	if err != nil {
		return nil, fault.New(fault.Invalid, "the answer of EZID cannot be read: %w", err)
	}
	for i := range elements {
		elements[i].Name, elements[i].Value = decode(elements[i].Name), decode(elements[i].Value)
	}
	return elements, nil
}

// EZID's ANVL encodes line breaks and percent signs of a value as in URLs.
var encoder = strings.NewReplacer("%", "%25", "\n", "%0A", "\r", "%0D")

func encode(value string) string { return encoder.Replace(value) }

func decode(text string) string {
	plain, err := url.PathUnescape(text)
	if err != nil {
		return text
	}
	return plain
}
