package git

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/fetch"
)

// overHTTP is a repository that is served by smart HTTP (gitprotocol-http). Addresses, redirects
// and retries are those of package fetch. session and refs are of the last call of tip; fetch uses
// them.
type overHTTP struct {
	source  *Source
	session transport.UploadPackSession
	refs    *packp.AdvRefs
}

// connect makes a session. Its client is that of package fetch, with a bound for what it receives.
func (o *overHTTP) connect(ctx context.Context) error {
	endpoint, err := transport.NewEndpoint(o.source.location.URL)
	if err != nil {
		return o.source.invalid("cannot be read as a URL")
	}

	auth, err := o.auth(ctx)
	if err != nil {
		return err
	}

	guarded := *o.source.deps.HTTP.HTTP
	guarded.Transport = bounded{guarded.Transport, o.source.deps.Most, o.source.deps.HTTP.UserAgent}
	o.session, err = githttp.NewClient(&guarded).NewUploadPackSession(endpoint, auth)
	if err != nil {
		return o.source.invalid("cannot be read: %w", err)
	}
	return nil
}

// auth are the user and the password of the secret, nil without one.
func (o *overHTTP) auth(ctx context.Context) (transport.AuthMethod, error) {
	user, password, ok, err := o.source.location.Credentials(ctx, o.source.deps.Secret)
	if err != nil || !ok {
		return nil, err
	}
	return &githttp.BasicAuth{Username: user, Password: password}, nil
}

// tip asks the server for its references. Each try makes a session of its own, and that of the last
// is kept for fetch.
func (o *overHTTP) tip(ctx context.Context) (plumbing.Hash, error) {
	err := o.retry(ctx, func() error {
		err := o.connect(ctx)
		if err != nil {
			return err
		}
		o.refs, err = o.session.AdvertisedReferencesContext(ctx)
		return err
	})
	if errors.Is(err, transport.ErrEmptyRemoteRepository) {
		return plumbing.ZeroHash, nil
	}

	if err != nil {
		return plumbing.ZeroHash, err
	}

	hash, ok := o.refs.References[plumbing.NewBranchReferenceName(o.source.location.Branch).String()]
	if !ok {
		return plumbing.ZeroHash, o.source.noBranch()
	}
	return hash, nil
}

// fetch requests one pack, with what have lacks of tip, and adds it to the store. Nothing is
// requested if tip is among have.
func (o *overHTTP) fetch(ctx context.Context, s *store, tip plumbing.Hash,
	have []plumbing.Hash) error {
	req := packp.NewUploadPackRequestFromCapabilities(o.refs.Capabilities)
	if o.refs.Capabilities.Supports(capability.NoProgress) {
		_ = req.Capabilities.Set(capability.NoProgress)
	}

	// The pack has all that tip needs and these commits do not have.
	req.Wants, req.Haves = []plumbing.Hash{tip}, have
	if req.IsEmpty() {
		return nil // an earlier revision is the newest again
	}
	return o.retry(ctx, func() error {
		response, err := o.session.UploadPack(ctx, req)
		if errors.Is(err, transport.ErrEmptyUploadPackRequest) {
			return nil
		}
		if err != nil {
			return err
		}
		defer response.Close()
		return packfile.UpdateObjectStorage(s.objects, packOf(req.Capabilities, response))
	})
}

// packOf is the pack in a response: in one of the forms that were asked for
// (gitprotocol-capabilities, side-band).
func packOf(used *capability.List, r io.Reader) io.Reader {
	switch {
	case used.Supports(capability.Sideband64k):
		return sideband.NewDemuxer(sideband.Sideband64k, r)
	case used.Supports(capability.Sideband):
		return sideband.NewDemuxer(sideband.Sideband, r)
	}
	return r
}

// retry sends a request, again as package fetch does, and gives each error its kind.
func (o *overHTTP) retry(ctx context.Context, send func() error) error {
	return o.source.deps.HTTP.Retry(ctx, o.source.location.URL,
		func() error { return o.cause(send()) })
}

// cause gives an answer of the server its kind: what asks for another user is a Denied, what is no
// Git repository an Invalid, and a status is what package fetch makes of it. Other errors are left
// as they are, to be tried again.
func (o *overHTTP) cause(err error) error {
	var unexpected *plumbing.UnexpectedError
	if errors.As(err, &unexpected) {
		err = unexpected.Err // it hides its cause
	}

	var status *githttp.Err
	l := o.source.location
	switch {
	case err == nil:
		return nil
	case errors.Is(err, transport.ErrEmptyRemoteRepository):
		return &fault.Error{
			Kind: fault.Invalid,
			Msg:  err.Error(),
			Err:  err,
		} // not tried again; see tip
	case errors.Is(err, transport.ErrAuthenticationRequired),
		errors.Is(err, transport.ErrAuthorizationFailed):
		return l.Refused()
	case errors.Is(err, transport.ErrRepositoryNotFound):
		return fault.New(fault.Invalid,
			"%s answered 404 Not Found: there is no Git repository, or it is not shown "+
				"to this user", l.URL)
	case errors.As(err, &status):
		return fetch.NewStatusError(l.URL, status.Response)
	case errors.Is(err, packp.ErrEmptyInput), errors.Is(err, packp.ErrEmptyAdvRefs),
		errors.Is(err, pktline.ErrInvalidPktLen):
		return o.source.invalid("does not answer as a Git repository: %w", err)
	}

	var other *packp.ErrUnexpectedData
	if errors.As(err, &other) {
		return o.source.invalid("does not answer as a Git repository: %w", err)
	}
	return err
}

// bounded is a transport that ends answers that are too large, and names this software.
type bounded struct {
	http.RoundTripper
	most  int64
	agent string
}

// RoundTrip sends a request.
func (b bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	if b.agent != "" {
		req = req.Clone(req.Context())
		req.Header.Set("User-Agent", b.agent)
	}
	resp, err := b.RoundTripper.RoundTrip(req)
	if err != nil {
		return resp, err
	}

	resp.Body = &limited{resp.Body, b.most, b.most}
	return resp, nil
}

// limited is the body of an answer; left are the bytes that may still come of most.
type limited struct {
	io.ReadCloser
	left, most int64
}

// Read ends what is too large.
func (l *limited) Read(p []byte) (int, error) {
	n, err := l.ReadCloser.Read(p)
	l.left -= int64(n)
	if l.left < 0 {
		return n, fault.New(fault.Invalid,
			"the repository has more than %d bytes, which is the limit", l.most)
	}
	return n, err
}
