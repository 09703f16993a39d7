package main

import (
	"fmt"
	"maps"
	"regexp"
	"strings"
	"testing"

	"archivist/pkg/app/boot"
)

func given(context map[string]string) (Settings, error) {
	all := map[string]any{"@aws-cdk/core:checkSecretUsage": true, "aws:cdk:bundling-stacks": []any{"**"}}
	for name, text := range context {
		all[name] = text
	}
	return read(all)
}

// TestUnknownSettings: what is no setting is refused, with the one that may have been meant.
func TestUnknownSettings(t *testing.T) {
	for name, says := range map[string]string{
		"revisionqueue": "revisionqueue: there is no such setting; did you mean revisionQueue?",
		"fixtyDays":     "fixtyDays: there is no such setting; did you mean fixityDays?",
		"colour":        "colour: there is no such setting",
	} {
		all := maps.Clone(enough)
		all[name] = "true"
		if _, err := given(all); err == nil || err.Error() != says {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := read(map[string]any{"naan": "13030", "alarmMail": "none", "maxInFlight": 20}); err == nil ||
		err.Error() != "maxInFlight: found 20; expected a text" {
		t.Errorf("a number: %v", err)
	}
}

// enough is what a deployment to AWS has to say.
var enough = map[string]string{"naan": "13030", "alarmMail": "ops@example.org"}

// TestWhatIsLeftOut: a deployment to AWS says whose ARKs it mints and who hears of alarms;
// tests say that they are tests. Locally nothing is needed.
func TestWhatIsLeftOut(t *testing.T) {
	if s, err := given(enough); err != nil || s.NAAN != "13030" || s.AlarmMail != "ops@example.org" ||
		s.Tags["application"] != "archivist" {
		t.Errorf("%+v, %v", s, err)
	}
	if s, err := given(map[string]string{"local": "true", "timing": "quick"}); err != nil || s.NAAN != "99999" ||
		s.AlarmMail != "" {
		t.Errorf("%+v, %v", s, err)
	}
	if s, err := given(map[string]string{"naan": "99999", "testArks": "true", "alarmMail": "none"}); err != nil ||
		s.AlarmMail != "" || s.NAAN != "99999" {
		t.Errorf("%+v, %v", s, err)
	}
	_, err := given(nil)
	if err == nil || !strings.Contains(err.Error(), "naan:") || !strings.Contains(err.Error(), "alarmMail:") {
		t.Errorf("nothing was given: %v", err)
	}
}

// TestWrongSettings: each wrong setting is named with what was found and what is expected.
// An event source runs at most 1,000 invocations at once (AWS::Lambda::EventSourceMapping
// ScalingConfig in the CloudFormation reference); numbers that overflow are refused.
func TestWrongSettings(t *testing.T) {
	for _, c := range []struct{ name, value, says string }{
		{"naan", "99999", "testArks"},
		{"naan", "12345", "testArks"},
		{"naan", "abc", "an ARK"},
		{"shoulder", "fk/4", "an ARK"},
		{"alarmMail", "ops", "a mail address"},
		{"mailFrom", "Archive <a@example.org>", "a mail address"},
		{"contact", "archive.example.org", "e.g. https://archive.example.org"},
		{"contact", "javascript:alert(1)", "e.g. https://archive.example.org"},
		{"timing", "quick", "expected production"},
		{"crashes", "/tmp/x", "local"}, {"authorizer", "none", "local"},
		{"maxInFlight", "1001", "1 to 1000"},
		{"maxInFlight", "0", "1 to 1000"},
		{"maxInFlight", "ten", "a whole number"},
		{"maxInFlight", "10x", "a whole number"},
		{"share", "-1", "0 to 1000"},
		{"spaceGiB", "9000000000", "1 to"},
		{"reserveGiB", "20000", "0 to 10240"},
		{"failedDays", "200000", "0 to"},
		{"agingMinutes", "43201", "0 to 43200"},
		{"keepDays", "-1", "0 to"},
		{"table", "a b", "name of a table"},
		{"secretsKey", "alias/x", "ARN"},
		{"tableStream", "arn:aws:dynamodb:us-east-1:111122223333:table/x/stream/2026-11-22T12:00:00.000", "the table"},
		{"ezid", "ezid.cdlib.org", "URL of EZID"},
		{"scanFunction", "clamav", "ARN of a function"},
		{"sourceBuckets", "s3://scans", "names of buckets"},
		{"sourceBuckets", strings.Repeat("scans,", 20) + "scans", "at most 20"},
		{"consumerTargets", "my-function", "ARNs of functions"},
		{"consumerTargets", "arn:aws:lambda:us-east-1:111122223333:function:*", "ARNs of functions"},
		{"consumerTargets", "https://sqs.us-east-1.amazonaws.com/111122223333/q.fifo", "standard queues"},
		{"consumerTargets", "https://sqs.us-east-1.example.org/111122223333/q", "standard queues"},
		{"consumerTargets", "http://127.0.0.1:4566/000000000000/q", "standard queues"},
		{"searchDomain", "archive", "endpoint of a domain"},
		{"searchDomain", "https://vpc-archive-a1b2c3d4e5f6g7h8i9j0k1l2m3.eu-west-1.es.amazonaws.com", "not in a VPC"},
		{"searchDomain", "https://search.example.org", "endpoint of a domain"},
		{"searchDomain", domain + "/_dashboards", "endpoint of a domain"},
		{"apiGatewayLogRole", "yes", "existing"},
		{"reserve", "10", "true"},
		{"tags", "cost", "NAME=VALUE"},
		{"tags", "aws:x=y", "NAME=VALUE"},
	} {
		context := maps.Clone(enough)
		context[c.name] = c.value
		_, err := given(context)
		if s := fmt.Sprint(err); !strings.Contains(s, c.name) || !strings.Contains(s, c.says) ||
			strings.Contains(s, "\n") {
			t.Errorf("%s=%s: %v", c.name, c.value, err)
		}
	}
	for name, value := range map[string]string{"maxInFlight": "1000", "failedDays": "0",
		"tags": "cost centre=4711,owner=library", "searchDomain": domain,
		"consumerTargets": "arn:aws:lambda:us-east-1:111122223333:function:f:live, " +
			"https://sqs.eu-west-1.amazonaws.com/111122223333/q",
		"secretsKey": "arn:aws:kms:eu-west-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"} {
		context := maps.Clone(enough)
		context[name] = value
		if _, err := given(context); err != nil {
			t.Errorf("%s=%s: %v", name, value, err)
		}
	}
}

// TestProtected: the stacks of a deployment cannot be deleted by mistake, and their logs
// outlive them; every resource that can have tags has those of the settings.
func TestProtected(t *testing.T) {
	s := heard()
	s.Tags = map[string]string{"application": "archivist", "owner": "library"}
	data, app := makeStacks(s)
	if *data.TerminationProtection() != true || *app.TerminationProtection() != true {
		t.Error("a stack can be deleted")
	}
	all := synth(t, s)
	for id, l := range of(all, "AWS::Logs::LogGroup") {
		if l.DeletionPolicy != "Retain" || number(l.Properties["RetentionInDays"]) == 0 {
			t.Errorf("%s goes with the stack, or stays for ever", id)
		}
	}
	for id, r := range all {
		switch r.Type {
		case "AWS::DynamoDB::Table", "AWS::S3::Bucket", "AWS::Lambda::Function", "AWS::SQS::Queue", "AWS::IAM::Role",
			"AWS::ApiGateway::Stage", "AWS::StepFunctions::StateMachine":
			for _, tag := range []string{`{"Key":"application","Value":"archivist"}`,
				`{"Key":"owner","Value":"library"}`} {
				if tags := text(r.Properties["Tags"]); !strings.Contains(tags, tag) {
					t.Errorf("%s has the tags %s", id, tags)
				}
			}
		}
	}
}

// TestWorkFilesStay: S3 never removes what a waiting or failed job needs, whatever failedDays
// says: an expiration counts from when an object was made ("Managing the lifecycle of
// objects"). An upload is given up only after its job's files are gone. Manifests of
// batches, which may have signed URLs, are removed soon if the system did not, and zip files of versions always.
func TestWorkFilesStay(t *testing.T) {
	s, forgotten := production, 0
	s.Limits.FailedDays = 400
	for id, b := range of(synth(t, s), "AWS::S3::Bucket") {
		cycle, _ := b.Properties["LifecycleConfiguration"].(map[string]any)
		aborts := false
		for _, rule := range list(cycle["Rules"]) {
			days, prefix := rule["ExpirationInDays"], rule["Prefix"]
			if days != nil && prefix != "batches/" && (prefix != "zips/" || !strings.HasPrefix(id, "Derived")) {
				t.Errorf("%s: %v", id, rule)
			}
			if days != nil && number(days) <= 14 {
				forgotten++
			}
			if abort, ok := rule["AbortIncompleteMultipartUpload"].(map[string]any); ok {
				aborts = number(abort["DaysAfterInitiation"]) > 400
			}
		}
		if !aborts {
			t.Errorf("%s: uploads of a failed job are removed before its other files: %v", id, cycle)
		}
	}
	if forgotten != 2 {
		t.Errorf("%d rules remove manifests of batches and zip files", forgotten)
	}
}

// TestReserved: concurrency is reserved only where the settings ask for it, for the scheduler and
// the API ("Configuring reserved concurrency for a function").
func TestReserved(t *testing.T) {
	for _, want := range []bool{false, true} {
		s := production
		s.Reserve = want
		for id, f := range of(synth(t, s), "AWS::Lambda::Function") {
			n := number(f.Properties["ReservedConcurrentExecutions"])
			if is := n > 0; is != (want && (strings.HasPrefix(id, "scheduler") || strings.HasPrefix(id, "api"))) {
				t.Errorf("reserve %v: %s has %v", want, id, n)
			}
		}
	}
}

// TestRuntimesAndEndpoints: no function has a runtime that AWS retires with a language's version
// ("Lambda runtimes"), also none that the CDK adds; and only functions that wake themselves may go
// round: the scheduler, when it has freed something, and the consumers' when there is more to do ("Use
// Lambda recursive loop detection to prevent infinite loops").
func TestRuntimesAndEndpoints(t *testing.T) {
	all := synth(t, heard())
	for id, f := range of(all, "AWS::Lambda::Function") {
		if f.Properties["Runtime"] != "provided.al2023" {
			t.Errorf("%s runs on %v", id, f.Properties["Runtime"])
		}
		if loops := strings.HasPrefix(id, "scheduler") || strings.HasPrefix(id, "consumer"); loops !=
			(f.Properties["RecursiveLoop"] == "Allow") {
			t.Errorf("%s: %v", id, f.Properties["RecursiveLoop"])
		}
	}
	// An edge-optimized endpoint is refused in some partitions ("API endpoint types for REST APIs
	// in API Gateway").
	for id, api := range of(all, "AWS::ApiGateway::RestApi") {
		if text(api.Properties["EndpointConfiguration"]) != `{"Types":["REGIONAL"]}` {
			t.Errorf("%s: %v", id, api.Properties["EndpointConfiguration"])
		}
	}
	for id, r := range all {
		if strings.HasPrefix(r.Type, "Custom::") || r.Type == "AWS::CloudFormation::CustomResource" {
			t.Errorf("%s is a custom resource, made by a function of the CDK's", id)
		}
	}
}

// readers are the functions that read secrets: of sources, and of callbacks.
var readers = regexp.MustCompile(`^run(unpack|estimate|download|notify)Service`)

// TestSecretsKey: secrets of callbacks and sources may be encrypted by a customer's key, which is used
// through Secrets Manager only ("Secret encryption and decryption in AWS Secrets Manager").
func TestSecretsKey(t *testing.T) {
	s := production
	s.SecretsKey = "arn:aws:kms:eu-west-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
	for id, p := range of(synth(t, s), "AWS::IAM::Policy") {
		doc := text(p.Properties["PolicyDocument"])
		is := strings.Contains(doc, `{"Action":"kms:Decrypt","Condition":{"StringEquals":{"kms:ViaService":`) &&
			strings.Contains(doc, `"Resource":"`+s.SecretsKey+`"`)
		reads := readers.MatchString(id)
		if strings.Contains(doc, "kms:") != reads || is != reads {
			t.Errorf("%s: %s", id, doc)
		}
	}
}

// TestLimitsOfADeployment: the defaults are within the bounds.
func TestLimitsOfADeployment(t *testing.T) {
	if err := boot.DefaultLimits.Check(); err != nil {
		t.Error(err)
	}
}
