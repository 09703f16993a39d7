package lambda

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"

	"github.com/aws/aws-lambda-go/lambda/messages"

	awsinvoke "archivist/pkg/aws/invoke"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/revisions/runner"
)

// relay stands for Lambda.
type relay struct {
	function, tenant string
	failed           *awsinvoke.Failed
	err              error
}

func (r *relay) Relay(_ context.Context, function, tenant string, payload json.RawMessage) (
	json.RawMessage, *awsinvoke.Failed, error) {
	r.function, r.tenant = function, tenant
	return payload, r.failed, r.err
}

// TestTaskRouter: a job reaches the runner in the environments of its archive, and the machine gets the runner's
// answer, or its error under the same name.
func TestTaskRouter(t *testing.T) {
	job := runner.Job{ID: "maps/12/index/1", Archive: "maps"}
	for name, c := range map[string]struct {
		relay
		off    bool
		tenant string
		want   string // type of the error; "" for none, "other" for one without a type
	}{
		"answer":     {tenant: "maps"},
		"no tenants": {off: true},
		"not begun": {relay: relay{failed: &awsinvoke.Failed{Type: "Unavailable", Message: "busy"}}, tenant: "maps",
			want: "Unavailable"},
		"ended": {relay: relay{failed: &awsinvoke.Failed{Type: "Runtime.ExitError"}}, tenant: "maps",
			want: "Runtime.ExitError"},
		"not reached": {relay: relay{err: fault.New(fault.Unavailable, "throttled")}, tenant: "maps",
			want: "Unavailable"},
		"not in time": {relay: relay{err: errors.New("the function did not answer in time")}, tenant: "maps",
			want: "other"},
		"not allowed": {relay: relay{err: fault.New(fault.Denied, "no")}, tenant: "maps", want: "other"},
	} {
		f := &TaskRouter{Functions: &c.relay, Runner: "run", Tenants: !c.off, Log: slog.New(slog.DiscardHandler),
			Credentials: func(_ context.Context, j *runner.Job) (*runner.Credentials, error) {
				return &runner.Credentials{Secret: "of " + j.Archive}, nil
			}}
		answer, err := f.Handle(t.Context(), job)
		if c.relay.function != "run" || c.relay.tenant != c.tenant {
			t.Errorf("%s: called %q for %q", name, c.relay.function, c.relay.tenant)
		}
		var typed messages.InvokeResponse_Error
		got := ""
		switch {
		case errors.As(err, &typed):
			got = typed.Type
		case err != nil:
			got = "other"
		}
		var passed runner.Call // the answer of this relay is what it got
		if got != c.want || err == nil && (json.Unmarshal(answer, &passed) != nil || passed.ID != job.ID ||
			passed.As == nil || passed.As.Secret != "of maps") {
			t.Errorf("%s: %s, %v", name, answer, err)
		}
	}
}
