// Package e2e tests the deployed system: the real CDK app on a local AWS, real HTTP
// sources, real S3 objects; and breaks it on purpose.
//
// The tests run only where an emulator is named, since they deploy a stack first:
//
//	go test ./test/e2e -on ministack -run TestSampleIsPreserved
//
// They share that stack. So each submits items of its own and looks at nothing else;
// their order does not matter (CI shuffles them). After a run of all, the grants of each
// function are compared with the calls that it made.
package e2e

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awscloudwatch "github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cwtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/ses"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"archivist/events"
	"archivist/infra/toolchain"
	"archivist/localstack"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/cloudwatch"
	"archivist/pkg/crash"
	"archivist/pkg/ingest"
	"archivist/pkg/queue"
)

// The system under test, and clients of it.
var (
	stack   *localstack.Stack
	out     localstack.Outputs
	client  *v1.Client
	cfg     aws.Config
	ticking atomic.Bool // whether the test plays the scheduler
	crashes string      // the file that says where processes end
	// evaluated is a file with each kind of request that a role made.
	evaluated string
	timing    = ingest.Timings["quick"]
)

const sender = "archive@example.org"

const tickEach = 5 * time.Second

// TestMain deploys the system, runs the tests, and compares the grants with the calls
// that were made. Without a lane it does nothing of it, so that `go test ./...` is quick.
func TestMain(m *testing.M) {
	flag.Parse()
	switch {
	case flag.Lookup("test.list").Value.String() != "":
		os.Exit(m.Run())
	case *lane == "":
		os.Exit(skip(m, "they deploy a stack; run them by make e2e, or with -on ministack"))
	case *lane != ministack && *lane != core:
		fmt.Fprintf(os.Stderr, "-on is %q; expected %s or %s\n", *lane, ministack, core)
		os.Exit(2)
	case *lane == core && localstack.CoreMissing() != "" && os.Getenv("CI") == "":
		os.Exit(skip(m, "on this machine LocalStack lacks "+localstack.CoreMissing()))
	}
	os.Exit(run(m))
}

// skip runs no test, for a reason.
func skip(m *testing.M, why string) int {
	fmt.Println("SKIPPED: the end-to-end tests:", why)
	if err := flag.Set("test.run", "^$"); err != nil {
		panic(err)
	}
	return m.Run()
}

func run(m *testing.M) int {
	ctx := context.Background()
	root, err := filepath.Abs("../..")
	if err != nil {
		panic(err)
	}
	dir, err := os.MkdirTemp("", "archivist-e2e-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	crashes, evaluated = filepath.Join(dir, "crashes.json"), filepath.Join(dir, "evaluated.jsonl")
	stack = &localstack.Stack{Checkout: toolchain.Checkout{Root: root, Log: os.Stderr},
		Name: "e2e", Port: 4567, Enforce: true, Tags: []string{"crash"},
		Context: map[string]string{"timing": "quick", "maxInFlight": "20", "crashes": crashes, "mailFrom": sender}}
	stack.Env = []string{"EVALUATED=" + evaluated}
	if *gigabyte {
		timing = ingest.Timings["slow"]
		stack.Context["timing"] = "slow"
		stack.Env = append(stack.Env, "S3_PERSIST=1", "S3_DATA_DIR="+filepath.Join(dir, "s3")) // content on disk
	}
	if onCore() {
		stack.Core, stack.Name, stack.Port = true, "e2e-localstack", 4600
		timing = ingest.Timings["slow"] // it is slower
		stack.Context["timing"] = "slow"
	}
	defer func() {
		if err := stack.Stop(ctx); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	if out, err = stack.Up(ctx, runtime.GOARCH); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	client = &v1.Client{URL: out.APIURL, HTTP: http.DefaultClient}
	cfg = aws.Config{Region: out.Region, BaseEndpoint: &out.EndpointURL, Credentials: localstack.Root}
	// Locally an identity is verified at once; on AWS its owner answers a mail.
	if _, err := ses.NewFromConfig(cfg).VerifyEmailIdentity(ctx,
		&ses.VerifyEmailIdentityInput{EmailAddress: aws.String(sender)}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ticking.Store(true)
	scheduler, stop := context.WithCancel(ctx)
	defer stop()
	go play(scheduler)
	code := m.Run()
	if err := checkGrants(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "FAIL: grants and calls differ:\n%v\n", err)
		return max(code, 1)
	}
	return code
}

// play invokes the scheduler more often than its rule does, as the rule would.
func play(ctx context.Context) {
	payload, err := events.Files.ReadFile("scheduler.minute.json")
	if err != nil {
		panic(err)
	}
	functions := lambda.NewFromConfig(cfg)
	tick := time.NewTicker(tickEach)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if !ticking.Load() {
			continue
		}
		name := out.All["schedulerFunction"]
		if r, err := functions.Invoke(ctx, &lambda.InvokeInput{FunctionName: &name, Payload: payload}); err != nil ||
			r.FunctionError != nil {
			fmt.Fprintf(os.Stderr, "scheduler: %v %s\n", err, payloadOf(r))
		}
	}
}

func payloadOf(r *lambda.InvokeOutput) []byte {
	if r == nil {
		return nil
	}
	return r.Payload
}

func queues() *sqs.Client   { return sqs.NewFromConfig(cfg) }
func machines() *sfn.Client { return sfn.NewFromConfig(cfg) }
func buckets() *s3.Client {
	return s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = true })
}

