package boot

import (
	"cmp"
	"context"
	crand "crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"time"

	"archivist/pkg/app/lambda"
	"archivist/pkg/app/stepfunctions"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/revisions/archive"
	"archivist/pkg/revisions/revision"
)

// The environment of the functions of the revision queue.
const (
	EnvTaskMachine = "ARCHIVIST_TASK_MACHINE" // ARN of task-run
	EnvRevisions   = "ARCHIVIST_REVISIONS"    // name of the function revisions

	EnvTaskContainers = "ARCHIVIST_TASK_CONTAINERS" // runner.Containers as JSON, "" = none
)

// revisionQueue reports whether the deployment has a revision queue.
func (s *System) revisionQueue() bool { return s.env(EnvTaskMachine) != "" }

// revisionTimes are the times of the revision queue, by the name of the timing. Tests and
// local stacks have the quick ones.
func revisionTimes(timing string) revision.Times {
	if timing == "production" {
		return revision.Default
	}
	return revision.Quick
}

// OpenArchives makes what opens archives: kinds.Opener. Only programs that pass it contain
// the code that reads them. go-git, which it needs, would make each zip larger.
type OpenArchives func(archive.Deps) archive.Open

// revisions keeps archives, their revisions and the instances of their tasks, and opens
// archives. It is for the functions revisions and task-control.
func (s *System) revisions(open OpenArchives) *revision.Store {
	store := s.revisionRows()
	store.Open = open(s.archiveDeps())
	return store
}

// revisionRows does not open archives. It is for the API and the consumer of versions: they
// change rows, and wake the function that opens.
func (s *System) revisionRows() *revision.Store {
	tasks := stepfunctions.Tasks{Executions: s.executions}
	control := revision.Control{Work: s.stages.Work.Bucket}
	store := &revision.Store{
		Table:  s.queue.Table,
		Leases: s.scheduler.Leases,
		Now:    s.queue.Now,
		NewID:  newID,
		Secret: newSecret,
		Times:  revisionTimes(s.env(EnvTiming)),
		Start:  tasks.Start,
		Stop:   tasks.Stop,
		Bucket: revision.BucketObjects{Bucket: *s.events.Bucket},
		Tell:   control.Flag,
		Metric: s.metrics.Add,
		Log:    s.log,
	}

	if s.env(EnvRevisions) != "" {
		store.Wake = s.wakeRevisions
	}
	return store
}

// newSecret is a text of 128 random bits.
func newSecret() string {
	b := make([]byte, 16)
	_, _ = crand.Read(b) // it never fails (package crypto/rand)
	return hex.EncodeToString(b)
}

// scratch is the folder of a function that stays between its calls. Repositories that were
// read are kept there. (Lambda: the only folder that a function can write.)
const scratch = "/tmp"

// archiveDeps is what an opener of archives may use. Local allows paths and addresses that
// are refused on AWS.
func (s *System) archiveDeps() archive.Deps {
	client := s.stages.Work.Bucket
	return archive.Deps{
		Local: s.env("AWS_ENDPOINT_URL") != "",
		HTTP:  s.stages.Fetch,
		Bucket: func(name string) bucket.Bucket {
			return bucket.Bucket{Client: client.Client, Name: name, Limits: bucket.DefaultLimits}
		},
		Secret: s.stages.Secret,
		Cache:  filepath.Join(cmp.Or(s.dir, scratch), "repositories"),
		Note:   func(text string) { s.log.Info("a checkout is not complete", "reason", text) },
		Root:   s.stages.Root,
	}
}

// wakeRevisions starts a pass in an archive. The function itself knows its own name from
// Lambda. A wake-up that is lost costs a minute.
func (s *System) wakeRevisions(ctx context.Context, archive string) error {
	name := cmp.Or(s.env(EnvRevisions), s.env("AWS_LAMBDA_FUNCTION_NAME"))
	return s.functions.Send(ctx, name, lambda.RevisionsRequest{Archive: archive})
}

// previewTime is within that of the API, so that an archive that is slow to read is a clear answer.
const previewTime = 25 * time.Second

// previewRevision asks the function revisions, because the API cannot read archives. The error is
// that of the preview, with its kind, or that of the call; an Unavailable if the time is over.
func (s *System) previewRevision(ctx context.Context, name string,
	n int64) (revision.Preview, error) {
	ctx, cancel := context.WithTimeout(ctx, previewTime)
	defer cancel()
	var answer lambda.RevisionsAnswer
	err := s.callRevisions(ctx, lambda.RevisionsRequest{Archive: name, Preview: &n}, &answer)
	if err != nil && ctx.Err() != nil {
		err = fault.New(fault.Unavailable, "the archive %s was not read within %s; try again", name,
			previewTime)
	}
	return answer.Preview, err
}

// callRevisions calls the function revisions. The error is that of the call, or of the answer.
func (s *System) callRevisions(ctx context.Context, in lambda.RevisionsRequest,
	answer *lambda.RevisionsAnswer) error {
	if err := s.functions.Call(ctx, s.env(EnvRevisions), in, answer); err != nil {
		return err
	}
	return answer.Err()
}

// Revisions is the function that manages the revision queue. It has the budget of the
// functions of research.
func (s *System) Revisions(open OpenArchives) *lambda.Revisions {
	store := s.revisions(open)
	return &lambda.Revisions{
		Pass:    store.Pass,
		Waiting: store.Waiting,
		Preview: store.Preview,
		Wake:    s.wakeRevisions,
		Now:     s.queue.Now,
		Budget:  s.queue.Rules.Timing.Research().Budget,
		Wait:    time.Second / 2,
		Metrics: s.metrics,
		Log:     s.log,
	}
}

// TaskControl is the function of task-run that begins and ends attempts.
func (s *System) TaskControl(open OpenArchives) (*lambda.TaskControl, error) {
	control := revision.Control{Store: s.revisions(open), Work: s.stages.Work.Bucket}
	if text := s.env(EnvTaskContainers); text != "" {
		err := json.Unmarshal([]byte(text), &control.Containers)
		if err != nil {
			return nil, fmt.Errorf("boot: %s: %w", EnvTaskContainers, err)
		}
	}
	return &lambda.TaskControl{Control: control, Metrics: s.metrics, Log: s.log}, nil
}
