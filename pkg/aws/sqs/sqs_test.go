package sqs

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"archivist/pkg/aws/awstest"
)

// TestHiddenTime: a message is hidden for at least as long as asked for, and no longer
// than SQS accepts.
func TestHiddenTime(t *testing.T) {
	cfg, asked := awstest.Endpoint(t, http.StatusOK, "{}")
	q := Queue{Client: sqs.NewFromConfig(cfg), URL: *cfg.BaseEndpoint + "/000000000000/q"}
	for d, want := range map[time.Duration]string{
		0:                       `"VisibilityTimeout":1`,
		1500 * time.Millisecond: `"VisibilityTimeout":2`,
		13 * time.Hour:          `"VisibilityTimeout":43200`,
	} {
		if err := q.Hide(t.Context(), "receipt", d); err != nil {
			t.Fatal(err)
		}
		if got := (*asked)[len(*asked)-1]; !strings.Contains(got, want) {
			t.Errorf("hidden for %s by %s, want %s", d, got, want)
		}
	}
}

// TestPut: a message is sent with its attributes.
func TestPut(t *testing.T) {
	cfg, asked := awstest.Endpoint(t, http.StatusOK, "{}")
	q := Queue{Client: sqs.NewFromConfig(cfg), URL: *cfg.BaseEndpoint + "/000000000000/q"}
	err := q.Put(t.Context(), "the body", map[string]string{"reason": "it is wrong"})
	if err != nil || len(*asked) != 1 {
		t.Fatal(*asked, err)
	}
	for _, want := range []string{`"MessageBody":"the body"`, `"reason":{"DataType":"String","StringValue":"it is wrong"}`} {
		if !strings.Contains((*asked)[0], want) {
			t.Errorf("sent %s, without %s", (*asked)[0], want)
		}
	}
}
