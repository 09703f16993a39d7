// Package stage does the work of the ingest's stages, one file per stage. A
// step can run again from any point of a crash: it asks first what is done.
package stage

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"archivist/pkg/aip"
	"archivist/pkg/ark"
	"archivist/pkg/collection"
	"archivist/pkg/fault"
	"archivist/pkg/fetch"
	"archivist/pkg/ingest"
	"archivist/pkg/inventory"
	"archivist/pkg/ocfl"
	"archivist/pkg/queue"
	"archivist/pkg/workspace"
)

// Stages holds what the steps need.
type Stages struct {
	Queue       *queue.Queue
	Inventory   inventory.Store
	Collections collection.Store
	Root        ocfl.Root
	Work        workspace.Store
	Fetch       *fetch.Client
	Now         func() time.Time
	Draw        func(job string, try int) func(n int) int // numbers for a job's ark; see Draw
	NAAN        string                                    // of minted arks
	Shoulder    string
	Version     string // of this software
	Parallel    int    // transfers at once of one job
	MailFrom    string // sender of mails; "" = none are sent
	API         string // URL of the API before /v1, for links in mails; "" = no links
	SendMail    func(ctx context.Context, raw []byte) error
	Secret      func(ctx context.Context, name string) (string, error) // reads a secret by its name

	rooted atomic.Bool // the storage root is there
}

// Steps returns every stage's step by the stage's name.
func (s *Stages) Steps() map[string]queue.Step {
	steps := map[string]queue.Step{
		"unpack":   s.unpack,
		"estimate": s.orDone(s.estimate),
		"download": s.orDone(s.download),
		"process":  s.orDone(s.process),
		"store":    s.orDone(s.store),
		"record":   s.record,
		"notify":   s.notify,
		"report":   s.report,
	}
	for name, step := range steps {
		steps[name] = forgetful(step)
	}
	return steps
}

// forgetful is a step that leaves no secret in the URL of what it fails for good: what
// is not requeued is not fetched again.
func forgetful(step queue.Step) queue.Step {
	return func(ctx context.Context, h *queue.Claim) (ingest.Result, error) {
		res, err := step(ctx, h)
		switch {
		case err != nil || res.Outcome != ingest.StepFail:
		case h.Batch != nil:
			h.Batch.URL = fetch.Redact(h.Batch.URL)
		case !res.Recoverable:
			h.Job.URL = fetch.Redact(h.Job.URL)
		}
		return res, err
	}
}

var next = ingest.Result{Outcome: ingest.StepNext}

// failed turns an error of fetching into a result: content that cannot be had
// fails the job. It can be requeued once the source is corrected, unless its
// address is refused.
func failed(err error) (ingest.Result, error) {
	switch {
	case !unfetched(err):
		return ingest.Result{}, err
	case !mayRecover(err):
		return ingest.Fail(false, err.Error()+". Correct the URL, then submit it again"), nil
	}
	return ingest.Fail(true, err.Error()+". Correct it at the source, then requeue the job"), nil
}

// unfetched reports whether an error is that of a source, not one of ours.
func unfetched(err error) bool {
	return fault.Is(err, fault.Invalid) || fault.Is(err, fault.Unavailable)
}

// mayRecover reports whether a source can come to answer in another way.
func mayRecover(err error) bool {
	var refused *fetch.RefusedError
	return unfetched(err) && !errors.As(err, &refused)
}

// resolve finds the job's object: by the local ids and by the ark that the depositor
// gave. It returns why the submission is refused, or "".
func (s *Stages) resolve(ctx context.Context, j *ingest.Job) (refused string, err error) {
	found, by := "", ""
	for _, id := range j.Submitted() {
		known, err := s.Inventory.ByLocalID(ctx, j.Collection, id)
		if err != nil {
			return "", err
		}
		if known != "" && found != "" && known != found {
			return fmt.Sprintf("the local ids %q and %q are of different objects (%s, %s); submit one object at a time",
				by, id, found, known), nil
		}
		if known != "" {
			found, by = known, id
		}
	}
	if j.Primary == "" {
		j.Primary = found
		return "", nil
	}
	given, err := ark.Parse(j.Primary)
	if err != nil {
		return "the primary identifier is no ARK: " + err.Error(), nil
	}
	j.Primary = given.String()
	if found != "" && found != j.Primary {
		return fmt.Sprintf("the local id %q is that of another object than %s; leave one of them out", by, j.Primary), nil
	}
	return s.allowed(ctx, j, given)
}

// allowed asks whether a given ark may be used: that of an object of this
// collection, or a new one on our shoulder. Where there is no row of the object the
// storage root is asked, since rows can be lost.
func (s *Stages) allowed(ctx context.Context, j *ingest.Job, given ark.ARK) (string, error) {
	object, err := s.Inventory.Object(ctx, given.String())
	switch {
	case err == nil && object.Collection != j.Collection:
		return foreign(given.String()), nil
	case err == nil:
		return "", nil
	case !fault.Is(err, fault.NotFound):
		return "", err
	}
	stored, err := s.Root.Head(ctx, given.String())
	if err == nil {
		id, err := aip.Head(s.Root, stored).Identity(ctx)
		if err == nil && !id.In(j.Collection) {
			return foreign(given.String()), nil
		}
		return "", err // its rows are brought back in Processing
	}
	if !fault.Is(err, fault.NotFound) {
		return "", err
	}
	reserved, err := s.Inventory.Reserved(ctx, given.String())
	if err != nil {
		return "", err
	}
	if reserved != nil && reserved.Collection != j.Collection && reserved.Job != j.ID {
		return foreign(given.String()), nil
	}
	shoulder, err := s.shoulder(ctx, j)
	return mistaken(given, ark.ARK{NAAN: s.NAAN, Name: shoulder}), err
}

// mistaken says why a given ark cannot be that of a new object on a shoulder, or "".
func mistaken(given, shoulder ark.ARK) string {
	const instead = "; leave it out and one is minted"
	switch {
	case given.NAAN != shoulder.NAAN || !strings.HasPrefix(given.Name, shoulder.Name):
		return fmt.Sprintf("%s is not on the shoulder %s of this collection%s", given, shoulder, instead)
	case given == shoulder:
		return fmt.Sprintf("%s is the shoulder of this collection, not an object's ARK%s", given, instead)
	case !given.Valid():
		return fmt.Sprintf("the check character of %s is wrong; correct the ARK, or%s", given, strings.TrimPrefix(instead, ";"))
	}
	return ""
}

// Mistyped says why an ark on a collection's shoulder cannot be that of an object, or
// "". Whether another ark may be used is found out in Estimate.
func (s *Stages) Mistyped(ctx context.Context, collection, text string) (string, error) {
	given, err := ark.Parse(text)
	if err != nil {
		return err.Error(), nil
	}
	name, err := s.shoulder(ctx, &ingest.Job{Collection: collection})
	if err != nil || given.NAAN != s.NAAN || !strings.HasPrefix(given.Name, name) {
		return "", err
	}
	why := mistaken(given, ark.ARK{NAAN: s.NAAN, Name: name})
	if why == "" {
		return "", nil
	}
	if _, err = s.Inventory.Object(ctx, given.String()); fault.Is(err, fault.NotFound) {
		return why, nil
	}
	return "", err
}

// shoulder is where the job's collection has its arks.
func (s *Stages) shoulder(ctx context.Context, j *ingest.Job) (string, error) {
	profile, _, err := s.Collections.Profile(ctx, j.Collection)
	if profile.Shoulder == "" {
		return s.Shoulder, err
	}
	return profile.Shoulder, err
}
