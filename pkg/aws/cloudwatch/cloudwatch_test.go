package cloudwatch

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/sfn"

	"archivist/pkg/aws/awserror"
	"archivist/pkg/aws/awstest"
	"archivist/pkg/ingest/queue"
)

// TestOneRequestPerInvocation: all metrics of an invocation are one request, and no
// metrics are none. What cannot be put is an error.
func TestOneRequestPerInvocation(t *testing.T) {
	cfg, got := awstest.Endpoint(t, http.StatusOK, "\xa0") // an empty map in CBOR
	m := &Metrics{Client: cloudwatch.NewFromConfig(cfg), Log: slog.New(slog.DiscardHandler)}
	if err := m.Put(t.Context()); err != nil || len(*got) != 0 {
		t.Errorf("nothing was put by %q, %v", *got, err)
	}
	m.Add(queue.Repairs, 1)
	m.Add(queue.Repairs, 1)
	m.Add(queue.SpaceUsed, 12.5)
	if err := m.Put(t.Context()); err != nil || len(*got) != 1 {
		t.Fatalf("%q, %v", *got, err)
	}
	body := (*got)[0]
	if !strings.Contains(body, queue.Repairs) || !strings.Contains(body, queue.SpaceUsed) ||
		!strings.Contains(body, Namespace) {
		t.Errorf("the request is %q", body)
	}
	if err := m.Put(t.Context()); err != nil || len(*got) != 1 {
		t.Errorf("it was put twice: %q, %v", *got, err)
	}
	cfg, _ = awstest.Endpoint(t, http.StatusForbidden, "\xa0")
	m.Client = cloudwatch.NewFromConfig(cfg)
	m.Add(queue.Repairs, 1)
	if m.Put(t.Context()) == nil {
		t.Error("a refused request is no error")
	}
}

// TestRefusals: a call that is refused because a permission is missing is counted; other
// errors are not.
func TestRefusals(t *testing.T) {
	for code, want := range map[string]float64{
		"AccessDeniedException": 1, "KmsAccessDeniedException": 1, "KmsInvalidStateException": 1,
		"ThrottlingException": 0, "KmsThrottlingException": 0, "StateMachineDoesNotExist": 0,
	} {
		cfg, _ := awstest.Endpoint(t, http.StatusBadRequest, `{"__type":"`+code+`"}`)
		m := &Metrics{Log: slog.New(slog.DiscardHandler)}
		cfg.APIOptions = append(cfg.APIOptions, m.CountRefusals)
		_, err := sfn.NewFromConfig(cfg).StopExecution(t.Context(),
			&sfn.StopExecutionInput{ExecutionArn: aws.String("arn")})
		if err == nil || m.sums[awserror.Refused] != want {
			t.Errorf("%s: %v, %v", code, m.sums, err)
		}
	}
}
