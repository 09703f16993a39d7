package boot

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync/atomic"

	"github.com/aws/smithy-go/middleware"

	"archivist/pkg/ingest"
	"archivist/pkg/queue"
)

// faults wrap the steps for tests on the local stack: the file that EnvFaults
// names says what shall go wrong. Deployments to AWS do not set it.
type faults struct {
	file  string
	dying atomic.Int64 // S3 writes left before this process dies; 0 = never
	fired string
}

// Fault is one thing that shall go wrong, once.
type Fault struct {
	Stage string `json:"stage"`
	Local string `json:"local"`           // local id of the job that meets it
	Write int64  `json:"write,omitempty"` // die before the nth S3 write of the step
	Fired string `json:"fired"`           // file that says that it happened
}

func readFaults(env Env) (*faults, error) {
	f := &faults{file: env(EnvFaults)}
	if f.file != "" && env("AWS_ENDPOINT_URL") == "" {
		return nil, fmt.Errorf("boot: %s is for local stacks only", EnvFaults)
	}
	return f, nil
}

// middleware counts S3 writes, and ends the process where a fault says so.
func (f *faults) middleware(stack *middleware.Stack) error {
	if f.file == "" {
		return nil
	}
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("faults", func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
		switch middleware.GetOperationName(ctx) {
		case "PutObject", "CopyObject", "DeleteObject":
			if f.dying.Load() > 0 && f.dying.Add(-1) == 0 {
				_ = os.WriteFile(f.fired, []byte("died\n"), 0o600)
				os.Exit(137)
			}
		}
		return next.HandleInitialize(ctx, in)
	}), middleware.Before)
}

// step arms the fault that waits for a job in a stage.
func (f *faults) step(name string, s queue.Step) queue.Step {
	if f.file == "" {
		return s
	}
	return func(ctx context.Context, h *queue.Claim) (ingest.Result, error) {
		f.dying.Store(0)
		data, err := os.ReadFile(f.file)
		var all []Fault
		if err == nil {
			err = json.Unmarshal(data, &all)
		}
		if err != nil {
			return s(ctx, h)
		}
		for _, fault := range all {
			if h.Job == nil || fault.Stage != name || len(h.Job.LocalIDs) == 0 || h.Job.LocalIDs[0] != fault.Local {
				continue
			}
			if _, err := os.Stat(fault.Fired); err != nil {
				f.fired = fault.Fired
				f.dying.Store(fault.Write)
			}
		}
		return s(ctx, h)
	}
}
