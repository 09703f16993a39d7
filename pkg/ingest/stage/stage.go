// Package stage does the work of the ingest's stages, one type per stage.
//
// Each type names in its fields exactly what its stage needs, so that it can be read,
// tested and given permissions alone. Its method Run works on a claim, which is a worker's
// hold on an item. It returns what follows: the next state, a checkpoint to continue from,
// a lock to wait for, or a failure with its reason. An error is a failed try; a later try
// may succeed. A step can run again after a crash at any point: it first checks what is
// done.
//
//	download := stage.Download{Fetch: client, Work: work, Now: time.Now, Parallel: 4}
//	result, err := download.Run(ctx, claim)
//
// A job passes through [Estimate], [Download], [Process], [Store], [Record] and [Notify];
// a batch through [Unpack] and [Report]. [Stages] makes them from a deployment's parts.
package stage

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/callback"
	"archivist/pkg/ingest/collection"
	"archivist/pkg/ingest/identity"
	"archivist/pkg/ingest/mail"
	"archivist/pkg/ingest/provenance"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/reindex"
	"archivist/pkg/ingest/workspace"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/fetch"
	"archivist/pkg/objects/formats"
	"archivist/pkg/objects/inventory"
	"archivist/pkg/objects/ocfl"
)

// Stages has the parts of a deployment. Its methods give each stage the parts that it needs.
type Stages struct {
	Queue       *queue.Queue
	Inventory   inventory.Store
	Collections collection.Store
	Root        ocfl.Root
	Work        workspace.Store
	Fetch       *fetch.Client
	Now         func() time.Time
	Draw        func(job string, try int) func(n int) int // numbers for a job's ARK; see identity.Draw
	NAAN        string                                    // of minted ARKs
	Shoulder    string
	Version     string // of this software
	Parallel    int    // transfers at once of one job
	MailFrom    string // sender of mails; "" = none are sent
	API         string // URL of the API before /v1, for links in mails; "" = no links
	SendMail    func(ctx context.Context, raw []byte) error
	Secret      func(ctx context.Context, name string) (string, error) // reads a secret by its name
	S3          func(bucket string) http.RoundTripper                  // answers requests for s3 URLs of a bucket

	// Uploads answers requests for the files of an upload of a collection.
	Uploads func(collection, upload string) http.RoundTripper

	// Scan has a file scanned for viruses, see Download; nil: the deployment has no scanner.
	Scan func(ctx context.Context, in ScanRequest) (ScanAnswer, error)

	// Register reserves the ARKs of jobs, see Process; nil: the deployment registers nothing.
	Register func(ctx context.Context, j *ingest.Job, drawn bool) (refused string, err error)

	// Identify identifies the formats of received files; nil: their depositors are not told of mismatches.
	Identify formats.Identify

	rooted   atomic.Bool // the storage root was seen
	profiles profiles    // of bags
}

// Steps returns every stage's step by the stage's name. A function runs one of them, by the name of
// its stage.
func (s *Stages) Steps() map[string]queue.Step {
	sources := Sources{Fetch: s.Fetch, Collections: s.Collections, Secret: s.Secret, S3: s.S3, Uploads: s.Uploads}
	packager := Packager{
		Root:     s.Root,
		Work:     s.Work,
		Identity: s.registrar(),
		Archive:  provenance.Archive{NAAN: s.NAAN, Version: s.Version},
	}

	// Only the stages up to Storing need work files and a source, which may be gone after a restore
	// of the table.
	stored := s.stored()
	steps := map[string]queue.Step{
		"unpack": Unpack{
			Work:        s.Work,
			Collections: s.Collections,
			Sources:     sources,
			Now:         s.Now,
			Log:         s.Queue.Log,
		}.Run,
		"estimate": stored.Or(Estimate{
			Identity:    s.Identity(),
			Collections: s.Collections,
			Sources:     sources,
			Work:        s.Work,
			Now:         s.Now,
			Parallel:    4 * s.Parallel,
		}.Run),
		"download": stored.Or(Download{
			Sources:  sources,
			Work:     s.Work,
			Now:      s.Now,
			Parallel: s.Parallel,
			Space:    s.Queue.Settings.Space,
			Identify: s.Identify,
			Scan:     s.Scan,
			Profiles: &s.profiles,
		}.Run),
		"process": stored.Or(Process{Packager: packager, Identity: s.registrar(), Register: s.Register}.Run),
		"store": stored.Or(Store{
			Root:     s.Root,
			Rooted:   &s.rooted,
			Work:     s.Work,
			Packager: packager,
			Objects:  s.Inventory,
			Queue:    s.Queue,
			Now:      s.Now,
			Parallel: 4 * s.Parallel,
		}.Run), // S3 copies: the content is not in memory here
		"record": Record{Reindexer: s.Reindexer(), Work: s.Work}.Run,
		"notify": Notify{
			Work:        s.Work,
			Collections: s.Collections,
			Batch:       s.Queue.Batch,
			Secret:      s.Secret,
			Callbacks:   callback.Sender{Fetch: s.Fetch, Now: s.Now},
			Now:         s.Now,
		}.Run,
		"report": Report{Root: s.Root, Work: s.Work, Jobs: s.Queue.Jobs, Now: s.Now}.Run,
	}

	for name, step := range steps {
		// In this order: a failure that untrusting makes of an error is one for forgetful, too.
		steps[name] = forgetful(untrusting(step))
	}

	return steps
}

