package boot

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	awslambda "github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	awssecretsmanager "github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"archivist/pkg/app/lambda"
	"archivist/pkg/aws/invoke"
	"archivist/pkg/aws/secretsmanager"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/revisions/runner"
)

// EnvOwnTemp is set if nobody but the function has files in its temporary folder: it is emptied after each run.
const EnvOwnTemp = "ARCHIVIST_OWN_TEMP"

// EnvTaskJob is the key of the job that a container runs.
const EnvTaskJob = "ARCHIVIST_JOB"

// TaskRunner is the function task-runner. The error means that the process must not run
// tasks.
func TaskRunner(ctx context.Context, env Env) (*lambda.TaskRunner, error) {
	r, err := taskRunner(ctx, env)
	if err != nil {
		return nil, err
	}

	r.Sandbox, err = runner.Contain()
	if err != nil {
		return nil, fmt.Errorf("boot: tasks cannot be contained: %w", err)
	}
	if env(EnvOwnTemp) != "" {
		r.Sandbox.Dir = r.Dir
	}
	return &lambda.TaskRunner{Run: r.Run, Log: r.Log, Left: r.Sandbox.Left, Exit: os.Exit}, nil
}

// TaskRunner is the function task-runner in the process. Tasks can read what the process can.
func (p Process) TaskRunner() *lambda.TaskRunner {
	return &lambda.TaskRunner{Run: p.runner().Run, Log: p.Log}
}

// What the function task-router knows: the name of the function task-runner, and whether that keeps archives apart.
const (
	EnvRunner  = "ARCHIVIST_TASK_RUNNER"
	EnvTenants = "ARCHIVIST_TENANTS"
)

// TaskRouter is the function task-router.
func TaskRouter(ctx context.Context, env Env) (*lambda.TaskRouter, error) {
	p, err := onLambda(ctx, env)
	if err != nil {
		return nil, err
	}
	return p.TaskRouter(), nil
}

// TaskRouter is the function task-router in the process.
func (p Process) TaskRouter() *lambda.TaskRouter {
	return &lambda.TaskRouter{Functions: &invoke.Functions{Client: awslambda.NewFromConfig(p.Config)},
		Runner: p.Env(EnvRunner), Tenants: p.Env(EnvTenants) != "", Log: p.Log}
}

// TaskContainer is what runs in containers. environ are the variables of its process,
// NAME=VALUE, and made is what the image is made for. Tasks get the variables of the image,
// and none of ours.
func TaskContainer(ctx context.Context, env Env, environ, made []string) (*runner.Runner, error) {
	r, err := taskRunner(ctx, env)
	if err != nil {
		return nil, err
	}
	r.Made, r.Env = made, slices.DeleteFunc(slices.Clone(environ), ours)
	return r, nil
}

// ours reports whether a variable of a container is not of its image, but says where the
// credentials of its role are or is one of ours ("Amazon ECS task metadata endpoint", "Amazon
// ECS task IAM role"). A task must not be able to act as the runner.
func ours(variable string) bool {
	return slices.ContainsFunc([]string{"AWS_", "ECS_", "ARCHIVIST_"}, func(prefix string) bool {
		return strings.HasPrefix(variable, prefix)
	})
}

// taskRunner is wired by itself, because it needs the work bucket and secrets, and nothing
// else of the system: it runs what people have written into their archives. Shield comes
// first: before it, another process of the same user could read the environment, with the
// credentials, in /proc.
func taskRunner(ctx context.Context, env Env) (*runner.Runner, error) {
	err := runner.Shield()
	if err != nil {
		return nil, fmt.Errorf("boot: the credentials cannot be hidden from tasks: %w", err)
	}
	p, err := onLambda(ctx, env)
	if err != nil {
		return nil, err
	}
	return p.runner(), nil
}

// runner is without what is different in functions and containers.
func (p Process) runner() *runner.Runner {
	cfg := p.Config
	client := s3.NewFromConfig(cfg, func(o *s3.Options) {
		o.UsePathStyle = cfg.BaseEndpoint != nil // local hosts have no bucket names in their DNS
	})

	secrets := &secretsmanager.Secrets{Client: awssecretsmanager.NewFromConfig(cfg)}
	return &runner.Runner{
		Bucket:  bucket.Bucket{Client: client, Name: p.Env(EnvWork), Limits: bucket.DefaultLimits},
		Name:    p.Env(EnvWork),
		Dir:     cmp.Or(p.Dir, os.TempDir()),
		Now:     time.Now,
		NewID:   newID,
		Log:     p.Log,
		Secrets: secrets.Read,
	}
}
