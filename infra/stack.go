package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigateway"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/aws-cdk-go/awscdk/v2/awseventstargets"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsstepfunctions"
	"github.com/aws/jsii-runtime-go"
)

// App is the stack of what can be made again: queues, functions, machines, the API. It can be
// deleted and deployed again without a loss: all state is in Data. Names of resources are
// made by CloudFormation, except where a person or another account has to know them.
type App struct {
	awscdk.Stack
	Data      *Data
	Stages    []*Stage
	Dead      awssqs.Queue // the dead letters of all stages: a message names its item and state
	Machines  map[string]awsstepfunctions.StateMachine
	Wake      awssqs.Queue
	WakeDead  awssqs.Queue
	Scheduler awslambda.Function
	API       awslambda.Function
	Admin     awslambda.Function // of the state machine admin-action
	Relay     awslambda.Function // gives events their places in the log
	Consumer  awslambda.Function // in which consumers of events run
	Component awslambda.Function // of the state machine component-run
	Bus       awsevents.EventBus // of public events
	Rest      awsapigateway.RestApi

	Authorizer awslambda.Function // of the API; nil: its calls need no token

	EachMinute awsevents.Rule
	Research   *Research  // nil: there is no project
	Revisions  *Revisions // nil: there is no revision queue
}

// Research is what a deployment with projects of research has in addition. Pending and Roles
// are in the order of the settings' projects.
type Research struct {
	Pending       []awssqs.Queue // of work items, one for each project
	Episodes      awssqs.Queue   // of curated episodes
	Clips         awssqs.Queue   // of curated clips
	Completed     awssqs.Queue   // of reports
	Dead          awssqs.Queue   // of messages that can never be handled: they say why
	PendingWork   awslambda.Function
	CompletedWork awslambda.Function
	Curation      awslambda.Function
	Roles         []awsiam.Role // of researchers, one for each project
}

// Revisions is the revision queue of a deployment.
type Revisions struct {
	Manager awslambda.Function // plans, lets go on, starts
	Control awslambda.Function // begins and ends attempts
	Router  awslambda.Function // calls the runner for the archive of a run
	Runner  awslambda.Function // runs scripts of archives: it can reach nothing but its log
	Run     awsiam.Role        // of runs, for what each may reach; the router takes it
	Machine awsstepfunctions.StateMachine
}

// target is a function that a rule invokes. The next minute would repeat an invocation that
// is lost, but an operator should hear of it.
func (a *App) target(f awslambda.Function) awsevents.IRuleTarget {
	return awseventstargets.NewLambdaFunction(f,
		&awseventstargets.LambdaFunctionProps{DeadLetterQueue: a.WakeDead,
			RetryAttempts: jsii.Number(2)})
}
