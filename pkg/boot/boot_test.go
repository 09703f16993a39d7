package boot

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	lambdaevents "github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ses"
	"github.com/aws/aws-sdk-go-v2/service/sfn"

	"archivist/events"
	"archivist/pkg/fault"
	"archivist/pkg/ingest"
	"archivist/pkg/queue"
)

// strictly decodes a sample, refusing fields that the type does not know where
// the type is ours.
func sample(t *testing.T, name string, into any) {
	t.Helper()
	data, err := events.Files.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

func TestSamplePayloads(t *testing.T) {
	var in lambdaevents.SQSEvent
	sample(t, "run-stage.message.json", &in)
	dec := json.NewDecoder(strings.NewReader(in.Records[0].Body))
	dec.DisallowUnknownFields()
	var m queue.Message
	if err := dec.Decode(&m); err != nil || m.Exec != 2 || m.State != "Downloading" || m.Token == "" {
		t.Errorf("the message is %+v, %v", m, err)
	}
	for name, want := range map[string]struct {
		records int
		kind    string
		exec    string
	}{
		"scheduler.minute.json":  {0, "Scheduled Event", ""},
		"scheduler.wake.json":    {1, "", ""},
		"scheduler.stopped.json": {0, "Step Functions Execution Status Change", "01M7ZBMEYHBB62YP6RY21T1GQ6-00001-2"},
	} {
		var c SchedulerEvent
		sample(t, name, &c)
		if len(c.Records) != want.records || c.DetailType != want.kind || c.Detail.Name != want.exec {
			t.Errorf("%s: %+v", name, c)
		}
	}
	var request lambdaevents.APIGatewayProxyRequest
	sample(t, "api.request.json", &request)
	if request.HTTPMethod != "GET" || request.PathParameters["proxy"] == "" {
		t.Errorf("the request is %+v", request)
	}
	files, err := events.Files.ReadDir(".")
	if err != nil || len(files) != 5 {
		t.Errorf("%d samples, %v: each has a test here", len(files), err)
	}
}

// TestPokesEnd: a poke that always meets another tick is answered before it is received so
// often that it would be a dead letter.
func TestPokesEnd(t *testing.T) {
	for name, timing := range ingest.Timings {
		sent := time.UnixMilli(1000)
		now, last := sent, time.Duration(0)
		for n := 1; ; n++ {
			r := lambdaevents.SQSMessage{Attributes: map[string]string{"ApproximateReceiveCount": fmt.Sprint(n), "SentTimestamp": "1000"}}
			keep := waits(r, now, timing.Scheduler+timing.Margin)
			if keep == 0 {
				break
			}
			if n >= timing.Wake().Receives || keep <= last {
				t.Fatalf("%s: after %d times it waits %s", name, n, keep)
			}
			now, last = now.Add(keep), keep
		}
		if began := now.Add(-timing.Scheduler - timing.Margin); began.Before(sent) {
			t.Errorf("%s: answered by a tick that can have begun before it was sent", name)
		}
	}
	if keep := waits(lambdaevents.SQSMessage{}, time.Now(), time.Minute); keep != busy {
		t.Errorf("a poke that says nothing waits %s", keep)
	}
}

// TestAgingKeepsOrder: waiting jobs are sorted as text by a time of 13 digits. The slowest
// aging that is accepted keeps the worst priority within them, until 2100 and longer.
func TestAgingKeepsOrder(t *testing.T) {
	l := DefaultLimits
	l.AgingMinutes = mostAging
	rules := l.rules(ingest.Timings["production"])
	j := rules.New(ingest.Job{ID: "x", Priority: ingest.WorstPriority}, time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC))
	_, rank := j.WorkKey()
	if l.Check() != nil || len(rank) != len("0000000000000#x") {
		t.Errorf("%v: the rank is %s", l.Check(), rank)
	}
	if l.AgingMinutes++; l.Check() == nil {
		t.Error("a slower aging was accepted")
	}
}

func TestExecutionName(t *testing.T) {
	name := queue.ExecutionName("01M7-00001", 12)
	if job, exec, ok := executionName(name); !ok || job != "01M7-00001" || exec != 12 {
		t.Errorf("%s became %s, %d, %v", name, job, exec, ok)
	}
	if _, _, ok := executionName("byhand"); ok {
		t.Error("a name that the system did not give was read")
	}
}

func TestLocalOnly(t *testing.T) {
	for _, endpoint := range []string{"", "http://127.0.0.1:4566"} {
		env := Env(func(n string) string {
			return map[string]string{EnvFaults: "/tmp/x", EnvAllow: "127.0.0.0/8,::1/128", "AWS_ENDPOINT_URL": endpoint}[n]
		})
		if _, err := readFaults(env); (err == nil) != (endpoint != "") {
			t.Errorf("faults at the endpoint %q: %v", endpoint, err)
		}
		if g, err := allowed(env); (err == nil) != (endpoint != "") || len(g.Allow) != 2*min(1, len(endpoint)) {
			t.Errorf("private networks at the endpoint %q: %v, %v", endpoint, g, err)
		}
	}
	if g, err := allowed(func(string) string { return "" }); err != nil || len(g.Allow) > 0 {
		t.Errorf("%v, %v", g, err)
	}
}

// TestIDs: ids that many make at once are different.
func TestIDs(t *testing.T) {
	const makers, each = 8, 1000
	made := make(chan []string, makers)
	for range makers {
		go func() {
			var own []string
			for range each {
				own = append(own, newID())
			}
			made <- own
		}()
	}
	seen := map[string]bool{}
	for range makers {
		for _, id := range <-made {
			if seen[id] || len(id) != 26 {
				t.Fatalf("%s came twice, or is no ULID", id)
			}
			seen[id] = true
		}
	}
}

// TestMailErrors: what SES refuses is told from what may pass, by its kind and not
// by its text, and in words.
func TestMailErrors(t *testing.T) {
	for code, want := range map[string]fault.Kind{"MessageRejected": fault.Invalid, "InvalidParameterValue": fault.Invalid, "Throttling": fault.Unavailable, "AccessDenied": fault.Unavailable} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, "<ErrorResponse><Error><Type>Sender</Type><Code>%s</Code><Message>it is so</Message></Error></ErrorResponse>", code)
		}))
		client := ses.New(ses.Options{Region: "us-east-1", BaseEndpoint: &server.URL, Retryer: aws.NopRetryer{}, Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")})
		err := (&mailer{client}).send(t.Context(), []byte("x"))
		server.Close()
		if !fault.Is(err, want) || err.Error() != code+": it is so" {
			t.Errorf("%s became %v of kind %q", code, err, fault.Of(err))
		}
	}
}

// TestUsedName: the name of an execution that has ended is told from other refusals.
func TestUsedName(t *testing.T) {
	for code, want := range map[string]fault.Kind{"ExecutionAlreadyExists": fault.Conflict, "AccessDeniedException": ""} {
		cfg, _ := asked(t, http.StatusBadRequest, fmt.Sprintf(`{"__type": %q, "message": "it is so"}`, code))
		client := sfn.NewFromConfig(cfg, func(o *sfn.Options) { o.Retryer = aws.NopRetryer{} })
		e := &executions{client: client, arns: map[string]string{queue.MachineJob: "arn:aws:states:us-east-1:000000000000:stateMachine:m"}}
		err := e.Start(t.Context(), queue.MachineJob, "job-1", queue.Message{Job: "job", Exec: 1, State: "Storing"})
		if err == nil || fault.Is(err, fault.Conflict) != (want == fault.Conflict) {
			t.Errorf("%s became %v", code, err)
		}
	}
}