// Identity finds the objects of submissions.
func (s *Stages) Identity() identity.Resolver {
	return identity.Resolver{
		Inventory:   s.Inventory,
		Collections: s.Collections,
		Root:        s.Root,
		NAAN:        s.NAAN,
		Shoulder:    s.Shoulder,
		Draw:        s.Draw,
	}
}

func (s *Stages) registrar() identity.Registrar {
	return identity.Registrar{Resolver: s.Identity(), Reindexer: s.Reindexer(), Now: s.Now}
}

// Reindexer writes the rows of stored objects.
func (s *Stages) Reindexer() reindex.Reindexer {
	return reindex.Reindexer{
		Root:      s.Root,
		Inventory: s.Inventory,
		NewID:     s.Queue.NewID,
		Now:       s.Now,
		Preserved: s.Queue.Preserved,
	}
}

func (s *Stages) stored() Stored {
	return Stored{Root: s.Root, Work: s.Work, Identity: s.registrar(), Queue: s.Queue}
}

// Serve gives the queue its functions on content: one removes work files, one finds
// whether a job's version is stored, one records what is stored.
func (s *Stages) Serve(q *queue.Queue) {
	q.Clean = func(ctx context.Context, job string, until time.Time) (bool, error) {
		return s.Work.Clean(ctx, job, until, s.Now)
	}

	q.Stored = func(ctx context.Context, j *ingest.Job) error { return s.stored().ByPlan(ctx, j) }
	q.Record = func(ctx context.Context, ark, actor string) error {
		_, done, err := s.Reindexer().Object(ctx, ark, actor, s.Now().Add(recordTime))
		if err == nil && !done {
			err = fault.New(fault.Unavailable,
				"not all versions of %s are recorded yet; repeat the action", ark)
		}
		return err
	}
}

// recordTime is the time to record a stored object, within that of one repair by the sweep
// and of one request to the API. What was recorded stays.
const recordTime = 5 * time.Second

// Mail composes mails.
func (s *Stages) Mail() mail.Composer {
	return mail.Composer{
		Work:        s.Work,
		Collections: s.Collections,
		Counts:      s.Queue.Counts,
		From:        s.MailFrom,
		API:         s.API,
		Send:        s.SendMail,
	}
}

// untrusting fails an item whose object is damaged. It can be requeued once an operator has restored the
// object: its work files stay until then, or until they expire.
func untrusting(step queue.Step) queue.Step {
	return func(ctx context.Context, claim *queue.Claim) (ingest.Result, error) {
		res, err := step(ctx, claim)
		if damaged := new(ocfl.DamagedError); errors.As(err, &damaged) {
			return ingest.Fail(true, damaged.Error()+". Then requeue the job: nothing has to be sent again"), nil
		}
		return res, err
	}
}

// forgetful removes the secrets from the URL of an item that its step fails for good:
// what is not requeued is not fetched again.
func forgetful(step queue.Step) queue.Step {
	return func(ctx context.Context, claim *queue.Claim) (ingest.Result, error) {
		res, err := step(ctx, claim)
		switch {
		case err != nil || res.Outcome != ingest.StepFail:
		case claim.Batch != nil:
			claim.Batch.URL = fetch.Redact(claim.Batch.URL)
		case !res.Recoverable:
			claim.Job.URL = fetch.Redact(claim.Job.URL)
		}
		return res, err
	}
}
