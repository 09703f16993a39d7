package target

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"archivist/pkg/aws/invoke"
	"archivist/pkg/events/consumer"
	"archivist/pkg/events/envelope"
	"archivist/pkg/kernel/fault"
)

const (
	function = "arn:aws:lambda:us-east-1:000000000000:function:mine"
	queue    = "https://sqs.us-east-1.amazonaws.com/000000000000/mine"
)

// caller calls an endpoint that answers as answer says.
func caller(t *testing.T, answer func(body []byte) (status int, text string)) *Caller {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
		status, text := answer(body)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	}))
	t.Cleanup(server.Close)
	cfg := aws.Config{Region: "us-east-1", BaseEndpoint: &server.URL,
		Retryer:     func() aws.Retryer { return aws.NopRetryer{} },
		Credentials: credentials.NewStaticCredentialsProvider("key", "secret", "")}
	return &Caller{Functions: &invoke.Functions{Client: lambda.NewFromConfig(cfg)}, Queues: awssqs.NewFromConfig(cfg),
		Allowed: []string{function, queue}, Limit: time.Minute}
}

func batch(n int, detail string) consumer.Batch {
	b := consumer.Batch{Consumer: "mine", Version: 3, Replay: true}
	for i := range n {
		e := envelope.Event{ID: string(rune('a' + i)), Type: "job.state", Detail: json.RawMessage(`"` + detail + `"`)}
		b.Events = append(b.Events, consumer.Item{Event: e})
	}
	return b
}

// TestFunction: a function gets the whole batch, and names the events that failed.
func TestFunction(t *testing.T) {
	c := caller(t, func(body []byte) (int, string) {
		var got consumer.Batch
		if err := json.Unmarshal(body, &got); err != nil || len(got.Events) != 3 || !got.Replay ||
			got.Consumer != "mine" {
			t.Errorf("it was called with %s", body)
		}
		return http.StatusOK, `{"failed": [{"id": "b", "reason": "no title"}]}`
	})
	failed, err := c.Call(t.Context(), consumer.Target{Lambda: function}, batch(3, ""))
	if err != nil || !slices.Equal(failed, []consumer.Failure{{ID: "b", Reason: "no title"}}) {
		t.Errorf("%v, %v", failed, err)
	}
}

// TestAnswers: what a function answers in another shape is no success.
func TestAnswers(t *testing.T) {
	for answer, good := range map[string]bool{"null": true, "{}": true, `{"failed": []}`: true, `{"failed": null}`: true,
		`{"surprise": 1}`: false, `{"batchItemFailures": [{"itemIdentifier": "b"}]}`: false, `"done"`: false, "[]": false,
		`{"failed": ["b"]}`: false, `{"failed": [{"id": "b", "why": "x"}]}`: false} {
		c := caller(t, func([]byte) (int, string) { return http.StatusOK, answer })
		_, err := c.Call(t.Context(), consumer.Target{Lambda: function}, batch(3, ""))
		if (err == nil) != good || fault.Of(err) != "" || !good && !strings.Contains(err.Error(), `{"failed": [{"id"`) {
			t.Errorf("%s: %v", answer, err)
		}
	}
}

// TestTooLarge: more than Lambda takes is about the events: the runtime then calls with each alone.
func TestTooLarge(t *testing.T) {
	c := caller(t, func([]byte) (int, string) { return http.StatusOK, "{}" })
	_, err := c.Call(t.Context(), consumer.Target{Lambda: function}, batch(2, strings.Repeat("x", 3<<20)))
	if err == nil || fault.Of(err) != "" || !strings.Contains(err.Error(), "6000000") {
		t.Errorf("%v", err)
	}
}

// TestQueue: a queue gets a message for each event, within the limits of a request; what it refuses
// is named.
func TestQueue(t *testing.T) {
	var sizes []int
	c := caller(t, func(body []byte) (int, string) {
		var in struct {
			Entries []struct{ Id, MessageBody string }
		}
		if err := json.Unmarshal(body, &in); err != nil {
			t.Error(err)
		}
		sizes = append(sizes, len(in.Entries))
		answer := `{"Successful": [], "Failed": [`
		for _, e := range in.Entries {
			var one consumer.Batch
			if err := json.Unmarshal([]byte(e.MessageBody), &one); err != nil || len(one.Events) != 1 ||
				one.Version != 3 {
				t.Errorf("a message is %s", e.MessageBody)
			}
			if one.Events[0].ID == "l" {
				answer += `{"Id": "` + e.Id + `", "Code": "InternalError", "Message": "later", "SenderFault": false}`
			}
		}
		return http.StatusOK, answer + "]}"
	})
	failed, err := c.Call(t.Context(), consumer.Target{Queue: queue}, batch(12, ""))
	if err != nil || !slices.Equal(failed, []consumer.Failure{{ID: "l", Reason: "InternalError: later"}}) ||
		!slices.Equal(sizes, []int{10, 2}) {
		t.Errorf("%v, %v in requests of %v", failed, err, sizes)
	}
	sizes = nil
	large := batch(3, strings.Repeat("x", 100<<10))
	if _, err := c.Call(t.Context(), consumer.Target{Queue: queue}, large); err != nil ||
		!slices.Equal(sizes, []int{2, 1}) {
		t.Errorf("%v in requests of %v", err, sizes)
	}
}

// TestRefused: a target that may not be called, or cannot, is told from events that fail.
func TestRefused(t *testing.T) {
	status, text := http.StatusOK, "{}"
	c := caller(t, func([]byte) (int, string) { return status, text })
	for _, to := range []consumer.Target{{Lambda: function + "x"}, {Queue: queue + "x"}} {
		if _, err := c.Call(t.Context(), to, batch(1, "")); !fault.Is(err, fault.Denied) ||
			!strings.Contains(err.Error(), "consumerTargets") {
			t.Errorf("%+v: %v", to, err)
		}
	}
	for code, kind := range map[string]fault.Kind{"AccessDeniedException": fault.Denied,
		"com.amazonaws.sqs#QueueDoesNotExist": fault.Unavailable, "com.amazonaws.sqs#BatchRequestTooLong": ""} {
		status, text = http.StatusBadRequest, `{"__type": "`+code+`", "message": "no"}`
		_, err := c.Call(t.Context(), consumer.Target{Queue: queue}, batch(1, ""))
		if err == nil || fault.Of(err) != kind {
			t.Errorf("%s: %v", code, err)
		}
	}
}
