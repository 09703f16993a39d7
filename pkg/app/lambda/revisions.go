package lambda

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"archivist/pkg/aws/cloudwatch"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/revisions/revision"
)

// Revisions is the function that manages the revision queue.
type Revisions struct {
	Pass func(ctx context.Context, archive string, until time.Time) (revision.Passed, error)
	// Waiting returns archives that are to be looked at.
	Waiting func(ctx context.Context, most int) ([]string, error)
	Preview func(ctx context.Context, archive string, n int64) (revision.Preview, error)
	Wake    func(ctx context.Context, archive string) error // of this function, asynchronously
	Now     func() time.Time
	Budget  time.Duration // of one invocation
	Wait    time.Duration // between two tries while another pass works on the archive
	Metrics *cloudwatch.Metrics
	Log     *slog.Logger
}

// RevisionsRequest invokes the function for an archive; the minute's rule, which names none, for
// all that are to be looked at. It carries no truth: what there is to do is in the table. With a
// revision to preview it changes nothing.
type RevisionsRequest struct {
	Archive string `json:"archive"`
	Preview *int64 `json:"preview,omitempty"` // 0: the newest
}

// RevisionsAnswer is a preview, or why there is none. Kind is "" if there is one. It is in
// the answer because an error of a function loses its kind on the way.
type RevisionsAnswer struct {
	Preview revision.Preview `json:"preview"`
	Kind    fault.Kind       `json:"kind,omitempty"`
	Message string           `json:"message,omitempty"`
}

// Err is the error of the answer.
func (a RevisionsAnswer) Err() error {
	if a.Kind == "" {
		return nil
	}
	return fault.New(a.Kind, "%s", a.Message)
}

// wokenAtOnce bounds the archives that one minute wakes. Those that wait longest come first,
// and what is left comes a minute later. Each wake-up is a request, so these take some
// seconds.
const wokenAtOnce = 200

// Handle makes a pass in an archive, or wakes those that are to be looked at: each has an
// invocation of its own, so one does not slow another. Or it answers with a preview.
func (f *Revisions) Handle(ctx context.Context,
	in RevisionsRequest) (out RevisionsAnswer, err error) {
	switch {
	case in.Preview != nil:
		out, err = f.preview(ctx, in.Archive, *in.Preview)
	case in.Archive != "":
		err = f.woken().pass(ctx, in.Archive, f.Now().Add(f.Budget), patientTries)
	default:
		err = f.wakeAll(ctx)
	}
	return out, errors.Join(err, f.Metrics.Put(context.WithoutCancel(ctx)))
}

// woken makes the passes of this function. Only one at a time works on an archive.
func (f *Revisions) woken() woken[revision.Passed] {
	return woken[revision.Passed]{make: f.Pass, wake: f.Wake, now: f.Now, wait: f.Wait, log: f.Log, of: "archive"}
}

// preview answers also with an error of a kind: who asked gets it as it is.
func (f *Revisions) preview(ctx context.Context, archive string,
	n int64) (out RevisionsAnswer, err error) {
	out.Preview, err = f.Preview(ctx, archive, n)
	out.Kind = fault.Of(err)
	if out.Kind == "" {
		return out, err
	}
	out.Message = err.Error()
	return out, nil
}

// wakeAll wakes this function once for each archive. One that cannot be woken keeps no other
// back.
func (f *Revisions) wakeAll(ctx context.Context) error {
	archives, err := f.Waiting(ctx, wokenAtOnce)
	for _, name := range archives {
		err = errors.Join(err, f.Wake(ctx, name))
	}
	return err
}
