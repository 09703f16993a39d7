package main

import (
	"strings"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambdaeventsources"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsstepfunctions"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"archivist/pkg/boot"
	"archivist/pkg/collection"
	"archivist/pkg/ingest"
	"archivist/pkg/queue"
	"archivist/statemachines"
)

// Stage is one stage's queue with its dead letters, and its function.
type Stage struct {
	ingest.Stage
	Queue   awssqs.Queue
	Dead    awssqs.Queue
	Handler awslambda.Function
}

// newQueues makes a stage's queues: a message lives as long as the chain of
// times says, and comes to the dead letters after every delivery was in vain.
func newQueues(scope constructs.Construct, st ingest.Stage, t ingest.Times) *Stage {
	dead := awssqs.NewQueue(scope, jsii.String(st.Name+"-dead"), &awssqs.QueueProps{RetentionPeriod: seconds(t.DeadLetter), Encryption: awssqs.QueueEncryption_SQS_MANAGED, EnforceSSL: jsii.Bool(true)})
	q := awssqs.NewQueue(scope, jsii.String(st.Name), &awssqs.QueueProps{
		RetentionPeriod: seconds(t.Retention), VisibilityTimeout: seconds(t.Visibility), Encryption: awssqs.QueueEncryption_SQS_MANAGED, EnforceSSL: jsii.Bool(true),
		DeadLetterQueue: &awssqs.DeadLetterQueue{Queue: dead, MaxReceiveCount: jsii.Number(20)},
	})
	return &Stage{Stage: st, Queue: q, Dead: dead}
}

// newHandler makes a stage's function and connects it to its queue, one message
// at a time. Its concurrency is at least what the gates let in.
func (st *Stage) newHandler(scope constructs.Construct, p FunctionProps, t ingest.Times) {
	p.Code, p.Timeout, p.Memory = "run-stage", t.Timeout, 512
	if st.Name == "process" || st.Name == "store" {
		p.Disk = 4096 // for sorting an object's files: about 1 KB each and version
	}
	env := map[string]*string{boot.EnvStage: jsii.String(st.Name), boot.EnvQueue: st.Queue.QueueUrl()}
	for k, v := range p.Env {
		env[k] = v
	}
	p.Env = env
	st.Handler = newFunction(scope, "run-"+st.Name, p)
	st.Handler.AddEventSource(awslambdaeventsources.NewSqsEventSource(st.Queue, &awslambdaeventsources.SqsEventSourceProps{
		BatchSize: jsii.Number(1), ReportBatchItemFailures: jsii.Bool(true), MaxConcurrency: jsii.Number(max(2, p.Settings.Limits.MaxInFlight)),
	}))
	p.Data.Table.GrantReadWriteData(st.Handler)
	st.grantContent(p.Data)
	if st.Batch != "" { // its changes owe mails
		grantMail(st.Handler, p.Settings.MailFrom)
		grantMetrics(st.Handler)
	}
}

// grantMail lets a function send mails from an address, which SES has verified
// itself or by its domain.
func grantMail(f awslambda.Function, from string) {
	if from == "" {
		return
	}
	var identities []*string
	for _, name := range []string{from, from[strings.LastIndex(from, "@")+1:]} {
		identities = append(identities, awscdk.Stack_Of(f).FormatArn(&awscdk.ArnComponents{Service: jsii.String("ses"), Resource: jsii.String("identity"), ResourceName: jsii.String(name)}))
	}
	f.AddToRolePolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{Actions: jsii.Strings("ses:SendRawEmail"), Resources: &identities}))
}

// grantMetrics lets a function count the system's own metrics.
func grantMetrics(f awslambda.Function) {
	f.AddToRolePolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{Actions: jsii.Strings("cloudwatch:PutMetricData"), Resources: jsii.Strings("*"),
		Conditions: &map[string]any{"StringEquals": map[string]any{"cloudwatch:namespace": boot.Namespace}}}))
}

// grantContent gives each stage what its step does with content, and no more.
func (st *Stage) grantContent(d *Data) {
	switch st.Name {
	case "unpack":
		d.Work.GrantReadWrite(st.Handler, jsii.String("batches/*"))
	case "download":
		d.Work.GrantReadWrite(st.Handler, jsii.String("jobs/*"))
	case "estimate", "process":
		d.Work.GrantReadWrite(st.Handler, jsii.String("jobs/*"))
		d.Storage.GrantRead(st.Handler, nil) // whose an object is, and what it is called
	case "store":
		d.Work.GrantReadWrite(st.Handler, jsii.String("jobs/*"))
		d.Storage.GrantReadWrite(st.Handler, nil)
	case "record":
		d.Storage.GrantRead(st.Handler, nil)
	case "notify":
		d.Work.GrantRead(st.Handler, jsii.String("jobs/*"))
		d.Work.GrantDelete(st.Handler, jsii.String("jobs/*"))
		st.Handler.AddToRolePolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{Actions: jsii.Strings("secretsmanager:GetSecretValue"),
			Resources: &[]*string{awscdk.Stack_Of(st.Handler).FormatArn(&awscdk.ArnComponents{Service: jsii.String("secretsmanager"), Resource: jsii.String("secret"),
				ResourceName: jsii.String(collection.SecretPrefix + "*"), ArnFormat: awscdk.ArnFormat_COLON_RESOURCE_NAME})}}))
	case "report":
		d.Work.GrantRead(st.Handler, jsii.String("batches/*")) // its pages under way
		d.Work.GrantPut(st.Handler, jsii.String("batches/*"))
		d.Work.GrantRead(st.Handler, jsii.String("reports/*")) // for the mail
		d.Work.GrantPut(st.Handler, jsii.String("reports/*"))
		d.Storage.GrantRead(st.Handler, nil) // the files of each object
	}
}

// newMachine makes a state machine from its definition, with its queues filled in.
func newMachine(scope constructs.Construct, name string, timing ingest.Timing, stages []*Stage) awsstepfunctions.StateMachine {
	text, err := statemachines.Timed(name, func(stage string) time.Duration {
		st, _ := ingest.StageNamed(stage)
		return timing.Times(st).State
	})
	if err != nil {
		panic(err)
	}
	queues := map[string]*string{}
	for _, st := range stages {
		if (st.Job != "") == (name == queue.MachineJob) {
			queues[st.Name] = st.Queue.QueueUrl()
		}
	}
	m := awsstepfunctions.NewStateMachine(scope, jsii.String(name), &awsstepfunctions.StateMachineProps{
		DefinitionBody: awsstepfunctions.DefinitionBody_FromString(jsii.String(text)), DefinitionSubstitutions: &queues,
		StateMachineType: awsstepfunctions.StateMachineType_STANDARD, TracingEnabled: jsii.Bool(true),
		RemovalPolicy: awscdk.RemovalPolicy_DESTROY,
	})
	for _, st := range stages {
		if queues[st.Name] != nil {
			st.Queue.GrantSendMessages(m)
		}
	}
	return m
}
