// Package authorizer is the function that API Gateway asks whether the token of a call is good, before the API is
// called. It wires what verifies tokens, by which the API verifies each call again. It knows neither the API nor the
// rest of boot, so that the function starts quickly.
//
//	f, err := authorizer.OnLambda(ctx, os.Getenv)
//	lambda.Start(f.Handle)
//
// API Gateway keeps an answer for some minutes (infra), so a token that was revoked or has expired may pass here. It
// does not pass the API.
package authorizer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"archivist/pkg/kernel/access"
)

// Function is the function. Its methods can be called concurrently.
type Function struct {
	Tokens access.Verifies
	Log    *slog.Logger
}

// unauthorized is the error for which API Gateway answers 401, by its text ("Use API Gateway Lambda authorizers"). For
// each other one it answers that the authorizer has failed.
type unauthorized struct{}

// Error is that text.
func (unauthorized) Error() string { return "Unauthorized" }

// Handle allows the caller of a good token all of the stage: what is allowed is kept by the token, and used for all
// paths. Which of them the caller may call is decided by the API. The log says why a token is refused, and nothing of
// the token.
func (f *Function) Handle(ctx context.Context, in events.APIGatewayCustomAuthorizerRequest) (
	out events.APIGatewayCustomAuthorizerResponse, err error) {
	x, err := f.verify(ctx, in.AuthorizationToken)
	switch {
	case errors.Is(err, access.ErrUnauthenticated):
		f.Log.Info("a token is refused", "reason", err.Error())
		return out, unauthorized{}
	case err != nil:
		f.Log.Error("a token cannot be verified now", "error", err.Error())
		return out, err
	}

	// Of the API, the stage, and the method with its path.
	parts := strings.SplitN(in.MethodArn, "/", 3)
	if len(parts) < 3 {
		return out, fmt.Errorf("authorizer: %q is not the ARN of a method", in.MethodArn)
	}
	out.PrincipalID = x.Subject
	out.PolicyDocument.Version = "2012-10-17"
	out.PolicyDocument.Statement = []events.IAMPolicyStatement{{
		Effect:   "Allow",
		Action:   []string{"execute-api:Invoke"},
		Resource: []string{parts[0] + "/" + parts[1] + "/*"},
	}}
	return out, nil
}

// verify returns whose the token of a header is.
func (f *Function) verify(ctx context.Context, header string) (access.Identity, error) {
	token, _, ok := access.Credentials(header)
	if !ok {
		return access.Identity{}, access.Refused("the header Authorization has neither a bearer " +
			"token nor a name and a token")
	}
	return f.Tokens.Verify(ctx, token)
}
