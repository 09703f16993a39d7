package stage

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"archivist/pkg/formats/bagit"
	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/fetch"
)

// maxProfiles is how many of the profiles that a bag names are fetched.
const maxProfiles = 5

// conforms checks a bag by the profiles that it names, and returns those that it conforms to. A profile that is not
// there any more, or at a host that the collection refuses, is a warning: the content does not depend on it.
func (u *unpacking) conforms(ctx context.Context, report *bagit.Report) (to []string, refused string, err error) {
	for i, at := range report.Profiles() {
		if i == maxProfiles {
			warnOnce(u.job, fmt.Sprintf("bag: it names more than %d profiles; the others were not checked",
				maxProfiles))
			break
		}

		p, err := u.profiles.read(ctx, u.Fetch, u.job.Collection, at, u.Now())
		switch {
		case fault.Is(err, fault.Invalid):
			warnOnce(u.job, ingest.Cut(fmt.Sprintf("bag: the profile %s was not checked: %v", fetch.Redact(at), err),
				maxProblem))
			continue
		case err != nil:
			return to, "", fmt.Errorf("the profile %s of the bag: %v", fetch.Redact(at), err)
		}

		if problems := p.Check(report, string(u.Kind)); len(problems) > 0 {
			return to, fmt.Sprintf("the bag does not conform to %s (%s): %s. Correct it, then submit it again; to "+
				"preserve it as it is, submit it with the type file", fetch.Redact(at),
				ingest.Counted(len(problems), "problem"), shown(problems)), nil
		}
		to = append(to, fetch.Redact(at))
	}
	return to, "", nil
}

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
