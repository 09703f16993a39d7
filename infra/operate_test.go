package main

import (
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"archivist/pkg/api/status"
	"archivist/pkg/app/boot"
	"archivist/pkg/ingest"
)

// heard is a deployment with everything that can be heard of.
func heard() Settings {
	s := production
	s.AlarmMail, s.MailFrom = "ops@example.org", "archive@example.org"
	return s
}

// list is a list of objects of a template.
func list(v any) (out []map[string]any) {
	entries, _ := v.([]any)
	for _, e := range entries {
		m, _ := e.(map[string]any)
		out = append(out, m)
	}
	return out
}

func text(v any) string { b, _ := json.Marshal(v); return string(b) }

// refers reports whether a value is a reference to a resource: its Ref or one of its attributes.
func refers(v any, id string) bool {
	t := text(v)
	return strings.Contains(t, `{"Ref":"`+id+`"}`) || strings.Contains(t, `{"Fn::GetAtt":["`+id+`",`)
}

// admits reports whether a resource's policy lets a service do something: a statement allows
// it, and none denies it but for requests without TLS, which services do not send.
func admits(policy any, service, action, target string) (conditions string, ok bool) {
	doc, _ := policy.(map[string]any)
	for _, s := range list(doc["Statement"]) {
		actions := text(s["Action"])
		all := action[:strings.Index(action, ":")] + ":*"
		about := strings.Contains(actions, `"`+action+`"`) || strings.Contains(actions, `"`+all+`"`)
		switch {
		case !about || !refers(s["Resource"], target):
		case s["Effect"] == "Deny" && !strings.Contains(text(s["Condition"]), `"aws:SecureTransport":"false"`):
			return "", false
		case s["Effect"] == "Allow" && strings.Contains(text(s["Principal"]), `"`+service+`"`):
			conditions, ok = conditions+text(s["Condition"]), true
		}
	}
	return conditions, ok
}

// TestAlarmsReachSomebody: CloudWatch may publish each alarm to its topic, for this account
// and its alarms only, and the topic has a subscriber. A topic's own policy replaces the
// default one ("Why didn't I receive an SNS notification for my CloudWatch alarm trigger?",
// "Example cases for Amazon SNS access control").
func TestAlarmsReachSomebody(t *testing.T) {
	all := synth(t, heard())
	alarms := of(all, "AWS::CloudWatch::Alarm")
	if len(alarms) == 0 {
		t.Fatal("no alarms")
	}
	for id, alarm := range alarms {
		reached := 0
		for topic := range of(all, "AWS::SNS::Topic") {
			if !refers(alarm.Properties["AlarmActions"], topic) {
				continue
			}
			reached++
			conditions := ""
			for _, p := range of(all, "AWS::SNS::TopicPolicy") {
				if refers(p.Properties["Topics"], topic) {
					conditions, _ = admits(p.Properties["PolicyDocument"], "cloudwatch.amazonaws.com",
						"sns:Publish", topic)
				}
			}
			if !strings.Contains(conditions, `"aws:SourceAccount":{"Ref":"AWS::AccountId"}`) ||
				!strings.Contains(conditions, ":alarm:*") {
				t.Errorf("%s cannot publish to %s, or others can: %q", id, topic, conditions)
			}
			subscribed := false
			for _, sub := range of(all, "AWS::SNS::Subscription") {
				subscribed = subscribed || refers(sub.Properties["TopicArn"], topic) &&
					sub.Properties["Endpoint"] == "ops@example.org"
			}
			if !subscribed {
				t.Errorf("nobody is subscribed to %s", topic)
			}
		}
		if reached == 0 {
			t.Errorf("%s tells nobody", id)
		}
	}
}

// TestAlarmsLeadSomewhere: the status knows of each alarm what shows more, and of no other.
func TestAlarmsLeadSomewhere(t *testing.T) {
	s := researched()
	s.Revisions = true
	alarms := of(synth(t, s), "AWS::CloudWatch::Alarm")
	for id := range alarms {
		if _, known := status.CommandOf("Archivist-" + id + "-1ABCDEFGHIJKL"); !known {
			t.Errorf("the status does not know the alarm %s: add it to ofAlarms in pkg/api/status", id)
		}
	}
	if len(alarms) != status.KnownAlarms {
		t.Errorf("%d alarms, and the status knows %d", len(alarms), status.KnownAlarms)
	}
}

