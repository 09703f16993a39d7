// Package e2e tests the deployed system: the real CDK app on a local AWS, real HTTP
// sources, real S3 objects; and breaks it on purpose.
//
// The tests run only where an emulator is named, since they deploy a stack first:
//
//	go test ./test/e2e -on ministack -run TestSampleIsPreserved
//
// They share that stack. So each submits items of its own and looks at nothing else;
// their order does not matter (CI shuffles them). At the end the doctor checks the whole
// system, and after a run of all, the grants of each function are compared with the calls
// that it made.
package e2e

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/ses"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"archivist/events"
	"archivist/infra/toolchain"
	"archivist/localstack"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest"
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
		Context: map[string]string{"timing": "quick", "maxInFlight": "20", "crashes": crashes, "mailFrom": sender,
			"researchProjects": researchNames, "researchTimes": researchTimes, "revisionQueue": "true"}}
	stack.Context["consumerTargets"] = targets(stack)
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
		stack.Context["consumerTargets"] = targets(stack)
	}
	if *replica != "" {
		stack.Context["replicaBucket"] = *replica
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
	if *replica != "" {
		if _, err := buckets().CreateBucket(ctx, &s3.CreateBucketInput{Bucket: replica}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
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
	if err := checkHealth(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "FAIL: %v\n", err)
		code = max(code, 1)
	}
	if err := checkGrants(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "FAIL: grants and calls differ:\n%v\n", err)
		return max(code, 1)
	}
	return code
}

// play invokes the scheduler, the relay and the revision queue more often than their rule does, as the rule would.
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
		for _, output := range []string{"schedulerFunction", "relayFunction", "revisionsFunction"} {
			name := out.All[output]
			r, err := functions.Invoke(ctx, &lambda.InvokeInput{FunctionName: &name, Payload: payload})
			if err != nil || r.FunctionError != nil {
				fmt.Fprintf(os.Stderr, "%s: %v %s\n", output, err, payloadOf(r))
			}
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