// until looks every 200 ms until f is true, at most for within.
func until(t *testing.T, what string, within time.Duration, f func() bool) {
	t.Helper()
	deadline := time.After(within)
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for !f() {
		select {
		case <-deadline:
			t.Fatalf("%s: not within %s", what, within)
		case <-tick.C:
		}
	}
}

// submit submits one object and returns its batch and job.
func submit(t *testing.T, url, kind string, ids ...string) (batch, job string) {
	t.Helper()
	in := v1.BatchRequest{Collection: "e2e", Submitter: t.Name(), Payload: v1.Payload{URL: url, Type: kind},
		Identifiers: &v1.Identifiers{Local: ids}, Metadata: &v1.Metadata{What: t.Name()},
		Notification: []string{strings.ToLower(t.Name()) + "@example.org"}}
	b, err := client.Submit(t.Context(), in, fmt.Sprintf("%s-%v-%d", t.Name(), ids, time.Now().UnixNano()))
	if err != nil {
		t.Fatal(err)
	}
	return b.ID, ingest.JobID(b.ID, 1)
}

func jobOf(t *testing.T, id string) v1.Job {
	t.Helper()
	j, err := client.Job(t.Context(), id)
	if err != nil {
		return v1.Job{ID: id} // not unpacked yet
	}
	return j
}

// reportOf is a batch's report as it is saved.
func reportOf(t *testing.T, batch string) string {
	t.Helper()
	body, err := client.Report(t.Context(), batch)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	report, err := io.ReadAll(body)
	if err != nil || !json.Valid(report) {
		t.Fatalf("the report of %s is %s, %v", batch, report, err)
	}
	return string(report)
}

// ends waits for a job to end in a state.
func ends(t *testing.T, id, state string, within time.Duration) v1.Job {
	t.Helper()
	var j v1.Job
	until(t, fmt.Sprintf("job %s %s", id, state), within, func() bool {
		j = jobOf(t, id)
		if j.State == "Failed" && state != "Failed" {
			t.Fatalf("job %s failed: %s", id, j.Message)
		}
		return j.State == state
	})
	return j
}

func eventsOf(t *testing.T, job string) []v1.Event {
	t.Helper()
	all, err := client.Events(t.Context(), job)
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range all {
		if e.Version != int64(i+1) {
			t.Fatalf("job %s: event %d has version %d", job, i+1, e.Version)
		}
	}
	return all
}

// repairsOf is how often a job was repaired.
func repairsOf(t *testing.T, job string) (n int) {
	t.Helper()
	for _, e := range eventsOf(t, job) {
		if e.Type == "job.repaired" {
			n++
		}
	}
	return n
}

// repairs is the metric that the sweep counts.
func repairs(t *testing.T) float64 {
	t.Helper()
	return sumOf(t, cloudwatch.Namespace, queue.Repairs)
}

// sumOf is the sum of a metric in the last hours.
func sumOf(t *testing.T, namespace, name string, of ...cwtypes.Dimension) float64 {
	t.Helper()
	got, err := awscloudwatch.NewFromConfig(cfg).GetMetricStatistics(t.Context(),
		&awscloudwatch.GetMetricStatisticsInput{
			Namespace: &namespace, MetricName: &name, Dimensions: of,
			Statistics: []cwtypes.Statistic{cwtypes.StatisticSum},
			StartTime:  aws.Time(time.Now().Add(-2 * time.Hour)), EndTime: aws.Time(time.Now().Add(time.Minute)),
			Period: aws.Int32(10800)})
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, p := range got.Datapoints {
		sum += aws.ToFloat64(p.Sum)
	}
	return sum
}

func setCrashes(t *testing.T, points []crash.Point) {
	t.Helper()
	data, err := json.Marshal(points)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(crashes, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func decode(t *testing.T, e v1.Event, into any) {
	t.Helper()
	if err := json.Unmarshal(e.Detail, into); err != nil {
		t.Fatal(err)
	}
}

// mails returns the mails to the test's address that say a text, as the local AWS
// keeps them.
func mails(t *testing.T, says string) (found []string) {
	t.Helper()
	for _, text := range sent(t) {
		if strings.Contains(text, strings.ToLower(t.Name())+"@example.org") && strings.Contains(text, says) {
			found = append(found, text)
		}
	}
	return found
}

// sent are the mails that were sent, as the emulator keeps them.
func sent(t *testing.T) (all []string) {
	t.Helper()
	at := "/_ministack/ses/messages"
	if onCore() {
		at = "/_aws/ses"
	}
	resp, err := http.Get(out.EndpointURL + at)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var kept struct{ Messages json.RawMessage }
	if err := json.NewDecoder(resp.Body).Decode(&kept); err != nil {
		t.Fatal(err)
	}
	var flat []json.RawMessage
	var byAccount map[string][]json.RawMessage
	if json.Unmarshal(kept.Messages, &flat) != nil && json.Unmarshal(kept.Messages, &byAccount) == nil {
		flat = slices.Concat(slices.Collect(maps.Values(byAccount))...)
	}
	for _, m := range flat {
		all = append(all, string(m))
	}
	return all
}
