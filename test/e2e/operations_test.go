package e2e

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awscloudwatch "github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cwtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/ses"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/app/boot"
	"archivist/pkg/aws/awserror"
	"archivist/pkg/aws/cloudwatch"
	"archivist/pkg/ingest/queue"
)

// TestOperations breaks what docs/operations.md says can break, and looks where the
// table of that document says that it shows.
func TestOperations(t *testing.T) {
	begin(t)
	refused := ""
	t.Run("mail-refused", func(t *testing.T) { refused = mailRefused(t) })
	t.Run("scheduler-stopped", schedulerStopped)
	t.Run("space-full", spaceFull)
	t.Run("throttled", throttled)
	t.Run("table-refused", tableRefused)
	t.Run("start-refused", startRefused)
	for name, f := range map[string]func(*testing.T){
		"machine-refused": machineRefused, "poison": poison,
		"mail-sent-again": func(t *testing.T) { mailSentAgain(t, refused) }} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t)
		})
	}
}

// raised waits until an alarm of the template is raised.
func raised(t *testing.T, id string) {
	t.Helper()
	name := regexp.MustCompile(`^Archivist-` + id + `[0-9A-F]{8}(-|$)`) // the CDK adds a hash, CloudFormation a suffix
	until(t, "the alarm "+id, soon, func() bool {
		out, err := awscloudwatch.NewFromConfig(cfg).DescribeAlarms(t.Context(), &awscloudwatch.DescribeAlarmsInput{
			StateValue: cwtypes.StateValueAlarm, MaxRecords: aws.Int32(100)})
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range out.MetricAlarms {
			if name.MatchString(aws.ToString(a.AlarmName)) {
				return true
			}
		}
		return false
	})
}

// rises waits until one of the system's own metrics is more than it was.
func rises(t *testing.T, metric string, prev float64) {
	t.Helper()
	until(t, "the metric "+metric, soon, func() bool { return sumOf(t, cloudwatch.Namespace, metric) > prev })
}

func explained(t *testing.T, id string) v1.Explanation {
	t.Helper()
	x, err := client.Explain(t.Context(), id)
	if err != nil {
		return v1.Explanation{} // not unpacked yet
	}
	return x
}

// explains waits until an item's explanation names what it waits for, and says some texts.
func explains(t *testing.T, id, waits string, says ...string) {
	t.Helper()
	var x v1.Explanation
	defer func() {
		if t.Failed() {
			t.Logf("the last explanation of %s: %+v", id, x)
		}
	}()
	until(t, fmt.Sprintf("%s waits for %s: %q", id, waits, says), soon, func() bool {
		x = explained(t, id)
		text := fmt.Sprint(x.Chain, x.Do)
		for _, s := range says {
			if !strings.Contains(text, s) {
				return false
			}
		}
		return x.WaitsFor == waits || waits == ""
	})
}

func function(name string) cwtypes.Dimension {
	return cwtypes.Dimension{Name: aws.String("FunctionName"), Value: &name}
}

// schedulerStopped: without its rule and its queue the scheduler has no invocations, which
// is what the alarm SchedulerSilent watches; jobs wait for it.
func schedulerStopped(t *testing.T) {
	scheduler := out.All["schedulerFunction"]
	runs := func() float64 { return sumOf(t, "AWS/Lambda", "Invocations", function(scheduler)) }
	until(t, "the scheduler runs", soon, func() bool { return runs() > 0 })
	start := stopScheduler(t, scheduler)
	defer start()
	src := newSource(t)
	_, job := submit(t, src.put("/a.txt", []byte("a")), "file")
	explains(t, job, "turn", "the scheduler")
	before := runs()
	_, other := submit(t, src.put("/b.txt", []byte("b")), "file")
	explains(t, other, "turn", "the scheduler")
	if now := runs(); now != before {
		t.Errorf("the scheduler ran %v times while it was stopped", now-before)
	}
	start()
	ends(t, job, "Completed", soon)
}

