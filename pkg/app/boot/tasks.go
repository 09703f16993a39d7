package boot

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
	awslambda "github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	awssecretsmanager "github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"archivist/pkg/app/lambda"
	"archivist/pkg/aws/assume"
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
	return &lambda.TaskRunner{Run: r.run, Log: r.Log, Left: r.Sandbox.Left, Exit: os.Exit}, nil
}

// taskRuns is a runner of a process, which runs each task with the credentials that it is given.
type taskRuns struct {
	*runner.Runner
	process Process
}

func (t taskRuns) run(ctx context.Context, call runner.Call) (runner.Result, error) {
	own := *t.Runner
	if as := call.As; as != nil {
		p := t.process
		p.Config = p.Config.Copy()
		p.Config.Credentials = credentials.NewStaticCredentialsProvider(as.ID, as.Secret, as.Token)
		with := p.runner()
		own.Bucket, own.Secrets = with.Bucket, with.Secrets
	}
	return own.Run(ctx, call.Job)
}

// TaskRunner is the function task-runner in the process. Tasks can read what the process can.
func (p Process) TaskRunner() *lambda.TaskRunner {
	return &lambda.TaskRunner{Run: taskRuns{p.runner(), p}.run, Log: p.Log}
}

// What the function task-router knows: the name of the function task-runner, whether that keeps archives apart, and the
// ARN of the role of runs; without it, the runner has its own.
const (
	EnvRunner   = "ARCHIVIST_TASK_RUNNER"
	EnvTenants  = "ARCHIVIST_TENANTS"
	EnvTaskRole = "ARCHIVIST_TASK_ROLE"
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
	r := &lambda.TaskRouter{Functions: &invoke.Functions{Client: awslambda.NewFromConfig(p.Config)},
		Runner: p.Env(EnvRunner), Tenants: p.Env(EnvTenants) != "", Log: p.Log}
	if arn := p.Env(EnvTaskRole); arn != "" {
		role := assume.Role{Client: sts.NewFromConfig(p.Config), ARN: arn}
		r.Credentials = func(ctx context.Context, job *runner.Job) (*runner.Credentials, error) {
			c, err := role.For(ctx, job.ID, reaches(arn, p.Env(EnvWork), job.Reach()), taskSession)
			return &runner.Credentials{ID: c.AccessKeyID, Secret: c.SecretAccessKey, Token: c.SessionToken}, err
		}
	}
	return r
}

// taskSession is how long the credentials of a run last: the runner has 15 minutes, and is called again for the same
// run with others.
const taskSession = 30 * time.Minute

// reaches is the session policy of a run. The role may do no more than that for all archives, and only by the key of
// the secrets, if the account has one. Without the right to list the bucket a missing object looks like a forbidden
// one; it shows the names of keys, and no content.
func reaches(role, work string, to runner.Reach) []assume.Allow {
	part := strings.Split(role, ":")[1] // "aws", or another partition
	bucket := "arn:" + part + ":s3:::" + work
	writes := []string{"s3:PutObject", "s3:AbortMultipartUpload"}
	return []assume.Allow{
		{Action: []string{"s3:GetObject"}, Resource: []string{bucket + "/" + to.Reads + "*"}},
		{Action: writes, Resource: []string{bucket + "/" + to.Writes + "*"}},
		{Action: []string{"s3:ListBucket"}, Resource: []string{bucket}},
		{Action: []string{"secretsmanager:GetSecretValue"},
			Resource: []string{"arn:" + part + ":secretsmanager:*:*:secret:" + to.Secrets + "*"}},
		{Action: []string{"kms:Decrypt"}, Resource: []string{"*"}},
	}
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
	return r.Runner, nil
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
func taskRunner(ctx context.Context, env Env) (t taskRuns, err error) {
	err = runner.Shield()
	if err != nil {
		return t, fmt.Errorf("boot: the credentials cannot be hidden from tasks: %w", err)
	}
	p, err := onLambda(ctx, env)
	if err != nil {
		return t, err
	}
	return taskRuns{p.runner(), p}, nil
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
