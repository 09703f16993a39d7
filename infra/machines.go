package main

import (
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsstepfunctions"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"archivist/pkg/components/component"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/revisions/revision"
	"archivist/pkg/revisions/runner"
	"archivist/statemachines"
)

// componentPlaceholder is what the definition of component-run calls its function.
const componentPlaceholder = "component"

// The names of the functions of task-run in its definition.
const (
	taskControlPlaceholder = "control"
	taskRunnerPlaceholder  = "runner"
)

// adminMachine is the ARN of the state machine admin-action. Its name is fixed, so that a
// person finds it in the console, and so that its function, which the machine refers to, can
// know it.
func (a *App) adminMachine() *string {
	return a.Stack.FormatArn(&awscdk.ArnComponents{
		Service:      jsii.String("states"),
		Resource:     jsii.String("stateMachine"),
		ResourceName: a.adminName(),
		ArnFormat:    awscdk.ArnFormat_COLON_RESOURCE_NAME,
	})
}

// adminName is the name of that machine, of which there is one in each stack.
func (a *App) adminName() *string {
	return jsii.String(*a.Stack.StackName() + "-" + queue.MachineAdmin)
}

// runMachine is the ARN of the state machine component-run. Its name is fixed, so that its
// function, which the machine refers to, can know it.
func (a *App) runMachine() *string {
	return a.Stack.FormatArn(&awscdk.ArnComponents{
		Service:      jsii.String("states"),
		Resource:     jsii.String("stateMachine"),
		ResourceName: a.runName(),
		ArnFormat:    awscdk.ArnFormat_COLON_RESOURCE_NAME,
	})
}

// runName is the name of that machine, of which there is one in each stack.
func (a *App) runName() *string {
	return jsii.String(*a.Stack.StackName() + "-" +
		component.Machine)
}

// taskMachine is the ARN of the state machine task-run. Its name is fixed, so that its functions
// can know it.
func (a *App) taskMachine() *string {
	return a.Stack.FormatArn(&awscdk.ArnComponents{
		Service:      jsii.String("states"),
		Resource:     jsii.String("stateMachine"),
		ResourceName: a.taskName(),
		ArnFormat:    awscdk.ArnFormat_COLON_RESOURCE_NAME,
	})
}

// taskName is the name of that machine, of which there is one in each stack.
func (a *App) taskName() *string { return jsii.String(*a.Stack.StackName() + "-" + runner.Machine) }

// newMachine makes the state machine of jobs or batches, with its queues filled in. It may send
// to these queues.
func newMachine(scope constructs.Construct, name string, timing ingest.Timing,
	stages []*Stage) awsstepfunctions.StateMachine {
	queues := map[string]*string{}
	for _, st := range stages {
		if (st.Job != "") == (name == queue.MachineJob) {
			queues[st.Name] = st.Queue.QueueUrl()
		}
	}

	m := awsstepfunctions.NewStateMachine(scope, jsii.String(name),
		machineProps(name, timing, queues))
	for _, st := range stages {
		if queues[st.Name] != nil {
			st.Queue.Grant(m, jsii.String("sqs:SendMessage"))
		}
	}
	return m
}

// machineProps are the properties of a state machine: its definition, with its times, and its
// placeholders filled in. A definition that cannot be read is a mistake of this release,
// found by its tests.
func machineProps(name string, timing ingest.Timing,
	filled map[string]*string) *awsstepfunctions.StateMachineProps {
	text, err := statemachines.Timed(name, func(placeholder string) time.Duration {
		if st, known := ingest.StageNamed(placeholder); known {
			return timing.Times(st).State
		}

		switch placeholder {
		case componentPlaceholder:
			return component.FunctionTime + timing.Return
		case taskControlPlaceholder:
			return revision.ControlTime + timing.Return
		case taskRunnerPlaceholder:
			return revision.RunnerTime + timing.Return
		}
		return timing.Admin().State
	})
	if err != nil {
		panic(err)
	}
	return &awsstepfunctions.StateMachineProps{
		DefinitionBody:          awsstepfunctions.DefinitionBody_FromString(jsii.String(text)),
		DefinitionSubstitutions: &filled,
		StateMachineType:        awsstepfunctions.StateMachineType_STANDARD,
		TracingEnabled:          jsii.Bool(true),
		RemovalPolicy:           awscdk.RemovalPolicy_DESTROY,
	}
}