// stopScheduler disables everything that invokes the scheduler. The returned function
// enables it again.
func stopScheduler(t *testing.T, scheduler string) (start func()) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	functions := lambda.NewFromConfig(cfg)
	maps, err := functions.ListEventSourceMappings(ctx, &lambda.ListEventSourceMappingsInput{FunctionName: &scheduler})
	if err != nil || len(maps.EventSourceMappings) != 1 {
		t.Fatalf("the scheduler's queues are %+v, %v", maps, err)
	}
	enable(t, functions, *maps.EventSourceMappings[0].UUID, false)
	minutes := stopMinutes(t)
	return func() {
		enable(t, functions, *maps.EventSourceMappings[0].UUID, true)
		minutes()
	}
}

// stopMinutes disables the rule of each minute, and its play. The returned function enables both again. Meanwhile
// nothing is repaired: what happens is caused by wake-ups.
func stopMinutes(t *testing.T) (start func()) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	bus, minute := eventbridge.NewFromConfig(cfg), "Archivist-EachMinute"
	if inProcess() {
		minute = "EachMinute"
	}
	rules, err := bus.ListRules(ctx, &eventbridge.ListRulesInput{NamePrefix: aws.String(minute)})
	if err != nil || len(rules.Rules) != 1 {
		t.Fatalf("the rules are %+v, %v", rules, err)
	}
	name := rules.Rules[0].Name
	ticking.Store(false)
	if _, err := bus.DisableRule(ctx, &eventbridge.DisableRuleInput{Name: name}); err != nil {
		t.Fatal(err)
	}
	return func() {
		if _, err := bus.EnableRule(ctx, &eventbridge.EnableRuleInput{Name: name}); err != nil {
			t.Error(err)
		}
		ticking.Store(true)
	}
}

// spaceFull: while something holds all work space, jobs wait and say so.
func spaceFull(t *testing.T) {
	rows := dynamodb.NewFromConfig(cfg)
	text := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
	number := func(n int64) types.AttributeValue { return &types.AttributeValueMemberN{Value: fmt.Sprint(n)} }
	key := map[string]types.AttributeValue{"pk": text("SPACE"), "sk": text("operations")}
	row := map[string]types.AttributeValue{"pk": key["pk"], "sk": key["sk"], "owned_by": text("operations"),
		"rev":   number(1),
		"bytes": number(int64(boot.DefaultLimits.SpaceGiB) << 30)}
	if _, err := rows.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &out.TableName, Item: row}); err != nil {
		t.Fatal(err)
	}
	free := func() {
		ctx := context.WithoutCancel(t.Context())
		if _, err := rows.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: &out.TableName, Key: key}); err != nil {
			t.Error(err)
		}
	}
	defer free()
	src := newSource(t)
	_, job := submit(t, src.put("/a.txt", []byte("a")), "file")
	explains(t, job, "space", "0 are free")
	raised(t, "SpaceUsed")
	free()
	ends(t, job, "Completed", soon)
}

// throttled: a function without concurrency counts its throttles.
func throttled(t *testing.T) {
	functions, name := lambda.NewFromConfig(cfg), functionOf(t, "notify")
	none := &lambda.PutFunctionConcurrencyInput{FunctionName: &name, ReservedConcurrentExecutions: aws.Int32(0)}
	if _, err := functions.PutFunctionConcurrency(t.Context(), none); err != nil {
		t.Fatal(err)
	}
	defer func() {
		ctx := context.WithoutCancel(t.Context())
		if _, err := functions.DeleteFunctionConcurrency(ctx,
			&lambda.DeleteFunctionConcurrencyInput{FunctionName: &name}); err != nil {
			t.Error(err)
		}
	}()
	_, err := functions.Invoke(t.Context(), &lambda.InvokeInput{FunctionName: &name, Payload: []byte("{}")},
		func(o *lambda.Options) { o.Retryer = aws.NopRetryer{} })
	var busy *lambdatypes.TooManyRequestsException
	if !errors.As(err, &busy) || sumOf(t, "AWS/Lambda", "Throttles", function(name)) == 0 {
		t.Errorf("it was invoked: %v", err)
	}
}

// tableRefused: a function that may not read the table raises an alarm at its first call.
func tableRefused(t *testing.T) {
	restore := removeGrant(t, "report", "dynamodb:GetItem")
	defer restore()
	refused := sumOf(t, cloudwatch.Namespace, awserror.Refused)
	failed := sumOf(t, cloudwatch.Namespace, queue.FailedJobs)
	batch, job := submit(t, newSource(t).URL+"/missing.txt", "file")
	explains(t, job, "person", "answered 404", "requeue")
	rises(t, queue.FailedJobs, failed)
	rises(t, awserror.Refused, refused)
	raised(t, "Refused")
	if b := batchOf(t, batch); b.State != "Reporting" {
		t.Errorf("the batch is %s", b.State)
	}
	restore()
	until(t, "the batch reports", soon, func() bool { return batchOf(t, batch).State == "Failed" })
}

