package v1

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
)

// Client calls the API at URL. UserAgent names the calling program, and User the person. The API does not verify the
// name of the person, and events say so. Bearer, if set, is asked before each request for the token to send, "" for
// none; with a token, User is not sent: the token says who calls.
type Client struct {
	URL       string
	Bearer    func(context.Context) (string, error)
	UserAgent string
	User      string
	HTTP      *http.Client
}

// UserHeader is the header with the name of the person who calls.
const UserHeader = "Archivist-User"

// Call makes one request and decodes the response into out, unless out is nil or there is no content. An
// error response becomes a fault.Error with its kind and its whole detail. headers are names and values; a value that
// is empty or blank is not sent.
func (c *Client) Call(ctx context.Context, method, path string, in, out any,
	headers ...string) error {
	resp, err := c.do(ctx, method, path, in, headers)
	if err != nil {
		return err
	}

	defer resp.Body.Close()
	if out == nil || resp.StatusCode == http.StatusNoContent {
		return nil
	}

	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		return fault.New(fault.Unavailable, "the response of %s is not JSON: %w", path, err)
	}
	return nil
}

// do makes a request and returns a successful response.
func (c *Client) do(ctx context.Context, method, path string, in any,
	headers []string) (*http.Response, error) {
	req, err := c.request(ctx, method, path, in)
	if err != nil {
		return nil, err
	}

	for i := 0; i+1 < len(headers); i += 2 {
		if value := strings.TrimSpace(headers[i+1]); value != "" {
			req.Header.Set(headers[i], value)
		}
	}

	client := *c.HTTP
	client.CheckRedirect = withinAPI
	resp, err := client.Do(req)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, ctx.Err() // interrupted by the caller: no message is needed
	case err != nil:
		return nil, fault.New(fault.Unavailable,
			"the API does not answer at %s; is it up, and is the URL right? %w",
			req.URL.Redacted(), err)
	case resp.StatusCode >= 400:
		defer resp.Body.Close()
		if origin(resp.Request.URL) != origin(req.URL) {
			return nil, notGivenOut(resp)
		}
		return nil, problem(resp)
	}
	return resp, nil
}

// notGivenOut makes an error of the answer of a server to which the API has redirected: the storage, or a proxy
// before it. Its text, often XML with names of buckets and keys, is for nobody; its code, if there is one, is for
// operators. It says nothing about the caller's key: that is not sent there.
func notGivenOut(resp *http.Response) error {
	var answer struct{ Code string }
	data, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	code := ""
	if xml.Unmarshal(data, &answer) == nil && answer.Code != "" {
		code = " (" + ingest.Cut(answer.Code, 50) + ")"
	}

	host := resp.Request.URL.Host
	switch {
	case resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusGone:
		return fault.New(fault.NotFound, "the storage at %s does not have the content any more%s",
			host, code)
	case resp.StatusCode == http.StatusForbidden || resp.StatusCode == http.StatusUnauthorized:
		return fault.New(fault.Unavailable,
			"the storage at %s refuses the link that the API has made for this download%s. "+
				"Try again: a link ends after some minutes. If it is refused again, tell the operator",
			host, code)
	}
	return fault.New(fault.Unavailable, "the storage at %s answers %s%s; try again in a minute",
		host, resp.Status, code)
}

// request is a request with a value as its body, unless it is nil.
func (c *Client) request(ctx context.Context, method, path string, in any) (*http.Request, error) {
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(data)
	}

	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(c.URL, "/")+path, body)
	if err != nil {
		return nil, fault.New(fault.Invalid, "the API's URL cannot be used: %w", err)
	}

	req.Header.Set("content-type", "application/json")
	if c.UserAgent != "" {
		req.Header.Set("User-Agent", c.UserAgent)
	}

	return req, c.sayWho(ctx, req)
}

// sayWho says who calls.
func (c *Client) sayWho(ctx context.Context, req *http.Request) error {
	token := ""
	if c.Bearer != nil {
		var err error
		if token, err = c.Bearer(ctx); err != nil {
			return err
		}
	}

	switch {
	case token != "":
		req.Header.Set("Authorization", "Bearer "+token)
	case c.User != "":
		req.Header.Set(UserHeader, c.User)
	}
	return nil
}

