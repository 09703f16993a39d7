package states

import (
	"errors"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"
)

// mostEvents are the events that the history of an execution can have; one more fails it
// (Developer Guide, "Service quotas").
const mostEvents = 25_000

// record writes events of a branch into the history. It fails if there is no room. One place
// is kept for the event by which the execution ends.
func (b *branch) record(events ...types.HistoryEvent) error {
	b.m.mu.Lock()
	defer b.m.mu.Unlock()
	for _, e := range events {
		if len(b.x.events) >= mostEvents-1 {
			return &failure{runtimeFailure,
				"The execution reached the maximum number of history events (25000)."}
		}
		b.m.add(b.x, &b.last, e)
	}
	return nil
}

// add writes an event into the history of an execution that runs, or ends with it. The event
// follows on the last of a branch, which it becomes. The lock is held. Ids count from 1. What
// comes after the end, from a branch that has not noticed it, is dropped.
func (m *Machines) add(x *execution, last *int64, e types.HistoryEvent) {
	if n := len(x.events); n > 0 && ended(x.events[n-1].Type) {
		return
	}
	e.Id, e.Timestamp = int64(len(x.events)+1), aws.Time(time.Now())
	if last != nil {
		e.PreviousEventId = *last
		*last = e.Id
	}
	x.events = append(x.events, e)
}

// ended reports whether an event is the last of an execution.
func ended(kind types.HistoryEventType) bool {
	switch kind {
	case types.HistoryEventTypeExecutionSucceeded, types.HistoryEventTypeExecutionFailed,
		types.HistoryEventTypeExecutionAborted:
		return true
	}
	return false
}

// endEvent is the last event of an execution. x has ended; an abort is the default.
func endEvent(x *execution) types.HistoryEvent {
	switch x.Status {
	case types.ExecutionStatusSucceeded:
		return types.HistoryEvent{Type: types.HistoryEventTypeExecutionSucceeded,
			ExecutionSucceededEventDetails: &types.ExecutionSucceededEventDetails{Output: &x.Output}}
	case types.ExecutionStatusFailed:
		return types.HistoryEvent{Type: types.HistoryEventTypeExecutionFailed,
			ExecutionFailedEventDetails: &types.ExecutionFailedEventDetails{Error: &x.Error,
				Cause: &x.Cause}}
	}
	return types.HistoryEvent{Type: types.HistoryEventTypeExecutionAborted,
		ExecutionAbortedEventDetails: &types.ExecutionAbortedEventDetails{Error: &x.Error,
			Cause: &x.Cause}}
}

// service are the type of a task's resource and its action, as "sqs" and
// "sendMessage.waitForTaskToken".
func (s *state) service() (kind, action *string) {
	of, does, _ := strings.Cut(strings.TrimPrefix(s.Resource, "arn:aws:states:::"), ":")
	return &of, &does
}

// scheduled is the event of a task that is about to be called. The default time-out is not
// shown, as on AWS.
func (v *visit) scheduled(parameters string, limit int64) types.HistoryEvent {
	kind, action := v.service()
	details := &types.TaskScheduledEventDetails{
		ResourceType: kind,
		Resource:     action,
		Parameters:   &parameters,
		Region:       aws.String(""),
	}

	if limit != longestTask {
		details.TimeoutInSeconds = &limit
	}
	return types.HistoryEvent{Type: types.HistoryEventTypeTaskScheduled,
		TaskScheduledEventDetails: details}
}

// taskStarted is the event of a task's call.
func (v *visit) taskStarted() types.HistoryEvent {
	kind, action := v.service()
	return types.HistoryEvent{Type: types.HistoryEventTypeTaskStarted,
		TaskStartedEventDetails: &types.TaskStartedEventDetails{ResourceType: kind,
			Resource: action}}
}

// submitted writes that a task waits for the answer to its token, unless the answer is there.
// The answer can be faster than the response of the call, and its event is then the last of
// the task.
func (v *visit) submitted(token string, data any) {
	text, err := encode(data)
	v.m.mu.Lock()
	defer v.m.mu.Unlock()
	if err != nil || v.m.open[token] == nil {
		return
	}

	kind, action := v.service()
	v.m.add(v.x, &v.last, types.HistoryEvent{Type: types.HistoryEventTypeTaskSubmitted,
		TaskSubmittedEventDetails: &types.TaskSubmittedEventDetails{
			ResourceType: kind,
			Resource:     action,
			Output:       &text,
		}})
}

// taskEnd is the event of a task that succeeded, failed or timed out. err is nil or a
// *failure.
func (v *visit) taskEnd(output string, err error) types.HistoryEvent {
	kind, action := v.service()
	if err == nil {
		return types.HistoryEvent{Type: types.HistoryEventTypeTaskSucceeded,
			TaskSucceededEventDetails: &types.TaskSucceededEventDetails{
				ResourceType: kind,
				Resource:     action,
				Output:       &output,
			}}
	}

	var f *failure
	errors.As(err, &f)
	if f.name == timedOut {
		return types.HistoryEvent{Type: types.HistoryEventTypeTaskTimedOut,
			TaskTimedOutEventDetails: &types.TaskTimedOutEventDetails{
				ResourceType: kind,
				Resource:     action,
				Error:        &f.name,
			}}
	}

	details := &types.TaskFailedEventDetails{
		ResourceType: kind,
		Resource:     action,
		Error:        &f.name,
		Cause:        &f.cause,
	}
	return types.HistoryEvent{Type: types.HistoryEventTypeTaskFailed,
		TaskFailedEventDetails: details}
}
