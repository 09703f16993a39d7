package svn

import (
	"context"
	"encoding/base64"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/fetch"
)

// Requests. OPTIONS needs its body: without it mod_dav_svn does not describe the repository.
const (
	header  = `<?xml version="1.0" encoding="utf-8"?>`
	options = header + `<D:options xmlns:D="DAV:"><D:activity-collection-set/></D:options>`

	// revisionProperties are named one by one: names of other properties may be such that XML does
	// not allow.
	revisionProperties = header +
		`<D:propfind xmlns:D="DAV:" xmlns:S="http://subversion.tigris.org/xmlns/svn/" ` +
		`xmlns:C="http://subversion.tigris.org/xmlns/custom/"><D:prop><S:date/><S:log/><D:creator-displayname/>` +
		`<C:Archivist-Run/></D:prop></D:propfind>`
	fileProperties = header +
		`<D:propfind xmlns:D="DAV:" xmlns:S="http://subversion.tigris.org/xmlns/svn/" ` +
		`xmlns:V="http://subversion.tigris.org/xmlns/dav/"><D:prop><D:resourcetype/><D:checked-in/>` +
		`<S:executable/><S:special/><V:sha1-checksum/></D:prop></D:propfind>`
)

// mostXML bounds an answer in bytes: a folder of 100,000 files has about 100 MB.
const mostXML = 256 << 20

// properties are those of a file, folder or revision, as far as they exist. Found is what the
// answer has; settle takes over from it what exists.
type properties struct {
	Href       string    `xml:"DAV: href"`
	Collection *struct{} `xml:"-"`
	Executable *struct{} `xml:"-"`
	Special    *struct{} `xml:"-"`
	SHA1       string    `xml:"-"`
	CheckedIn  string    `xml:"-"`
	Author     string    `xml:"-"`
	Date       value     `xml:"-"`
	Log        value     `xml:"-"`
	Token      value     `xml:"-"`

	Found []struct {
		Status string `xml:"DAV: status"`
		Prop   struct {
			Type struct {
				Collection *struct{} `xml:"DAV: collection"`
			} `xml:"DAV: resourcetype"`
			CheckedIn  string    `xml:"DAV: checked-in>href"`
			Author     string    `xml:"DAV: creator-displayname"`
			Executable *struct{} `xml:"http://subversion.tigris.org/xmlns/svn/ executable"`
			Special    *struct{} `xml:"http://subversion.tigris.org/xmlns/svn/ special"`
			Date       value     `xml:"http://subversion.tigris.org/xmlns/svn/ date"`
			Log        value     `xml:"http://subversion.tigris.org/xmlns/svn/ log"`
			SHA1       string    `xml:"http://subversion.tigris.org/xmlns/dav/ sha1-checksum"`
			Token      value     `xml:"http://subversion.tigris.org/xmlns/custom/ Archivist-Run"`
		} `xml:"DAV: prop"`
	} `xml:"DAV: propstat"`
}

// value is the text of a property. One that XML does not allow is in base64.
type value struct {
	Encoding string `xml:"http://subversion.tigris.org/xmlns/dav/ encoding,attr"`
	Text     string `xml:",chardata"`
}

// text is the value as it was set. One whose base64 cannot be read is left as it is.
func (v value) text() string {
	if v.Encoding != "base64" {
		return v.Text
	}
	data, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(v.Text), ""))
	if err != nil {
		return v.Text
	}
	return string(data)
}

// settle keeps the properties that exist: a server also lists those that do not, with the status
// 404.
func (p *properties) settle() {
	for _, f := range p.Found {
		if !strings.Contains(f.Status, " 200 ") {
			continue
		}
		p.Collection, p.Executable, p.Special = f.Prop.Type.Collection, f.Prop.Executable,
			f.Prop.Special
		p.SHA1, p.CheckedIn, p.Author = f.Prop.SHA1, f.Prop.CheckedIn, f.Prop.Author
		p.Date, p.Log, p.Token = f.Prop.Date, f.Prop.Log, f.Prop.Token
	}
	p.Found = nil
}

