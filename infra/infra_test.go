package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"log"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
	"github.com/aws/jsii-runtime-go"

	"archivist/infra/toolchain"
	"archivist/pkg/api"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/app/boot"
	"archivist/pkg/ingest"
)

// resource is one resource of a template.
type resource struct {
	Type           string
	DeletionPolicy string
	DependsOn      []string
	Properties     map[string]any
}

// synthesised are the resources of both stacks, as JSON, by the settings that they follow from.
var synthesised = map[string][]byte{}

// synth makes both stacks, once for the same settings, and returns all of their resources by
// logical id.
func synth(t *testing.T, s Settings) (all map[string]resource) {
	t.Helper()
	name := fmt.Sprintf("%#v", s)
	known, done := synthesised[name]
	if !done {
		data, main := makeStacks(s)
		known = resourcesOf(t, data.Stack, main.Stack)
		synthesised[name] = known
	}
	if err := json.Unmarshal(known, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// resourcesOf returns the resources of the templates of stacks by logical id, as JSON.
func resourcesOf(t *testing.T, stacks ...awscdk.Stack) []byte {
	t.Helper()
	all := map[string]json.RawMessage{}
	for _, stack := range stacks {
		b, err := json.Marshal(assertions.Template_FromStack(stack, nil).ToJSON())
		if err != nil {
			t.Fatal(err)
		}
		var template struct{ Resources map[string]json.RawMessage }
		if err := json.Unmarshal(b, &template); err != nil {
			t.Fatal(err)
		}
		maps.Copy(all, template.Resources)
	}
	b, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

var production = Settings{Timing: "production", Limits: boot.DefaultLimits, NAAN: "99999", Shoulder: "fk4"}

func of(all map[string]resource, kind string) map[string]resource {
	out := map[string]resource{}
	for id, r := range all {
		if r.Type == kind {
			out[id] = r
		}
	}
	return out
}

func number(v any) float64 { n, _ := v.(float64); return n }

// code is a folder with an empty archive as the program of each function. What is built for AWS
// would do as well, but each template takes a copy of it: hundreds of megabytes.
var code string

func TestMain(m *testing.M) {
	defer jsii.Close()
	folder, err := os.MkdirTemp("", "code")
	if err != nil {
		log.Fatal(err)
	}
	if err := toolchain.EmptyPrograms(folder); err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	code = folder
	m.Run()
}

// makeStacks makes both stacks.
func makeStacks(s Settings) (*Data, *App) {
	s.Code = code
	return build(awscdk.NewApp(nil), s)
}

// TestNothingIsLost: the table and the buckets are kept, protected, encrypted,
// and under the logical ids that a deployment knows them by.
func TestNothingIsLost(t *testing.T) {
	all := synth(t, production)
	for id, kind := range map[string]string{"TableCD117FA1": "AWS::DynamoDB::Table",
		"Storage07F31EBC": "AWS::S3::Bucket", "WorkBF636A8B": "AWS::S3::Bucket", "EventsD32975C2": "AWS::S3::Bucket",
		"Derived2F7F6E82": "AWS::S3::Bucket"} {
		r, there := all[id]
		if !there || r.Type != kind {
			t.Errorf("there is no %s %s; a new logical id would replace what is stored", kind, id)
			continue
		}
		if r.DeletionPolicy != "Retain" {
			t.Errorf("%s goes with its stack", id)
		}
	}
	table := all["TableCD117FA1"].Properties
	recovery, _ := table["PointInTimeRecoverySpecification"].(map[string]any)
	sse, _ := table["SSESpecification"].(map[string]any)
	if recovery["PointInTimeRecoveryEnabled"] != true || table["DeletionProtectionEnabled"] != true ||
		sse["SSEEnabled"] != true || table["StreamSpecification"] == nil {
		t.Errorf("the table is not protected: %v", table)
	}
	for id, r := range of(all, "AWS::S3::Bucket") {
		versioning, _ := r.Properties["VersioningConfiguration"].(map[string]any)
		kept := versioning["Status"] == "Enabled"
		if kept != (strings.HasPrefix(id, "Storage") || strings.HasPrefix(id, "Events")) ||
			r.Properties["BucketEncryption"] == nil || r.Properties["PublicAccessBlockConfiguration"] == nil {
			t.Errorf("%s: %v", id, r.Properties)
		}
	}
}

// TestChainOfTimes: the chain holds in the template, stage by stage.
func TestChainOfTimes(t *testing.T) {
	for name := range ingest.Timings {
		s := production
		s.Timing = name
		all := synth(t, s)
		machines, _ := json.Marshal(of(all, "AWS::StepFunctions::StateMachine"))
		for _, st := range ingest.Stages {
			want := ingest.Timings[name].Times(st)
			if err := want.Check(); err != nil {
				t.Error(err)
			}
			fn := find(t, all, "AWS::Lambda::Function", "run"+st.Name)
			got := queueTimes(t, all, st.Name, "dead")
			got.Timeout, got.Lease, got.State, got.Grace, got.Budget = secs(fn.Properties["Timeout"]), want.Lease,
				want.State, want.Grace, want.Budget
			if err := got.Check(); err != nil || got != want {
				t.Errorf("%s, %s: the template has %+v, the chain is %+v (%v)", name, st.Name, got, want, err)
			}
			if !strings.Contains(string(machines), `TimeoutSeconds\":`+jsonNumber(want.State.Seconds())) {
				t.Errorf("%s: no state waits %s", st.Name, want.State)
			}
		}
		wake := queueTimes(t, all, "wake", "wakedead")
		wake.Timeout = secs(find(t, all, "AWS::Lambda::Function", "scheduler").Properties["Timeout"])
		if wake != ingest.Timings[name].Wake() || !wake.Redrives() {
			t.Errorf("%s: the template has %+v for the scheduler's queue", name, wake)
		}
		eventTimes(t, all, ingest.Timings[name].Events())
		for id, r := range of(all, "AWS::Lambda::EventSourceMapping") {
			scaling, _ := r.Properties["ScalingConfig"].(map[string]any)
			if n := number(scaling["MaximumConcurrency"]); strings.HasPrefix(id, "run") &&
				n < float64(s.Limits.MaxInFlight) {
				t.Errorf("%s runs %v at once; %d are admitted", id, n, s.Limits.MaxInFlight)
			}
		}
	}
}

// queueTimes are the times of a queue in the template. A message moves to the dead letters
// when it would be received once more, and its age counts from when it was first sent
// ("Using dead-letter queues in Amazon SQS").
func queueTimes(t *testing.T, all map[string]resource, name, dead string) ingest.Times {
	t.Helper()
	q := find(t, all, "AWS::SQS::Queue", name).Properties
	redrive, _ := q["RedrivePolicy"].(map[string]any)
	letters := find(t, all, "AWS::SQS::Queue", dead)
	if !strings.Contains(text(redrive["deadLetterTargetArn"]), `["`+dead) {
		t.Errorf("%s: the dead letters go to %v", name, redrive)
	}
	return ingest.Times{Visibility: secs(q["VisibilityTimeout"]), Receives: int(number(redrive["maxReceiveCount"])),
		Retention: secs(q["MessageRetentionPeriod"]), DeadLetter: secs(letters.Properties["MessageRetentionPeriod"])}
}

func secs(v any) time.Duration { return time.Duration(number(v)) * time.Second }

func jsonNumber(f float64) string { b, _ := json.Marshal(f); return string(b) }

// find returns the one resource of a type whose logical id is name and a hash.
func find(t *testing.T, all map[string]resource, kind, name string) resource {
	t.Helper()
	for id, r := range of(all, kind) {
		if len(id) == len(name)+8 && strings.HasPrefix(id, name) {
			return r
		}
	}
	t.Fatalf("no %s %s", kind, name)
	return resource{}
}

// TestWhoReadsStorage: each function that asks the storage root may list and read it.
// Without the list a missing object looks like a forbidden one.
func TestWhoReadsStorage(t *testing.T) {
	may := map[string]string{}
	for _, r := range of(synth(t, production), "AWS::IAM::Policy") {
		roles, _ := json.Marshal(r.Properties["Roles"])
		doc, _ := r.Properties["PolicyDocument"].(map[string]any)
		statements, _ := doc["Statement"].([]any)
		for _, st := range statements {
			text, _ := json.Marshal(st)
			if strings.Contains(string(text), "Storage07F31EBC") {
				may[string(roles)] += string(text)
			}
		}
	}
	for _, name := range []string{"estimate", "download", "process", "store", "record", "report", "api", "scheduler"} {
		granted := ""
		for roles, text := range may {
			if strings.Contains(strings.ToLower(roles), name+"servicerole") {
				granted += text
			}
		}
		if !strings.Contains(granted, "s3:GetObject") || !strings.Contains(granted, "s3:List") {
			t.Errorf("%s is granted %s", name, granted)
		}
	}
}

// TestIdleCosts: bench/cost_test.go counts on these numbers.
func TestIdleCosts(t *testing.T) {
	all := synth(t, heard())
	alarms := of(all, "AWS::CloudWatch::Alarm")
	polled := 0
	for _, m := range of(all, "AWS::Lambda::EventSourceMapping") {
		if m.Properties["StartingPosition"] == nil { // streams are read free of charge
			polled++
		}
	}
	if n := len(alarms); n != 25 || polled != len(ingest.Stages)+1 {
		t.Errorf("%d alarms and %d polled queues: what idling costs has changed", n, polled)
	}
}

// TestMailsAreSent: who owes a mail or sends it again may do so, from the address or
// from its domain, reads the report, and links to the API.
func TestMailsAreSent(t *testing.T) {
	s := production
	s.MailFrom = "archive@example.org"
	all := synth(t, s)
	roles := map[string]string{}
	for id, r := range of(all, "AWS::IAM::Policy") {
		doc, _ := json.Marshal(r.Properties["PolicyDocument"])
		roles[id] = string(doc)
	}
	for _, name := range []string{"rununpack", "runreport", "scheduler"} {
		f := find(t, all, "AWS::Lambda::Function", name)
		env, _ := json.Marshal(f.Properties["Environment"])
		if !strings.Contains(string(env), boot.EnvAPI) {
			t.Errorf("%s does not know the API's URL", name)
		}
		role := find(t, all, "AWS::IAM::Policy", name+"ServiceRoleDefaultPolicy")
		doc, _ := json.Marshal(role.Properties["PolicyDocument"])
		for _, grant := range []string{"ses:SendRawEmail", ":identity/archive@example.org", ":identity/example.org",
			":configuration-set/*", "cloudwatch:PutMetricData"} {
			if !strings.Contains(string(doc), grant) {
				t.Errorf("%s may not send mails: no %s", name, grant)
			}
		}
		if name != "rununpack" && !strings.Contains(string(doc), "/reports/*") {
			t.Errorf("%s may not read reports", name)
		}
	}
	alarms, _ := json.Marshal(of(all, "AWS::CloudWatch::Alarm"))
	if !strings.Contains(string(alarms), "MailFailures") {
		t.Error("nobody hears of mails that cannot be sent")
	}
	for id, doc := range roles {
		if mails := strings.Contains(doc, "ses:"); mails != (strings.HasPrefix(id, "scheduler") ||
			strings.HasPrefix(id, "rununpack") || strings.HasPrefix(id, "runreport")) {
			t.Errorf("%s: may send mails is %v", id, mails)
		}
	}
}

// ofConsoles are how many methods the console has, with the one that leads to it.
var ofConsoles = len(consolePaths)*len(consoleMethods) + 1

// TestOpenLocallyOnly: on AWS every method needs a token but those of the API's description, where one signs in, and
// those of the console, which has sessions.
func TestOpenLocallyOnly(t *testing.T) {
	all, open := synth(t, production), 0
	for id, r := range of(all, "AWS::ApiGateway::Method") {
		if demandsToken(all, r) {
			continue
		}
		open++
		about, ofConsole := strings.Contains(text(r.Properties["ResourceId"]), "RootResourceId"), false
		for path, part := range of(all, "AWS::ApiGateway::Resource") {
			named := part.Properties["PathPart"]
			about = about || refers(r.Properties["ResourceId"], path) &&
				(named == "{file}" || named == "sign-in" || slices.Contains(openPaths, fmt.Sprint(named)))
			ofConsole = ofConsole || refers(r.Properties["ResourceId"], path) &&
				(named == "console" || named == "{path+}")
		}
		method := fmt.Sprint(r.Properties["HttpMethod"])
		if (!about || method != "GET") && (!ofConsole || !slices.Contains(consoleMethods, method)) {
			t.Errorf("%s is open to everybody", id)
		}
	}
	if open != len(openPaths)+2+ofConsoles {
		t.Errorf("%d methods need no token", open)
	}
	for id, stage := range of(all, "AWS::ApiGateway::Stage") {
		settings := text(stage.Properties["MethodSettings"])
		if !strings.Contains(settings, `"ResourcePath":"/*","ThrottlingBurstLimit":100,"ThrottlingRateLimit":50`) {
			t.Errorf("%s: the rate of calls has no bound: %s", id, settings)
		}
		for _, path := range []string{"/", "/~1docs", "/~1docs~1{file}", "/~1openapi.json", "/~1openapi.yaml"} {
			if !strings.Contains(settings, `"ResourcePath":"`+path+`","ThrottlingBurstLimit":50,"ThrottlingRateLimit":10`) {
				t.Errorf("%s: the rate of %s has no bound: %s", id, path, settings)
			}
		}
	}
	env, _ := json.Marshal(of(synth(t, production), "AWS::Lambda::Function"))
	for _, v := range []string{"ARCHIVIST_ALLOW", "ARCHIVIST_CRASHES"} {
		if strings.Contains(string(env), v) {
			t.Errorf("%s is set outside of a local stack", v)
		}
	}
}

// TestGatewayAnswersProblems: where a request does not reach the function, the answer is a
// problem document all the same.
func TestGatewayAnswersProblems(t *testing.T) {
	all := synth(t, production)
	seen := map[string]bool{}
	for id, r := range of(all, "AWS::ApiGateway::GatewayResponse") {
		name := fmt.Sprint(r.Properties["ResponseType"])
		seen[name] = true
		detail := cmp.Or(api.Gateway[name].Detail, "Forbidden")
		body := strings.ReplaceAll(text(r.Properties["ResponseTemplates"].(map[string]any)["application/json"]),
			"$context.error.messageString", `\"Forbidden\"`)
		var template string
		var p v1.Problem
		if err := json.Unmarshal([]byte(body), &template); err != nil {
			t.Fatalf("%s: %s: %v", id, body, err)
		}
		if err := json.Unmarshal([]byte(template), &p); err != nil || p.Type != api.Gateway[name].Type ||
			fmt.Sprint(p.Status) != r.Properties["StatusCode"] || p.Detail != detail {
			t.Errorf("%s: %+v, %v", id, p, err)
		}
		asks := strings.Contains(text(r.Properties["ResponseParameters"]), "WWW-Authenticate")
		if asks != (p.Status == 401) {
			t.Errorf("%s: it says how to call: %v", id, asks)
		}
		if !strings.Contains(text(r.Properties["ResponseParameters"]), "application/problem+json") {
			t.Errorf("%s: %v", id, r.Properties["ResponseParameters"])
		}
	}
	for _, name := range []string{"DEFAULT_4XX", "DEFAULT_5XX", "UNAUTHORIZED", "AUTHORIZER_FAILURE",
		"AUTHORIZER_CONFIGURATION_ERROR", "THROTTLED", "INTEGRATION_TIMEOUT"} {
		if !seen[name] {
			t.Errorf("the gateway answers %s in its own form", name)
		}
	}
}
