package fetch

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/source"
)

// Access says which hosts a client may request content from, and authorises its requests. It is asked for each
// request, also for those that follow a redirect. The zero value allows all hosts, and authorises nothing.
type Access struct {
	// Allow and Deny are patterns of hosts, see Matches. A host that Deny names is refused. If Allow names any, all
	// others are refused.
	Allow, Deny []string

	// Authorize returns the value of the header Authorization for a request to a URL, "" for none. nil: there is
	// never one. An error without a kind is tried again, and ends as an AccessError.
	Authorize func(ctx context.Context, u *url.URL) (string, error)

	// Buckets are those whose s3 URLs are allowed; S3 answers the requests for them.
	Buckets []string
	S3      func(bucket string) http.RoundTripper

	// Upload is the id of the only upload whose files may be requested, "" for none; Uploads answers these requests.
	Upload  string
	Uploads http.RoundTripper
}

// Matches reports whether a pattern names the host of a URL: "files.example.org" is that host on any port,
// "files.example.org:8443" on this one only, "*.example.org" are all hosts below it.
func Matches(pattern string, u *url.URL) bool {
	host, pattern := strings.TrimSuffix(strings.ToLower(u.Hostname()), "."), strings.ToLower(pattern)
	if below, is := strings.CutPrefix(pattern, "*."); is {
		return strings.HasSuffix(host, "."+below)
	}
	return host == pattern || strings.ToLower(u.Host) == pattern
}

// Refused returns why content is not requested from a URL, or "". An s3 URL has a bucket, and an upload URL an upload;
// neither has a host.
func (a Access) Refused(u *url.URL) string {
	switch u.Scheme {
	case source.Upload:
		return a.otherUpload(u.Host)
	case source.S3:
		if !slices.Contains(a.Buckets, u.Host) {
			return "the bucket " + u.Host + " is not one of those from which the collection takes content " +
				"(sources.buckets in its profile). A presigned https URL of the object can be used instead"
		}
		return ""
	}

	for _, p := range a.Deny {
		if Matches(p, u) {
			return "the host " + u.Host + " is one from which the collection takes no content (sources.deny in its " +
				"profile)"
		}
	}

	for _, p := range a.Allow {
		if Matches(p, u) {
			return ""
		}
	}
	if len(a.Allow) == 0 {
		return ""
	}
	return "the host " + u.Host + " is not one of those from which the collection takes content (sources.allow in " +
		"its profile)"
}

// otherUpload returns why files of an upload are not requested, or "".
func (a Access) otherUpload(id string) string {
	switch a.Upload {
	case "":
		return "the submission has no upload (payload.upload), so its content cannot be a file of one"
	case id:
		return ""
	}
	return "the upload " + id + " is not that of the submission, which is " + a.Upload
}

// With is the client with an access. It shares the connections of c.
func (c *Client) With(a Access) *Client {
	with, http := *c, *c.HTTP
	http.Transport, with.HTTP = &accessing{a, c.HTTP.Transport}, &http
	with.submitted = len(a.Buckets) > 0 || a.Upload != ""
	return &with
}

// AccessError means that a request could not be authorised now. The source is not to blame.
type AccessError struct{ Err error }

// Error says why.
func (e *AccessError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *AccessError) Unwrap() error { return e.Err }

// accessing sends the requests that an access allows.
type accessing struct {
	Access
	next http.RoundTripper
}

// RoundTrip refuses a request with a RefusedError. A request with credentials of its URL keeps them.
func (t *accessing) RoundTrip(req *http.Request) (*http.Response, error) {
	if why := t.Refused(req.URL); why != "" {
		return nil, &RefusedError{Why: why}
	}
	switch req.URL.Scheme {
	case source.S3:
		return t.S3(req.URL.Host).RoundTrip(req)
	case source.Upload:
		return t.Uploads.RoundTrip(req)
	}

	if t.Authorize == nil || req.URL.User != nil {
		return t.next.RoundTrip(req)
	}

	header, err := t.Authorize(req.Context(), req.URL)
	if err != nil && fault.Of(err) == "" {
		err = &AccessError{err}
	}
	if err != nil {
		return nil, err
	}
	// A redirect of net/http hands credentials on to hosts below the first one: only this host's own are sent.
	req = req.Clone(req.Context())
	req.Header.Del("Authorization")
	if header != "" {
		req.Header.Set("Authorization", header)
	}
	return t.next.RoundTrip(req)
}

// Authorization is the value of the header for a secret of Secrets Manager, which is a JSON object with the host that
// it is for, and a user's name and password (RFC 7617) or a token (RFC 6750):
//
//	{"host": "files.example.org", "username": "archive", "password": "…"}
//	{"host": "files.example.org", "token": "…"}
//
// A secret for another host is refused: whoever may change a profile could else have it sent to a host of their own.
// Errors have no part of the secret.
func Authorization(secret string, u *url.URL) (string, error) {
	s, err := decodeSecret(secret)
	switch {
	case err != nil:
		return "", err
	case !Matches(s.Host, u) || strings.Contains(s.Host, "*"):
		return "", fault.New(fault.Invalid, "the secret is for another host than %s (host in the secret)", u.Host)
	case s.Token != "":
		return "Bearer " + s.Token, nil
	}
	req := http.Request{Header: http.Header{}}
	req.SetBasicAuth(s.Username, s.Password)
	return req.Header.Get("Authorization"), nil
}
