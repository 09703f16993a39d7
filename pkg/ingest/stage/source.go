package stage

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/collection"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/fetch"
)

// failed turns an error of fetching into a result: content that cannot be fetched fails
// the job. It can be requeued once the source is corrected, unless its address is refused.
// A source that asks to wait is asked again later.
func failed(j *ingest.Job, err error) (ingest.Result, error) {
	switch {
	case !unfetched(err):
		return ingest.Result{}, err
	case !mayRecover(err):
		return ingest.Fail(false, err.Error()+". Correct the URL, then submit it again"), nil
	}
	if after := fetch.AskedToWait(err); after > 0 && after <= ingest.MaxDefer {
		return ingest.Defer(after, err.Error()), nil
	}
	return ingest.Fail(true, err.Error()+". Correct the source, then "+j.Again()), nil
}

// unfetched reports whether an error is the source's, not our own. Errors of our own storage have
// another kind, or none.
func unfetched(err error) bool {
	var access *fetch.AccessError
	return !errors.As(err, &access) && (fault.Is(err, fault.Invalid) || fault.Is(err, fault.Unavailable))
}

// mayRecover reports whether the source may answer differently later.
func mayRecover(err error) bool {
	var refused *fetch.RefusedError
	return unfetched(err) && (!errors.As(err, &refused) || refused.Why != "") // a profile can be changed
}

// Sources makes clients for the content of collections.
type Sources struct {
	Fetch       *fetch.Client
	Collections collection.Store
	Secret      func(ctx context.Context, name string) (string, error) // reads a secret by its name
	S3          func(bucket string) http.RoundTripper                  // answers requests for s3 URLs of a bucket
}

// client requests what the profile of a collection allows, which it returns, too, and authorises the requests with its
// secrets. It lasts for one try of a step: a changed profile or secret counts with the next.
func (s Sources) client(ctx context.Context, name string) (c *fetch.Client, p collection.Profile, err error) {
	p, _, err = s.Collections.Profile(ctx, name)
	if err != nil || p.Sources == nil {
		return s.Fetch, p, err
	}

	access := p.Access()
	access.S3 = s.S3
	a := &authorizer{profile: p, plain: s.Collections.Plain, read: s.Secret, known: map[string]string{}}
	access.Authorize = a.header
	return s.Fetch.With(access), p, nil
}

// authorizer reads each secret once.
type authorizer struct {
	profile collection.Profile
	plain   bool // secrets are also sent without TLS: on a local stack only
	read    func(ctx context.Context, name string) (string, error)

	mu    sync.Mutex
	known map[string]string // by the name of the secret
}

// header is the value of the header Authorization for a request to a URL, "" if its host has no secret.
func (a *authorizer) header(ctx context.Context, u *url.URL) (string, error) {
	name := a.profile.SecretOf(u)
	if name == "" {
		return "", nil
	}
	if u.Scheme != "https" && !a.plain {
		return "", fault.New(fault.Invalid, "the host %s has a secret, which is sent by https only. Give an https URL",
			u.Host)
	}

	text, err := a.secret(ctx, name)
	var header string
	if err == nil {
		header, err = fetch.Authorization(text, u)
	}
	if kind := fault.Of(err); kind != "" {
		err = fault.New(fault.Invalid, "the secret %s of the host %s cannot be used: %w", name, u.Host, err)
	}
	return header, err
}

func (a *authorizer) secret(ctx context.Context, name string) (text string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	text, known := a.known[name]
	if !known {
		text, err = a.read(ctx, name)
	}
	if err == nil {
		a.known[name] = text
	}
	return text, err
}
