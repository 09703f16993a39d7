package lambda

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"archivist/pkg/aws/cloudwatch"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/research"
)

// PendingWork is the function of the assigner.
type PendingWork struct {
	Pass     func(ctx context.Context, project string, until time.Time) (research.Passed, error)
	Projects []string
	Wake     func(ctx context.Context, project string) error // of this function, asynchronously
	Now      func() time.Time
	Budget   time.Duration // of one invocation
	Patience time.Duration // between two tries while another pass works on the project
	Metrics  *cloudwatch.Metrics
	Log      *slog.Logger
}

// PendingWorkRequest invokes the function for a project; the minute's rule, which names none, for
// all. It carries no truth: what there is to do is in the table.
type PendingWorkRequest struct {
	Project string `json:"project"`
}

// Handle makes a pass for a project, or for each, with an equal part of the time. A project
// that uses less leaves the rest of its part to those after it. The errors of all are joined.
func (f *PendingWork) Handle(ctx context.Context, in PendingWorkRequest) error {
	projects, tries := f.Projects, 1
	if in.Project != "" {
		projects, tries = []string{in.Project}, patientTries
	}

	end := f.Now().Add(f.Budget)
	of := woken[research.Passed]{make: f.Pass, wake: f.Wake, now: f.Now, wait: f.Patience, log: f.Log, of: "project"}
	var failed error
	for i, name := range projects {
		if !slices.Contains(f.Projects, name) { // a wake-up from before another deployment
			f.Log.Warn("this deployment has no such project", "project", name)
			continue
		}
		now := f.Now()
		part := end.Sub(now) / time.Duration(len(projects)-i)
		failed = errors.Join(failed, of.pass(ctx, name, now.Add(part), tries))
	}
	return errors.Join(failed, f.Metrics.Put(context.WithoutCancel(ctx)))
}

// CompletedWork is the function that stores what researchers report.
type CompletedWork struct {
	Record     func(ctx context.Context, r research.Report) (research.Recording, error)
	DeadLetter DeadLetter
	Budget     time.Duration // of one invocation
	Metrics    *cloudwatch.Metrics
	Log        *slog.Logger
}

// Handle stores the report of each message of the queue completed-work. A report is stored
// once, however often its message comes.
func (f *CompletedWork) Handle(ctx context.Context,
	in events.SQSEvent) (events.SQSEventResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, f.Budget) // what is not stored by then comes back
	defer cancel()
	out := inbox{handle: f.store, deadLetter: f.DeadLetter, log: f.Log}.all(ctx, in.Records)
	_ = f.Metrics.Put(context.WithoutCancel(ctx)) // the log has what was lost
	return out, nil
}

// store stores the report in a message. An Invalid means that it is none.
func (f *CompletedWork) store(ctx context.Context, body string) error {
	var r research.Report
	err := json.Unmarshal([]byte(body), &r)
	if err != nil {
		return fault.New(fault.Invalid, "the message is no report: %w", err)
	}
	done, err := f.Record(ctx, r)
	if err != nil {
		return err
	}
	if done.Ended {
		f.Log.Info("all results of the lease are stored", "project", r.Project, "lease", r.Lease)
	}
	return nil
}
