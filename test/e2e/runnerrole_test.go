package e2e

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"
)

// TestTaskRunnerReachesOnlyRuns: with the policies of the role of runs, the files of runs can be reached, and nothing
// else of the deployment but the secrets of tasks.
func TestTaskRunnerReachesOnlyRuns(t *testing.T) {
	begin(t)
	as := likeRunner(t)
	files := s3.NewFromConfig(as, func(o *s3.Options) { o.UsePathStyle = true })
	put := func(bucket, key string) error {
		_, err := files.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &bucket, Key: &key,
			Body: strings.NewReader("x")})
		return err
	}
	get := func(bucket, key string) error {
		_, err := files.GetObject(t.Context(), &s3.GetObjectInput{Bucket: &bucket, Key: &key})
		return err
	}
	const own = "runs/role/1/task/1/log"
	if err := errors.Join(put(out.WorkBucket, own), get(out.WorkBucket, own)); err != nil {
		t.Errorf("it cannot do its work: %v", err)
	}
	root := buckets()
	if _, err := root.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &out.WorkBucket, Key: aws.String("jobs/role/x"),
		Body: strings.NewReader("x")}); err != nil {
		t.Fatal(err)
	}
	for what, err := range reached(t, as) {
		denied(t, what, err)
	}
	denied(t, "a file of a job is written", put(out.WorkBucket, "jobs/role/y"))
	denied(t, "a file of a job is read", get(out.WorkBucket, "jobs/role/x"))
	denied(t, "a file that only begins like runs", put(out.WorkBucket, "runs-of-others"))
	denied(t, "the storage is written", put(out.StorageBucket, "runs/x"))
	denied(t, "the storage is read", get(out.StorageBucket, "0=ocfl_1.1"))
	denied(t, "the archive of events is read", get(out.All["eventsBucket"], "runs/x"))
	_, err := files.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: &out.WorkBucket, Key: aws.String(own)})
	denied(t, "what a run has left is removed", err)
	for _, key := range []string{own, "jobs/role/x"} {
		if _, err := root.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: &out.WorkBucket,
			Key: &key}); err != nil {
			t.Error(err)
		}
	}
}

// reached are the errors of calls to other services.
func reached(t *testing.T, as aws.Config) map[string]error {
	t.Helper()
	ctx, all := t.Context(), map[string]error{}
	key := map[string]types.AttributeValue{"pk": &types.AttributeValueMemberS{Value: "ARCHIVE#x"},
		"sk": &types.AttributeValueMemberS{Value: "ARCHIVE"}}
	_, all["a row is read"] = dynamodb.NewFromConfig(as).GetItem(ctx, &dynamodb.GetItemInput{TableName: &out.TableName,
		Key: key})
	_, all["a row is written"] = dynamodb.NewFromConfig(as).PutItem(ctx, &dynamodb.PutItemInput{
		TableName: &out.TableName, Item: key})
	machine, api := out.All["taskMachine"], functionOf(t, "api")
	_, all["a run is started"] = sfn.NewFromConfig(as).StartExecution(ctx,
		&sfn.StartExecutionInput{StateMachineArn: &machine})
	_, all["a function is called"] = lambda.NewFromConfig(as).Invoke(ctx, &lambda.InvokeInput{FunctionName: &api})
	_, all["another secret is read"] = secretsmanager.NewFromConfig(as).GetSecretValue(ctx,
		&secretsmanager.GetSecretValueInput{SecretId: aws.String("archivist/callbacks/x")})
	_, all["buckets are listed"] = s3.NewFromConfig(as).ListBuckets(ctx, nil)
	return all
}

func denied(t *testing.T, what string, err error) {
	t.Helper()
	var api smithy.APIError
	if !errors.As(err, &api) || !strings.HasPrefix(api.ErrorCode(), "AccessDenied") {
		t.Errorf("%s: %v; expected that it is denied", what, err)
	}
}

// likeRunner is the configuration of a role that has the policies of the runner. It is another role: what this one
// asks for is not compared with what the runner is granted.
func likeRunner(t *testing.T) aws.Config {
	t.Helper()
	of, err := roleOf(t.Context(), "task")
	if err != nil {
		t.Fatal(err)
	}
	policies, err := policiesOf(t.Context(), of)
	if err != nil || len(policies) == 0 {
		t.Fatalf("the policies of the runner are %v, %v", policies, err)
	}
	name := aws.String("like-the-runner")
	trust := `{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole",
		"Principal": {"AWS": "arn:aws:iam::000000000000:root"}}]}`
	made, err := roles().CreateRole(t.Context(), &iam.CreateRoleInput{RoleName: name, AssumeRolePolicyDocument: &trust})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		for policy := range policies {
			if _, err := roles().DeleteRolePolicy(ctx, &iam.DeleteRolePolicyInput{RoleName: name,
				PolicyName: &policy}); err != nil {
				t.Error(err)
			}
		}
		if _, err := roles().DeleteRole(ctx, &iam.DeleteRoleInput{RoleName: name}); err != nil {
			t.Error(err)
		}
	})
	putPolicies(t, *name, policies)
	got, err := sts.NewFromConfig(cfg).AssumeRole(t.Context(), &sts.AssumeRoleInput{RoleArn: made.Role.Arn,
		RoleSessionName: aws.String("e2e")})
	if err != nil {
		t.Fatal(err)
	}
	as := cfg.Copy()
	as.Credentials = credentials.NewStaticCredentialsProvider(*got.Credentials.AccessKeyId,
		*got.Credentials.SecretAccessKey, *got.Credentials.SessionToken)
	return as
}
