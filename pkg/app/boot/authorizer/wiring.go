package authorizer

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/guregu/dynamo/v2"

	"archivist/pkg/ingest/token"
	"archivist/pkg/kernel/access"
	"archivist/pkg/kernel/table"
)

// The environment. EnvTable is that of every function.
const (
	EnvTable = "ARCHIVIST_TABLE"
	// The issuer of tokens of the API, "" if there is none: its URL, the audiences of its tokens, and the claims that
	// have roles, both separated by commas. No claim is access.DefaultClaim.
	EnvIssuer   = "ARCHIVIST_TOKEN_ISSUER"
	EnvAudience = "ARCHIVIST_TOKEN_AUDIENCE"
	EnvClaim    = "ARCHIVIST_TOKEN_CLAIM"
)

// Env reads a variable of the environment, "" when it is not set.
type Env = func(name string) string

// OnLambda is the function on Lambda.
func OnLambda(ctx context.Context, env Env) (*Function, error) {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, fmt.Errorf("authorizer: AWS configuration: %w", err)
	}
	return New(cfg, env, nil, slog.New(slog.NewJSONHandler(os.Stdout, nil)))
}

// New is the function in a process. It only reads rows of tokens: the API notes when one is used. Requests to the
// issuer go by web; nil = the network.
func New(cfg aws.Config, env Env, web http.RoundTripper, log *slog.Logger) (*Function, error) {
	rows := table.New(dynamo.NewFromIface(TableClient(cfg)), env(EnvTable))
	tokens, err := Authenticator(env, web, &token.Store{Table: rows, Now: time.Now})
	return &Function{Tokens: tokens, Log: log}, err
}

// TableClient makes each request once: the table itself retries, and retries on two levels would multiply.
func TableClient(cfg aws.Config) *dynamodb.Client {
	return dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) { o.Retryer = aws.NopRetryer{} })
}

// Authenticator verifies the tokens of the issuer, and by own those of the deployment itself. Nothing is asked of the
// issuer before the first token comes. An error is a mistake of the deployment. On AWS one without an issuer would let
// nobody in, or everybody: only a local stack can be without.
func Authenticator(env Env, web http.RoundTripper, own access.Verifies) (access.Authenticator, error) {
	a := access.Authenticator{Tokens: own}
	issuer, err := readIssuer(env, web)
	switch {
	case err != nil:
		return a, err
	case issuer != nil: // else it would be an interface that is not nil
		a.Issuer = issuer
	case env("AWS_ENDPOINT_URL") == "":
		return a, fmt.Errorf("boot: %s: there is no issuer of tokens; only a local stack can be without",
			EnvIssuer)
	}
	return a, nil
}

// readIssuer is what verifies tokens of the issuer of an environment, nil if there is none.
func readIssuer(env Env, web http.RoundTripper) (*access.Verifier, error) {
	issuer := env(EnvIssuer)
	if issuer == "" {
		return nil, nil
	}
	if err := access.CheckIssuer(issuer); err != nil {
		return nil, fmt.Errorf("boot: %s: %w", EnvIssuer, err)
	}

	audiences := list(env(EnvAudience))
	if len(audiences) == 0 {
		return nil, fmt.Errorf("boot: %s: tokens of everybody's programs would be accepted; "+
			"expected an audience", EnvAudience)
	}
	if web == nil {
		web = http.DefaultTransport
	}
	return &access.Verifier{
		Issuer:    issuer,
		Audiences: audiences,
		Claims:    list(env(EnvClaim)),
		Now:       time.Now,
		Keys:      &access.Keys{Issuer: issuer, HTTP: web, Now: time.Now},
	}, nil
}

// list reads a list that is separated by commas. It is nil for "".
func list(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' })
}
