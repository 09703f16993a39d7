package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambdaeventsources"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"archivist/pkg/app/boot"
	"archivist/pkg/ingest"
)

// Stage is one stage's queue and its function. The name is the part of the ids of both.
type Stage struct {
	ingest.Stage
	Queue   awssqs.Queue
	Handler awslambda.Function
}

// newQueue makes a stage's queue. Its times follow from the stage's time-out (ingest.Times).
func newQueue(scope constructs.Construct, s Settings, st ingest.Stage, t ingest.Times,
	dead awssqs.Queue) *Stage {
	return &Stage{Stage: st, Queue: fed(scope, s, st.Name, t, dead)}
}

// fed makes a queue that feeds a function. A message is kept as long as the chain of
// times says, and becomes a dead letter after its last delivery.
func fed(scope constructs.Construct, s Settings, id string, t ingest.Times,
	dead awssqs.Queue) awssqs.Queue {
	return awssqs.NewQueue(scope, jsii.String(id), fedProps(s, t, dead))
}

// fedProps are the properties of a queue that feeds a function. The visibility time-out is
// longer than the function's, or a message would be delivered while it is being worked on.
func fedProps(s Settings, t ingest.Times, dead awssqs.Queue) *awssqs.QueueProps {
	return &awssqs.QueueProps{
		RetentionPeriod:   seconds(t.Retention),
		VisibilityTimeout: seconds(t.Visibility),
		Encryption:        awssqs.QueueEncryption_SQS_MANAGED,
		EnforceSSL:        s.tlsOnly(),
		DeadLetterQueue: &awssqs.DeadLetterQueue{Queue: dead,
			MaxReceiveCount: jsii.Number(t.Receives)},
	}
}

// newDead makes a dead-letter queue. It keeps messages longer than the queues that feed it:
// in SQS the age of a message goes on when it is moved.
func newDead(scope constructs.Construct, s Settings, id string, t ingest.Times) awssqs.Queue {
	return awssqs.NewQueue(scope, jsii.String(id), &awssqs.QueueProps{
		RetentionPeriod: seconds(t.DeadLetter),
		Encryption:      awssqs.QueueEncryption_SQS_MANAGED,
		EnforceSSL:      s.tlsOnly(),
	})
}

// newHandler makes a stage's function and connects it to its queue, one message at a time. Its
// concurrency is at least the number of jobs that the gates admit. So a job that the gates admit
// need not wait for a function.
func (st *Stage) newHandler(scope constructs.Construct, p FunctionProps, t ingest.Times) {
	p.Code, p.Timeout, p.Memory = "run-stage", t.Timeout, 512
	if st.Name == "process" || st.Name == "store" {
		p.Disk = 4096 // for sorting an object's files: about 1 KB each and version
	}

	p = p.with(map[string]*string{boot.EnvStage: jsii.String(st.Name),
		boot.EnvQueue: st.Queue.QueueUrl()})
	st.Handler = newFunction(scope, "run-"+st.Name, p)

	// One message at a time, so that a job has the whole time and memory of its invocation.
	source := &awslambdaeventsources.SqsEventSourceProps{
		BatchSize:               jsii.Number(1),
		ReportBatchItemFailures: jsii.Bool(true),
		MaxConcurrency:          jsii.Number(max(2, p.Settings.Limits.MaxInFlight)),
	} // 2 is the least that Lambda takes

	st.Handler.AddEventSource(awslambdaeventsources.NewSqsEventSource(st.Queue, source))
}