// withinAPI follows redirects, for example to content. After a redirect to another
// origin none of our headers is sent: the token, and perhaps the URL, are for the API only.
func withinAPI(req *http.Request, via []*http.Request) error {
	if len(via) >= 10 {
		return errors.New("stopped after 10 redirects")
	}
	away := func(r *http.Request) bool { return origin(r.URL) != origin(via[0].URL) }
	if away(req) || slices.ContainsFunc(via, away) {
		req.Header = http.Header{}
	}
	return nil
}

// origin is the scheme, host and port of a URL (RFC 6454). A token is sent to one origin only.
func origin(u *url.URL) string {
	scheme, port := strings.ToLower(u.Scheme), u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[scheme]
	}
	return scheme + "://" + strings.ToLower(u.Hostname()) + ":" + port
}

// notAuthorizedType is the type of the problem with which something before the API refuses a call.
const notAuthorizedType = "urn:archivist:problem:not-authorized"

// noRouteType is the type of the problem of a path that the API does not have: this client asks only for those that it
// has.
const noRouteType = "urn:archivist:problem:unknown-route"

// unauthenticatedType is the type of the problem of a call without a token, or with one that is not
// accepted.
const unauthenticatedType = "urn:archivist:problem:unauthenticated"

// isPage reports whether an answer is a page or a document of another server, as of a website or of S3: the API and its
// gateway answer in JSON.
func isPage(resp *http.Response) bool {
	kind := resp.Header.Get("Content-Type")
	return strings.Contains(kind, "html") || strings.Contains(kind, "xml")
}

// unconfirmedType is the type of the problem of an action that needs confirm.
const unconfirmedType = "urn:archivist:problem:unconfirmed"

// problem makes an error of an error response. A 403 is about the caller's role if the function sent it; what is
// before the API has other reasons.
func problem(resp *http.Response) error {
	var p Problem
	data, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	fromGateway := json.Unmarshal(data, &p) != nil || p.Type == "" || p.Type == notAuthorizedType
	if refused := resp.StatusCode == http.StatusUnauthorized ||
		resp.StatusCode == http.StatusForbidden; refused &&
		fromGateway {
		return fault.New(fault.Denied, "a server before the API answers %s. Is the URL right, and "+
			"is there a token (archivist config)? Sign in: archivist login", resp.Status)
	}

	switch {
	case isPage(resp) && resp.StatusCode >= 500: // a gateway or a proxy before the API
		return fault.New(fault.Unavailable, "a server before the API answers %s; try again in a minute", resp.Status)
	case isPage(resp) || p.Type == noRouteType:
		return fault.New(fault.Unavailable, "there is no such API of Archivist at %s, which answers %s. Is the URL "+
			"right (archivist config says where it comes from), and the API not older than this program?",
			resp.Request.URL.Redacted(), resp.Status)
	}

	if p.Detail == "" {
		p.Detail = fmt.Sprintf("the API answers %s: %s", resp.Status, data)
	}

	for _, e := range p.Errors {
		p.Detail += fmt.Sprintf("; %s: %s", e.Location, e.Message)
	}

	out := &fault.Error{Kind: kindOf(resp.StatusCode),
		Msg: strings.Join(strings.Fields(p.Detail), " ")}
	switch p.Type {
	case unconfirmedType:
		out.Err = ingest.ErrUnconfirmed
	case unauthenticatedType:
		out.Kind, out.Msg = fault.Denied, out.Msg+". Sign in: archivist login"
	}
	return out
}

// kindOf maps a status to a kind of error. A status that the table of edges does not
// have is Invalid if the client caused it. Too many requests and errors of the server
// are Unavailable: the same request may succeed later.
func kindOf(status int) fault.Kind {
	for kind, edge := range fault.Edges {
		if edge.Status == status && kind != fault.Stale {
			return kind
		}
	}
	if status < 500 && status != http.StatusTooManyRequests && status != http.StatusRequestTimeout {
		return fault.Invalid
	}
	return fault.Unavailable
}
