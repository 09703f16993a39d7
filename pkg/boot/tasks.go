package boot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	awssecretsmanager "github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/smithy-go"

	"archivist/pkg/bucket"
	"archivist/pkg/fault"
	"archivist/pkg/lambda"
	"archivist/pkg/runner"
	"archivist/pkg/secretsmanager"
)

// EnvTaskJob is the key of the job that a container runs.
const EnvTaskJob = "ARCHIVIST_JOB"

// TaskRunner is the function task-runner.
func TaskRunner(ctx context.Context, env Env) (*lambda.TaskRunner, error) {
	r, err := taskRunner(ctx, env)
	if err != nil {
		return nil, err
	}
	return &lambda.TaskRunner{Run: r.Run, Log: r.Log}, nil
}

// TaskContainer is what runs in containers. environ are the variables of its process, NAME=VALUE, and made is what
// the image is made for.
func TaskContainer(ctx context.Context, env Env, environ, made []string) (*runner.Runner, error) {
	r, err := taskRunner(ctx, env)
	if err != nil {
		return nil, err
	}
	r.Made, r.Env = made, slices.DeleteFunc(slices.Clone(environ), ours)
	return r, nil
}

// ours reports whether a variable of a container is not of its image, but says where the credentials of its role are
// or is one of ours ("Amazon ECS task metadata endpoint", "Amazon ECS task IAM role").
func ours(variable string) bool {
	return slices.ContainsFunc([]string{"AWS_", "ECS_", "ARCHIVIST_"}, func(prefix string) bool {
		return strings.HasPrefix(variable, prefix)
	})
}

// taskRunner is wired by itself, because it needs the work bucket and secrets, and nothing else of the system: it
// runs what people have written into their archives.
func taskRunner(ctx context.Context, env Env) (*runner.Runner, error) {
	err := runner.Shield()
	if err != nil {
		return nil, fmt.Errorf("boot: the credentials cannot be hidden from tasks: %w", err)
	}
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, fmt.Errorf("boot: AWS configuration: %w", err)
	}
	client := s3.NewFromConfig(cfg, func(o *s3.Options) {
		o.UsePathStyle = cfg.BaseEndpoint != nil // local hosts have no bucket names in their DNS
	})
	secrets := &secretsmanager.Secrets{Client: awssecretsmanager.NewFromConfig(cfg)}
	return &runner.Runner{Bucket: bucket.Bucket{Client: client, Name: env(EnvWork), Limits: bucket.DefaultLimits},
		Dir: os.TempDir(), Now: time.Now, NewID: newID, Log: slog.New(slog.NewJSONHandler(os.Stdout, nil)),
		Secrets: func(ctx context.Context, name string) (string, error) {
			value, err := secrets.Read(ctx, name)
			return value, secretFault(err)
		}}, nil
}

// secretFault gives the errors a kind that another call does not cure (source: the API of Secrets Manager,
// GetSecretValue).
func secretFault(err error) error {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return err
	}
	switch api.ErrorCode() {
	case "ResourceNotFoundException":
		return fault.New(fault.NotFound, "there is no such secret: %w", err)
	case "AccessDeniedException":
		return fault.New(fault.Denied, "this deployment may not read it: %w", err)
	case "InvalidRequestException", "InvalidParameterException", "DecryptionFailure":
		return fault.New(fault.Invalid, "it cannot be read: %w", err)
	}
	return err
}
