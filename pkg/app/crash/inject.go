//go:build crash

package crash

import (
	"context"
	"encoding/json"
	"os"
	"sync/atomic"

	"github.com/aws/smithy-go/middleware"

	"archivist/pkg/events/consumer"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
)

// Injector ends the process at the points of a file.
type Injector struct {
	file   string
	left   atomic.Int64 // writes to S3 up to the one that is not made; 0 = no point is armed
	marker string
}

// New returns an Injector for the file that the environment names. Without the variable it
// never ends the process.
func New(env func(name string) string) *Injector { return &Injector{file: env(Env)} }

// CountWrites is middleware for the S3 client: it counts writes, and ends the process at the
// armed point. It stands before the retries of the SDK, so a write that is repeated counts
// once. Parts of multipart uploads do not count.
func (i *Injector) CountWrites(stack *middleware.Stack) error {
	count := func(ctx context.Context, in middleware.InitializeInput,
		next middleware.InitializeHandler) (
		middleware.InitializeOutput, middleware.Metadata, error) {
		switch middleware.GetOperationName(ctx) {
		case "PutObject", "CopyObject", "DeleteObject":
			if i.left.Load() > 0 && i.left.Add(-1) == 0 {
				_ = os.WriteFile(i.marker, []byte("died\n"), 0o600)
				os.Exit(137)
			}
		}
		return next.HandleInitialize(ctx, in)
	}
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("crash", count),
		middleware.Before)
}

// Step arms the point that is for the stage and the job of a step, unless it has happened. A
// process handles one message at a time, so the counter is of one step. A job is told by its
// first local id, which the test has chosen.
func (i *Injector) Step(stage string, step queue.Step) queue.Step {
	return func(ctx context.Context, c *queue.Claim) (ingest.Result, error) {
		i.left.Store(0)
		for _, p := range i.points() {
			if c.Job == nil || p.Stage != stage || len(c.Job.LocalIDs) == 0 ||
				c.Job.LocalIDs[0] != p.LocalID {
				continue
			}
			if _, err := os.Stat(p.Marker); err != nil {
				i.marker = p.Marker
				i.left.Store(p.Write)
			}
		}
		return step(ctx, c)
	}
}

// Handler ends the process before or after a handler handles events for a consumer.
func (i *Injector) Handler(h consumer.Handler) consumer.Handler {
	return consumer.HandlerFunc(func(ctx context.Context, b consumer.Batch) ([]consumer.Failure, error) {
		i.end(b.Consumer, 0)
		failed, err := h.Handle(ctx, b)
		i.end(b.Consumer, 1)
		return failed, err
	})
}

// end ends the process if a point of a consumer says so, unless it has happened.
func (i *Injector) end(name string, when int64) {
	for _, p := range i.points() {
		_, err := os.Stat(p.Marker)
		if p.Stage == "consumer" && p.LocalID == name && p.Write == when && err != nil {
			_ = os.WriteFile(p.Marker, []byte("died\n"), 0o600)
			os.Exit(137)
		}
	}
}

// points reads the file, which exists only while a test needs it. A file that is missing or
// incomplete has no points.
func (i *Injector) points() (all []Point) {
	data, err := os.ReadFile(i.file)
	if err != nil {
		return nil
	}
	_ = json.Unmarshal(data, &all)
	return all
}
