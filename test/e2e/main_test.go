// Package e2e tests the deployed system: the real CDK app on a local AWS, real HTTP
// sources, real S3 objects; and breaks it on purpose.
//
// The tests run only where an emulator is named, since they deploy a stack first:
//
//	go test ./test/e2e -on ministack -run TestSampleIsPreserved
//
// They share that stack. Most submit items of their own, look at nothing else, and are
// played side by side; the others are played before, alone. Their order does not matter
// (CI shuffles them). The table suite says what each test is for, and when and where it is
// played. At the end the doctor checks the whole system, and the grants of each function
// are compared with the calls that it made.
package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
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
	"archivist/localstack/issuer"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest/ezid/ezidtest"
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
)

const sender = "archive@example.org"

// tickEach is how often the test plays the minute.
const tickEach = 2 * time.Second

// TestMain deploys the system, runs the tests, and compares the grants with the calls
// that were made. Without a lane it does nothing of it, so that `go test ./...` is quick.
func TestMain(m *testing.M) {
	flag.Parse()
	switch {
	case flag.Lookup("test.list").Value.String() != "":
		os.Exit(m.Run())
	case *lane == "":
		without("they deploy a stack; run them by make e2e, or with -on ministack")
		os.Exit(m.Run())
	case *lane != process && *lane != ministack && *lane != core:
		fmt.Fprintf(os.Stderr, "-on is %q; expected %s, %s or %s\n", *lane, process, ministack, core)
		os.Exit(2)
	case *lane == core && localstack.CoreMissing() != "" && os.Getenv("CI") == "":
		without("on this machine LocalStack lacks " + localstack.CoreMissing())
		os.Exit(m.Run())
	}
	chosen, err := choose()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	os.Exit(run(m, chosen))
}

func run(m *testing.M, chosen bool) int {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "archivist-e2e-")
	if err == nil {
		defer os.RemoveAll(dir)
		err = configure(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	up := deploy
	if inProcess() {
		up = startProcess
	}
	down, err := up(ctx)
	if down != nil {
		defer func() {
			if err := down(); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if err := checkHealth(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "FAIL: %v\n", err)
		code = max(code, 1)
	}
	if err := checkGrants(ctx, chosen); err != nil {
		fmt.Fprintf(os.Stderr, "FAIL: grants and calls differ:\n%v\n", err)
		return max(code, 1)
	}
	return code
}

// configure says what is deployed. What the tests and the functions tell each other is in a folder.
func configure(dir string) error {
	root, err := filepath.Abs("../..")
	if err != nil {
		return err
	}
	registry = ezidtest.Start() // the process ends it
	if tokens, err = startTokens(); err != nil {
		return err
	}
	crashes, evaluated = filepath.Join(dir, "crashes.json"), filepath.Join(dir, "evaluated.jsonl")
	stack = &localstack.Stack{Checkout: toolchain.Checkout{Root: root, Log: os.Stderr},
		Name: "e2e", Port: 4567, Enforce: true, Tags: []string{"crash"},
		Context: map[string]string{"tokenIssuer": tokens.url, "tokenAudience": issuer.Audience,
			"tokenClaim": strings.Join(issuer.Claims(), ","), "tokenClient": issuer.ClientID,
			"tokenScopes": strings.Join(issuer.Scopes(), " "), "arkResolver": "public",
			"timing": "quick", "maxInFlight": "20", "crashes": crashes, "mailFrom": sender,
			"researchProjects": researchNames, "researchTimes": researchTimes, "revisionQueue": "true",
			"sourceBuckets": sourceBucket, "ezid": registry.URL, "ezidTarget": target}}
	stack.Env = []string{"EVALUATED=" + evaluated}
	if *gigabyte {
		stack.Context["timing"] = "slow"
		stack.Env = append(stack.Env, "S3_PERSIST=1", "S3_DATA_DIR="+filepath.Join(dir, "s3")) // content on disk
	}
	if onCore() {
		stack.Core, stack.Name, stack.Port = true, "e2e-localstack", 4600
		stack.Context["timing"] = "slow" // as it is
		stack.Context["authorizer"] = "none"
	}
	stack.Context["consumerTargets"] = targets(stack)
	if *replica != "" {
		stack.Context["replicaBucket"] = *replica
	}
	return nil
}

// deploy deploys the system to an emulator, makes what it needs beside it, and plays its minutes.
func deploy(ctx context.Context) (stop func() error, err error) {
	if err := onlyOurs(ctx); err != nil {
		return nil, err
	}
	minutes, cancel := context.WithCancel(ctx)
	stop = func() error {
		cancel()
		return stack.Stop(ctx)
	}
	if out, err = stack.Up(ctx); err != nil {
		return stop, err
	}
	client = as("admin")
	cfg = aws.Config{Region: out.Region, BaseEndpoint: &out.EndpointURL, Credentials: localstack.Root}
	if *replica != "" {
		if _, err := buckets().CreateBucket(ctx, &s3.CreateBucketInput{Bucket: replica}); err != nil {
			return stop, err
		}
	}
	// Locally an identity is verified at once; on AWS its owner answers a mail.
	_, err = ses.NewFromConfig(cfg).VerifyEmailIdentity(ctx,
		&ses.VerifyEmailIdentityInput{EmailAddress: aws.String(sender)})
	ticking.Store(true)
	go play(minutes)
	return stop, err
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

// onlyOurs stops an emulator that an earlier run has left, and this one's when this run is interrupted.
func onlyOurs(ctx context.Context) error {
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-interrupted
		fmt.Fprintln(os.Stderr, errors.Join(errors.New("interrupted"), stack.Stop(ctx)))
		os.Exit(130)
	}()
	if !stack.Healthy() {
		return nil
	}
	return stack.Stop(ctx)
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

// long is from when on a wait is worth a line.
const long = 5 * time.Second

// behind shows the consumers that have not passed all events: what a test waits for often hangs there.
func behind(t *testing.T) string {
	list, err := client.Consumers(context.WithoutCancel(t.Context()))
	if err != nil {
		return err.Error()
	}
	list = slices.DeleteFunc(list, func(c v1.Consumer) bool {
		return c.Behind == 0 && c.Rebuild == "" && c.Parked == 0
	})
	text, err := json.Marshal(list)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// until looks again and again until f is true: less and less often, since the tests that are played side by side would
// keep an emulator busy with looking. What takes longer than within hangs.
func until(t *testing.T, what string, within time.Duration, f func() bool) {
	t.Helper()
	began := time.Now()
	defer func() {
		if took := time.Since(began); took > long && !t.Failed() {
			t.Logf("%5.1f s until %s", took.Seconds(), what)
		}
	}()
	deadline := time.After(within)
	for wait := 100 * time.Millisecond; !f(); wait = min(wait*5/4, 2*time.Second) {
		select {
		case <-deadline:
			t.Fatalf("%s: not within %s; behind are: %s", what, within, behind(t))
		case <-time.After(wait):
		}
	}
}
