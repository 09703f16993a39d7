package localstack

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// Root is the identity of the emulators' account: no policy refuses it.
var Root = credentials.NewStaticCredentialsProvider("test", "test", "")

// assets is the bucket that bootstrapping the CDK makes for templates and code, in the emulators' account
// (000000000000). hnb659fds is the CDK's own default qualifier.
const assets = "cdk-hnb659fds-assets-000000000000-" + Region

// admitPlainHTTP removes the policy of the CDK's bucket. Its one statement refuses calls without TLS, which are
// all calls to an emulator that evaluates policies. Without policies there is nothing to remove.
func (s *Stack) admitPlainHTTP(ctx context.Context) error {
	if !s.Enforce || s.Core {
		return nil
	}

	client := s3.New(s3.Options{
		Region:       Region,
		BaseEndpoint: aws.String(s.Endpoint()),
		UsePathStyle: true,
		Credentials:  Root,
	})

	if _, err := client.DeleteBucketPolicy(ctx,
		&s3.DeleteBucketPolicyInput{Bucket: aws.String(assets)}); err != nil {
		return fmt.Errorf("the policy of the bucket %s: %w", assets, err)
	}
	return nil
}