// TestServicesMayCall: what one service does to another's resource is allowed there: rules
// invoke functions and write dead letters, the API invokes its function, queues feed
// functions whose roles may receive ("Using resource-based policies for Amazon EventBridge",
// "Using dead-letter queues to process undelivered events in EventBridge").
func TestServicesMayCall(t *testing.T) {
	all := synth(t, heard())
	invokes := func(service, fn, source string) bool {
		for _, p := range of(all, "AWS::Lambda::Permission") {
			may := p.Properties["Principal"] == service && p.Properties["Action"] == "lambda:InvokeFunction"
			if may && refers(p.Properties["FunctionName"], fn) &&
				strings.Contains(text(p.Properties["SourceArn"]), `"`+source+`"`) {
				return true
			}
		}
		return false
	}
	for rule, r := range of(all, "AWS::Events::Rule") {
		targets := list(r.Properties["Targets"])
		if len(targets) == 0 {
			t.Errorf("%s has no target", rule)
		}
		for _, to := range targets {
			for fn := range of(all, "AWS::Lambda::Function") {
				if refers(to["Arn"], fn) && !invokes("events.amazonaws.com", fn, rule) {
					t.Errorf("%s may not invoke %s", rule, fn)
				}
			}
			written := false
			for q := range of(all, "AWS::SQS::Queue") {
				if refers(to["DeadLetterConfig"], q) {
					conditions, ok := queueAdmits(all, q, "events.amazonaws.com")
					written = ok && strings.Contains(conditions, `"`+rule+`"`)
				}
			}
			if !written {
				t.Errorf("%s: an event that its target does not take is lost", rule)
			}
		}
	}
	for id, m := range of(all, "AWS::ApiGateway::Method") {
		for fn := range of(all, "AWS::Lambda::Function") {
			for api := range of(all, "AWS::ApiGateway::RestApi") {
				if strings.Contains(text(m.Properties["Integration"]), `"`+fn+`"`) &&
					!invokes("apigateway.amazonaws.com", fn, api) {
					t.Errorf("%s may not invoke %s", id, fn)
				}
			}
		}
	}
	for id, m := range of(all, "AWS::Lambda::EventSourceMapping") {
		for q := range of(all, "AWS::SQS::Queue") {
			if refers(m.Properties["EventSourceArn"], q) && !fedBy(all, m.Properties["FunctionName"], q) {
				t.Errorf("%s: the function may not receive from %s", id, q)
			}
		}
	}
}

func queueAdmits(all map[string]resource, queue, service string) (conditions string, ok bool) {
	for _, p := range of(all, "AWS::SQS::QueuePolicy") {
		if refers(p.Properties["Queues"], queue) {
			return admits(p.Properties["PolicyDocument"], service, "sqs:SendMessage", queue)
		}
	}
	return "", false
}

// fedBy reports whether the role of a function may do with a queue what its event source
// does ("Creating and configuring an Amazon SQS event source mapping").
func fedBy(all map[string]resource, function any, queue string) bool {
	for id, f := range of(all, "AWS::Lambda::Function") {
		if !refers(function, id) {
			continue
		}
		for role := range of(all, "AWS::IAM::Role") {
			for _, p := range of(all, "AWS::IAM::Policy") {
				if !refers(f.Properties["Role"], role) || !refers(p.Properties["Roles"], role) {
					continue
				}
				doc, _ := p.Properties["PolicyDocument"].(map[string]any)
				for _, st := range list(doc["Statement"]) {
					may := refers(st, queue)
					for _, action := range []string{"sqs:ReceiveMessage", "sqs:DeleteMessage",
						"sqs:GetQueueAttributes"} {
						may = may && strings.Contains(text(st), action)
					}
					if may {
						return true
					}
				}
			}
		}
	}
	return false
}

// TestAccessLogHasARole: a stage with an access log is refused in an account without a role
// for it ("Set up CloudWatch logging for REST APIs in API Gateway"). The role is made before
// the stage and outlives the stack: it is the account's, for every API of the region
// (AWS::ApiGateway::Account in the CloudFormation reference).
func TestAccessLogHasARole(t *testing.T) {
	all := synth(t, production)
	accounts := of(all, "AWS::ApiGateway::Account")
	if len(accounts) != 1 {
		t.Fatalf("%d roles for the logs of APIs", len(accounts))
	}
	for id, account := range accounts {
		for stage, s := range of(all, "AWS::ApiGateway::Stage") {
			if s.Properties["AccessLogSetting"] == nil || !slices.Contains(s.DependsOn, id) {
				t.Errorf("%s has no access log or does not wait for its role: %v", stage, s.DependsOn)
			}
		}
		role := ""
		for r, made := range of(all, "AWS::IAM::Role") {
			logs := strings.Contains(text(made.Properties), "AmazonAPIGatewayPushToCloudWatchLogs")
			if refers(account.Properties["CloudWatchRoleArn"], r) && logs && made.DeletionPolicy == "Retain" {
				role = r
			}
		}
		if role == "" || account.DeletionPolicy != "Retain" {
			t.Errorf("%s: the role %q is not there, may not log, or goes with the stack", id, role)
		}
	}
	s := production
	s.LogRoleExists = true
	if n := len(of(synth(t, s), "AWS::ApiGateway::Account")); n != 0 {
		t.Error("the account's own role is replaced")
	}
}

