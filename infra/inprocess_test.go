package main

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"archivist/pkg/app/boot"
	"archivist/pkg/app/inprocess"
)

// everything has all that a deployment can have besides containers and a search domain.
func everything() (Settings, inprocess.Settings) {
	s := researched()
	s.MailFrom, s.Contact, s.Revisions, s.ReplicaBucket = "archive@example.org", "https://example.org", true, "copies"
	s.Resolver, s.Sources, s.Origins = true, []string{"digitisation"}, []string{"https://example.org"}
	s.EZID, s.EZIDTarget = "https://ezid.example.org", "https://example.org"
	s.Scanner = inprocess.ARN("scanner")
	s.Targets = []string{inprocess.ARN("words")}
	s.Issuer = Issuer{URL: "https://login.example.org", Audience: "archivist", Claim: "groups", Client: "cli",
		Scopes: "openid"}
	return s, inprocess.Settings{Timing: s.Timing, Limits: s.Limits, NAAN: s.NAAN, Shoulder: s.Shoulder,
		MailFrom: s.MailFrom, Contact: s.Contact, Targets: s.Targets, Projects: s.Projects, ResearchTimes: s.TimesText,
		Revisions: true, ReplicaBucket: s.ReplicaBucket, Sources: s.Sources, Origins: s.Origins, EZID: s.EZID,
		Scanner: s.Scanner, EZIDTarget: s.EZIDTarget, Index: &inprocess.NoIndex{},
		Issuer: inprocess.Issuer{URL: s.Issuer.URL, Audience: s.Issuer.Audience,
			Claims: []string{s.Issuer.Claim}, Client: s.Issuer.Client,
			Scopes: []string{s.Issuer.Scopes}}}
}

// TestProcessIsTheDeployment: the system in one process has the functions, the queues, the event sources and the rules
// of the template, with the same time-outs, variables, retries, numbers and targets.
func TestProcessIsTheDeployment(t *testing.T) {
	deployed, inOne := everything()
	all := synth(t, deployed)
	inOne.Dir = t.TempDir()
	system, err := inprocess.Start(inOne)
	if err != nil {
		t.Fatal(err)
	}
	defer system.Close()
	for kind, pair := range map[string][2][]string{
		"functions": {templateFunctions(all), processFunctions(t, system)},
		"queues":    {templateQueues(all), processQueues(t, system)},
		"sources":   {templateSources(all), processSources(t, system)},
		"rules":     {templateRules(all), processRules(t, system)},
	} {
		slices.Sort(pair[0])
		slices.Sort(pair[1])
		if len(pair[0]) < 6 {
			t.Errorf("the template has only these %s: %v", kind, pair[0])
		}
		for i := range max(len(pair[0]), len(pair[1])) {
			if i >= len(pair[0]) || i >= len(pair[1]) || pair[0][i] != pair[1][i] {
				t.Errorf("%s: the template has\n%s\nthe process has\n%s", kind, strings.Join(pair[0], "\n"),
					strings.Join(pair[1], "\n"))
				break
			}
		}
	}
}

// hash is what the CDK puts behind a logical id.
var hash = regexp.MustCompile(`(queue)?[0-9A-F]{8}$`)

// plain is the name of a resource without what logical ids do not have.
func plain(name string) string {
	return strings.ReplaceAll(strings.TrimPrefix(name, "Archivist-"), "-", "")
}

// elsewhere are variables that only one of them sets: where the API is depends on the platform, private networks
// are for local stacks, only a function on AWS has a temporary folder of its own, and tenants, and the process has no
// roles and no alarms.
var elsewhere = []string{boot.EnvAPI, boot.EnvAllow, boot.EnvOwnTemp, boot.EnvTenants, boot.EnvTaskRole,
	boot.EnvAlarms, "AWS_ENDPOINT_URL", "AWS_LAMBDA_FUNCTION_NAME"}

// shown is a function with its time-out and the names of its variables.
func shown(name string, timeout float64, env map[string]any) string {
	var names []string
	for _, n := range slices.Sorted(maps.Keys(env)) {
		if env[n] != "" && !slices.Contains(elsewhere, n) {
			names = append(names, n)
		}
	}
	return fmt.Sprint(name, " ", timeout, " ", strings.Join(names, " "))
}

func templateFunctions(all map[string]resource) (out []string) {
	for id, r := range of(all, "AWS::Lambda::Function") {
		env, _ := r.Properties["Environment"].(map[string]any)
		variables, _ := env["Variables"].(map[string]any)
		if variables[boot.EnvWork] != nil { // not the CDK's own
			out = append(out, shown(hash.ReplaceAllString(id, ""), number(r.Properties["Timeout"]), variables))
		}
	}
	return out
}

