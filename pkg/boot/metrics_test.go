package boot

import (
	"compress/gzip"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"

	"archivist/pkg/queue"
)

// asked is a server that keeps what it was asked, and answers all alike.
func asked(t *testing.T, status int, body string) (aws.Config, *[]string) {
	t.Helper()
	var got []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		in := io.Reader(r.Body)
		if r.Header.Get("Content-Encoding") == "gzip" {
			in, _ = gzip.NewReader(in)
		}
		data, err := io.ReadAll(in)
		if err != nil {
			t.Error(err)
		}
		got = append(got, string(data))
		w.Header().Set("Smithy-Protocol", r.Header.Get("Smithy-Protocol"))
		w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(s.Close)
	return aws.Config{Region: "us-east-1", BaseEndpoint: &s.URL, Credentials: credentials.NewStaticCredentialsProvider("k", "s", ""),
		Retryer: func() aws.Retryer { return aws.NopRetryer{} }}, &got
}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// TestMetricsTogether: whatever an invocation has to tell is one request, and nothing
// is none; what cannot be put is an error.
func TestMetricsTogether(t *testing.T) {
	cfg, got := asked(t, http.StatusOK, "\xa0") // an empty map in CBOR
	m := &metrics{client: cloudwatch.NewFromConfig(cfg), log: quiet()}
	if err := m.put(t.Context()); err != nil || len(*got) != 0 {
		t.Errorf("nothing was put by %q, %v", *got, err)
	}
	m.add(queue.Repairs, 1)
	m.add(queue.Repairs, 1)
	m.add(queue.SpaceUsed, 12.5)
	if err := m.put(t.Context()); err != nil || len(*got) != 1 {
		t.Fatalf("%q, %v", *got, err)
	}
	body := (*got)[0]
	if !strings.Contains(body, queue.Repairs) || !strings.Contains(body, queue.SpaceUsed) || !strings.Contains(body, Namespace) {
		t.Errorf("the request is %q", body)
	}
	if err := m.put(t.Context()); err != nil || len(*got) != 1 {
		t.Errorf("it was put twice: %q, %v", *got, err)
	}
	cfg, _ = asked(t, http.StatusForbidden, "\xa0")
	m.client = cloudwatch.NewFromConfig(cfg)
	m.add(queue.Repairs, 1)
	if m.put(t.Context()) == nil {
		t.Error("a refused request is no error")
	}
}

// TestRefusals: a call that is refused for want of a permission is counted, any other
// error is not.
func TestRefusals(t *testing.T) {
	for code, want := range map[string]float64{"AccessDeniedException": 1, "KmsAccessDeniedException": 1, "KmsInvalidStateException": 1,
		"ThrottlingException": 0, "KmsThrottlingException": 0, "StateMachineDoesNotExist": 0} {
		cfg, _ := asked(t, http.StatusBadRequest, `{"__type":"`+code+`"}`)
		m := &metrics{log: quiet()}
		cfg.APIOptions = append(cfg.APIOptions, m.refusals)
		e := &executions{client: sfn.NewFromConfig(cfg), arns: map[string]string{"m": "arn:aws:states:us-east-1:1:stateMachine:m"}}
		if err := e.Start(context.Background(), "m", "n", queue.Message{}); err == nil || m.sums[queue.Refused] != want {
			t.Errorf("%s: %v, %v", code, m.sums, err)
		}
	}
}

// TestProblemOf: of an execution's history, the newest first, only what the machine
// itself could not do is a problem.
func TestProblemOf(t *testing.T) {
	entered := types.HistoryEvent{Type: types.HistoryEventTypeTaskStateEntered, StateEnteredEventDetails: &types.StateEnteredEventDetails{Name: aws.String("Storing")}}
	failed := func(code string) types.HistoryEvent {
		return types.HistoryEvent{Type: types.HistoryEventTypeTaskFailed, TaskFailedEventDetails: &types.TaskFailedEventDetails{Error: &code, Cause: aws.String("why")}}
	}
	wait := types.HistoryEvent{Type: types.HistoryEventTypeWaitStateEntered, StateEnteredEventDetails: &types.StateEnteredEventDetails{Name: aws.String("Storing later")}}
	submit := types.HistoryEvent{Type: types.HistoryEventTypeTaskSubmitFailed, TaskSubmitFailedEventDetails: &types.TaskSubmitFailedEventDetails{Error: aws.String("SQS.SqsException")}}
	ended := types.HistoryEvent{Type: types.HistoryEventTypeExecutionFailed, ExecutionFailedEventDetails: &types.ExecutionFailedEventDetails{Error: aws.String("States.Runtime")}}
	for name, test := range map[string]struct {
		events []types.HistoryEvent
		want   string
	}{
		"refused":                    {[]types.HistoryEvent{wait, failed("SQS.SqsException"), entered}, "failed at Storing: SQS.SqsException: why"},
		"refused at submission":      {[]types.HistoryEvent{wait, submit, entered}, "failed at Storing: SQS.SqsException"},
		"sent since":                 {[]types.HistoryEvent{entered, wait, failed("SQS.SqsException"), entered}, ""},
		"a worker's answer":          {[]types.HistoryEvent{wait, failed("Continue"), entered}, ""},
		"nobody answered":            {[]types.HistoryEvent{wait, {Type: types.HistoryEventTypeTaskTimedOut}, entered}, ""},
		"ended without a task":       {[]types.HistoryEvent{ended}, "States.Runtime"},
		"ended by the failed worker": {[]types.HistoryEvent{{ExecutionFailedEventDetails: &types.ExecutionFailedEventDetails{Error: aws.String("StageFailed")}}, failed("StageFailed"), entered}, ""},
	} {
		if got := problemOf(test.events); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
