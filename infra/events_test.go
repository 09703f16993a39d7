package main

import (
	"slices"
	"strings"
	"testing"

	"archivist/pkg/ingest"
)

// TestRelayIsFed: the stream's new event rows invoke the relay, and no other change of the table:
// else its own writes would. A batch that fails is halved, repeated a few times, and then a dead
// letter ("Using Lambda to process DynamoDB streams").
func TestRelayIsFed(t *testing.T) {
	all := synth(t, production)
	fed := 0
	for id, m := range of(all, "AWS::Lambda::EventSourceMapping") {
		p := m.Properties
		if p["StartingPosition"] == nil {
			continue
		}
		fed++
		filters, _ := p["FilterCriteria"].(map[string]any)
		pattern := list(filters["Filters"])
		if len(pattern) != 1 || pattern[0]["Pattern"] !=
			`{"dynamodb":{"Keys":{"sk":{"S":[{"prefix":"EV#"}]}}},"eventName":["INSERT"]}` {
			t.Errorf("%s lets in %v", id, pattern)
		}
		destination, _ := p["DestinationConfig"].(map[string]any)
		if p["BisectBatchOnFunctionError"] != true || number(p["MaximumRetryAttempts"]) < 1 ||
			number(p["MaximumRetryAttempts"]) > 10 || number(p["MaximumBatchingWindowInSeconds"]) != 1 ||
			number(p["MaximumRecordAgeInSeconds"]) < 60 || !strings.Contains(text(destination), `["wakedead`) {
			t.Errorf("%s: %v", id, p)
		}
	}
	if fed != 1 {
		t.Errorf("%d functions are fed by the stream", fed)
	}
}

// TestWakeUpsAreBounded: a wake-up that fails is tried a few times, and then a dead letter, of
// which an alarm tells ("Configuring error handling settings for asynchronous invocation").
func TestWakeUpsAreBounded(t *testing.T) {
	all := synth(t, production)
	for _, name := range []string{"relay", "consumer"} {
		configured := 0
		for _, c := range of(all, "AWS::Lambda::EventInvokeConfig") {
			if strings.Contains(text(c.Properties["FunctionName"]), `"`+name) &&
				number(c.Properties["MaximumRetryAttempts"]) == 2 &&
				strings.Contains(text(c.Properties["DestinationConfig"]), `["wakedead`) {
				configured++
			}
		}
		if configured != 1 {
			t.Errorf("%s: %d configurations", name, configured)
		}
	}
}

// eventTimes: a run of a consumer ends by itself, with its last call, before its function is
// ended; its lease outlives the function; and a tick of the relay ends before the next one.
func eventTimes(t *testing.T, all map[string]resource, times ingest.EventTimes) {
	t.Helper()
	if f := find(t, all, "AWS::Lambda::Function", "consumer"); secs(f.Properties["Timeout"]) != times.Consumer ||
		times.ConsumerBudget+times.Call >= times.Consumer || times.Lease <= times.Consumer {
		t.Errorf("the consumers' function has %v, the times are %+v", f.Properties["Timeout"], times)
	}
	if f := find(t, all, "AWS::Lambda::Function", "relay"); secs(f.Properties["Timeout"]) != times.Relay ||
		times.RelayBudget >= times.Relay || times.Relay.Minutes() >= 1 {
		t.Errorf("the relay has %v, the times are %+v", f.Properties["Timeout"], times)
	}
}

// TestTargets: consumers may call what the settings name, and nothing else.
func TestTargets(t *testing.T) {
	s := production
	if wrong := s.readTargets("arn:aws:lambda:eu-west-1:111122223333:function:mine," +
		"https://sqs.cn-north-1.amazonaws.com.cn/111122223333/q, " +
		"https://sqs.us-gov-west-1.amazonaws.com/111122223333/q," +
		"https://sqs.eu-west-1.amazonaws.com/111122223333/q"); wrong != nil {
		t.Fatal(wrong)
	}
	want := []string{"lambda:InvokeFunction arn:aws:lambda:eu-west-1:111122223333:function:mine",
		"sqs:SendMessage arn:aws-cn:sqs:cn-north-1:111122223333:q",
		"sqs:SendMessage arn:aws-us-gov:sqs:us-gov-west-1:111122223333:q",
		"sqs:SendMessage arn:aws:sqs:eu-west-1:111122223333:q"}
	var granted []string
	for _, g := range grants(t, synth(t, s)) {
		all, several := g.resource.([]any)
		if !several {
			all = []any{g.resource}
		}
		for _, on := range all {
			if arn, named := on.(string); named && strings.HasPrefix(g.policy, "consumerService") &&
				strings.HasPrefix(arn, "arn:") {
				granted = append(granted, strings.Join(g.actions, " ")+" "+arn)
			}
		}
	}
	slices.Sort(granted)
	if !slices.Equal(granted, want) {
		t.Errorf("it grants %q", granted)
	}
}