func processFunctions(t *testing.T, s *inprocess.System) (out []string) {
	t.Helper()
	client := lambda.NewFromConfig(s.Config())
	list, err := client.ListFunctions(t.Context(), &lambda.ListFunctionsInput{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range list.Functions {
		c, err := client.GetFunctionConfiguration(t.Context(),
			&lambda.GetFunctionConfigurationInput{FunctionName: f.FunctionName})
		if err != nil {
			t.Fatal(err)
		}
		env := map[string]any{}
		for name, value := range c.Environment.Variables {
			env[name] = value
		}
		out = append(out, shown(plain(*f.FunctionName), float64(*f.Timeout), env))
	}
	return out
}

func templateQueues(all map[string]resource) (out []string) {
	for id, r := range of(all, "AWS::SQS::Queue") {
		redrive, _ := r.Properties["RedrivePolicy"].(map[string]any)
		visibility := number(r.Properties["VisibilityTimeout"])
		if visibility == 0 {
			visibility = (30 * time.Second).Seconds() // SQS's own
		}
		out = append(out, fmt.Sprint(hash.ReplaceAllString(id, ""), " ", visibility, " ",
			int(number(r.Properties["MessageRetentionPeriod"])), " ", number(redrive["maxReceiveCount"])))
	}
	return out
}

func processQueues(t *testing.T, s *inprocess.System) (out []string) {
	t.Helper()
	client := sqs.NewFromConfig(s.Config())
	list, err := client.ListQueues(t.Context(), &sqs.ListQueuesInput{})
	if err != nil {
		t.Fatal(err)
	}
	for _, url := range list.QueueUrls {
		got, err := client.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: &url,
			AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll}})
		if err != nil {
			t.Fatal(err)
		}
		var receives int // 0 without a redrive policy
		_, policy, _ := strings.Cut(got.Attributes["RedrivePolicy"], `"maxReceiveCount":`)
		_, _ = fmt.Sscan(strings.TrimSuffix(policy, "}"), &receives)
		out = append(out, fmt.Sprint(plain(url[strings.LastIndex(url, "/")+1:]), " ",
			got.Attributes["VisibilityTimeout"], " ", got.Attributes["MessageRetentionPeriod"], " ", receives))
	}
	return out
}

func templateSources(all map[string]resource) (out []string) {
	for _, r := range of(all, "AWS::Lambda::EventSourceMapping") {
		p := r.Properties
		if p["StartingPosition"] != nil { // the stream; TestRelayIsFed
			continue
		}
		function, _ := p["FunctionName"].(map[string]any)["Ref"].(string)
		queue := p["EventSourceArn"].(map[string]any)["Fn::GetAtt"].([]any)[0].(string)
		scaling, _ := p["ScalingConfig"].(map[string]any)
		out = append(out, fmt.Sprint(hash.ReplaceAllString(queue, ""), " to ", hash.ReplaceAllString(function, ""), " ",
			number(p["BatchSize"]), " at ", number(scaling["MaximumConcurrency"])))
	}
	return out
}

func processSources(t *testing.T, s *inprocess.System) (out []string) {
	t.Helper()
	list, err := lambda.NewFromConfig(s.Config()).ListEventSourceMappings(t.Context(),
		&lambda.ListEventSourceMappingsInput{})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range list.EventSourceMappings {
		queue, function := *m.EventSourceArn, *m.FunctionArn
		out = append(out, fmt.Sprint(plain(queue[strings.LastIndex(queue, ":")+1:]), " to ",
			plain(function[strings.LastIndex(function, ":")+1:]), " ", *m.BatchSize, " at ",
			*m.ScalingConfig.MaximumConcurrency))
	}
	return out
}

// templateRules are the rules with the functions that they invoke.
func templateRules(all map[string]resource) (out []string) {
	for id, r := range of(all, "AWS::Events::Rule") {
		for _, target := range list(r.Properties["Targets"]) {
			function := target["Arn"].(map[string]any)["Fn::GetAtt"].([]any)[0].(string)
			out = append(out, hash.ReplaceAllString(id, "")+" invokes "+hash.ReplaceAllString(function, ""))
		}
	}
	return out
}

func processRules(t *testing.T, s *inprocess.System) (out []string) {
	t.Helper()
	client := eventbridge.NewFromConfig(s.Config())
	list, err := client.ListRules(t.Context(), &eventbridge.ListRulesInput{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range list.Rules {
		got, err := client.ListTargetsByRule(t.Context(), &eventbridge.ListTargetsByRuleInput{Rule: r.Name})
		if err != nil {
			t.Fatal(err)
		}
		for _, target := range got.Targets {
			out = append(out, *r.Name+" invokes "+plain(*target.Arn))
		}
	}
	return out
}
