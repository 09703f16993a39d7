package stage

import (
	"context"
	"io"
	"sync"
	"time"

	"archivist/pkg/formats/bagit"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/fetch"
)

// profiles keeps BagIt profiles in memory, since all bags of a deposit name the same. It serves any goroutine.
type profiles struct {
	mu    sync.Mutex
	known map[profileOf]knownProfile
}

// profileOf is what a profile is known by: a collection may refuse its host.
type profileOf struct{ collection, url string }

type knownProfile struct {
	*bagit.Profile
	until time.Time
}

const (
	profileLife = time.Hour
	mostKnown   = 100
)

// read returns a profile that was fetched less than profileLife ago.
func (k *profiles) read(ctx context.Context, client *fetch.Client, collection, url string, now time.Time) (
	p *bagit.Profile, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	of := profileOf{collection, url}
	if is := k.known[of]; now.Before(is.until) {
		return is.Profile, nil
	}

	_, err = client.IfChanged(ctx, url, fetch.Validators{}, bagit.MaxProfile,
		func(_ fetch.Document, r io.Reader) (err error) {
			p, err = bagit.ReadProfile(r)
			if err != nil {
				err = fault.New(fault.Invalid, "%w", err)
			}
			return err
		})
	if err != nil {
		return nil, err
	}

	if k.known == nil || len(k.known) == mostKnown {
		k.known = map[profileOf]knownProfile{}
	}
	k.known[of] = knownProfile{p, now.Add(profileLife)}
	return p, nil
}
