package stepfunctions

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"

	"archivist/pkg/aws/awstest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/fault"
)

// TestUsedName: the name of an execution that has ended is told from other refusals.
func TestUsedName(t *testing.T) {
	const arn = "arn:aws:states:us-east-1:000000000000:stateMachine:m"
	for code, want := range map[string]fault.Kind{"ExecutionAlreadyExists": fault.Conflict,
		"AccessDeniedException": ""} {
		cfg, _ := awstest.Endpoint(t, http.StatusBadRequest, fmt.Sprintf(`{"__type": %q, "message": "it is so"}`, code))
		e := &Executions{Client: sfn.NewFromConfig(cfg), ARNs: map[string]string{queue.MachineJob: arn}}
		err := e.Start(t.Context(), queue.MachineJob, "job-1", queue.Message{Job: "job", Exec: 1, State: "Storing"})
		if err == nil || fault.Is(err, fault.Conflict) != (want == fault.Conflict) {
			t.Errorf("%s became %v", code, err)
		}
	}
}

// TestProblemOf: of an execution's history, the newest event first, only what the machine
// itself could not do is a problem.
func TestProblemOf(t *testing.T) {
	entered := types.HistoryEvent{Type: types.HistoryEventTypeTaskStateEntered,
		StateEnteredEventDetails: &types.StateEnteredEventDetails{Name: aws.String("Storing")}}
	wait := types.HistoryEvent{Type: types.HistoryEventTypeWaitStateEntered,
		StateEnteredEventDetails: &types.StateEnteredEventDetails{Name: aws.String("Storing later")}}
	failed := func(code string) types.HistoryEvent {
		return types.HistoryEvent{Type: types.HistoryEventTypeTaskFailed,
			TaskFailedEventDetails: &types.TaskFailedEventDetails{Error: &code, Cause: aws.String("why")}}
	}
	submit := types.HistoryEvent{Type: types.HistoryEventTypeTaskSubmitFailed,
		TaskSubmitFailedEventDetails: &types.TaskSubmitFailedEventDetails{Error: aws.String("SQS.SqsException")}}
	timedOut := types.HistoryEvent{Type: types.HistoryEventTypeTaskTimedOut}
	ended := func(code string) types.HistoryEvent {
		return types.HistoryEvent{Type: types.HistoryEventTypeExecutionFailed,
			ExecutionFailedEventDetails: &types.ExecutionFailedEventDetails{Error: &code}}
	}
	for name, test := range map[string]struct {
		events []types.HistoryEvent
		want   string
	}{
		"refused": {
			[]types.HistoryEvent{wait, failed("SQS.SqsException"), entered},
			"failed at Storing: SQS.SqsException: why"},
		"refused at submission": {
			[]types.HistoryEvent{wait, submit, entered},
			"failed at Storing: SQS.SqsException"},
		"sent since":                 {[]types.HistoryEvent{entered, wait, failed("SQS.SqsException"), entered}, ""},
		"a worker's answer":          {[]types.HistoryEvent{wait, failed("Continue"), entered}, ""},
		"nobody answered":            {[]types.HistoryEvent{wait, timedOut, entered}, ""},
		"ended without a task":       {[]types.HistoryEvent{ended("States.Runtime")}, "States.Runtime"},
		"ended by the failed worker": {[]types.HistoryEvent{ended("StageFailed"), failed("StageFailed"), entered}, ""},
	} {
		if got := problemOf(test.events); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