// ask asks the server what it says of the repository, and keeps that. A server that is none of
// Subversion, or is older than 1.7, is an Invalid.
func (s *Source) ask(ctx context.Context) (r repository, err error) {
	err = s.send(ctx, http.MethodOptions, s.url.EscapedPath(), "", options,
		func(resp *http.Response) error {
			h := resp.Header
			r = repository{
				uuid:     h.Get("SVN-Repository-UUID"),
				revision: h.Get("SVN-Rev-Stub"),
				root:     h.Get("SVN-Rev-Root-Stub"),
			}

			// Servers before 1.7 answer without these headers.
			head, err := strconv.ParseInt(h.Get("SVN-Youngest-Rev"), 10, 64)
			if err != nil || r.uuid == "" || r.revision == "" || r.root == "" {
				return s.strange(
					"does not answer as a Subversion repository of version 1.7 or later")
			}

			r.head = head
			below, ok := decodedBelow(h.Get("SVN-Repository-Root"), s.url.EscapedPath())
			if !ok {
				return s.strange("is not below the root of its repository, which is %q",
					h.Get("SVN-Repository-Root"))
			}

			r.below = below
			return nil
		})
	if fault.Is(err, fault.NotFound) {
		err = s.strange("answered 404 Not Found: there is no Subversion repository")
	}

	if err != nil {
		return r, err
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = r
	return r, nil
}

// decodedBelow is the rest of a path behind a root, decoded and without slashes at its ends; false
// if the path is not below the root. Both are as a URL has them.
func decodedBelow(root, at string) (string, bool) {
	rootPath, err1 := url.PathUnescape(root)
	atPath, err2 := url.PathUnescape(at)
	rest, ok := strings.CutPrefix(path.Clean("/"+atPath)+"/",
		strings.TrimSuffix(path.Clean("/"+rootPath), "/")+"/")
	return strings.Trim(rest, "/"), ok && err1 == nil && err2 == nil
}

// find reads properties of a path, or, with the depth "1", of all that is in a folder, itself
// included. A path that does not exist is a NotFound; an answer that is too large, or is no XML, an
// Invalid.
func (s *Source) find(ctx context.Context, at, depth, what string) (all []properties, err error) {
	err = s.send(ctx, "PROPFIND", at, depth, what, func(resp *http.Response) error {
		all = nil
		if resp.StatusCode != http.StatusMultiStatus {
			return s.strange("does not answer as a Subversion repository: PROPFIND got %d",
				resp.StatusCode)
		}

		// If nothing of the limit is left at the end, the answer was cut.
		body := &io.LimitedReader{R: resp.Body, N: mostXML}
		all, err = multistatus(body)
		if body.N <= 0 {
			return s.strange("sends more than %d bytes about %s", mostXML, at)
		}

		var syntax *xml.SyntaxError
		if errors.As(err, &syntax) {
			return s.strange("does not answer as a Subversion repository: %w", err)
		}
		return err
	})
	return all, err
}

// multistatus reads the answer to a PROPFIND (RFC 4918, section 9.1), one response after the other:
// so the answer itself is never in memory as a whole.
func multistatus(r io.Reader) (all []properties, err error) {
	for dec := xml.NewDecoder(r); ; {
		token, err := dec.Token()
		if err == io.EOF {
			return all, nil
		}

		if err != nil {
			return nil, err
		}

		start, ok := token.(xml.StartElement)
		if !ok || start.Name != (xml.Name{Space: "DAV:", Local: "response"}) {
			continue
		}

		var p properties
		if err := dec.DecodeElement(&p, &start); err != nil {
			return nil, err
		}

		p.settle()
		all = append(all, p)
	}
}

// send sends a request to a path of the server, again as package fetch does. A 404 is a NotFound.
// use reads the answer, and may be called again for another try. The encoding "identity" is asked
// for, so that what is read is what is stored.
func (s *Source) send(ctx context.Context, method, at, depth, body string,
	use func(*http.Response) error) error {
	client, err := s.authorized(ctx)
	if err != nil {
		return err
	}

	to := s.url.Scheme + "://" + s.url.Host + at
	return cause(client.Retry(ctx, s.location.URL, func() error {
		req, err := http.NewRequestWithContext(ctx, method, to, strings.NewReader(body))
		if err != nil {
			return s.strange("leads to a path that is none: %w", err)
		}

		req.Header.Set("Accept-Encoding", "identity")
		if body != "" {
			req.Header.Set("Content-Type", "text/xml; charset=utf-8")
		}

		if depth != "" {
			req.Header.Set("Depth", depth)
		}

		resp, err := client.Do(req)
		if err != nil {
			return err
		}

		defer resp.Body.Close()
		if err := s.status(resp, at); err != nil {
			return err
		}
		return use(resp)
	}))
}

// status is the error of an answer that is no success; nil for one that is. What may pass is left
// to package fetch, which tries again.
func (s *Source) status(resp *http.Response, at string) error {
	switch code := resp.StatusCode; {
	case code >= 200 && code < 300:
		return nil
	// A redirect is not followed: see authorized.
	case code >= 300 && code < 400:
		return s.strange("redirects to %s; register that URL instead",
			fetch.Redact(resp.Header.Get("Location")))
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return s.location.Refused()
	case code == http.StatusNotFound:
		return fault.New(fault.NotFound, "%s has no %s", s.location.URL, at)
	case code == http.StatusMethodNotAllowed || code == http.StatusNotImplemented:
		return s.strange("does not answer as a Subversion repository: it refuses %s",
			resp.Request.Method)
	}
	return fetch.NewStatusError(s.location.URL, resp)
}

// authorized is a client that sends the user and the password of the secret. It follows no
// redirect: so they are sent to no other host. The secret is read once for a Source.
func (s *Source) authorized(ctx context.Context) (*fetch.Client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client != nil {
		return s.client, nil
	}

	user, password, ok, err := s.location.Credentials(ctx, s.deps.Secret)
	if err != nil {
		return nil, err
	}

	client, web := *s.deps.HTTP, *s.deps.HTTP.HTTP
	web.CheckRedirect = func(*http.Request,
		[]*http.Request) error {
		return http.ErrUseLastResponse
	}

	if ok {
		web.Transport = basic{web.Transport, user, password}
	}

	client.HTTP = &web
	s.client = &client
	return s.client, nil
}

// basic is a transport that adds a user and a password (RFC 7617).
type basic struct {
	http.RoundTripper
	user, password string
}

// RoundTrip sends a request.
func (b basic) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.SetBasicAuth(b.user, b.password)
	return b.RoundTripper.RoundTrip(req)
}

// number is the path of a revision.
func number(stub string, n int64) string {
	return strings.TrimSuffix(stub, "/") + "/" + strconv.FormatInt(n, 10)
}

// escape is a path for a URL, with a slash before it if it has any part.
func escape(name string) (out string) {
	for part := range strings.SplitSeq(name, "/") {
		if part != "" {
			out += "/" + url.PathEscape(part)
		}
	}
	return out
}

func join(a, b string) string { return strings.Trim(a+"/"+b, "/") }

// childOf is the name of what a server lists in a folder; below is false for the folder itself.
// What is not directly in the folder is an error.
func childOf(folder, href string) (name string, below bool, err error) {
	u, err := url.Parse(href)
	if err != nil {
		return "", false, err
	}

	at, err := url.PathUnescape(folder)
	if err != nil {
		return "", false, err
	}

	at, listed := strings.Trim(at, "/"), strings.Trim(u.Path, "/")
	if listed == at {
		return "", false, nil
	}

	name, below = strings.CutPrefix(listed, at+"/")
	if !below || strings.Contains(name, "/") || name == "." || name == ".." {
		return "", false, errors.New("it is not in the folder")
	}
	return name, below, nil
}