// TestEveryMetricIsHeard: each metric that the code puts has an alarm, and each alarm on a
// metric of ours is on one that the code puts. What is counted of events and of components has one in
// common: package boot says so of each.
func TestEveryMetricIsHeard(t *testing.T) {
	put := map[string]bool{boot.EventProblems: true}
	// A constant is named as its metric.
	pattern := regexp.MustCompile(`\b(?:Metric|m\.Add)\((?:queue\.|awserror\.)?([A-Z][A-Za-z]+)`)
	err := filepath.WalkDir("../pkg", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		code, err := os.ReadFile(path)
		for _, m := range pattern.FindAllStringSubmatch(string(code), -1) {
			put[m[1]] = true
		}
		return err
	})
	if err != nil || len(put) == 0 {
		t.Fatal(put, err)
	}
	common, err := os.ReadFile("../pkg/app/boot/metrics.go")
	if err != nil {
		t.Fatal(err)
	}
	maps.DeleteFunc(put, func(name string, _ bool) bool { return strings.Contains(string(common), "."+name) })
	watched := map[string]bool{}
	for _, a := range of(synth(t, heard()), "AWS::CloudWatch::Alarm") {
		if a.Properties["Namespace"] == "Archivist" {
			name, _ := a.Properties["MetricName"].(string)
			watched[name] = true
		}
	}
	for name := range put {
		if !watched[name] {
			t.Errorf("the metric %s has no alarm", name)
		}
	}
	for name := range watched {
		if !put[name] {
			t.Errorf("the metric %s of an alarm is never put", name)
		}
	}
}

// TestSilenceIsHeard: an alarm is raised when the scheduler does not run. Lambda puts no zeros,
// so missing data must breach ("Configuring how CloudWatch alarms treat missing data"); for
// all others it is good news.
func TestSilenceIsHeard(t *testing.T) {
	silent := 0
	for id, a := range of(synth(t, heard()), "AWS::CloudWatch::Alarm") {
		p := a.Properties
		if p["TreatMissingData"] == "notBreaching" {
			continue
		}
		silent++
		if p["TreatMissingData"] != "breaching" || p["MetricName"] != "Invocations" || p["Statistic"] != "Sum" ||
			p["ComparisonOperator"] != "LessThanThreshold" || number(p["Threshold"]) != 1 ||
			number(p["Period"]) != 300 ||
			!strings.Contains(text(p["Dimensions"]), `{"Ref":"scheduler`) {
			t.Errorf("%s: %v", id, p)
		}
	}
	if silent != 1 {
		t.Errorf("%d alarms on silence", silent)
	}
}

// TestServicesAreHeard: what AWS counts of us has an alarm: errors of the API, throttles,
// executions and mails that fail, dead letters.
func TestServicesAreHeard(t *testing.T) {
	watched, all := map[string]int{}, synth(t, heard())
	for _, a := range of(all, "AWS::CloudWatch::Alarm") {
		watched[text(a.Properties["Namespace"])+text(a.Properties["MetricName"])]++
		for _, d := range list(a.Properties["Dimensions"]) {
			api := find(t, all, "AWS::ApiGateway::RestApi", "Api").Properties["Name"]
			if d["Name"] == "ApiName" && d["Value"] != api {
				t.Errorf("an alarm watches the API %v, which is not there", d["Value"])
			}
		}
		if a.Properties["MetricName"] == nil {
			t.Errorf("an alarm on several metrics costs as much as one on each: %v", a.Properties["AlarmDescription"])
		}
	}
	for name, n := range map[string]int{
		`"AWS/ApiGateway""5XXError"`: 1, `"AWS/Lambda""Throttles"`: 1, `"AWS/Lambda""Errors"`: 2,
		`"AWS/DynamoDB""ThrottledRequests"`: 2, `"AWS/States""ExecutionsFailed"`: 1,
		`"AWS/SES""Reputation.BounceRate"`: 1, `"AWS/SES""Reputation.ComplaintRate"`: 1,
		`"AWS/SQS""ApproximateNumberOfMessagesVisible"`: 2,
	} {
		if watched[name] != n {
			t.Errorf("%d alarms on %s, expected %d", watched[name], name, n)
		}
	}
}

// TestDashboardIsFree: the dashboard has at most the 50 metrics that are free (Amazon
// CloudWatch Pricing), and shows each stage.
func TestDashboardIsFree(t *testing.T) {
	for _, d := range of(synth(t, heard()), "AWS::CloudWatch::Dashboard") {
		join, _ := d.Properties["DashboardBody"].(map[string]any)["Fn::Join"].([]any)
		body := ""
		for _, part := range join[1].([]any) {
			if s, ok := part.(string); ok {
				body += s
			} else {
				body += "x"
			}
		}
		var board struct {
			Widgets []struct{ Properties struct{ Metrics []any } }
		}
		if err := json.Unmarshal([]byte(body), &board); err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, w := range board.Widgets {
			n += len(w.Properties.Metrics)
		}
		if n == 0 || n > 50 {
			t.Errorf("%d metrics", n)
		}
		t.Logf("%d metrics", n)
		for _, st := range ingest.Stages {
			if !strings.Contains(body, st.Name+": oldest message") {
				t.Errorf("%s is not shown", st.Name)
			}
		}
	}
}
