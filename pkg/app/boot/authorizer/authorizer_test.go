package authorizer

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"archivist/pkg/kernel/access"
	"archivist/pkg/kernel/fault"
)

// tokens verifies one token, and none while its issuer is away.
type tokens struct{}

// Verify returns whose token it is.
func (tokens) Verify(_ context.Context, token string) (access.Identity, error) {
	switch token {
	case "good":
		return access.Identity{Subject: "4711"}, nil
	case "away":
		return access.Identity{}, fault.New(fault.Unavailable, "the keys of the issuer are not known")
	}
	return access.Identity{}, access.Refused("the token has expired; get a new one")
}

const (
	method = "arn:aws:execute-api:eu-west-1:111122223333:a1b2c3/prod/GET/v1/jobs"
	stage  = "arn:aws:execute-api:eu-west-1:111122223333:a1b2c3/prod/*"
)

// TestHandle: a good token may call the whole stage, by either scheme; one that is not accepted is the error for which
// API Gateway answers 401, and one that cannot be verified now is another error. The log has no token.
func TestHandle(t *testing.T) {
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte("hook:good"))
	for _, c := range []struct{ header, arn, says, logged string }{
		{"Bearer good", method, "", ""},
		{"bearer  good ", method, "", ""},
		{basic, method, "", ""},
		{"Bearer secret", method, "Unauthorized", "the token has expired"},
		{"Bearer", method, "Unauthorized", "the token has expired"},
		{"Digest good", method, "Unauthorized", "neither a bearer token"},
		{"good", method, "Unauthorized", "neither a bearer token"},
		{"Bearer away", method, "the keys of the issuer are not known", "cannot be verified now"},
		{"Bearer good", "arn:aws:execute-api", "is not the ARN of a method", ""},
	} {
		var log bytes.Buffer
		f := Function{Tokens: tokens{}, Log: slog.New(slog.NewTextHandler(&log, nil))}
		out, err := f.Handle(t.Context(), events.APIGatewayCustomAuthorizerRequest{Type: "TOKEN",
			AuthorizationToken: c.header, MethodArn: c.arn})
		text, _ := json.Marshal(out.PolicyDocument)
		want := `{"Version":"2012-10-17","Statement":[{"Action":["execute-api:Invoke"],"Effect":"Allow","Resource":["` +
			stage + `"]}]}`
		if c.says == "" && (err != nil || string(text) != want || out.PrincipalID != "4711") {
			t.Errorf("%q: %s of %q, %v", c.header, text, out.PrincipalID, err)
		}
		if c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says) ||
			strings.Contains(string(text), "Allow")) {
			t.Errorf("%q: %s, %v", c.header, text, err)
		}
		if c.says == "Unauthorized" && err.Error() != c.says {
			t.Errorf("%q: API Gateway compares the text %q", c.header, err)
		}
		if !strings.Contains(log.String(), c.logged) || strings.Contains(log.String(), "secret") ||
			errors.Is(err, access.ErrUnauthenticated) {
			t.Errorf("%q is logged as %q", c.header, &log)
		}
	}
}

// TestAuthenticator: an issuer has an audience, and on AWS there is one.
func TestAuthenticator(t *testing.T) {
	for _, c := range []struct {
		issuer, audience, endpoint string
		good                       bool
	}{
		{"", "", "", false},
		{"", "", "http://127.0.0.1:4566", true},
		{"https://login.example.org", "a,b", "", true},
		{"https://login.example.org", "", "", false},
		{"https://login.example.org", ",", "http://127.0.0.1:4566", false},
		{"http://login.example.org", "a", "", false},
	} {
		env := func(n string) string {
			return map[string]string{EnvIssuer: c.issuer, EnvAudience: c.audience, EnvClaim: "groups,scope",
				"AWS_ENDPOINT_URL": c.endpoint}[n]
		}
		a, err := Authenticator(env, nil, nil)
		v, _ := a.Issuer.(*access.Verifier)
		if (err == nil) != c.good || (a.Issuer != nil) != (c.good && c.issuer != "") {
			t.Errorf("%+v: %v, %v", c, a.Issuer, err)
		}
		if v != nil && (!slices.Equal(v.Audiences, []string{"a", "b"}) || !slices.Equal(v.Claims,
			[]string{"groups", "scope"}) || v.Issuer != c.issuer || v.Keys.Issuer != c.issuer || v.Keys.HTTP == nil) {
			t.Errorf("%+v", v)
		}
	}
}

// TestStartsQuickly: the function has neither the API, nor what reads repositories, nor a search index: each caller
// of a new token waits for its start.
func TestStartsQuickly(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "archivist/functions/authorizer").Output()
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Fields(string(out))
	for _, name := range all {
		if strings.HasPrefix(name, "archivist/pkg/api") || name == "archivist/pkg/app/boot" ||
			strings.Contains(name, "huma") || strings.Contains(name, "bleve") || strings.HasSuffix(name, "service/s3") {
			t.Errorf("it has %s", name)
		}
	}
	if !slices.Contains(all, "archivist/pkg/kernel/access") {
		t.Error("the list is not that of its packages")
	}
}
