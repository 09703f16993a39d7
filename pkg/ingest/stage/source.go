package stage

import (
	"context"
	"net/http"
	"net/url"
	"sync"

	"archivist/pkg/ingest/collection"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/fetch"
)

// Sources makes clients for the content of collections.
type Sources struct {
	Fetch       *fetch.Client
	Collections collection.Store
	Secret      func(ctx context.Context, name string) (string, error) // reads a secret by its name
	S3          func(bucket string) http.RoundTripper                  // answers requests for s3 URLs of a bucket

	// Uploads answers requests for the files of an upload of a collection.
	Uploads func(collection, upload string) http.RoundTripper
}

// client requests what the profile of a collection allows a submission with an upload, "" for none, and authorises the
// requests with the profile's secrets. It returns the profile, too. It lasts for one try of a step: a changed profile
// or secret counts with the next. What it reads of the upload is of this collection, whatever the URL says.
func (s Sources) client(ctx context.Context, name, upload string) (c *fetch.Client, p collection.Profile, err error) {
	p, _, err = s.Collections.Profile(ctx, name)
	if err != nil || p.Sources == nil && upload == "" {
		return s.Fetch, p, err
	}

	access := p.Access(upload)
	access.S3 = s.S3
	if upload != "" {
		access.Uploads = s.Uploads(name, upload)
	}
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
