// Package secretsmanager reads secrets from AWS Secrets Manager: of depositors' callbacks and of tasks. Profiles and
// workflows name a secret and never hold it.
package secretsmanager

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/smithy-go"

	"archivist/pkg/kernel/fault"
)

// Secrets are the secrets of the deployment's account.
type Secrets struct{ Client *secretsmanager.Client }

// Read returns the current value of a secret by its name. It asks each time, so a secret that
// was changed counts at once. Errors never have the value. One of the kinds NotFound, Denied and Invalid is not cured
// by another call; others are the service's own. A secret without a text is Invalid: nothing can be signed with it.
func (s *Secrets) Read(ctx context.Context, name string) (string, error) {
	out, err := s.Client.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: &name})
	switch {
	case err != nil:
		return "", kindOf(err)
	case aws.ToString(out.SecretString) == "":
		return "", fault.New(fault.Invalid, "it has no text")
	}
	return *out.SecretString, nil
}

// kindOf gives an error the kind that its code has (source: the API of Secrets Manager, GetSecretValue).
func kindOf(err error) error {
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
