package assume

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"archivist/pkg/kernel/fault"
)

const granted = `<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials>
<AccessKeyId>id</AccessKeyId><SecretAccessKey>secret</SecretAccessKey><SessionToken>token</SessionToken>
<Expiration>2026-11-28T22:00:00Z</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>`

// role is one that a service with the answers of STS gives.
func role(t *testing.T, status int, code string) (Role, *url.Values) {
	asked := &url.Values{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			t.Error(err)
		}
		*asked = r.Form
		w.WriteHeader(status)
		body := granted
		if code != "" {
			body = `<ErrorResponse><Error><Code>` + code + `</Code><Message>no</Message></Error></ErrorResponse>`
		}
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(server.Close)
	return Role{ARN: "arn:aws:iam::1:role/task", Client: sts.New(sts.Options{Region: "us-east-1",
		BaseEndpoint: &server.URL, Credentials: credentials.NewStaticCredentialsProvider("key", "secret", ""),
		Retryer: aws.NopRetryer{}})}, asked
}

// TestFor: a role is taken with no more than the statements allow, under a name and for a time that STS takes.
func TestFor(t *testing.T) {
	r, asked := role(t, http.StatusOK, "")
	long := "maps/12/a task with a name/" + fmt.Sprintf("%080d", 1)
	for lasts, seconds := range map[time.Duration]string{time.Minute: "900", 30 * time.Minute: "1800",
		5 * time.Hour: "3600"} {
		c, err := r.For(t.Context(), long, []Allow{{Action: []string{"s3:GetObject"}, Resource: []string{"a"}}}, lasts)
		if err != nil || c.AccessKeyID != "id" || c.SecretAccessKey != "secret" || c.SessionToken != "token" {
			t.Fatalf("%+v, %v", c, err)
		}
		var policy struct {
			Version   string
			Statement []struct {
				Effect           string
				Action, Resource []string
			}
		}
		err = json.Unmarshal([]byte(asked.Get("Policy")), &policy)
		if err != nil || policy.Version != "2012-10-17" || len(policy.Statement) != 1 ||
			policy.Statement[0].Effect != "Allow" || policy.Statement[0].Resource[0] != "a" {
			t.Errorf("the policy %s: %v", asked.Get("Policy"), err)
		}
		if name := asked.Get("RoleSessionName"); len(name) != mostName || names.MatchString(name) {
			t.Errorf("the name %q", name)
		}
		if asked.Get("DurationSeconds") != seconds || asked.Get("RoleArn") != r.ARN {
			t.Errorf("asked for %v", asked)
		}
	}
}

// TestRefused: what will not change is told from what may.
func TestRefused(t *testing.T) {
	for code, kind := range map[string]fault.Kind{"AccessDenied": fault.Denied,
		"ServiceUnavailable": fault.Unavailable} {
		r, _ := role(t, http.StatusForbidden, code)
		if _, err := r.For(t.Context(), "maps", nil, time.Hour); fault.Of(err) != kind {
			t.Errorf("%s: %v", code, err)
		}
	}
}