// startRefused: a job whose execution the scheduler may not start says so at once.
func startRefused(t *testing.T) {
	restore := removeGrant(t, "scheduler", "states:StartExecution")
	defer restore()
	stuck := sumOf(t, cloudwatch.Namespace, queue.Stuck)
	_, job := submit(t, newSource(t).put("/a.txt", []byte("a")), "file")
	explains(t, job, "person", "its execution could not be started: SFN refused StartExecution: AccessDenied")
	rises(t, queue.Stuck, stuck)
	raised(t, "Stuck")
	restore()
	ends(t, job, "Completed", soon)
}

// machineRefused: a state machine that may not send to its queues raises an alarm at the
// first repair of a job, which names the cause.
func machineRefused(t *testing.T) {
	restore := removeGrant(t, "ingest-job", "sqs:SendMessage")
	defer restore()
	stuck := sumOf(t, cloudwatch.Namespace, queue.Stuck)
	_, job := submit(t, newSource(t).put("/a.txt", []byte("a")), "file")
	explains(t, job, "person", "the state machine ingest-job failed at Estimating",
		"not authorized to perform: sqs:sendmessage")
	rises(t, queue.Stuck, stuck)
	raised(t, "Stuck")
	restore()
	ends(t, job, "Completed", soon)
}

// mailRefused: a mail that the mail service refuses is shown by the batch.
func mailRefused(t *testing.T) (batch string) {
	mail := ses.NewFromConfig(cfg)
	if _, err := mail.DeleteIdentity(t.Context(), &ses.DeleteIdentityInput{Identity: aws.String(sender)}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		ctx := context.WithoutCancel(t.Context())
		if _, err := mail.VerifyEmailIdentity(ctx,
			&ses.VerifyEmailIdentityInput{EmailAddress: aws.String(sender)}); err != nil {
			t.Error(err)
		}
	}()
	failures := sumOf(t, cloudwatch.Namespace, queue.MailFailures)
	batch, _ = submit(t, newSource(t).put("/a.txt", []byte("a")), "file")
	rises(t, queue.MailFailures, failures)
	to := strings.ToLower(t.Name()) + "@example.org could not be delivered: "
	explains(t, batch, "", "queued mail to "+to, "report mail to "+to, "next try at")
	return batch
}

// mailSentAgain: the scheduler sends the report of a batch that was refused, about a minute later. The batch has
// ended: that it was queued is not told any more.
func mailSentAgain(t *testing.T, batch string) {
	until(t, "the report is sent again", 2*soon, func() bool {
		other := func(mail string) bool { return !strings.Contains(mail, batch) }
		mails := slices.DeleteFunc(sent(t), other)
		for _, mail := range mails {
			if strings.Contains(mail, " queued: "+batch) {
				t.Errorf("told after the end of the batch: %s", mail)
			}
		}
		return len(mails) > 0
	})
}

// poison: a message that the system did not send becomes a dead letter, and holds up no
// other.
func poison(t *testing.T) {
	const body = "not of this system"
	in := &sqs.SendMessageInput{QueueUrl: aws.String(out.All["queuerecord"]), MessageBody: aws.String(body)}
	if _, err := queues().SendMessage(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	found, err := queues().ListQueues(t.Context(), &sqs.ListQueuesInput{QueueNamePrefix: aws.String("Archivist-dead")})
	if err != nil || len(found.QueueUrls) != 1 {
		t.Fatalf("the queues of dead letters are %v, %v", found, err)
	}
	dead := &found.QueueUrls[0]
	until(t, "the dead letter", soon, func() bool {
		got, err := queues().ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: dead,
			MaxNumberOfMessages: 10, VisibilityTimeout: 1})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range got.Messages {
			if aws.ToString(m.Body) == body {
				_, err := queues().DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: dead,
					ReceiptHandle: m.ReceiptHandle})
				return err == nil
			}
		}
		return false
	})
}
