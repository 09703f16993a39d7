package boot

import (
	"context"
	"net/url"
	"strings"

	"archivist/pkg/ingest/collection"
	"archivist/pkg/ingest/ezid"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/fetch"
)

// newRegistry registers ARKs with the EZID of the environment; nil if it names none. The secret is read for each call,
// so that a changed password counts at once.
func (s *System) newRegistry() *ezid.Registry {
	to := strings.TrimSuffix(s.env(EnvEZID), "/")
	if to == "" {
		return nil
	}

	access := fetch.Access{Authorize: func(ctx context.Context, u *url.URL) (string, error) {
		text, err := s.stages.Secret(ctx, collection.EZIDSecret)
		var header string
		if err == nil {
			header, err = fetch.Authorization(text, u)
		}
		if fault.Of(err) != "" {
			err = fault.New(fault.Denied, "the secret %s of EZID cannot be used: %w", collection.EZIDSecret, err)
		}
		return header, err
	}}
	return &ezid.Registry{
		Client:      &ezid.Client{HTTP: s.stages.Fetch.With(access), URL: to},
		Collections: s.stages.Collections,
		Inventory:   s.stages.Inventory,
		Root:        s.stages.Root,
		Queue:       s.queue,
		Target:      strings.TrimSuffix(s.env(EnvEZIDTarget), "/"),
	}
}
