// Package assume takes roles with fewer permissions than they have: for one piece of work, with a session policy of
// AWS Security Token Service ("AssumeRole" in its API reference).
package assume

import (
	"context"
	"encoding/json"
	"regexp"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"archivist/pkg/aws/awserror"
	"archivist/pkg/kernel/fault"
)

// Role is a role that the caller may take. ARN is its own.
type Role struct {
	Client *sts.Client
	ARN    string
}

// Allow is a statement of a session policy.
type Allow struct {
	Action   []string
	Resource []string
}

// MarshalJSON writes it as IAM reads it ("IAM JSON policy elements reference").
func (a Allow) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]any{"Effect": "Allow", "Action": a.Action, "Resource": a.Resource})
}

// longest is what a session lasts that is taken by another role's session, at most.
const longest = time.Hour

// names matches what the name of a session cannot have, and mostName is how long it is at most.
var names = regexp.MustCompile(`[^\w+=,.@-]`)

const mostName = 64

// For returns credentials of the role which can do what both its policies and these statements allow, for a time of at
// most an hour, and at least the 15 minutes that STS asks for. name is that of the session, as CloudTrail shows it. An
// Unavailable means that STS did not answer, or refuses for now; any other error will stay.
func (r Role) For(ctx context.Context, name string, statements []Allow, lasts time.Duration) (aws.Credentials, error) {
	policy, err := json.Marshal(map[string]any{"Version": "2012-10-17", "Statement": statements})
	if err != nil {
		return aws.Credentials{}, err
	}

	name = names.ReplaceAllString(name, "-")
	out, err := r.Client.AssumeRole(ctx, &sts.AssumeRoleInput{
		RoleArn:         &r.ARN,
		RoleSessionName: aws.String(name[max(0, len(name)-mostName):]),
		Policy:          aws.String(string(policy)),
		DurationSeconds: aws.Int32(int32(min(max(lasts, 15*time.Minute), longest).Seconds())),
	})
	if err != nil {
		return aws.Credentials{}, refusal(err)
	}

	c := out.Credentials
	return aws.Credentials{AccessKeyID: *c.AccessKeyId, SecretAccessKey: *c.SecretAccessKey,
		SessionToken: *c.SessionToken, CanExpire: true, Expires: *c.Expiration}, nil
}

func refusal(err error) error {
	kind := fault.Unavailable
	if awserror.Denied(err) {
		kind = fault.Denied
	}
	return &fault.Error{Kind: kind, Msg: "the role of a run cannot be taken: " + err.Error(), Err: err}
}
