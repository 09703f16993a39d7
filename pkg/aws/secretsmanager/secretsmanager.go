// Package secretsmanager reads the secrets of depositors' callbacks from AWS Secrets
// Manager. Profiles name a secret and never hold it.
package secretsmanager

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
)

// Secrets are the secrets of the deployment's account.
type Secrets struct{ Client *secretsmanager.Client }

// Read returns the current value of a secret by its name. It asks each time, so a secret that
// was changed counts at once. Errors are the service's own, and never have the value.
func (s *Secrets) Read(ctx context.Context, name string) (string, error) {
	out, err := s.Client.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: &name})
	if err != nil {
		return "", err
	}
	return aws.ToString(out.SecretString), nil
}
