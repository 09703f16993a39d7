package lambda

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/aws/aws-lambda-go/lambda/messages"

	"archivist/pkg/revisions/runner"
)

// TestTaskRunner: what came of a task is the answer; an error has the name that the state machine calls again for.
func TestTaskRunner(t *testing.T) {
	var answer runner.Result
	var failure error
	f := &TaskRunner{Log: slog.New(slog.DiscardHandler),
		Run: func(context.Context, runner.Call) (runner.Result, error) { return answer, failure }}
	answer.End = runner.Broken
	if r, err := f.Handle(t.Context(), runner.Call{}); err != nil || r.End != runner.Broken {
		t.Errorf("%+v, %v", r, err)
	}
	ended := 0
	f.Left, f.Exit = func() string { return "2 processes" }, func(code int) { ended = code }
	if _, err := f.Handle(t.Context(), runner.Call{}); err != nil || ended != 1 {
		t.Errorf("after a run that has left something the process goes on: %d, %v", ended, err)
	}
	f.Left, ended = func() string { return "" }, 0
	if _, err := f.Handle(t.Context(), runner.Call{}); err != nil || ended != 0 {
		t.Errorf("after a run that has left nothing the process ends: %d, %v", ended, err)
	}
	failure = errors.New("slow down")
	_, err := f.Handle(t.Context(), runner.Call{})
	var named messages.InvokeResponse_Error
	if !errors.As(err, &named) || named.Type != "Unavailable" || named.Message != "slow down" {
		t.Errorf("%#v", err)
	}
}
