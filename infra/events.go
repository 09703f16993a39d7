package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambdadestinations"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambdaeventsources"
	"github.com/aws/jsii-runtime-go"

	"archivist/pkg/app/boot"
	"archivist/pkg/events/event"
	"archivist/pkg/ingest"
	"archivist/pkg/kernel/table/schema"
)

// busName is the name of the bus on which public events are. It is fixed, so that rules of
// other stacks can name it.
const busName = "archivist"

// newEvents makes what brings events to their consumers: the relay, which the table's stream
// and the minute's rule invoke, the function in which consumers run, and the bus of public
// events. Both functions are invoked asynchronously, without a queue: Lambda's pollers of an
// idle queue cost more than all of this. The relay needs little memory: it only moves small
// rows.
func (a *App) newEvents(p FunctionProps, timing ingest.Timing) {
	a.Bus = awsevents.NewEventBus(a.Stack, jsii.String("Bus"),
		&awsevents.EventBusProps{EventBusName: jsii.String(busName)})
	p = p.with(map[string]*string{boot.EnvBus: a.Bus.EventBusName(),
		boot.EnvSearch: jsii.String(p.Settings.SearchDomain)})
	times := timing.Events()

	consumer := p
	// A search index is kept in memory.
	consumer.Code, consumer.Timeout, consumer.Memory = "consumer", times.Consumer, 1024
	consumer.WakesItself = true // when there is more to do than fits into an invocation
	a.Consumer = newFunction(a.Stack, "consumer", consumer)
	a.grantConsumer(consumer)

	relay := p.with(map[string]*string{boot.EnvConsumer: a.Consumer.FunctionName()})
	relay.Code, relay.Timeout, relay.Memory = "relay", times.Relay, 256
	a.Relay = newFunction(a.Stack, "relay", relay)
	a.grantRelay(relay)
	a.feedRelay(p.Settings)

	// A wake-up that fails twice more is told to an operator; the sweep wakes again in any case.
	for _, f := range []awslambda.Function{a.Consumer, a.Relay} {
		f.ConfigureAsyncInvoke(&awslambda.EventInvokeConfigOptions{
			OnFailure:     awslambdadestinations.NewSqsDestination(a.WakeDead),
			RetryAttempts: jsii.Number(2),
			MaxEventAge:   minutes(15),
		})
	}
}

// Of the stream's event source. A batch that fails is halved and repeated, and given up after some
// tries: then it is a dead letter, and the sweep places its events. A window of a second makes one
// call of what one submission changes.
const (
	streamBatch   = 100
	streamWindow  = 1 // seconds
	streamRetries = 5
)

// feedRelay connects the relay to the table's stream: only new event rows invoke it. Lambda reads
// streams free of charge ("Amazon DynamoDB pricing", DynamoDB Streams).
func (a *App) feedRelay(s Settings) {
	if a.Data.Table.TableStreamArn() == nil { // of a restored table, whose events the sweep places
		return
	}

	filter := awslambda.FilterCriteria_Filter(&map[string]any{
		"eventName": awslambda.FilterRule_IsEqual(jsii.String("INSERT")),
		"dynamodb": map[string]any{"Keys": map[string]any{
			schema.SK: map[string]any{"S": awslambda.FilterRule_BeginsWith(jsii.String(event.Prefix))}}}})

	a.Relay.AddEventSource(awslambdaeventsources.NewDynamoEventSource(a.Data.Table,
		&awslambdaeventsources.DynamoEventSourceProps{
			StartingPosition:   awslambda.StartingPosition_TRIM_HORIZON,
			BatchSize:          jsii.Number(streamBatch),
			MaxBatchingWindow:  awscdk.Duration_Seconds(jsii.Number(streamWindow)),
			BisectBatchOnError: jsii.Bool(true),
			RetryAttempts:      jsii.Number(streamRetries),
			MaxRecordAge:       minutes(15),
			OnFailure:          awslambdaeventsources.NewSqsDlq(a.WakeDead),
			Filters:            &[]*map[string]any{filter},
		}))
}
